"""The bounds of an evaluation on Spark, and what a round costs. All in one session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.executors.test_programs import by_engine
from tests.golden import PROGRAMS, read_case
from tests.spark.test_sources import derive
from vigilog.core.errors import Stopped, VigilogError
from vigilog.engine.evaluate import evaluate
from vigilog.executors.spark import machine, near, temporary
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.language.strata import Component

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every recursion runs on Spark from its first round on."""
    monkeypatch.setattr(near, "READ_ROWS", -1)


# -- bounds

DIVERGING = ".decl n(x: number)\n.output n\nn(0).\nn(x + 1) :- n(x).\n"
SLOW = ".decl a(x: number)\n.input a\n.decl n(c: number)\n.output n\nn(c) :- c = count : { a(x), a(y), a(z), x + y + z = 1 }.\n"


def test_bounds(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Stopped, match=r"^n did not come to an end within 7 rounds \(8 rows so far\)"):
        derive(DIVERGING, tmp_path, "spark", Watch(max_rounds=7))
    with pytest.raises(Stopped, match=r"^n did not come to an end within 3 s \(round \d+\); allow more with --timeout"):
        derive(DIVERGING, tmp_path, "spark", Watch(timeout=3))
    (tmp_path / "a.facts").write_text("".join(f"{x}\n" for x in range(3000)))
    watch = Watch(timeout=6)
    with pytest.raises(Stopped, match=r"^n did not come to an end within 6 s"):  # while its only action runs
        derive(SLOW, tmp_path, "spark", watch)
    assert watch.remaining == 0
    assert derive(DIVERGING.replace("n(x).", "n(x), x < 3."), tmp_path, "spark") == {"n": [(0,), (1,), (2,), (3,)]}


# -- what a round costs

CLOSURE = """
.decl edge(x: number, y: number)
.decl closure(x: number, y: number)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- closure(x, z), edge(z, y).
"""
PARITY = """
.decl edge(x: number, y: number)
.decl even, odd(x: number)
.output even
.output odd
even(0).
odd(y) :- even(x), edge(x, y).
even(y) :- odd(x), edge(x, y).
"""


def chain(length: int) -> list[tuple[int, int]]:
    return [(x, x + 1) for x in range(length)]


@pytest.mark.parametrize("program", [CLOSURE, PARITY], ids=["recursion", "mutual-recursion"])
def test_one_action_per_round(program: str, spark: SparkSession) -> None:
    extra = set()
    for length in (3, 12):
        result = evaluate(program, {"edge": chain(length)}, "spark")
        assert result.relations == evaluate(program, {"edge": chain(length)}).relations
        assert result.stats.rounds >= length
        extra.add(result.stats.statements - result.stats.rounds)
    assert len(extra) == 1, "the length does not matter"
    assert extra.pop() <= 2, "one to read the edges, one to start"


@pytest.mark.parametrize("program", [CLOSURE, PARITY], ids=["recursion", "mutual-recursion"])
def test_a_round_over_few_rows_needs_no_action(program: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "READ_ROWS", 50)
    for length in (3, 50):
        result = evaluate(program, {"edge": chain(length)}, "spark")
        assert result.relations == evaluate(program, {"edge": chain(length)}).relations
        assert result.stats.rounds >= length
        assert result.stats.statements == 0, "the edges are here"
    monkeypatch.setattr(near, "READ_ROWS", 2)
    assert evaluate(program, {"edge": chain(3)}, "spark").stats.statements >= 3, "these are too many"


