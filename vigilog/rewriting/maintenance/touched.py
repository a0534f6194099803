"""Which groups of an aggregate a change touches, as literals that bind them, and how these groups are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import assert_never

from vigilog.core.values import NUMBER
from vigilog.language.functors import AGGREGATES
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Builtin,
    Constant,
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
    atoms,
    names,
    rename_literal,
    usage,
    variables,
)
from vigilog.rewriting.maintenance.states import States, literal_in_new


def touched(rule: Rule, states: Mapping[str, States]) -> Iterator[tuple[Literal, ...]]:
    """For each change inside an aggregate of a plain rule: the changed atom first, then the atoms it was or is joined with.

    A value changes only if a binding of the aggregate's body went or came. One that went had one literal among what no longer holds, and the others held before;
    one that came has one among what did not hold, and the others hold now.
    """
    taken = names(rule, into_aggregates=True)
    found = [
        aggregate for literal in rule.body if isinstance(literal, Builtin) for aggregate in literal.args if isinstance(aggregate, Aggregate)
    ]
    prefixes = [prefix for aggregate in found for way in ways(aggregate) for prefix in _touched_way(way, states)]
    yield from dict.fromkeys(_apart(prefix, names(rule), taken) for prefix in prefixes)  # aggregates over the same are touched by the same


def ways(aggregate: Aggregate) -> tuple[tuple[Literal, ...], ...]:
    """The conjunctions that an aggregate of a plain rule ranges over."""
    match aggregate.body:
        case (Disjunction(branches=branches),):
            return branches
        case body:
            return (body,)


def grouped(body: tuple[Literal, ...], prefix: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body of a rule whose groups are known from a prefix: an atom that says no more than that an aggregate has something to range over is asked of that aggregate.

    So a group is read once, and not first to see whether it is there.
    """
    given = set().union(*(names(literal) for literal in prefix))
    scope = set().union(*(names(literal) for literal in body))
    found = [
        literal.args[1]
        for literal in body
        if isinstance(literal, Builtin) and len(literal.args) == 2 and isinstance(literal.args[1], Aggregate)
    ]
    fresh = (
        f"n{number}"
        for number in count(1)
        if f"n{number}" not in scope | given | {n for a in found for n in names(a, into_aggregates=True)}
    )
    kept: list[Literal] = []
    for literal in body:
        same = [
            aggregate for aggregate in found if isinstance(literal, Atom) and names(literal) <= given and _ranges(aggregate, literal, scope)
        ]
        if not same:
            kept.append(literal)
        elif all(AGGREGATES[aggregate.op].nothing for aggregate in same):  # others have no value where there is nothing
            number = Variable(next(fresh), NUMBER)
            counted = Aggregate("count", None, same[0].body, NUMBER)
            kept += [Builtin("=", (number, counted)), Builtin(">", (number, Constant(0, NUMBER)))]
    return tuple(kept)


def _ranges(aggregate: Aggregate, atom: Atom, scope: set[str]) -> bool:
    """Whether an aggregate ranges over the very rows that an atom matches."""
    match aggregate.body:
        case (Atom(relation=relation, args=args),) if relation == atom.relation:
            own = [arg.name for arg in args if isinstance(arg, Variable) and arg.name not in scope]
            free = [isinstance(arg, Wildcard) or (isinstance(arg, Variable) and own.count(arg.name) == 1) for arg in args]
            return all(open_ if isinstance(mine, Wildcard) else mine == arg for mine, arg, open_ in zip(atom.args, args, free, strict=True))
        case _:
            return False


def _touched_way(way: tuple[Literal, ...], states: Mapping[str, States]) -> Iterator[tuple[Literal, ...]]:
    for part in way:
        for atom, _ in atoms((part,)):
            others = [other for other in beside(way) if other is not part]
            lost, gained = (replace(atom, relation=name) for name in (states[atom.relation].lost, states[atom.relation].gained))
            went = {Atom: (lost,), Negation: (gained,)}.get(type(part), (lost, gained))
            came = {Atom: (gained,), Negation: (lost,)}.get(type(part), (lost, gained))
            yield from ((change, *others) for change in went)
            yield from ((change, *(literal_in_new(other, states) for other in others)) for change in came)


def _apart(prefix: Iterable[Literal], scope: set[str], taken: set[str]) -> tuple[Literal, ...]:
    """The literals with new names for variables that are local to their aggregate, and `_` for those that occur once."""
    prefix = tuple(groundable(prefix, scope))
    fresh = (f"t{number}" for number in count() if f"t{number}" not in taken)
    often = Counter(variable.name for literal in prefix for variable in variables(literal))
    found = {variable.name: variable for literal in prefix for variable in variables(literal) if variable.name not in scope}
    renamed: dict[str, Term] = {name: replace(variable, name=next(fresh)) for name, variable in found.items() if often[name] > 1}
    single: dict[str, Term] = {name: Wildcard(variable.type) for name, variable in found.items() if often[name] == 1}
    return tuple(rename_literal(literal, renamed | single) for literal in prefix)


def beside(way: Iterable[Literal]) -> Iterator[Literal]:
    """The literals of an aggregate that say more of what a change in it touches: atoms, and equalities of what is computed."""
    for literal in way:
        match literal:
            case Atom() | Builtin(op="=", args=(_, Variable() | Constant() | Functor())):
                yield literal
            case Builtin() if usage(literal) is not None:
                yield literal
            case Builtin() | Negation() | Truth() | Disjunction() | SetOf():
                pass
            case _:
                assert_never(literal)


def groundable(literals: Iterable[Literal], given: set[str]) -> Iterator[Literal]:
    """The literals without equalities of variables that neither the atoms nor `given` bind."""
    found = tuple(literals)
    bound = given.union(*(names(literal) for literal in found if isinstance(literal, Atom)))
    return (literal for literal in found if names(literal) <= bound)
