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
from vigilog.language.strata import components, dependencies
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
        limits = {name: most for name, most in program.limits.items() if name in component.relations}
        grow([rule for rule in component.rules if not {atom.relation for atom, _ in dependencies(rule)} & {*component.relations}], state)
        while component.recursive and all(len(state[name]) < most for name, most in limits.items()) and grow(component.rules, state):
            pass
    return state


def grow(rules: Iterable[Rule], state: State) -> bool:
    """Adds to a state all that rules derive from it; whether anything of that is new."""
    new = {(name, row) for rule in rules for name, row in derive(rule, state) if row not in state[name]}
    for name, row in new:
        state[name].add(row)
    return bool(new)


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
    for extended, equalities in satisfy(body[index], binding, state, scope):
        yield from solve((*equalities, *rest), extended, state, scope)


def ready(literal: Literal, binding: Binding, scope: set[str]) -> bool:
    """Whether a literal can be decided. An atom always can: what it computes is compared as soon as that has a value."""

    def known(*terms: Term) -> bool:
        return all(needs(term, scope) <= binding.keys() for term in terms)

    match literal:
        case Atom() | Truth():
            return True
        case Constraint(op="=", args=(left, right)):
            return known(left, right) or (known(left) and isinstance(right, Variable)) or (known(right) and isinstance(left, Variable))
        case Constraint():
            return known(*literal.args)
        case Negation():
            return known(*literal.literal.args)
        case Disjunction():
            return all(_groundable(branch, set(binding), scope) for branch in literal.branches)
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


def satisfy(literal: Literal, binding: Binding, state: State, scope: set[str]) -> Iterator[tuple[Binding, tuple[Literal, ...]]]:
    """Every extension of a binding that makes one literal true, with equalities that must hold, too. An undefined functor makes it false."""
    match literal:
        case Atom():
            for row in state[literal.relation]:
                extended = unify(literal.args, row, binding)
                if extended is not None:
                    yield extended, tuple(computed(literal.args, row))
        case Negation():
            if refuted(literal.literal, binding, state, scope):
                yield binding, ()
        case Constraint():
            if literal.op == "=":
                for variable, term in (literal.args, literal.args[::-1]):
                    if isinstance(variable, Variable) and variable.name not in binding:
                        result = value(term, binding, state, scope)
                        if result is not None:
                            yield {**binding, variable.name: result}, ()
                        return
            if holds(literal, binding, state, scope):
                yield binding, ()
        case Truth():
            if literal.value:
                yield binding, ()
        case Disjunction():
            for branch in literal.branches:
                yield from ((solution, ()) for solution in solve(branch, binding, state, scope))
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


def unify(args: tuple[Term, ...], row: Row, binding: Binding) -> Binding | None:
    """The binding with the variables of an atom that has these arguments; None if a row has another value for one."""
    extended = dict(binding)
    for arg, cell in zip(args, row, strict=True):
        if isinstance(arg, Variable) and extended.setdefault(arg.name, cell) != cell:
            return None
    return extended


def computed(args: tuple[Term, ...], row: Row) -> Iterator[Literal]:
    """What remains to be true of a row that an atom with these arguments matches."""
    for arg, cell in zip(args, row, strict=True):
        if not isinstance(arg, Variable | Wildcard):
            yield Constraint("=", (arg, Constant(cell, arg.type)))


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
    """The aggregate over the distinct bindings of all columns of its body, those of `_` included. What only one way of a disjunction computes, the others determine."""
    assert term.type is not None, "checked programs are typed"
    body = tuple(_name_wildcards(literal, f"{id(term)}.{index}") for index, literal in enumerate(term.body))
    inner = scope.union(*(names(literal) for literal in body), names(term.target) if term.target else ())
    outer = {name: cell for name, cell in binding.items() if name in scope}
    solutions = list(solve(body, outer, state, inner))
    shared = sorted(set[str].intersection(*map(set, solutions))) if solutions else []
    found = {tuple(solution[name] for name in shared) for solution in solutions}
    if term.target is None:
        return aggregate(term.op, term.type, list(found))
    values = [value(term.target, dict(zip(shared, solution, strict=True)), state, inner) for solution in found]
    return aggregate(term.op, term.type, [each for each in values if each is not None])


def _name_wildcards(literal: Literal, place: str) -> Literal:
    if not isinstance(literal, Atom):
        return literal
    args = (Variable(f"_{place}.{index}") if isinstance(arg, Wildcard) else arg for index, arg in enumerate(literal.args))
    return Atom(literal.relation, tuple(args), literal.span)
