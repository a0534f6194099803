"""What of a group suffices to know its aggregates while values come and go.

A sum is kept exactly: as a whole number of the smallest unit of its type, which is 2^-1074 for a float. So what was added can be taken away again, in any order, a sum comes back from an overflow, and a
float is rounded once, when the sum is shown.

>>> from vigilog.core.values import FLOAT
>>> total = sum(units(FLOAT, value) for value in (1e16, 1.0, -1e16))
>>> sum_of(FLOAT, total), sum_of(FLOAT, total - units(FLOAT, 1.0))
(1.0, 0.0)
>>> written(FLOAT, total), read(written(FLOAT, total)) == total
('1p1074', True)
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

from vigilog.core.values import FLOAT, MAX_NUMBER, MIN_NUMBER, Type, Value

_BITS = 1074  # a float is a whole number of units of 2^-1074
_ONE = 1 << _BITS
_WIDE = Context(prec=100)


def units(type_: Type, value: Any) -> int:
    """A number as so many of the smallest units of its type."""
    if type_.kind == "float":
        numerator, denominator = float(value).as_integer_ratio()
        return numerator << (_BITS + 1 - denominator.bit_length())
    return int(_WIDE.scaleb(value, type_.scale)) if type_.kind == "decimal" else int(value)


def sum_of(type_: Type, total: int) -> Value | None:
    """The sum that some units are; None if it is too large for its type."""
    if type_.kind == "number":
        return total if MIN_NUMBER <= total <= MAX_NUMBER else None
    try:
        return type_.check(_number(type_, total))
    except (ValueError, OverflowError):
        return None


def sums_of(type_: Type, totals: list[int]) -> list[Any]:
    """The sums that some units are, each as `sum_of` has it."""
    if type_.kind == "number" and totals and min(totals) >= MIN_NUMBER and max(totals) <= MAX_NUMBER:
        return totals
    return [sum_of(type_, total) for total in totals]


def mean_of(type_: Type, total: int, number: int) -> Value | None:
    """The mean of so many values of a type; None if their sum is too large for a float."""
    try:
        return FLOAT.check(float(_number(type_, total)) / number)
    except (ValueError, OverflowError):
        return None


def variance_of(type_: Type, total: int, squares: int, number: int) -> Value | None:
    """The variance of so many values of a type, by the units of their sum and of the sum of their squares; None if it is too large for a float.

    >>> variance_of(FLOAT, 10 * _ONE, 30 * _ONE**2, 4)
    1.25
    """
    one = _ONE if type_.kind == "float" else 10**type_.scale
    try:
        return FLOAT.check(float(Fraction(number * squares - total * total, (number * one) ** 2)))
    except (ValueError, OverflowError):
        return None


def _number(type_: Type, total: int) -> Any:
    if type_.kind == "float":
        return total / _ONE  # rounded correctly, whatever the size
    return _WIDE.scaleb(Decimal(total), -type_.scale) if type_.kind == "decimal" else total


def written(type_: Type, total: int) -> str:
    """Units as a text, the same for the same number: `12`, and of a float, which has many, `3p1075` for 3 times 2^1075."""
    if type_.kind != "float":
        return str(total)
    zeros = max((total & -total).bit_length() - 1, 0)
    return f"{total >> zeros}p{zeros}"


def read(text: str) -> int:
    """The units that a text says."""
    if "p" not in text:
        return int(text)
    number, _, zeros = text.partition("p")
    return int(number) << int(zeros)


def reader(type_: Type) -> Callable[[str], int]:
    """What reads the texts of units of a type."""
    return read if type_.kind == "float" else int


def writer(type_: Type) -> Callable[[int], str]:
    """What writes units of a type as a text."""
    return partial(written, type_) if type_.kind == "float" else str
