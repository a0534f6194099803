"""Bounds and progress of a long evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

from vigilog.core.errors import Stopped, counted

T = TypeVar("T")
EVERY = 10_000  # rows between two reports


@dataclass(frozen=True)
class Stage:
    """How far a stage of long work has come: its name, how many of its parts are done, and of how many, where that is known; which round it is, and how many rows there are.

    >>> Stage("reading edge", rows=3_000_000, done=3, total=8, unit="task").detail
    '3 of 8 tasks, 3,000,000 rows'
    >>> Stage("closure", rows=120, round=4).detail
    'round 4, 120 rows'
    """

    name: str
    rows: int = 0
    round: int = 0
    done: int = 0
    total: int | None = None
    unit: str = "part"

    @property
    def detail(self) -> str:
        parts = [f"round {self.round}"] if self.round else []
        if self.total and self.unit == "byte":
            parts.append(f"{self.done / 2**20:,.0f} of {self.total / 2**20:,.0f} MiB")
        elif self.total:
            parts.append(f"{self.done:,} of {_counted(self.total, self.unit)}")
        if self.rows and not (self.total and self.unit == "row"):
            parts.append(_counted(self.rows, "row"))
        return ", ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


Report = Callable[[Stage], None]


@runtime_checkable
class Measured(Protocol):
    """Rows that know how far they were read: `read` of `size` bytes."""

    @property
    def read(self) -> int: ...

    @property
    def size(self) -> int: ...


class TooManyRows(Stopped):
    """A recursion has more rows than its bound; `doing` names its relations."""

    def __init__(self, doing: str, bound: int) -> None:
        super().__init__(f"{doing} has more than {bound:,} rows", "stopped")
        self.doing = doing


class Outgrown(Exception):
    """What is evaluated turns out to be much, so another evaluator had better go on."""


@dataclass
class Watch:
    """Is told of every stage and round, and stops an evaluation that goes past its bounds. `report` shows progress.

    With `patience`, an evaluation that others can go on with raises Outgrown when this thread has worked so many seconds (`time.thread_time`): on a busy machine the clock goes faster than the work.
    """

    max_rounds: int | None = None
    timeout: float | None = None
    report: Report | None = None
    max_rows: int | None = None
    patience: float | None = None
    started: float = field(default_factory=time.monotonic)
    doing: str = "reading"
    rounds: int = 0
    rows: int = 0

    @contextmanager
    def within(self, seconds: float | None, rows: int | None = None) -> Iterator[None]:
        """What is done inside has bounds of its own."""
        before = self.timeout, self.started, self.max_rows
        self.timeout, self.started, self.max_rows = seconds, time.monotonic(), rows
        try:
            yield
        finally:
            self.timeout, self.started, self.max_rows = before

    def begin(self, what: str, rows: int = 0) -> None:
        """A component, or a source, is next; it has so many rows, if that is known."""
        self.doing, self.rounds, self.rows = what, 0, rows
        self.tick()
        self._tell()

    def round(self, rows: int) -> None:
        """One more round begins; `rows` have been derived so far."""
        self.rounds += 1
        self.rows = rows
        if self.max_rounds is not None and self.rounds > self.max_rounds:
            raise Stopped(
                f"{self.doing} did not come to an end within {counted(self.max_rounds, 'round')} ({counted(rows, 'row')} so far); "
                "a rule that makes ever new values, like n(x + 1) :- n(x), needs a bound (x < 100), or allow more with --max-rounds",
                "rounds",
            )
        if self.max_rows is not None and rows > self.max_rows:
            raise TooManyRows(self.doing, self.max_rows)
        self.tick()
        self._tell()

    def reached(self, rounds: int, rows: int) -> None:
        """So many rounds are done, and rows derived, of something that has bounds of its own, except of time."""
        if self.timeout is not None or self.patience is not None:
            self.tick()
        if self.report:
            self.rounds, self.rows = rounds, rows
            self._tell()

    def part(self, done: int, total: int | None, unit: str) -> None:
        """So many parts of the stage are done."""
        self._tell(done, total, unit)

    def counted(self, rows: Iterable[T], total: int | None = None) -> Iterator[T]:
        """The same rows, which are counted as they come, if somebody wants to know."""
        return iter(rows) if self.report is None else self._counted(rows, total)

    def _counted(self, rows: Iterable[T], total: int | None) -> Iterator[T]:
        total = len(rows) if total is None and isinstance(rows, Sized) else total
        for number, row in enumerate(rows, start=1):
            if number % EVERY == 0:
                self.rows = number
                if isinstance(rows, Measured):
                    self._tell(rows.read, rows.size or None, "byte")
                else:
                    self._tell(number, total, "row")
            yield row

    def _tell(self, done: int = 0, total: int | None = None, unit: str = "part") -> None:
        if self.report:
            self.report(Stage(self.doing, self.rows, self.rounds, done, total, unit))

    def tick(self) -> None:
        if self.expired:
            raise self.timed_out()
        if self.outgrown:
            raise Outgrown

    @property
    def outgrown(self) -> bool:
        return self.patience is not None and time.thread_time() > self.patience

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
