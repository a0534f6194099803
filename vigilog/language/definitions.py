"""What is checked of `.aggregate`: its columns, its rules, that it does not define itself in a circle, and that its result does not depend on the order of elements."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from itertools import combinations
from typing import Any, assert_never

from vigilog.core.errors import DataError, Findings
from vigilog.core.sets import Set
from vigilog.core.values import Type, Value
from vigilog.language import syntax
from vigilog.language.folds import dependent, folded, is_empty, is_fold, step_of
from vigilog.language.functors import FUNCTORS
from vigilog.language.parts import constraints, names, pattern, subterms, terms
from vigilog.language.program import Program
from vigilog.language.safety import check_terms, grounded_by
from vigilog.language.types import calls

RESERVED = ("count", "sum", "min", "max", "mean", "member")
_FORM = "an aggregate is defined by rules for {} and {x | rest}, by rules over other aggregates of the same set, or by a Python class"


def check_definitions(program: Program, findings: Findings) -> None:
    """Notes what is wrong with the form of a program's aggregates."""
    seen: set[str] = set()
    for definition in program.aggregates:
        name = definition.name
        if name in program.relations or name in FUNCTORS or name in RESERVED or name in seen:
            kind = "a relation" if name in program.relations else "a functor" if name in FUNCTORS else "an aggregate"
            findings.error("duplicate", f"{name} is {kind} already", definition.span, rule="an aggregate has a name of its own")
        seen.add(name)
        if len(definition.attributes) < 2 or not definition.attributes[0].type_name.startswith("set<"):
            rule = "an aggregate takes a set first, and then has its results: .aggregate name(s: set<number>, r: number)"
            findings.error("aggregate", f"{name} does not take a set and give a result", definition.span, rule=rule)
        _check_rules(definition, findings)
    for definition in program.aggregates:
        if definition.name in _reached(program, definition):
            findings.error("aggregate", f"{definition.name} is defined by itself, through others", definition.span, rule=_FORM)


def _check_rules(definition: syntax.Definition, findings: Findings) -> None:
    if definition.python:
        if definition.rules:
            findings.error("aggregate", f"{definition.name} has a class, and rules, too", definition.rules[0].span, rule=_FORM)
        if len(definition.attributes) != 2:
            findings.error("aggregate", f"{definition.name} has a class, which gives one result", definition.span, rule=_FORM)
        return
    if not definition.rules:
        findings.error("aggregate", f"{definition.name} has no rules", definition.span, rule=_FORM)
    for rule in definition.rules:
        if len(rule.head.args) != len(definition.attributes):
            message = f"{definition.name} has {len(definition.attributes)} arguments, but {len(rule.head.args)} stand here"
            findings.error("arity", message, rule.head.span)
            continue
        _check_rule(definition, rule, findings)


def _check_rule(definition: syntax.Definition, rule: syntax.Rule, findings: Findings) -> None:
    collected, step = rule.head.args[0], step_of(rule)
    if is_fold(definition) and step is None and not is_empty(rule):
        findings.error(
            "aggregate", f"this rule of {definition.name} is for every set, others are for {{}} or {{x | rest}}", rule.span, rule=_FORM
        )
    elif step is None and not is_empty(rule) and not isinstance(collected, syntax.Variable):
        findings.error("aggregate", f"{definition.name} cannot be defined for such sets", collected.span, rule=_FORM)
    own = [part for part in constraints(rule.body) if part.op == definition.name and part.definition is not None]
    for call in own:
        if step is None or call.args[0] != step[1]:
            findings.error("aggregate", f"{definition.name} calls itself on another set than the rest", call.span, rule=_FORM)
    if len(own) > 1:
        findings.error(
            "aggregate",
            f"{definition.name} calls itself more than once",
            own[1].span,
            rule="a rule calls its aggregate at most once, on the rest",
        )
    for literal in _outside(rule.body):
        findings.error(
            "aggregate", f"{definition.name} reads more than its set", literal.span, rule="an aggregate is computed from its set alone"
        )
    given = pattern(collected) if step is None else pattern(step[0]) | {step[1].name}
    check_terms(rule, given, grounded_by(rule.body, given, names(rule)), findings)


def _outside(body: tuple[syntax.Literal, ...]) -> Iterator[syntax.Literal]:
    """The literals that read relations."""
    for literal in body:
        match literal:
            case syntax.Atom() | syntax.SetOf() | syntax.Negation(literal=syntax.Atom()):
                yield literal
            case syntax.Disjunction():
                for branch in literal.branches:
                    yield from _outside(branch)
            case syntax.Builtin() | syntax.Negation():
                if any(isinstance(inner, syntax.Aggregate) for term in terms(literal) for inner in subterms(term)):
                    yield literal
            case syntax.Truth():
                pass
            case _:
                assert_never(literal)


def _reached(program: Program, definition: syntax.Definition) -> set[str]:
    """The aggregates that others that an aggregate is defined by are defined by, and so on."""
    called = {each.name: calls(each) - {each.name} for each in program.aggregates}
    seen: set[str] = set()
    queue = list(called[definition.name])
    for name in queue:
        if name not in seen:
            seen.add(name)
            queue.extend(called.get(name, ()))
    return seen


def try_orders(program: Program, findings: Findings) -> None:
    """Folds some samples of each aggregate's sets in ascending and in descending order, and notes one that depends on it. The program is typed."""
    for definition in program.aggregates:
        if is_fold(definition) and (message := _difference(definition)):
            rule = "the result of an aggregate does not depend on the order in which elements come"
            findings.error("aggregate", message, definition.span, rule=rule)


@lru_cache(maxsize=256)
def _difference(definition: syntax.Definition) -> str:
    """A set over which an aggregate depends on the order, with both results; empty if none of the samples is one."""
    for collected in _samples(definition.types[0]):
        try:
            up, down = folded(definition, collected.ordered), folded(definition, collected.ordered[::-1])
        except DataError:
            if definition.python:
                return ""  # what a class does not take is told when it is met
            raise
        if up != down:
            return dependent(definition, collected, up, down)
    return ""


def _samples(type_: Type) -> Iterator[Set]:
    elements = sorted(set(_values(type_.parts[0])))
    for size in (2, 3):
        yield from map(Set, combinations(elements, size))
    yield Set(elements)


def _values(type_: Type) -> list[Value]:
    """Some values of a type."""
    day = datetime.date(2026, 11, 16)
    match type_.kind:
        case "number":
            return [-2, 0, 1, 3, 7]
        case "unsigned":
            return [0, 1, 3, 7]
        case "float":
            return [-1.5, 0.0, 2.0, 5.0]
        case "symbol":
            return ["", "a", "b", "ca"]
        case "boolean":
            return [False, True]
        case "date":
            return [day, day + datetime.timedelta(1), day + datetime.timedelta(40)]
        case "timestamp":
            return [datetime.datetime(2026, 11, 16, hour, tzinfo=datetime.UTC) for hour in (0, 5, 6)]
        case "decimal":
            return [type_.check(Decimal(number).scaleb(-type_.scale)) for number in (0, 1, 3, 7)]
        case "set":
            inner = _values(type_.parts[0])
            return [Set(), Set(inner[:1]), Set(inner[1:3])]
        case "tuple":
            parts: list[list[Any]] = [_values(part) for part in type_.parts]
            return [tuple(part[(start + number * start) % len(part)] for number, part in enumerate(parts)) for start in range(5)]
        case _:
            assert_never(type_.kind)
