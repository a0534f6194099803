"""Aggregates that say the same, made equal."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from vigilog.language import syntax
from vigilog.language.parts import rename, rename_literal


def canonical(aggregate: syntax.Aggregate, scope: set[str]) -> syntax.Aggregate:
    """The aggregate with its own variables, and `_`, named in their order, so that bodies that say the same are equal. No variable of a program has such a name."""
    own: dict[str, syntax.Term] = {}

    def named(literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(named, branch)) for branch in literal.branches))
            case syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.SetOf():
                return literal
            case syntax.Atom():
                pass
            case _:
                assert_never(literal)
        args: list[syntax.Term] = []
        for arg in literal.args:
            name = arg.name if isinstance(arg, syntax.Variable) else f"_{len(own)}"
            mine = isinstance(arg, syntax.Wildcard) or (isinstance(arg, syntax.Variable) and name not in scope)
            args.append(own.setdefault(name, syntax.Variable(f"own {len(own)}", arg.type)) if mine else arg)
        return replace(literal, args=tuple(args))

    body = tuple(named(literal) for literal in aggregate.body)
    target = None if aggregate.target is None else rename(aggregate.target, own)
    return replace(aggregate, target=target, body=tuple(rename_literal(literal, own) for literal in body))
