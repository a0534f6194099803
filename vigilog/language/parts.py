"""What terms, literals and rules are made of: walks through them, and the same with other terms in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Builtin,
    Constant,
    Definition,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Rule,
    SetOf,
    Term,
    Truth,
    Variable,
    Wildcard,
)


def pattern(term: Term) -> set[str]:
    """The variables that get values if the term is known to equal a value: a variable, and those in tuples."""
    match term:
        case Variable():
            return {term.name}
        case Functor(name="()"):
            return set[str]().union(*map(pattern, term.args))
        case Functor() | Wildcard() | Constant() | Aggregate():
            return set()
        case _:
            assert_never(term)


def rigid(term: Term) -> Iterator[Term]:
    """The terms in a pattern that must have values before it can be compared: all but its variables."""
    match term:
        case Variable():
            pass
        case Functor(name="()"):
            for arg in term.args:
                yield from rigid(arg)
        case Functor() | Wildcard() | Constant() | Aggregate():
            yield term
        case _:
            assert_never(term)


def is_fact(rule: Rule) -> bool:
    """Whether a rule only states rows."""
    return not rule.body and all(isinstance(arg, Constant) for head in rule.heads for arg in head.args)


def terms(literal: Literal | Rule) -> Iterator[Term]:
    """The terms that stand directly in a literal or a rule, not those inside them."""
    match literal:
        case Atom() | Builtin():
            yield from literal.args
        case Negation():
            yield from terms(literal.literal)
        case Disjunction():
            for branch in literal.branches:
                for part in branch:
                    yield from terms(part)
        case SetOf():
            yield literal.target
            for part in literal.body:
                yield from terms(part)
            yield literal.result
        case Rule():
            for part in (*literal.heads, *literal.body):
                yield from terms(part)
        case Truth():
            pass
        case _:
            assert_never(literal)


def subterms(term: Term, *, into_aggregates: bool = False) -> Iterator[Term]:
    """The term and all terms inside it; an aggregate's own scope only if asked for."""
    yield term
    match term:
        case Variable() | Wildcard() | Constant():
            pass
        case Functor():
            for arg in term.args:
                yield from subterms(arg, into_aggregates=into_aggregates)
        case Aggregate():
            if into_aggregates and term.target is not None:
                yield from subterms(term.target, into_aggregates=True)
            for literal in term.body if into_aggregates else ():
                for inner in terms(literal):
                    yield from subterms(inner, into_aggregates=True)
        case _:
            assert_never(term)


def variables(part: Term | Literal | Rule, *, into_aggregates: bool = False) -> Iterator[Variable]:
    """Every occurrence of a variable in the scope of a term, literal or rule."""
    match part:
        case SetOf():
            own = collected(part)
            for inner in (part.target, *part.body, part.result):
                yield from (
                    variable
                    for variable in variables(inner, into_aggregates=into_aggregates)
                    if into_aggregates or variable.name not in own
                )
        case Disjunction():
            for branch in part.branches:
                for inner in branch:
                    yield from variables(inner, into_aggregates=into_aggregates)
        case Rule():
            for inner in (*part.heads, *part.body):
                yield from variables(inner, into_aggregates=into_aggregates)
        case Atom() | Builtin() | Negation() | Truth():
            for root in terms(part):
                yield from variables(root, into_aggregates=into_aggregates)
        case Aggregate() if into_aggregates:
            if part.target is not None:
                yield from variables(part.target, into_aggregates=True)
            for literal in part.body:
                yield from variables(literal, into_aggregates=True)
        case Variable() | Wildcard() | Constant() | Functor() | Aggregate():
            for term in subterms(part):
                if isinstance(term, Variable):
                    yield term
                elif into_aggregates and isinstance(term, Aggregate):
                    yield from variables(term, into_aggregates=True)
        case _:
            assert_never(part)


def names(part: Term | Literal | Rule, *, into_aggregates: bool = False) -> set[str]:
    return {variable.name for variable in variables(part, into_aggregates=into_aggregates)}


