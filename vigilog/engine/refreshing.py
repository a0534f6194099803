"""Domains with `refresh=10s` are asked anew by themselves, each in a transaction of its own, as often as they say.

A source that is slow or down keeps the others from nothing: each is asked in a thread of its own, and never twice at a time. What goes wrong is told by `status`, and tried again when it is due again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from vigilog.core.errors import VigilogError
from vigilog.engine.sources import Sources

LOOK = 0.5  # seconds between two looks at the clock, at most


class Refreshable(Protocol):
    """A database, as this module sees it."""

    sources: Sources | None

    def refresh(self, *domains: str) -> Any: ...


class Timetable:
    """Which domains are to be asked anew, and when. It begins with the first look: what was read when the program was opened is new then.

    >>> class Timed:
    ...     intervals = {"d": 10.0}
    >>> due = Timetable()
    >>> due.now(Timed(), 100.0), due.now(Timed(), 109.0), due.now(Timed(), 110.5), due.now(Timed(), 111.0), due.next
    ([], [], ['d'], [], {'d': 120.5})
    """

    def __init__(self) -> None:
        self.next: dict[str, float] = {}

    def now(self, sources: Any, now: float) -> list[str]:
        """Those whose time has come. It comes again after as long."""
        intervals = sources.intervals if sources is not None else {}
        self.next = {name: self.next.get(name, now + interval) for name, interval in intervals.items()}
        due = [name for name, when in self.next.items() if when <= now]
        self.next |= {name: now + intervals[name] for name in due}
        return due

    def wait(self, now: float) -> float | None:
        """How long it is to the next; None if there is none."""
        return max(0.0, min(self.next.values()) - now) if self.next else None


class Refresher:
    """Refreshes in the background, from `start` to `stop`."""

    def __init__(self, db: Refreshable, clock: Callable[[], float] = time.monotonic) -> None:
        self.db, self.clock, self.due = db, clock, Timetable()
        self.on = False
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None
        self.busy: dict[str, threading.Thread] = {}

    def start(self) -> None:
        """From now on; a thread runs only while some domain says so."""
        self.on = True
        if self.thread is None and self.db.sources is not None and self.db.sources.intervals and not self.stopping.is_set():
            self.thread = threading.Thread(target=self._run, name="refreshes", daemon=True)
            self.thread.start()

    def stop(self) -> None:
        """No refresh begins after this. One that waits for its source is not waited for: it will find the database closed."""
        self.on = False
        self.stopping.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self) -> None:
        while not self.stopping.is_set():
            for name in self.due.now(self.db.sources, self.clock()):
                if name not in self.busy or not self.busy[name].is_alive():
                    self.busy[name] = threading.Thread(target=self.refresh, args=(name,), name=f"refresh of {name}", daemon=True)
                    self.busy[name].start()
            wait = self.due.wait(self.clock())
            self.stopping.wait(LOOK if wait is None else min(LOOK, wait))

    def refresh(self, name: str) -> None:
        """Asks one anew, and notes it if that fails."""
        try:
            self.db.refresh(name)
        except VigilogError as reason:
            if not self.stopping.is_set() and (sources := self.db.sources) is not None:
                sources.failed(name, reason.message)
        except Exception as reason:  # the database was closed meanwhile, or a function of ours has failed
            if not self.stopping.is_set() and (sources := self.db.sources) is not None:
                sources.failed(name, f"{type(reason).__name__}: {reason}")
