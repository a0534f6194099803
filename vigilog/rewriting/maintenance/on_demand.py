"""The plan as programs on demand, which are what is run on Spark: one for all views, stored or not, so that they share their rounds; and before it, for each group whose state is kept, one for its bindings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from vigilog.language.program import Program
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.maintenance.plan import GroupPlan, Plan
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.relevant import relevant
from vigilog.rewriting.sections import Section, by_rank


@dataclass(frozen=True)
class OnDemand:
    """`program` derives all views and, for those that are counted, the numbers of proofs, which are `stored` beside them; `changes` finds what the `derived` ones gain and lose, over `tables`."""

    program: Program
    stored: frozenset[str]
    derived: Sequence[str]
    external: External
    changes: Program
    levels: Mapping[str, int]
    tables: frozenset[str]

    @property
    def sections(self) -> list[Section]:
        """The rules to print, in an order in which they could be evaluated."""
        declarations = dict(self.changes.relations)
        return by_rank("changes of all views", self.changes.rules, declarations, self.levels, Naming(declarations))


def on_demand(plan: Plan) -> OnDemand:
    """The rules for a plan's views. What is stored is read, in its old state, where others are derived. What is kept of groups is read as base relations are."""
    program = plan.needed
    derived = {rule.head.relation for rule in program.rules} - plan.improved
    kept = _stored(plan)
    told = sorted(derived.intersection(plan.told) | kept)
    bound = {declaration.relation for group in plan.groups for declaration in (group.aux, group.state)}
    return _on_demand(plan, told, [*plan.told, *kept, *(program.relations.keys() - derived), *bound, *plan.improved], kept)


def bindings_on_demand(plan: Plan, part: GroupPlan) -> OnDemand:
    """The rules for the bindings of a group. What they read of what is counted has its numbers beside it."""
    rows = part.group.rows.relation
    read = relevant(plan.counting.program, [rows]).relations.keys()
    numbers = {parts.numbers for name, parts in plan.counting.counted.items() if name in read}
    kept = _stored(plan) & (read | numbers)
    return _on_demand(plan, [rows], [rows, *kept], kept)


def _stored(plan: Plan) -> set[str]:
    """What is stored, and changes as others do; what is recursive through `min` or `max` has changed before, as what is kept of groups has."""
    return {*plan.kept, *(parts.numbers for parts in plan.counting.counted.values())} - plan.improved


def _on_demand(plan: Plan, told: Sequence[str], wanted: Collection[str], kept: Collection[str]) -> OnDemand:
    made = plan.counting
    rest = replace(made.program, rules=tuple(rule for rule in made.program.rules if rule.head.relation not in plan.improved))
    maintenance = external(relevant(rest, wanted), (), {name: parts for name, parts in made.counted.items() if name in kept})
    rules = tuple(rule for rule in maintenance.program.rules if rule.head.relation not in kept)
    changes = [name for view in told for name in (maintenance.states[view].lost, maintenance.states[view].gained)]
    needed = relevant(replace(maintenance.program, rules=rules), changes)
    return OnDemand(
        made.program,
        frozenset(kept),
        told,
        maintenance,
        replace(maintenance.program, rules=needed.rules),
        {name: level for name, level in maintenance.levels.items() if name not in kept},
        frozenset({*kept, *(name for base in maintenance.tables for name in (base, maintenance.states[base].new))}),
    )
