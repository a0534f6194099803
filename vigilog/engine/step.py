"""One change, from what was proposed to what is told.

    propose   the wish, checked against the program and made net
    maintain  the exact changes of every view, by whichever executor keeps it
    fire      judges look at these changes; one may answer with a further change, which is maintained in the same transaction, and so on
    judge     when nothing follows any more: a judge may refuse it all, and then nothing has happened
    commit    the change and its effects are written down together, under the next number
    publish   whoever listens is told

Everything up to the commit happens inside one transaction of the tables, so what is refused, or interrupted, leaves nothing behind. There is no other way to change a database: rows of a client, rows that
stay on Spark, a definition, a batch of a stream differ only in how they are maintained (`proposal.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Protocol

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect, deltas
from vigilog.core.errors import DataError
from vigilog.engine.ledger import Ledger
from vigilog.engine.proposal import Maintained, Proposal, Rows, Wish
from vigilog.engine.transaction import Transaction
from vigilog.executors.evaluation import Stats

MOST_ROUNDS = 16


class Judge:
    """Looks at every change of a database before it is committed. It lives as long as the database, whatever becomes of its tables."""

    views: Collection[str] = ()  # the relations whose changes it wants to see, whether the program tells them or not

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        """A further change, if one follows from the last; `net` is what the whole transaction has done so far."""
        return None

    def judge(self, net: Effect) -> None:
        """Raises VigilogError to refuse a transaction."""


@dataclass
class Outcome:
    """What became of a transaction: its number, the last one if it changed nothing or was not kept; what it changed in base relations, and in views, as the program orders them.

    `far` are views whose changes are in the outbox alone, because they did not pass through this process; `redeclared` ones have other columns now, so no copy can follow.
    """

    tx: int
    changes: dict[str, Delta] = field(default_factory=dict)
    deltas: dict[str, Delta] = field(default_factory=dict)
    far: tuple[str, ...] = ()
    redeclared: tuple[str, ...] = ()
    costs: list[Stats] = field(default_factory=list)  # of each round

    @property
    def followed(self) -> Outcome:
        """The outcome for those who hold copies."""
        deltas = {name: delta for name, delta in self.deltas.items() if name not in self.redeclared}
        return replace(self, deltas=deltas, far=tuple(name for name in self.far if name not in self.redeclared))


class Changeable(Maintained, Protocol):
    """A database, as the step sees it."""

    ledger: Ledger


@dataclass
class Step:
    """What a change passes through. Judges and listeners belong to the database, and stay when its tables are rebuilt."""

    db: Changeable
    judges: list[Judge] = field(default_factory=list)
    listeners: list[Callable[[Outcome], None]] = field(default_factory=list)

    def take(self, proposal: Proposal, *, keep: bool = True) -> Outcome:
        """Takes a change through all its stages. Raises VigilogError if it is refused; then nothing has changed."""
        outcome = Outcome(self.db.ledger.last)
        net = Effect()
        rounds = 0

        def maintain(wish: Wish) -> None:
            wish.maintain(settle, keep=keep, idle=proposal.noted or rounds > 0)
            outcome.costs.append(self.db.views.stats)

        def settle(change: Effect) -> Effect:
            nonlocal net, rounds
            net = net.then(change)
            if proposal.wish.fires and (further := self.fire(change, net)):
                rounds += 1
                if rounds > MOST_ROUNDS:
                    raise DataError(f"changes follow from each other for more than {MOST_ROUNDS} rounds", "cascade")
                maintain(Rows(self.db, further))
                return net
            self.judge(net)
            self.note(outcome, net)
            if keep:
                outcome.tx = self.db.ledger.commit(proposal, net)
            return net

        maintain(proposal.wish)
        if keep and outcome.tx != self.db.ledger.last:
            self.publish(outcome)
        return outcome

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        return next((further for judge in self.judges if (further := judge.fire(change, net))), None)

    def judge(self, net: Effect) -> None:
        for judge in self.judges:
            judge.judge(net)

    def note(self, outcome: Outcome, net: Effect) -> None:
        views = net.told([*self.db.program.outputs, *net.redeclared])
        outcome.changes, outcome.deltas = deltas(net.changes), deltas(views)
        outcome.far, outcome.redeclared = tuple(name for name in views if name not in outcome.deltas), tuple(net.redeclared)

    def publish(self, outcome: Outcome) -> None:
        self.db.ledger.committed(outcome.tx)
        told = outcome.followed if outcome.redeclared else outcome
        for listener in self.listeners:
            listener(told)
