"""Bulk evaluation on DuckDB: changing engines in the course of a fixpoint, limits, and what is the same to the last bit."""

from __future__ import annotations

import datetime
import math
import os
import random
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.engine.test_changes import applied, opened
from tests.golden import CHANGES, Case, cases
from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.core.errors import Stopped
from vigilog.core.extras import Extra
from vigilog.core.memory import machine_memory
from vigilog.engine.evaluate import evaluate, run, start
from vigilog.engine.places import inputs
from vigilog.executors.choose import choose
from vigilog.executors.duckdb import machine, settings, tail
from vigilog.executors.duckdb import tables as duck_tables
from vigilog.executors.duckdb.machine import DuckMachine
from vigilog.executors.duckdb.tables import DuckTables, OutOfMemory
from vigilog.executors.embedded import bulk, tables
from vigilog.executors.embedded.bulk import patient
from vigilog.executors.embedded.tables import Tables
from vigilog.executors.watch import Outgrown, TooManyRows, Watch
from vigilog.folder.opening import open_program
from vigilog.language.check import check
from vigilog.language.strata import Component
from vigilog.planning import duckdb
from vigilog.planning.layout import Layout
from vigilog.planning.sqlite import gathered

POINTS_TO = """
.decl new(v: number, h: number)
.decl assign(v: number, u: number)
.decl load(v: number, b: number, f: number)
.decl store(b: number, f: number, v: number)
.decl points(v: number, h: number)
.decl heap(h: number, f: number, o: number)
.output points
.output heap
points(v, h) :- new(v, h).
points(v, h) :- assign(v, u), points(u, h).
points(v, o) :- load(v, b, f), points(b, h), heap(h, f, o).
heap(h, f, o) :- store(b, f, v), points(b, h), points(v, o).
"""
EVER_NEW = ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n"
EVER_NEW_PAIR = EVER_NEW + ".decl m(x: number)\nm(x) :- n(x).\nn(x + 1) :- m(x).\n"


def facts(seed: int, size: int) -> dict[str, list[tuple[int, ...]]]:
    chance = random.Random(seed)

    def some(count: int, *below: int) -> list[tuple[int, ...]]:
        return [tuple(chance.randrange(bound) for bound in below) for _ in range(count)]

    names = 5 * size
    return {
        "new": some(size, names, size),
        "assign": some(13 * size, names, names),
        "load": some(5 * size, names, names, 3),
        "store": some(5 * size, names, 3, names),
    }


class Turning(tail.Pace):
    """Goes to SQLite after some round, and back after some rounds there."""

    to_go, to_stay, there = 0, 1, 0

    def down(self, recent: int, seconds: float, rows: int) -> bool:
        self.to_go -= 1
        self.there = 0
        return self.to_go < 0

    def up(self, recent: int) -> bool:
        self.there += 1
        return self.there >= self.to_stay


@pytest.mark.parametrize("stay", [1, 2, 100])
@pytest.mark.parametrize("go", range(7))
def test_changing_engines_after_any_round_changes_nothing(go: int, stay: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, given = check(POINTS_TO).program, facts(7, 6)
    monkeypatch.setattr(machine, "Pace", type("At", (Turning,), {"to_go": go, "to_stay": stay}))
    found = evaluate(program, given, "duckdb")
    plain = evaluate(program, given, "embedded")
    assert found.relations == plain.relations
    assert found.stats.rounds == plain.stats.rounds >= 6
    assert found.stats.derived == plain.stats.derived


def test_a_round_that_is_long_on_sqlite_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "Pace", type("Always", (Turning,), {"to_stay": 100}))
    monkeypatch.setattr(tail, "A_ROUND", 0.0)
    monkeypatch.setattr(tables, "STEPS_BETWEEN_LOOKS", 50)
    program, given = check(POINTS_TO).program, facts(3, 6)
    assert evaluate(program, given, "duckdb").relations == evaluate(program, given, "embedded").relations


