"""The rules by which views are kept on Spark: those that derive them, and those that find what they gain and lose."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from vigilog.language.syntax import Program
from vigilog.rewriting.maintenance.counting import counting
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.program.relevant import relevant


@dataclass(frozen=True)
class ViewRules:
    """`program` derives all views and, for those that are counted, the numbers of proofs, which are `stored` beside them; `changes` finds what the `derived` ones gain and lose, over `tables`."""

    program: Program
    stored: frozenset[str]
    derived: Sequence[str]
    external: External
    changes: Program
    levels: Mapping[str, int]
    tables: frozenset[str]


def view_rules(program: Program, views: Collection[str], stored: Collection[str], counted: Collection[str]) -> ViewRules:
    """The rules for some views of a plain program; of these and of what they are derived from, some are stored, and some of those counted."""
    derived = {rule.head.relation for rule in program.rules}
    kept = derived.intersection(stored)
    made = counting(program, kept.intersection(counted))
    kept |= {parts.numbers for parts in made.counted.values()}
    told = sorted(derived.intersection(views) | kept)
    found = external(relevant(made.program, [*views, *kept, *(program.relations.keys() - derived)]), (), made.counted)
    rules = tuple(rule for rule in found.program.rules if rule.head.relation not in kept)
    wanted = [name for view in told for name in (found.states[view].lost, found.states[view].gained)]
    needed = relevant(replace(found.program, rules=rules), wanted)
    return ViewRules(
        made.program,
        frozenset(kept),
        told,
        found,
        replace(found.program, rules=needed.rules),
        {name: level for name, level in found.levels.items() if name not in kept},
        frozenset({*kept, *(name for base in found.tables for name in (base, found.states[base].new))}),
    )
