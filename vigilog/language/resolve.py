"""What a call is: an atom of a relation, or a literal that the language, or the program, defines.

A program's own relation wins over a word of the library; so does its own aggregate.

>>> from vigilog.language.parser import parse
>>> text = ".aggregate total(s: set<number>, r: number) total({}, 0). total({x | rest}, r) :- total(rest, q), r = q + x. p(r) :- q(s), total(s, r), member(1, s)."
>>> program = resolved(parse(text))
>>> [type(literal).__name__ for literal in program.rules[0].body], len(program.aggregates[0].rules)
(['Atom', 'Builtin', 'Builtin'], 2)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from vigilog.language import syntax
from vigilog.language.program import Program

BUILT_IN = frozenset({"member", *syntax.LIBRARY})


def resolved(program: Program) -> Program:
    """The program whose rules of aggregates are with their definitions, and whose calls that are no atoms are none."""
    defined = {definition.name: definition for definition in program.aggregates}
    own: dict[str, list[syntax.Rule]] = {name: list(definition.rules) for name, definition in defined.items()}
    rest: list[syntax.Rule] = []
    for rule in program.rules:
        (own[rule.heads[0].relation] if len(rule.heads) == 1 and rule.heads[0].relation in own else rest).append(rule)
    definitions = {name: replace(definition, rules=tuple(own[name])) for name, definition in defined.items()}
    calls = _Calls(program, definitions)
    return replace(
        program,
        rules=tuple(map(calls.rule, rest)),
        aggregates=tuple(replace(each, rules=tuple(map(calls.rule, each.rules))) for each in definitions.values()),
    )


class _Calls:
    def __init__(self, program: Program, definitions: Mapping[str, syntax.Definition]) -> None:
        self.relations, self.definitions = program.relations, definitions

    def rule(self, rule: syntax.Rule) -> syntax.Rule:
        heads = tuple(replace(head, args=tuple(map(self.term, head.args))) for head in rule.heads)
        return replace(rule, heads=heads, body=self.body(rule.body))

    def body(self, body: tuple[syntax.Literal, ...]) -> tuple[syntax.Literal, ...]:
        return tuple(map(self.literal, body))

    def literal(self, literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Atom():
                args, name = tuple(map(self.term, literal.args)), literal.relation
                if name in self.relations or (name not in BUILT_IN and name not in self.definitions):
                    return replace(literal, args=args)
                return syntax.Builtin(name, args, literal.span, self.definitions.get(name))
            case syntax.Builtin():
                definition = self.definitions.get(literal.op, literal.definition)
                return replace(literal, args=tuple(map(self.term, literal.args)), definition=definition)
            case syntax.Negation():
                inner = self.literal(literal.literal)
                assert isinstance(inner, syntax.Atom | syntax.Builtin), "only atoms and tests are negated"
                return replace(literal, literal=inner)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(map(self.body, literal.branches)))
            case syntax.SetOf():
                return replace(literal, target=self.term(literal.target), body=self.body(literal.body), result=self.term(literal.result))
            case syntax.Truth():
                return literal
            case _:
                assert_never(literal)

    def term(self, term: syntax.Term) -> syntax.Term:
        match term:
            case syntax.Functor():
                return replace(term, args=tuple(map(self.term, term.args)))
            case syntax.Aggregate():
                return replace(term, target=None if term.target is None else self.term(term.target), body=self.body(term.body))
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term
            case _:
                assert_never(term)
