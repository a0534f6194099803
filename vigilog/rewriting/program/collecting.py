"""A setof becomes a relation of bindings and one aggregate that collects; where only `count`, `sum`, `min`, `max` or `mean` is asked of the set, that is asked of the bindings instead, and no set is made.

The bindings of `φ` are what a group's elements are: a relation with the setof's outer variables and the components of its target. An atom whose variables are all told has them already.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = '''.decl t(v: symbol, d: symbol, l: symbol) .decl p(v: symbol, n: number) .decl q(v: symbol, w: set<symbol>) .decl r(w: set<symbol>, n: number)
... p(v, n) :- setof(d, t(v, d, l), s), count(s, n).
... q(v, w) :- setof(d, (t(v, d, l), !t(d, v, l)), w).'''
>>> for rule in collect(check(text).program).rules: print(show_statement(rule))
p(v, n) :- t(v, _, l), n = count : { t(v, d, l) }.
q(v, w) :- q_bindings(l, v, _), w = setof d : { q_bindings(l, v, d) }.
q_bindings(l, v, d) :- t(v, d, l), !t(d, v, l).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import assert_never

from vigilog.core.values import NUMBER
from vigilog.language import syntax
from vigilog.language.parts import collected, map_terms, names, variables
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by, names_of
from vigilog.rewriting.naming import Naming

OF_BINDINGS = ("count", "sum", "min", "max", "mean")  # what an aggregate over the bindings gives, too


def collect(program: Program) -> Program:
    """The program without setof."""
    collector = _Collector(program)
    rules = [new for rule in program.rules for new in collector.rule(rule)]
    return replace(program, declarations=(*program.declarations, *collector.declarations), rules=tuple(rules))


class _Collector:
    def __init__(self, program: Program) -> None:
        self.naming = Naming(program.relations)
        self.declarations: list[syntax.Declaration] = []
        self.made: dict[object, str] = {}  # the relations of bindings there are, by what they hold

    def rule(self, rule: syntax.Rule) -> Iterator[syntax.Rule]:
        """The rule without setof, and the rules of relations that it needs."""
        self.source, self.added = rule, list[syntax.Rule]()
        self.used = Counter(variable.name for variable in variables(rule, into_aggregates=True))
        heads = tuple(replace(head, args=tuple(map(self.term, head.args))) for head in rule.heads)
        body = self.body(rule.body)
        if body == rule.body and heads == rule.heads:
            yield rule
            return
        added = self.added
        yield rule.derive(*heads, body=body)
        for new in added:
            yield from self.rule(new)

    def body(self, body: tuple[syntax.Literal, ...]) -> tuple[syntax.Literal, ...]:
        """A conjunction of a rule without setof."""
        gathered = {id(literal): self.collected(literal, body) for literal in body if isinstance(literal, syntax.SetOf)}
        replaced = {key: new for _, asked in gathered.values() for key, new in asked.items()}
        kept: list[syntax.Literal] = []
        for literal in body:
            match literal:
                case syntax.SetOf():
                    kept += gathered[id(literal)][0]
                case syntax.Disjunction():
                    kept.append(replace(literal, branches=tuple(map(self.body, literal.branches))))
                case syntax.Builtin() if id(literal) in replaced:
                    kept.append(replaced[id(literal)])
                case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth():
                    kept.append(map_terms(literal, self.term))
                case _:
                    assert_never(literal)
        return tuple(kept)

    def collected(self, literal: syntax.SetOf, body: tuple[syntax.Literal, ...]) -> tuple[list[syntax.Literal], dict[int, syntax.Literal]]:
        """What a setof becomes: the atom of its groups and, if the set is wanted, the aggregate that collects it; and what becomes of other literals of the body, by identity, that ask no more than the bindings can say."""
        bindings, target = self.bindings(literal)
        own = names(target)
        args = (syntax.Wildcard(arg.type) if isinstance(arg, syntax.Variable) and arg.name in own else arg for arg in bindings.args)
        kept: list[syntax.Literal] = [replace(bindings, args=tuple(args))]
        asked: dict[int, syntax.Literal] = {}
        result = literal.result
        if isinstance(result, syntax.Variable):
            for part in body:
                match part:
                    case syntax.Builtin(op=op, args=(syntax.Variable(name=name), value, *place), definition=None) if (
                        op in OF_BINDINGS and name == result.name
                    ):
                        asked[id(part)] = syntax.Builtin("=", (value, _aggregate(op, target, place, value, bindings)), part.span)
        if not isinstance(result, syntax.Variable) or self.used[result.name] > 1 + len(asked):
            kept.append(
                syntax.Builtin("=", (result, syntax.Aggregate("setof", target, (bindings,), result.type, literal.span)), literal.span)
            )
        return kept, asked

    def bindings(self, literal: syntax.SetOf) -> tuple[syntax.Atom, syntax.Term]:
        """The atom that has a row for each element of each group, and the target in its terms."""
        match literal:
            case syntax.SetOf(target=target, body=(syntax.Atom() as atom,)) if _plain(target) and _told(atom, names(target)):
                return atom, target
        scope = names_of(literal)
        by_name = {variable.name: variable for part in literal.body for variable in variables(part)}
        outer: list[syntax.Term] = [by_name[name] for name in sorted(grounded_by(literal.body, set(), scope) - collected(literal))]
        target = literal.target
        parts = target.args if isinstance(target, syntax.Functor) and target.name == "()" else (target,)
        fresh = (name for number in count(1) if (name := f"e{number}") not in scope | self.used.keys())
        own = parts if _plain(target) else tuple(syntax.Variable(next(fresh), part.type, part.span) for part in parts)
        name = self.relation([*outer, *parts], literal.body)
        whole = replace(target, args=tuple(own)) if isinstance(target, syntax.Functor) and target.name == "()" else own[0]
        return syntax.Atom(name, (*outer, *own), literal.span), whole

    def relation(self, terms: list[syntax.Term], body: tuple[syntax.Literal, ...], suffix: str = "bindings") -> str:
        """The relation that holds the values of some terms for which a body holds."""
        key = tuple(terms), body
        if key not in self.made:
            name = self.naming(self.source.heads[0].relation, suffix)
            if any(declaration.relation == name for declaration in self.declarations):
                name = self.naming.fresh(name)
            columns = (syntax.Attribute(f"c{number}", str(term.type), term.type) for number, term in enumerate(terms, start=1))
            self.declarations.append(syntax.Declaration(name, tuple(columns), span=self.source.span))
            head = syntax.Atom(name, tuple(terms), self.source.span)
            self.added.append(syntax.Rule((head,), body, self.source.span))  # which proofs show as it is
            self.made[key] = name
        return self.made[key]

    def term(self, term: syntax.Term) -> syntax.Term:
        """The term without setof in its aggregates: there, a setof is an atom of a relation, whose columns are no more than its variables."""
        match term:
            case syntax.Functor():
                return replace(term, args=tuple(map(self.term, term.args)))
            case syntax.Aggregate():
                target = None if term.target is None else self.term(term.target)
                return replace(term, target=target, body=tuple(map(self.inside, term.body)))
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term
            case _:
                assert_never(term)

    def inside(self, literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.SetOf():
                scope = names_of(literal)
                by_name = {variable.name: variable for part in literal.body for variable in variables(part)}
                outer: list[syntax.Term] = [by_name[name] for name in sorted(grounded_by(literal.body, set(), scope) - collected(literal))]
                result = syntax.Variable(
                    next(name for n in count(1) if (name := f"s{n}") not in scope | self.used.keys()), literal.result.type
                )
                name = self.relation([*outer, result], (replace(literal, result=result),), "sets")
                return syntax.Atom(name, (*outer, literal.result), literal.span)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(self.inside, branch)) for branch in literal.branches))
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth():
                return map_terms(literal, self.term)
            case _:
                assert_never(literal)


def _plain(target: syntax.Term) -> bool:
    """Whether a target lists variables, each once: then a binding of them is an element."""
    parts = target.args if isinstance(target, syntax.Functor) and target.name == "()" else (target,)
    listed = [part.name for part in parts if isinstance(part, syntax.Variable)]
    return len(listed) == len(parts) == len(set(listed))


def _told(atom: syntax.Atom, own: set[str]) -> bool:
    """Whether an atom has each of its own variables in one column, and computes nothing."""
    often = Counter(arg.name for arg in atom.args if isinstance(arg, syntax.Variable))
    return all(isinstance(arg, syntax.Variable | syntax.Constant) for arg in atom.args) and all(often[name] == 1 for name in own)


def _aggregate(op: str, target: syntax.Term, place: list[syntax.Term], value: syntax.Term, bindings: syntax.Atom) -> syntax.Aggregate:
    """An aggregate over the elements of a set, as one over its bindings."""
    chosen: syntax.Term | None = target
    if op == "count":
        chosen = None
    elif place:
        assert isinstance(target, syntax.Functor) and isinstance(place[0], syntax.Constant) and isinstance(place[0].value, int), (
            "a component of tuples"
        )
        chosen = target.args[place[0].value - 1]
    return syntax.Aggregate(op, chosen, (bindings,), NUMBER if op == "count" else value.type, bindings.span)
