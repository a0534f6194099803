"""Classes that programs of `tests/fail` name."""

from __future__ import annotations


class NoResult:
    """Has no `result`."""

    def init(self) -> int:
        return 0

    def insert(self, state: int, element: int) -> int:
        return state + element
