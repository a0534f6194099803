"""Whose a variable is.

What an aggregate computes over is its own: a variable of its target that its body has, too, is not the one that a rule has under this name elsewhere (as in Soufflé). Every other variable that an
aggregate shares with what is around it is the same there. Of a `setof`, all variables of its target are its own, and `_` in its body is a variable that nothing else has. Here such variables get names of their own, so that
from then on the same name means the same variable.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from vigilog.language import syntax
from vigilog.language.parts import aggregates, collected, names, rename, rename_literal, variables


def with_own_targets(rule: syntax.Rule) -> syntax.Rule:
    """The rule in which no aggregate's target has the name of a variable around it.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_statement
    >>> show_statement(with_own_targets(parse("p(x, m) :- a(x), m = max x : { a(x), b(x, y), y < min x : { a(x) } }.").rules[0]))
    'p(x, m) :- a(x), m = max x__ : { a(x__), b(x__, y), y < min x_ : { a(x_) } }.'
    >>> show_statement(with_own_targets(parse("p(d, s) :- a(d), setof(d, b(d, _), s).").rules[0]))
    'p(d, s) :- a(d), setof(d_, b(d_, _1), s).'
    """
    around = names(rule)
    if next(aggregates(rule), None) is None and not any(isinstance(part, syntax.SetOf | syntax.Disjunction) for part in rule.body):
        return rule
    scopes = _Scopes(names(rule, into_aggregates=True))
    heads = tuple(replace(head, args=tuple(scopes.term(arg, around) for arg in head.args)) for head in rule.heads)
    return replace(rule, heads=heads, body=scopes.body(rule.body, around))


class _Scopes:
    """Gives names that nothing else in a rule has."""

    def __init__(self, taken: set[str]) -> None:
        self.taken = taken

    def unused(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def body(self, body: tuple[syntax.Literal, ...], around: set[str]) -> tuple[syntax.Literal, ...]:
        return tuple(self.literal(literal, around) for literal in body)

    def literal(self, literal: syntax.Literal, around: set[str]) -> syntax.Literal:
        match literal:
            case syntax.Atom() | syntax.Builtin():
                return replace(literal, args=tuple(self.term(arg, around) for arg in literal.args))
            case syntax.Negation():
                inner = self.literal(literal.literal, around)
                assert isinstance(inner, syntax.Atom | syntax.Builtin), "only atoms and tests are negated"
                return replace(literal, literal=inner)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(self.body(branch, around) for branch in literal.branches))
            case syntax.SetOf():
                return self.setof(literal, around)
            case syntax.Truth():
                return literal
            case _:
                assert_never(literal)

    def setof(self, literal: syntax.SetOf, around: set[str]) -> syntax.SetOf:
        inside = set[str]().union(*map(names, literal.body))
        body = self.body(literal.body, around | inside | collected(literal))
        shared = {each.name: each for each in variables(literal.target) if each.name in around}
        fresh: dict[str, syntax.Term] = {name: replace(each, name=self.unused(name)) for name, each in shared.items()}
        renamed = tuple(self.named(rename_literal(part, fresh)) for part in body)
        return replace(literal, target=rename(self.term(literal.target, around | inside), fresh), body=renamed)

    def named(self, literal: syntax.Literal) -> syntax.Literal:
        """The literal with variables for each `_` that stands for a binding."""
        match literal:
            case syntax.Atom():
                args = (
                    syntax.Variable(self.unused_number(), span=arg.span) if isinstance(arg, syntax.Wildcard) else arg
                    for arg in literal.args
                )
                return replace(literal, args=tuple(args))
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(self.named, branch)) for branch in literal.branches))
            case syntax.Negation() | syntax.Builtin() | syntax.SetOf() | syntax.Truth():
                return literal
            case _:
                assert_never(literal)

    def unused_number(self) -> str:
        name = next(name for number in range(1, len(self.taken) + 2) if (name := f"_{number}") not in self.taken)
        self.taken.add(name)
        return name

    def term(self, term: syntax.Term, around: set[str]) -> syntax.Term:
        match term:
            case syntax.Functor():
                return replace(term, args=tuple(self.term(arg, around) for arg in term.args))
            case syntax.Aggregate():
                inside = set[str]().union(*map(names, term.body))
                target = term.target
                within = around | inside | (set() if target is None else names(target))
                body = self.body(term.body, within)
                if target is None:
                    return replace(term, body=body)
                shared = {each.name: each for each in variables(target) if each.name in around & inside}
                fresh: dict[str, syntax.Term] = {name: replace(each, name=self.unused(name)) for name, each in shared.items()}
                return rename(replace(term, target=self.term(target, within), body=body), fresh)
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term
            case _:
                assert_never(term)
