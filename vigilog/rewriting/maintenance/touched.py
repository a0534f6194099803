"""Which groups of an aggregate a change touches, as literals that bind them, and how these groups are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from vigilog.core.values import NUMBER
from vigilog.language import syntax
from vigilog.language.functors import AGGREGATES
from vigilog.language.parts import atoms, names, rename_literal, variables
from vigilog.rewriting.maintenance.states import States, literal_in_new


def touched(rule: syntax.Rule, states: Mapping[str, States]) -> Iterator[tuple[syntax.Literal, ...]]:
    """For each change inside an aggregate of a plain rule: the changed atom first, then the atoms it was or is joined with.

    A value changes only if a binding of the aggregate's body went or came. One that went had one literal among what no longer holds, and the others held before;
    one that came has one among what did not hold, and the others hold now.
    """
    taken = names(rule, into_aggregates=True)
    aggregates = [
        aggregate
        for literal in rule.body
        if isinstance(literal, syntax.Builtin)
        for aggregate in literal.args
        if isinstance(aggregate, syntax.Aggregate)
    ]
    prefixes = [prefix for aggregate in aggregates for way in ways(aggregate) for prefix in _touched_way(way, states)]
    yield from dict.fromkeys(_apart(prefix, names(rule), taken) for prefix in prefixes)  # aggregates over the same are touched by the same


def ways(aggregate: syntax.Aggregate) -> tuple[tuple[syntax.Literal, ...], ...]:
    """The conjunctions that an aggregate of a plain rule ranges over."""
    match aggregate.body:
        case (syntax.Disjunction(branches=branches),):
            return branches
        case body:
            return (body,)


def grouped(body: tuple[syntax.Literal, ...], prefix: tuple[syntax.Literal, ...]) -> tuple[syntax.Literal, ...]:
    """The body of a rule whose groups are known from a prefix: an atom that says no more than that an aggregate has something to range over is asked of that aggregate.

    So a group is read once, and not first to see whether it is there.
    """
    given = set().union(*(names(literal) for literal in prefix))
    scope = set().union(*(names(literal) for literal in body))
    aggregates = [
        literal.args[1]
        for literal in body
        if isinstance(literal, syntax.Builtin) and len(literal.args) == 2 and isinstance(literal.args[1], syntax.Aggregate)
    ]
    fresh = (
        f"n{number}"
        for number in count(1)
        if f"n{number}" not in scope | given | {n for a in aggregates for n in names(a, into_aggregates=True)}
    )
    kept: list[syntax.Literal] = []
    for literal in body:
        same = [
            aggregate
            for aggregate in aggregates
            if isinstance(literal, syntax.Atom) and names(literal) <= given and _ranges(aggregate, literal, scope)
        ]
        if not same:
            kept.append(literal)
        elif all(AGGREGATES[aggregate.op].nothing for aggregate in same):  # others have no value where there is nothing
            number = syntax.Variable(next(fresh), NUMBER)
            counted = syntax.Aggregate("count", None, same[0].body, NUMBER)
            kept += [syntax.Builtin("=", (number, counted)), syntax.Builtin(">", (number, syntax.Constant(0, NUMBER)))]
    return tuple(kept)


def _ranges(aggregate: syntax.Aggregate, atom: syntax.Atom, scope: set[str]) -> bool:
    """Whether an aggregate ranges over the very rows that an atom matches."""
    match aggregate.body:
        case (syntax.Atom(relation=relation, args=args),) if relation == atom.relation:
            own = [arg.name for arg in args if isinstance(arg, syntax.Variable) and arg.name not in scope]
            free = [isinstance(arg, syntax.Wildcard) or (isinstance(arg, syntax.Variable) and own.count(arg.name) == 1) for arg in args]
            return all(
                open_ if isinstance(mine, syntax.Wildcard) else mine == arg for mine, arg, open_ in zip(atom.args, args, free, strict=True)
            )
        case _:
            return False


def _touched_way(way: tuple[syntax.Literal, ...], states: Mapping[str, States]) -> Iterator[tuple[syntax.Literal, ...]]:
    for part in way:
        for atom, _ in atoms((part,)):
            others = [other for other in beside(way) if other is not part]
            lost, gained = (replace(atom, relation=name) for name in (states[atom.relation].lost, states[atom.relation].gained))
            went = {syntax.Atom: (lost,), syntax.Negation: (gained,)}.get(type(part), (lost, gained))
            came = {syntax.Atom: (gained,), syntax.Negation: (lost,)}.get(type(part), (lost, gained))
            yield from ((change, *others) for change in went)
            yield from ((change, *(literal_in_new(other, states) for other in others)) for change in came)


def _apart(prefix: Iterable[syntax.Literal], scope: set[str], taken: set[str]) -> tuple[syntax.Literal, ...]:
    """The literals with new names for variables that are local to their aggregate, and `_` for those that occur once."""
    prefix = tuple(groundable(prefix, scope))
    fresh = (f"t{number}" for number in count() if f"t{number}" not in taken)
    often = Counter(variable.name for literal in prefix for variable in variables(literal))
    local = {variable.name: variable for literal in prefix for variable in variables(literal) if variable.name not in scope}
    renamed: dict[str, syntax.Term] = {name: replace(variable, name=next(fresh)) for name, variable in local.items() if often[name] > 1}
    single: dict[str, syntax.Term] = {name: syntax.Wildcard(variable.type) for name, variable in local.items() if often[name] == 1}
    return tuple(rename_literal(literal, renamed | single) for literal in prefix)


def beside(way: Iterable[syntax.Literal]) -> Iterator[syntax.Literal]:
    """The literals of an aggregate that say more of what a change in it touches: atoms, and equalities of what is computed."""
    for literal in way:
        match literal:
            case syntax.Atom() | syntax.Builtin(op="=", args=(_, syntax.Variable() | syntax.Constant() | syntax.Functor())):
                yield literal
            case syntax.Builtin() if syntax.usage(literal) is not None:
                yield literal
            case syntax.Builtin() | syntax.Negation() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                pass
            case _:
                assert_never(literal)


def groundable(literals: Iterable[syntax.Literal], given: set[str]) -> Iterator[syntax.Literal]:
    """The literals without equalities of variables that neither the atoms nor `given` bind."""
    body = tuple(literals)
    bound = given.union(*(names(literal) for literal in body if isinstance(literal, syntax.Atom)))
    return (literal for literal in body if names(literal) <= bound)
