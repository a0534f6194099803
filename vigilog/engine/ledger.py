"""Where transactions are written down: here nowhere, they are only counted."""

from __future__ import annotations

from typing import Protocol

from vigilog.core.effect import Effect
from vigilog.engine.proposal import Proposal


class Ledger(Protocol):
    """Where transactions are written down."""

    @property
    def last(self) -> int:
        """The number of the last transaction."""

    def commit(self, proposal: Proposal, effect: Effect) -> int:
        """Writes a transaction down inside that of the tables; gives its number."""

    def committed(self, tx: int) -> None:
        """The tables have kept what was written down."""


class CountingLedger:
    """A ledger that only counts."""

    def __init__(self) -> None:
        self.last = 0

    def commit(self, proposal: Proposal, effect: Effect) -> int:
        return self.last + 1

    def committed(self, tx: int) -> None:
        self.last = tx
