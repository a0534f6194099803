"""The plan as one program on demand: so all views, stored or not, share their rounds. It is what is run on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from vigilog.language.syntax import Program
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.maintenance.plan import Plan
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
    """The rules for a plan's views. What is stored is read, in its old state, where others are derived."""
    program = plan.needed
    derived = {rule.head.relation for rule in program.rules}
    made, kept = plan.counting, {*plan.kept, *plan.beside}
    told = sorted(derived.intersection(plan.told) | kept)
    found = external(relevant(made.program, [*plan.told, *kept, *(program.relations.keys() - derived)]), (), made.counted)
    rules = tuple(rule for rule in found.program.rules if rule.head.relation not in kept)
    wanted = [name for view in told for name in (found.states[view].lost, found.states[view].gained)]
    needed = relevant(replace(found.program, rules=rules), wanted)
    return OnDemand(
        made.program,
        frozenset(kept),
        told,
        found,
        replace(found.program, rules=needed.rules),
        {name: level for name, level in found.levels.items() if name not in kept},
        frozenset({*kept, *(name for base in found.tables for name in (base, found.states[base].new))}),
    )
