"""Views on Spark whose proofs are counted: what is told, and the numbers that are kept."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest

from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError
from vigilog.engine import database as engine
from vigilog.executors.spark import stored
from vigilog.executors.spark.views import SparkViews
from vigilog.folder.opening import open_program
from vigilog.language.check import check
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.maintenance.strategies import COUNTED
from vigilog.rewriting.passes import rewrite

PROGRAM = """
.decl e, f(x: number, y: number)
.decl p, q(x: number)
.output q
p(x) :- e(x, y), y > 0.
p(y + 1) :- f(_, y).
q(x) :- p(x), !f(x, _).
"""
BASE: dict[str, set[tuple[Any, ...]]] = {"e": {(1, 1), (1, 2), (3, 1)}, "f": {(1, 2), (7, 2)}}


def delta(plus: Iterable[tuple[int, ...]] = (), minus: Iterable[tuple[int, ...]] = ()) -> Delta:
    return Delta(frozenset(plus), frozenset(minus))


class Watched:
    """A counted `p` below a `q` that is not stored, beside the rows that the reference derives."""

    def __init__(self, budget: int | None = None) -> None:
        self.recomputed = ""  # why the last change was answered by recomputing, if it was
        self.base = {name: set(rows) for name, rows in BASE.items()}
        program = rewrite(check(PROGRAM).program)
        self.views = SparkViews(plan(program, ["q"], {"p": COUNTED}), self.base, budget=budget)

    def close(self) -> None:
        self.views.close()

    def expected(self) -> dict[str, set[tuple[Any, ...]]]:
        return reference.evaluate(self.views.rules.program, self.base)

    def check(self) -> None:
        """What is stored is what the rules give."""
        expected = self.expected()
        assert {name: self.views.rows(name) for name in self.views.stored} == {name: expected[name] for name in self.views.stored}

    def apply(self, changes: dict[str, Delta]) -> Delta | None:
        before = self.expected()
        for name, change in changes.items():
            self.base[name] = change.apply(self.base[name])
        found = self.views.apply(changes)
        self.recomputed = self.views.stats.recomputed
        assert found.get("q", Delta()) == between(before["q"], self.expected()["q"])
        self.check()
        return found.get("q")


@pytest.mark.parametrize("local", [stored.LOCAL_ROWS, 0], ids=["here", "there"])
def test_a_row_goes_with_its_last_proof(local: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LOCAL_ROWS", local)
    with closing(Watched()) as watched:
        assert watched.views.stored == {"p", "p_proofs"}
        assert watched.views.rows("p_proofs") == {(1, 2), (3, 2)}, "two bindings of one rule; one of each"
        assert watched.apply({"e": delta(minus={(3, 1)})}) is None
        assert watched.apply({"f": delta(minus={(7, 2)})}) is None
        assert watched.views.rows("p_proofs") == {(1, 2), (3, 1)}
        assert watched.apply({"f": delta(minus={(1, 2)})}) == delta(plus={(1,)}, minus={(3,)})
        assert watched.apply({"e": delta(plus={(1, 3), (4, 4)}, minus={(1, 1)})}) == delta(plus={(4,)})
        assert watched.views.rows("p_proofs") == {(1, 2), (4, 1)}
        assert not watched.recomputed


def test_what_is_not_kept_leaves_the_numbers_on_spark() -> None:
    def refused(_: object) -> None:
        raise DataError("no", "refused")

    with closing(Watched()) as watched:
        change = {"e": delta(plus={(9, 9)}, minus={(1, 1), (1, 2)})}
        assert watched.views.apply(change, keep=False)["q"] == delta(plus={(9,)})
        watched.check()
        with pytest.raises(DataError):
            watched.views.apply(change, refused)
        watched.check()
        assert watched.apply(change) == delta(plus={(9,)})


def test_numbers_on_spark_after_recomputing() -> None:
    with closing(Watched(budget=1)) as watched:
        assert watched.apply({"f": delta(minus={(7, 2), (1, 2)})}) == delta(plus={(1,)})
        assert watched.recomputed
        watched.views.budget = None
        assert watched.apply({"e": delta(minus={(3, 1)})}) == delta(minus={(3,)})
        assert not watched.recomputed


def test_auto_counts_on_spark_what_costs_too_much_on_demand() -> None:
    """Of a row with many proofs, all are derived to see whether it has one; with their number at hand, none."""
    program = ".decl p, s(x: number, y: number)\n.decl r(x: number)\n.output r\nr(x) :- s(x, y).\ns(x, y) :- p(x, y), y != 3.\ns(x, y) :- p(x, y), y > 90.\n"
    rows = {"p": [(x, y) for x in range(2) for y in range(30)]}
    with open_program(program, rows, engine="spark", budget=20) as database:
        for number in range(engine.MOST_OVERRUNS):
            assert database.strategies["r"].name == "external"
            assert database.apply({"delete": {"p": [[0, number]]}}) == {}
            assert database.stats.recomputed
        assert database.strategies["r"].name == "counted"
        assert database.strategies["r"].reason.startswith("deriving it on demand went over its budget 3 times")
        assert database.apply({"delete": {"p": [[0, 4]]}}) == {}
        assert not database.stats.recomputed
        gone = [[0, y] for y in range(30)]
        assert database.what_if(delete={"p": gone}) == {"r": delta(minus={(0,)})}
        assert database.view("r") == {(0,), (1,)}


def test_the_state_of_groups_of_what_is_counted() -> None:
    """The bindings of the group need what the counted relation gains and loses, for which its numbers are read."""
    base: dict[str, set[tuple[Any, ...]]] = {"t": {(1, 2), (2, 2), (2, 1), (5, 0)}}
    rules = ".decl t(x: number, y: number)\n.decl each(x: number)\n.decl total(n: number)\n.output each\n.output total\n"
    rules += "each(x) :- t(x, y), y > 1.\neach(x) :- t(y, x), y > 1.\ntotal(n) :- n = sum z : { each(z) }.\n"
    program = rewrite(check(rules).program)
    with closing(SparkViews(plan(program, ["each", "total"], {"each": COUNTED}, {"total": True}), base)) as views:
        assert views.rows("total") == {(3,)}
        assert views.apply({"t": delta({(7, 7)}, {(2, 2)})}) == {"each": delta({(7,)}, {(2,)}), "total": delta({(8,)}, {(3,)})}
        assert views.apply({"t": delta(minus={(1, 2)})}) == {}, "1 has another proof"
        assert views.apply({"t": delta(minus={(2, 1)})}) == {"each": delta(minus={(1,)}), "total": delta({(7,)}, {(8,)})}


def test_auto_does_not_store_on_spark_what_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_STORED", 1)
    pairs = ".decl p(x: number)\n.decl r(x: number, y: number)\n.output r\nr(x, y) :- p(x), p(y).\n"
    with open_program(pairs, {"p": [(x,) for x in range(5)]}, engine="spark", budget=0) as database:
        for number in range(5, 5 + engine.MOST_OVERRUNS + 1):
            assert len(database.apply({"insert": {"p": [[number]]}})["r"].plus) == 2 * number + 1
        assert database.strategies["r"].name == "external"
        assert database.strategies["r"].reason.endswith("but r has more than 8 rows")
        assert len(database.view("r")) == 81


def test_counted_views_are_asked() -> None:
    with open_program(PROGRAM, BASE, engine="spark", strategy="counted") as db:
        assert db.strategies["q"].name == "counted"
        assert db.ask("q(x), p(x)") == [(3,)]
        assert db.why("p(3)") is not None
