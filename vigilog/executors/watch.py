"""Bounds and progress of a long evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from vigilog.core.errors import Stopped, counted

Report = Callable[[str, int, int], None]


class TooManyRows(Stopped):
    """A recursion has more rows than its bound; `doing` names its relations."""

    def __init__(self, doing: str, bound: int) -> None:
        super().__init__(f"{doing} has more than {bound:,} rows", "stopped")
        self.doing = doing


@dataclass
class Watch:
    """Is told of every round, and stops an evaluation that goes past its bounds.

    `report(relations, round, rows)` shows progress.
    """

    max_rounds: int | None = None
    timeout: float | None = None
    report: Report | None = None
    max_rows: int | None = None
    started: float = field(default_factory=time.monotonic)
    doing: str = "reading"
    rounds: int = 0

    def begin(self, what: str) -> None:
        """A component, or a source, is next."""
        self.doing, self.rounds = what, 0
        self.tick()
        if self.report:
            self.report(what, 0, 0)

    def round(self, rows: int) -> None:
        """One more round begins; `rows` have been derived so far."""
        self.rounds += 1
        if self.max_rounds is not None and self.rounds > self.max_rounds:
            raise Stopped(
                f"{self.doing} did not come to an end within {counted(self.max_rounds, 'round')} ({counted(rows, 'row')} so far); "
                "a rule that makes ever new values, like n(x + 1) :- n(x), needs a bound (x < 100), or allow more with --max-rounds",
                "rounds",
            )
        if self.max_rows is not None and rows > self.max_rows:
            raise TooManyRows(self.doing, self.max_rows)
        self.tick()
        if self.report:
            self.report(self.doing, self.rounds, rows)

    def tick(self) -> None:
        if self.expired:
            raise self.timed_out()

    @property
    def expired(self) -> bool:
        return self.timeout is not None and time.monotonic() - self.started > self.timeout

    @property
    def remaining(self) -> float | None:
        return None if self.timeout is None else max(0.0, self.timeout - (time.monotonic() - self.started))

    def timed_out(self) -> Stopped:
        allow = (
            f" (round {self.rounds}); allow more with --timeout, or bound the recursion" if self.rounds else "; allow more with --timeout"
        )
        return Stopped(f"{self.doing} did not come to an end within {self.timeout:g} s{allow}", "timeout")
