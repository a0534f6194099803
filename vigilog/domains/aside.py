"""What the code of others prints goes to standard error, for standard output is ours; what our own threads print meanwhile goes where it always went."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast


class _Split:
    """Standard output, as each thread has it."""

    def __init__(self, ours: Any) -> None:
        self.ours, self.users = ours, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if getattr(_here, "aside", False) else self.ours, name)


_here = threading.local()
_lock = threading.Lock()


@contextmanager
def aside() -> Iterator[None]:
    """What this thread prints inside goes to standard error."""
    with _lock:
        split = cast(object, sys.stdout)
        if not isinstance(split, _Split):
            split = _Split(sys.stdout)
            sys.stdout = cast(Any, split)
        split.users += 1
    _here.aside = True
    try:
        yield
    finally:
        _here.aside = False
        with _lock:
            split.users -= 1
            if not split.users and cast(object, sys.stdout) is split:
                sys.stdout = split.ours