def collected(setof: SetOf) -> set[str]:
    """The variables that a setof collects over. After `scope.py` nothing else has their names."""
    return names(setof.target)


def aggregates(part: Term | Literal | Rule) -> Iterator[Aggregate]:
    """The aggregates of a scope, not those nested in other aggregates."""
    roots = [part] if isinstance(part, Term) else terms(part)
    for root in roots:
        for term in subterms(root):
            if isinstance(term, Aggregate):
                yield term


def atoms(literals: tuple[Literal, ...]) -> Iterator[tuple[Atom, bool]]:
    """Every atom of a body with its sign: True if a change of it can only add. Aggregates' atoms count as negative."""
    for literal in literals:
        match literal:
            case Atom():
                yield literal, True
            case Negation():
                for atom, _ in atoms((literal.literal,)):
                    yield atom, False
            case Disjunction():
                for branch in literal.branches:
                    yield from atoms(branch)
            case SetOf():
                for atom, _ in atoms(literal.body):
                    yield atom, False
            case Builtin() | Truth():
                pass
            case _:
                assert_never(literal)
        if not isinstance(literal, Disjunction | SetOf):
            for aggregate in aggregates(literal):
                for atom, _ in atoms(aggregate.body):
                    yield atom, False


def constraints(body: tuple[Literal, ...]) -> Iterator[Builtin]:
    """The comparisons, tests and aggregates over sets of a body, negated or not, at any depth outside aggregates' own bodies."""
    for literal in body:
        match literal:
            case Builtin():
                yield literal
            case Negation():
                yield from constraints((literal.literal,))
            case Disjunction():
                for branch in literal.branches:
                    yield from constraints(branch)
            case SetOf():
                yield from constraints(literal.body)
            case Atom() | Truth():
                pass
            case _:
                assert_never(literal)


def definitions(rules: Iterable[Rule]) -> dict[str, Definition]:
    """The program's own aggregates that rules use, and those that these are defined by, each after what it needs."""
    by_name: dict[str, Definition] = {}
    for rule in rules:
        bodies = [rule.body, *(aggregate.body for aggregate in aggregates(rule))]
        for part in (part for body in bodies for part in constraints(body)):
            if part.definition is not None and part.op not in by_name and (not rule.heads or rule.heads[0].relation != part.op):
                by_name |= definitions(part.definition.rules)
                by_name[part.op] = part.definition
    return by_name


def rename(term: Term, bindings: Mapping[str, Term]) -> Term:
    """The term with variables replaced, in its own scope and in its aggregates'."""
    match term:
        case Variable():
            return bindings.get(term.name, term)
        case Functor():
            return replace(term, args=tuple(rename(arg, bindings) for arg in term.args))
        case Aggregate():
            target = None if term.target is None else rename(term.target, bindings)
            return replace(term, target=target, body=tuple(rename_literal(part, bindings) for part in term.body))
        case Wildcard() | Constant():
            return term
        case _:
            assert_never(term)


def rename_literal(literal: Literal, bindings: Mapping[str, Term]) -> Literal:
    return map_terms(literal, lambda term: rename(term, bindings))


def map_terms(literal: Literal, change: Callable[[Term], Term]) -> Literal:
    """The literal with each term that stands directly in it changed."""
    match literal:
        case Atom() | Builtin():
            return replace(literal, args=tuple(map(change, literal.args)))
        case Negation():
            inner = map_terms(literal.literal, change)
            assert isinstance(inner, Atom | Builtin), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case Disjunction():
            return replace(literal, branches=tuple(tuple(map_terms(part, change) for part in branch) for branch in literal.branches))
        case SetOf():
            body = tuple(map_terms(part, change) for part in literal.body)
            return replace(literal, target=change(literal.target), body=body, result=change(literal.result))
        case Truth():
            return literal
        case _:
            assert_never(literal)
