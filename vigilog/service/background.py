"""Work that goes on by itself while the server runs.

The law: none of it ends silently. What fails is logged, counted, told by /health until it goes well again, and tried again after a pause that grows.

>>> background = Background(Metrics())
>>> background.failed("notes", OverflowError("Python int too large")), background.failed("notes", OverflowError())
(1.0, 2.0)
>>> background.problems
{'notes': 'notes: failed (OverflowError) and is tried again; the log says more'}
>>> background.well("notes"), background.problems
(None, {})
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from vigilog.core.errors import DataError, VigilogError
from vigilog.service.metrics import Metrics

log = logging.getLogger("vigilog.service")
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds between two tries


class Mistake(DataError):
    """Of the server: what those are told whom it concerns."""

    code = "internal"

    def __init__(self) -> None:
        super().__init__("the server has made a mistake, which is in its log")


class Background:
    """What goes on, and what of it fails. Any thread may tell it."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.problems: dict[str, str] = {}  # what fails now, as /health tells everybody: the log says more
        self._pauses: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def failed(self, work: str, reason: BaseException) -> float:
        """Some work has failed; gives the seconds after which it is to be tried again."""
        pause = self._pauses[work] = min(2 * self._pauses.get(work, FIRST_PAUSE / 2), LONGEST_PAUSE)
        self.problems[work] = f"{work}: failed ({kind(reason)}) and is tried again; the log says more"
        self.count(work, reason, pause=pause)
        return pause

    def well(self, work: str) -> None:
        """It goes well, perhaps again."""
        self.problems.pop(work, None)
        self._pauses.pop(work, None)

    def count(self, work: str, reason: BaseException, **about: Any) -> None:
        """Logs and counts a failure."""
        self.metrics.failures.labels(work=work).inc()
        trace = None if isinstance(reason, VigilogError) else reason
        log.error("background work failed", extra={"work": work, "reason": str(reason), **about}, exc_info=trace)

    def start(self, work: str, step: Callable[[], Awaitable[None]], every: float) -> None:
        """Takes a step again and again, with a rest of so many seconds in between."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(work, step, every), name=work))

    async def _repeat(self, work: str, step: Callable[[], Awaitable[None]], every: float) -> None:
        pause = every
        while True:
            await asyncio.sleep(pause)
            try:
                await step()
            except Exception as reason:
                pause = self.failed(work, reason)
            else:
                self.well(work)
                pause = every

    def heard(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What the loop has no one to tell: a callback, or a task that nobody waits for, has failed."""
        reason = context.get("exception")
        if isinstance(reason, Exception):
            self.count("loop", reason, message=context.get("message"))
        else:
            loop.default_exception_handler(context)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


def kind(reason: BaseException) -> str:
    """What may be told to everybody of an error: no data."""
    return reason.code if isinstance(reason, VigilogError) else type(reason).__name__
