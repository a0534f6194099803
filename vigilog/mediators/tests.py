"""Tests: conditions over several variables. A test holds or does not, for every choice of values; its complement is a test again.

A linear test is `c₁x₁ + … + cₙxₙ op b` over places (`core/runs.py`), in a normal form: variables sorted, no common divisor, the first coefficient of an equality positive. Where
a type is no number its coefficients are 1 and -1, so the test is one of order. A computed test is any other comparison, with `/` or `%` in it; where one of its terms has no value the test does not hold.

>>> linear({"x": 2, "y": -2}, "<=", 5)
Linear(terms=(('x', 1), ('y', -1)), op='<=', bound=2)
>>> linear({"x": 2, "y": 4}, "=", 5)
False
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Literal as OneOf

from vigilog.core.values import Value
from vigilog.language.functors import apply, test
from vigilog.language.parts import rename, subterms
from vigilog.language.syntax import Aggregate, Constant, Functor, Term, Variable, Wildcard

Op = OneOf["<=", "=", "!="]


@dataclass(frozen=True)
class Linear:
    terms: tuple[tuple[str, int], ...]
    op: Op
    bound: int

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.terms)

    def complement(self) -> Linear:
        match self.op:
            case "<=":
                return Linear(tuple((name, -factor) for name, factor in self.terms), "<=", -self.bound - 1)
            case "=":
                return replace(self, op="!=")
            case "!=":
                return replace(self, op="=")


@dataclass(frozen=True)
class Computed:
    """`left op right` if `positive`; else its complement."""

    op: str
    left: Term
    right: Term
    positive: bool = True

    @property
    def names(self) -> frozenset[str]:
        return frozenset(part.name for side in (self.left, self.right) for part in subterms(side) if isinstance(part, Variable))

    def complement(self) -> Computed:
        return replace(self, positive=not self.positive)

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether it holds, all its variables being known."""
        left, right = evaluated(self.left, values), evaluated(self.right, values)
        return (left is not None and right is not None and test(self.op, (left, right)) is True) == self.positive


Test = Linear | Computed


def evaluated(term: Term, values: Mapping[str, Value]) -> Value | None:
    """The value of a term; None where it has none."""
    match term:
        case Variable():
            return values[term.name]
        case Constant():
            return term.value
        case Functor():
            args = [evaluated(arg, values) for arg in term.args]
            assert term.type is not None, "checked programs are typed"
            return None if None in args else apply(term.name, term.type, [arg.type for arg in term.args if arg.type], args)
        case Wildcard() | Aggregate():
            raise AssertionError("conditions have no aggregates and no wildcards")


def linear(terms: Mapping[str, int], op: Op, bound: int) -> Linear | bool:
    """The test in normal form; or whether it holds, if no variable is left."""
    kept = sorted((name, factor) for name, factor in terms.items() if factor)
    if not kept:
        return {"<=": bound >= 0, "=": bound == 0, "!=": bound != 0}[op]
    divisor = gcd(*(factor for _, factor in kept))
    if op == "<=":
        return Linear(tuple((name, factor // divisor) for name, factor in kept), op, bound // divisor)
    if bound % divisor:
        return op == "!="
    sign = divisor if kept[0][1] > 0 else -divisor
    return Linear(tuple((name, factor // sign) for name, factor in kept), op, bound // sign)


def renamed(test_: Test, names: Mapping[str, str]) -> Test | bool:
    """The test with other names for its variables, several of which may become one."""
    match test_:
        case Linear():
            terms: dict[str, int] = {}
            for name, factor in test_.terms:
                terms[names.get(name, name)] = terms.get(names.get(name, name), 0) + factor
            return linear(terms, test_.op, test_.bound)
        case Computed():
            changed = {name: Variable(other) for name, other in names.items()}
            return replace(test_, left=_typed(test_.left, changed), right=_typed(test_.right, changed))


def _typed(term: Term, names: Mapping[str, Variable]) -> Term:
    types = {part.name: part.type for part in subterms(term) if isinstance(part, Variable)}
    return rename(term, {name: replace(variable, type=types[name]) for name, variable in names.items() if name in types})
