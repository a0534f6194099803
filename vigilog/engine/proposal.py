"""What somebody proposes to change: rows, rows that stay on Spark, a definition.

A proposal is a wish, with what is to be written down beside it: the position of the source that it comes from, the key of the request. A wish knows how it is maintained, and
that is all in which wishes differ: they take the same way (`step.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.engine.transaction import Lookup, Transaction, net_changes
from vigilog.executors.views import Views
from vigilog.language.program import Program

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


class Proposal(NamedTuple):
    """A wish, the kind of transaction it is, and what is to be written down with it."""

    wish: Wish
    kind: str = "change"
    source: tuple[str, Any] | None = None  # a source, and its position after this
    request: str | None = None  # the key of a request
    why: bool = False  # whether the rows that triggers fire for are to be proved

    @property
    def noted(self) -> bool:
        """Whether something is to be written down even if nothing changes."""
        return self.source is not None or self.request is not None


DUE = "alerts"  # the kind of a transaction that only reports what has waited long enough


class DueReports:
    """Nothing changes but the time: what alerts have to say now is said."""

    fires = False

    def __init__(self, db: Maintained) -> None:
        self.db = db

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        self.db.views.apply({}, lambda _: settle(Effect()), keep=keep)


class RowChange:
    """Rows that come and go, as a transaction says them."""

    fires = True

    def __init__(self, db: Maintained, transaction: Transaction) -> None:
        self.db, self.transaction = db, transaction

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        changes = net_changes(self.db.program, self.db.base, self.transaction)
        if changes or idle:
            self.db.views.apply(at_home(self.db, changes), lambda views: settle(Effect(changes, views)), keep=keep)


def at_home(db: Maintained, changes: Mapping[str, Delta]) -> dict[str, Delta]:
    """Changes of base relations, under the names of the tables that hold what is stated for them."""
    return {db.homes[name]: delta for name, delta in changes.items()}
