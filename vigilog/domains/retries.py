"""What fails for a moment is tried again, as often as `retries` says; what is wrong stays wrong, and is told at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from vigilog.core.values import Row
from vigilog.domains.domain import Domain, DomainError, Options, Signature

Result = TypeVar("Result")
PAUSE = 0.05  # seconds before the second try; each further one waits twice as long,
LONGEST = 1.0  # but not longer than this


class TransientError(DomainError):
    """A source cannot be asked now: nobody answers, a file is being written, a table is locked."""


def retried(options: Options, action: Callable[[], Result]) -> Result:
    """What an action gives; if it fails for a moment, after a pause it is tried again.

    >>> left = [1, 2]
    >>> def failing() -> str:
    ...     if left.pop():
    ...         raise TransientError("d", "not now")
    ...     return "found"
    >>> retried({"retries": "1"}, failing)
    Traceback (most recent call last):
    ...
    vigilog.domains.retries.TransientError: d: not now
    >>> left = [0, 1, 2]
    >>> retried({"retries": "2"}, failing)
    'found'
    """
    pause = PAUSE
    for _ in range(int(options.get("retries", 0))):
        try:
            return action()
        except TransientError:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST)
    return action()


class Retrying:
    """A domain that is asked in batches, each of which is tried again as a whole."""

    def __init__(self, domain: Domain, options: Options) -> None:
        self.domain, self.options = domain, options

    def fixed(self, function: str) -> int:
        return self.domain.fixed(function)

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        return retried(self.options, lambda: self.domain.signature(function, fixed))

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        return retried(self.options, lambda: self.domain.ask(function, fixed, arguments))
