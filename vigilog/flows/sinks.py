"""Sinks: the changes of a view, delivered in order to somebody else, each once, from where the last delivery ended.

A sink reads the outbox. How far it came is noted where that can be done together with the delivery, or else right after it; `Delivery` says what each kind of sink does.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, UsageError, VigilogError, did_you_mean
from vigilog.core.values import Row, sorted_rows
from vigilog.flows.home import Home
from vigilog.language.syntax import Declaration
from vigilog.store.file import damage
from vigilog.store.log import ChangeEntry

MOST_CHANGES = 1_000  # that are delivered at once
NOTED_EVERY = 1_000  # transactions without a change of the view pass until that is noted, too
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0  # seconds between two tries


@dataclass(frozen=True)
class Changeset:
    """What a view gained and lost in one transaction: its rows, or, if they are many, where Spark wrote them."""

    tx: int
    entry: ChangeEntry

    @property
    def large(self) -> bool:
        return any(isinstance(part, dict) and "location" in part for part in self.entry.values())


@dataclass(frozen=True)
class Position:
    """The last transaction that was delivered, in which history."""

    history: str
    tx: int


Rows = list[Row] | Any  # of a view: here, or, if they are many, as a frame


class Delivery(Protocol):
    """A kind of sink. It raises DataError with the code `unwritable` for what may be better the next time."""

    begins_anew: bool  # whether the whole view may take the place of what was delivered before

    def position(self) -> Position | None: ...

    def whole(self, at: Position, rows: Rows) -> None:
        """Delivers the whole view, and notes its position."""

    def changes(self, since: Position, until: Position, changes: Sequence[Changeset]) -> Position:
        """Delivers what came after a position, up to another, and notes that; gives the position reached, which may be another."""


class SinkSource:
    """What a sink needs of the database: one view of it, and a place for its position."""

    def __init__(self, db: Home, view: str, name: str) -> None:
        if view not in db.program.outputs:
            hint = did_you_mean(view, db.program.outputs) or "a sink has the changes of an .output relation"
            raise DataError(f"there is no view {view} ({hint})", "unknown-relation")
        self.db, self.view, self.name = db, view, name
        self.declaration: Declaration = db.program.relations[view]

    def rows(self) -> Rows:
        """The view as of now. What Spark holds is a frame, to be used while the database is locked."""
        return self.db.frame(self.view) if self.is_far else sorted_rows(self.db.view(self.view))

    @property
    def is_far(self) -> bool:
        return self.db.store.is_far(self.view)

    def delta(self, change: Changeset) -> Delta:
        return self.db.book.delta(self.view, change.entry)

    def noted(self) -> Any:
        with self.db.lock:
            return self.db.book.position(f"sink {self.name}")

    def note(self, position: Any) -> None:
        with self.db.lock, damage(self.db.file.path), self.db.writing():
            self.db.book.note_source(f"sink {self.name}", position)

    def pending(self, since: Position) -> tuple[list[Changeset], Position]:
        """The next changes after a position, and up to which transaction they are all."""
        db = self.db
        with db.lock, damage(db.file.path):
            if db.program.relations.get(self.view, self.declaration) != self.declaration or self.view not in db.program.outputs:
                raise DataError(f"{self.view} was declared anew or dropped; the sink {self.name} ends here", "columns")
            until = db.tx
            own = ((tx, entry) for tx, view, entry in db.book.log.changes(since.tx, until) if view == self.view)
            changes = [Changeset(tx, entry) for tx, entry in islice(own, MOST_CHANGES)]
        last = changes[-1].tx if len(changes) == MOST_CHANGES else until
        return changes, Position(since.history, last)


class Sink:
    """A view whose changes are delivered in the background. `error` is why the last try failed; it is tried again unless the sink is not `active` any more."""

    def __init__(self, source: SinkSource, kind: str, delivery: Delivery, since: int | None) -> None:
        self.source, self.kind, self.delivery, self.since = source, kind, delivery, since
        self.view, self.name = source.view, source.name
        self.error: VigilogError | None = None
        self.reached = -1  # the transaction up to which all is delivered
        self.ended = False
        self.news, self.stopping, self.told = threading.Event(), threading.Event(), threading.Condition()
        self.thread = threading.Thread(target=self._run, name=f"sink {self.name}", daemon=True)

    @property
    def active(self) -> bool:
        return self.thread.is_alive() and not self.ended

    @property
    def position(self) -> int | None:
        """The last transaction whose delivery is noted."""
        position = self.delivery.position()
        return None if position is None else position.tx

    def start(self) -> None:
        self.source.db.step.listeners.append(self._wake)
        self.news.set()
        self.thread.start()

    def catch_up(self, timeout: float | None = None) -> None:
        """Waits until all that was committed up to now is delivered. Raises what ended the sink, if something did, or what keeps it after `timeout` seconds."""
        wanted = self.source.db.tx
        with self.told:
            arrived = self.told.wait_for(lambda: self.reached >= wanted or self.ended, timeout)
        if self.reached < wanted:
            state = "was stopped" if arrived else f"did not come to transaction {wanted} within {timeout} s"
            raise self.error or DataError(f"the sink {self.name} {state}", "unwritable")

    def stop(self) -> None:
        """Ends it, after the delivery that is under way."""
        self.stopping.set()
        self.news.set()
        if self.thread.ident is not None:
            self.thread.join()
        if self._wake in self.source.db.step.listeners:
            self.source.db.step.listeners.remove(self._wake)

    def _wake(self, _: object) -> None:
        self.news.set()

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            with self.told:
                self.ended = True
                self.told.notify_all()

    def _serve(self) -> None:
        pause = FIRST_PAUSE
        while self.news.wait() and not self.stopping.is_set():
            self.news.clear()
            try:
                self._deliver()
                self.error, pause = None, FIRST_PAUSE
            except VigilogError as reason:
                self.error = reason
                if reason.code != "unwritable":
                    break
                self.stopping.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                self.news.set()
            except Exception as reason:  # a mistake, or Spark's process has ended: whoever looks is told
                self.error = DataError(f"the sink {self.name} ended: {type(reason).__name__}: {reason}", "internal")
                break

    def _deliver(self) -> None:
        """Delivers all there is."""
        position = self._begin(self.delivery.position())
        while not self.stopping.is_set():
            changes, until = self.source.pending(position)
            reached = until
            if changes or until.tx - position.tx >= NOTED_EVERY:
                position = reached = self.delivery.changes(position, until, changes)
            with self.told:
                self.reached = reached.tx
                self.told.notify_all()
            if len(changes) < MOST_CHANGES and reached.tx >= until.tx:
                break

    def _begin(self, position: Position | None) -> Position:
        """Where to go on; a new sink delivers the whole view first."""
        db = self.source.db
        with db.lock:
            now = Position(db.file.history, db.tx)
            if position is None and self.since is not None:
                position = Position(now.history, self.since)
            if position is not None:
                if (why := self._unfit(position, now)) is None:
                    return position
                if not self.delivery.begins_anew:
                    raise why
            rows = self.source.rows()
            if self.source.is_far:  # a frame is read while the database stands still
                self.delivery.whole(now, rows)
                return now
        self.delivery.whole(now, rows)
        return now

    def _unfit(self, position: Position, now: Position) -> DataError | None:
        """Why a sink cannot go on at a position, if it cannot."""
        first = self.source.db.book.log.first
        if position.history != now.history:
            return DataError(f"the sink {self.name} has changes of another history of the database; give a new one another name", "history")
        if position.tx > now.tx:
            return DataError(f"there is no transaction {position.tx} yet: the last is {now.tx}", "future")
        if position.tx < first:
            return DataError(f"the sink {self.name} needs the changes after {position.tx}, and they are retained after {first} only", "gap")
        return None


def made(db: Home, view: str, kind: str, target: str, name: str, since: int | None, options: Mapping[str, Any]) -> Sink:
    from vigilog.flows.deliveries import KINDS

    if kind not in KINDS:
        raise UsageError(f"there is no sink {kind}; there are {', '.join(KINDS)}")
    source = SinkSource(db, view, name)
    if kind == "jdbc" and since is not None:
        raise UsageError("a table is kept equal to the whole view; it has no since")
    return Sink(source, kind, KINDS[kind](source, target, options), since)
