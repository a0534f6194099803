"""Code of others, run with patience that has an end: it may hang, never stop giving, end the process or print, and none of that concerns who asked."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from vigilog.domains.aside import aside

Argument = TypeVar("Argument")
Result = TypeVar("Result")


class Impatient(Exception):
    """Something took longer than it may."""


def each(action: Callable[[Argument], Result], given: Iterable[Argument], seconds: float) -> list[Result]:
    """What an action gives for each of some values; each may take some seconds. What it prints goes to standard error, for standard output is ours.

    >>> each(lambda x: x + 1, [1, 2], 5)
    [2, 3]
    >>> each(lambda x: time.sleep(x), [0, 60], 0.05)
    Traceback (most recent call last):
    ...
    vigilog.domains.patience.Impatient: it takes longer than 0.05 s
    """
    run = _Run(action, given)
    thread = threading.Thread(target=run.all, daemon=True, name="vigilog domain")
    thread.start()
    for left in run.waiting(seconds):
        thread.join(left)
        if not thread.is_alive():
            break
    else:
        _stop(thread)
        raise Impatient(f"it takes longer than {seconds:g} s")
    if run.failure is not None:
        raise run.failure
    return run.results


class _Run(Generic[Argument, Result]):
    """Actions one after the other, in a thread of their own, which is abandoned if one of them hangs."""

    def __init__(self, action: Callable[[Argument], Result], given: Iterable[Argument]) -> None:
        self.action, self.given = action, given
        self.results: list[Result] = []
        self.failure: BaseException | None = None
        self.began = time.monotonic()  # the action that runs now

    def all(self) -> None:
        try:
            with aside():
                for one in self.given:
                    self.began = time.monotonic()
                    self.results.append(self.action(one))
        except BaseException as reason:
            self.failure = reason

    def waiting(self, seconds: float) -> Iterator[float]:
        """How long to wait, again and again, while the action that runs has time left."""
        while (left := self.began + seconds - time.monotonic()) > 0:
            yield left


def _stop(thread: threading.Thread) -> None:
    """Ends a loop of Python code in a thread that nobody waits for; code that waits for something ends when that comes."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
