"""Whose a variable is.

What an aggregate computes over is its own: a variable of its target that its body has, too, is not the one that a rule has under this name elsewhere (as in Soufflé). Every other variable that an
aggregate shares with what is around it is the same there. Here such variables get names of their own, so that from then on the same name means the same variable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from vigilog.language.syntax import (
    Aggregate,
    Constant,
    Functor,
    Rule,
    Term,
    Variable,
    Wildcard,
    aggregates,
    map_terms,
    names,
    rename,
    terms,
    variables,
)


def with_own_targets(rule: Rule) -> Rule:
    """The rule in which no aggregate's target has the name of a variable around it.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_statement
    >>> show_statement(with_own_targets(parse("p(x, m) :- a(x), m = max x : { a(x), b(x, y), y < min x : { a(x) } }.").rules[0]))
    'p(x, m) :- a(x), m = max x__ : { a(x__), b(x__, y), y < min x_ : { a(x_) } }.'
    """
    if next(aggregates(rule), None) is None:
        return rule
    taken = names(rule, into_aggregates=True)

    def own(term: Term, around: set[str]) -> Term:
        match term:
            case Functor():
                return replace(term, args=tuple(own(arg, around) for arg in term.args))
            case Aggregate():
                inside = {name for literal in term.body for part in terms(literal) for name in names(part)}
                target = term.target
                within = around | inside | (set() if target is None else names(target))
                body = tuple(map_terms(literal, lambda inner: own(inner, within)) for literal in term.body)
                if target is None:
                    return replace(term, body=body)
                shared = {each.name: each for each in variables(target) if each.name in around & inside}
                fresh = {name: replace(each, name=unused(name)) for name, each in shared.items()}
                return rename(replace(term, target=own(target, within), body=body), fresh)
            case Variable() | Wildcard() | Constant():
                return term
            case _:
                assert_never(term)

    def unused(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    around = names(rule)
    heads = tuple(replace(head, args=tuple(own(arg, around) for arg in head.args)) for head in rule.heads)
    return replace(rule, heads=heads, body=tuple(map_terms(literal, lambda term: own(term, around)) for literal in rule.body))
