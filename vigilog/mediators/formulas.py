"""Formulas of z3, read back as tests: what quantifier elimination gives, in disjunctive normal form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from vigilog.core.values import Type
from vigilog.mediators.solver import Unsolved
from vigilog.mediators.tests import Test, linear

MOST_WAYS = 1000


def ways(z3: Any, formula: Any, types: Mapping[str, Type]) -> Iterator[list[Test | bool]]:
    """The ways in which a formula holds, each as tests. Raises Unsolved for a formula that has none."""
    cases = list(_ways(z3, formula, types, True))
    if len(cases) > MOST_WAYS:
        raise Unsolved(f"a condition has more than {MOST_WAYS} cases")
    yield from cases


def _ways(z3: Any, formula: Any, types: Mapping[str, Type], positive: bool) -> Iterator[list[Test | bool]]:
    children = formula.children()
    if z3.is_true(formula) or z3.is_false(formula):
        if z3.is_true(formula) == positive:
            yield []
    elif z3.is_not(formula):
        yield from _ways(z3, children[0], types, not positive)
    elif z3.is_and(formula) if positive else z3.is_or(formula):
        for choice in product(*(list(_ways(z3, child, types, positive)) for child in children)):
            yield [test for tests in choice for test in tests]
    elif z3.is_or(formula) or z3.is_and(formula):
        for child in children:
            yield from _ways(z3, child, types, positive)
    elif z3.is_le(formula) or z3.is_ge(formula) or z3.is_eq(formula) or z3.is_lt(formula) or z3.is_gt(formula):
        yield [_test(z3, formula, positive)]
    else:
        raise Unsolved(f"a condition became one that facts do not have: {formula}")


def _test(z3: Any, formula: Any, positive: bool) -> Test | bool:
    left, right = formula.children()
    terms, constant = _linear(z3, left - right)
    opposite = {name: -factor for name, factor in terms.items()}
    if z3.is_le(formula):
        test = linear(terms, "<=", -constant)
    elif z3.is_lt(formula):
        test = linear(terms, "<=", -constant - 1)
    elif z3.is_ge(formula):
        test = linear(opposite, "<=", constant)
    elif z3.is_gt(formula):
        test = linear(opposite, "<=", constant - 1)
    else:
        test = linear(terms, "=", -constant)
    if positive:
        return test
    return not test if isinstance(test, bool) else test.complement()


def _linear(z3: Any, term: Any) -> tuple[dict[str, int], int]:
    if z3.is_int_value(term):
        return {}, term.as_long()
    if term.num_args() == 0:
        return {str(term): 1}, 0
    parts = [_linear(z3, child) for child in term.children()]
    if z3.is_add(term) or z3.is_sub(term):
        total, constant = dict(parts[0][0]), parts[0][1]
        sign = 1 if z3.is_add(term) else -1
        for terms, other in parts[1:]:
            constant += sign * other
            for name, factor in terms.items():
                total[name] = total.get(name, 0) + sign * factor
        return total, constant
    if z3.is_mul(term) and sum(bool(terms) for terms, _ in parts) <= 1:
        times = 1
        for terms, constant in parts:
            times *= 1 if terms else constant
        form = next(((terms, constant) for terms, constant in parts if terms), ({}, 1))
        return {name: factor * times for name, factor in form[0].items()}, form[1] * times
    if term.decl().name() == "-" and len(parts) == 1:
        return {name: -factor for name, factor in parts[0][0].items()}, -parts[0][1]
    raise Unsolved(f"a condition became one that facts do not have: {term}")
