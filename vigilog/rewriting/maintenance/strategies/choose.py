"""Which strategy each view gets, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vigilog.core.errors import UsageError
from vigilog.language.program import Program
from vigilog.language.strata import components, improved
from vigilog.rewriting.maintenance.groups import aggregating, grouping
from vigilog.rewriting.maintenance.strategies import AUTO, AUXILIARY, EXTERNAL, MATERIALIZED, STRATEGIES, Strategy


@dataclass(frozen=True)
class Decision:
    """A view's strategy and the reason for it."""

    strategy: Strategy
    reason: str
    rows: bool = False  # whether, of groups that are aggregated, the rows are kept in any case

    @property
    def name(self) -> str:
        return self.strategy.name


def decide(program: Program, views: Iterable[str], wanted: str) -> dict[str, Decision]:
    """The strategy of each view of a plain program; `auto` stores only what recursion makes expensive to derive again, and keeps the state of groups."""
    if wanted not in (AUTO, *STRATEGIES):
        raise UsageError(f"there is no strategy {wanted}; there are {', '.join((AUTO, *STRATEGIES))}")
    recursive, grouped, best = recursive_relations(program), aggregating(program), improved(program)
    decisions = {}
    for view in views:
        needed = depends_on(program, view) & recursive
        if wanted == AUXILIARY.name and depends_on(program, view).isdisjoint(grouped):
            decisions[view] = _without_groups(sorted(needed))
            continue
        if view in best and wanted != MATERIALIZED.name:
            reason = "recursive through min or max: which row is the best is known when all are, so it is stored"
            decisions[view] = Decision(MATERIALIZED, reason)
        elif wanted != AUTO and not STRATEGIES[wanted].keeps(program.relations[view], recursive=view in recursive):
            why = "recursive, so its proofs cannot be counted" if view in recursive else "without columns, which is not worth counting"
            decisions[view] = Decision(MATERIALIZED, f"stored as asked for; it is {why}")
        elif wanted != AUTO:
            decisions[view] = Decision(STRATEGIES[wanted], "as asked for", rows=wanted == AUXILIARY.name)
        elif not depends_on(program, view).isdisjoint(grouped) and view not in recursive:
            decisions[view] = Decision(AUXILIARY, _state(program, sorted(depends_on(program, view) & grouped), sorted(needed)))
        elif needed:
            reason = f"{_listed(sorted(needed))} recursive: a stored row is found at once, a derived one takes a search"
            decisions[view] = Decision(MATERIALIZED, reason)
        else:
            decisions[view] = Decision(EXTERNAL, "not recursive: its changes follow from the tables along indexes, so nothing need be kept")
    return decisions


def _state(program: Program, grouped: list[str], recursive: list[str]) -> str:
    """Why the state of groups is kept, and what of their rows."""
    groups = grouping(program, dict.fromkeys(grouped, False)).groups
    reason = "the state of its groups is kept, so a changed row is added or taken away, and no group is read"
    if own := [group.rows.relation for group in groups if group.own]:
        reason += f"; {', '.join(own)} too, in which the next least or greatest is looked up"
    elif tables := sorted({group.source.relation for group in groups if group.looked_up and group.source is not None}):
        reason += f"; the next least or greatest is looked up in {', '.join(tables)}, along an index"
    return reason + (f"; {_listed(recursive)} recursive, and stored" if recursive else "")


def _without_groups(recursive: list[str]) -> Decision:
    """For a view that is to have the state of groups kept, and has none."""
    reason = "nothing in it is aggregated over groups that could be kept"
    if not recursive:
        return Decision(EXTERNAL, reason)
    return Decision(MATERIALIZED, f"{reason}; {_listed(recursive)} recursive")


def kept_by_none(program: Program, decisions: Mapping[str, Decision], large: Iterable[str], reason: str) -> dict[str, Decision]:
    """The views that cannot be stored, because they rest on relations that are too large for that: the decision instead."""
    stored = [view for view, decision in decisions.items() if decision.strategy.stored or decision.strategy is AUXILIARY]
    return {view: Decision(EXTERNAL, reason) for view in stored if not depends_on(program, view).isdisjoint(large)}


def kept_relations(program: Program, decisions: Mapping[str, Decision]) -> dict[str, Strategy]:
    """The derived relations to store, each by a strategy: views that are to be, and what they are derived from. What only one of several strategies can keep goes to the other."""
    derived, recursive = {rule.head.relation for rule in program.rules}, recursive_relations(program)
    kept: dict[str, Strategy] = {}
    for view, decision in decisions.items():
        for name in _stored_for(program, view, decision.strategy, recursive) & derived:
            suits = decision.strategy.stored and decision.strategy.keeps(program.relations[name], recursive=name in recursive)
            if kept.get(name, MATERIALIZED) is MATERIALIZED:
                kept[name] = decision.strategy if suits else MATERIALIZED
    return kept


def _stored_for(program: Program, view: str, strategy: Strategy, recursive: set[str]) -> set[str]:
    """What is stored for a view: it and all it is derived from; where only the state of groups is kept, recursions and what they are derived from."""
    if strategy is AUXILIARY:
        return set().union(*(depends_on(program, name) for name in depends_on(program, view) & recursive))
    return depends_on(program, view) if strategy.stored else set()


def grouped_relations(program: Program, decisions: Mapping[str, Decision]) -> dict[str, bool]:
    """The relations in whose rules the state of groups is kept, each with whether the rows of the groups are, in any case."""
    grouped, relations = aggregating(program), dict[str, bool]()
    for view, decision in decisions.items():
        if decision.strategy is AUXILIARY:
            relations |= {name: decision.rows or relations.get(name, False) for name in depends_on(program, view) & grouped}
    return relations


def recursive_relations(program: Program) -> set[str]:
    return {name for component in components(program) if component.recursive for name in component.relations}


def depends_on(program: Program, relation: str) -> set[str]:
    """A relation and all it is derived from."""
    seen, queue = {relation}, [relation]
    for name in queue:
        new = program.reads.get(name, frozenset()) - seen
        seen |= new
        queue.extend(sorted(new))
    return seen


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
