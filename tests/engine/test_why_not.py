"""Why a row is not there, as it is told: each rule up to its first literal that fails, in the order in which it is written."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden import GRAPH
from vigilog.core.errors import DataError
from vigilog.core.whynot import read_why_not
from vigilog.engine.database import Database
from vigilog.executors import whynot
from vigilog.folder.opening import open_program
from vigilog.language.check import check

EDGES = {"edge": [("a", "b"), ("b", "c"), ("d", "c")]}
SHOP = """
.decl orders(id: number, customer: symbol, amount: number)
.decl blocked(customer: symbol)
.decl spent(customer: symbol, total: number)
spent(k, t) :- orders(_, k, _), t = sum a : { orders(_, k, a) }.
.decl vip(customer: symbol)
.input vip
vip(k) :- spent(k, t), t > 1000.
.decl good(customer: symbol)
.output good
good(k) :- orders(_, k, _), !blocked(k), count : { orders(_, k, _) } >= 2, spent(k, t), t / 2 > 50.
good(k) :- vip(k), (orders(_, k, a), a > 10 ; blocked(k)).
good("zoe"), vip("zoe") :- blocked("zoe").
.decl least(customer: symbol, n: number)
least(c, n) :- blocked(c), n = min a : { orders(_, c, a), a > 1000 }.
.decl most(customer: symbol, n: number)
most(c, n) :- blocked(c), n = max value1 : { orders(_, c, value1) }.
.decl over(n: number)
over(n) :- n = sum a * 9223372036854775807 : { orders(_, _, a) }.
.decl next(x: number, y: number)
next(x + 1, y) :- orders(x, _, y), orders(x * 2, _, y - 1).
.decl ratio(x: number)
ratio(x) :- orders(x, _, y), 10 / (y - 30) > 3.
"""
ORDERS: dict[str, Any] = {
    "orders": [(1, "ann", 30), (2, "ann", 80), (3, "bob", 20), (4, "cyd", 500), (5, "eve", 5), (6, "eve", 6), (7, "eve", 60)],
    "blocked": [("cyd",), ("ann",)],
    "vip": [("eve",), ("fay",)],
}
TOLD = {
    'closure("c", "a")': """
closure("c", "a") does not hold
├─ closure(x, y) :- edge(x, y).   (program:6:1)
│  └─ edge("c", "a") is not there
└─ closure(x, y) :- edge(x, z), closure(z, y).   (program:7:1)
   └─ edge("c", z) has no row""",
    'closure("a", "d")': """
closure("a", "d") does not hold; near: closure("a", "b"), closure("a", "c")
├─ closure(x, y) :- edge(x, y).   (program:6:1)
│  └─ edge("a", "d") is not there; near: edge("a", "b")
└─ closure(x, y) :- edge(x, z), closure(z, y).   (program:7:1)
   └─ edge("a", "b"), but closure("b", "d") does not hold; near: closure("b", "c")
      ├─ closure(x, y) :- edge(x, y).   (program:6:1)
      │  └─ edge("b", "d") is not there; near: edge("b", "c")
      └─ closure(x, y) :- edge(x, z), closure(z, y).   (program:7:1)
         └─ edge("b", "c"), but closure("c", "d") does not hold""",
    "closure(x, x)": """
