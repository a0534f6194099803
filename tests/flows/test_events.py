"""Debezium's change events: what each does to a relation, and what is refused."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pytest

from vigilog.core.errors import DataError, ProgramError
from vigilog.engine.places import split, streams
from vigilog.files.events import Operation, operations
from vigilog.flows.streams import folded
from vigilog.language.check import check

TEXT = """
.decl orders(id: number, item: symbol, day: date, at: timestamp, price: decimal(18,2))
{key}.input orders(IO=stream, format=debezium, path="in"{more})
.output orders
"""
KEY = ".key orders(id)\n"
DAY, AT = datetime.date(2026, 11, 16), datetime.datetime(2026, 11, 16, 8, 30, 0, 1, datetime.UTC)
ROW = (1, "nail", DAY, AT, Decimal("-0.01"))
SAID = {"id": 1, "item": "nail", "day": 20773, "at": 1794817800000001, "price": "-0.01"}


def said(*events: Any, key: str = KEY, more: str = ", timestamps=us", relation: str = "orders") -> list[Operation]:
    """The operations of events on one of the relations of a source."""
    program = check(TEXT.format(key=key, more=more)).program
    place = next(place for place in split(program, streams(program)["orders"]) if place.relation == relation)
    lines = [(f"in:{number}", event if isinstance(event, str) else json.dumps(event)) for number, event in enumerate(events, start=1)]
    return list(operations(place, program.keys.get(relation, ()), lines))


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": "orders"}, "ts_ms": 1}


def test_by_key() -> None:
    changed = {**SAID, "item": "screw"}
    told = said(event("r", after=SAID), event("c", after=SAID), event("u", SAID, changed), event("d", {"id": 1}), "null\n", "")
    assert told == [
        ("upsert", ROW),
        ("upsert", ROW),
        ("upsert", (1, "screw", *ROW[2:])),
        ("delete_key", (1, None, None, None, None)),
    ]
    assert folded("orders", [0], told) == {"delete": {"orders": []}, "delete_key": {"orders": [(1,)]}, "insert": {"orders": []}}


def test_without_a_key() -> None:
    assert said(event("u", SAID, {**SAID, "id": 2}), event("d", SAID), key="") == [
        ("delete", ROW),
        ("insert", (2, *ROW[1:])),
        ("delete", ROW),
    ]
    with pytest.raises(DataError, match=r"in:1: the event does not say the whole row before it; declare a \.key of orders"):
        said(event("d", {"id": 1, "item": None}), key="")


def test_a_schema_says_what_numbers_and_bytes_are() -> None:
    fields = [
        {"field": "at", "name": "io.debezium.time.Timestamp"},
        {"field": "price", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "3"}},
    ]
    price = base64.b64encode((-(10**15) * 1000).to_bytes(9, "big", signed=True)).decode()
    row = {**SAID, "at": 1794817800000, "price": price}
    whole = {"schema": {"fields": [{"field": "after", "fields": fields}]}, "payload": event("c", after=row)}
    assert said(whole, {"schema": None, "payload": None}, more="") == [
        ("upsert", (1, "nail", DAY, AT.replace(microsecond=0), Decimal(-(10**15)).quantize(Decimal("0.01")))),
    ]
    unbounded = {"scale": 2, "value": base64.b64encode(b"\x7d").decode()}
    assert said(event("c", after={**SAID, "price": unbounded}))[0][1][4] == Decimal("1.25")
    assert said(event("c", after={**SAID, "at": "2026-11-16T08:30:00.000001Z", "day": "2026-11-16"}), more="") == [("upsert", ROW)]


def test_optional_columns() -> None:
    told = [event("c", after={**SAID, "phone": "77"}), event("u", after={**SAID, "phone": None}), event("d", {"id": 1})]
    more = ', timestamps=us, optional="phone: symbol"'
    assert said(*told, more=more, relation="orders_phone") == [("upsert", (1, "77")), ("delete_key", (1, None)), ("delete_key", (1, None))]
    assert [operation for operation, _ in said(*told, more=more)] == ["upsert", "upsert", "delete_key"]


REFUSED: dict[str, tuple[str, Any, str]] = {
    "truncated": ("operation", event("t"), "emptied at once"),
    "no-op": ("operation", {"id": 1}, "is no change event"),
    "no-after": ("columns", event("c"), "does not say the row after it"),
    "null": ("null", event("c", after={**SAID, "item": None}), "column item"),
    "no-key": ("null", event("d", {"item": "nail"}), "no key id"),
    "left-out": ("value", event("u", after={**SAID, "item": "__debezium_unavailable_value"}), "REPLICA IDENTITY FULL"),
    "far-away": ("value", event("c", after={**SAID, "day": 10**9}), "column day"),
    "no-json": ("value", "{", "is not JSON"),
    "bytes": ("value", event("c", after={**SAID, "price": {"scale": 1, "value": "%"}}), "no decimal"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    code, told, why = REFUSED[name]
    with pytest.raises(DataError, match="in:1") as caught:
        said(told)
    assert caught.value.code == code and why in str(caught.value)


def test_timestamps_are_not_guessed() -> None:
    with pytest.raises(DataError, match="column at of orders: 1794817800000001 is a number; say timestamps=ms, us or ns"):
        said(event("c", after=SAID), more="")
    with pytest.raises(DataError, match="parts of a microsecond"):
        said(event("c", after=SAID), more=", timestamps=ns")
    assert said(event("c", after={**SAID, "at": SAID["at"] * 1000}), more=", timestamps=ns") == [("upsert", ROW)]  # type: ignore[operator]  # it is an int
    with pytest.raises(ProgramError, match="no option op for IO=stream with format=debezium"):
        said(more=', op="op"')
