"""The meaning of the language: the shortest evaluator we could write, for tests and for `verify`, never for speed.

A program's meaning is the least model, stratum by stratum: apply every rule to all that is known, until nothing is new. It reads programs as
users write them (several heads, disjunctions, nested aggregates), so it shares no rewriting with the executors, only the meaning of single functors.

>>> from vigilog.language.check import check
>>> text = '.decl e(x:number, y:number) .decl c(x:number, y:number) c(x,y) :- e(x,y). c(x,y) :- e(x,z), c(z,y).'
>>> sorted(evaluate(check(text).program, {"e": {(1, 2), (2, 3)}})["c"])
[(1, 2), (1, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from vigilog.core.values import Row, Value
from vigilog.language.functors import aggregate, apply, test
from vigilog.language.safety import grounded_by, needs
from vigilog.language.strata import components
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constant,
    Constraint,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Truth,
    Variable,
    Wildcard,
    names,
)

Binding = dict[str, Value]
State = dict[str, set[Row]]


def evaluate(program: Program, facts: Mapping[str, Iterable[Row]]) -> State:
    """Every relation's rows. `program` is checked; `facts` are the rows of the input relations."""
    state: State = {name: set(map(tuple, facts.get(name, ()))) for name in program.relations}
    for component in components(program):
        changed = True
        while changed:
            changed = False
            for rule in component.rules:
                for name, row in list(derive(rule, state)):
                    if row not in state[name]:
                        state[name].add(row)
                        changed = True
    return state


def derive(rule: Rule, state: State) -> Iterator[tuple[str, Row]]:
    """The rows a rule gives in a state, each with its relation."""
    scope = names(rule)
    for binding in solve(rule.body, {}, state, scope):
        for head in rule.heads:
            row = tuple(value(arg, binding, state, scope) for arg in head.args)
            if None not in row:
                yield head.relation, row  # type: ignore[misc]  # no None in it


def solve(body: tuple[Literal, ...], binding: Binding, state: State, scope: set[str]) -> Iterator[Binding]:
    """Every way to make all literals true. Takes the first literal that can be decided, then the rest."""
    if not body:
        yield binding
        return
    index = next((i for i, literal in enumerate(body) if ready(literal, binding, scope)), None)
    if index is None:  # disjunctions that wait for each other
        place, waiting = next((i, literal) for i, literal in enumerate(body) if isinstance(literal, Disjunction))
        for branch in waiting.branches:
            yield from solve((*branch, *body[:place], *body[place + 1 :]), binding, state, scope)
        return
    rest = body[:index] + body[index + 1 :]
    for extended in satisfy(body[index], binding, state, scope):
        yield from solve(rest, extended, state, scope)


def ready(literal: Literal, binding: Binding, scope: set[str]) -> bool:
    match literal:
        case Atom():
            own = {arg.name for arg in literal.args if isinstance(arg, Variable)}
            return all(isinstance(arg, Wildcard) or needs(arg, scope) <= binding.keys() | own for arg in literal.args)
        case Constraint(op="=", args=(left, right)):
            known = [needs(side, scope) <= binding.keys() for side in (left, right)]
            return all(known) or (known[0] and isinstance(right, Variable)) or (known[1] and isinstance(left, Variable))
        case Disjunction():
            return all(_groundable(branch, set(binding), scope) for branch in literal.branches)
        case Truth():
            return True
        case Negation() | Constraint():
            parts = literal.literal.args if isinstance(literal, Negation) else literal.args
            return all(needs(arg, scope) <= binding.keys() for arg in parts)
        case _:
            assert_never(literal)


def _groundable(branch: tuple[Literal, ...], given: set[str], scope: set[str]) -> bool:
    """Whether a branch can be solved with what is bound now; otherwise other literals must come first."""
    bound = grounded_by(branch, given, scope)

    def decidable(part: Literal) -> bool:
        if isinstance(part, Disjunction):
            return all(_groundable(way, bound, scope) for way in part.branches)
        return names(part, into_aggregates=True) & scope <= bound

    return all(map(decidable, branch))


