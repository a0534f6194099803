"""Who looks at a transaction, and what became of it: the words of `step.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from vigilog.conditions.conditions import Conditions
from vigilog.conditions.timing import Key, Waiting
from vigilog.core.delta import Delta
from vigilog.core.effect import NOTHING, Effect
from vigilog.core.proofs import Proof
from vigilog.core.reports import Report
from vigilog.core.values import Row
from vigilog.engine.ledger import Ledger
from vigilog.engine.proposal import Maintained
from vigilog.engine.transaction import Transaction
from vigilog.executors.evaluation import Stats
from vigilog.language.conditions import Trigger


class Judge:
    """Looks at every change of a database before it is committed. It lives as long as the database, whatever becomes of its tables."""

    keeper = False  # whether what it answers belongs to the change itself, so that others are to see both together
    views: Collection[str] = ()  # the relations whose changes it wants to see, whether the program tells them or not

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        """A further change, if one follows from the last; `net` is what the whole transaction has done so far."""
        return None

    def complete(self, net: Effect) -> Effect:
        """What the whole transaction has done, with what it did to relations that no table holds."""
        return net

    def judge(self, net: Effect) -> None:
        """Raises VigilogError to refuse a transaction."""


@dataclass(frozen=True)
class Fired:
    """What a trigger fired for in one round: rows of its condition, why it had them, and what had changed until then."""

    trigger: Trigger
    proofs: Mapping[Row, Proof | None]
    changes: Mapping[str, Delta]


@dataclass
class Outcome:
    """What became of a transaction: its number, the last one if it changed nothing or was not kept; what it changed in base relations, and in views, as the program orders them.

    `far` are views whose changes are in the outbox alone, because they did not pass through this process; `redeclared` ones have other columns now, so no copy can follow.
    """

    tx: int
    changes: Mapping[str, Delta] = field(default_factory=dict)
    deltas: dict[str, Delta] = field(default_factory=dict)
    far: tuple[str, ...] = ()
    redeclared: Collection[str] = ()
    costs: list[Stats] = field(default_factory=list)  # of each round
    alerts: tuple[Report, ...] = ()
    waiting: Mapping[Key, Waiting | None] = NOTHING  # what alerts are to report later, or not any more
    triggered: Mapping[str, Delta] = NOTHING  # what triggers did to base relations, after the wish itself
    fired: Sequence[Fired] = ()  # why they did it, round after round, if that was asked for

    @property
    def followed(self) -> Outcome:
        """The outcome for those who hold copies."""
        deltas = {name: delta for name, delta in self.deltas.items() if name not in self.redeclared}
        return replace(self, deltas=deltas, far=tuple(name for name in self.far if name not in self.redeclared))


class Changeable(Maintained, Protocol):
    """A database, as the step sees it."""

    ledger: Ledger
    conditions: Conditions
    cascade: int  # so many rounds of triggers are the most
    waiting: dict[Key, Waiting]  # what alerts are to report later,
    soonest: float  # and before when nothing of it falls due
    clock: Callable[[], float]

    def stamped(self, reports: Sequence[Report]) -> Sequence[Report]:
        """Reports as they are written down."""

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it."""
