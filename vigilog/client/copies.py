"""A copy of one or several views, kept equal to the server's by the events of a subscription.

The law: at every moment the rows of all views are those of one position. Only `take` changes them; readers of any thread see a state before or after a change, never one in between.

The rows of a constrained view are facts with conditions, and its changes are regions, which need not be facts that are there. So the copy counts: a fact of the first answer and one that came count one, one that
went counts one less; a row is in the view if the facts that cover it count more than nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from vigilog.client.columns import Columns
from vigilog.client.events import Change, Event, Progress, Snapshot, Subscribed
from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError, UsageError, VigilogError
from vigilog.core.facts import Fact, covers
from vigilog.core.values import Row, sorted_rows

log = logging.getLogger("vigilog.client")

Callback = Callable[[], Any]
OfRow = Callable[[Row], Any]
OfChange = Callable[[Change], Any]
OfError = Callable[[Exception], Any]


class Copy:
    """The rows that a client holds, and whom it tells about changes."""

    def __init__(self, snapshot: Snapshot | None = None, *, first: bool = False) -> None:
        """Begins with rows that are known from before, or with none. With `first`, the first answer is told to callbacks like a change."""
        self.lock = RLock()
        self.rows: dict[str, set[Row]] = {view: set(rows) for view, rows in snapshot.views.items()} if snapshot else {}
        self.db, self.position, self.digest = (snapshot.db, snapshot.tx, snapshot.digest) if snapshot else ("", -1, "")
        self.columns: dict[str, Columns] = {}
        self.facts: dict[str, Counter[Fact]] = {}  # of constrained views, how often each fact counts
        self.whole = snapshot is not None  # whether there has been an answer
        self.settled = -1  # the position that callbacks were told about, too
        self.ended = False
        self.error: Exception | None = None  # why it ended, or the last error of a callback
        self.plus: dict[str, list[OfRow]] = {}
        self.minus: dict[str, list[OfRow]] = {}
        self.change: list[OfChange] = []
        self.failed: list[OfError] = []
        self._first, self._waiting = first, list[tuple[int, Callback]]()

    # -- what comes

    def take(self, event: Event) -> list[Callback]:
        """Takes an event in; gives the callbacks that are to be called for it, in order: of rows that went, of rows that came, of the whole change."""
        told: Change | None = None
        with self.lock:
            match event:
                case Subscribed():
                    self.db, self.columns = event.db, dict(event.columns)
                case Snapshot():
                    told = self._replace(event)
                case Change():
                    self._apply(event)
                    told = event
                case Progress() if self.whole:
                    if event.tx >= self.position:
                        self.position, self.digest = event.tx, event.digest
            return self._calls(told) if told is not None else []

    def _replace(self, snapshot: Snapshot) -> Change | None:
        """A new first answer: the difference is what a holder has missed."""
        before, self.facts = self.facts, {view: Counter(map(_fact, rows)) for view, rows in snapshot.views.items() if self._counts(view)}
        tells = self.whole or self._first
        since = self.position if self.whole and self.db == snapshot.db else None
        deltas = {view: between(self.rows.get(view, set()), rows) for view, rows in snapshot.views.items()} if tells else {}
        for view in self.facts.keys() & deltas.keys():
            deltas[view] = _difference(before.get(view, Counter()), self.facts[view])
        self.rows = {view: set(rows) for view, rows in snapshot.views.items()}
        self.position, self.digest, self.whole = snapshot.tx, snapshot.digest, True
        changed = {view: delta for view, delta in deltas.items() if delta}
        return Change(snapshot.tx, changed, since=since) if changed else None

    def _apply(self, change: Change) -> None:
        """All of a change or nothing of it. A change that does not fit shows that the copy is not the server's view, and is not hidden."""
        for view, delta in change.views.items():
            rows = self.rows.setdefault(view, set())
            if self._counts(view):
                continue  # regions are cut as the server likes, and fit wherever they are counted
            if not (delta.minus <= rows and delta.plus.isdisjoint(rows)):
                raise DataError(f"change {change.tx} of {view} does not fit the copy at position {self.position}", "message")
        for view, delta in change.views.items():
            if self._counts(view):
                facts = self.facts.setdefault(view, Counter())
                facts.update(map(_fact, delta.plus))
                facts.subtract(map(_fact, delta.minus))
                self.rows[view] = {fact for fact, number in facts.items() if number > 0}
                self.facts[view] = Counter({fact: number for fact, number in facts.items() if number})
                continue
            self.rows[view] -= delta.minus
            self.rows[view] |= delta.plus
        self.position, self.digest = change.tx, change.digest

    def _counts(self, view: str) -> bool:
        return view in self.columns and self.columns[view].constrained

    def covers(self, view: str, row: Row) -> bool:
        """Whether a row is in a view: of a constrained one, whether the facts that cover it count more than nothing."""
        with self.lock:
            if not self._counts(view):
                return row in self.rows.get(view, ())
            types = self.columns[view].types
            return sum(number for fact, number in self.facts.get(view, Counter()).items() if covers(fact, types, row)) > 0

    def _calls(self, change: Change) -> list[Callback]:
        calls: list[Callback] = []
        for callbacks, side in ((self.minus, "minus"), (self.plus, "plus")):
            for view, delta in change.views.items():
                for callback in callbacks.get(view, ()):
                    calls += [_call(callback, row) for row in sorted_rows(getattr(delta, side))]
        return calls + [_call(callback, change) for callback in self.change]

    def settle(self) -> None:
        """What was taken in was told, too: whoever waits for its position goes on."""
        with self.lock:
            if self.whole:
                self.settled = self.position
            self._wake()

    def trouble(self, error: Exception) -> None:
        """A callback has failed. The copy is right all the same, and goes on; the error is logged, kept, and told to those who want to know."""
        log.error("a callback of a view failed", exc_info=error)
        self._tell(error)

    def end(self, error: Exception | None) -> None:
        """The copy is kept no more. Those who wait hear of it after those who are called back."""
        if error is not None and self.whole:
            log.error("a view is no longer kept: %s", error, exc_info=None if isinstance(error, VigilogError) else error)
        if error is not None:
            self._tell(error)
        with self.lock:
            self.ended = True
            self._wake()

    def _tell(self, error: Exception) -> None:
        self.error = error
        for callback in self.failed:
            try:
                callback(error)
            except Exception:
                log.exception("a callback for errors failed")

    # -- who waits

    def when(self, tx: int, wake: Callback) -> None:
        """Calls `wake` as soon as the copy, and its callbacks, have come to a position, or never will."""
        with self.lock:
            self._waiting.append((tx, wake))
            self._wake()

    def give_up(self, wake: Callback) -> None:
        """Whoever is waked by this waits no longer."""
        with self.lock:
            self._waiting = [entry for entry in self._waiting if entry[1] != wake]

    def reached(self, tx: int) -> bool:
        """Whether it has come to a position. Raises what ended it before."""
        if self.settled >= tx and self.whole:
            return True
        if self.ended:
            raise self.error or UsageError(f"the view was closed at position {self.position}")
        return False

    def _wake(self) -> None:
        due = [entry for entry in self._waiting if self.ended or (self.whole and self.settled >= entry[0])]
        self._waiting = [entry for entry in self._waiting if entry not in due]
        for _, wake in due:
            wake()

    # -- who looks

    def snapshot(self, views: Iterable[str]) -> Snapshot:
        with self.lock:
            return Snapshot(self.db, self.position, {view: frozenset(self.rows.get(view, ())) for view in views}, self.digest)


def _fact(row: Row) -> Fact:
    return Fact._make(row)


def _difference(before: Counter[Fact], now: Counter[Fact]) -> Delta:
    """What changes one way of counting into another."""
    facts = before.keys() | now.keys()
    return Delta(
        frozenset(fact for fact in facts if now[fact] > before[fact]), frozenset(fact for fact in facts if now[fact] < before[fact])
    )


def _call(callback: Callable[[Any], Any], argument: object) -> Callback:
    return lambda: callback(argument)
