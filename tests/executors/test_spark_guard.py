"""Maintaining views on Spark is given up when it takes too long, and answered by computing anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from vigilog.core.errors import DataError
from vigilog.engine.database import Database
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.spark import guard
from vigilog.executors.spark.demand import DemandMachine
from vigilog.executors.spark.grouped import GroupKeeper
from vigilog.executors.watch import Watch
from vigilog.language.check import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = check(
    ".decl edge(x: number, y: number)\n.input edge\n"
    ".decl path(x: number, y: number)\n.output path\npath(x, y) :- edge(x, y).\npath(x, y) :- path(x, z), edge(z, y).\n"
    ".decl out(x: number, n: number)\n.output out\nout(x, n) :- edge(x, _), n = sum y : { edge(x, y) }.\n"
).program
BEFORE, AFTER = {(1, 2), (2, 3)}, {(1, 2), (2, 3), (3, 4)}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], None]:
    """Makes a stage take longer than is allowed, whatever the machine."""

    def slow(owner: type, stage: str) -> None:
        usual = getattr(owner, stage)

        def begun(self: Any, *given: Any, **named: Any) -> Any:
            watch: Watch = self.watch if isinstance(self, GroupKeeper) else self.frames.watch
            watch.started -= 1e6
            watch.tick()
            return usual(self, *given, **named)

        monkeypatch.setattr(owner, stage, begun)

    return slow


@pytest.mark.parametrize(("owner", "stage"), [(GroupKeeper, "changes"), (DemandMachine, "run"), (DemandMachine, "rows")])
def test_what_takes_too_long_is_computed_anew(spark: SparkSession, slow: Callable[[type, str], None], owner: type, stage: str) -> None:
    with Database(PROGRAM, {"edge": BEFORE}, "auto", "spark") as database:
        slow(owner, stage)
        found = database.apply({"insert": {"edge": [(3, 4)]}})
        assert found["path"].plus == {(3, 4), (2, 4), (1, 4)} and found["out"].plus == {(3, 4)}
        assert database.stats.recomputed == "maintaining took more than 10 s"
        assert database.apply({"delete": {"edge": [(3, 4)]}})["path"].minus == {(3, 4), (2, 4), (1, 4)}
        assert database.stats.recomputed == "maintaining took more than 10 s, as the last time"
        assert {name: database.view(name) for name in ("path", "out")} == {"path": {(1, 2), (2, 3), (1, 3)}, "out": {(1, 2), (2, 3)}}


def test_strict_refuses(spark: SparkSession, slow: Callable[[type, str], None]) -> None:
    with Database(PROGRAM, {"edge": BEFORE}, "external", "spark", strict=True) as database:
        slow(DemandMachine, "run")
        with pytest.raises(DataError, match=r"maintaining took more than 10 s, and recomputing is refused \(strict\)"):
            database.apply({"insert": {"edge": [(3, 4)]}})
        assert database.rows("edge") == BEFORE


def test_it_is_tried_again_more_and_more_seldom() -> None:
    watched, tried = guard.Guard(anew={frozenset(): 100.0}), []
    for number in range(20):
        with pytest.raises(OverBudget), watched.watching(Watch(), {}, 10):
            tried.append(number)
            raise OverBudget("it takes too long", "budget")
    assert tried == [0, 2, 5, 10, 19]
    assert watched.seconds(10) == 20.0


def test_what_many_rows_change_is_not_tried_where_little_is_computed_anew(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "A_CHANGE", 1e-4)
    many = [(x, x + 1) for x in range(100_000, 160_000, 2)]
    with Database(PROGRAM, {"edge": BEFORE}, "auto", "spark") as database:
        found = database.apply({"insert": {"edge": many}})
        assert database.stats.recomputed == "30,000 rows change at once, and computing anew is expected to take less time"
        assert found["path"].plus == set(many) and len(found["out"].plus) == len(many)
    with Database(PROGRAM, {"edge": BEFORE}, "auto", "spark", strict=True) as database:
        assert database.apply({"insert": {"edge": many}})["path"].plus == set(many), "it is tried, for recomputing is refused"
