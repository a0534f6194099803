"""Reading tables that are too large to be written anew for each change.

Such a table is read as what was once written together with all that came since, under its own name; what went since is listed beside it. So an atom holds if its row is read and not listed.
Whether a row is missing from a large table is asked for the bindings that want to know it, as a count: the rows that match go to the bindings, not the table to where they are.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = '''
... .decl m(x: number)
... .decl edge(x: number, y: number)
... .decl p(x: number)
... p(x) :- m(x), edge(x, _), !edge(_, x).
... '''
>>> rule = check(text).program.rules[0]
>>> print(show_statement(Amendment({"edge": "edge_gone"}, ["edge"]).rule(rule)))
p(x) :- m(x), edge(x, w1), !edge_gone(x, w1), w2 = count : { edge(w3, x), !edge_gone(w3, x) }, w2 = 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from vigilog.core.values import NUMBER
from vigilog.language import syntax
from vigilog.language.parts import names


class Amendment:
    """Rewrites rules for tables with a list of what went (`gone` names it), and for `large` ones."""

    def __init__(self, gone: Mapping[str, str], large: Collection[str] = ()) -> None:
        self.gone, self.large = gone, large

    def rule(self, rule: syntax.Rule) -> syntax.Rule:
        """The rule as it is to be run; its first literal stays the first."""
        taken = names(rule, into_aggregates=True)
        fresh = (name for name in (f"w{number}" for number in count(1)) if name not in taken)
        return rule.derive(rule.head, body=self._body(rule.body, fresh))

    def _body(self, body: tuple[syntax.Literal, ...], fresh: Iterator[str]) -> tuple[syntax.Literal, ...]:
        return tuple(part for literal in body for part in self._literal(literal, fresh))

    def _literal(self, literal: syntax.Literal, fresh: Iterator[str]) -> list[syntax.Literal]:
        match literal:
            case syntax.Atom():
                return self._present(literal, fresh)
            case syntax.Negation(literal=syntax.Atom() as atom) if atom.relation in self.gone or atom.relation in self.large:
                return self._absent(atom, fresh)
            case syntax.Builtin(args=(variable, syntax.Aggregate() as aggregate)):
                return [replace(literal, args=(variable, replace(aggregate, body=self._body(aggregate.body, fresh))))]
            case syntax.Disjunction():
                return [replace(literal, branches=tuple(self._body(branch, fresh) for branch in literal.branches))]
            case syntax.Negation() | syntax.Builtin() | syntax.Truth():
                return [literal]
            case syntax.SetOf():
                raise AssertionError("setofs are collected before")
            case _:
                assert_never(literal)

    def _present(self, atom: syntax.Atom, fresh: Iterator[str]) -> list[syntax.Literal]:
        if atom.relation not in self.gone:
            return [atom]
        args = tuple(syntax.Variable(next(fresh), arg.type) if isinstance(arg, syntax.Wildcard) else arg for arg in atom.args)
        named = replace(atom, args=args)
        return [named, syntax.Negation(replace(named, relation=self.gone[atom.relation]))]

    def _absent(self, atom: syntax.Atom, fresh: Iterator[str]) -> list[syntax.Literal]:
        """No row is read and not listed."""
        number = syntax.Variable(next(fresh), NUMBER)
        args = tuple(syntax.Variable(next(fresh), arg.type) if isinstance(arg, syntax.Wildcard) else arg for arg in atom.args)
        counted = syntax.Aggregate("count", None, tuple(self._present(replace(atom, args=args), fresh)), NUMBER)
        return [syntax.Builtin("=", (number, counted)), syntax.Builtin("=", (number, syntax.Constant(0, NUMBER)))]
