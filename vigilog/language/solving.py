"""What makes a body true: every binding of its variables, over the rows of relations. The meaning of literals, for the reference and for aggregates that rules define."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import assert_never

from vigilog.core.sets import Set
from vigilog.core.values import Row, Value
from vigilog.language import syntax
from vigilog.language.folds import fold
from vigilog.language.functors import aggregate, apply, test
from vigilog.language.library import give
from vigilog.language.parts import collected, names
from vigilog.language.safety import decidable, grounded_by, names_of, needs

Binding = dict[str, Value]
State = Mapping[str, AbstractSet[Row]]


def solve(body: tuple[syntax.Literal, ...], binding: Binding, state: State, scope: set[str]) -> Iterator[Binding]:
    """Every way to make all literals true. Takes the first literal that can be decided, then the rest."""
    if not body:
        yield binding
        return
    index = next((i for i, literal in enumerate(body) if ready(literal, binding, scope)), None)
    if index is None:  # disjunctions that wait for each other
        place, waiting = next((i, literal) for i, literal in enumerate(body) if isinstance(literal, syntax.Disjunction))
        for branch in waiting.branches:
            yield from solve((*branch, *body[:place], *body[place + 1 :]), binding, state, scope)
        return
    rest = body[:index] + body[index + 1 :]
    for extended, equalities in satisfy(body[index], binding, state, scope):
        yield from solve((*equalities, *rest), extended, state, scope)


def ready(literal: syntax.Literal, binding: Binding, scope: set[str]) -> bool:
    """Whether a literal can be decided. An atom always can: what it computes is compared as soon as that has a value."""

    def known(term: syntax.Term) -> bool:
        return _known(term, binding, scope)

    match literal:
        case syntax.Atom() | syntax.Truth() | syntax.SetOf():
            return True
        case syntax.Builtin():
            return decidable(literal, known)
        case syntax.Negation():
            return all(map(known, literal.literal.args))
        case syntax.Disjunction():
            return all(_groundable(branch, set(binding), scope) for branch in literal.branches)
        case _:
            assert_never(literal)


def _known(term: syntax.Term, binding: Binding, scope: set[str]) -> bool:
    match term:
        case syntax.Variable():
            return term.name in binding
        case syntax.Constant():
            return True
        case syntax.Functor():
            return all(_known(arg, binding, scope) for arg in term.args)
        case syntax.Wildcard() | syntax.Aggregate():
            return needs(term, scope) <= binding.keys()
        case _:
            assert_never(term)


def _groundable(branch: tuple[syntax.Literal, ...], given: set[str], scope: set[str]) -> bool:
    """Whether a branch can be solved with what is bound now; otherwise other literals must come first."""
    bound = grounded_by(branch, given, scope)

    def decidable(part: syntax.Literal) -> bool:
        if isinstance(part, syntax.Disjunction):
            return all(_groundable(way, bound, scope) for way in part.branches)
        return isinstance(part, syntax.SetOf) or names(part, into_aggregates=True) & scope <= bound

    return all(map(decidable, branch))


def satisfy(
    literal: syntax.Literal, binding: Binding, state: State, scope: set[str]
) -> Iterator[tuple[Binding, tuple[syntax.Literal, ...]]]:
    """Every extension of a binding that makes one literal true, with equalities that must hold, too. An undefined functor makes it false."""
    match literal:
        case syntax.Atom():
            for row in state[literal.relation]:
                extended = unify(literal.args, row, binding)
                if extended is not None:
                    yield extended, tuple(computed(literal.args, row))
        case syntax.SetOf():
            for group, collected in groups(literal, binding, state).items():
                extended = matched(literal.result, collected, binding | dict(group), state, scope)
                if extended is not None:
                    yield extended, ()
        case syntax.Negation():
            if refuted(literal.literal, binding, state, scope):
                yield binding, ()
        case syntax.Builtin() if (use := syntax.usage(literal)) is not None:
            given = [value(term, binding, state, scope) for term in use.given]
            for row in () if None in given else outcomes(literal, use, given):
                extended = binding
                for term, cell in zip(use.results, row, strict=True):
                    extended = None if extended is None else matched(term, cell, extended, state, scope)
                if extended is not None:
                    yield extended, ()
        case syntax.Builtin(op="=", args=(left, right)):
            given_, term = (right, left) if _known(left, binding, scope) else (left, right)
            result = value(term, binding, state, scope)
            extended = None if result is None else matched(given_, result, binding, state, scope)
            if extended is not None:
                yield extended, ()
        case syntax.Builtin():
            if holds(literal, binding, state, scope):
                yield binding, ()
        case syntax.Truth():
            if literal.value:
                yield binding, ()
        case syntax.Disjunction():
            for branch in literal.branches:
                yield from ((solution, ()) for solution in solve(branch, binding, state, scope))
        case _:
            assert_never(literal)


def groups(literal: syntax.SetOf, binding: Binding, state: State) -> dict[tuple[tuple[str, Value], ...], Set]:
    """Definition 1: one set for each binding of the variables that are not the setof's own, of all values that the target has with it."""
    scope = names_of(literal)
    outer = sorted(grounded_by(literal.body, set(), scope) - collected(literal))
    bound = {name: binding[name] for name in outer if name in binding}
    by_group: dict[tuple[tuple[str, Value], ...], list[Value]] = {}
    for solution in solve(literal.body, bound, state, scope):
        element = value(literal.target, solution, state, scope)
        if element is not None:
            by_group.setdefault(tuple((name, solution[name]) for name in outer), []).append(element)
    return {group: Set(elements) for group, elements in by_group.items()}


