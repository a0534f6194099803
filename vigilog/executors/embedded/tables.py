"""Relations as SQLite tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vigilog.core.errors import Stopped
from vigilog.core.values import Row
from vigilog.executors.watch import Watch
from vigilog.planning.indexes import Order, needed_indexes
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search
from vigilog.planning.sqlite import AFFINITY, AGGREGATES, SqliteDialect, decoder, encoder

_LIMITS = ("stack overflow", "too many", "at most", "too deep", "Expression tree", "too big", "too large")
FEW = 20  # up to so many rows are looked up one by one
CACHE_KIB = 2_000_000
STEPS_BETWEEN_LOOKS = 200_000


class Tables:
    """A private SQLite database: in memory if it is `resident`; otherwise until it outgrows its cache, then in a temporary file.

    A resident one commits at once; SQLite looks through all pages of the other at each commit.

    Each relation is a table without rowid whose primary key are all its columns, so a relation is a set. Indexes are made when
    a statement is about to search by columns that no index begins with.
    """

    def __init__(self, layout: Layout, watch: Watch, *, resident: bool = False) -> None:
        self.layout, self.watch = layout, watch
        self.dialect = SqliteDialect()
        self.undefined = 0
        self.statements = self.labels = 0
        self.orders: dict[str, list[Order]] = {}
        self.added: list[tuple[str, Order]] = []  # indexes made since the transaction began
        self.registered: set[str] = set()
        self.encoders: dict[str, list[Callable[[Any], Any] | None] | None] = {}  # None for a relation whose rows are stored as they are
        self.decoders: dict[str, list[Callable[[Any], Any] | None] | None] = {}
        self.stopped: BaseException | None = None
        self.connection = sqlite3.connect(":memory:" if resident else "", isolation_level=None, cached_statements=10_000)
        self.cursor = self.connection.cursor()
        for pragma in (f"cache_size=-{CACHE_KIB}", "journal_mode=OFF", "synchronous=OFF", "temp_store=MEMORY", "locking_mode=EXCLUSIVE"):
            self.connection.execute(f"PRAGMA {pragma}")
        self.connection.create_function("v_undefined", 0, self._count_undefined)
        for name, class_ in AGGREGATES.items():
            self.connection.create_aggregate(name, 1, class_)
        self.connection.set_progress_handler(self._look_up, STEPS_BETWEEN_LOOKS)

    def label(self) -> str:
        """A prefix for names of tables that nothing else has."""
        self.labels += 1
        return str(self.labels)

    def create(self, relation: str, table: str | None = None) -> str:
        """Makes an empty table for a relation's rows; gives its quoted name."""
        types = self.layout.types[relation]
        columns = [f"{quote(name)} {AFFINITY[t.kind]} NOT NULL" for name, t in zip(self.layout.columns[relation], types, strict=True)]
        name = quote(table or self.layout.tables[relation])
        key = ", ".join(map(quote, self.layout.columns[relation]))
        self.execute(f"CREATE TABLE {name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITHOUT ROWID")
        if table is None:
            self.orders[relation] = [tuple(range(len(types)))]
        return name

    def create_numbered(self, relation: str, table: str) -> None:
        """Makes an empty table for some rows of a relation, which are numbered as they come."""
        columns, types = self.layout.columns[relation], self.layout.types[relation]
        defined = ", ".join(f"{quote(name)} {AFFINITY[t.kind]} NOT NULL" for name, t in zip(columns, types, strict=True))
        self.execute(f"CREATE TABLE {quote(table)} ({defined}, UNIQUE ({', '.join(map(quote, columns))}))")

    def numbering(self, relation: str) -> str:
        """What the number of a row is called in a numbered table: SQLite has three names for it, one of which no column has."""
        taken = {column.lower() for column in self.layout.columns[relation]}
        return next(name for name in ("rowid", "oid", "_rowid_") if name not in taken)

    def execute(self, sql: str, parameters: Mapping[str, Any] | tuple[Any, ...] = ()) -> sqlite3.Cursor:
        self.register()
        self.statements += 1
        try:
            return self.connection.execute(sql, parameters)
        except sqlite3.OperationalError as reason:
            raise self.translated(reason) from None

    def insert(self, relation: str, rows: Iterable[Row]) -> None:
        """Adds rows that are values of the relation's types; those it has already do nothing."""
        self.insert_stored(relation, self.encoded(relation, rows))

    def insert_stored(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        marks = ", ".join("?" for _ in self.layout.columns[relation])
        try:
            self.execute("BEGIN")
            self.connection.executemany(f"INSERT OR IGNORE INTO {quote(self.layout.tables[relation])} VALUES ({marks})", rows)
            self.execute("COMMIT")
        except sqlite3.OperationalError as reason:
            raise self.translated(reason) from None

    def count(self, relation: str) -> int:
        return int(self.execute(f"SELECT count(*) FROM {quote(self.layout.tables[relation])}").fetchone()[0])

    def rows(self, relation: str) -> Iterator[Row]:
        """All rows as values, sorted."""
        return self.rows_of(relation, self.layout.tables[relation], order=True)

    def rows_of(self, relation: str, table: str, *, order: bool = False) -> Iterator[Row]:
        """All rows of a table for rows of a relation, as values."""
        columns = ", ".join(map(quote, self.layout.columns[relation]))
        cursor = self.execute(f"SELECT {columns} FROM {quote(table)}{f' ORDER BY {columns}' if order else ''}")
        if not self.layout.program.relations[relation].attributes:
            return (() for _ in cursor)
        if relation not in self.decoders:
            decoders = [decoder(type_) for type_ in self.layout.types[relation]]
            self.decoders[relation] = decoders if any(decoders) else None
        found = self.decoders[relation]
        return iter(cursor) if found is None else (tuple([d(v) if d else v for d, v in zip(found, row, strict=True)]) for row in cursor)

    def contents(self, relation: str) -> Contents:
        """A relation as something a row can be looked up in."""
        return Contents(self, relation)

    def serve(self, searches: Iterable[Search]) -> None:
        """Makes the indexes that these searches need and that are not there yet."""
        by_relation: dict[str, list[frozenset[int]]] = {}
        for search in searches:
            by_relation.setdefault(search.relation, []).append(search.columns)
        for relation, columns in by_relation.items():
            for order in needed_indexes(columns, self.orders[relation]):
                self._index(relation, order)
                self.orders[relation].append(order)
                self.added.append((relation, order))

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """What is done inside happens as a whole, or, after an error or without `keep`, not at all. Indexes made inside stay."""
        self.added = []
        self.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._roll_back()
            raise
        if keep:
            self.execute("COMMIT")
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        self.connection.rollback()
        for relation, order in self.added:
            self._index(relation, order)

    def _index(self, relation: str, order: Order) -> None:
        table = self.layout.tables[relation]
        name = quote(f"{table}_by_{'_'.join(str(column) for column in order)}")
        over = ", ".join(quote(self.layout.columns[relation][column]) for column in order)
        self.execute(f"CREATE INDEX {name} ON {quote(table)} ({over})")

    def close(self) -> None:
        self.connection.close()

    def encoded(self, relation: str, rows: Iterable[Row]) -> Iterable[tuple[Any, ...]]:
        """Rows as they are stored."""
        if relation not in self.encoders:
            encoders = [encoder(type_) for type_ in self.layout.types[relation]]
            self.encoders[relation] = encoders if any(encoders) else None
        if not self.layout.program.relations[relation].attributes:
            return ((1,) for _ in rows)
        found = self.encoders[relation]
        if found is None:
            return rows
        return (tuple([e(v) if e else v for e, v in zip(found, row, strict=True)]) for row in rows)

    def register(self) -> None:
        """Makes the functions that the dialect has come to use known to SQLite."""
        if len(self.registered) < len(self.dialect.functions):
            for name, (arity, function) in self.dialect.functions.items():
                if name not in self.registered:
                    self.connection.create_function(name, arity, function, deterministic=True)
                    self.registered.add(name)

    def _count_undefined(self) -> int:
        self.undefined += 1
        return 0

    def _look_up(self) -> int:
        """Called by SQLite every so many steps; anything but 0 stops the statement. Ctrl-C arrives here, too."""
        if self.watch.expired:
            self.stopped = self.watch.timed_out()
        return int(self.stopped is not None)

    def translated(self, reason: sqlite3.OperationalError) -> BaseException:
        if self.stopped is not None:
            return self.stopped
        if "interrupted" in str(reason) or "user-defined" in str(reason):  # only Ctrl-C makes our functions raise
            return KeyboardInterrupt()
        if any(limit in str(reason) for limit in _LIMITS):
            return Stopped(
                f"{self.watch.doing}: a rule is too large for SQLite ({reason}); name a part of it as a relation of its own", "limit"
            )
        if "full" in str(reason):
            return Stopped(f"{self.watch.doing}: the disk is full", "disk")
        return reason


class Contents:
    """A relation as something rows can be looked up in."""

    def __init__(self, tables: Tables, relation: str) -> None:
        self.tables, self.relation = tables, relation
        columns = tables.layout.columns[relation]
        self.table, self.width = quote(tables.layout.tables[relation]), len(columns)
        self.sql = f"SELECT 1 FROM {self.table} WHERE {' AND '.join(f'{quote(column)} = ?' for column in columns)}"

    def __contains__(self, row: object) -> bool:
        assert isinstance(row, tuple)
        stored = next(iter(self.tables.encoded(self.relation, [row])))
        return self.tables.execute(self.sql, tuple(stored)).fetchone() is not None

    def among(self, rows: Collection[Row]) -> set[Row]:
        """Those of the rows that the relation has."""
        if len(rows) <= FEW:
            return {row for row in rows if row in self}
        listed, columns = list(rows), [f"c{number}" for number in range(self.width)]
        execute, same = self.tables.execute, zip(columns, map(quote, self.tables.layout.columns[self.relation]), strict=True)
        execute(f"CREATE TEMP TABLE looked_up ({', '.join(columns)})")
        marks = ", ".join("?" for _ in columns)
        execute("BEGIN")
        self.tables.connection.executemany(f"INSERT INTO looked_up VALUES ({marks})", self.tables.encoded(self.relation, listed))
        found = execute(
            f"SELECT l.rowid FROM looked_up AS l CROSS JOIN {self.table} AS r ON {' AND '.join(f'r.{b} = l.{a}' for a, b in same)}"
        ).fetchall()
        execute("COMMIT")
        execute("DROP TABLE looked_up")
        return {listed[number - 1] for (number,) in found}


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
