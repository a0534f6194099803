"""Sources are waited for outside the lock: a slow one keeps nobody waiting but those who need its answer.

The law: a transaction is tried, in the lock, as often as it takes; what it needs of sources is asked for in a thread of its own, and if the answer does not come at once, the transaction is taken back (`Unanswered`), the
lock is free, and when the answer is here it is tried again. What was answered once is not asked again (`Inquiry`), so of a source that gives different answers the first counts. Only if a refresh has read the
source later than that is it asked anew: a transaction never brings back an answer that is older than what is remembered.

>>> from threading import Event
>>> asked, slow = Inquiry(patience=0), Event()
>>> def ask() -> str:
...     return "found" if slow.wait(60) else ""
>>> try:
...     asked.answer("weather", ask)
... except Unanswered as missing:
...     slow.set()
...     missing.wait()
>>> asked.answer("weather", ask)
'found'
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from contextlib import contextmanager
from threading import Thread, local
from typing import Any, TypeVar

from vigilog.core.values import Row

T = TypeVar("T")
Answers = dict[Row, set[Row]]  # of a function, for some arguments
PATIENCE = 0.05  # seconds that a transaction may keep the lock while sources answer, all in all
MOST_TRIES = 1000  # in which a transaction waits outside the lock; then it waits inside, so that it comes to an end


class Unanswered(Exception):
    """A transaction needs an answer that is not here yet. It was taken back, and nothing has changed."""

    def __init__(self, future: Future[Any]) -> None:
        super().__init__("a source is being asked")
        self.future = future

    def wait(self) -> None:
        """Until the source has answered, or failed: that, the next try will tell."""
        self.future.exception()


class Inquiry:
    """What one transaction has asked for, however often it is tried."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience, self.tries = patience, 0
        self.futures: dict[Hashable, Future[Any]] = {}
        self.began: dict[Hashable, float] = {}  # when it was asked, by a clock that only goes forward
        self.answers: dict[Hashable, Answers] = {}  # of each function,
        self.read: dict[Hashable, float] = {}  # and when each was asked for

    def answer(self, what: Hashable, ask: Callable[[], T]) -> T:
        """An answer, asked for if it was not before. Raises Unanswered if it is not here, and what asking raised."""
        future: Future[T] = self.futures.get(what) or self._begin(what, ask)
        if self.tries > MOST_TRIES:
            return future.result()
        waited = time.monotonic()
        try:
            return future.result(max(0.0, self.patience))
        except Late:
            if future.done():  # the source itself has raised it
                raise
            raise Unanswered(future) from None
        finally:
            self.patience -= time.monotonic() - waited

    def forget(self, what: Hashable) -> None:
        """It is to be asked anew."""
        self.futures.pop(what, None)

    def _begin(self, what: Hashable, ask: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        self.futures[what], self.began[what] = future, time.monotonic()

        def run() -> None:
            try:
                future.set_result(ask())
            except BaseException as reason:
                future.set_exception(reason)

        future.set_running_or_notify_cancel()  # from now on nobody can cancel it who only waits for it

        Thread(target=run, name="vigilog source", daemon=True).start()
        return future


class Trying(local):
    """What the transaction of this thread has asked for so far, and who waits if that is not here."""

    asked: Inquiry | None = None  # within a try
    lent: Inquiry | None = None  # of somebody who waits himself, and tries again

    def patiently(self, lock: Any, work: Callable[[], T]) -> T:
        """Does something in the lock; if it needs answers that are not here, waits for them outside, and does it again."""
        if self.asked is not None:  # it is part of something that is tried
            return work()
        asked = self.lent or Inquiry()
        while True:
            try:
                with lock:
                    self.asked = asked
                    try:
                        return work()
                    finally:
                        self.asked = None
            except Unanswered as missing:
                asked.tries += 1
                asked.patience = PATIENCE
                if self.lent is not None:
                    raise
                missing.wait()

    @contextmanager
    def lending(self, asked: Inquiry) -> Iterator[None]:
        """What is tried inside raises Unanswered, and waits for nothing."""
        before, self.lent = self.lent, asked
        try:
            yield
        finally:
            self.lent = before
