"""One change, from what was proposed to what is told.

    propose   the wish, checked against the program and made net
    maintain  the exact changes of every view, by whichever executor keeps it
    fire      triggers, and judges, look at these changes; they may answer with a further change, which is maintained in the same transaction, and so on (`rounds.py`)
    judge     when nothing follows any more: constraints, and judges, may refuse it all, and then nothing has happened; alerts say what they have to say
    commit    the change and its effects are written down together, under the next number
    publish   whoever listens is told

Everything up to the commit happens inside one transaction of the tables, so what is refused, or interrupted, leaves nothing behind. There is no other way to change a database: rows of a client, rows that
stay on Spark, a definition, a batch of a stream differ only in how they are maintained (`proposal.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from vigilog.conditions import timing
from vigilog.conditions.conditions import Conditions
from vigilog.conditions.triggers import Cascade
from vigilog.core.effect import Effect, deltas
from vigilog.core.errors import Refused
from vigilog.engine.outcome import Changeable, Judge, Outcome
from vigilog.engine.proposal import DUE, Proposal
from vigilog.engine.rounds import Rounds


@dataclass
class Step:
    """What a change passes through. Judges and listeners belong to the database, and stay when its tables are rebuilt."""

    db: Changeable
    judges: list[Judge] = field(default_factory=list)
    listeners: list[Callable[[Outcome], None]] = field(default_factory=list)

    def take(self, proposal: Proposal, *, keep: bool = True) -> Outcome:
        """Takes a change through all its stages. Raises VigilogError if it is refused; then nothing has changed."""
        outcome, before = Outcome(self.db.ledger.last), self.db.conditions
        triggers = Cascade(self.db.program, before.triggers, self.db.cascade) if before.triggers and proposal.wish.fires else None
        rounds = Rounds(self.db, self.judges, triggers, outcome.costs, why=proposal.why)

        def settle(change: Effect) -> Effect:
            rounds.effects, net = [change], change
            if (triggers or self.judges) and proposal.wish.fires:
                rounds.fire(change)
                net = rounds.net
            for judge in self.judges:
                net = judge.complete(net)
            if self.judges or self.db.conditions.active:
                self.judge(net, before)
                self.report(net, before, due=proposal.kind == DUE)
            self.note(outcome, net, triggers)
            outcome.fired = rounds.fired
            if keep:
                outcome.tx = self.db.ledger.commit(proposal, net)
            return net

        try:
            proposal.wish.maintain(settle, keep=keep, idle=proposal.noted)
        except Refused as refused:
            refused.changes = deltas(rounds.net.changes) if rounds.effects else {}
            raise
        outcome.costs.append(self.db.views.stats)
        if keep and outcome.tx != self.db.ledger.last:
            self.publish(outcome)
        return outcome

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
                self.db.soonest = min(self.db.soonest, timing.falls_due(self.db.conditions.named, key, held))
        told = outcome.followed if outcome.redeclared else outcome
        for listener in self.listeners:
            listener(told)
