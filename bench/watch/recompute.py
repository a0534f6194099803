"""What people do without maintenance: change the tables, compute the views anew, and compare them with what they were before."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bench.graphs import Facts, arrow
from bench.watch.session import Answer, Cost
from bench.watch.workloads import Change, Row, Workload

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FEW = 30  # so many rows go into a statement as text, which is faster for DuckDB than Arrow up to there


class Recomputed:
    """The tables of a workload, and its answer twice: as it is, and as it was. Which is which changes with every change.

    Several views are one answer, marked with their numbers: that is three times as fast on DuckDB as a table for each of 80 views.
    """

    def __init__(self, workload: Workload) -> None:
        self.base, self.views = workload.program.base, workload.program.views
        self.names = list(self.views)
        self.several = len(self.names) > 1
        self.columns, self.query = answer(workload)
        self.turn = 0

    def cost(self) -> Cost:
        return Cost()

    @property
    def now(self) -> str:
        return f"answer_{self.turn}"

    @property
    def comparison(self) -> str:
        """A query for the rows that came, marked 1, and those that went, marked 0."""
        new, old = self.now, f"answer_{1 - self.turn}"
        return (
            f"SELECT 1, * FROM (SELECT * FROM {new} EXCEPT SELECT * FROM {old}) "
            f"UNION ALL SELECT 0, * FROM (SELECT * FROM {old} EXCEPT SELECT * FROM {new})"
        )

    def selection(self, name: str) -> str:
        """A query for the rows of one view."""
        columns = ", ".join(self.views[name].columns) if not self.several else ", ".join(self.columns[1:])
        return f"SELECT {columns} FROM {self.now}" + (f" WHERE view = {self.names.index(name)}" if self.several else "")

    def answers(self, marked: Iterable[Row]) -> Mapping[str, Answer]:
        return answers(self.names, marked)


def answer(workload: Workload) -> tuple[tuple[str, ...], str]:
    """The columns of a workload's answer and a query for it."""
    views = list(workload.program.views.values())
    if len(views) == 1:
        return views[0].columns, views[0].sql
    columns = tuple(f"c{place}" for place in range(len(views[0].columns)))
    assert all(len(view.columns) == len(columns) for view in views), "views that share an answer have equally many columns"
    parts = []
    for number, view in enumerate(views):
        renamed = ", ".join(f"q.{old} AS {new}" for old, new in zip(view.columns, columns, strict=True))
        parts.append(f"SELECT {number} AS view, {renamed} FROM ({view.sql}) q")
    return ("view", *columns), " UNION ALL ".join(parts)


def answers(names: Sequence[str], marked: Iterable[Row]) -> Mapping[str, Answer]:
    """What came and went, view by view, from rows that begin with a mark and, if there are several views, a number."""
    plus: dict[str, list[Row]] = {name: [] for name in names}
    minus: dict[str, list[Row]] = {name: [] for name in names}
    if len(names) == 1:
        for row in marked:
            (plus if row[0] else minus)[names[0]].append(row[1:])
    else:
        for row in marked:
            (plus if row[0] else minus)[names[row[1]]].append(row[2:])
    return {name: Answer(plus[name], minus[name]) for name in names}


class SqliteRecomputed(Recomputed):
    def __init__(self, workload: Workload, facts: Facts) -> None:
        super().__init__(workload)
        self.connection = in_memory()
        for name, columns in self.base.items():
            create(self.connection, name, columns)
            fill(self.connection, name, columns, facts[name])
        for table, column in workload.program.indexes:
            self.connection.execute(f"CREATE INDEX {table}_{column} ON {table} ({column})")
        for turn in (1, 0):
            create(self.connection, f"answer_{turn}", self.columns)
        self.connection.execute(f"INSERT INTO {self.now} {self.query}")

    def apply(self, change: Change) -> Mapping[str, Answer]:
        execute = self.connection.execute
        self.turn = 1 - self.turn
        with transaction(self.connection):
            for operation, by_relation in change.items():
                for name, rows in by_relation.items():
                    (remove if operation == "delete" else fill)(self.connection, name, self.base[name], rows)
            execute(f"DELETE FROM {self.now}")
            execute(f"INSERT INTO {self.now} {self.query}")
            return self.answers(execute(self.comparison))

    def view(self, name: str) -> Iterable[Row]:
        return iter(self.connection.execute(self.selection(name)))

    def close(self) -> None:
        self.connection.close()


class DuckdbRecomputed(Recomputed):
    def __init__(self, workload: Workload, facts: Facts) -> None:
        from duckdb import connect

        super().__init__(workload)
        self.connection: DuckDBPyConnection = connect()
        for name, columns in self.base.items():
            self.connection.register("given", arrow(columns, facts[name]))
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            self.connection.unregister("given")
        self.connection.execute(f"CREATE TABLE {self.now} AS {self.query}")

    def apply(self, change: Change) -> Mapping[str, Answer]:
        execute = self.connection.execute
        self.turn = 1 - self.turn
        execute("BEGIN")
        for operation, by_relation in change.items():
            for name, rows in by_relation.items():
                self._change(operation, name, self.base[name], rows)
        execute(f"CREATE OR REPLACE TABLE {self.now} AS {self.query}")
        found = execute(self.comparison).fetchall()
        execute("COMMIT")
        return self.answers(found)

    def _change(self, operation: str, name: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        few = len(rows) <= FEW
        if few:
            source = "VALUES " + ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        else:
            self.connection.register("given", arrow(tuple(columns), list(rows)))
            source = "SELECT * FROM given"
        if operation == "insert":
            self.connection.execute(f"INSERT INTO {name} {source}")
        else:
            self.connection.execute(f"DELETE FROM {name} WHERE ({', '.join(columns)}) IN ({source})")
        if not few:
            self.connection.unregister("given")

    def view(self, name: str) -> Iterable[Row]:
        return iter(self.connection.execute(self.selection(name)).fetchall())

    def close(self) -> None:
        self.connection.close()


# -- tables in SQLite, also for the programs written by hand


def in_memory() -> sqlite3.Connection:
    """A database in memory. (With the name "" it would be a temporary file that is never written, whose every commit walks all its pages.)"""
    connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=1024)
    for pragma in ("cache_size=-2000000", "journal_mode=MEMORY", "synchronous=OFF", "temp_store=MEMORY", "locking_mode=EXCLUSIVE"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def create(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
    declared = ", ".join(f"{column} INTEGER NOT NULL" for column in columns)
    connection.execute(f"CREATE TABLE {table} ({declared}, PRIMARY KEY ({', '.join(columns)})) WITHOUT ROWID")


def fill(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    with transaction(connection):
        connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' for _ in columns)})", rows)


def remove(connection: sqlite3.Connection, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    connection.executemany(f"DELETE FROM {table} WHERE {' AND '.join(f'{column} = ?' for column in columns)}", rows)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    yield
    connection.execute("COMMIT")
