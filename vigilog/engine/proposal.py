"""What somebody proposes to change: rows, rows that stay on Spark, a definition.

A proposal is a wish, with what is to be written down beside it: the position of the source that it comes from, the key of the request. A wish knows how it is maintained, and
that is all in which wishes differ: they take the same way (`step.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from vigilog.core.effect import Effect
from vigilog.engine.transaction import Lookup, Transaction, net_changes
from vigilog.executors.views import Views
from vigilog.language.syntax import Program

Settle = Callable[[Effect], Effect]


class Maintained(Protocol):
    """What a wish for rows needs of a database."""

    program: Program
    base: Mapping[str, Lookup]
    homes: Mapping[str, str]
    views: Views


class Wish(Protocol):
    """Something to be done to a database."""

    @property
    def fires(self) -> bool:
        """Whether what follows from it may be a further change."""

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        """Finds what the wish does, and tells it to `settle` while everything is in its new state and can still be taken back: if that raises, nothing has changed.

        `settle` gives the effect of the whole transaction. A wish that changes nothing is settled only if it is to be, `idle` as it is. Without `keep` everything is as before afterwards.
        """


@dataclass(frozen=True)
class Proposal:
    """A wish, the kind of transaction it is, and what is to be written down with it."""

    wish: Wish
    kind: str = "change"
    source: tuple[str, Any] | None = None  # a source, and its position after this
    request: str | None = None  # the key of a request

    @property
    def noted(self) -> bool:
        """Whether something is to be written down even if nothing changes."""
        return self.source is not None or self.request is not None


@dataclass(frozen=True)
class Rows:
    """Rows that come and go, as a transaction says them."""

    db: Maintained
    transaction: Transaction
    fires = True

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        changes = net_changes(self.db.program, self.db.base, self.transaction)
        if changes or idle:
            moved = {self.db.homes[name]: delta for name, delta in changes.items()}
            self.db.views.apply(moved, lambda views: settle(Effect(changes, views)), keep=keep)
