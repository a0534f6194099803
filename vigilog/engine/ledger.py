"""Where transactions are written down: here nowhere, they are only counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vigilog.core.delta import Delta

Changes = Mapping[str, Delta]


class Ledger(Protocol):
    """Where transactions are written down."""

    @property
    def last(self) -> int:
        """The number of the last transaction."""

    @property
    def expects(self) -> bool:
        """Whether something is to be written down even if nothing changes."""

    def commit(self, kind: str, changes: Changes, deltas: Changes) -> int:
        """Writes a transaction down inside that of the tables; gives its number."""

    def committed(self, tx: int) -> None:
        """The tables have kept what was written down."""


class Counting:
    """A ledger that only counts."""

    def __init__(self) -> None:
        self.number = 0
        self.expects = False

    @property
    def last(self) -> int:
        return self.number

    def commit(self, kind: str, changes: Changes, deltas: Changes) -> int:
        return self.number + 1

    def committed(self, tx: int) -> None:
        self.number = tx
