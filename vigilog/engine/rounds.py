"""What follows from a change, round after round, in the transaction of the tables that it has begun.

First all keepers answer, who keep something true that belongs to the change itself, until they have nothing more to say; then triggers, or else judges, look at all that has happened since they looked last. What they answer with is
maintained, and so on. A round is undone only with all others, so one loop does, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vigilog.conditions.constraints import MOST_PROOFS
from vigilog.conditions.triggers import Cascade
from vigilog.core.delta import Delta
from vigilog.core.effect import Effect, deltas, together
from vigilog.core.errors import DataError, Refused
from vigilog.core.values import sorted_rows
from vigilog.engine.outcome import Changeable, Fired, Judge
from vigilog.engine.proposal import at_home
from vigilog.engine.transaction import KeyClash, net_changes, net_of_values
from vigilog.executors.evaluation import Stats

FOLLOWING_ROUNDS = 1000  # in which keepers answer each other

NetChange = Mapping[str, Delta]  # of base relations, net


class Rounds:
    """The rounds of one transaction; `costs` is what each has cost. If somebody asks `why`, the rows that triggers fire for are proved."""

    def __init__(self, db: Changeable, judges: Sequence[Judge], triggers: Cascade | None, costs: list[Stats], *, why: bool = False) -> None:
        self.db, self.triggers, self.costs, self.why = db, triggers, costs, why
        self.effects: list[Effect] = []
        self.fired: list[Fired] = []
        self.keepers = [judge for judge in judges if judge.keeper]
        self.others = [judge for judge in judges if not judge.keeper]

    @property
    def net(self) -> Effect:
        """What the transaction has done so far."""
        self.effects = [together(self.effects)]
        return self.effects[0]

    def fire(self, change: Effect) -> None:
        """Goes on until nothing follows from a change. Raises VigilogError if that has no end, or if those who answer do not agree."""
        rounds, unseen = 0, change
        while True:
            most, code, moved = FOLLOWING_ROUNDS, "rounds", self._kept(change)
            if moved is None:  # what follows of necessity is there; now those may look who answer of their own will
                code, moved = "cascade", self._fired(unseen)
                rounds = 0 if moved is not None else rounds  # triggers count their own
                if moved is None and (moved := self._answered(unseen)) is not None:
                    most = self.db.cascade
                unseen = Effect()
            if moved is None:
                return
            rounds += 1
            if rounds > most:
                raise DataError(f"changes follow from each other for more than {most} rounds", code)
            change = self._maintained(moved)
            self.effects.append(change)
            unseen = unseen.then(change)

    def _kept(self, change: Effect) -> NetChange | None:
        """What all keepers say to a change, together."""
        answers: dict[str, dict[str, Any]] = {}
        for judge in self.keepers:
            for operation, told in (judge.fire(change, self.net) or {}).items():
                answers.setdefault(operation, {}).update(told)
        return net_changes(self.db.program, self.db.base, answers) if answers else None

    def _fired(self, change: Effect) -> NetChange | None:
        """What triggers do next."""
        try:
            done = self.triggers and self.triggers.fire(change)
        except Refused as refused:
            self._explain(refused)
            raise
        for firing in self.triggers.last if self.why and self.triggers else ():
            rows = sorted_rows(firing.rows)
            proofs = dict(zip(rows, self.db.proofs(firing.trigger.relation, rows), strict=True))
            self.fired.append(Fired(firing.trigger, proofs, deltas(self.net.changes)))
        try:
            return net_of_values(self.db.program, self.db.base, done) if done else None
        except KeyClash as clash:
            assert self.triggers, "they have fired"
            broken = self.triggers.broken(clash.message, clash.relation, clash.rows)
            self._explain(broken)
            raise broken from None

    def _explain(self, refused: Refused) -> None:
        """Adds why the conditions have the rows that are to blame, while they do."""
        proofs = [proof for relation, row in refused.rows[:MOST_PROOFS] for proof in self.db.proofs(relation, [row]) if proof]
        refused.members = {**refused.members, "why": [proof.json() for proof in proofs]}
        if refused.code != "cascade":  # that is caused by all that came before
            refused.proofs = proofs

    def _answered(self, change: Effect) -> NetChange | None:
        """What the first judge says who has an answer."""
        further = next((further for judge in self.others if (further := judge.fire(change, self.net))), None)
        return net_changes(self.db.program, self.db.base, further) if further is not None else None

    def _maintained(self, moved: NetChange) -> Effect:
        """The effect of a round, which the tables have after it."""
        if not moved:
            return Effect()
        views = self.db.views.apply(at_home(self.db, moved), _told)
        self.costs.append(self.db.views.stats)
        return Effect(moved, views)


def _told(_: Mapping[str, Delta]) -> None:
    """Somebody is told the changes of a round: the step, when there are no more."""
