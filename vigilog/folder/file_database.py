"""What a data folder holds in its file: the program, and the tables that it needs."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError
from vigilog.core.values import Row
from vigilog.engine.compiled import Compiled, compiled
from vigilog.engine.database import Database
from vigilog.engine.evaluate import joined
from vigilog.executors.embedded.tables import quote
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.mixed import Beginning, MixedViews
from vigilog.executors.views import Views
from vigilog.executors.watch import Report
from vigilog.folder.backup import SEGMENTS
from vigilog.folder.book import Book
from vigilog.language.program import Program
from vigilog.language.written import kept, read_again
from vigilog.planning.layout import file_table
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.maintenance.strategies import MATERIALIZED
from vigilog.rewriting.maintenance.strategies.choose import Decision, depends_on
from vigilog.rewriting.program.relevant import relevant
from vigilog.store.file import DataFile
from vigilog.store.segments import Segments

if TYPE_CHECKING:
    from vigilog.folder.large import Large
    from vigilog.folder.queries import Queries

RETAIN = {"transactions": 1_000_000.0}  # what is retained unless stated otherwise


class FileDatabase(Database):
    """A database whose program and tables are in a file. What is there already, and means the same, is used as it is."""

    folder: Path
    file: DataFile
    store: Large
    queries: Queries
    book: Book
    budget: int | None
    strict: bool
    report: Report | None

    def compile(self, program: Program) -> Compiled:
        """A program as it is maintained, with the queries that are followed."""
        given = [name for name in self.given if name in program.relations]
        whole, queries = self.queries.added_to(program)
        made = compiled(whole, given, self.file.get("strategy", "auto"), self.watched, queries)
        later = json.loads(self.file.get("stored", "{}"))  # what `auto` came to store, with its reasons then
        return made.with_strategies({name: Decision(MATERIALIZED, reason) for name, reason in later.items() if name in made.strategies})

    @contextmanager
    def writing(self, *, keep: bool = True) -> Iterator[None]:
        """All that is written inside, or nothing of it."""
        self.file.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.file.connection.execute("COMMIT" if keep else "ROLLBACK")
        except BaseException:
            if self.file.connection.in_transaction:
                self.file.connection.rollback()
            raise

    def known_program(self) -> str:
        """The program as it is printed; nothing if there is none yet."""
        return self.kept_program()[0]

    def whole_program(self) -> Program:
        """The program as it was written, with the rows that it states."""
        return read_again(*self.kept_program())

    def kept_program(self) -> tuple[str, str]:
        """The program as it is printed, and where it was written (`language/written.py`)."""
        latest = "SELECT text, written, sum FROM vigilog_programs ORDER BY version DESC LIMIT 1"
        with self.lock:
            text, places, checksum = self.file.connection.execute(latest).fetchone() or ("", "", 0)
        if _sum(text, places) != checksum:
            raise DataError(f"the program in {self.file.path} is damaged; restore a backup (vigilog restore)", "damaged")
        return text, places

    def write_program(self, program: Program) -> None:
        (last,) = self.file.connection.execute("SELECT max(tx) FROM vigilog_log").fetchone()
        text, places = kept(program)
        self.file.connection.execute(
            "INSERT INTO vigilog_programs (tx, at, text, written, sum) VALUES (?, ?, ?, ?, ?)",
            (last or 0, time.time(), text, places, _sum(text, places)),
        )
        self.file.seal()

    def move_program(self, program: Program) -> None:
        """The same program was written anew: its statements have other places."""
        text, places = kept(program)
        latest = "(SELECT max(version) FROM vigilog_programs)"
        self.file.connection.execute(
            f"UPDATE vigilog_programs SET written = ?, sum = ? WHERE version = {latest}", (places, _sum(text, places))
        )
        self.file.seal()

    @property
    def large(self) -> frozenset[str]:
        """The base relations that are not resident."""
        with self.lock:
            return frozenset(json.loads(self.file.get("large", "[]")))

    @large.setter
    def large(self, names: frozenset[str]) -> None:
        self.file.put("large", json.dumps(sorted(names)))

    @property
    def given(self) -> list[str]:
        """The relations that were given rows when the database was made."""
        return list(json.loads(self.file.get("given", "[]")))

    def build(self, made: Compiled, rows: Mapping[str, Iterable[Row]], *, first: bool = False) -> None:
        """Makes the tables that a program needs and the file does not have, and drops those that it needs no more."""
        meaning, connection, large = made.fingerprints(), self.file.connection, self.large
        homes = {home: name for name, home in made.homes.items() if name not in large}
        far = {made.homes[name] for name in large}
        near = [name for name in made.plain.relations if far.isdisjoint(depends_on(made.plain, name))]
        held = plan(relevant(made.plain, near), [name for name in made.told if name in near], made.plan.kept, made.plan.grouped)
        kinds = dict.fromkeys(homes, "base") | dict.fromkeys(held.kept, "stored") | dict.fromkeys(held.beside, "beside")
        had = dict(connection.execute("SELECT name, known FROM vigilog_relations").fetchall())
        kept = {name for name in kinds if had.get(name) == meaning[name]}
        for name in (
            had.keys() | made.plain.relations.keys() | held.needed.relations.keys()
        ) - kept:  # tables of what is not stored are empty, and may have other columns
            for table in (file_table(name), f"{file_table(name)} counts"):
                connection.execute(f"DROP TABLE IF EXISTS {quote(table)}")
        given = {home: joined(rows.get(name, ()), made.stated.get(name, ()) if first else ()) for home, name in homes.items()}

        def resident() -> EmbeddedViews:
            return EmbeddedViews(
                held,
                given,
                self.budget,
                self.strict,
                connection=connection,
                kept=kept,
                report=self.report,
                queries=made.queries.intersection(near),
                allowance=self.queries.share,
            )

        def distant(outputs: Sequence[str], queries: Sequence[str]) -> Beginning:
            return self.store.beginning(made, outputs, queries)

        views: Views = MixedViews(made.plain, made.told, sorted(made.queries), far, resident, distant) if far else resident()
        connection.execute("DELETE FROM vigilog_relations")
        connection.executemany(
            "INSERT INTO vigilog_relations VALUES (?, ?, ?)", [(name, kind, meaning[name]) for name, kind in kinds.items()]
        )
        self.file.seal()
        segments = Segments(self.folder / SEGMENTS)
        retain = json.loads(self.file.get("retain", "null")) or RETAIN
        self.book = Book(self.file, made.program, segments, retain, self.store.remove, self.store.rows)
        self._use(made, views, self.book)
        self.waiting = self.book.notes.waiting() if made.conditions.alerts else {}

    @contextmanager
    def swapping(self, *, keep: bool = True) -> Iterator[None]:
        """Other tables take the place of these, in one transaction of the file; if that fails, or is not to be kept, these go on."""
        compiled_, views, book, waiting = self.compiled, self.views, self.book, self.waiting
        kept = False
        try:
            with self.writing(keep=keep):
                yield
            kept = keep
        finally:
            if not kept:
                if self.views is not views:
                    self.views.close()
                    self.book, self.waiting = book, waiting
                    self._use(compiled_, views, book)
                views.attach()
        if kept and self.views is not views:
            views.close()


def _sum(text: str, places: str) -> int:
    return zlib.crc32(places.encode(), zlib.crc32(text.encode()))
