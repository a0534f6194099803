"""Integrity constraints: a transaction must not give a condition rows, or keys, that it did not have."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vigilog.conditions.alerts import by_key
from vigilog.conditions.support import Support
from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError, Finding, Refused, counted
from vigilog.core.proofs import Proof
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, row_text, sorted_rows
from vigilog.language.conditions import Integrity, told
from vigilog.language.program import Program

MOST_ROWS, MOST_PROOFS = 100, 10

Prove = Callable[[str, Sequence[Row]], list[Proof | None]]  # proofs of rows of a relation


@dataclass(frozen=True)
class Violation:
    """Rows of a constraint's relation, sorted, each of them a violation. Of rows that are elsewhere only the `number` is known."""

    constraint: Integrity
    rows: Sequence[Row]
    number: int

    def proofs(self, prove: Prove) -> list[Proof]:
        """Why its first rows hold."""
        return [proof for proof in prove(self.constraint.relation, self.rows[:MOST_PROOFS]) if proof]

    def json(self, program: Program, proofs: Sequence[Proof]) -> dict[str, Any]:
        """The violation with its first rows, and why they hold."""
        shown = self.rows[:MOST_ROWS]
        fields: dict[str, Any] = {"constraint": self.constraint.name, "rows": self.listed(program)}
        if self.number > len(shown):
            fields["more"] = self.number - len(shown)
        return fields | {"place": str(self.constraint.span), "why": [proof.json() for proof in proofs]}

    def listed(self, program: Program) -> list[list[Any]]:
        types = program.relations[self.constraint.relation].types
        rows = self.rows[:MOST_ROWS]
        return [list(row) for row in json_rows(types, rows)] if types else [[] for _ in rows]

    def message(self, program: Program) -> str:
        """What the constraint itself says of its first row, or else what there is to say of any."""
        declaration = program.relations[self.constraint.relation]
        if self.constraint.message and self.rows:
            return told(self.constraint.message, declaration.columns, row_text(declaration.types, self.rows[0]))
        first = f", the first {json.dumps(self.listed(program)[0], ensure_ascii=False)}" if self.rows else ""
        return f"{self.constraint.name} is violated by {counted(self.number, 'row')}{first}"


def violations(constraints: Sequence[Integrity], support: Support, net: Effect) -> list[Violation]:
    """The constraints that a transaction breaks, in their order."""
    breaches = []
    for constraint in constraints:
        keys = support.keys[constraint.relation, constraint.key]
        if keys not in net.views:
            continue
        try:
            came, rows = net.delta(keys).plus, net.delta(constraint.relation).plus
        except DataError as reason:  # they are on Spark, and too many to be looked at; that there are some is known
            if reason.code != "large":
                raise
            part = net.views[constraint.relation]
            breaches.append(Violation(constraint, (), 0 if isinstance(part, Delta) else part.rows))
            continue
        if came:
            grouped = by_key(constraint.key, rows) if keys != constraint.relation else {}
            broken = rows if keys == constraint.relation else [row for key in came for row in grouped[key]]
            breaches.append(Violation(constraint, sorted_rows(broken), len(broken)))
    return breaches


def refusal(program: Program, broken: Sequence[Violation], prove: Prove) -> Refused:
    """The error for a transaction that breaks constraints: the first in full, the rows of the others."""
    first, *others = broken
    proofs = first.proofs(prove)
    members = first.json(program, proofs)
    if others:
        members["others"] = {other.constraint.name: other.listed(program) for other in others}
    return Refused(first.message(program), "constraint", members, [first.constraint.relation], proofs)


def violated(constraint: Integrity, number: int) -> Finding:
    """The warning for a constraint that was defined over rows that violate it."""
    message = f"{constraint.name} is violated by {counted(number, 'row')}"
    rule = "what violates a constraint when it is defined may stay; new violations are refused"
    return Finding("violated", message, constraint.span, rule=rule, hint="vigilog violations lists them, with why", warning=True)
