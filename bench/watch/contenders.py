"""Who keeps the views true. What a contender needs is imported when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.graphs import Facts
from bench.watch.session import Session
from bench.watch.workloads import Workload

Open = Callable[[Workload, Facts | Path], Session]


def _strategy(name: str) -> Open:
    def opened(workload: Workload, facts: Facts | Path) -> Session:
        from bench.watch.ours import Maintained

        return Maintained(workload, facts, strategy=name)

    return opened


def _on_spark(workload: Workload, facts: Facts | Path) -> Session:
    from bench.watch.ours import Maintained

    return Maintained(workload, facts, engine="spark")


def _by_hand(workload: Workload, facts: Facts | Path) -> Session:
    from bench.watch.by_hand import PROGRAMS

    assert workload.by_hand is not None and not isinstance(facts, Path)
    return PROGRAMS[workload.by_hand](workload, facts)


def _sqlite(workload: Workload, facts: Facts | Path) -> Session:
    from bench.watch.recompute import SqliteRecomputed

    assert not isinstance(facts, Path)
    return SqliteRecomputed(workload, facts)


def _duckdb(workload: Workload, facts: Facts | Path) -> Session:
    from bench.watch.recompute import DuckdbRecomputed

    assert not isinstance(facts, Path)
    return DuckdbRecomputed(workload, facts)


def _spark(workload: Workload, facts: Facts | Path) -> Session:
    from bench.watch.recompute_spark import SparkRecomputed

    return SparkRecomputed(workload, facts)


@dataclass(frozen=True)
class Contender:
    """`needs` is the option of `vigilog.open` without which there is no such contender."""

    name: str
    title: str
    open: Open
    colour: str
    needs: str = ""

    @property
    def spark(self) -> bool:
        return self.name in ("spark", "on-spark")

    def can(self, workload: Workload) -> bool:
        """Whether this contender is meant for a workload."""
        if self.name in ("duckdb", "sqlite", "spark"):
            return self.name in workload.peers
        if workload.files is not None:
            return self.name == "on-spark"
        match self.name:
            case "counted":
                return not workload.program.recursive
            case "by-hand":
                return workload.by_hand is not None
            case _:
                return self.name != "on-spark"

    def missing(self) -> str:
        """Why this contender cannot be had today, empty if it can."""
        from bench.watch.ours import offered

        if not self.needs or offered(self.needs):
            return ""
        return f"vigilog.open takes no {self.needs}= yet"


CONTENDERS = (
    Contender("auto", "Vigilog, auto", _strategy("auto"), "#08306b"),
    Contender("materialized", "Vigilog, materialized", _strategy("materialized"), "#0b6fb8"),
    Contender("external", "Vigilog, external", _strategy("external"), "#4fa3d9"),
    Contender("counted", "Vigilog, counted", _strategy("counted"), "#a3cdea"),
    Contender("on-spark", "Vigilog on Spark", _on_spark, "#c8470f", "engine"),
    Contender("by-hand", "by hand on SQLite", _by_hand, "#5a9e4b"),
    Contender("duckdb", "DuckDB, recompute and compare", _duckdb, "#c9b458"),
    Contender("sqlite", "SQLite, recompute and compare", _sqlite, "#999999"),
    Contender("spark", "Spark, recompute and compare", _spark, "#f4b393"),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
