"""Streams into a relation: each batch is one transaction, and happens once.

With each transaction its position is committed: for a folder the number of the batch and its files, for a Delta table its version. What comes again, because this process or Spark ended between the commit
and Spark's own note of it, is known by that and left out.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vigilog.core.errors import DataError, VigilogError
from vigilog.core.extras import SPARK
from vigilog.core.values import Row
from vigilog.engine.evaluate import ensure_known
from vigilog.engine.places import split
from vigilog.files.place import Place
from vigilog.flows.home import Home
from vigilog.language.options import OF_SOURCE

if TYPE_CHECKING:
    from vigilog.spark.delta import State

FOLDER = "streams"
EVERY = "1"  # seconds between two looks, unless stated otherwise


class Stream(Protocol):
    """A stream that is followed in the background. `error` is why it ended before it was told to."""

    relation: str

    @property
    def active(self) -> bool: ...

    @property
    def error(self) -> VigilogError | None: ...

    @property
    def position(self) -> Any:
        """How far it was read: what was committed with the last of its transactions."""

    def start(self, *, once: bool, anew: bool) -> None:
        """Begins where it was left, or `anew`: a folder with its first file, a table with all that it holds now."""

    def catch_up(self) -> None:
        """Waits until all that is there now was read. Raises what ended the stream, if something did."""

    def stop(self) -> None:
        """Ends it, after the batch that is under way."""


def made(db: Home, relation: str, place: Place | None) -> Stream:
    ensure_known(db.program, relation)
    if place is None:
        example = f'.input {relation}(IO=stream, format=json, path="folder")'
        raise DataError(f"{relation} is no stream; it would be one by {example}", "stream")
    if relation not in db.base:
        raise DataError(f"{relation} is derived by rules; change the relations it is derived from", "derived")
    SPARK.need(f"{relation} is a stream, which Spark follows")
    return {"delta": DeltaStream, "iceberg": IcebergStream}.get(place.options["format"], FolderStream)(db, place)


class FolderStream:
    """The files that come into a folder, found by Spark's Structured Streaming, which notes in a checkpoint of the data folder which it has found."""

    def __init__(self, db: Home, place: Place) -> None:
        self.db, self.place, self.relation = db, place, place.relation
        self.name = f"stream {place.relation}"
        self.failed: VigilogError | None = None
        self.query: Any = None
        self.busy, self.stopping = threading.Lock(), False

    @property
    def position(self) -> Any:
        with self.db.lock:
            return self.db.book.position(self.name)

    @property
    def active(self) -> bool:
        try:
            return self.query is not None and bool(self.query.isActive)
        except Exception:  # Spark's process has ended
            return False

    @property
    def error(self) -> VigilogError | None:
        from vigilog.spark.session import cause
        from vigilog.spark.streams import missing

        if self.failed is None and self.query is not None and not self.stopping:
            try:
                reason = self.query.exception()
            except Exception:
                self.failed = DataError(f"the stream of {self.relation} ended: Spark's process has ended", "spark")
                return self.failed
            if reason is not None:
                self.failed = DataError(f"the stream of {self.relation} ended: {cause(reason)}", "spark")
            elif self.place.local and not self.place.path.is_dir():
                return missing(self.place)
        return self.failed

    def start(self, *, once: bool, anew: bool) -> None:
        from vigilog.spark.streams import follow

        self.checkpoint = self._checkpoint(None if anew else self.position)
        self.query = follow(self.place, self.checkpoint, self._take, once=once)

    def catch_up(self) -> None:
        from vigilog.spark.streams import catch_up

        catch_up(self.query)
        if self.error:
            raise self.error

    def stop(self) -> None:
        with self.busy:  # a batch that is being taken ends first
            self.stopping = True
        if self.query is not None:
            with suppress(Exception):  # if Spark's process has ended, so has it
                self.query.stop()

    def _checkpoint(self, position: Any) -> Path:
        """The folder in which Spark notes what it has read: the one that goes with a position, or a new one."""
        home = self.db.folder / FOLDER / self.relation
        if position is None:
            shutil.rmtree(home, ignore_errors=True)  # whatever Spark noted there, nothing of it counts
            return home / secrets.token_hex(8)
        checkpoint = home / str(position["checkpoint"])
        done = max((int(path.name) for path in checkpoint.glob("commits/*") if path.name.isdigit()), default=-1)
        if not checkpoint.is_dir() or done > position["batch"]:
            what = "is not there" if done < 0 else f"has batch {done}, but the database only {position['batch']}"
            raise DataError(f"the stream of {self.relation} cannot go on: its checkpoint {checkpoint} {what}; it can begin anew", "source")
        return checkpoint

    def _take(self, number: int, files: Sequence[str]) -> None:
        with self.busy:
            if self.stopping:
                raise InterruptedError("the stream was stopped")
            try:
                self._take_new(number, files)
            except VigilogError as reason:
                self.failed = reason
                raise

    def _take_new(self, number: int, files: Sequence[str]) -> None:
        """Takes the files of a batch that were not taken before."""
        from vigilog.spark.streams import from_files

        last, files = self.position, self._announced(number, files)
        if last is None or last["checkpoint"] != self.checkpoint.name:
            last = {"batch": -1, "files": []}
        if number < last["batch"]:
            raise DataError(
                f"the stream of {self.relation} is at batch {last['batch']}, and {number} comes again: its checkpoint is an older one",
                "source",
            )
        seen = last["files"] if number == last["batch"] else []
        new = [file for file in files if file not in seen]
        if number == last["batch"] and not new:
            return
        wish = together(
            folded(place.relation, key, from_files(place, key, new))
            for place in split(self.db.program, self.place)
            for key in [self.db.program.keys.get(place.relation, ())]
        )
        position = {"checkpoint": self.checkpoint.name, "batch": number, "files": [*seen, *new]}
        self.db.take(wish, kind="stream", source=(self.name, position))

    def _announced(self, number: int, files: Sequence[str]) -> list[str]:
        """The files of a batch, those included that Spark does not name any more when the batch comes again, because they are gone."""
        note = self.checkpoint.with_suffix(".files")
        noted = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
        before = noted["files"] if noted.get("batch") == number else []
        announced = [*before, *(file for file in files if file not in before)]
        if announced != before:
            fresh = note.with_suffix(".new")
            with fresh.open("w", encoding="utf-8") as file:
                json.dump({"batch": number, "files": announced}, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(note)
        return announced


class TableStream:
    """A table that is looked at now and then: see `_advance` of those that there are."""

    def __init__(self, db: Home, place: Place, format_: str) -> None:
        self.db, self.relation = db, place.relation
        self.place = replace(
            place, format=format_, options={key: value for key, value in place.options.items() if key in OF_SOURCE[format_]}
        )
        self.name = f"stream {place.relation}"
        self.every = float(place.options.get("every", EVERY))
        self.failed: VigilogError | None = None
        self.stopping = threading.Event()
        self.busy = threading.Lock()
        self.thread = threading.Thread(target=self._run, name=self.name, daemon=True)

    @property
    def position(self) -> Any:
        with self.db.lock:
            return self.db.book.position(self.name)

    @property
    def active(self) -> bool:
        return self.thread.is_alive() and self.failed is None

    @property
    def error(self) -> VigilogError | None:
        return self.failed

    def start(self, *, once: bool, anew: bool) -> None:
        self.once, self.anew = once, anew
        self._begin()
        self.thread.start()

    def catch_up(self) -> None:
        self._look()
        if self.failed:
            raise self.failed

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.ident is not None:
            self.thread.join()

    def _run(self) -> None:
        while not self.stopping.is_set() and self.failed is None:
            self._look()
            if self.once:
                break
            self.stopping.wait(self.every)

    def _look(self) -> None:
        try:
            with self.busy:
                self._advance()
        except VigilogError as reason:
            self.failed = reason
        except Exception as reason:  # Spark's process has ended, say
            self.failed = DataError(f"the stream of {self.relation} ended: {type(reason).__name__}: {reason}", "spark")

    def _begin(self) -> None:
        """Raises DataError if the table cannot be followed from where it was left."""
        raise NotImplementedError

    def _advance(self) -> None:
        """Takes what is new."""
        raise NotImplementedError

    def _other(self, since: object) -> DataError:
        return DataError(f"{self.place.location}: is another table than the one that {self.relation} followed up to {since}", "source")


class DeltaStream(TableStream):
    """The versions of a Delta table, by its change feed; the first transaction makes the relation equal to the table."""

    def __init__(self, db: Home, place: Place) -> None:
        super().__init__(db, place, "delta")

    def _begin(self) -> None:
        self._state()

    def _state(self) -> State:
        """The state of the table. Raises DataError if it is not the one that was followed before."""
        from vigilog.spark.delta import state

        current, last = state(self.place), self.position
        if last is not None and not self.anew and (current.table != last["table"] or current.version < last["version"]):
            raise self._other(f"version {last['version']}")
        return current

    def _advance(self) -> None:
        """Takes the versions that are new, one transaction each."""
        from vigilog.spark.streams import from_version

        newest = self._state()
        last = self.position
        if last is None or self.anew:
            with self.db.lock:
                whole = replace(self.place, options={"version": str(newest.version)})
                position = {"table": newest.table, "version": newest.version}
                owner, *others = split(self.db.program, whole)
                for place in others:
                    self.db.store.equalize(place.relation, place, kind="stream", source=(f"stream {place.relation}", position))
                self.db.store.equalize(self.relation, owner, kind="stream", source=(self.name, position))
            self.anew = False
            return
        for version in range(last["version"] + 1, newest.version + 1):
            if self.stopping.is_set():
                return
            wish: dict[str, dict[str, list[Row]]] = {"delete": {}, "insert": {}}
            for place in split(self.db.program, self.place):
                for operation, row in from_version(place, version):
                    wish[operation].setdefault(place.relation, []).append(row)
            self.db.take(wish, kind="stream", source=(self.name, {"table": newest.table, "version": version}))


class IcebergStream(TableStream):
    """The snapshots of an Iceberg table: whenever there is a new one, what has changed since the last is one transaction. The first makes the relation equal to the table."""

    def __init__(self, db: Home, place: Place) -> None:
        super().__init__(db, place, "iceberg")
        self.place = replace(self.place, options={**self.place.options, "name": place.options["path"]})

    def _begin(self) -> None:
        from vigilog.spark.iceberg import Opened

        table, last = Opened(self.place), self.position
        if last is not None and not self.anew and table.uuid != last["table"]:
            raise self._other(f"snapshot {last['snapshot']}")

    def _advance(self) -> None:
        self._begin()
        with self.db.lock:
            owner, *others = split(self.db.program, self.place)
            for place in (*others, owner):
                self.db.store.follow(place, f"stream {place.relation}", kind="stream", anew=self.anew)
        self.anew = False


def together(wishes: Iterable[Mapping[str, Mapping[str, list[Row]]]]) -> dict[str, dict[str, list[Row]]]:
    """Wishes of different relations as one."""
    merged: dict[str, dict[str, list[Row]]] = {}
    for wish in wishes:
        for operation, by_relation in wish.items():
            merged.setdefault(operation, {}).update(by_relation)
    return merged


def folded(relation: str, key: Sequence[int], operations: Iterable[tuple[str, Row]]) -> dict[str, dict[str, list[Row]]]:
    """Operations in their order as one transaction, in which deletions come before insertions.

    >>> folded("stock", [0], [("upsert", ("p", 1)), ("upsert", ("p", 2)), ("insert", ("q", 3)), ("delete", ("q", 3))])
    {'delete': {'stock': [('q', 3)]}, 'delete_key': {'stock': [('p',)]}, 'insert': {'stock': [('p', 2)]}}
    """
    cleared: dict[Row, None] = {}  # keys of which nothing is left
    last: dict[Row, dict[Row, bool]] = {}  # for each key its rows, and whether they are to be there
    for operation, row in operations:
        value = tuple(row[column] for column in key)
        if operation in ("upsert", "delete_key"):
            if not key:
                raise DataError(f"{relation} has no key, which {operation} goes by", "key")
            cleared[value] = None
            last[value] = {row: True} if operation == "upsert" else {}
        else:
            last.setdefault(value, {})[row] = operation == "insert"
    rows = [(row, there) for of_key in last.values() for row, there in of_key.items()]
    return {
        "delete": {relation: [row for row, there in rows if not there]},
        "delete_key": {relation: list(cleared)} if key else {},
        "insert": {relation: [row for row, there in rows if there]},
    }
