"""Goals that are followed, beside all else that a database does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import GRAPH
from vigilog.core.errors import DataError
from vigilog.core.values import Row
from vigilog.executors.allowance import Allowance, TooDear
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

GOAL = 'edge(x, y), !edge(y, "c")'


def test_what_was_followed_is_no_change_of_the_program(tmp_path: Path) -> None:
    """The outbox has words of queries that nobody follows any more: they are left out, before and after a change of definitions."""
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        db.apply({"insert": {"edge": [("b", "c")]}})
        view = db.follow(GOAL).view
        db.apply({"insert": {"edge": [("c", "d")]}})
        assert {name for _, name, _ in db.changes(0)} == {"closure"}
        assert db.verify().problems == []
        db.unfollow(view)
        assert {name for _, name, _ in db.changes(0)} == {"closure"}
        db.follow(GOAL)
        db.apply({"insert": {"edge": [("d", "e")]}})
        db.define(".decl pair(x: symbol) .output pair pair(x) :- edge(x, _).")
        assert {name for _, name, _ in db.changes(0)} == {"closure", "pair"}
        assert db.verify().problems == []


def test_a_query_is_not_asked_for_by_another(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        view = db.follow(GOAL).view
        assert view not in db.outputs
        with pytest.raises(DataError, match="there is no relation"):
            db.reads(f"{view}(x, y)")


def test_queries_survive_a_restart_and_a_change_of_definitions(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        found = db.follow(GOAL)
    with open_program(data=tmp_path / "data") as db:
        assert db.follow(GOAL) == found, "the same view, since the same transaction"
        db.define(".decl pair(x: symbol) .output pair pair(x) :- edge(x, _).")
        assert db.follow(GOAL) == found
        db.drop("pair")
        assert db.verify().problems == []


def test_a_limit_concerns_new_queries_only(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        found = db.follow('edge("a", y), edge(y, z)', most=1)
        assert db.follow('edge("b", y), edge(y, z)', most=1).view == found.view, "it differs in a constant alone"
        assert db.follow('closure("a", y)', most=1).view == "closure"
        with pytest.raises(DataError, match="1 queries are followed already"):
            db.follow(GOAL, most=1)


ACCOUNTS = """
.decl acct(a: number, b: number)
.decl linked(a: number, b: number)
.output linked
linked(a, b) :- acct(a, b).
linked(a, c) :- linked(a, b), acct(b, c).
.decl even(n: number)
.output even
even(n) :- acct(n, _), n % 2 = 0.
"""
DEAR, CHEAP = "acct(a, b), acct(c, d), acct(e, f)", "linked(a, b), !even(b)"


def odd(db: Durable) -> set[Row]:
    """What the cheap query gives, by what it asks for."""
    even = db.view("even")
    return {row for row in db.view("linked") if (row[1],) not in even}


@pytest.mark.parametrize(
    "allowance", [Allowance(rows=2000), Allowance(size=4 * 4096), Allowance(seconds=0.0)], ids=["rows", "bytes", "seconds"]
)
def test_a_query_that_costs_too_much_is_dropped_and_all_else_is_exact(tmp_path: Path, allowance: Allowance) -> None:
    with open_program(ACCOUNTS, {"acct": [(n, n + 1) for n in range(8)]}, data=tmp_path / "data") as db:
        told: list[TooDear] = []
        db.queries.listeners.append(told.append)
        dear, cheap = db.follow(DEAR).view, db.follow(CHEAP).view
        rows = db.view(cheap)
        db.queries.allowance = allowance
        many = [(n, n + 1) for n in range(20, 60)]
        would = db.what_if(insert={"acct": many})
        assert dear not in would and would["even"].plus == {(n,) for n, _ in many if n % 2 == 0} and not told, (
            "one that is not kept drops nothing"
        )
        deltas = db.apply({"insert": {"acct": many}})
        assert {dear} <= {name for reason in told for name in reason.queries} and told[0].code == "budget"
        assert dear not in db.program.relations and db.queries.known.keys() == db.queries.names
        if cheap in db.queries.names:
            assert deltas[cheap].apply(rows) == db.view(cheap) == odd(db)
        assert would["linked"] == deltas["linked"] and db.verify().problems == []
        assert db.ask("even(n)", at=0) == [(n,) for n in range(0, 8, 2)], "nobody is told of a look at the past"
    with open_program(data=tmp_path / "data") as db:
        assert dear not in db.queries.known and db.verify().problems == []


def test_a_dear_query_of_before_is_dropped_by_the_next_transaction(tmp_path: Path) -> None:
    with open_program(ACCOUNTS, {"acct": [(n, n + 1) for n in range(60)]}, data=tmp_path / "data") as db:
        dear = db.follow(DEAR).view
    with open_program(data=tmp_path / "data") as db:
        db.queries.allowance = Allowance(rows=5000)
        assert dear in db.queries.names
        assert db.apply({"delete": {"acct": [(0, 1)]}}).keys() == {"linked", "even"} and not db.queries.names


def test_all_queries_together_have_an_allowance(tmp_path: Path) -> None:
    with open_program(ACCOUNTS, {"acct": [(n, n + 1) for n in range(10)]}, data=tmp_path / "data") as db:
        for number in range(8):
            db.follow(f"acct(a, b), acct(c, d), a + c > {number}")
        db.queries.allowance = Allowance(rows=30)
        db.apply({"insert": {"acct": [(100, 100)]}})
        assert 0 < len(db.queries.names) < 8 and db.verify().problems == []


def test_a_query_that_was_only_tried_is_unknown_after_a_restart(tmp_path: Path) -> None:
    with open_program(ACCOUNTS, {"acct": [(1, 2)]}, data=tmp_path / "data") as db:
        tried, settled = db.follow(DEAR, tried=True).view, db.follow(CHEAP, tried=True).view
        assert db.apply({"insert": {"acct": [(2, 3)]}}).keys() >= {tried, settled}
        db.settle(settled)
    with open_program(data=tmp_path / "data") as db:
        assert db.queries.known.keys() == {settled}


def test_a_definition_may_make_a_query_too_dear(tmp_path: Path) -> None:
    with open_program(ACCOUNTS, {"acct": [(n, n + 1) for n in range(60)]}, data=tmp_path / "data") as db:
        view, cheap = db.follow("even(n), even(m)").view, db.follow("even(n), n > 3").view
        db.queries.allowance = Allowance(rows=1200)
        changes = db.define("even(n) :- acct(n, _).")
        assert db.queries.names == {cheap} and view not in changes
        assert changes[cheap].plus == {(n,) for n in range(4, 60) if n % 2} and db.verify().problems == []
