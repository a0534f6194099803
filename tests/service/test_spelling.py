"""Rows go round: what a client is told of a row, by whichever way, it can tell back, and it is the same row."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

import httpx
import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.client import Change, Snapshot, aconnect, connect

pytestmark = pytest.mark.apart

PROGRAM = """
.decl t(n: number, u: unsigned, f: float, b: boolean, d: date, m: timestamp, a: decimal(18,2), s: symbol)
.key t(n)
.output v
.decl v(n: number, u: unsigned, f: float, b: boolean, d: date, m: timestamp, a: decimal(18,2), s: symbol)
.key v(n)
v(n, u, f, b, d, m, a, s) :- t(n, u, f, b, d, m, a, s).
"""
ROWS = [
    [2**63 - 1, 2**64 - 1, 0.1, True, "9999-12-31", "2026-11-16T08:30:00.000001Z", "9999999999999999.99", "7"],
    [-(2**63), 0, 1e300, False, "0001-01-01", "0001-01-01T00:00:00.000000Z", "-0.01", "-7"],
    [9007199254740993, 9007199254740993, -2.5, True, "2026-11-16", "2026-11-16T08:30:00.000000Z", "0.00", ""],
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("spelling"), program=PROGRAM).start()
    yield server
    server.kill()
    assert server.mistakes() == []


@pytest.fixture
def filled(served: Served) -> Served:
    served.tell(upsert={"t": ROWS})
    return served


def by_call(server: Served) -> list[Any]:
    return list(server.get("/v1/views/v")["rows"])


def by_call_as_text(server: Served) -> list[Any]:
    return list(server.get("/v1/views/v?integers=text")["rows"])


def by_question_as_text(server: Served) -> list[Any]:
    found = server.call("POST", "/v1/ask?integers=text", json={"goal": "v(n, u, f, b, d, m, a, s)"})
    return list(found.json()["rows"])


def by_socket_as_text(server: Served) -> list[Any]:
    with server.following(view="v", integers="text") as talk:
        return [list(row) for row in talk.rows()]


def by_events_as_text(server: Served) -> list[Any]:
    with server.following(view="v", integers="text") as talk:
        server.tell(delete={"t": ROWS})
        return list(talk.change()["minus"])


WAYS = {
    "number": [by_call],
    "text": [by_call_as_text, by_question_as_text, by_socket_as_text, by_events_as_text],
}


@pytest.mark.parametrize(
    ("way", "integers"), [(way, integers) for integers, ways in WAYS.items() for way in ways], ids=lambda one: getattr(one, "__name__", one)
)
def test_rows_go_round(filled: Served, way: Callable[[Served], list[Any]], integers: str) -> None:
    rows = way(filled)
    assert [type(row[0]) for row in rows] == [{"number": int, "text": str}[integers]] * len(ROWS)

    def tell(**wish: Any) -> int:
        found = filled.call("POST", f"/v1/transactions?integers={integers}", json=wish)
        assert found.status_code == 200, found.text
        return int(found.json()["tx"])

    tell(upsert={"t": rows})
    assert sorted(by_call(filled)) == sorted(ROWS), "nothing has changed"
    tell(delete={"t": rows})
    assert by_call(filled) == []
    tell(insert={"t": rows})
    assert sorted(by_call(filled)) == sorted(ROWS)
    changed = [*rows[0][:-1], "other"]
    tell(update={"t": [{"old": rows[0], "new": changed}]})
    tell(delete_key={"t": [row[:1] for row in rows[1:]]})
    tell(update={"t": [{"old": changed, "new": rows[0]}]})
    tell(insert={"t": rows[1:]})
    assert sorted(by_call(filled)) == sorted(ROWS)


def test_a_slice_goes_round(filled: Served) -> None:
    """A value of a row binds the column that it is of, as a number or, where integers are text, as text."""
    for integers, value in (("number", ROWS[2][0]), ("text", str(ROWS[2][0])), ("text", ROWS[2][0])):
        with filled.following(view="v", bind={"n": value}, integers=integers) as talk:
            assert len(talk.rows()) == 1
    with filled.socket() as talk:
        talk.say(subscribe={"view": "v", "bind": {"n": str(ROWS[2][0])}})
        said = talk.hear("error")["error"]
        assert said["code"] == "type" and '"9007199254740993" is not a number' in said["message"]


@pytest.mark.parametrize("bad", ["5x", "", " 5", "+5", "5.0", "0x5", "\u0665", str(2**63), True, 5.0, None])
def test_what_is_no_integer_is_refused_as_text_too(filled: Served, bad: Any) -> None:
    row = [bad, *ROWS[0][1:]]
    found = filled.call("POST", "/v1/transactions?integers=text", json={"insert": {"t": [row]}})
    assert found.status_code == 400 and found.json()["error"]["code"] == "value"
    assert f"{json.dumps(bad, ensure_ascii=False)} is not a number" in found.json()["error"]["message"]


def test_a_text_is_no_number_where_nobody_said_so(filled: Served) -> None:
    found = filled.call("POST", "/v1/transactions", json={"insert": {"t": [["5", *ROWS[0][1:]]]}})
    assert found.json()["error"]["message"] == 'row 1 of t: "5" is not a number: it must be an integer from -2^63 to 2^63-1'


@pytest.mark.parametrize(
    ("told", "taken"), [(1.25, "1.25"), (7, "7.00"), (1e3, "1000.00"), (0.1, "0.10"), (-0.5, "-0.50"), ("3.1", "3.10")]
)
def test_a_decimal_may_be_told_as_a_number(filled: Served, told: Any, taken: str) -> None:
    filled.tell(upsert={"t": [[*ROWS[0][:6], told, ROWS[0][7]]]})
    assert filled.get("/v1/views/v?bind.n=9223372036854775807")["rows"][0][6] == taken


@pytest.mark.parametrize("told", [1.255, 12345678901234567.89, 1e-9, 1e17, 0.1 + 0.2])
def test_a_number_that_may_have_lost_something_must_be_text(filled: Served, told: float) -> None:
    found = filled.call("POST", "/v1/transactions", json={"upsert": {"t": [[*ROWS[0][:6], told, ROWS[0][7]]]}})
    assert found.status_code == 400 and 'it must be text like "1.25"' in found.json()["error"]["message"], found.text


def test_the_python_client(filled: Served) -> None:
    with connect(filled.url) as client, client.enroll("v") as view:
        rows = client.view("v")
        assert rows[1][6] == Decimal("0.00") and {type(row[0]) for row in rows} == {int}
        assert client.tell(upsert={"t": rows}).views == {}
        view.wait_for(client.tell(delete={"t": rows}).tx)
        assert not view
        view.wait_for(client.tell(insert={"t": rows}).tx)
        assert set(view) == set(rows)


NAMES = ("n", "u", "f", "b", "d", "m", "a", "s")


@pytest.mark.parametrize("integers", ["number", "text"])
def test_rows_by_name_go_round(filled: Served, integers: str) -> None:
    """As objects, now and as of a transaction, by view and by goal; what came so can be told so."""
    tx = filled.tell(upsert={"t": ROWS[:1]})
    goal = {"goal": "v(n, u, f, b, d, m, a, s)"}
    form = f"rows=objects&integers={integers}"
    found = filled.get(f"/v1/views/v?{form}")["rows"]
    assert found == filled.call("POST", f"/v1/ask?{form}", json=goal).json()["rows"]
    plain = filled.get(f"/v1/views/v?integers={integers}")["rows"]
    assert [list(row) for row in found] == [list(NAMES)] * 3 and [list(row.values()) for row in found] == plain
    for way in ("delete", "insert"):
        answer = filled.call("POST", f"/v1/transactions?integers={integers}", json={way: {"t": found}})
        assert answer.json()["views"]["v"] == {"plus": 0 if way == "delete" else 3, "minus": 3 if way == "delete" else 0}
    keys = [{"n": row["n"]} for row in found]
    assert filled.call("POST", f"/v1/transactions?integers={integers}", json={"delete_key": {"t": keys}}).json()["views"]["v"]["minus"] == 3
    assert filled.get(f"/v1/views/v?{form}&at={tx}")["rows"] == found
    pair = {"old": found[0], "new": found[0] | {"s": "new"}}
    assert filled.call("POST", f"/v1/transactions?integers={integers}", json={"insert": {"t": found}}).status_code == 200
    assert filled.call("POST", f"/v1/transactions?integers={integers}", json={"update": {"t": [pair]}}).status_code == 200
    assert filled.get(f"/v1/views/v?bind.n={found[0]['n']}&rows=objects")["rows"][0]["s"] == "new"


@pytest.mark.parametrize("integers", ["number", "text"])
def test_a_dry_run_tells_rows_by_name(filled: Served, integers: str) -> None:
    """Views, rows that replace each other, and what subscriptions would be sent: the same as arrays have, with names."""
    wish: dict[str, Any] = {"update": {"t": [{"old": ROWS[0], "new": [*ROWS[0][:-1], "new"]}]}}
    form = f"dry_run=true&integers={integers}"
    with connect(filled.url) as client, client.enroll("v", bind={"n": 2**63 - 1}):
        plain, named = (filled.call("POST", f"/v1/transactions?{form}&rows={rows}", json=wish).json() for rows in ("arrays", "objects"))

    def by_name(sides: dict[str, Any]) -> dict[str, Any]:
        pairs = [{side: dict(zip(NAMES, row, strict=True)) for side, row in pair.items()} for pair in sides.get("modified", ())]
        rows = {side: [dict(zip(NAMES, row, strict=True)) for row in sides[side]] for side in ("plus", "minus")}
        return rows | ({"modified": pairs} if pairs else {})

    assert named["views"] == {"v": by_name(plain["views"]["v"])} and named["views"]["v"]["modified"][0]["new"]["s"] == "new"
    assert [one["views"] for one in named["subscriptions"]] == [{"v": by_name(one["views"]["v"])} for one in plain["subscriptions"]]
    assert len(named["subscriptions"]) == 1


@pytest.mark.parametrize("integers", ["number", "text"])
@pytest.mark.parametrize("large", [10_000, 2])
def test_a_subscription_tells_rows_by_name(serve: Serve, integers: str, large: int) -> None:
    """First answers, changes, rows that replace each other, what is fetched, server-sent events: the same as arrays have, with names."""
    server = serve(f"--limit=large={large}", program=PROGRAM)
    server.tell(insert={"t": ROWS[:2]})

    def by_name(rows: Any) -> Any:
        return [dict(zip(NAMES, row, strict=True)) for row in rows]

    with server.socket() as plain, server.socket() as named, server.socket() as fetching:
        first: dict[str, Any] = {}
        for talk, rows in ((plain, "arrays"), (named, "objects")):
            talk.say(subscribe={"view": "v", "rows": rows, "integers": integers})
            talk.hear("subscribed")
            first[rows] = talk.hear("snapshot")["snapshot"]
        assert first["objects"] == first["arrays"] | {"rows": by_name(first["arrays"]["rows"])}
        fetching.say(subscribe={"view": "v", "rows": "objects", "integers": integers, "snapshot": "fetch"})
        fetching.hear("subscribed")
        assert server.get(fetching.hear("snapshot")["snapshot"]["fetch"])["rows"] == first["objects"]["rows"]
        server.tell(upsert={"t": [[*ROWS[0][:-1], "new"], [*ROWS[1][:-1], "new"]]}, insert={"t": ROWS[2:]})
        told = {"arrays": plain.hear("change")["change"], "objects": named.hear("change")["change"]}
        for side in ("plus", "minus"):
            if large == 2:
                told = {form: said | {side: server.get(said[side]["fetch"])[side]} for form, said in told.items()}
            assert told["objects"][side] == by_name(told["arrays"][side]) and len(told["objects"][side]) > 1
        pairs = [{name: by_name([row])[0] for name, row in pair.items()} for pair in told["arrays"].get("modified", ())]
        assert told["objects"].get("modified", []) == pairs and len(pairs) == (2 if large > 2 else 0)
    with httpx.stream("GET", f"{server.url}/v1/changes?view=v&rows=objects&integers={integers}&bind.s=new", timeout=60) as events:
        data = [line for line in islice(events.iter_lines(), 6) if line.startswith("data:")]
    assert [row["s"] for row in json.loads(data[1].removeprefix("data:"))["rows"]] == ["new", "new"]
    assert server.call("GET", "/v1/changes?view=v&rows=tables").status_code == 400


def test_python_follows_rows_with_names(filled: Served) -> None:
    """A change, a first answer (as JSON and as Arrow) and a kept copy; equal to plain rows all the same."""
    with connect(filled.url) as client:
        for fetch in (False, True):
            client.tell(upsert={"t": ROWS})
            with client.subscribe("v", named=True, fetch=fetch) as changes:
                first = next(changes)
                assert isinstance(first, Snapshot) and {row.s for row in first.rows} == {row[-1] for row in ROWS}  # type: ignore[attr-defined]  # named
                assert first.rows == set(client.view("v"))
                with client.enroll("v", named=True, fetch=fetch) as view, client.enroll("v") as plain:
                    tx = client.tell(upsert={"t": [[*ROWS[0][:-1], f"new {fetch}"]]}).tx
                    change = next(changes)
                    assert isinstance(change, Change) and [row.s for row in change.plus] == [f"new {fetch}"]  # type: ignore[attr-defined]  # named
                    assert [new.s for _, new in change.modified["v"]] == [f"new {fetch}"]  # type: ignore[attr-defined]  # named
                    assert view.wait_for(tx) and plain.wait_for(tx) and set(view) == set(plain)
                    assert {type(row).__name__ for row in view} == {"v"} and {type(row) for row in plain} == {tuple}


def test_asynchronous_python_follows_rows_with_names(filled: Served) -> None:
    async def follow() -> set[str]:
        async with aconnect(filled.url) as client, client.subscribe("v", named=True) as changes:
            view = await client.enroll("v", named=True)
            async for event in changes:
                assert isinstance(event, Snapshot) and event.rows == set(view)
                return {row.s for row in event.rows} & {row.s for row in view}  # type: ignore[attr-defined]  # named
        raise AssertionError("a first answer comes")

    assert asyncio.run(follow()) == {row[-1] for row in ROWS}


def test_names_that_do_not_fit(filled: Served) -> None:
    refused = filled.call("POST", "/v1/transactions", json={"insert": {"t": [{"n": 1, "uu": 2}]}})
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "column"
    assert "there is no column uu" in refused.json()["error"]["message"] and "n, u, f, b" in refused.json()["error"]["message"]
    assert filled.call("GET", "/v1/views/v?rows=tables").status_code == 400


@dataclass
class T:
    s: str
    n: int
    u: int
    f: float
    b: bool
    d: datetime.date
    m: datetime.datetime
    a: Decimal


def test_python_tells_objects_and_is_answered_with_names(filled: Served) -> None:
    moment = datetime.datetime(2026, 11, 16, 8, tzinfo=datetime.UTC)
    with connect(filled.url) as client:
        client.tell(insert={"t": [T("of a class", 1, 2, 0.5, True, moment.date(), moment, Decimal("1.25"))]})
        row: Any = client.view("v", {"n": 1}, named=True)[0]
        assert (row.n, row.s, row.a, row.d) == (1, "of a class", Decimal("1.25"), moment.date())
        answer: Any = client.ask("v(1, u, _, _, _, _, _, s), u < 3", named=True)[0]
        assert answer._asdict() == {"u": 2, "s": "of a class"}
        client.tell(delete={"t": [row]})
        assert not client.view("v", {"n": 1})
