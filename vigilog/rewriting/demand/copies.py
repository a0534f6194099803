"""Leaves out relations that only take over the rows of another: what reads them reads that one.

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show_statement
>>> rules = parse("m(x, y) :- lost(x, y). p(x, y) :- m(x, y), q(y).").rules
>>> print("\\n".join(show_statement(rule) for rule in without_copies(rules, keep=["p"])))
p(x, y) :- lost(x, y), q(y).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from vigilog.language.parts import atoms
from vigilog.language.syntax import Atom, Literal, Rule, Variable


def without_copies(rules: Sequence[Rule], keep: Collection[str]) -> list[Rule]:
    """The rules without those of relations that have a single one, which copies; relations in `keep` are wanted for themselves."""
    defined = Counter(rule.head.relation for rule in rules)
    wanted = {
        *keep,
        *(atom.relation for rule in rules for literal in rule.body if not isinstance(literal, Atom) for atom, _ in atoms((literal,))),
    }
    source: dict[str, str] = {}

    def origin(relation: str) -> str:
        return origin(source[relation]) if relation in source else relation

    for rule in rules:
        name, copied = rule.head.relation, origin(_copied(rule))
        if copied and name != copied and defined[name] == 1 and name not in wanted:
            source[name] = copied

    def read(literal: Literal) -> Literal:
        return replace(literal, relation=origin(literal.relation)) if isinstance(literal, Atom) else literal

    return [rule.derive(rule.head, body=tuple(map(read, rule.body))) for rule in rules if rule.head.relation not in source]


def _copied(rule: Rule) -> str:
    """The relation all of whose rows, as they are, a rule takes over; empty if there is none."""
    match rule.body:
        case (Atom(relation=relation, args=args),) if (
            args == rule.head.args and all(isinstance(arg, Variable) for arg in args) and len(set(args)) == len(args)
        ):
            return relation
    return ""
