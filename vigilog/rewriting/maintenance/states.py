"""The states of a relation: before a transaction, after it, and the change between them.

`in_new` reads everything as it is afterwards. `OldState` reads tables as they were before:
when a transaction has been applied, a table `r` is in its new state, and what it lost and gained is at hand. What it held before is then what it holds and did not gain,
or what it lost. Nothing is copied: a rule that reads the old state becomes several rules that read the new one and the changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, product
from typing import assert_never

from vigilog.core.values import NUMBER
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constant,
    Constraint,
    Disjunction,
    Literal,
    Negation,
    Rule,
    Term,
    Truth,
    Variable,
    Wildcard,
    names,
)


@dataclass(frozen=True)
class States:
    """What a relation is called: its new state, what it lost, what it gained."""

    new: str
    lost: str
    gained: str


def in_new(rule: Rule, states: Mapping[str, States]) -> Rule:
    """The rule with its head and every atom of its body in the new state."""
    head = replace(rule.head, relation=states[rule.head.relation].new)
    return rule.derive(head, body=tuple(literal_in_new(literal, states) for literal in rule.body))


def literal_in_new(literal: Literal, states: Mapping[str, States]) -> Literal:
    """The literal with every atom read in the new state."""

    def term(part: Term) -> Term:
        if isinstance(part, Aggregate):
            return replace(part, body=tuple(literal_in_new(inner, states) for inner in part.body))
        return part

    match literal:
        case Atom():
            return replace(literal, relation=states[literal.relation].new)
        case Negation():
            inner = literal_in_new(literal.literal, states)
            assert isinstance(inner, Atom | Constraint), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case Constraint():
            return replace(literal, args=tuple(term(arg) for arg in literal.args))
        case Disjunction():
            return replace(literal, branches=tuple(tuple(literal_in_new(part, states) for part in branch) for branch in literal.branches))
        case Truth():
            return literal
        case _:
            assert_never(literal)


@dataclass(frozen=True)
class Change:
    """Whether a relation lost rows, and whether it gained some."""

    lost: bool
    gained: bool


Ways = list[tuple[Literal, ...]]


class OldState:
    """Rewrites rules so that they read the tables named in `states` as they were."""

    def __init__(self, states: Mapping[str, States], changes: Mapping[str, Change]) -> None:
        self.states, self.changes = states, changes

    def rules(self, rule: Rule) -> Iterator[Rule]:
        """The rules that together give what the rule gives in the old state; the first literal stays first."""
        fresh = (f"w{number}" for number in count(1) if f"w{number}" not in names(rule, into_aggregates=True))
        for chosen in product(*(self.ways(literal, fresh) for literal in rule.body)):
            yield rule.derive(rule.head, body=tuple(part for parts in chosen for part in parts))

    def ways(self, literal: Literal, fresh: Iterator[str]) -> Ways:
        """The ways in which a literal can have held."""
        match literal:
            case Atom() if literal.relation in self.states:
                return self._present(literal, fresh)
            case Negation(literal=Atom() as atom) if atom.relation in self.states:
                return self._absent(atom, fresh)
            case Constraint(args=(variable, Aggregate() as aggregate)):
                return [(replace(literal, args=(variable, self._aggregate(aggregate, fresh))),)]
            case Atom() | Negation() | Constraint() | Truth():
                return [(literal,)]
            case Disjunction():
                raise AssertionError("plain rules have no disjunctions outside aggregates")
            case _:
                assert_never(literal)

    def _present(self, atom: Atom, fresh: Iterator[str]) -> Ways:
        states, change = self.states[atom.relation], self.changes.get(atom.relation)
        if change is None:
            return [(replace(atom, relation=states.new),)]
        if change.gained or change.lost:
            atom = _named(atom, fresh)
        found: Ways = [(replace(atom, relation=states.new), *([Negation(replace(atom, relation=states.gained))] if change.gained else ()))]
        return found + ([(replace(atom, relation=states.lost),)] if change.lost else [])

    def _absent(self, atom: Atom, fresh: Iterator[str]) -> Ways:
        states, change = self.states[atom.relation], self.changes.get(atom.relation)
        new, lost, gained = (replace(atom, relation=name) for name in (states.new, states.lost, states.gained))
        if change is None:
            return [(Negation(new),)]
        not_lost: tuple[Literal, ...] = (Negation(lost),) if change.lost else ()
        found: Ways = [(Negation(new), *not_lost)]
        if change.gained and any(isinstance(arg, Wildcard) for arg in atom.args):
            all_, came = (Variable(next(fresh), NUMBER) for _ in range(2))  # all rows that match it now have come
            counts = [
                Constraint("=", (n, Aggregate("count", None, (_named(part, fresh),), NUMBER))) for n, part in ((all_, new), (came, gained))
            ]
            found.append((*not_lost, *counts, Constraint("=", (all_, came)), Constraint(">", (came, Constant(0, NUMBER)))))
        elif change.gained:
            found.append((gained,))
        return found

    def _aggregate(self, aggregate: Aggregate, fresh: Iterator[str]) -> Aggregate:
        branches = aggregate.body[0].branches if aggregate.body and isinstance(aggregate.body[0], Disjunction) else (aggregate.body,)
        found: Ways = []
        for branch in branches:
            named = [_named(part, fresh) if isinstance(part, Atom) else part for part in branch]
            found += [tuple(part for parts in chosen for part in parts) for chosen in product(*(self.ways(part, fresh) for part in named))]
        if len(found) == 1:
            return replace(aggregate, body=found[0] or (Truth(True),))
        return replace(aggregate, body=(Disjunction(tuple(found), apart=len(branches) == 1),))


def _named(atom: Atom, fresh: Iterator[str]) -> Atom:
    """The atom with variables for `_`."""
    args = (Variable(next(fresh), arg.type) if isinstance(arg, Wildcard) else arg for arg in atom.args)
    return replace(atom, args=tuple(args))
