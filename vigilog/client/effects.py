"""What the client wants of the world, as data, so that it can be decided once and done in two ways.

A *play* is a generator: it yields one effect after the other and is sent what came of each. The synchronous face performs effects by blocking, the asynchronous one by awaiting; neither decides anything.
An effect that failed because the server was not there comes back as `Lost`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from vigilog.client.events import Event

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0  # seconds between two tries


@dataclass(frozen=True)
class Request:
    """A call by HTTP; its effect is a Response."""

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Open:
    """A new second channel to the server, in place of the one before."""


@dataclass(frozen=True)
class Send:
    text: str


@dataclass(frozen=True)
class Receive:
    """The next message that comes."""


@dataclass(frozen=True)
class Close:
    """The end of the second channel."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Give:
    """An event for whoever subscribed; its effect is whether they have dealt with it."""

    event: Event


Performed = Request | Open | Send | Receive | Close | Pause  # by whoever plays; an event is handed out instead
Effect = Performed | Give
Play = Generator[Effect, Any, T]


@dataclass(frozen=True)
class Response:
    """An answer by HTTP. `patience` is how many seconds the client wants to wait for a server that cannot answer now."""

    status: int
    kind: str
    body: bytes
    retry_after: float | None = None
    patience: float = 0.0


class Lost(Exception):
    """The server is not there. `sent` says whether it may have received what was sent."""

    def __init__(self, reason: str, *, sent: bool = True, patience: float = 0.0) -> None:
        super().__init__(reason)
        self.reason, self.sent, self.patience = reason, sent, patience


class Running(Generic[T]):
    """A play under way: `effect` is what it wants now, nothing if it has come to its end; then `result` is what it gives."""

    def __init__(self, play: Play[T]) -> None:
        self.play = play
        self.effect: Effect | None = None
        self.result: T | None = None
        self.answer(None)

    def answer(self, came: Any) -> None:
        """The effect has happened, and this came of it. Raises what the play raises."""
        self._step(lambda: self.play.send(came))

    def lose(self, lost: Lost) -> None:
        """The effect has failed."""
        self._step(lambda: self.play.throw(lost))

    def _step(self, step: Callable[[], Effect]) -> None:
        self.effect = None
        try:
            self.effect = step()
        except StopIteration as end:
            self.result = end.value


class Backoff:
    """Pauses that grow twofold, up to a longest; each is shortened by chance, so that many clients do not come back at once."""

    def __init__(self) -> None:
        self.tries, self.spent = 0, 0.0

    def next(self) -> float:
        """The next pause; `spent` has the sum of all."""
        longest: float = min(FIRST_PAUSE * 2 ** min(self.tries, 30), LONGEST_PAUSE)
        pause = longest * random.uniform(0.5, 1.0)
        self.tries, self.spent = self.tries + 1, self.spent + pause
        return pause
