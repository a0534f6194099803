"""Keys of many rows are looked up together: what a transaction asks SQLite does not grow with its rows, and is the same as one by one."""

from __future__ import annotations

from typing import Any

import pytest

from vigilog.core.errors import DataError
from vigilog.engine.database import Database
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.folder.opening import open_program

PROGRAM = """
.decl stock(item: symbol, place: number, day: date, amount: decimal(6,2))
.key stock(item, day)
.decl level(item: symbol, amount: decimal(6,2))
.output level
level(i, a) :- stock(i, _, _, a).
"""
MANY = 500


def rows(number: int, amount: str = "1.00") -> list[list[Any]]:
    """Items that look like numbers, each on two days."""
    return [[str(item), item, f"2026-11-{day}", amount] for item in range(number) for day in (17, 18)]


def asked(db: Database, **wish: Any) -> int:
    """How many statements a transaction takes."""
    assert isinstance(db.views, EmbeddedViews)
    said: list[str] = []
    db.views.tables.connection.set_trace_callback(said.append)
    try:
        db.apply(wish)
    finally:
        db.views.tables.connection.set_trace_callback(None)
    return len([line for line in said if not line.startswith("INSERT INTO")])


@pytest.mark.parametrize("way", ["insert", "upsert", "delete", "delete_key"])
def test_the_work_does_not_grow_with_the_rows(way: str) -> None:
    with open_program(PROGRAM) as db:
        db.apply({"insert": {"stock": rows(3 * MANY)}})
        given = {
            "insert": [[f"new {item}", 7, "2026-11-19", "3.00"] for item in range(MANY)],
            "upsert": rows(MANY, "2.00"),
            "delete": rows(MANY),
            "delete_key": [[item, day] for item, _, day, _ in rows(MANY)],
        }[way]
        before = len(db.view("level"))
        assert asked(db, **{way: {"stock": given}}) < 100
        changed = {"insert": MANY, "upsert": 0, "delete": -MANY, "delete_key": -MANY}[way]
        assert len(db.view("level")) == before + changed


@pytest.mark.parametrize("number", [3, MANY])
def test_few_and_many_are_the_same(number: int) -> None:
    with open_program(PROGRAM) as db:
        db.apply({"insert": {"stock": rows(number)}})
        db.apply({"upsert": {"stock": rows(number, "2.00")}})
        assert {str(amount) for _, amount in db.view("level")} == {"2.00"}
        with pytest.raises(DataError) as refused:
            db.apply({"insert": {"stock": [[item, -1, day, "2.00"] for item, _, day, _ in rows(number)]}})
        assert refused.value.code == "key" and '["0", -1, "2026-11-17", "2.00"] and ["0", 0, "2026-11-17", "2.00"]' in refused.value.message
        db.apply({"delete_key": {"stock": [[item, day] for item, _, day, _ in rows(number)]}})
        assert db.rows("stock") == set()
