"""The one SQLite file of a database, and the folder it is in.

A commit is one SQLite transaction over everything in the file, written ahead and synchronized, so a crash leaves all of it or nothing. One process at a time has the folder.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from vigilog.core.errors import DataError

NAME, LOCK = "vigilog.db", "lock"
FORMAT = 6
SEALED = 3  # since this format there is a sum of all that is small
SUBSCRIPTIONS = """
CREATE TABLE vigilog_subscriptions (owner TEXT NOT NULL, name TEXT NOT NULL, spec TEXT NOT NULL, history TEXT NOT NULL, tx INTEGER, at REAL NOT NULL, PRIMARY KEY (owner, name)) WITHOUT ROWID, STRICT;
"""
WRITTEN = "ALTER TABLE vigilog_programs ADD COLUMN written TEXT NOT NULL DEFAULT '';"
ALERTS = """
CREATE TABLE IF NOT EXISTS vigilog_alerts (kind TEXT NOT NULL, alert TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, said TEXT NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, alert, key)) WITHOUT ROWID, STRICT;
"""
DIGESTS = "ALTER TABLE vigilog_log ADD COLUMN digest TEXT NOT NULL DEFAULT '';"
MIGRATIONS: dict[int, str] = {1: SUBSCRIPTIONS, 2: "", 3: WRITTEN, 4: ALERTS, 5: DIGESTS}  # from a format to the next: SQL
SUM = "sum"  # under this name the settings have the sum of all that is small
SUMMED = (
    f"SELECT name, value FROM vigilog_about WHERE name <> '{SUM}' ORDER BY name",
    "SELECT version, tx, at, sum FROM vigilog_programs ORDER BY version",
    "SELECT name, kind, known FROM vigilog_relations ORDER BY name",
    "SELECT relation, tx, location, rows, at FROM vigilog_snapshots ORDER BY relation",
    "SELECT name, position FROM vigilog_sources ORDER BY name",
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name",
)
SCHEMA = f"""
CREATE TABLE vigilog_about (name TEXT PRIMARY KEY, value ANY NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE vigilog_programs (version INTEGER PRIMARY KEY, tx INTEGER NOT NULL, at REAL NOT NULL, text TEXT NOT NULL, sum INTEGER NOT NULL, written TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE vigilog_log (tx INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, said BLOB NOT NULL, sum INTEGER NOT NULL, digest TEXT NOT NULL DEFAULT '') STRICT;
CREATE TABLE vigilog_outbox (tx INTEGER NOT NULL, view TEXT NOT NULL, said BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (tx, view)) WITHOUT ROWID, STRICT;
CREATE TABLE vigilog_relations (name TEXT PRIMARY KEY, kind TEXT NOT NULL, known TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE vigilog_snapshots (relation TEXT PRIMARY KEY, tx INTEGER NOT NULL, location TEXT NOT NULL, rows INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE vigilog_sources (name TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE vigilog_requests (key TEXT PRIMARY KEY, tx INTEGER NOT NULL) WITHOUT ROWID, STRICT;
{SUBSCRIPTIONS}{ALERTS}"""


class DataFile:
    """An open data folder. `connection` is the one that writes: one thread at a time may use it, for while it waits, it keeps all other Python waiting, too.

    `history` tells this history of changes from any other: new after a restore.
    """

    def __init__(self, folder: Path, *, cache_kib: int, create: bool) -> None:
        self.folder, self.path, self.cache_kib = folder, folder / NAME, cache_kib
        self.lock = _locked(folder, create=create)
        try:
            if not create and not self.path.exists():
                raise DataError(
                    f"{folder} is not a data folder: it has no {NAME} (make one with: vigilog init PROGRAM --data {folder})", "no-data"
                )
            with damage(self.path):
                self.connection = self.connect()
                try:
                    self._prepare()
                    self.history = str(self.get("history"))
                except BaseException:
                    self.connection.close()
                    raise
        except BaseException:
            self.lock.close()
            raise

    def connect(self, *, read_only: bool = False, cache_kib: int | None = None) -> sqlite3.Connection:
        """Another connection to the file. Readers see the last commit, and never wait."""
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=10_000, check_same_thread=False)
        pragmas = [f"cache_size=-{cache_kib or self.cache_kib}", "temp_store=MEMORY", "cell_size_check=ON"]
        if not read_only:
            pragmas += ["journal_mode=WAL", "synchronous=FULL", "locking_mode=NORMAL"]
        try:
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    def get(self, name: str, default: Any = None) -> Any:
        row = self.connection.execute("SELECT value FROM vigilog_about WHERE name = ?", (name,)).fetchone()
        return default if row is None else row[0]

    def put(self, name: str, value: Any) -> None:
        with nullcontext() if self.connection.in_transaction else self._together():
            self.connection.execute("INSERT OR REPLACE INTO vigilog_about VALUES (?, ?)", (name, value))
            self.seal()

    def seal(self) -> None:
        """Sums up what is small: settings, programs, positions of sources, which snapshots and tables there are. Whoever changes it does this in the same transaction."""
        seal(self.connection)

    def check_seal(self) -> None:
        """Raises DataError if what is small is not what was written."""
        check_seal(self.connection, self.path)

    @property
    def closed(self) -> bool:
        return self.lock.closed

    def close(self) -> None:
        self.connection.close()
        self.lock.close()

    def _prepare(self) -> None:
        tables = self.connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'vigilog_about'").fetchone()[0]
        if not tables:
            history = secrets.token_hex(8)
            about = f"INSERT INTO vigilog_about VALUES ('history', '{history}'), ('digest', '{history}'), ('format', {FORMAT});"
            with self._together():
                self._run(f"{SCHEMA} {about}")
                self.seal()
        format_ = self.get("format")
        if isinstance(format_, int) and format_ > FORMAT:
            raise DataError(f"{self.path} has format {format_}, made by a later Vigilog; this one knows formats up to {FORMAT}", "format")
        if self.get(SUM) is not None or format_ not in range(SEALED):
            self.check_seal()
        if format_ in MIGRATIONS:
            copy_file(self.path, self.folder / f"{NAME}.format{format_}")
            with self._together():
                self._run(" ".join(MIGRATIONS[number] for number in range(format_, FORMAT)))
                self.put("format", FORMAT)

    @contextmanager
    def _together(self) -> Iterator[None]:
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            raise

    def _run(self, script: str) -> None:
        for statement in script.split(";"):
            self.connection.execute(statement)


def seal(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT OR REPLACE INTO vigilog_about VALUES (?, ?)", (SUM, _summed(connection)))


def check_seal(connection: sqlite3.Connection, path: Path) -> None:
    row = connection.execute("SELECT value FROM vigilog_about WHERE name = ?", (SUM,)).fetchone()
    if row is None or row[0] != _summed(connection):
        raise DataError(
            f"{path} is damaged: its settings, or what it notes of its tables and snapshots, are not what was written; restore a backup (vigilog restore)",
            "damaged",
        )


def _summed(connection: sqlite3.Connection) -> int:
    total = 0
    for query in SUMMED:
        total = zlib.crc32(repr(connection.execute(query).fetchall()).encode(errors="surrogatepass"), total)
    return total


def copy_file(path: Path, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Copies a file as of one moment, while transactions go on, of this process or of another; `progress` is told how many bytes of how many are copied."""
    still = not os.access(path.parent, os.W_OK) and not _ahead(path).exists()  # SQLite would want to write beside it; nobody else does
    uri = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if still else ''}"
    with damage(path), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as source:
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from here on it sees this moment and no later one
        with damage(target), closing(sqlite3.connect(target)) as copy:
            (page,) = source.execute("PRAGMA page_size").fetchone()
            source.backup(copy, pages=1_000, progress=lambda _, left, all_: progress and progress((all_ - left) * page, all_ * page))
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, and none beside it
    if still and _ahead(path).exists():
        raise DataError(f"{path} was opened by another process meanwhile; try again", "in-use")


def _ahead(path: Path) -> Path:
    """What is written ahead: there as long as a process has the file open, or after it was killed."""
    return path.with_name(f"{path.name}-wal")


def _locked(folder: Path, *, create: bool) -> IO[str]:
    """Takes the folder for this process alone."""
    try:
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise DataError(f"there is no data folder {folder}", "no-data")
        lock = (folder / LOCK).open("a+")
    except OSError as reason:
        raise DataError(
            f"{folder} cannot be opened: {reason.strerror}; a data folder must be writable, even to be read", "folder"
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise DataError(f"{folder} is in use by {holder}; one process at a time has a data folder", "in-use") from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """What SQLite says about a file as a sentence."""
    try:
        yield
    except sqlite3.DatabaseError as reason:
        raise explained(reason, path) from None
    except UnicodeDecodeError:  # of SQLite's own words about the file
        raise DataError(f"{path} is damaged (a name in it is no text); restore a backup (vigilog restore)", "damaged") from None


def explained(reason: sqlite3.DatabaseError, path: Path) -> Exception:
    """A failure of SQLite as an error that says what is wrong with the file; other failures as they are."""
    text, name = str(reason), getattr(reason, "sqlite_errorname", "") or ""
    if isinstance(reason, sqlite3.ProgrammingError) and "closed database" in text:
        return DataError(f"{path.parent} is closed; open it again", "closed")
    if name.startswith("SQLITE_FULL"):
        return DataError(f"the disk with {path} is full; nothing was changed", "disk")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return DataError(f"{path} cannot be written; nothing was changed", "read-only")
    if name.startswith("SQLITE_IOERR") and "READ" not in name:
        return DataError(f"{path} cannot be written ({text}: {name}); nothing was changed", "disk")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR")):
        return DataError(f"{path} is damaged ({text}); restore a backup (vigilog restore)", "damaged")
    if "decode to UTF-8" in text:
        return DataError(f"{path} is damaged (a text in it is none); restore a backup (vigilog restore)", "damaged")
    return reason
