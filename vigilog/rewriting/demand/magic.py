"""A goal-directed program: what a query needs, and no more.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = '''
... .decl edge(x: symbol, y: symbol)
... .decl closure(x: symbol, y: symbol)
... closure(x, y) :- edge(x, y).
... closure(x, y) :- edge(x, z), closure(z, y).
... '''
>>> asked = magic(check(text).program, [("closure", "bf")])
>>> print("\\n".join(show_statement(rule) for rule in asked.program.rules))
sup_closure_bf(s1, s1) :- m_closure_bf(s1).
closure(s1, y) :- sup_closure_bf(s1, x), edge(x, y).
sup_closure_bf(s1, z) :- sup_closure_bf(s1, x), edge(x, z).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vigilog.language.program import Program
from vigilog.language.strata import components
from vigilog.language.syntax import Rule, Variable
from vigilog.rewriting.demand.demand import Demand
from vigilog.rewriting.naming import Naming


@dataclass(frozen=True)
class MagicProgram:
    """A program on demand: its rules, the magic relation of each question, and for each relation on demand its place in the order of dependencies."""

    program: Program
    questions: Mapping[tuple[str, str], str]
    levels: Mapping[str, int]


def magic(program: Program, goals: Iterable[tuple[str, str]], stored: Iterable[str] = (), *, factoring: bool = True) -> MagicProgram:
    """The plain program that answers questions for relations by patterns; relations that are stored count as tables."""
    definitions = definitions_of(program, stored)
    demand = Demand(definitions, Naming(program.relations), factoring=factoring)
    for relation, pattern in goals:
        declaration = program.relations[relation]
        columns = [Variable(attribute.name, attribute.type) for attribute in declaration.attributes]
        demand.question(relation, pattern, (column for column, mark in zip(columns, pattern, strict=True) if mark == "b"))
    demand.finish()
    declarations = (*program.declarations, *demand.declarations.values())
    rewritten = replace(program, declarations=declarations, rules=tuple(demand.rules))
    return MagicProgram(rewritten, demand.asked, levels(program))


def linear_patterns(program: Program, relation: str) -> list[str]:
    """Patterns by which a recursive relation can be asked for rows at the cost of what it answers."""
    return Demand(definitions_of(program, ()), Naming(program.relations)).linear_patterns(relation)


def definitions_of(program: Program, stored: Iterable[str]) -> dict[str, Sequence[Rule]]:
    """The rules of every relation that is not stored."""
    definitions: dict[str, list[Rule]] = {}
    stored = set(stored)
    for rule in program.rules:
        if rule.head.relation not in stored:
            definitions.setdefault(rule.head.relation, []).append(rule)
    return dict(definitions)


def levels(program: Program) -> dict[str, int]:
    """The place of each derived relation in the order of dependencies."""
    return {name: level for level, component in enumerate(components(program)) for name in component.relations}