def satisfy(literal: Literal, binding: Binding, state: State, scope: set[str]) -> Iterator[Binding]:
    """Every extension of a binding that makes one literal true. An undefined functor makes it false."""
    match literal:
        case Atom():
            for row in state[literal.relation]:
                extended = unify(literal.args, row, binding, state, scope)
                if extended is not None:
                    yield extended
        case Negation():
            if refuted(literal.literal, binding, state, scope):
                yield binding
        case Constraint(op="=", args=(left, right)):
            for variable, term in ((left, right), (right, left)):
                if isinstance(variable, Variable) and variable.name not in binding:
                    result = value(term, binding, state, scope)
                    if result is not None:
                        yield {**binding, variable.name: result}
                    return
            if holds(literal, binding, state, scope):
                yield binding
        case Constraint():
            if holds(literal, binding, state, scope):
                yield binding
        case Truth():
            if literal.value:
                yield binding
        case Disjunction():
            for branch in literal.branches:
                yield from solve(branch, binding, state, scope)
        case _:
            assert_never(literal)


def refuted(literal: Atom | Constraint, binding: Binding, state: State, scope: set[str]) -> bool:
    """Whether a literal is false; one that is undefined is not."""
    match literal:
        case Atom():
            wanted = [None if isinstance(arg, Wildcard) else value(arg, binding, state, scope) for arg in literal.args]
            defined = all(isinstance(arg, Wildcard) or got is not None for arg, got in zip(literal.args, wanted, strict=True))
            matches = (all(w is None or w == v for w, v in zip(wanted, row, strict=True)) for row in state[literal.relation])
            return defined and not any(matches)
        case Constraint():
            return holds(literal, binding, state, scope) is False
        case _:
            assert_never(literal)


def unify(args: tuple[Term, ...], row: Row, binding: Binding, state: State, scope: set[str]) -> Binding | None:
    extended = dict(binding)
    for arg, cell in zip(args, row, strict=True):
        if isinstance(arg, Variable) and extended.setdefault(arg.name, cell) != cell:
            return None
    for arg, cell in zip(args, row, strict=True):
        if not isinstance(arg, Variable | Wildcard) and value(arg, extended, state, scope) != cell:
            return None
    return extended


def holds(constraint: Constraint, binding: Binding, state: State, scope: set[str]) -> bool | None:
    args = [value(arg, binding, state, scope) for arg in constraint.args]
    return None if None in args else test(constraint.op, args)


def value(term: Term, binding: Binding, state: State, scope: set[str]) -> Value | None:
    """The value of a term; None where it is undefined."""
    match term:
        case Variable():
            return binding[term.name]
        case Constant():
            return term.value
        case Functor():
            args = [value(arg, binding, state, scope) for arg in term.args]
            assert term.type is not None, "checked programs are typed"
            return None if None in args else apply(term.name, term.type, [arg.type for arg in term.args], args)  # type: ignore[misc]  # typed
        case Aggregate():
            return aggregated(term, binding, state, scope)
        case Wildcard():
            raise AssertionError("a wildcard has no value")
        case _:
            assert_never(term)


def aggregated(term: Aggregate, binding: Binding, state: State, scope: set[str]) -> Value | None:
    """The aggregate over the distinct bindings of all columns of its body, those of `_` included."""
    assert term.type is not None, "checked programs are typed"
    body = tuple(_name_wildcards(literal, f"{id(term)}.{index}") for index, literal in enumerate(term.body))
    inner = scope.union(*(names(literal) for literal in body), names(term.target) if term.target else ())
    outer = {name: cell for name, cell in binding.items() if name in scope}
    found = {tuple(sorted(solution.items(), key=lambda item: item[0])) for solution in solve(body, outer, state, inner)}
    if term.target is None:
        return aggregate(term.op, term.type, list(found))
    values = [value(term.target, dict(solution), state, inner) for solution in found]
    return aggregate(term.op, term.type, [each for each in values if each is not None])


def _name_wildcards(literal: Literal, place: str) -> Literal:
    if not isinstance(literal, Atom):
        return literal
    args = (Variable(f"_{place}.{index}") if isinstance(arg, Wildcard) else arg for index, arg in enumerate(literal.args))
    return Atom(literal.relation, tuple(args), literal.span)
