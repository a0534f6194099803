"""The states of a relation: before a transaction, after it, and the change between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from vigilog.language import syntax


@dataclass(frozen=True)
class States:
    """What a relation is called: its new state, what it lost, what it gained."""

    new: str
    lost: str
    gained: str

    @property
    def names(self) -> tuple[str, str, str]:
        return self.new, self.lost, self.gained


def in_new(rule: syntax.Rule, states: Mapping[str, States]) -> syntax.Rule:
    """The rule with its head and every atom of its body in the new state."""
    head = replace(rule.head, relation=states[rule.head.relation].new)
    return rule.derive(head, body=tuple(literal_in_new(literal, states) for literal in rule.body))


def literal_in_new(literal: syntax.Literal, states: Mapping[str, States]) -> syntax.Literal:
    """The literal with every atom read in the new state."""

    def term(part: syntax.Term) -> syntax.Term:
        if isinstance(part, syntax.Aggregate):
            return replace(part, body=tuple(literal_in_new(inner, states) for inner in part.body))
        return part

    match literal:
        case syntax.Atom():
            return replace(literal, relation=states[literal.relation].new)
        case syntax.Negation():
            inner = literal_in_new(literal.literal, states)
            assert isinstance(inner, syntax.Atom | syntax.Builtin), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case syntax.Builtin():
            return replace(literal, args=tuple(term(arg) for arg in literal.args))
        case syntax.Disjunction():
            return replace(literal, branches=tuple(tuple(literal_in_new(part, states) for part in branch) for branch in literal.branches))
        case syntax.Truth():
            return literal
        case syntax.SetOf():
            raise AssertionError("setofs are collected before")
        case _:
            assert_never(literal)


@dataclass(frozen=True)
class Direction:
    """Whether a relation lost rows, and whether it gained some."""

    lost: bool
    gained: bool
