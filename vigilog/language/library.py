"""The aggregates over sets that every program has: which types each takes, and what it gives.

>>> give("median", NUMBER, [4, 1, 3, 2]), give("sum", NUMBER, [])
(2, 0)
>>> give("percentile", NUMBER, [10, 20, 30, 40], 75), give("percentile", NUMBER, [10], 101) is None
(30, True)
>>> give("variance", FLOAT, [1, 2, 3, 4]), give("top", set_type(NUMBER), [3, 1, 2], 2)
(1.25, Set([2, 3]))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from vigilog.core.sets import Set
from vigilog.core.values import BOOLEAN, FLOAT, NUMBER, SYMBOL, Type, Value, set_type
from vigilog.language.functors import AGGREGATES, ANY, NUMERIC


@dataclass(frozen=True)
class Shape:
    """What an aggregate takes: the kinds of the values, the type of its parameter, if it has one. And what it gives: a type, or None for that of the values."""

    kinds: frozenset[str] = ANY
    parameter: Type | None = None
    result: Type | None = None
    collects: bool = False  # whether it gives a set of what it takes


SHAPES: dict[str, Shape] = {
    "count": Shape(result=NUMBER),
    "sum": Shape(NUMERIC),
    "min": Shape(),
    "max": Shape(),
    "mean": Shape(NUMERIC, result=FLOAT),
    "variance": Shape(NUMERIC, result=FLOAT),
    "median": Shape(),
    "percentile": Shape(parameter=NUMBER),
    "mode": Shape(),
    "top": Shape(parameter=NUMBER, collects=True),
    "concat": Shape(frozenset({"symbol"}), SYMBOL, SYMBOL),
    "any": Shape(frozenset({"boolean"}), result=BOOLEAN),
    "all": Shape(frozenset({"boolean"}), result=BOOLEAN),
}


def give(op: str, type_: Type, values: Sequence[Any], parameter: Any = None) -> Value | None:
    """The aggregate of the values of a set's elements; None where it has none. Of nothing only `count` and `sum` have one."""
    if op not in _MEANING:
        aggregate = AGGREGATES[op]
        if not values and not aggregate.nothing:
            return None
        given: Any = aggregate.meaning(type_, values) if values or op == "count" else type_.check(0)
    elif not values:
        return None
    else:
        try:
            given = _MEANING[op](sorted(values), parameter)
        except OverflowError:
            return None
    try:
        return given if given is None or isinstance(given, Set | tuple) else type_.check(given)
    except (ValueError, OverflowError):
        return None


def _ranked(values: Sequence[Any], percent: int) -> Any:
    """By the nearest rank: the least value that at least so many of a hundred are not above."""
    if not 0 <= percent <= 100:
        return None
    return values[max(-(-percent * len(values) // 100) - 1, 0)]


def _variance(values: Sequence[Any], _: Any) -> float:
    exact = list(map(Fraction, values))
    mean = sum(exact, start=Fraction(0)) / len(exact)
    return float(sum(((each - mean) ** 2 for each in exact), start=Fraction(0)) / len(exact))


def _mode(values: Sequence[Any], _: Any) -> Any:
    often = Counter(values)
    most = max(often.values())
    return next(value for value in values if often[value] == most)


_MEANING: dict[str, Callable[[Sequence[Any], Any], Any]] = {
    "variance": _variance,
    "median": lambda values, _: values[(len(values) - 1) // 2],
    "percentile": _ranked,
    "mode": _mode,
    "top": lambda values, most: Set(values[max(len(values) - most, 0) :]) if most >= 0 else None,
    "concat": lambda values, separator: separator.join(values),
    "any": lambda values, _: any(values),
    "all": lambda values, _: all(values),
}

__all__ = ["SHAPES", "give", "set_type"]
