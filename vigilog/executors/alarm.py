"""A clock that ends what takes too long: whoever works within one step of a database cannot look at it.

>>> from threading import Event
>>> rung = Event()
>>> with ALARM.after(0.01, rung.set):
...     rung.wait(5)
True
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from threading import Condition, Thread


@dataclass(order=True)
class Deadline:
    moment: float
    ring: Callable[[], None] | None = field(compare=False)  # None once it does not matter any more


class Alarm:
    """One thread for all deadlines. None rings after what it was for has ended."""

    def __init__(self) -> None:
        self.deadlines: list[Deadline] = []
        self.changed = Condition()
        self.thread: Thread | None = None

    @contextmanager
    def after(self, seconds: float, ring: Callable[[], None]) -> Iterator[None]:
        """Rings if what is done inside takes longer."""
        deadline = Deadline(time.monotonic() + seconds, ring)
        with self.changed:
            heappush(self.deadlines, deadline)
            if self.thread is None or not self.thread.is_alive():  # as in a process that was forked
                self.thread = Thread(target=self._watch, name="alarm", daemon=True)
                self.thread.start()
            elif self.deadlines[0] is deadline:
                self.changed.notify()
        try:
            yield
        finally:
            with self.changed:
                deadline.ring = None

    def _watch(self) -> None:
        with self.changed:
            while True:
                while self.deadlines and (self.deadlines[0].ring is None or self.deadlines[0].moment <= time.monotonic()):
                    if ring := heappop(self.deadlines).ring:
                        ring()
                self.changed.wait(self.deadlines[0].moment - time.monotonic() if self.deadlines else None)


ALARM = Alarm()
