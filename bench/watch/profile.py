"""Where the time of a change goes: `python -m bench.watch.profile WORKLOAD [--strategy S] [--series NAME] [--quick]`.

Runs a series three times: plainly; with each SQL statement timed; under Python's profiler. Shows the statements that take longest with SQLite's plans for them, and the functions.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median
from typing import Any
from unittest.mock import patch

import vigilog
from bench.watch.workloads import Change, Workload, workloads
from vigilog.executors.embedded.views import EmbeddedViews


@dataclass
class Spent:
    """What one statement took, each time it ran; `runs` counts the rows of a statement for many."""

    parameters: Any
    ms: list[float] = field(default_factory=list)
    runs: int = 0
    rows: int = 0

    @property
    def typical(self) -> float:
        """In all, if it had always taken its median: other processes disturb that less."""
        return median(self.ms) * len(self.ms)


class Timed(sqlite3.Connection):
    """A connection that remembers, while `timing`, how long each statement took. What is fetched later is not in it."""

    timing = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.spent: dict[str, Spent] = {}

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or TimedCursor)

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        return self.cursor().executemany(sql, parameters)

    def note(self, sql: str, seconds: float, rows: int, runs: int, parameters: Any) -> None:
        found = self.spent.setdefault(sql, Spent(parameters))
        found.ms.append(seconds * 1000)
        found.runs += runs
        found.rows += max(rows, 0)


class TimedCursor(sqlite3.Cursor):
    def execute(self, sql: str, parameters: Any = (), /) -> TimedCursor:
        return self._timed(sql, 1, parameters, lambda: super(TimedCursor, self).execute(sql, parameters))

    def executemany(self, sql: str, parameters: Any, /) -> TimedCursor:
        given = list(parameters)
        return self._timed(sql, len(given), given[0] if given else (), lambda: super(TimedCursor, self).executemany(sql, given))

    def _timed(self, sql: str, runs: int, parameters: Any, run: Callable[[], object]) -> TimedCursor:
        began = time.perf_counter()
        run()
        if Timed.timing and isinstance(self.connection, Timed):
            self.connection.note(sql, time.perf_counter() - began, self.rowcount, runs, parameters)
        return self


def profile(workload: Workload, strategy: str, series: str, top: int) -> None:
    facts = workload.facts()
    planned = next(one for one in workload.series(facts) if one.name == series)
    began = time.perf_counter()
    with patch("vigilog.executors.embedded.tables.sqlite3.connect", partial(sqlite3.connect, factory=Timed)):
        database = vigilog.open(workload.program.text, facts, strategy=strategy)
    print(f"## {workload.name}, {series}, {strategy}\n\nloaded in {time.perf_counter() - began:.1f} s")
    del facts
    assert isinstance(database.views, EmbeddedViews), "statements are SQLite's"
    connection = database.views.tables.connection
    assert isinstance(connection, Timed)
    _apply(database, planned.changes[: planned.warm])
    changes = planned.changes[planned.warm :]
    plain, statements = _apply(database, changes)
    print(
        f"p50 {median(plain):.3f} ms, mean {mean(plain):.3f}, p95 {sorted(plain)[int(len(plain) * 0.95)]:.3f}; {len(changes)} changes, ",
        end="",
    )
    print(f"{median(statements):.0f} statements in the median, {max(statements)} at most\n")
    Timed.timing = True
    timed, _ = _apply(database, changes)
    Timed.timing = False
    _statements(connection, len(changes), mean(timed), top)
    profiler = cProfile.Profile()
    profiler.enable()
    _apply(database, changes)
    profiler.disable()
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).sort_stats("tottime").print_stats(25)
    print("```\n" + "\n".join(line for line in text.getvalue().splitlines() if line.strip()) + "\n```\n")
    database.close()


def _apply(database: vigilog.Database, changes: Sequence[Change]) -> tuple[list[float], list[int]]:
    times, statements = [], []
    for change in changes:
        began = time.perf_counter()
        database.apply(change)
        times.append((time.perf_counter() - began) * 1000)
        statements.append(database.stats.statements)
    return times, statements


def _statements(connection: Timed, changes: int, whole: float, top: int) -> None:
    """The statements, longest first, per change."""
    spent = connection.spent
    within = sum(sum(found.ms) for found in spent.values()) / changes
    typical = sum(found.typical for found in spent.values()) / changes
    number = sum(len(found.ms) for found in spent.values()) / changes
    print(
        f"{len(spent)} different statements, {number:.1f} runs a change; they take {within:.3f} ms of {whole:.3f} ms in the mean, {typical:.3f} by their medians; "
        "the rest is Python and fetching\n"
    )
    for sql, found in sorted(spent.items(), key=lambda item: -item[1].typical)[:top]:
        runs = f"{len(found.ms) / changes:.2f} runs of {median(found.ms) * 1000:.1f} µs"
        print(
            f"- **{found.typical / changes:.4f} ms a change** ({runs}, mean {mean(found.ms) * 1000:.1f}, {found.rows / len(found.ms):.1f} rows): `{sql}`"
        )
        for line in _plan(connection, sql, found.parameters):
            print(f"    - {line}")
    print()


def _plan(connection: sqlite3.Connection, sql: str, parameters: Any) -> list[str]:
    if sql.split()[0] not in ("SELECT", "INSERT", "DELETE", "WITH"):
        return []
    try:
        return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
    except sqlite3.Error as reason:
        return [f"no plan: {reason}"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.watch.profile", description="Shows where the time of a change goes.")
    parser.add_argument("workload")
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--series", default="1 row")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--top", type=int, default=12, help="how many statements to show")
    given = parser.parse_args()
    workload = next(workload for workload in workloads(given.quick) if workload.name == given.workload)
    profile(workload, given.strategy, given.series, given.top)


if __name__ == "__main__":
    main()
