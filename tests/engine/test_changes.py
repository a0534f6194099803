"""Every golden change under every strategy, with one expected result; what it says is also what the reference finds by computing everything anew.

On Spark a run takes a part of the cases, each under one strategy, and the inner loop does so everywhere; which is another matter at another commit.

To write the expected rows of a new case: VIGILOG_ACCEPT=1 ./run test tests/engine/test_changes.py. Read them: are they right?
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.engine.proofs import Judge
from tests.golden import CHANGES, Case, cases
from tests.treatments import SIZE, taken, treated
from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.core.errors import VigilogError
from vigilog.core.values import row_text, sorted_rows
from vigilog.engine import database as engine
from vigilog.engine.database import Database
from vigilog.engine.places import inputs
from vigilog.engine.transaction import parse_transaction
from vigilog.engine.watch import alerts_json, watch
from vigilog.executors.embedded import bulk, tables
from vigilog.executors.spark import stored
from vigilog.files import reader
from vigilog.folder.opening import open_program
from vigilog.language.check import check
from vigilog.language.printer import show
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.strategies import STRATEGIES

CASES = cases(CHANGES)
WISHES = ["auto", *STRATEGIES]
WAYS = [*WISHES, "recomputed"]  # what a strategy finds when deriving is over its budget
ON_SPARK = treated(CASES, [f"{way} {place}" for way in WAYS for place in ("here", "there")], part=1 / 2)
Rows = dict[str, set[tuple[Any, ...]]]


class Naive:
    """A program and its facts; every transaction computes everything anew."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.base: Rows = {name: set(reader.rows(place)) for name, place in inputs(program, folder).items()}
        facts = [head for rule in program.rules if not rule.body for head in rule.heads]
        for name, rows in reference.evaluate(program.with_rules(tuple(r for r in program.rules if not r.body)), {}).items():
            self.base.setdefault(name, set()).update(rows)
        self.rules = program.with_rules(tuple(r for r in program.rules if r.body))
        assert {head.relation for head in facts} <= self.base.keys()

    def apply(self, transaction: dict[str, dict[str, Any]], triggered: Iterable[tuple[str, str, list[str]]] = ()) -> dict[str, Delta]:
        """Applies a transaction, and what triggers do, as the case says it."""
        before = reference.evaluate(self.rules, self.base)
        for name, rows in transaction.get("delete", {}).items():
            self.base.setdefault(name, set()).difference_update(self.values(name, rows))
        for name, pairs in transaction.get("update", {}).items():
            self.base[name] -= self.values(name, [pair["old"] for pair in pairs])
        for name, rows in (transaction.get("upsert", {}) | transaction.get("delete_key", {})).items():
            key = self.program.keys[name]
            wide = name in transaction.get("upsert", {})
            gone = {tuple(str(row[column if wide else place]) for place, column in enumerate(key)) for row in rows}
            self.base[name] = {row for row in self.base[name] if tuple(str(row[column]) for column in key) not in gone}
        for name, rows in (transaction.get("insert", {}) | transaction.get("upsert", {})).items():
            self.base.setdefault(name, set()).update(self.values(name, rows))
        for name, pairs in transaction.get("update", {}).items():
            self.base[name] |= self.values(name, [pair["new"] for pair in pairs])
        for sign, name, cells in triggered:
            row = tuple(type_.parse(cell) for type_, cell in zip(self.program.relations[name].types, cells, strict=True))
            self.base[name] = self.base.get(name, set()) | {row} if sign == "+" else self.base[name] - {row}
        after = reference.evaluate(self.rules, self.base)
        deltas = {name: between(before[name], after[name]) for name in self.program.outputs}
        return {name: delta for name, delta in deltas.items() if delta}

    def values(self, name: str, rows: list[list[Any]]) -> set[tuple[Any, ...]]:
        types = self.program.relations[name].types
        return {tuple(type_.from_json(cell) for type_, cell in zip(types, row, strict=True)) for row in rows}


def lines(program: Program, deltas: dict[str, Delta]) -> list[str]:
    """Changes as a case writes them: views in the program's order, what came before what went, rows sorted."""
    found = []
    for name in program.outputs:
        for sign, rows in (("+", deltas[name].plus), ("-", deltas[name].minus)) if name in deltas else ():
            types = program.relations[name].types
            found += ["\t".join([sign + name, *row_text(types, row)]) for row in sorted_rows(rows)]
    return found


