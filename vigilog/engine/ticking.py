"""`watch` while sources are refreshed by themselves: between two lines, and while the next is waited for, what is due is asked anew."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from queue import Empty, Queue
from threading import Thread
from typing import Any

from vigilog.core.errors import VigilogError
from vigilog.engine.database import Database
from vigilog.engine.outcome import Outcome
from vigilog.engine.refreshing import Timetable

AHEAD = 1000  # lines that are read before they are wanted
Line = str | bytes


def ticking(database: Database, lines: Iterable[Line]) -> Iterator[Line | list[str]]:
    """The lines, and between them the domains that are due, as lists of names."""
    database.refresher.stop()  # here it is told in its place among the lines
    if database.sources is None or not database.sources.intervals:
        yield from lines
        return
    due, queue = Timetable(), Queue[Line | BaseException | None](AHEAD)

    def read() -> None:
        try:
            for line in lines:
                queue.put(line)
            queue.put(None)
        except BaseException as reason:
            queue.put(reason)

    Thread(target=read, name="lines", daemon=True).start()
    while True:
        if names := due.now(database.sources, time.monotonic()):
            yield names
        try:
            line = queue.get(timeout=due.wait(time.monotonic()))
        except Empty:
            continue
        if line is None:
            return
        if isinstance(line, BaseException):
            raise line
        yield line


def refreshed(database: Database, name: str) -> tuple[Outcome | None, dict[str, Any]]:
    """What a refresh that was due has changed; and what keeps it from that, if it did not before."""
    sources = database.sources
    assert sources is not None, "it is due"
    before, outcome = sources.trouble(name), None
    try:
        outcome = database.take({"refresh": [name]})  # type: ignore[dict-item]  # it names no relations
    except VigilogError as reason:
        sources.failed(name, reason.message)
    after = sources.trouble(name)
    return outcome, {"stale": {name: after}} if after and not before else {}