@pytest.mark.parametrize("limit", ["READ_ROWS", "MOST_ROWS", "MOST_RECENT", "A_ROUND"])
@pytest.mark.parametrize("name", ["closure-left-linear", "closure-nonlinear", "mutual-recursion", "same-generation"])
def test_a_recursion_goes_to_spark_when_it_grows(
    name: str, limit: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the beginning, after some rows, after a large round, or after a long one: nothing is lost."""
    moved = []
    usual = machine.FrameMachine.start

    def start(self: machine.FrameMachine, component: Component) -> int:
        moved.append(component.recursive)
        return usual(self, component)

    monkeypatch.setattr(machine.FrameMachine, "start", start)
    monkeypatch.setattr(near, "READ_ROWS", 1_000)
    monkeypatch.setattr(near, limit, -1 if limit in ("READ_ROWS", "A_ROUND") else 1)
    case = read_case(PROGRAMS / f"{name}.case")
    case.write_facts(tmp_path)
    assert by_engine(check(case.program).program, tmp_path, "spark") == case.expect
    assert any(moved), "it went there"


def test_one_action_per_round_however_the_rows_swell(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """From one node to ten and back to one, again and again: each swelling surprises."""
    monkeypatch.setattr(machine, "SMALL_ROWS", 5)
    reach = (
        ".decl edge(x: number, y: number)\n.decl reached(x: number)\n.output reached\nreached(0).\nreached(y) :- reached(x), edge(x, y).\n"
    )
    edges = [(x, y) for hub in range(0, 500, 100) for node in range(hub + 1, hub + 11) for x, y in ((hub, node), (node, hub + 100))]
    result = evaluate(reach, {"edge": edges}, "spark")
    assert len(result["reached"]) == 56
    assert result.stats.rounds == 11
    assert result.stats.statements - result.stats.rounds <= 2 + machine.MOST_SURPRISES


@pytest.mark.parametrize("few", [machine.SMALL_ROWS, 0], ids=["few", "many"])
def test_one_action_for_all_that_need_nothing_of_each_other(few: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SMALL_ROWS", few)
    views = [f".decl v{i}(x: number)\n.output v{i}\nv{i}(x + {i}) :- edge(x, _), x != {i}.\n" for i in range(8)]
    above = ".decl all(x: number)\n.output all\n" + "".join(f"all(x) :- v{i}(x).\n" for i in range(8))
    program = ".decl edge(x: number, y: number)\n" + "".join(views) + above
    result = evaluate(program, {"edge": chain(9)}, "spark")
    assert result.relations == evaluate(program, {"edge": chain(9)}).relations
    assert result.stats.statements == 3, "eight views, the one above them, and what is undefined"


def test_undefined_is_counted_alike(spark: SparkSession) -> None:
    text = ".decl q(x: number)\n.decl p(x: number)\n.output p\np(10 / x) :- q(x), x % 3 != 7, 1 / (x - 4) < 9.\n"
    counted = {engine: evaluate(text, {"q": [(x,) for x in range(6)]}, engine).stats.undefined for engine in ("embedded", "spark")}
    assert counted["spark"] == counted["embedded"] > 0


def test_nothing_is_left_behind(spark: SparkSession) -> None:
    keys = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    before = [spark.conf.get(key) for key in keys]
    evaluate(CLOSURE, {"edge": chain(3)}, "spark")
    with pytest.raises(VigilogError):
        evaluate(DIVERGING, {}, "spark", Watch(max_rounds=1))
    assert [spark.conf.get(key) for key in keys] == before
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("vigilog_")] == []


# -- large deltas

LARGE = {
    "never-local": {"SMALL_ROWS": 0, "LOCAL_ROWS": 0, "MOST_PARTS": 1, "BROADCAST_ROWS": -1, "ROWS_A_PARTITION": 2},
    "now-and-then": {"SMALL_ROWS": 3, "LOCAL_ROWS": 4, "MOST_PARTS": 2, "BROADCAST_ROWS": 3, "ROWS_A_PARTITION": 4, "ROUNDS_UNBOUNDED": 1},
}


@pytest.mark.parametrize("limits", LARGE)
@pytest.mark.parametrize(
    "name", ["closure-left-linear", "closure-right-linear", "closure-nonlinear", "mutual-recursion", "same-generation"]
)
def test_large_deltas(name: str, limits: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for constant, value in LARGE[limits].items():
        monkeypatch.setattr(temporary if hasattr(temporary, constant) else machine, constant, value)
    monkeypatch.setattr(machine, "MOST_SURPRISES", 100)
    case = read_case(PROGRAMS / f"{name}.case")
    case.write_facts(tmp_path)
    assert by_engine(check(case.program).program, tmp_path, "spark") == case.expect


@pytest.mark.parametrize("width", ["one partition", "several"])
def test_planning_does_not_grow_with_the_rounds(width: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round joins what is derived with what is derived, so Spark's estimates of sizes are squared: after 26 rounds they would have tens of millions of digits."""
    for constant, value in {"SMALL_ROWS": 0, "LOCAL_ROWS": 0}.items():
        monkeypatch.setattr(machine, constant, value)
    if width == "several":
        monkeypatch.setattr(temporary, "ROWS_A_PARTITION", 1)
    walk = ".decl edge(x: number, y: number)\n.decl at(x: number)\n.output at\nat(0).\nat(y) :- at(x), edge(x, y), at(z), x - z < 2, x - z >= 0.\n"
    assert len(evaluate(walk, {"edge": chain(26)}, "spark")["at"]) == 27