def told_lines(
    program: Program,
    deltas: dict[str, Delta],
    alerts: list[dict[str, Any]],
    triggered: dict[str, Delta],
    error: dict[str, Any] | None = None,
) -> list[str]:
    """What became of a transaction, as a case writes it: changes of views, what alerts say, what triggers did; or how it was refused."""
    if error is not None:
        members = {name: said for name, said in error.items() if name not in ("code", "message", "place", "why")}
        return [f"error {error['code']}" + (f" {json.dumps(members, ensure_ascii=False)}" if members else "")]
    found = lines(program, deltas)
    found += [
        f"alert {json.dumps(dict(sorted(said.items(), key=lambda part: ALERTS.index(part[0]))), ensure_ascii=False)}" for said in alerts
    ]
    for name, delta in triggered.items():
        types = program.relations[name].types
        for sign, rows in (("+", delta.plus), ("-", delta.minus)):
            found += ["\t".join([f"triggered {sign}{name}", *row_text(types, row)]) for row in sorted_rows(rows)]
    return found


ALERTS = ("alert", "state", "row", "old", "proofs", "message", "severity")


def applied(database: Database, transaction: str, *, dry_run: bool = False) -> list[str]:
    try:
        outcome = database.take(parse_transaction(transaction), keep=not dry_run)
        alerts = alerts_json(database.program, outcome.alerts)
        return told_lines(database.program, outcome.deltas, alerts, dict(sorted(outcome.triggered.items())))
    except VigilogError as error:
        return told_lines(database.program, {}, [], {}, error.json())


def opened(case: Case, folder: Path, strategy: str, **options: Any) -> Database:
    case.write_facts(folder)
    database: Database = open_program(check(case.program, case.path.name).program, folder, strategy=strategy, **options)
    return database


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_reference_says_the_same(case: Case, tmp_path: Path) -> None:
    case.write_facts(tmp_path)
    naive = Naive(check(case.program).program, tmp_path)
    for step in case.steps:
        if not step.refused:
            told = [line for line in step.expect if line.startswith(("alert ", "triggered "))]  # tests/conditions finds these
            found = lines(naive.program, naive.apply(parse_transaction(step.transaction), step.triggered))
            if os.environ.get("VIGILOG_ACCEPT"):
                step.expect = found + told
            assert found + told == step.expect, step.transaction
    if os.environ.get("VIGILOG_ACCEPT"):
        accept(case)


def accept(case: Case) -> None:
    kept = case.path.read_text(encoding="utf-8").split("--- change ")[0]
    steps = [f"--- change {step.transaction}\n" + "".join(f"{line}\n" for line in step.expect) for step in case.steps]
    case.path.write_text(kept + "".join(steps), encoding="utf-8")


def under(treatments: list[str]) -> pytest.MarkDecorator:
    """Every case under every treatment; in the inner loop half of the cases, each under one."""
    return pytest.mark.parametrize(
        ("case", "strategy"), treated(taken(CASES, 1 / 2), treatments, size="quick" if SIZE == "quick" else "long"), ids=str
    )


@under([f"{strategy}{budget}" for strategy in WISHES for budget in ("", " recomputed")])
def test_changes(case: Case, strategy: str, tmp_path: Path) -> None:
    name, _, recomputed = strategy.partition(" ")
    with opened(case, tmp_path, name, budget=0 if recomputed else None) as database:
        for step in case.steps:
            assert applied(database, step.transaction) == step.expect, step.transaction


