"""All conditions of a program together: what a transaction must not do, and what is reported of it. What follows from it is in `triggers.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.conditions.alerts import reports
from vigilog.conditions.constraints import Prove, refusal, violations
from vigilog.conditions.support import Support, supported
from vigilog.core.effect import Effect
from vigilog.core.reports import Report
from vigilog.core.values import row_text
from vigilog.language.conditions import ENFORCED, Alert, Integrity, Trigger, alerts, constraints, rank, told, triggers
from vigilog.language.program import Program
from vigilog.language.syntax import Rule


@dataclass(frozen=True)
class Conditions:
    """The alerts, constraints and triggers of a checked program."""

    program: Program = field(default_factory=Program)
    alerts: tuple[Alert, ...] = ()
    constraints: tuple[Integrity, ...] = ()  # all of them, by priority and name
    triggers: tuple[Trigger, ...] = ()
    support: Support = field(default_factory=Support)

    @cached_property
    def active(self) -> bool:
        """Whether there are any."""
        return bool(self.alerts or self.constraints or self.triggers)

    @property
    def relations(self) -> list[str]:
        """The relations that are conditions."""
        own = [one.relation for one in self.alerts], [one.relation for one in self.constraints], [one.relation for one in self.triggers]
        return list(dict.fromkeys(name for names in own for name in names))

    @cached_property
    def enforced(self) -> tuple[Integrity, ...]:
        return tuple(constraint for constraint in self.constraints if constraint.mode == ENFORCED)

    @property
    def views(self) -> frozenset[str]:
        """The relations whose changes are to be known."""
        return self.support.views.union(condition.relation for condition in self.judging).union(one.relation for one in self.triggers)

    @cached_property
    def named(self) -> Mapping[str, Alert]:
        """The alerts by their names."""
        return {alert.name: alert for alert in self.alerts}

    @cached_property
    def timed(self) -> bool:
        """Whether reports may have to wait."""
        return any(alert.timed for alert in self.alerts)

    @property
    def judging(self) -> list[Alert | Integrity]:
        return [*self.alerts, *self.enforced]

    @cached_property
    def index(self) -> Mapping[str, Collection[Alert | Integrity]]:
        """The alerts and constraints that the change of a view concerns: who is not concerned costs nothing."""
        by_view: dict[str, dict[Alert | Integrity, None]] = {}
        for condition in self.judging:
            by_view.setdefault(self.support.keys[condition.relation, condition.key], {})[condition] = None
            if isinstance(condition, Alert) and condition.resatisfiable:
                for view in self.support.proofs[condition.relation, condition.unfold]:
                    by_view.setdefault(view, {})[condition] = None
        return by_view

    def concerned(self, net: Effect) -> Iterable[Alert | Integrity]:
        """The alerts and constraints that a transaction concerns, each once."""
        return dict.fromkeys(condition for view in net.views for condition in self.index.get(view, ()))

    def new_alerts(self, before: Conditions) -> Collection[Alert]:
        """The alerts that a definition has brought, or that cannot be compared with what was before it."""
        return () if before is self else {alert for alert in self.alerts if alert not in before.alerts or not self._alike(alert, before)}

    def new_constraints(self, before: Conditions) -> Collection[Integrity]:
        """The constraints that a definition has brought, or whose own rules it has changed: what violates them is there already."""
        if before is self:
            return ()
        old = {one for one in self.enforced if one in before.enforced and self._alike(one, before)}
        return set(self.enforced) - {one for one in old if before.rules_of(one.relation) == self.rules_of(one.relation)}

    def _alike(self, condition: Alert | Integrity, before: Conditions) -> bool:
        """Whether the relation has the columns that it had, and its keys are found in the same view."""
        relation, place = condition.relation, (condition.relation, condition.key)
        same = self.program.relations[relation].types == before.program.relations[relation].types
        return same and self.support.keys[place] == before.support.keys[place]

    def rules_of(self, relation: str) -> list[Rule]:
        return [rule for rule in self.program.rules if any(head.relation == relation for head in rule.heads)]

    def judge(self, net: Effect, prove: Prove, before: Conditions) -> None:
        """Raises Refused if a transaction breaks a constraint that was there before it."""
        new = self.new_constraints(before)
        concerned = [one for one in self.concerned(net) if isinstance(one, Integrity) and one not in new]
        if concerned and (broken := violations(sorted(concerned, key=rank), self.support, net)):
            raise refusal(self.program, broken, prove)

    def reports(self, net: Effect, before: Conditions) -> tuple[Report, ...]:
        """What alerts say of a transaction, sorted; those that it has brought say nothing, for what they find counts as reported."""
        reported, new = [], self.new_alerts(before)
        for alert in self.concerned(net):
            if isinstance(alert, Alert) and alert not in new:
                declaration = self.program.relations[alert.relation]
                for report in reports(alert, declaration.arity, self.support, net, defining=before is not self):
                    message = told(alert.message, declaration.columns, row_text(declaration.types, report.row)) if alert.message else ""
                    reported.append(replace(report, message=message, severity=alert.severity) if message or alert.severity else report)
        return tuple(sorted(reported, key=lambda report: (report.alert, report.row, report.state)))


def conditions_of(program: Program, separated: Program) -> tuple[Program, Conditions]:
    """The conditions of a program; and what it becomes where rows that are stated are kept apart, with the views that conditions need."""
    conditions = Conditions(program, alerts(program), constraints(program), triggers(program))
    if not conditions.active:
        return separated, conditions
    made, support = supported(separated)
    return made, replace(conditions, support=support)
