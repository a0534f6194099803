"""The changes of one view, as they come, in the process that has the database.

>>> from vigilog.folder.opening import open_program
>>> program = '''
... .decl edge(x: symbol, y: symbol)
... .decl back(x: symbol, y: symbol)
... .output back
... back(y, x) :- edge(x, y).
... '''
>>> db = open_program(program)
>>> with db.subscribe("back") as changes:
...     outcome = db.take({"insert": {"edge": [("a", "b")]}})
...     changes.get(timeout=1)
ViewChange(tx=1, delta=Delta(plus=frozenset({('b', 'a')}), minus=frozenset()))
>>> db.close()
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Condition
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.values import Row
from vigilog.engine.outcome import Outcome

if TYPE_CHECKING:
    from vigilog.engine.database import Database


@dataclass(frozen=True)
class ViewChange:
    """What one transaction changed in a view."""

    tx: int
    delta: Delta

    @property
    def plus(self) -> frozenset[Row]:
        return self.delta.plus

    @property
    def minus(self) -> frozenset[Row]:
        return self.delta.minus


class Changes:
    """Every change of a view after a transaction, once, in order. Use it in a `with`; iterating waits for the next, until it is closed.

    What was not taken yet is in memory; on a data folder, in its outbox.
    """

    def __init__(self, db: Database, view: str, since: int | None = None) -> None:
        """Begins after the last transaction, or after an earlier one, whose changes a data folder retains."""
        if view not in db.program.outputs:
            hint = did_you_mean(view, db.program.outputs) or "changes are told of .output relations"
            raise DataError(f"there is no view {view} ({hint})", "unknown-relation")
        self.db, self.view = db, view
        self.waiting: deque[ViewChange] = deque()
        self.told, self.closed = Condition(), False
        with db.lock:
            self.position = db.tx if since is None else since
            self.waiting.extend(db.changes_of(view, self.position) if self.position != db.tx else ())
            self.reached = db.tx
            db.step.listeners.append(self._hear)

    def _hear(self, outcome: Outcome) -> None:
        with self.told:
            if self.db.keeps_changes:
                self.reached = outcome.tx
            elif delta := outcome.deltas.get(self.view):
                self.waiting.append(ViewChange(outcome.tx, delta))
            self.told.notify_all()

    def _pull(self) -> ViewChange | None:
        if not self.waiting and self.db.keeps_changes and self.position < self.reached:
            until = self.reached
            self.waiting.extend(self.db.changes_of(self.view, self.position, until))
            self.position = until
        if not self.waiting:
            return None
        change = self.waiting.popleft()
        self.position = max(self.position, change.tx)
        return change

    def get(self, timeout: float | None = None) -> ViewChange | None:
        """The next change; None if none has come within `timeout` seconds, or it is closed."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            if (change := self._pull()) is not None or self.closed:
                return change
            with self.told:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    return None
                if not self.waiting and not self.closed and (not self.db.keeps_changes or self.position >= self.reached):
                    self.told.wait(left)

    def __iter__(self) -> Iterator[ViewChange]:
        while (change := self.get()) is not None:
            yield change

    def close(self) -> None:
        """Ends it; one who waits gets nothing more."""
        with self.told:
            self.closed = True
            self.told.notify_all()
        with self.db.lock:
            if self._hear in self.db.step.listeners:
                self.db.step.listeners.remove(self._hear)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
