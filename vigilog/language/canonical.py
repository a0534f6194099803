"""Aggregates that say the same, made equal."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Builtin,
    Disjunction,
    Literal,
    Negation,
    SetOf,
    Term,
    Truth,
    Variable,
    Wildcard,
    rename,
    rename_literal,
)


def canonical(aggregate: Aggregate, scope: set[str]) -> Aggregate:
    """The aggregate with its own variables, and `_`, named in their order, so that bodies that say the same are equal. No variable of a program has such a name."""
    own: dict[str, Term] = {}

    def named(literal: Literal) -> Literal:
        match literal:
            case Disjunction():
                return replace(literal, branches=tuple(tuple(map(named, branch)) for branch in literal.branches))
            case Negation() | Builtin() | Truth() | SetOf():
                return literal
            case Atom():
                pass
            case _:
                assert_never(literal)
        args: list[Term] = []
        for arg in literal.args:
            name = arg.name if isinstance(arg, Variable) else f"_{len(own)}"
            mine = isinstance(arg, Wildcard) or (isinstance(arg, Variable) and name not in scope)
            args.append(own.setdefault(name, Variable(f"own {len(own)}", arg.type)) if mine else arg)
        return replace(literal, args=tuple(args))

    body = tuple(named(literal) for literal in aggregate.body)
    target = None if aggregate.target is None else rename(aggregate.target, own)
    return replace(aggregate, target=target, body=tuple(rename_literal(literal, own) for literal in body))
