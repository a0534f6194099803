"""One change, from what was proposed to what is told.

    propose   the wish, checked against the program and made net
    maintain  the exact changes of every view, by whichever executor keeps it
    fire      triggers, and judges, look at these changes; they may answer with a further change, which is maintained in the same transaction, and so on
    judge     when nothing follows any more: constraints, and judges, may refuse it all, and then nothing has happened; alerts say what they have to say
    commit    the change and its effects are written down together, under the next number
    publish   whoever listens is told

Everything up to the commit happens inside one transaction of the tables, so what is refused, or interrupted, leaves nothing behind. There is no other way to change a database: rows of a client, rows that
stay on Spark, a definition, a batch of a stream differ only in how they are maintained (`proposal.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from vigilog.conditions import timing
from vigilog.conditions.conditions import Conditions
from vigilog.conditions.triggers import Cascade
from vigilog.core.effect import Effect, deltas
from vigilog.core.errors import DataError
from vigilog.engine.outcome import Changeable, Judge, Outcome
from vigilog.engine.proposal import DUE, Proposal, Rows, Wish
from vigilog.engine.transaction import Transaction

FOLLOWING_ROUNDS = 1000  # in which keepers answer each other


@dataclass
class Step:
    """What a change passes through. Judges and listeners belong to the database, and stay when its tables are rebuilt."""

    db: Changeable
    judges: list[Judge] = field(default_factory=list)
    listeners: list[Callable[[Outcome], None]] = field(default_factory=list)

    def take(self, proposal: Proposal, *, keep: bool = True) -> Outcome:
        """Takes a change through all its stages. Raises VigilogError if it is refused; then nothing has changed."""
        outcome = Outcome(self.db.ledger.last)
        net, unseen, before = Effect(), Effect(), self.db.conditions
        triggers = Cascade(self.db.program, before.triggers, self.db.cascade) if before.triggers and proposal.wish.fires else None
        rounds = 0

        def maintain(wish: Wish) -> None:
            wish.maintain(settle, keep=keep, idle=proposal.noted or rounds > 0)
            outcome.costs.append(self.db.views.stats)

        def settle(change: Effect) -> Effect:
            nonlocal net, unseen, rounds
            net = net.then(change)
            if (triggers or self.judges) and proposal.wish.fires:
                unseen = unseen.then(change)
                further: Transaction | None = self.follow(change, net)
                most = FOLLOWING_ROUNDS
                if not further:  # what follows of necessity is there; now those may look who answer of their own will
                    further = self.fire(unseen, net, triggers)
                    most = FOLLOWING_ROUNDS if triggers else self.db.cascade  # triggers count their own rounds
                    unseen = Effect()
                if further:
                    rounds += 1
                    if rounds > most:
                        raise DataError(f"changes follow from each other for more than {most} rounds", "cascade")
                    maintain(Rows(self.db, further))
                    return net
            for judge in self.judges:
                net = judge.complete(net)
            if self.judges or self.db.conditions.active:
                self.judge(net, before)
                self.report(net, before, due=proposal.kind == DUE)
            self.note(outcome, net, triggers)
            if keep:
                outcome.tx = self.db.ledger.commit(proposal, net)
            return net

        maintain(proposal.wish)
        if keep and outcome.tx != self.db.ledger.last:
            self.publish(outcome)
        return outcome

    def follow(self, change: Effect, net: Effect) -> Transaction:
        """What all keepers say to a change, together."""
        found: dict[str, dict[str, Any]] = {}
        for judge in self.judges:
            for operation, told in ((judge.fire(change, net) or {}) if judge.keeper else {}).items():
                found.setdefault(operation, {}).update(told)
        return found

    def fire(self, change: Effect, net: Effect, triggers: Cascade | None) -> Transaction | None:
        if triggers and (round_ := triggers.fire(change)):
            return round_
        return next((further for judge in self.judges if not judge.keeper and (further := judge.fire(change, net))), None)

    def judge(self, net: Effect, before: Conditions) -> None:
        """Lets all who judge look at a transaction, under the conditions that there are after it; `before` there may have been others."""
        for judge in self.judges:
            judge.judge(net)
        if (conditions := self.db.conditions).active:
            conditions.judge(net, self.db.proofs, before)

    def report(self, net: Effect, before: Conditions, *, due: bool) -> None:
        """What alerts have to say of a transaction, or, without one, of the time that has passed."""
        conditions, waiting = self.db.conditions, self.db.waiting
        if due:
            net.alerts, net.waiting = timing.due(conditions.named, waiting, self.db.clock())
        elif conditions.alerts:
            net.alerts = conditions.reports(net, before)
            if net.alerts and (waiting or conditions.timed):
                net.alerts, net.waiting = timing.turn(conditions.named, waiting, net.alerts, self.db.clock())
        if net.alerts:
            net.alerts = self.db.stamped(net.alerts)

    def note(self, outcome: Outcome, net: Effect, triggers: Cascade | None) -> None:
        views = net.told((*self.db.program.outputs, *net.redeclared))
        outcome.changes, outcome.deltas, outcome.redeclared = deltas(net.changes), deltas(views), net.redeclared
        if net.alerts or net.waiting:
            outcome.alerts, outcome.waiting = tuple(net.alerts), net.waiting
        if triggers:
            outcome.triggered = triggers.triggered
        if len(outcome.deltas) < len(views):
            outcome.far = tuple(name for name in views if name not in outcome.deltas)

    def publish(self, outcome: Outcome) -> None:
        self.db.ledger.committed(outcome.tx)
        for key, held in outcome.waiting.items() if outcome.waiting else ():
            if held is None:
                self.db.waiting.pop(key, None)
            else:
                self.db.waiting[key] = held
        told = outcome.followed if outcome.redeclared else outcome
        for listener in self.listeners:
            listener(told)
