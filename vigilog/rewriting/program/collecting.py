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
from vigilog.language.safety import grounded_by, names_of
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Attribute,
    Builtin,
    Constant,
    Declaration,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Program,
    Rule,
    SetOf,
    Term,
    Truth,
    Variable,
    Wildcard,
    map_terms,
    names,
    variables,
)
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
        self.declarations: list[Declaration] = []
        self.made: dict[object, str] = {}  # the relations of bindings there are, by what they hold

    def rule(self, rule: Rule) -> Iterator[Rule]:
        """The rule without setof, and the rules of relations that it needs."""
        self.source, self.added = rule, list[Rule]()
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

    def body(self, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
        """A conjunction of a rule without setof."""
        found = {id(literal): self.collected(literal, body) for literal in body if isinstance(literal, SetOf)}
        replaced = {key: new for _, asked in found.values() for key, new in asked.items()}
        kept: list[Literal] = []
        for literal in body:
            match literal:
                case SetOf():
                    kept += found[id(literal)][0]
                case Disjunction():
                    kept.append(replace(literal, branches=tuple(map(self.body, literal.branches))))
                case Builtin() if id(literal) in replaced:
                    kept.append(replaced[id(literal)])
                case Atom() | Negation() | Builtin() | Truth():
                    kept.append(map_terms(literal, self.term))
                case _:
                    assert_never(literal)
        return tuple(kept)

    def collected(self, literal: SetOf, body: tuple[Literal, ...]) -> tuple[list[Literal], dict[int, Literal]]:
        """What a setof becomes: the atom of its groups and, if the set is wanted, the aggregate that collects it; and what becomes of other literals of the body, by identity, that ask no more than the bindings can say."""
        bindings, target = self.bindings(literal)
        own = names(target)
        args = (Wildcard(arg.type) if isinstance(arg, Variable) and arg.name in own else arg for arg in bindings.args)
        kept: list[Literal] = [replace(bindings, args=tuple(args))]
        asked: dict[int, Literal] = {}
        result = literal.result
        if isinstance(result, Variable):
            for part in body:
                match part:
                    case Builtin(op=op, args=(Variable(name=name), value, *place), definition=None) if (
                        op in OF_BINDINGS and name == result.name
                    ):
                        asked[id(part)] = Builtin("=", (value, _aggregate(op, target, place, value, bindings)), part.span)
        if not isinstance(result, Variable) or self.used[result.name] > 1 + len(asked):
            kept.append(Builtin("=", (result, Aggregate("setof", target, (bindings,), result.type, literal.span)), literal.span))
        return kept, asked

    def bindings(self, literal: SetOf) -> tuple[Atom, Term]:
        """The atom that has a row for each element of each group, and the target in its terms."""
        match literal:
            case SetOf(target=target, body=(Atom() as atom,)) if _plain(target) and _told(atom, names(target)):
                return atom, target
        scope = names_of(literal)
        found = {variable.name: variable for part in literal.body for variable in variables(part)}
        outer: list[Term] = [found[name] for name in sorted(grounded_by(literal.body, set(), scope) - literal.own)]
        target = literal.target
        parts = target.args if isinstance(target, Functor) and target.name == "()" else (target,)
        fresh = (name for number in count(1) if (name := f"e{number}") not in scope | self.used.keys())
        own = parts if _plain(target) else tuple(Variable(next(fresh), part.type, part.span) for part in parts)
        name = self.relation([*outer, *parts], literal.body)
        whole = replace(target, args=tuple(own)) if isinstance(target, Functor) and target.name == "()" else own[0]
        return Atom(name, (*outer, *own), literal.span), whole

    def relation(self, terms: list[Term], body: tuple[Literal, ...], suffix: str = "bindings") -> str:
        """The relation that holds the values of some terms for which a body holds."""
        key = tuple(terms), body
        if key not in self.made:
            name = self.naming(self.source.heads[0].relation, suffix)
            if any(declaration.relation == name for declaration in self.declarations):
                name = self.naming.fresh(name)
            columns = (Attribute(f"c{number}", str(term.type), term.type) for number, term in enumerate(terms, start=1))
            self.declarations.append(Declaration(name, tuple(columns), span=self.source.span))
            head = Atom(name, tuple(terms), self.source.span)
            self.added.append(Rule((head,), body, self.source.span))  # which proofs show as it is
            self.made[key] = name
        return self.made[key]

    def term(self, term: Term) -> Term:
        """The term without setof in its aggregates: there, a setof is an atom of a relation, whose columns are no more than its variables."""
        match term:
            case Functor():
                return replace(term, args=tuple(map(self.term, term.args)))
            case Aggregate():
                target = None if term.target is None else self.term(term.target)
                return replace(term, target=target, body=tuple(map(self.inside, term.body)))
            case Variable() | Wildcard() | Constant():
                return term
            case _:
                assert_never(term)

    def inside(self, literal: Literal) -> Literal:
        match literal:
            case SetOf():
                scope = names_of(literal)
                found = {variable.name: variable for part in literal.body for variable in variables(part)}
                outer: list[Term] = [found[name] for name in sorted(grounded_by(literal.body, set(), scope) - literal.own)]
                result = Variable(next(name for n in count(1) if (name := f"s{n}") not in scope | self.used.keys()), literal.result.type)
                name = self.relation([*outer, result], (replace(literal, result=result),), "sets")
                return Atom(name, (*outer, literal.result), literal.span)
            case Disjunction():
                return replace(literal, branches=tuple(tuple(map(self.inside, branch)) for branch in literal.branches))
            case Atom() | Negation() | Builtin() | Truth():
                return map_terms(literal, self.term)
            case _:
                assert_never(literal)


def _plain(target: Term) -> bool:
    """Whether a target lists variables, each once: then a binding of them is an element."""
    parts = target.args if isinstance(target, Functor) and target.name == "()" else (target,)
    listed = [part.name for part in parts if isinstance(part, Variable)]
    return len(listed) == len(parts) == len(set(listed))


def _told(atom: Atom, own: set[str]) -> bool:
    """Whether an atom has each of its own variables in one column, and computes nothing."""
    often = Counter(arg.name for arg in atom.args if isinstance(arg, Variable))
    return all(isinstance(arg, Variable | Constant) for arg in atom.args) and all(often[name] == 1 for name in own)


def _aggregate(op: str, target: Term, place: list[Term], value: Term, bindings: Atom) -> Aggregate:
    """An aggregate over the elements of a set, as one over its bindings."""
    chosen: Term | None = target
    if op == "count":
        chosen = None
    elif place:
        assert isinstance(target, Functor) and isinstance(place[0], Constant) and isinstance(place[0].value, int), "a component of tuples"
        chosen = target.args[place[0].value - 1]
    return Aggregate(op, chosen, (bindings,), NUMBER if op == "count" else value.type, bindings.span)