closure(x, x) does not hold
├─ closure(x, y) :- edge(x, y).   (program:6:1)
│  └─ edge(x, x) has no row
└─ closure(x, y) :- edge(x, z), closure(z, y).   (program:7:1)
   ├─ edge("a", "b"), but closure("b", "a") does not hold; near: closure("b", "c")
   ├─ edge("b", "c"), but closure("c", "b") does not hold; near: closure("a", "b")
   └─ edge("d", "c"), but closure("c", "d") does not hold""",
    'edge("a", "c")': 'edge("a", "c") is not there; near: edge("a", "b"), edge("b", "c"), edge("d", "c")',
}


@pytest.fixture(params=["external", "materialized"])
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def told(db: Database, goal: str, depth: int = 1) -> str:
    found = db.why_not(goal, depth)
    assert found is not None and db.why(goal) is None
    assert read_why_not(found.json()) == found, "what is told as JSON is the same"
    return found.text()


@pytest.mark.parametrize("goal", TOLD)
def test_a_closure(goal: str, strategy: str) -> None:
    with open_program("\n" + GRAPH, EDGES, strategy=strategy) as db:
        assert told(db, goal, 2 if goal.endswith('"d")') else 1) == TOLD[goal].strip()


def test_what_holds() -> None:
    with open_program(GRAPH, EDGES) as db:
        assert db.why_not('closure("a", "c")') is None and db.why_not('closure("a", y)') is None
        with pytest.raises(DataError, match="why takes one atom"):
            db.why_not('edge("a", x), edge(x, "a")')


@pytest.mark.parametrize(
    ("goal", "lines"),
    {
        'good("ann")': ['orders(_, "ann", _), but !blocked("ann") does not hold: there is blocked("ann")'],
        'good("bob")': ['orders(_, "bob", _), !blocked("bob"), 1 = count : { orders(_, "bob", _) }, but 1 >= 2 does not hold'],
        'good("xyz")': ['orders(_, "xyz", _) has no row', 'vip("xyz") is not stated, and no rule gives it', '"xyz" = "zoe" does not hold'],
        'good("fay")': ['vip("fay"), but orders(_, "fay", a) has no row', 'vip("fay"), but blocked("fay") is not there'],
        'good("zoe")': ['blocked("zoe") is not there'],
        'spent("ann", 111)': [
            'spent("ann", 111) does not hold; near: spent("ann", 110)',
            'orders(_, "ann", _), but 111 = sum a : { orders(_, "ann", a) } does not hold: it is 110',
        ],
        'least("cyd", 5)': [
            'blocked("cyd"), but 5 = min a : { orders(_, "cyd", a), a > 1000 } has no value: it ranges over nothing'
        ],
        'most("ann", 5)': ['blocked("ann"), but 5 = max value1 : { orders(_, "ann", value1) } does not hold: it is 80'],
        "over(1)": ["1 = sum a * 9223372036854775807 : { orders(_, _, a) } does not hold: it is 0"],
        "next(3, 80)": ["orders(2, _, 80), 3 = 2 + 1, 4 = 2 * 2, orders(4, _, 500), but 500 = 80 - 1 does not hold: it is 500 = 79"],
        "next(9, 81)": ['orders(x, _, 81) has no row'],
        "next(9, 80)": ["orders(2, _, 80), but 9 = 2 + 1 does not hold: it is 9 = 3"],
        "ratio(1)": ["orders(1, _, 30), but 10 / (30 - 30) > 3 does not hold: 10 / (30 - 30) has no value"],
        "ratio(2)": ["orders(2, _, 80), but 10 / (80 - 30) > 3 does not hold: it is 0 > 3"],
        'vip("bob")': ['vip("bob") is not stated, and no rule gives it', 'spent("bob", 20), but 20 > 1000 does not hold'],
        'orders(9, cat("a", "nn"), 30)': ['orders(9, "ann", 30) is not there; near: orders(1, "ann", 30)'],
        "orders(x, y, x + 1)": ["orders(x, y, x + 1) has no row"],
    }.items(),
)  # fmt: skip
def test_negation_aggregates_and_functors(goal: str, lines: list[str], strategy: str) -> None:
    with open_program(SHOP, ORDERS, strategy=strategy) as db:
        found = [line.lstrip("├─└│ ") for line in told(db, goal).splitlines()]
        assert [line for line in lines if line not in found] == []


def test_what_was_said_is_not_said_again() -> None:
    with open_program(GRAPH, {"edge": [("a", "b"), ("b", "a")]}) as db:
        text = told(db, 'closure("a", "z")', 5)
        assert text.count('edge("a", "z") is not there') == 1 and text.endswith(
            'closure("a", "z") does not hold (see above); near: closure("a", "a"), closure("a", "b")'
        ), text


def test_many_ways_and_many_rules() -> None:
    text = ".decl e(x: number, y: number) .decl p(x: number) .output p p(x) :- e(x, y), e(y, _)."
    with open_program(
        check(text + "".join(f" p(x) :- e(x, {n})." for n in range(100, 160))).program, {"e": [(1, n) for n in range(2, 12)]}
    ) as db:
        found = db.why_not("p(1)")
        assert found is not None and found.note == "does not hold (11 rules of it not looked at)" and len(found.rules) == 50
        assert [(*way.holds, way.fails.literal) for way in found.rules[0].ways] == [(f"e(1, {n})", f"e({n}, _)") for n in (2, 3, 4)]
        assert found.rules[0].more == 7 and "└─ … and 7 more ways" in found.text()


def test_what_is_too_much_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whynot, "MOST_DERIVED", 10)
    text = ".decl e(x: number, y: number) .decl p(x: number) .output p p(x) :- e(x, y), e(_, z), y = z + 1000."
    with open_program(check(text).program, {"e": [(1, n) for n in range(20)]}, strategy="external") as db:
        found = db.why_not("p(1)")
        assert (
            found is not None
            and found.rules[0].note.startswith("there is too much to look at; bind more columns")
            and not found.rules[0].ways
        )
        assert db.why_not("p(2)") is not None
    monkeypatch.setattr(whynot, "MOST_DERIVED", 10_000)
    monkeypatch.setattr(whynot, "MOST_QUESTIONS", 3)
    with open_program(GRAPH, EDGES) as db:
        assert told(db, 'closure("a", "z")', 8).endswith(
            "(program:6:1): not looked at, after so many others; ask for a literal of it alone"
        )
