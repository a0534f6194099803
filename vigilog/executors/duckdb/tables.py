"""Relations as DuckDB tables, in memory, and on the disk where memory ends."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import chain, islice
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from vigilog.core.errors import Stopped, VigilogError
from vigilog.core.rows import transposed
from vigilog.core.values import Row
from vigilog.executors.duckdb.arrays import array_of
from vigilog.executors.duckdb.settings import Settings
from vigilog.executors.embedded.tables import Tables
from vigilog.executors.watch import Watch
from vigilog.planning.duckdb import COLUMN, DuckDbDialect, Function
from vigilog.planning.layout import Layout
from vigilog.planning.sqlite import decoder, encoder

T = TypeVar("T")

AGAIN = 0.05  # seconds until what was interrupted is interrupted again
AT_ONCE = 100_000  # rows that go in or out together
_LIMITS = ("Max expression depth", "stack", "too many", "maximum")


@dataclass(frozen=True)
class Statement:
    """A statement and its parameters."""

    sql: str
    parameters: Mapping[str, str | float]

    @property
    def used(self) -> dict[str, str | float]:
        """The parameters that are in the statement; DuckDB takes no others."""
        return {name: value for name, value in self.parameters.items() if re.search(rf"\${name}\b", self.sql)}


class DuckTables:
    """Relations in a DuckDB database of their own. Each is a table without keys: whoever adds rows adds only such as are not there.

    Values are stored as SQLite stores them. What is too large for the memory limit goes to files in the folder of the settings.
    """

    def __init__(self, layout: Layout, watch: Watch, settings: Settings | None = None) -> None:
        self.layout, self.watch, self.settings = layout, watch, settings or Settings.from_environment()
        self.dialect = DuckDbDialect()
        self.arriving = fresh("arriving", set(layout.taken))
        self.registered: set[str] = set()
        self.statements = 0
        self.failed: VigilogError | None = None  # why a function failed that a statement called
        self.connection = duckdb.connect(":memory:", config=self.settings.config)
        self.close = weakref.finalize(
            self, self.connection.close
        )  # DuckDB complains at exit of a connection that has functions and is open
        self.sizes = dict.fromkeys(layout.program.relations, 0)

    def create(self, relation: str, table: str | None = None) -> None:
        self.execute(f"CREATE TABLE {quote(table or self.layout.tables[relation])} ({self.columns(relation, typed=True)})")

    def columns(self, relation: str, *, typed: bool = False) -> str:
        """The columns of a relation, as a list."""
        columns, types = self.layout.columns[relation], self.layout.types[relation]
        return ", ".join(
            f"{quote(name)} {COLUMN[type_.kind]}" if typed else quote(name) for name, type_ in zip(columns, types, strict=True)
        )

    def execute(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Runs a statement; gives what it answers, which is little."""
        if len(self.registered) < len(self.dialect.functions):
            self._register()
        self.statements += 1
        with self._telling():
            return self.connection.execute(sql, parameters).fetchall()

    def run(self, statement: Statement) -> int:
        """Runs a statement that adds rows, or counts some; gives their number. It may take long, and Ctrl-C interrupts it."""
        rows = self._interruptible(lambda: self.execute(statement.sql, statement.used))
        return int(rows[0][0]) if rows else 0

    def _interruptible(self, call: Callable[[], T]) -> T:
        """Makes a call in a thread of its own: DuckDB may work in the thread that asks, which then hears of no signal until the work is done."""
        if threading.current_thread() is not threading.main_thread():
            return call()
        with ThreadPoolExecutor(1) as pool:
            made = pool.submit(call)
            try:
                return made.result()
            except KeyboardInterrupt:
                while not made.done():
                    self.connection.interrupt()  # which does nothing before a statement has begun
                    wait([made], AGAIN)
                raise

    def insert(self, relation: str, rows: Iterable[Row]) -> None:
        """Adds rows that are values of the relation's types; those it has already do nothing."""
        table = quote(self.layout.tables[relation])
        fresh = not self.sizes[relation]
        source = table if fresh else quote(f"{self.layout.tables[relation]} given")
        if not fresh:
            self.execute(f"CREATE OR REPLACE TEMP TABLE {source} ({self.columns(relation, typed=True)})")
        added = sum(self._append(source, batch) for batch in self._batches(relation, rows))
        if added and not (fresh and isinstance(rows, AbstractSet)):
            without = "" if fresh else f" EXCEPT SELECT * FROM {table}"
            if fresh:
                distinct = f"SELECT count(*) FROM (SELECT DISTINCT * FROM {source})"
                if self.execute(distinct)[0][0] != added:
                    self.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT DISTINCT * FROM {source}")
            else:
                self.execute(f"INSERT INTO {table} SELECT DISTINCT * FROM {source}{without}")
        if not fresh:
            self.execute(f"DROP TABLE {source}")
        self.count(relation)

    def take(self, relation: str, tables: Tables) -> None:
        """Takes the rows of a relation over from SQLite as they are stored; there are none yet."""
        total = 0
        if self.watch.report is not None:
            total = tables.count(relation)
            self.watch.begin(f"reading {relation}")
        self.copy(relation, self.layout.tables[relation], tables, tables.layout.tables[relation], total)
        self.count(relation)

    def copy(self, relation: str, table: str, tables: Tables, other: str, total: int = 0) -> int:
        """Adds the rows of one of SQLite's tables for rows of a relation to one of these; gives their number. If that is known to be `total`, the rows are counted as they come."""
        cursor = tables.execute(f"SELECT {self.columns(relation)} FROM {quote(other)}")
        copied = 0
        while some := cursor.fetchmany(AT_ONCE):
            self.watch.tick()
            copied += self._append(quote(table), self._stored(relation, transposed(some)))
            if total:
                self.watch.part(copied, total, "row")
        return copied

    def give(self, relation: str, tables: Tables) -> None:
        """Adds the rows of a relation to its table on SQLite, in the order in which they lie there."""
        names, given = self.columns(relation), 0
        for columns in self.stored(f"SELECT {names} FROM {quote(self.layout.tables[relation])} ORDER BY {names}"):
            self.watch.tick()
            tables.insert_stored(relation, zip(*columns, strict=True))
            given += len(columns[0])
            self.watch.part(given, self.sizes[relation], "row")

    def _stored(self, relation: str, columns: Sequence[Sequence[Any]]) -> pa.Table:
        """Columns of stored values as DuckDB takes them."""
        arrays = [array_of(COLUMN[type_.kind], values) for type_, values in zip(self.layout.types[relation], columns, strict=True)]
        return pa.Table.from_arrays(arrays, [f"c{number}" for number in range(len(arrays))])

    def delete(self, relation: str, rows: Iterable[Row]) -> None:
        """Takes rows away that are there."""
        table, source = quote(self.layout.tables[relation]), quote(f"{self.layout.tables[relation]} given")
        same = " AND ".join(f"gone.{column} = {table}.{column}" for column in map(quote, self.layout.columns[relation]))
        self.execute(f"CREATE OR REPLACE TEMP TABLE {source} ({self.columns(relation, typed=True)})")
        for batch in self._batches(relation, rows):
            self._append(source, batch)
        self.execute(f"DELETE FROM {table} WHERE EXISTS (SELECT 1 FROM {source} AS gone WHERE {same})")
        self.execute(f"DROP TABLE {source}")
        self.count(relation)

    def _append(self, table: str, batch: pa.Table) -> int:
        self.connection.register(self.arriving, batch)
        try:
            self.execute(f"INSERT INTO {table} SELECT * FROM {quote(self.arriving)}")
        finally:
            self.connection.unregister(self.arriving)
        return int(batch.num_rows)

    def _batches(self, relation: str, rows: Iterable[Row]) -> Iterator[pa.Table]:
        types = self.layout.types[relation]
        bare = not self.layout.program.relations[relation].attributes
        encoders = [encoder(type_) for type_ in types]
        left = iter(rows)
        while some := list(islice(left, AT_ONCE)):
            self.watch.tick()
            cells = [[1] * len(some)] if bare else transposed(some)
            stored = [
                values if encode is None or bare else list(map(encode, values)) for encode, values in zip(encoders, cells, strict=True)
            ]
            yield self._stored(relation, stored)

    def count(self, relation: str) -> int:
        self.sizes[relation] = int(self.execute(f"SELECT count(*) FROM {quote(self.layout.tables[relation])}")[0][0])
        return self.sizes[relation]

    def rows(self, relation: str) -> Iterator[Row]:
        """All rows as values, sorted."""
        if not self.layout.program.relations[relation].attributes:
            return iter([()] * self.count(relation))
        columns = self.columns(relation)
        return self.decoded(relation, f"SELECT {columns} FROM {quote(self.layout.tables[relation])} ORDER BY {columns}")

    def decoded(self, relation: str, sql: str) -> Iterator[Row]:
        """The rows of a query for rows of a relation, as values."""
        if not self.layout.program.relations[relation].attributes:
            return (() for columns in self.stored(sql) for _ in columns[0])
        decoders = [decoder(type_) for type_ in self.layout.types[relation]]
        return chain.from_iterable(
            zip(*(cells if decode is None else map(decode, cells) for decode, cells in zip(decoders, columns, strict=True)), strict=True)
            for columns in self.stored(sql)
        )

    def stored(self, sql: str) -> Iterator[list[list[Any]]]:
        """The rows of a query as they are stored, many at a time, in lists of columns."""
        self.statements += 1
        with self.bounded(), self._telling():
            for batch in self.connection.sql(sql).to_arrow_reader(AT_ONCE):
                self.watch.tick()
                yield [column.to_pylist() for column in batch.columns]

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What DuckDB says is wrong is told as errors of ours."""
        try:
            yield
        except (duckdb.Error, RuntimeError, OSError, pa.ArrowException) as reason:
            raise self._translated(reason) from None

    def _register(self) -> None:
        """Makes the functions that the dialect has come to use known to DuckDB."""
        for name, function in self.dialect.functions.items():
            if name not in self.registered:
                compute = self._failing(function)
                types = [self.connection.dtype(each) for each in function.takes]
                given = self.connection.dtype(function.gives)
                self.connection.create_function(name, compute, types, given, null_handling="special")  # type: ignore[call-overload]  # takes the name, too
                self.registered.add(name)

    def _failing(self, function: Function) -> Callable[..., Any]:
        """The function, of which is remembered why it failed: DuckDB only says that one did."""
        compute = function.compute

        def called(*args: Any) -> Any:
            try:
                return compute(*args)
            except VigilogError as reason:
                self.failed = reason
                raise

        parts = [Parameter(f"a{number}", Parameter.POSITIONAL_ONLY) for number in range(len(function.takes))]
        called.__signature__ = Signature(parts)  # type: ignore[attr-defined]  # where DuckDB looks for the number of arguments
        return called

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """What is done inside is interrupted when the time of the watch is over."""
        left = self.watch.remaining
        if left is None:
            yield
            return
        over = threading.Event()

        def interrupt() -> None:
            if not over.wait(left):
                while not over.wait(AGAIN):
                    self.connection.interrupt()

        timer = threading.Thread(target=interrupt, daemon=True)
        timer.start()
        try:
            yield
        finally:
            over.set()
            timer.join()

    def _translated(self, reason: Exception) -> BaseException:
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return failed
        if isinstance(reason, duckdb.InterruptException) or "interrupted" in str(reason):
            return self.watch.timed_out() if self.watch.expired else KeyboardInterrupt()
        if isinstance(reason, duckdb.OutOfMemoryException):
            return OutOfMemory(self.watch.doing, self.settings)
        if isinstance(reason, duckdb.IOException):
            return Stopped(
                f"{self.watch.doing} cannot use the folder {self.settings.spill} for what does not fit into memory: {reason}", "disk"
            )
        if any(limit in str(reason) for limit in _LIMITS):
            return Stopped(
                f"{self.watch.doing}: a rule is too large for DuckDB ({reason}); name a part of it as a relation of its own", "limit"
            )
        return reason


class OutOfMemory(Stopped):
    """Memory, and the room on the disk beside it, have come to an end."""

    def __init__(self, doing: str, settings: Settings) -> None:
        super().__init__(
            f"{doing} needs more memory than {settings.told}; allow more with --memory, or name a folder with --spill", "memory"
        )


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fresh(name: str, taken: set[str]) -> str:
    """A name like this that no other table has.

    >>> taken = {"new"}
    >>> fresh("new", taken), fresh("new", taken)
    ('new_', 'new__')
    """
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name
