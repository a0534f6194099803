"""Aggregates that a program defines: by rules, read as a fold over the elements in ascending order, or by a Python class.

The result must not depend on the order. So of the first thousand sets that are met, each is folded in both directions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, assert_never

from vigilog.core.errors import DataError
from vigilog.core.sets import Set
from vigilog.core.values import Row, Value
from vigilog.language.classes import loaded
from vigilog.language.parts import names
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
    Truth,
    Variable,
    Wildcard,
)

TRIED = 1_000
_met: Counter[Definition] = Counter()


def fold(definition: Definition, collected: Set) -> frozenset[Row]:
    """The results of an aggregate over a set, as rows. Raises DataError, with the code `aggregate`, if they depend on the order, or if a class does what it may not."""
    rows = folded(definition, collected.ordered)
    if len(collected) > 1 and is_fold(definition) and _met[definition] < TRIED:
        _met[definition] += 1
        other = folded(definition, collected.ordered[::-1])
        if other != rows:
            raise DataError(dependent(definition, collected, rows, other), "aggregate")
    return rows


def is_fold(definition: Definition) -> bool:
    """Whether an aggregate takes a set element by element."""
    return bool(definition.python) or any(step_of(rule) is not None or is_empty(rule) for rule in definition.rules)


def is_empty(rule: Rule) -> bool:
    """Whether a rule is the one for `{}`."""
    match rule.head.args[0]:
        case Constant(value=Set() as collected):
            return not collected
        case Functor(name="{}", args=()):
            return True
        case Variable() | Wildcard() | Constant() | Functor() | Aggregate():
            return False
        case _:
            assert_never(rule.head.args[0])


def step_of(rule: Rule) -> tuple[Any, Variable] | None:
    """The element and the rest of a rule for `{x | rest}`."""
    match rule.head.args[0]:
        case Functor(name="{|}", args=(element, Variable() as rest)):
            return element, rest
        case _:
            return None


def folded(definition: Definition, elements: Sequence[Value]) -> frozenset[Row]:
    """The results over elements in the order given."""
    if definition.python:
        return _by_class(definition, elements)
    if not is_fold(definition):
        return frozenset(
            row for rule in definition.rules for row in _derived(rule, rule.body, {_name(rule): Set(elements)}, {}, names(rule))
        )
    empty, steps = _prepared(definition)
    rows = frozenset(row for rule in empty for row in _derived(rule, rule.body, {}, {}, names(rule)))
    for number, element in enumerate(elements):
        derived: set[Row] = set()
        for rule, body, rest, scope in steps:
            binding: dict[str, Value] = {"{|}": element}
            if rest:
                binding[rest] = Set(elements[:number])
            derived.update(_derived(rule, body, binding, {definition.name: rows}, scope))
        rows = frozenset(derived)
    return rows


@lru_cache(maxsize=256)
def _prepared(definition: Definition) -> tuple[list[Rule], list[tuple[Rule, tuple[Literal, ...], str, set[str]]]]:
    """The rules for `{}`; and those for `{x | rest}`, each with its body, in which the call of itself is an atom over what is known of the rest, the name of the rest if more than that call needs it, and all names."""
    steps = []
    for rule in definition.rules:
        step = step_of(rule)
        if step is not None:
            body = tuple(_called(definition, literal) for literal in rule.body)
            needed = set[str]().union(*map(names, body), *map(names, rule.head.args[1:]))
            whole = (Builtin("=", (step[0], Variable("{|}", step[0].type))), *body)
            steps.append((rule, whole, step[1].name if step[1].name in needed else "", names(rule) | {"{|}"}))
    return [rule for rule in definition.rules if is_empty(rule)], steps


def _called(definition: Definition, literal: Literal) -> Literal:
    match literal:
        case Builtin(op=name, args=args) if name == definition.name and literal.definition is not None:
            return Atom(name, args[1:], literal.span)
        case Disjunction():
            ways = (tuple(_called(definition, part) for part in branch) for branch in literal.branches)
            return Disjunction(tuple(ways), literal.span)
        case Atom() | Negation() | Builtin() | Truth() | SetOf():
            return literal
        case _:
            assert_never(literal)


def _name(rule: Rule) -> str:
    collected = rule.head.args[0]
    assert isinstance(collected, Variable), "what is no fold names the whole set"
    return collected.name


def _derived(
    rule: Rule, body: tuple[Literal, ...], binding: dict[str, Value], state: dict[str, frozenset[Row]], scope: set[str]
) -> list[Row]:
    from vigilog.language.solving import solve, value

    rows = []
    for solution in solve(body, binding, state, scope):
        row = tuple(value(arg, solution, state, scope) for arg in rule.head.args[1:])
        if None not in row:
            rows.append(row)
    return rows  # type: ignore[return-value]  # no None in it


def _by_class(definition: Definition, elements: Sequence[Value]) -> frozenset[Row]:
    made, doing = loaded(definition), "init"
    try:
        state = made.init()
        for element in elements:
            doing = f"insert of {element}"
            state = made.insert(state, element)
        doing = "result"
        result = made.result(state)
    except Exception as reason:
        message = f"{definition.python} failed over {_shown(elements)}, in {doing}: {type(reason).__name__}: {reason}"
        raise DataError(message, "aggregate") from None
    if result is None:
        return frozenset()
    try:
        return frozenset({(definition.types[1].check(result),)})
    except ValueError as reason:
        raise DataError(f"{definition.python} gave, over {_shown(elements)}, what is none of its type: {reason}", "aggregate") from None


def dependent(definition: Definition, collected: Set, rows: frozenset[Row], other: frozenset[Row]) -> str:
    """What is told of an aggregate whose result depends on the order."""
    up, down = (", ".join(str(row[0] if len(row) == 1 else row) for row in sorted(results)) or "nothing" for results in (rows, other))
    return f"{definition.python or definition.name} depends on the order of elements: over {_shown(collected.ordered)} it gives {up}, and in descending order {down}"


def _shown(elements: Sequence[Value]) -> str:
    text = ", ".join(map(str, elements))
    return f"{{{text if len(text) <= 200 else text[:200] + '…'}}}"
