"""Relations as SQLite tables."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count, takewhile
from typing import Any, Self

from vigilog.core.errors import Stopped, VigilogError
from vigilog.core.rows import converted
from vigilog.core.values import Row, Value
from vigilog.executors.alarm import ALARM
from vigilog.executors.embedded.many import put
from vigilog.executors.watch import Outgrown, Watch
from vigilog.planning.indexes import Order, needed_indexes
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search
from vigilog.planning.sqlite import AFFINITY, SqliteDialect, decoder, encoder

_LIMITS = ("stack overflow", "too many", "at most", "too deep", "Expression tree", "too big", "too large")
FEW = 20  # up to so many rows are looked up one by one
SCANNED = 100_000  # rows are looked through, at most, for such as are near to one that is missing
SAMPLE = 1_000  # so many rows are looked at to see how many different values a column has
CACHE_KIB = 2_000_000
STEPS_BETWEEN_LOOKS = 200_000
MOST_PAGES = 2**32 - 2  # SQLite has no more
MOST_BYTES = 10**9  # of a text or a set: SQLite has no larger ones
_LABELS = count(1)
ASIDE = "aside"


class Tables:
    """Relations in an SQLite database: the file that a `connection` leads to, whose work tables are temporary and whose relations may be there already;
    or a private one, in memory if it is `resident`, otherwise until it outgrows its cache, then in a temporary file.

    A resident one commits at once; SQLite looks through all pages of the other at each commit.

    Each relation is a table without rowid whose primary key are all its columns, so a relation is a set. Indexes are made when
    a statement is about to search by columns that no index begins with; with `indexes`, by that, since a connection that only reads cannot.
    """

    def __init__(
        self,
        layout: Layout,
        watch: Watch,
        *,
        resident: bool = False,
        connection: sqlite3.Connection | None = None,
        indexes: Callable[[Search], None] | None = None,
    ) -> None:
        self.layout, self.watch, self.indexes = layout, watch, indexes
        self.dialect = SqliteDialect()
        self.undefined = 0
        self.statements = 0
        self.orders: dict[str, list[Order]] = {}
        self.estimates: dict[str, tuple[float, ...]] = {}
        self.added: list[tuple[str, Order]] = []  # indexes made since the transaction began
        self.registered: set[str] = set()
        self.encoders: dict[str, list[Callable[[Any], Any] | None] | None] = {}  # None for a relation whose rows are stored as they are
        self.decoders: dict[str, list[Callable[[Any], Any] | None] | None] = {}
        self.stopped: BaseException | None = None
        self.bounded: int | None = None  # by so many bytes work tables may grow
        self.longest: int | None = None  # so many bytes a text or a set may have
        self.passing = (
            False  # whether nobody needs the tables after a statement that was stopped: SQLite, without a journal, leaves it half done
        )
        self.failed: VigilogError | None = None  # why a function failed that a statement called
        self.durable = connection is not None
        self.asked = False  # whether there is a database for who only asks
        self.indexed = False  # whether an index was made, so that SQLite compiles all statements anew, since somebody looked
        self.made: set[str] = set()  # the work tables,
        self.places: dict[str, str] = {}  # the databases that they are in,
        self.work_orders: dict[str, list[Order]] = {}  # and their indexes
        self.connection = connection or _private(resident)
        self.cursor = self.connection.cursor()
        self.attach()

    def attach(self) -> None:
        """Makes the connection call these tables' functions; of several on one connection, those that did it last."""
        self.registered.clear()
        self.connection.create_function("v_undefined", 0, self._count_undefined)
        self.connection.set_progress_handler(self._look_up, STEPS_BETWEEN_LOOKS)

    def label(self) -> str:
        """A prefix for names of tables that nothing else has."""
        return str(next(_LABELS))

    def create(self, relation: str, table: str | None = None) -> str:
        """Makes a table for a relation's rows, unless the file has it, or an empty work table; gives its quoted name."""
        types = self.layout.types[relation]
        columns = [f"{quote(name)} {AFFINITY[t.kind]} NOT NULL" for name, t in zip(self.layout.columns[relation], types, strict=True)]
        name = quote(table or self.layout.tables[relation])
        determining = self.layout.columns[relation][: len(types) - self.layout.functional.get(relation, 0)]
        key = ", ".join(map(quote, determining))
        if table is None:
            self.execute(f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITHOUT ROWID")
            self.orders[relation] = [tuple(range(len(determining))), *self._known_orders(relation)]
        else:
            self.create_work(table, f"({', '.join(columns)}, PRIMARY KEY ({key})) WITHOUT ROWID")
        return name

    def create_work(self, table: str, defined: str, *, aside: bool = False) -> None:
        """Makes an empty work table, which nobody else sees; with `aside`, where that lets the statements of other tables be."""
        place = "temp." if self.durable else f"{ASIDE}." if aside and self.asked else ""
        self.execute(f"CREATE TABLE {place}{quote(table)} {defined}")
        self.made.add(table)
        self.places[table] = place

    def put_aside(self) -> None:
        """From now on, who only asks has work tables in a database of their own, so that SQLite need not compile the statements of transactions anew when these are made."""
        self.execute(f"ATTACH ':memory:' AS {ASIDE}")
        self.asked = True

    def create_numbered(self, relation: str, table: str) -> None:
        """Makes an empty table for some rows of a relation, which are numbered as they come."""
        columns, types = self.layout.columns[relation], self.layout.types[relation]
        defined = ", ".join(f"{quote(name)} {AFFINITY[t.kind]} NOT NULL" for name, t in zip(columns, types, strict=True))
        self.create_work(table, f"({defined}, UNIQUE ({', '.join(map(quote, columns))}))")

    def numbering(self, relation: str) -> str:
        """What the number of a row is called in a numbered table: SQLite has three names for it, one of which no column has."""
        taken = {column.lower() for column in self.layout.columns[relation]}
        return next(name for name in ("rowid", "oid", "_rowid_") if name not in taken)

    def execute(self, sql: str, parameters: Mapping[str, Any] | tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if len(self.registered) < len(self.dialect.functions) + len(self.dialect.aggregates):
            self.register()
        self.statements += 1
        try:
            return self.connection.execute(sql, parameters)
        except (sqlite3.OperationalError, sqlite3.DataError) as reason:
            raise self.translated(reason) from None

    def compile(self, *changes: str) -> None:
        """Lets SQLite compile statements that change rows, which it remembers."""
        for sql in changes:
            self.connection.executemany(sql, ())

    def insert(self, relation: str, rows: Iterable[Row]) -> None:
        """Adds rows that are values of the relation's types; those it has already do nothing."""
        self.insert_stored(relation, self.encoded(relation, rows))

    def insert_stored(self, relation: str, rows: Iterable[tuple[Any, ...]]) -> None:
        try:
            with self.together():
                put(
                    self.connection,
                    f"INSERT OR IGNORE INTO {quote(self.layout.tables[relation])}",
                    len(self.layout.columns[relation]),
                    rows,
                )
        except sqlite3.OperationalError as reason:
            raise self.translated(reason) from None

    def count(self, relation: str) -> int:
        return int(self.execute(f"SELECT count(*) FROM {quote(self.layout.tables[relation])}").fetchone()[0])

    def distinct(self, relation: str) -> tuple[float, ...]:
        """How many different values each column of a relation is expected to have, judged by some of its rows; empty if it has none."""
        columns = self.layout.columns[relation] if self.layout.program.relations[relation].attributes else ()
        if columns and not self.estimates.get(relation):
            table, rows = quote(self.layout.tables[relation]), self.count(relation)
            counted = ", ".join(f"count(DISTINCT {quote(column)})" for column in columns)
            numbers = self.execute(f"SELECT {counted} FROM (SELECT * FROM {table} LIMIT {SAMPLE})").fetchone()
            read = min(rows, SAMPLE)
            self.estimates[relation] = (
                tuple(different * rows / read if 2 * different > read else different for different in numbers) if rows else ()
            )
        return self.estimates.get(relation, ())

    def rows(self, relation: str) -> Iterator[Row]:
        """All rows as values, sorted."""
        return self.rows_of(relation, self.layout.tables[relation], order=True)

    def rows_of(
        self, relation: str, table: str, where: str = "", parameters: tuple[Any, ...] = (), *, order: bool = False
    ) -> Iterator[Row]:
        """The rows of a table for rows of a relation, as values."""
        columns = ", ".join(map(quote, self.layout.columns[relation]))
        condition = (f" WHERE {where}" if where else "") + (f" ORDER BY {columns}" if order else "")
        return self.decoded(relation, self.execute(f"SELECT {columns} FROM {quote(table)}{condition}", parameters))

    def decoded(self, relation: str, cursor: Iterable[tuple[Any, ...]]) -> Iterator[Row]:
        """Rows of a relation as values."""
        if not self.layout.program.relations[relation].attributes:
            return (() for _ in cursor)
        if relation not in self.decoders:
            decoders = [decoder(type_) for type_ in self.layout.types[relation]]
            self.decoders[relation] = decoders if any(decoders) else None
        converters = self.decoders[relation]
        return iter(cursor) if converters is None else converted(converters, cursor)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """Rows that agree with the values of some columns, in as many as there are rows for: along each index, and among the first rows of the table."""
        names, types = [quote(name) for name in self.layout.columns[relation]], self.layout.types[relation]
        table, shown = quote(self.layout.tables[relation]), ", ".join(names)
        cells = {column: encode(value) if (encode := encoder(types[column])) else value for column, value in bound.items()}
        near: set[Row] = set()
        for order in self.orders[relation]:
            prefix = list(takewhile(cells.__contains__, order))
            for length in range(len(prefix), 0, -1):
                where = " AND ".join(f"{names[column]} = ?" for column in prefix[:length])
                sql = f"SELECT {shown} FROM {table} WHERE {where} LIMIT {most}"
                if rows := set(self.decoded(relation, self.execute(sql, tuple(cells[column] for column in prefix[:length])))):
                    near |= rows
                    break
        agreeing = " + ".join(f"({names[column]} = :c{column})" for column in cells)
        part = f"(SELECT * FROM {table} LIMIT {SCANNED}) WHERE {agreeing} > 0 ORDER BY {agreeing} DESC, {shown}"
        best = self.execute(f"SELECT {shown} FROM {part} LIMIT {most}", {f"c{column}": cell for column, cell in cells.items()})
        return near | set(self.decoded(relation, best))

    def contents(self, relation: str, copy: tuple[str, tuple[int, ...]] | None = None) -> Contents:
        """A relation as something a row can be looked up in; in a `copy` of it, another relation with its columns in these places, if there is one."""
        return Contents(self, relation, *(copy or (relation, tuple(range(len(self.layout.columns[relation]))))))

    def serve(self, searches: Iterable[Search]) -> None:
        """Makes the indexes that these searches need and that are not there yet."""
        by_relation: dict[str, list[frozenset[int]]] = {}
        for search in searches:
            by_relation.setdefault(search.relation, []).append(search.columns)
        for relation, columns in by_relation.items():
            for order in needed_indexes(columns, self.orders[relation]):
                if self.indexes:
                    self.indexes(Search(relation, frozenset(order)))
                else:
                    self._index(relation, order)
                    self.added.append((relation, order))
                self.orders[relation].append(order)

    def serve_order(self, relation: str, order: Order) -> None:
        """Makes an index over columns in this very order, unless there is one that begins so."""
        if not any(other[: len(order)] == order for other in self.orders[relation]):
            self._index(relation, order)
            self.orders[relation].append(order)

    def serve_work(self, table: str, columns: Sequence[str], searched: frozenset[int]) -> None:
        """Makes the index that a search in a work table needs, unless it is there."""
        orders = self.work_orders.setdefault(table, [tuple(range(len(columns)))])
        for order in needed_indexes([searched], orders):
            over = ", ".join(quote(columns[column]) for column in order)
            self.execute(f"CREATE INDEX {self.places.get(table, '')}{quote(f'{table} by {order}')} ON {quote(table)} ({over})")
            orders.append(order)

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """What is done inside happens as a whole, or, after an error or without `keep`, not at all. Indexes made inside stay."""
        within, before = self.connection.in_transaction, self.added
        self.added = []
        self.execute("SAVEPOINT vigilog" if within else "BEGIN IMMEDIATE" if self.durable else "BEGIN")
        try:
            yield
            if keep:
                self.execute("RELEASE vigilog" if within else "COMMIT")
        except BaseException:
            self._roll_back(within)
            raise
        else:
            if not keep:
                self._roll_back(within)
        finally:
            self.added = [*before, *self.added] if within else []

    @contextmanager
    def within(self, seconds: float | None, size: int | None = None) -> Iterator[None]:
        """What is done inside takes no longer than some seconds, and makes work tables no larger than some bytes, or is stopped."""
        self.watch.timeout, self.watch.started, self.watch.doing, self.stopped = seconds, time.monotonic(), "the answer", None
        try:
            with (
                nullcontext() if size is None else self.no_larger(size),
                nullcontext() if seconds is None else ALARM.after(seconds, self.connection.interrupt),
            ):
                yield
        finally:
            self.watch.timeout = self.stopped = None

    def let_go(self) -> None:
        """Ends a statement whose rows were not all fetched."""
        self.cursor.close()
        self.cursor = self.connection.cursor()

    @contextmanager
    def no_larger(self, size: int) -> Iterator[None]:
        """The work tables of a file, which are in memory, grow by no more than some bytes, or what makes them grow is stopped."""
        assert self.durable, "work tables of a private database are among its others"
        (pages,), (bytes_,) = (self.connection.execute(f"PRAGMA temp.{name}").fetchone() for name in ("page_count", "page_size"))
        self.connection.execute(f"PRAGMA temp.max_page_count = {pages + size // bytes_ + 1}")
        self.bounded = size
        try:
            yield
        finally:
            self.bounded = None
            self.connection.execute(f"PRAGMA temp.max_page_count = {MOST_PAGES}")

    @contextmanager
    def no_longer(self, size: int | None) -> Iterator[None]:
        """No text and no set that is derived inside has more than some bytes: what is done with one text cannot be stopped."""
        if size is None:
            yield
            return
        before = self.longest, self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)
        self.longest = size
        try:
            yield
        except sqlite3.DataError as reason:
            raise self.translated(reason) from None
        finally:
            self.longest = before[0]
            self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before[1])

    @contextmanager
    def together(self) -> Iterator[None]:
        """Statements that are faster as one transaction; they may be a part of one already."""
        within = self.connection.in_transaction
        if not within:
            self.execute("BEGIN")
        yield
        if not within:
            self.execute("COMMIT")

    def _roll_back(self, within: bool) -> None:
        if self.connection.in_transaction and within:
            self.connection.execute("ROLLBACK TO vigilog")
            self.connection.execute("RELEASE vigilog")
        elif self.connection.in_transaction:  # if it is not, SQLite has rolled back all by itself
            self.connection.rollback()
        for relation, order in self.added:
            try:
                self._index(relation, order)
            except (sqlite3.Error, Stopped):  # no place for it now; it is made again when it is needed next
                self.orders[relation].remove(order)

    def _index(self, relation: str, order: Order) -> None:
        table = self.layout.tables[relation]
        name = quote(f"{table} by {' '.join(map(str, order))}")
        over = ", ".join(quote(self.layout.columns[relation][column]) for column in order)
        self.execute(f"CREATE INDEX {name} ON {quote(table)} ({over})")
        self.indexed = True

    def look(self) -> None:
        """Finds the indexes of a file whose tables others have made."""
        for relation in self.layout.program.relations:
            self.orders[relation] = [tuple(range(len(self.layout.types[relation]))), *self._known_orders(relation)]

    def _known_orders(self, relation: str) -> list[Order]:
        """The indexes that a file already has."""
        begin = f"{self.layout.tables[relation]} by "
        names = self.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?", (self.layout.tables[relation],))
        return [tuple(map(int, name.removeprefix(begin).split())) for (name,) in names if name.startswith(begin)]

    def has(self, table: str) -> bool:
        """Whether a file has a table."""
        return bool(self.execute("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone())

    def close(self) -> None:
        """Ends a private database; of a file, only the work tables."""
        if not self.durable:
            self.connection.close()
            return
        for (name,) in self.connection.execute("SELECT name FROM temp.sqlite_master WHERE type = 'table'").fetchall():
            if name in self.made:
                self.connection.execute(f"DROP TABLE temp.{quote(name)}")

    def encoded(self, relation: str, rows: Iterable[Row]) -> Iterable[tuple[Any, ...]]:
        """Rows as they are stored."""
        if relation not in self.encoders:
            encoders = [encoder(type_) for type_ in self.layout.types[relation]]
            self.encoders[relation] = encoders if any(encoders) or not self.layout.program.relations[relation].attributes else None
        converters = self.encoders[relation]
        if converters is None:
            return rows
        if not self.layout.program.relations[relation].attributes:
            return ((1,) for _ in rows)
        return converted(converters, rows)

    def register(self) -> None:
        """Makes the functions that the dialect has come to use known to SQLite."""
        for name, (arity, function) in self.dialect.functions.items():
            if name not in self.registered:
                self.connection.create_function(name, arity, self._failing(function), deterministic=True)
                self.registered.add(name)
        for name, class_ in self.dialect.aggregates.items():
            if name not in self.registered:
                called = ("step", "finalize") if hasattr(class_, "weigh") else ("finalize",)
                failing = {method: self._failing(getattr(class_, method)) for method in called}
                self.connection.create_aggregate(name, 1, type(name, (class_,), failing | {"weigh": staticmethod(self._weigh)}))
                self.registered.add(name)

    def _failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, of which is remembered why it failed: SQLite only says that one did. One may take long, so each looks at the clock."""

        def called(*args: Any) -> Any:
            if self.watch.expired:
                self.stopped = self.watch.timed_out()
                raise self.stopped
            try:
                return function(*args)
            except VigilogError as reason:
                self.failed = reason
                raise

        return called

    def _count_undefined(self) -> int:
        self.undefined += 1
        return 0

    def _look_up(self) -> int:
        """Called by SQLite every so many steps; anything but 0 stops the statement. Ctrl-C arrives here, too."""
        if self.watch.expired:
            self.stopped = self.watch.timed_out()
        elif self.watch.outgrown and self.passing:
            self.stopped = Outgrown()
        return int(self.stopped is not None)

    def translated(self, reason: sqlite3.OperationalError | sqlite3.DataError) -> BaseException:
        if self.stopped is not None:
            return self.stopped
        if "string or blob too big" in str(reason):
            return self._too_long()
        if self.failed is not None:
            failed, self.failed = self.failed, None
            return failed
        if "interrupted" in str(reason) or "user-defined" in str(reason):  # only Ctrl-C, and an alarm like it, makes our functions raise
            return self.watch.timed_out() if self.watch.expired else KeyboardInterrupt()
        if any(limit in str(reason) for limit in _LIMITS):
            return Stopped(
                f"{self.watch.doing}: a rule is too large for SQLite ({reason}); name a part of it as a relation of its own", "limit"
            )
        if "full" in str(reason) and self.bounded is not None:
            return TooLarge(self.bounded)
        if "full" in str(reason) and not self.durable:  # of a file, those say it who know its name
            return Stopped(
                f"{self.watch.doing}: the disk with temporary files is full; SQLITE_TMPDIR names another folder for them", "disk"
            )
        return reason

    def _too_long(self) -> Stopped:
        most = self.longest or MOST_BYTES
        return Stopped(
            f"{self.watch.doing}: a text, or a set, takes more than {most / 2**20:,.0f} MiB", "budget" if self.longest else "limit"
        )

    def _weigh(self, size: int) -> None:
        """A set that is collected takes so many bytes by now."""
        if size > (self.longest or MOST_BYTES):
            raise self._too_long()


class TooLarge(Stopped):
    """Work tables have outgrown what they may take."""

    def __init__(self, size: int) -> None:
        super().__init__(f"what is derived takes more than {size / 2**20:,.0f} MiB", "budget")


class Contents:
    """A relation as something rows can be looked up in, whose rows another one holds, with the columns in some `places`."""

    def __init__(self, tables: Tables, relation: str, held: str, places: tuple[int, ...]) -> None:
        self.tables, self.relation, self.held, self.places = tables, relation, held, places
        self.columns = [tables.layout.columns[held][place] for place in places]
        self.table, self.width = quote(tables.layout.tables[held]), len(self.columns)
        self.shown = ", ".join(f"r.{quote(column)}" for column in self.columns)
        self.sql = f"SELECT 1 FROM {self.table} WHERE {' AND '.join(f'{quote(column)} = ?' for column in self.columns)}"
        first = quote(tables.layout.columns[held][0])
        self.ends = f"SELECT (SELECT min({first}) FROM {self.table}), (SELECT max({first}) FROM {self.table})"
        self.asked = ""  # a table for many rows to be looked up, if it was made before
        self.key: tuple[int, ...] | None = None

    def having(self, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        """The rows that have one of some values in their columns."""
        self._serve(columns)
        encoders = [encoder(self.tables.layout.types[self.relation][column]) for column in columns]
        stored: Iterable[tuple[Any, ...]] = converted(encoders, values) if any(encoders) else values
        if len(values) > FEW and columns:
            same = " AND ".join(f"r.{quote(self.columns[column])} = l.c{number}" for number, column in enumerate(columns))
            with self._listed(stored, len(columns)) as asked:
                cursor = self.tables.execute(f"SELECT {self.shown} FROM {asked} AS l CROSS JOIN {self.table} AS r ON {same}")
                return set(self.tables.decoded(self.relation, cursor))
        sql = self._with(columns)
        return {row for cells in stored for row in self.tables.decoded(self.relation, self.tables.execute(sql, tuple(cells)))}

    def _serve(self, columns: tuple[int, ...]) -> None:
        self.tables.serve([Search(self.held, frozenset(self.places[column] for column in columns))])

    def _with(self, columns: tuple[int, ...]) -> str:
        """The statement for the rows with given values in some columns."""
        where = " AND ".join(f"r.{quote(self.columns[column])} = ?" for column in columns) or "true"
        return f"SELECT {self.shown} FROM {self.table} AS r WHERE {where}"

    def twice(self, columns: tuple[int, ...]) -> Row | None:
        """Values that several rows have in their columns, if there are any."""
        layout, names = self.tables.layout, [self.columns[column] for column in columns]
        listed = ", ".join(map(quote, names))
        row = self.tables.execute(f"SELECT {listed} FROM {self.table} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1").fetchone()
        decoders = [decoder(layout.types[self.relation][column]) for column in columns]
        return row and tuple(d(v) if d else v for d, v in zip(decoders, row, strict=True))

    def among(self, rows: Collection[Row]) -> set[Row]:
        """Those of the rows that the relation has."""
        if len(rows) <= FEW:
            execute, sql = self.tables.execute, self.sql
            stored = self.tables.encoded(self.relation, rows)
            return {row for row, cells in zip(rows, stored, strict=True) if execute(sql, cells).fetchone() is not None}
        listed = self._within(list(rows))
        return self._listing(listed) if listed else set()

    def _listing(self, listed: list[Row]) -> set[Row]:
        """Those of the rows that the relation has, by way of a table that lists them."""
        same = " AND ".join(f"r.{quote(column)} = l.c{number}" for number, column in enumerate(self.columns))
        with self._listed(self.tables.encoded(self.relation, listed), self.width) as asked:
            numbers = self.tables.execute(f"SELECT l.rowid FROM {asked} AS l CROSS JOIN {self.table} AS r ON {same}").fetchall()
        return {listed[number - 1] for (number,) in numbers}

    @contextmanager
    def _listed(self, rows: Iterable[tuple[Any, ...]], width: int) -> Iterator[str]:
        """A table of rows, as they are stored, that are to be looked up: in its first columns, and numbered as they come."""
        asked = quote(self.asked or "looked_up")
        if not self.asked:
            self._make(asked)
        with self.tables.together():
            columns, marks = (", ".join(each) for each in ([f"c{number}" for number in range(width)], ["?"] * width))
            self.tables.connection.executemany(f"INSERT INTO {asked} ({columns}) VALUES ({marks})", rows)
            yield asked
            self.tables.execute(f"DELETE FROM {asked}")
        if not self.asked:
            self.tables.execute(f"DROP TABLE {asked}")

    def _within(self, rows: list[Row]) -> list[Row]:
        """The rows that lie, by the column the table is sorted by, between its first row and its last: what is numbered as it comes is beyond, and need not be looked up."""
        if 0 not in self.places or not self.tables.layout.program.relations[self.relation].attributes:
            return rows
        place = self.places.index(0)
        least, greatest = self.tables.execute(self.ends).fetchone()
        if least is None:
            return []
        encode = encoder(self.tables.layout.types[self.relation][place])
        cells = [row[place] for row in rows]
        stored = cells if encode is None else map(encode, cells)
        return [row for row, cell in zip(rows, stored, strict=True) if least <= cell <= greatest]

    def prepare(self, key: tuple[int, ...] | None = None) -> Self:
        """Makes what it takes to look up many rows at once, and rows by their key: after a table is made, or dropped, SQLite compiles all statements anew."""
        self.asked = f"{self.tables.layout.tables[self.relation]} asked {self.tables.label()}"
        self._make(quote(self.asked))
        self.tables.made.add(self.asked)
        self.key = key
        if key is not None:
            self._serve(key)
        return self

    def warm(self) -> None:
        """Lets SQLite compile the statements that look up rows."""
        self.tables.execute(self.sql, (None,) * self.width)
        self.tables.execute(self.ends)
        self._listing([])
        if self.key is not None:
            self.tables.execute(self._with(self.key), (None,) * len(self.key))

    def _make(self, table: str) -> None:
        self.tables.execute(f"CREATE TEMP TABLE {table} ({', '.join(f'c{number}' for number in range(self.width))})")


def _private(resident: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:" if resident else "", isolation_level=None, cached_statements=10_000, check_same_thread=False)
    for pragma in (f"cache_size=-{CACHE_KIB}", "journal_mode=OFF", "synchronous=OFF", "temp_store=MEMORY", "locking_mode=EXCLUSIVE"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def among(columns: Sequence[str], table: str) -> str:
    """The condition that a row is one of a table's; the names are quoted.

    SQLite would look it up along any index of that table. If the index has the columns in another order, it takes their values for values of each other's types, and does not find
    a text that looks like a number (seen in 3.40). A `+` before a column makes it do without.

    >>> among(['"x"', '"y"'], '"gone"')
    '("x", "y") IN (SELECT +"x", +"y" FROM "gone")'
    """
    return f"({', '.join(columns)}) IN (SELECT {', '.join(f'+{column}' for column in columns)} FROM {table})"
