"""What DuckDB evaluates for a database that stays: first answers of stored views, views that are recomputed, and `verify`; and the same by other ways.

What is prepared (a folder, an open database, files) is not counted.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from statistics import median
from unittest.mock import patch

from bench.graphs import Facts, arrow
from bench.workloads import Workload

LONG = 20.0  # seconds after which no further transaction is measured

Rounds = Callable[[int, int], None]


@dataclass(frozen=True)
class Outcome:
    """What one evaluation took; `rounds`, `actions` and `jobs` where the contender can tell."""

    seconds: float
    rows: int
    cpu: float | None = None  # where not all that the process did is measured
    rounds: int | None = None
    actions: int | None = None
    jobs: int | None = None


@contextmanager
def _timed() -> Iterator[list[float]]:
    """The seconds, and those of the processor, that what is done inside takes."""
    taken: list[float] = []
    started, used = time.perf_counter(), time.process_time()
    yield taken
    taken += [time.perf_counter() - started, time.process_time() - used]


def opened(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """A folder whose view was not stored before, opened with the view stored: so it is computed, and written to the disk."""
    import vigilog

    with tempfile.TemporaryDirectory() as folder:
        vigilog.open(workload.program, facts, data=folder, strategy="external").close()
        with _timed() as taken:
            database = vigilog.open(data=folder, strategy="materialized")
        with closing(database):
            return Outcome(taken[0], len(database.view(workload.answer)), cpu=taken[1])


def parquet(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """The same view computed from Parquet into a DuckDB file."""
    from duckdb import connect

    with tempfile.TemporaryDirectory() as folder:
        with closing(connect()) as connection:
            for name, columns in workload.columns.items():
                connection.register("given", arrow(columns, facts[name]))
                connection.execute(f"COPY given TO '{folder}/{name}.parquet'")
        with _timed() as taken:
            connection = connect(f"{folder}/views.duckdb")
            for name in workload.columns:
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
            connection.execute(f"CREATE TABLE answer AS {workload.duckdb}")
            rows = int(connection.execute("SELECT count(*) FROM answer").fetchall()[0][0])
            connection.close()
        return Outcome(taken[0], rows, cpu=taken[1])


def recomputed(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """Transactions for which a view that is not stored is evaluated before and after, as if each went beyond the budget; the median."""
    return _recomputed(workload, facts)


def recomputed_sqlite(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """The same without DuckDB, evaluated before and after each time, as if nothing stayed for the next transaction."""
    with patch("vigilog.core.extras.Extra.installed", False), patch("vigilog.executors.embedded.anew.LIGHT", -1):
        return _recomputed(workload, facts)


def _recomputed(workload: Workload, facts: Facts) -> Outcome:
    import vigilog

    times, cpu, rows = [], [], 0
    with closing(vigilog.open(workload.program, facts, strategy="external", budget=0)) as database:
        for number, change in enumerate(workload.changes(facts)[:12] if facts else ()):
            with _timed() as taken:
                effect = database.apply(change)
            assert database.stats.recomputed, "what goes beyond a budget of nothing is recomputed"
            if number > 1:
                times.append(taken[0])
                cpu.append(taken[1])
            else:
                rows += sum(len(delta.plus) + len(delta.minus) for delta in effect.values())
            if sum(times) > LONG:
                break
    return Outcome(median(times or [0.0]), rows, cpu=median(cpu or [0.0]))


def verified(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """`verify` of a folder that has all views stored, and some transactions."""
    import vigilog
    from vigilog.folder.verify import verify

    with (
        tempfile.TemporaryDirectory() as folder,
        closing(vigilog.open(workload.program, facts, data=folder, strategy="materialized")) as database,
    ):
        for number in range(5):
            database.apply({"insert": {"orders": [(-1 - number, number, 100)]}})
        with _timed() as taken:
            found = verify(database)
        assert found.fine, found.problems
        return Outcome(taken[0], len(facts["orders"]), cpu=taken[1])


def anew(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """All views computed, and their rows in this process."""
    from vigilog.engine.evaluate import start
    from vigilog.executors.watch import Watch
    from vigilog.language.check import check

    with _timed() as taken:
        program = check(workload.program).program
        with closing(start(program, facts, "auto", program.outputs, Watch())) as evaluation:
            for name in program.outputs:
                set(evaluation.rows(name))
    return Outcome(taken[0], len(facts["orders"]), cpu=taken[1])
