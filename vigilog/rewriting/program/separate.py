"""Keeps what is stated and what is derived apart, so that a transaction changes the one and rules the other.

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show
>>> program, homes = separate(parse(".decl p(x: number) .decl q(x: number) p(x) :- q(x)."), ["p", "q"])
>>> print(show(program))
.decl p(x: number)
.decl q(x: number)
.decl p_base(x: number)
p(x) :- q(x).
p(x) :- p_base(x).
>>> homes
{'p': 'p_base', 'q': 'q'}
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vigilog.language.parts import is_fact
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Rule, Variable


def separate(program: Program, stated: Iterable[str]) -> tuple[Program, dict[str, str]]:
    """The program in which no relation with rules is stated, too; and for each stated relation, the one that holds its rows."""
    derived = {head.relation for rule in program.rules for head in rule.heads}
    taken = set(program.relations)
    homes: dict[str, str] = {}
    declarations = list(program.declarations)
    rules = list(program.rules)
    for name in stated:
        homes[name] = name
        if name in derived:
            declaration = program.relations[name]
            homes[name] = home = _unused(f"{name}_base", taken)
            declarations.append(replace(declaration, relation=home))
            columns = tuple(Variable(attribute.name, attribute.type) for attribute in declaration.attributes)
            rules.append(Rule((Atom(name, columns),), (Atom(home, columns),), declaration.span))
    return replace(program, declarations=tuple(declarations), rules=tuple(rules)), homes


def as_maintained(program: Program, given: Iterable[str] = ()) -> tuple[Program, dict[str, str]]:
    """The program as transactions see it: the rows that it states are data, not rules, and what has both data, be they only `given`, and rules is separated."""
    facts = {head.relation for rule in program.rules if is_fact(rule) for head in rule.heads}
    rules = tuple(rule for rule in program.rules if not is_fact(rule))
    derived = {head.relation for rule in rules for head in rule.heads}
    based = {directive.relation for directive in program.directed("input")} | facts | set(given)
    return separate(program.with_rules(rules), [name for name in program.relations if name in based or name not in derived])


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
