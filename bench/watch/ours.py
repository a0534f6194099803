"""Vigilog, with a strategy of maintenance."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import vigilog
from bench.graphs import Facts
from bench.watch.session import Changed, Cost, Rows
from bench.watch.workloads import Change, Workload


def offered(option: str) -> bool:
    """Whether `vigilog.open` takes an option."""
    return option in inspect.signature(vigilog.open).parameters


class Maintained:
    """A database of Vigilog."""

    def __init__(self, workload: Workload, facts: Facts | Path, **options: Any) -> None:
        self.database: vigilog.Database = vigilog.open(workload.program.text, facts, **options)

    def apply(self, change: Change) -> Mapping[str, Changed]:
        return self.database.apply(change)

    def view(self, name: str) -> Rows:
        return self.database.view(name)

    def cost(self) -> Cost:
        stats = self.database.stats
        used = sorted({strategy.name for strategy in self.database.strategies.values()})
        return Cost(stats.derived, stats.statements or stats.spark_jobs, stats.rounds, ", ".join(used), bool(stats.recomputed))

    def close(self) -> None:
        self.database.close()
