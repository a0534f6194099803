"""Literals that read no relation, as conditions.

>>> from vigilog.core.runs import axis
>>> from vigilog.core.values import NUMBER
>>> from vigilog.language.check import check
>>> rule = check(".decl p(x: number) constrained p(x) :- x >= 5, !(x = 6).").program.rules[0]
>>> conjunction([one for literal in rule.body for one in said(literal)], {"x": axis(NUMBER).all}).runs["x"].cuts
(5, 6, 7)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vigilog.core.runs import Runs
from vigilog.language.syntax import Builtin, Literal, Negation, Truth
from vigilog.mediators.conjunction import Conjunction, simplified
from vigilog.mediators.forms import COMPARISONS, OPPOSITE, Known, NotLinear, compared
from vigilog.mediators.tests import Test


def said(literal: Literal) -> list[Known]:
    """What a literal that reads no relation says."""
    match literal:
        case Truth():
            return [literal.value]
        case Builtin(op=op, args=(left, right)) if op in COMPARISONS:
            return compared(op, left, right)
        case Negation(literal=Builtin(op=op, args=(left, right))) if op in COMPARISONS:
            return compared(OPPOSITE[op], left, right)
    raise NotLinear("is no comparison, and conditions have comparisons only")


def conjunction(constraints: Iterable[Known], runs: Mapping[str, Runs]) -> Conjunction | None:
    """All that is said, of variables that have these values."""
    values, tests = dict(runs), list[Test | bool]()
    for one in constraints:
        if isinstance(one, tuple):
            values[one[0]] &= one[1]
        else:
            tests.append(one)
    return simplified(values, tests)
