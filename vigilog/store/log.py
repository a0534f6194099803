"""The log of what changed in the base, and the outbox of what that changed in the views, by transaction number.

An entry says its rows as JSON, in the form in which transactions are written; many rows are in a segment, which it names. Each carries a sum over all of it, so that a damaged one is never taken for the
truth; and each number has an entry, so that a missing one is noticed. Its digest is that of the entry before it and of all that it says itself, so that two logs in which a transaction has the same
digest have the same transactions up to it, whatever copies of their folders there are. The first digest is the id of the history; a log from before there were digests begins with none.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vigilog.core.errors import DataError
from vigilog.core.reports import ALERT
from vigilog.store.file import DataFile

PACKED = 2_000  # bytes from which an entry is compressed
ChangeEntry = dict[str, Any]  # {"plus": […], "minus": […]}, or the segments that hold them


@dataclass(frozen=True)
class Entry:
    """A committed transaction: what it changed in base relations."""

    tx: int
    at: float
    kind: str
    changes: Mapping[str, ChangeEntry]


def size(entry: ChangeEntry) -> tuple[int, int]:
    """How many rows came and how many went, wherever they are."""
    plus, minus = (part["rows"] if isinstance(part := entry.get(side, ()), dict) else len(part) for side in ("plus", "minus"))
    return plus, minus


class Log:
    """The numbered transactions of a database."""

    def __init__(self, file: DataFile, connection: sqlite3.Connection | None = None) -> None:
        """The log as one connection sees it, by default the one that writes."""
        self.file, self.connection = file, connection or file.connection
        (last,) = self.connection.execute("SELECT max(tx) FROM vigilog_log").fetchone()
        self.last = int(last if last is not None else self.first)

    @property
    def first(self) -> int:
        """The number up to which changes are no longer there: one who knows the state at it, or at a later one, can follow."""
        row = self.connection.execute("SELECT value FROM vigilog_about WHERE name = 'first'").fetchone()
        return int(row[0]) if row else 0

    def append(self, kind: str, changes: Mapping[str, ChangeEntry], views: Mapping[str, ChangeEntry]) -> int:
        """Writes a transaction down, inside the SQLite transaction of its commit; gives its number."""
        tx, at = self.last + 1, time.time()
        data, total = _packed(changes, tx, at, kind)
        digest = chained(self.digest(self.last), data, tx, at, kind)
        self.connection.execute("INSERT INTO vigilog_log VALUES (?, ?, ?, ?, ?, ?)", (tx, at, kind, data, total, digest))
        for view, entry in views.items():
            self.connection.execute("INSERT INTO vigilog_outbox VALUES (?, ?, ?, ?)", (tx, view, *_packed(entry, tx, view)))
        return tx

    def digest(self, tx: int) -> str:
        """What tells this history up to a transaction from any other; empty if it is not known."""
        row = self.connection.execute("SELECT digest FROM vigilog_log WHERE tx = ?", (tx,)).fetchone()
        if row is None and tx == self.first:
            row = self.connection.execute("SELECT value FROM vigilog_about WHERE name = 'digest'").fetchone()
        return str(row[0]) if row else ""

    def entries(self, since: int = 0, until: int | None = None) -> Iterator[Entry]:
        """The transactions after one, up to another. Raises DataError if one is damaged, or missing."""
        last = self.last if until is None else min(until, self.last)
        rows = self.connection.execute(
            "SELECT tx, at, kind, said, sum, digest FROM vigilog_log WHERE tx > ? AND tx <= ? ORDER BY tx", (since, last)
        )
        number = max(since, self.first)
        before = self.digest(number)
        for tx, at, kind, packed, total, digest in rows:
            number += 1
            if tx != number:
                break
            if digest and digest != chained(before, packed, tx, at, kind):
                raise DataError(
                    f"transaction {tx} of the log is damaged: its digest is another; restore a backup (vigilog restore)", "damaged"
                )
            before = digest
            yield Entry(tx, at, kind, _unpacked(packed, total, f"transaction {tx} of the log", tx, at, kind))
        else:
            if number >= last:
                return
            number += 1
        raise DataError(f"transaction {number} of the log is damaged: it is not there; restore a backup (vigilog restore)", "damaged")

    def changes(
        self, since: int, until: int | None = None, views: Collection[str] | None = None, *, alerts: bool = False
    ) -> Iterator[tuple[int, str, ChangeEntry]]:
        """What views, all or some, gained and lost after a transaction: its number, the view, the rows; in order. What `alerts` have reported is there, too, if it is asked for, or is among some by its name here."""
        rows = self.connection.execute(
            "SELECT tx, view, said, sum FROM vigilog_outbox WHERE tx > ? AND tx <= ? ORDER BY tx, view",
            (since, self.last if until is None else until),
        )
        for tx, view, packed, total in rows:
            if view in views if views is not None else alerts or not view.startswith(ALERT):
                yield tx, view, _unpacked(packed, total, f"transaction {tx} of {view}", tx, view)

    def said(self, until: int) -> Iterator[ChangeEntry]:
        """What all entries up to a transaction say, of base relations and of views."""
        for entry in self.entries(self.first, until):
            yield from entry.changes.values()
        for _, _, change in self.changes(self.first, until):
            yield change

    def forget(self, until: int) -> None:
        """Drops what is not retained any more."""
        until = max(until, self.first)
        self.file.put("digest", self.digest(until))
        for table in ("vigilog_log", "vigilog_outbox"):
            self.connection.execute(f"DELETE FROM {table} WHERE tx <= ?", (until,))
        self.file.put("first", until)

    def size(self) -> tuple[int, int]:
        """How many changes of views the outbox holds, and how many bytes."""
        number, size = self.connection.execute("SELECT count(*), coalesce(sum(length(said)), 0) FROM vigilog_outbox").fetchone()
        return int(number), int(size)


def _packed(changes: Mapping[str, Any], *about: Any) -> tuple[bytes, int]:
    data = json.dumps(changes, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) >= PACKED:
        data = zlib.compress(data, 1)
    return data, _sum(data, about)


def _unpacked(data: bytes, total: int, what: str, *about: Any) -> dict[str, Any]:
    if _sum(data, about) != total:
        raise DataError(f"{what} is damaged: its sum is not that of its bytes; restore a backup (vigilog restore)", "damaged")
    changes = json.loads(data if data[:1] == b"{" else zlib.decompress(data))
    assert isinstance(changes, dict), "an object was written"
    return changes


def chained(before: str, data: bytes, *about: Any) -> str:
    """The digest of an entry after another.

    >>> chained(chained("", b"{}", 1), b"{}", 2) == chained("", b"{}", 2)
    False
    """
    return hashlib.blake2b(repr((before, about)).encode() + data, digest_size=8).hexdigest()


def _sum(data: bytes, about: tuple[Any, ...]) -> int:
    return zlib.crc32(data, zlib.crc32(repr(about).encode()))
