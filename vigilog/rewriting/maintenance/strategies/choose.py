"""Which strategy each view gets, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vigilog.core.errors import UsageError
from vigilog.language.strata import components
from vigilog.language.syntax import Program, atoms
from vigilog.rewriting.maintenance.strategies import AUTO, EXTERNAL, MATERIALIZED, STRATEGIES, Strategy


@dataclass(frozen=True)
class Decision:
    """A view's strategy and the reason for it."""

    strategy: Strategy
    reason: str

    @property
    def name(self) -> str:
        return self.strategy.name


def decide(program: Program, views: Iterable[str], wanted: str) -> dict[str, Decision]:
    """The strategy of each view of a plain program; `auto` stores only what recursion makes expensive to derive again."""
    if wanted not in (AUTO, *STRATEGIES):
        raise UsageError(f"there is no strategy {wanted}; there are {', '.join((AUTO, *STRATEGIES))}")
    recursive = recursive_relations(program)
    found = {}
    for view in views:
        needed = depends_on(program, view) & recursive
        if wanted != AUTO and not STRATEGIES[wanted].keeps(program.relations[view], recursive=view in recursive):
            why = "recursive, so its proofs cannot be counted" if view in recursive else "without columns, which is not worth counting"
            found[view] = Decision(MATERIALIZED, f"stored as asked for; it is {why}")
        elif wanted != AUTO:
            found[view] = Decision(STRATEGIES[wanted], "as asked for")
        elif needed:
            reason = f"{_listed(sorted(needed))} recursive: a stored row is found at once, a derived one takes a search"
            found[view] = Decision(MATERIALIZED, reason)
        else:
            found[view] = Decision(EXTERNAL, "not recursive: its changes follow from the tables along indexes, so nothing need be kept")
    return found


def kept_by_none(program: Program, decisions: Mapping[str, Decision], large: Iterable[str], reason: str) -> dict[str, Decision]:
    """The views that cannot be stored, because they rest on relations that are too large for that: the decision instead."""
    stored = [view for view, decision in decisions.items() if decision.strategy.stored]
    return {view: Decision(EXTERNAL, reason) for view in stored if not depends_on(program, view).isdisjoint(large)}


def kept_relations(program: Program, decisions: Mapping[str, Decision]) -> dict[str, Strategy]:
    """The derived relations to store, each by a strategy: views that are to be, and what they are derived from. What only one of several strategies can keep goes to the other."""
    derived, recursive = {rule.head.relation for rule in program.rules}, recursive_relations(program)
    kept: dict[str, Strategy] = {}
    for view, decision in decisions.items():
        for name in (depends_on(program, view) & derived) if decision.strategy.stored else ():
            suits = decision.strategy.keeps(program.relations[name], recursive=name in recursive)
            if kept.get(name, MATERIALIZED) is MATERIALIZED:
                kept[name] = decision.strategy if suits else MATERIALIZED
    return kept


def recursive_relations(program: Program) -> set[str]:
    return {name for component in components(program) if component.recursive for name in component.relations}


def depends_on(program: Program, relation: str) -> set[str]:
    """A relation and all it is derived from."""
    reads: dict[str, set[str]] = {}
    for rule in program.rules:
        reads.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in atoms(rule.body))
    seen, queue = {relation}, [relation]
    for name in queue:
        new = reads.get(name, set()) - seen
        seen |= new
        queue.extend(sorted(new))
    return seen


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