def outcomes(literal: syntax.Builtin, use: syntax.Usage, given: list[Value | None]) -> Iterator[Row]:
    """The results of `member` or of an aggregate over a set, as rows."""
    collected, *parameters = given
    assert isinstance(collected, Set), "it is typed so"
    if literal.definition is not None:
        yield from fold(literal.definition, collected)
    elif literal.op == "member":
        yield from ((element,) for element in collected)
    else:
        place, type_ = use.component, use.results[0].type
        assert type_ is not None, "checked programs are typed"
        values = list(collected)
        if isinstance(place, syntax.Constant) and isinstance(place.value, int):
            values = [element[place.value - 1] for element in values]
        result = give(literal.op, type_, values, *parameters)
        yield from () if result is None else ((result,),)


def matched(term: syntax.Term, cell: Value, binding: Binding, state: State, scope: set[str]) -> Binding | None:
    """The binding in which a term equals a value; None if it cannot. What is free in a tuple is bound by it."""
    match term:
        case syntax.Variable() if term.name not in binding:
            return {**binding, term.name: cell}
        case syntax.Functor(name="()"):
            assert isinstance(cell, tuple), "it is typed so"
            extended: Binding | None = binding
            for arg, part in zip(term.args, cell, strict=True):
                extended = None if extended is None else matched(arg, part, extended, state, scope)
            return extended
        case syntax.Variable() | syntax.Constant() | syntax.Functor() | syntax.Wildcard() | syntax.Aggregate():
            return binding if value(term, binding, state, scope) == cell else None
        case _:
            assert_never(term)


def refuted(literal: syntax.Atom | syntax.Builtin, binding: Binding, state: State, scope: set[str]) -> bool:
    """Whether a literal is false; one that is undefined is not."""
    match literal:
        case syntax.Atom():
            wanted = [None if isinstance(arg, syntax.Wildcard) else value(arg, binding, state, scope) for arg in literal.args]
            defined = all(isinstance(arg, syntax.Wildcard) or got is not None for arg, got in zip(literal.args, wanted, strict=True))
            matches = (all(w is None or w == v for w, v in zip(wanted, row, strict=True)) for row in state[literal.relation])
            return defined and not any(matches)
        case syntax.Builtin():
            return holds(literal, binding, state, scope) is False
        case _:
            assert_never(literal)


def unify(args: tuple[syntax.Term, ...], row: Row, binding: Binding) -> Binding | None:
    """The binding with the variables of an atom that has these arguments; None if a row has another value for one."""
    extended = dict(binding)
    for arg, cell in zip(args, row, strict=True):
        if isinstance(arg, syntax.Variable) and extended.setdefault(arg.name, cell) != cell:
            return None
    return extended


def computed(args: tuple[syntax.Term, ...], row: Row) -> Iterator[syntax.Literal]:
    """What remains to be true of a row that an atom with these arguments matches."""
    for arg, cell in zip(args, row, strict=True):
        if not isinstance(arg, syntax.Variable | syntax.Wildcard):
            yield syntax.Builtin("=", (arg, syntax.Constant(cell, arg.type)))


def holds(literal: syntax.Builtin, binding: Binding, state: State, scope: set[str]) -> bool | None:
    args = [value(arg, binding, state, scope) for arg in literal.args]
    if None in args:
        return None
    use = syntax.usage(literal)
    if use is None or literal.op == "member":
        return test(literal.op, args)
    rows = list(outcomes(literal, use, [value(term, binding, state, scope) for term in use.given]))
    return tuple(value(term, binding, state, scope) for term in use.results) in rows if rows else None


def value(term: syntax.Term, binding: Binding, state: State, scope: set[str]) -> Value | None:
    """The value of a term; None where it is undefined."""
    match term:
        case syntax.Variable():
            return binding[term.name]
        case syntax.Constant():
            return term.value
        case syntax.Functor():
            args = [value(arg, binding, state, scope) for arg in term.args]
            assert term.type is not None, "checked programs are typed"
            return None if None in args else apply(term.name, term.type, [arg.type for arg in term.args], args)  # type: ignore[misc]  # typed
        case syntax.Aggregate():
            return aggregated(term, binding, state, scope)
        case syntax.Wildcard():
            raise AssertionError("a wildcard has no value")
        case _:
            assert_never(term)


def aggregated(term: syntax.Aggregate, binding: Binding, state: State, scope: set[str]) -> Value | None:
    """The aggregate over the distinct bindings of all columns of its body, those of `_` included. What only one way of a disjunction computes, the others determine."""
    assert term.type is not None, "checked programs are typed"
    body = tuple(_name_wildcards(literal, f"{id(term)}.{index}") for index, literal in enumerate(term.body))
    inner = scope.union(*(names(literal) for literal in body), names(term.target) if term.target else ())
    outer = {name: cell for name, cell in binding.items() if name in scope}
    solutions = list(solve(body, outer, state, inner))
    shared = sorted(set[str].intersection(*map(set, solutions))) if solutions else []
    distinct = {tuple(solution[name] for name in shared) for solution in solutions}
    if term.target is None:
        return aggregate(term.op, term.type, list(distinct))
    values = [value(term.target, dict(zip(shared, solution, strict=True)), state, inner) for solution in distinct]
    return aggregate(term.op, term.type, [each for each in values if each is not None])


def _name_wildcards(literal: syntax.Literal, place: str) -> syntax.Literal:
    if not isinstance(literal, syntax.Atom):
        return literal
    args = (syntax.Variable(f"_{place}.{index}") if isinstance(arg, syntax.Wildcard) else arg for index, arg in enumerate(literal.args))
    return syntax.Atom(literal.relation, tuple(args), literal.span)
