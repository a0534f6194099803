"""Who computes it. Each goes from rows in Python to an answer that is stored (counted only, where the name says so), and says what that took.

What a contender needs is imported when it is called, so that a process has only its own contender's in memory.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.graphs import Facts, arrow
from bench.lasting import Outcome, Rounds, anew, opened, parquet, recomputed, recomputed_sqlite, verified
from bench.workloads import POINTS_TO_ROUND, POINTS_TO_START, Workload

if TYPE_CHECKING:
    from vigilog.executors.watch import Watch

Compute = Callable[[Workload, Facts, Rounds], Outcome]


def embedded(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    from vigilog.executors.watch import Watch

    return _vigilog(workload, facts, "embedded", Watch())


def bulk(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    from vigilog.executors.watch import Watch

    return _vigilog(workload, facts, "duckdb", Watch())


def auto(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    from vigilog.executors.watch import Watch

    return _vigilog(workload, facts, "auto", Watch())


def spark(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    from vigilog.executors.watch import Watch

    return _vigilog(
        workload, facts, "spark", Watch(report=lambda stage: each(stage.round, stage.rows) if stage.round and stage.total is None else None)
    )


def _vigilog(workload: Workload, facts: Facts, engine: str, watch: Watch) -> Outcome:
    from vigilog.engine.evaluate import start
    from vigilog.language.check import check

    started = time.perf_counter()
    program = check(workload.program).program
    with closing(start(program, facts, engine, [workload.answer], watch)) as evaluation:
        rows = evaluation.count(workload.answer)
        seconds = time.perf_counter() - started
        stats = evaluation.stats
        if engine != "spark":
            return Outcome(seconds, rows, rounds=stats.rounds or None)
        return Outcome(seconds, rows, rounds=stats.rounds, actions=stats.statements, jobs=stats.spark_jobs)


def sqlite_counted(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    return _sqlite(workload, facts, "SELECT count(*) FROM ({query})")


def sqlite_stored(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """Into a table like those of the embedded executor: a set, and searchable."""
    create = "CREATE TABLE answer (x INTEGER NOT NULL, y INTEGER NOT NULL, PRIMARY KEY (x, y)) WITHOUT ROWID"
    return _sqlite(workload, facts, create, "INSERT INTO answer {query}", "SELECT count(*) FROM answer")


def _sqlite(workload: Workload, facts: Facts, *statements: str) -> Outcome:
    started = time.perf_counter()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for name, columns in workload.columns.items():
            declared = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
            connection.execute(f"CREATE TABLE {name} ({declared}, PRIMARY KEY ({', '.join(columns)})) WITHOUT ROWID")
            connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in columns)})", facts[name])
            connection.execute("COMMIT")
        for statement in statements:
            cursor = connection.execute(statement.format(query=workload.sqlite))
        rows = int(cursor.fetchone()[0])
        return Outcome(time.perf_counter() - started, rows)


def duckdb(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    from duckdb import connect

    started = time.perf_counter()
    with closing(connect()) as connection:
        for name, columns in workload.columns.items():
            connection.register("given", arrow(columns, facts[name]))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.execute(f"CREATE TABLE answer AS {workload.duckdb}")
        counted = connection.execute("SELECT count(*) FROM answer").fetchall()
        return Outcome(time.perf_counter() - started, int(counted[0][0]))


def duckdb_loop(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """Semi-naive rounds, by hand, for the points-to analysis."""
    from duckdb import connect

    started = time.perf_counter()
    with closing(connect(config={"preserve_insertion_order": False})) as connection:
        for name, columns in workload.columns.items():
            connection.register("given", arrow(columns, facts[name]))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        for statement in POINTS_TO_START:
            connection.execute(statement)

        def count(table: str) -> int:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])

        rounds, fresh = 0, 1
        while fresh:
            for statement in POINTS_TO_ROUND:
                connection.execute(statement)
            rounds, fresh = rounds + 1, count("points_new") + count("heap_new")
        return Outcome(time.perf_counter() - started, count("points"), rounds=rounds)


def spark_loop(workload: Workload, facts: Facts, each: Rounds) -> Outcome:
    """In the same session as the Spark executor, so with as many shuffle partitions as cores: Spark's own 200 would be slower."""
    from bench.loops import LOOPS
    from vigilog.spark.session import session

    reached = 0

    def round_(number: int, rows: int) -> None:
        nonlocal reached
        reached = number
        each(number, rows)

    opened = session()
    started = time.perf_counter()
    frames = {name: opened.createDataFrame(arrow(columns, facts[name])) for name, columns in workload.columns.items()}
    rows = LOOPS[workload.loop](frames, round_)
    return Outcome(time.perf_counter() - started, rows, rounds=reached, actions=reached + 1)


@dataclass(frozen=True)
class Contender:
    """`ours` is drawn stronger; `heavy` is measured less often, and `capped` is given up on after a while."""

    name: str
    title: str
    compute: Compute
    ours: bool = False
    heavy: bool = False
    capped: bool = False

    short: bool = False  # whether it has a quarter of the memory that `bulk` takes

    def asked(self, workload: Workload) -> bool:
        return self.name in workload.who

    def can(self, workload: Workload) -> bool:
        if self.name.startswith("sqlite"):
            return workload.sqlite is not None
        return self.name != "duckdb" or workload.duckdb is not None


CONTENDERS = (
    Contender("embedded", "Vigilog embedded", embedded, ours=True),
    Contender("bulk", "Vigilog on DuckDB", bulk, ours=True),
    Contender("auto", "Vigilog, auto", auto, ours=True),
    Contender("short", "Vigilog on DuckDB, a quarter of the memory", bulk, ours=True, short=True),
    Contender("duckdb-loop", "a loop on DuckDB, by hand", duckdb_loop),
    Contender("sqlite-counted", "SQLite, counted", sqlite_counted),
    Contender("sqlite-stored", "SQLite, stored", sqlite_stored),
    Contender("duckdb", "DuckDB", duckdb),
    Contender("spark", "Vigilog Spark", spark, ours=True, heavy=True),
    Contender("spark-loop", "plain Spark loop", spark_loop, heavy=True, capped=True),
    Contender("opened", "Vigilog, opening", opened, ours=True),
    Contender("parquet", "DuckDB, from Parquet", parquet),
    Contender("recomputed", "Vigilog, as it chooses", recomputed, ours=True),
    Contender("recomputed-sqlite", "Vigilog, on SQLite", recomputed_sqlite, ours=True),
    Contender("verified", "Vigilog, verify", verified, ours=True),
    Contender("anew", "Vigilog, all views anew", anew, ours=True),
)