@pytest.mark.parametrize(
    ("case", "strategy"),
    treated(
        taken(CASES, 1 / 3),
        [f"{name}{budget}{way}" for name in WISHES for budget in ("", " recomputed") for way in (" many", " long", " folder")],
    ),
    ids=str,
)
def test_changes_where_duckdb_evaluates(case: Case, strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all rows were many, or SQLite took long, in memory or in a folder: first answers, and recomputing, are DuckDB's, or become so in the middle."""
    strategy, _, way = strategy.rpartition(" ")
    for name in ("ROWS", "RECURSIVE", "NONLINEAR") if way == "many" else ("PATIENCE", "A_MOMENT"):
        monkeypatch.setattr(bulk, name, 0)
    monkeypatch.setattr(tables, "STEPS_BETWEEN_LOOKS", 10)
    name, _, recomputed = strategy.partition(" ")
    place = {"data": tmp_path / "data"} if way == "folder" else {}
    with opened(case, tmp_path, name, budget=0 if recomputed else None, **place) as database:
        for step in case.steps:
            assert applied(database, step.transaction) == step.expect, step.transaction


@pytest.mark.parametrize(("case", "way"), ON_SPARK, ids=str)
def test_changes_on_spark(case: Case, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few rows here, in this process, and with all rows there, on Spark, of which what is asked for is fetched."""
    strategy, place = way.split(" ")
    monkeypatch.setattr(stored, "LOCAL_ROWS", stored.LOCAL_ROWS if place == "here" else 0)
    options: dict[str, Any] = {"strategy": "external", "budget": 0} if strategy == "recomputed" else {"strategy": strategy}
    with opened(case, tmp_path, engine="spark", **options) as database:
        for step in case.steps:
            assert applied(database, step.transaction) == step.expect, step.transaction


@pytest.mark.parametrize("case", taken(CASES, 1 / 3), ids=str)
def test_changes_on_a_data_folder(case: Case, tmp_path: Path) -> None:
    """Opened anew after every transaction."""
    folder = tmp_path / "data"
    opened(case, tmp_path, "auto", data=folder).close()
    for step in case.steps:
        with open_program(data=folder) as database:
            assert applied(database, step.transaction) == step.expect, step.transaction


@under(WISHES)
def test_what_if_says_the_same_and_changes_nothing(case: Case, strategy: str, tmp_path: Path) -> None:
    with opened(case, tmp_path, strategy) as database:
        for step in case.steps:
            before = contents(database)
            for _ in range(2):
                assert applied(database, step.transaction, dry_run=True) == step.expect, step.transaction
                assert contents(database) == before
            assert applied(database, step.transaction) == step.expect


def contents(database: Database) -> tuple[Rows, Rows]:
    return {name: database.rows(name) for name in database.homes}, {name: database.view(name) for name in database.program.outputs}


@under(WISHES)
def test_views_are_what_the_changes_make_of_them(case: Case, strategy: str, tmp_path: Path) -> None:
    with opened(case, tmp_path, strategy) as database:
        views = {name: database.view(name) for name in database.program.outputs}
        for step in case.steps:
            try:
                changes = database.apply(parse_transaction(step.transaction))
            except VigilogError:
                changes = {}
            for name, delta in changes.items():
                assert delta.plus.isdisjoint(views[name]) and delta.minus <= views[name]
                views[name] = delta.apply(views[name])
            assert {name: database.view(name) for name in views} == views


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_printed_program_changes_alike(case: Case, tmp_path: Path) -> None:
    case.write_facts(tmp_path)
    with open_program(check(show(check(case.program).program)).program, tmp_path) as database:
        assert [applied(database, step.transaction) for step in case.steps] == [step.expect for step in case.steps]


@under(WISHES)
def test_every_change_has_its_reason(case: Case, strategy: str, tmp_path: Path) -> None:
    """The proofs that `watch --why` gives are checked step by step."""
    with opened(case, tmp_path, strategy) as database:
        before = judge(database)
        for answer in watch(database, [step.transaction for step in case.steps], why=True):
            after = judge(database)
            for name, change in answer.get("views", {}).items():
                types = database.program.relations[name].types

                def row(cells: list[Any], types: Any = types, name: str = name) -> tuple[str, tuple[Any, ...]]:
                    return name, tuple(type_.from_json(cell) for type_, cell in zip(types, cells, strict=True))

                assert [after.check(proof) for proof in change["why"]["plus"]] == [row(cells) for cells in change["plus"]]
                assert [after.check_broken(proof, before) for proof in change["why"]["minus"]] == [row(cells) for cells in change["minus"]]
                assert json.dumps(json.loads(said := json.dumps(change))) == said
            before = after


def judge(database: Database) -> Judge:
    return Judge(database.program, {name: database.rows(name) for name in database.homes})


def test_every_operation_in_python() -> None:
    program = ".decl stock(item: symbol, n: number)\n.key stock(item)\n.output stock\n"
    with open_program(program, {"stock": [("nail", 1), ("bolt", 2), ("nut", 3)]}) as database:
        with database.transaction() as tx:
            tx.insert("stock", [("gear", 4)])
            tx.delete("stock", [("nut", 3)])
            tx.update("stock", [(("nail", 1), ("nail", 10))])
            tx.upsert("stock", [["bolt", 20]])
        assert tx.changes["stock"] == Delta(
            frozenset({("gear", 4), ("nail", 10), ("bolt", 20)}), frozenset({("nut", 3), ("nail", 1), ("bolt", 2)})
        )
        with database.transaction() as tx:
            tx.delete_key("stock", [("gear",), ("absent",)])
        assert tx.changes["stock"].minus == {("gear", 4)}


@pytest.mark.parametrize("strategy", ["external", "auto"])
def test_a_budget_on_spark(strategy: str) -> None:
    edges = {"edge": [("a", "b"), ("b", "a"), ("b", "c")]}
    program = ".decl edge(x: symbol, y: symbol)\n.decl closure(x: symbol, y: symbol)\n.output closure\n"
    program += "closure(x, y) :- edge(x, y).\nclosure(x, y) :- edge(x, z), closure(z, y).\n"
    lost = {"closure": Delta(minus=frozenset({("a", "c"), ("b", "c")}))}
    change = {"delete": {"edge": [["b", "c"]]}}
    with open_program(program, edges, strategy=strategy, engine="spark", budget=1) as database:
        assert database.apply(change) == lost
        assert database.stats.recomputed == "more than 1 rows were derived on demand"
    with open_program(program, edges, strategy=strategy, engine="spark", budget=1, strict=True) as database:
        if strategy == "auto":
            assert database.apply(change) == lost, "it is stored, so it may be recomputed"
            return
        with pytest.raises(VigilogError, match="strict"):
            database.apply(change)
        assert ("b", "c") in database.rows("edge") and ("a", "c") in database.view("closure")


def test_auto_stores_what_costs_too_much_on_demand() -> None:
    program = ".decl p, q, r(x: number)\n.output r\nr(x) :- p(x), q(x).\n"
    with open_program(program, {"q": [(n,) for n in range(9)]}, budget=0) as database:
        for number in range(5):
            assert database.apply({"insert": {"p": [[number]]}})["r"].plus == {(number,)}
            stored = number >= engine.MOST_OVERRUNS - 1
            assert database.strategies["r"].name == ("materialized" if stored else "external")
        assert database.strategies["r"].reason.startswith("deriving it on demand went over its budget 3 times")
        assert not database.stats.recomputed


def test_auto_does_not_store_a_recursion_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST_STORED", 30)
    program = """
.decl edge, closure, hop, two(x: number, y: number)
.output closure
.output two
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
hop(x, y) :- edge(x, y), x < 2.
hop(x, y) :- hop(x, z), hop(z, y).
two(x, y) :- hop(x, y), x != y.
"""
    path = {"edge": [(n, n + 1) for n in range(20)]}
    with open_program(program, path) as database:
        chosen = database.strategies
        assert (chosen["closure"].name, chosen["two"].name) == ("external", "materialized")
        assert chosen["closure"].reason == "closure has more than 30 rows, too many to store"
        assert "closure" not in database.stored
        assert database.apply({"insert": {"edge": [[20, 21]]}})["closure"].plus == {(n, 21) for n in range(21)}
        assert len(database.view("closure")) == 21 * 22 // 2
    with open_program(program, path, strategy="materialized") as database:
        assert database.strategies["closure"].name == "materialized", "it was asked for"


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_a_view_in_memory_as_a_spark_frame(engine: str) -> None:
    program = ".decl p, q(x: number, y: symbol)\n.decl some()\n.output q\n.output some\nq(x + 1, y) :- p(x, y).\nsome() :- p(_, _).\n"
    with open_program(program, {"p": [(1, "a"), (2, "b")]}, engine=engine) as database:
        assert sorted(map(tuple, database.frame("q").collect())) == [(2, "a"), (3, "b")]
        assert sorted(map(tuple, database.frame("p").collect())) == [(1, "a"), (2, "b")]
        assert database.frame("some").count() == 1
        with pytest.raises(VigilogError, match="no relation r"):
            database.frame("r")
