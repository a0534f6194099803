"""One change, from what was wished to what is told.

    propose   the wish, checked against the program and made net
    maintain  the exact changes of every view, by whichever executor keeps it
    judge     conditions look at these changes; one may refuse them, and then nothing has happened
    commit    the change and its effects are written down together, under the next number
    publish   whoever listens is told

Everything up to the commit happens inside one transaction of the tables, so what is refused, or interrupted, leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vigilog.core.delta import Delta
from vigilog.engine.compiled import Compiled
from vigilog.engine.ledger import Changes, Ledger
from vigilog.engine.transaction import Known, Transaction, net_changes
from vigilog.executors.views import Views

Judge = Callable[[Changes, Changes], None]


@dataclass
class Outcome:
    """What became of a transaction: its number, the last one if it changed nothing or was not kept; what it changed in base relations, and in views, as the program orders them.

    `far` are views whose changes are in the outbox alone, because they did not pass through this process.
    """

    tx: int
    changes: Changes = field(default_factory=dict)
    deltas: dict[str, Delta] = field(default_factory=dict)
    far: tuple[str, ...] = ()


@dataclass
class Step:
    """What a change passes through."""

    compiled: Compiled
    views: Views
    base: Mapping[str, Known]
    ledger: Ledger
    judges: list[Judge] = field(default_factory=list)
    listeners: list[Callable[[Outcome], None]] = field(default_factory=list)

    def take(self, wish: Transaction, *, keep: bool = True, kind: str = "change") -> Outcome:
        """Takes a change through all its stages. Raises VigilogError if it is refused; then nothing has changed."""
        outcome = Outcome(self.ledger.last, self.propose(wish))
        if outcome.changes or self.ledger.expects:
            self.maintain(outcome, kind, keep=keep)
            if keep:
                self.publish(outcome)
        return outcome

    def propose(self, wish: Transaction) -> Changes:
        return net_changes(self.compiled.program, self.base, wish)

    def maintain(self, outcome: Outcome, kind: str, *, keep: bool) -> None:
        def settle(deltas: Changes) -> None:
            self.judge(outcome.changes, deltas)
            if keep:
                outcome.tx = self.ledger.commit(kind, outcome.changes, deltas)

        moved = {self.compiled.homes[name]: delta for name, delta in outcome.changes.items()}
        found = self.views.apply(moved, settle, keep=keep)
        outcome.deltas = {name: found[name] for name in self.compiled.program.outputs if name in found} if len(found) > 1 else found

    def judge(self, changes: Changes, deltas: Changes) -> None:
        for judge in self.judges:
            judge(changes, deltas)

    def publish(self, outcome: Outcome) -> None:
        self.ledger.committed(outcome.tx)
        for listener in self.listeners:
            listener(outcome)
