"""What is kept of groups: it follows every change, costs a look-up for each row, and needs nothing else to be read."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.treatments import examples
from vigilog.core.delta import Delta, between
from vigilog.core.values import DATE, FLOAT, NUMBER, SYMBOL, UNSIGNED, Type, decimal_type
from vigilog.engine.database import Database
from vigilog.executors.embedded.tables import FEW
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.folder.opening import open_program
from vigilog.folder.verify import verify
from vigilog.language import functors
from vigilog.language.check import check
from vigilog.language.library import give
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.groups import grouping

READINGS = """
.decl reading(i: number, g: symbol, v: {type})
.input reading
.decl summary(g: symbol, {columns})
.output summary
summary(g, {variables}) :- reading(_, g, _), {aggregates}.
"""
NUMERIC = [NUMBER, UNSIGNED, FLOAT, decimal_type(6, 2)]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    "unsigned": st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0),
    "decimal": st.integers(-999_999, 999_999).map(lambda units: Decimal(units).scaleb(-2)),
    "symbol": st.text("ab", max_size=2),
    "date": st.dates(),
}


def summarized(type_: Type, ops: list[str]) -> Program:
    """The program that gives some aggregates of each group."""
    result = {"count": NUMBER, "mean": FLOAT}
    return check(
        READINGS.format(
            type=type_,
            columns=", ".join(f"a{place}: {result.get(op, type_)}" for place, op in enumerate(ops)),
            variables=", ".join(f"a{place}" for place in range(len(ops))),
            aggregates=", ".join(
                f"a{place} = {op}{'' if op == 'count' else ' v'} : {{ reading(_, g, {'_' if op == 'count' else 'v'}) }}"
                for place, op in enumerate(ops)
            ),
        )
    ).program


@examples(40)
@given(st.data())
def test_every_aggregate_follows_every_change(data: st.DataObject) -> None:
    """Values of all sizes come and go: an overflow comes back, a float is rounded once. Groups change one by one, or all together."""
    type_ = data.draw(st.sampled_from([*NUMERIC, SYMBOL, DATE]))
    ops = ["count", "min", "max", *(["sum", "mean"] if type_.numeric else [])]
    chosen = data.draw(st.lists(st.sampled_from(ops), min_size=1, max_size=3, unique=True))
    rows = st.tuples(st.integers(0, 6), st.sampled_from("xy"), VALUES[type_.kind])
    held = set(data.draw(st.lists(rows, max_size=5)))
    result = {"count": NUMBER, "mean": FLOAT}

    def expected() -> set[tuple[Any, ...]]:
        found = set()
        for group in {g for _, g, _ in held}:
            values = [v for _, g, v in held if g == group]
            row = [functors.aggregate(op, result.get(op, type_), values) for op in chosen]
            found |= {(group, *row)} if None not in row else set()
        return found

    strategy, few = data.draw(st.sampled_from(["auto", "auxiliary"])), data.draw(st.sampled_from([0, FEW]))
    with patch("vigilog.executors.embedded.grouped.FEW", few), Database(summarized(type_, chosen), {"reading": held}, strategy) as database:
        view = expected()
        for gone, came in data.draw(st.lists(st.tuples(st.lists(rows, max_size=3), st.lists(rows, max_size=3)), max_size=6)):
            leaving = [*gone, *data.draw(st.lists(st.sampled_from(sorted(held)), max_size=3))] if held else gone
            deltas = database.apply({"delete": {"reading": leaving}, "insert": {"reading": came}})
            held = (held - set(leaving)) | set(came)
            if "summary" in deltas:
                view = (view - deltas["summary"].minus) | deltas["summary"].plus
            assert view == expected() == database.view("summary")


@examples(40)
@given(st.data())
def test_the_variance_of_a_set_follows_every_change(data: st.DataObject) -> None:
    """By its exact sum and that of the squares, whatever the size of the values; a single group, and several."""
    type_ = data.draw(st.sampled_from(NUMERIC))
    program = check(f"""
        .decl reading(i: number, g: symbol, v: {type_}) .input reading
        .decl each(g: symbol, r: float) .output each
        each(g, r) :- setof((i, v), reading(i, g, v), s), variance(s, r, 2).
        .decl among(v: {type_}) among(v) :- reading(_, _, v).
        .decl all_(r: float) .output all_
        all_(r) :- setof(v, among(v), s), variance(s, r).""").program
    rows = st.tuples(st.integers(0, 6), st.sampled_from("xy"), VALUES[type_.kind])
    held = set(data.draw(st.lists(rows, max_size=5)))
    strategy, few = data.draw(st.sampled_from(["auto", "auxiliary"])), data.draw(st.sampled_from([0, FEW]))
    with patch("vigilog.executors.embedded.grouped.FEW", few), Database(program, {"reading": held}, strategy) as database:
        for gone, came in data.draw(st.lists(st.tuples(st.lists(rows, max_size=3), st.lists(rows, max_size=3)), max_size=6)):
            leaving = [*gone, *data.draw(st.lists(st.sampled_from(sorted(held)), max_size=3))] if held else gone
            before = database.view("each")
            deltas = database.apply({"delete": {"reading": leaving}, "insert": {"reading": came}})
            assert deltas.get("each", Delta()) == between(before, database.view("each"))
            held = (held - set(leaving)) | set(came)
            groups = {g: [v for _, of, v in held if of == g] for g in "xy"}
            found = {(g, give("variance", FLOAT, values)) for g, values in groups.items()}
            assert database.view("each") == {row for row in found if row[1] is not None}
            assert database.view("all_") == {(r,) for r in [give("variance", FLOAT, list({v for _, _, v in held}))] if r is not None}


def test_a_relation_whose_rows_are_kept_is_never_read() -> None:
    """Section 5 of the paper: neither for the view, nor to see what a transaction really changes. Only the row that is deleted is looked for, in order to delete it."""
    program = summarized(NUMBER, ["count", "sum", "min", "max"])
    with Database(program, {"reading": [(i, "ab"[i % 2], i) for i in range(50)]}, "auxiliary") as database:
        assert isinstance(database.views, EmbeddedViews)
        deleting = False
        read = []

        def authorize(action: int, one: str | None, two: str | None, *_: str | None) -> int:
            nonlocal deleting
            if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE):
                deleting = action == sqlite3.SQLITE_DELETE and one == "reading"
            if action == sqlite3.SQLITE_READ and one == "reading" and not deleting:
                read.append(two)
                return sqlite3.SQLITE_DENY
            return sqlite3.SQLITE_OK

        database.views.tables.connection.set_authorizer(authorize)
        with pytest.raises(sqlite3.DatabaseError):
            database.views.tables.connection.execute('SELECT v FROM "reading"')
        read.clear()
        gone = database.apply({"delete": {"reading": [(49, "b", 49), (7, "b", 8)]}, "insert": {"reading": [(1, "b", 1)]}})
        assert gone["summary"].plus == {("b", 24, 625 - 49, 1, 47)} and gone["summary"].minus == {("b", 25, 625, 1, 49)}
        assert database.apply({"insert": {"reading": [(1, "b", 1)]}, "delete": {"reading": [(1, "b", 1)]}}) == {}
        many = [(100 + i, "c", i) for i in range(30)]
        assert database.apply({"insert": {"reading": many}})["summary"].plus == {("c", 30, 435, 0, 29)}
        assert read == []
        database.views.tables.connection.set_authorizer(None)


def steps(strategy: str, rows: int) -> int:
    """How many steps SQLite takes to follow the greatest row of a single group that leaves, and comes back."""
    program = summarized(NUMBER, ["count", "sum", "max"])
    with Database(program, {"reading": [(i, "a", i) for i in range(rows)]}, strategy) as database:
        assert isinstance(database.views, EmbeddedViews)
        taken = 0

        def step() -> int:
            nonlocal taken
            taken += 1
            return 0

        last = [(rows - 1, "a", rows - 1)]
        database.apply({"delete": {"reading": last}})
        database.apply({"insert": {"reading": last}})
        database.views.tables.connection.set_progress_handler(step, 1)
        database.apply({"delete": {"reading": last}})
        database.apply({"insert": {"reading": last}})
        return taken


@pytest.mark.parametrize("strategy", ["auto", "auxiliary"])
def test_a_row_costs_no_more_in_a_larger_group(strategy: str) -> None:
    assert steps(strategy, 10_000) < 1.2 * steps(strategy, 100)


def test_nothing_above_runs_where_no_value_changed() -> None:
    """Section 6 of the paper: a sum that was past its bound stays past it."""
    text = """
    .decl r(a: symbol, b: unsigned)
    .input r
    .decl big(a: symbol)
    big(a) :- r(a, _), s = sum b : { r(a, b) }, s > 10.
    .decl bigger(a: symbol, c: symbol)
    .output bigger
    bigger(a, c) :- big(a), big(c), a != c.
    """
    with Database(check(text).program, {"r": [("x", 6), ("x", 7), ("y", 10)]}) as database:
        assert database.apply({"insert": {"r": [("x", 100)]}}) == {} and database.stats.derived == 0
        assert database.apply({"insert": {"r": [("y", 1)]}})["bigger"].plus == {("x", "y"), ("y", "x")}
        assert database.apply({"delete": {"r": [("x", 100)]}}) == {} and database.stats.derived == 0


def test_auto_keeps_state_and_rows_only_where_it_takes_them() -> None:
    text = """
    .decl order(o: number, c: symbol, a: number)
    .input order
    .decl customer(c: symbol, r: symbol)
    .input customer
    .decl total(c: symbol, s: number)
    .output total
    total(c, s) :- order(_, c, _), s = sum a : { order(_, c, a) }.
    .decl largest(c: symbol, m: number)
    .output largest
    largest(c, m) :- order(_, c, _), m = max a : { order(_, c, a) }.
    .decl best(r: symbol, m: number)
    .output best
    best(r, m) :- customer(_, r), m = max a : { order(_, c, a), customer(c, r) }.
    """
    with Database(check(text).program, {"order": [(1, "ann", 5)], "customer": [("ann", "n")]}) as database:
        assert {decision.name for decision in database.strategies.values()} == {"auxiliary"}
        assert [group.rows.relation for group in database.compiled.plan.groups if group.own] == ["best_rows"]
        assert "best_rows too" in database.strategies["best"].reason
        assert "looked up in order" in database.strategies["largest"].reason
        assert database.apply({"delete": {"customer": [("ann", "n")]}})["best"].minus == {("n", 5)}


def test_what_is_kept_is_reused_and_verified(tmp_path: Any) -> None:
    program = summarized(NUMBER, ["sum", "max"])
    with open_program(program, {"reading": [(1, "a", 2**63 - 1), (2, "a", 1)]}, data=tmp_path / "d", strategy="auxiliary") as database:
        assert database.view("summary") == set()
    with open_program(data=tmp_path / "d") as database:
        assert database.apply({"delete": {"reading": [(2, "a", 1)]}})["summary"].plus == {("a", 2**63 - 1, 2**63 - 1)}
        assert verify(database).fine and verify(database, "embedded").fine
        database.file.connection.execute("UPDATE r_summary_state SET s1 = '7'")
        assert [problem.split(":")[0] for problem in verify(database).problems] == ["stored summary_state"]
        database.file.connection.execute("UPDATE r_summary_state SET s1 = ?", (str(2**63 - 1),))
    with open_program(summarized(NUMBER, ["sum", "min"]), data=tmp_path / "d", define=True) as database:
        assert database.apply({"insert": {"reading": [(3, "a", -1)]}})["summary"].plus == {("a", 2**63 - 2, -1)}
        assert verify(database).fine


def test_groups_that_nothing_binds_are_read() -> None:
    """Where the groups are not said by what is aggregated, none can be kept."""
    text = """
    .decl e(y: number)
    .decl d(x: number)
    .decl p(x: number, n: number)
    p(x, n) :- d(x), n = count : { e(y), y < x }.
    """
    assert grouping(check(text).program, {"p": True}).groups == ()