def test_few_rows_a_round_go_to_sqlite_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[Component] = []

    class Watched(tail.Tail):
        def __init__(self, duck: DuckTables, component: Component, recent: Mapping[str, str]) -> None:
            gone.append(component)
            super().__init__(duck, component, recent)

    monkeypatch.setattr(machine, "Tail", Watched)
    text = ".decl e, o(x: number)\n.output o\ne(0).\no(x + 1) :- e(x), x < 3000.\ne(x + 1) :- o(x), x < 3000.\n"
    found = evaluate(text, {}, "duckdb")
    assert found["o"] == {(x,) for x in range(1, 3001, 2)}
    assert (len(gone), found.stats.rounds) == (1, 3001)


# -- limits


@pytest.mark.parametrize("text", [EVER_NEW, EVER_NEW_PAIR])
def test_a_recursion_without_end_is_stopped(text: str) -> None:
    with pytest.raises(Stopped, match="did not come to an end within 40 rounds"):
        evaluate(text, {}, "duckdb", Watch(max_rounds=40))
    with pytest.raises(TooManyRows, match="more than 500 rows"):
        evaluate(text, {}, "duckdb", Watch(max_rows=500))
    started = time.monotonic()
    with pytest.raises(Stopped, match=r"did not come to an end within 0\.5 s"):
        evaluate(text, {}, "duckdb", Watch(timeout=0.5))
    assert time.monotonic() - started < 30


def test_the_time_ends_while_results_are_read() -> None:
    text, given = closure(500, 2_500)
    watch = Watch(timeout=60)
    with closing(start(check(text).program, given, "duckdb", ["path"], watch)) as evaluation:
        rows = evaluation.rows("path")
        next(rows)
        watch.timeout = 0
        with pytest.raises(Stopped, match="did not come to an end within 0 s"):
            list(rows)


def test_on_a_busy_machine_sqlite_is_given_time_by_its_work() -> None:
    watch = Watch()
    with closing(Tables(Layout(check(EVER_NEW).program), watch)) as own, patient(own, 0.02):
        time.sleep(0.05)
        watch.tick()
        with pytest.raises(Outgrown):
            while True:
                watch.tick()


@pytest.mark.parametrize("text", [EVER_NEW, EVER_NEW_PAIR])
def test_ctrl_c_ends_it(text: str) -> None:
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            evaluate(text, {}, "duckdb", Watch(timeout=60))
    finally:
        timer.cancel()


