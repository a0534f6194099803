"""Which relations need no table, because nothing is wanted of their rows but to be told.

No rule reads them; or the only rules that do tell what one has and another has not, and nothing reads the result:

>>> from vigilog.language.parser import parse
>>> rules = parse("old(x) :- a(x). new(x) :- b(x). minus(x) :- old(x), !new(x). plus(x) :- new(x), !old(x).").rules
>>> found = transient(rules, ["minus", "plus"])
>>> sorted(found.relations), found.differences
(['minus', 'new', 'old', 'plus'], [RelationDifference(told='minus', one='old', other='new'), RelationDifference(told='plus', one='new', other='old')])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vigilog.language.parts import atoms
from vigilog.language.syntax import Atom, Negation, Rule, Variable


@dataclass(frozen=True)
class RelationDifference:
    """`told` are the rows of `one` that `other` does not have."""

    told: str
    one: str
    other: str


@dataclass(frozen=True)
class Passing:
    """Relations that need no table, those of them that are differences of two others, and the rules for all else."""

    relations: frozenset[str]
    differences: list[RelationDifference]
    rules: list[Rule]


def transient(rules: Sequence[Rule], told: Iterable[str]) -> Passing:
    """What of the rules need not be stored, if of `told` nothing is wanted but to know their rows."""
    derived = Counter(rule.head.relation for rule in rules)
    unread = set(told) - _read(rules)
    differences: dict[Rule, RelationDifference] = {}
    for rule in rules:
        difference = _difference(rule)
        if (
            difference
            and difference.told in unread
            and derived[difference.told] == 1
            and {difference.one, difference.other} <= derived.keys()
        ):
            differences[rule] = difference
    while wrong := [
        rule for rule, parts in differences.items() if {parts.one, parts.other} & _read(r for r in rules if r not in differences)
    ]:
        differences = {rule: difference for rule, difference in differences.items() if rule not in wrong}
    parts = {name for difference in differences.values() for name in (difference.one, difference.other)}
    return Passing(
        frozenset(unread & derived.keys() | parts), list(differences.values()), [rule for rule in rules if rule not in differences]
    )


def _read(rules: Iterable[Rule]) -> set[str]:
    return {atom.relation for rule in rules for atom, _ in atoms(rule.body)}


def _difference(rule: Rule) -> RelationDifference | None:
    match rule.body:
        case (Atom(relation=one, args=args), Negation(literal=Atom(relation=other, args=same))) if (
            args == same == rule.head.args and all(isinstance(arg, Variable) for arg in args) and len(set(args)) == len(args)
        ):
            return RelationDifference(rule.head.relation, one, other)
    return None
