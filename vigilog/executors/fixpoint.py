"""Semi-naive evaluation: the one loop of the system.

A row is *recent* in the round after it was first derived, and settled from then on. Each round joins the recent rows of a component's relations with all
rows of the others; what comes out and is not known yet is recent in the next round. No row is recent twice, so when nothing is recent, everything is derived.

Where a relation keeps the best row for each binding of its other columns (`language/improving.py`), what is no better than a known row is known, too. Rows that were the best for a while stay until the end: what they
give is worse than what better ones give, so they do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from vigilog.core.values import Row
from vigilog.executors.watch import Watch
from vigilog.language.parts import is_fact
from vigilog.language.strata import Component
from vigilog.language.syntax import Atom, Constant, Rule


class Machine(Protocol):
    """Where the rows of a component live while it is computed."""

    def start(self, component: Component) -> int:
        """Derives what needs no recursion. All rows there are then are recent; gives their number."""

    def advance(self) -> int:
        """One round: from the recent rows to the next recent ones; gives their number."""

    def size(self, relation: str) -> int:
        """How many rows a relation of the component has."""

    def finish(self) -> None:
        """Nothing is recent any more."""


def fixpoint(component: Component, machine: Machine, watch: Watch, limits: Mapping[str, int] | None = None) -> int:
    """Computes a component; gives the number of rounds. Once a relation has as many rows as `limits` says, there is no further round."""
    watch.begin(str(component))
    component = component.candidates
    bounds = [(relation, most) for relation, most in (limits or {}).items() if relation in component.relations]
    recent = total = machine.start(component)
    while component.recursive and recent and all(machine.size(relation) < most for relation, most in bounds):
        watch.round(total)
        recent = machine.advance()
        total += recent
    machine.finish()
    return watch.rounds


def recursive_positions(rule: Rule, component: Component) -> list[int]:
    """The places in a plain rule's body that read the component itself."""
    return [index for index, literal in enumerate(rule.body) if isinstance(literal, Atom) and literal.relation in component.relations]


def facts(component: Component) -> dict[str, list[Row]]:
    """The rows that a component's rules state outright, by relation."""
    by_relation: dict[str, list[Row]] = {}
    for rule in component.rules:
        if is_fact(rule):
            row = tuple(arg.value for arg in rule.head.args if isinstance(arg, Constant))
            by_relation.setdefault(rule.head.relation, []).append(row)
    return by_relation