def closure(nodes: int, edges: int) -> tuple[str, dict[str, list[tuple[int, ...]]]]:
    text = ".decl edge, path(x: number, y: number)\n.output path\npath(x, y) :- edge(x, y).\npath(x, y) :- path(x, z), edge(z, y).\n"
    chance = random.Random(1)
    return text, {"edge": [(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(edges)]}


def test_what_needs_more_memory_than_there_is_goes_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, given = closure(1_500, 4_000)
    rows = len(evaluate(text, given, "duckdb")["path"])
    short: list[str] = []

    class Short(OutOfMemory):
        def __init__(self, doing: str, given: settings.Settings) -> None:
            short.append(doing)
            super().__init__(doing, given)

    monkeypatch.setattr(duck_tables, "OutOfMemory", Short)
    monkeypatch.setenv(settings.MEMORY, "40")
    monkeypatch.setenv(settings.SPILL, str(tmp_path / "spilled"))
    assert rows > 1_000_000
    assert len(evaluate(text, given, "duckdb")["path"]) == rows
    assert short == ["path"]  # as one query it needs more, round after round it does not
    assert not (tmp_path / "spilled").exists() or not [*(tmp_path / "spilled").iterdir()]


def scarce(monkeypatch: pytest.MonkeyPatch, *, parts: int = 5) -> None:
    """As if no statement over rules had enough memory that is not done in so many parts."""
    run = DuckMachine._run

    def some(self: DuckMachine, sql: str) -> int:
        if ("candidates(" in sql and f" % {parts} = " not in sql) or "WITH RECURSIVE" in sql:
            raise OutOfMemory("s", self.tables.settings)
        return run(self, sql)

    monkeypatch.setattr(DuckMachine, "_run", some)


@pytest.mark.parametrize("parts", [5, 17])
def test_statements_are_done_in_parts_where_memory_is_scarce(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scarce(monkeypatch, parts=parts)
    for text, given in ((POINTS_TO, facts(7, 6)), closure(40, 80), (".decl r, s()\n.output s\nr().\ns() :- r().\n", {})):
        program = check(text).program
        found, plain = evaluate(program, given, "duckdb"), evaluate(program, given, "embedded")
        assert found.relations == plain.relations
        assert (found.stats.rounds, found.stats.derived) == (plain.stats.rounds, plain.stats.derived)


def test_what_does_not_fit_in_parts_either_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scarce(monkeypatch, parts=1000)
    with pytest.raises(Stopped, match=r"s needs more memory than .* MiB; allow more with --memory"):
        evaluate(*closure(40, 80), "duckdb")


@pytest.mark.parametrize("patience", [None, 0.0])
def test_a_folder_is_opened_and_recomputed_by_sqlite_where_duckdb_has_too_little_memory(
    patience: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, given = closure(40, 80)
    edges = set(given["edge"])
    before, after = (reference.evaluate(check(text).program, {"edge": rows})["path"] for rows in (edges, edges | {(40, 0)}))
    scarce(monkeypatch, parts=1000)
    monkeypatch.setattr(tables, "STEPS_BETWEEN_LOOKS", 10)
    if patience is None:
        monkeypatch.setattr(bulk, "RECURSIVE", 0)
    else:
        monkeypatch.setattr(bulk, "PATIENCE", patience)
        monkeypatch.setattr(bulk, "A_MOMENT", patience)
    for strategy in ("materialized", "external"):
        with open_program(text, {"edge": edges}, data=tmp_path / strategy, strategy=strategy, budget=0) as database:
            assert database.view("path") == before
            assert database.apply({"insert": {"edge": [(40, 0)]}})["path"].plus == after - before


@pytest.mark.parametrize(("op", "kind"), [("sum", "float"), ("mean", "float"), ("mean", "number"), ("setof", "number")])
def test_a_group_is_finished_by_itself_however_many_bindings_it_has(op: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counting(function: Any) -> Any:
        def called(*args: Any) -> Any:
            made.append(1)
            return function(*args)

        return called

    for name in ("float_sum", "float_mean", "mean", "gathered"):
        function = getattr(duckdb, name)
        monkeypatch.setattr(duckdb, name, (lambda type_: counting(gathered(type_))) if name == "gathered" else counting(function))
    result = {"setof": "set<number>"}.get(op, "float")
    text = f".decl r(g: number, k: number, x: {kind})\n.decl s(g: number, n: {result})\n.output s\ns(g, n) :- r(g, _, _), n = {op} x : {{ r(g, _, x) }}.\n"
    program, given = check(text).program, {"r": [(k % 4, k, k * 0.1 if kind == "float" else k) for k in range(2_000)]}
    found = evaluate(program, given, "duckdb")
    assert len(made) < 20  # some for what is asked of them
    assert found["s"] == reference.evaluate(program, {"r": set(given["r"])})["s"]


# -- to the last bit

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("term", "rows"),
    [
        *((f"a {op} b", "number") for op in "+-*/%"),
        *((f"a {op} b", "unsigned") for op in "+-*/%"),
        *((f"a {op} b", "float") for op in "+-*/"),
        *((f"a {op} b", "decimal(18,3)") for op in "+-"),
        ("-a", "number"),
        ("-a", "float"),
        ("-a", "decimal(18,3)"),
        *(
            (f"a {op} b", kind)
            for op in ("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor")
            for kind in ("number", "unsigned")
        ),
        ("min(a, b)", "symbol"),
        ("max(a, b)", "unsigned"),
        ("min(a + b, a)", "number"),
        ("cat(a, b)", "symbol"),
    ],
)
def test_functors_are_those_of_the_reference(term: str, rows: str) -> None:
    values = VALUES[rows.partition("(")[0]]
    text = f".decl r(a: {rows}, b: {rows})\n.decl s(a: {rows}, b: {rows}, c: {rows})\n.output s\ns(a, b, {term}) :- r(a, b).\n"
    program, given = check(text).program, {"r": [(a, b) for a in values for b in values]}
    found = evaluate(program, given, "duckdb")
    assert found["s"] == reference.evaluate(program, {"r": set(given["r"])})["s"]
    assert all(math.copysign(1, value) == 1 for row in found["s"] for value in row if value == 0 and isinstance(value, float))


VALUES: dict[str, list[Any]] = {
    "number": [0, 1, -1, 7, -7, 63, 64, LARGEST, -LARGEST - 1, LARGEST - 1, 2**32, -(2**31), 3_037_000_500],
    "unsigned": [0, 1, 7, 63, 64, 2**64 - 1, 2**63, 2**63 - 1, 2**32],
    "float": [0.0, 1.0, -1.5, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1e-300, 0.1, 3.0],
    "decimal": [Decimal("0.000"), Decimal("1.500"), Decimal("-0.001"), Decimal("999999999999999.999"), Decimal("-999999999999999.999")],
    "symbol": ["", "a", "Z", "é", "\U0001f600", "\uffff", "a\x01b", "ab", "7", "e\u0301"],
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("op", ["sum", "mean", "min", "max", "count"])
def test_aggregates_are_those_of_the_reference(op: str, kind: str) -> None:
    if kind == "symbol" and op in ("sum", "mean"):
        op = "max"
    type_ = "decimal(18,3)" if kind == "decimal" else kind
    result = {"mean": "float", "count": "number"}.get(op, type_)
    target = "" if op == "count" else " x"
    text = f".decl r(g: number, x: {type_})\n.decl g(g: number)\n.decl s(g: number, n: {result})\n.output s\ns(g, n) :- g(g), n = {op}{target} : {{ r(g, x) }}.\n"
    chance = random.Random(op + kind)
    rows = [(g, x) for g in range(40) for x in chance.sample(VALUES[kind], chance.randrange(len(VALUES[kind])))]
    if kind == "float":
        rows += [(g, chance.uniform(-1, 1) * 10.0 ** chance.randrange(-300, 300)) for g in range(40) for _ in range(50)]
    program = check(text).program
    given: dict[str, list[tuple[Any, ...]]] = {"r": rows, "g": [(g,) for g in range(45)]}
    assert evaluate(program, given, "duckdb")["s"] == reference.evaluate(program, {name: set(each) for name, each in given.items()})["s"]


def test_symbols_of_all_planes_are_compared_and_cut_by_code_point(tmp_path: Path) -> None:
    texts = ["", "\x01", "a", "é", "e\u0301", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f468\u200d\U0001f469", "\U0010ffff"]
    text = """.decl t(s: symbol, n: number)
.decl less(a: symbol, b: symbol)
.decl part(s: symbol, i: number, l: number, p: symbol, n: number)
.output less
.output part
less(a, b) :- t(a, _), t(b, _), a < b.
part(s, i, l, substr(s, i, l), strlen(s)) :- t(s, _), t(_, i), t(_, l).
"""
    rows = [(each, number - 2) for number, each in enumerate(texts)] + [("a", LARGEST)]
    program = check(text).program
    found, expected = evaluate(program, {"t": rows}, "duckdb"), reference.evaluate(program, {"t": set(rows)})
    assert found["less"] == expected["less"]
    assert found["part"] == expected["part"]


def test_dates_and_moments_are_in_order() -> None:
    text = """.decl d(x: date, t: timestamp)
.decl before(x: date, y: date)
.decl sooner(x: timestamp, y: timestamp)
.output before
.output sooner
before(x, y) :- d(x, _), d(y, _), x < y.
sooner(x, y) :- d(_, x), d(_, y), x < y.
"""
    days = [datetime.date(1, 1, 1), datetime.date(999, 12, 31), datetime.date(1582, 10, 10), datetime.date(9999, 12, 31)]
    moments = [datetime.datetime.combine(day, datetime.time(8, 0, 0, micro), datetime.UTC) for day in days for micro in (0, 1)]
    rows = [(moment.date(), moment) for moment in moments]
    program = check(text).program
    found, expected = evaluate(program, {"d": rows}, "duckdb"), reference.evaluate(program, {"d": set(rows)})
    assert (found["before"], found["sooner"]) == (expected["before"], expected["sooner"])


def test_the_choice_is_told_with_its_reason(tmp_path: Path) -> None:
    text = ".decl edge(x: number, y: number)\n.input edge\n.decl back(x: number, y: number)\n.output back\nback(y, x) :- edge(x, y).\n"
    (tmp_path / "edge.facts").write_text("".join(f"{x}\t{x + 1}\n" for x in range(100_000)), encoding="utf-8")
    finished = run(check(text).program, tmp_path, tmp_path / "out", "auto", Watch())
    assert (finished.stats.engine, finished.chosen.engine) == ("duckdb", "duckdb")
    assert finished.chosen.reason == "the input is 1 MiB of text, and from 1 MiB DuckDB is faster than SQLite"
    assert (tmp_path / "out" / "back.csv").read_text().startswith("1\t0\n2\t1\n")
    with patch.object(Extra, "installed", False):
        chosen = choose("auto", inputs(check(text).program, tmp_path).values())
    assert chosen.engine == "embedded"
    assert chosen.reason.endswith('DuckDB is faster than SQLite, but not installed: pip install "vigilog[bulk]"')


def test_the_memory_and_the_folder_are_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (settings.MEMORY, settings.SPILL):
        monkeypatch.setenv(name, "")
    assert settings.Settings.from_environment().memory == machine_memory() // 2
    settings.state(100, tmp_path / "spilled")
    found = settings.Settings.from_environment()
    assert (found.memory, found.spill) == (100 * 2**20, str(tmp_path / "spilled"))
    (tmp_path / "file").touch()
    settings.state(10, tmp_path / "file" / "none")
    with pytest.raises(Stopped, match=r"cannot use the folder .*none for what does not fit into memory: .*Not a directory"):
        evaluate(*closure(1_500, 4_000), "duckdb")


# -- what was recomputed stays for the next transaction


@pytest.mark.parametrize("way", ["sqlite", "duckdb", "folder"])
def test_what_was_recomputed_is_used_only_while_it_is_as_things_are(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = closure(1, 1)
    if way != "sqlite":
        monkeypatch.setattr(bulk, "RECURSIVE", 0)
    chance, edges = random.Random(3), {(x, x + 1) for x in range(8)}
    place: dict[str, Any] = {"data": tmp_path / "data"} if way == "folder" else {}
    with open_program(text, {"edge": edges}, strategy="external", budget=0, **place) as database:
        views = getattr(database.views, "resident", database.views)
        used = 0
        for number in range(60):
            gone = set(chance.sample(sorted(edges), min(len(edges), chance.randrange(3))))
            come = {(chance.randrange(9), chance.randrange(9)) for _ in range(chance.randrange(1, 3))}
            change = {"delete": {"edge": sorted(gone)}, "insert": {"edge": sorted(come)}}
            views.budget = chance.choice([0, 0, 0, 10**6])
            after = edges - gone | come
            before_, after_ = (reference.evaluate(check(text).program, {"edge": rows})["path"] for rows in (edges, after))
            used += views.maintainer.anew is not None
            if number % 4 == 3:
                found = database.what_if(**change)
            else:
                found = database.apply(change)
                edges = after
            got, wanted = found.get("path", Delta()), between(before_, after_)
            assert (got.plus, got.minus) == (wanted.plus, wanted.minus), number
        assert used > 20


@pytest.mark.parametrize(
    "case", [case for case in cases(CHANGES) if case.path.stem in ("aggregate-join-dropped", "aggregates-over-views")], ids=str
)
def test_of_states_of_groups_it_is_not_told_all_so_nothing_stays(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS", "RECURSIVE", "NONLINEAR"):
        monkeypatch.setattr(bulk, name, 0)
    with opened(case, tmp_path, "auxiliary", budget=0) as database:
        for step in case.steps:
            assert applied(database, step.transaction) == step.expect, step.transaction
