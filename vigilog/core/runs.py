"""Sets of values of one type, as sorted cuts.

The law: on the axis of its type every value has a place, and a value that is not the last has a next one. So each set that comparisons with constants describe is a union
of intervals, each from a value on up to another one that is not in it; it is the sorted list of these ends, its *cuts*. A value is in the set if an odd number of cuts is not behind it. After
an odd number of cuts the set goes on for ever. Equal sets have equal cuts.

>>> number = axis(NUMBER)
>>> five = number.compared(">=", 5) & number.compared("!=", 6)
>>> five.cuts, 6 in five, 7 in five, (~five).cuts[1:]
((5, 6, 7), False, True, (5, 6, 7))
>>> axis(SYMBOL).compared(">", "a").cuts   # the text that comes next after a
('a\\x01',)
"""

from __future__ import annotations

import datetime
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, assert_never

from vigilog.core.values import MAX_NUMBER, MAX_UNSIGNED, MIN_NUMBER, NUMBER, SYMBOL, Type, Value

Place = Any  # of a value on its axis: an integer, or a text itself
NEXT = "\x01"  # added to a text it gives the next one: there is no text with U+0000


@dataclass(frozen=True)
class Axis:
    """The values of a type in their order. Texts have no last one, so `most` is None."""

    type: Type
    least: Place
    most: Place | None

    def place(self, value: Value) -> Place:
        match self.type.kind:
            case "number" | "unsigned" | "symbol":
                return value
            case "boolean":
                return int(value)  # type: ignore[arg-type]  # of its type
            case "date":
                return value.toordinal()  # type: ignore[union-attr]
            case "timestamp":
                return (value - _EPOCH) // _MICROSECOND  # type: ignore[operator]
            case "decimal":
                return int(value.scaleb(self.type.scale))  # type: ignore[union-attr]
            case "float":
                return _bits(value)  # type: ignore[arg-type]
            case "set" | "tuple":
                raise AssertionError("checked: conditions have no sets and no tuples")
            case _:
                assert_never(self.type.kind)

    def value(self, place: Place) -> Value:
        match self.type.kind:
            case "number" | "unsigned" | "symbol":
                return place  # type: ignore[no-any-return]
            case "boolean":
                return bool(place)
            case "date":
                return datetime.date.fromordinal(place)
            case "timestamp":
                return _EPOCH + place * _MICROSECOND  # type: ignore[no-any-return]
            case "decimal":
                return Decimal(place).scaleb(-self.type.scale)
            case "float":
                return _double(place)
            case "set" | "tuple":
                raise AssertionError("checked: conditions have no sets and no tuples")
            case _:
                assert_never(self.type.kind)

    def after(self, place: Place) -> Place:
        return place + NEXT if self.most is None else place + 1

    @property
    def all(self) -> Runs:
        return Runs(self, (self.least,))

    @property
    def none(self) -> Runs:
        return Runs(self, ())

    def only(self, value: Value) -> Runs:
        return self.at(self.place(value))

    def at(self, place: Place) -> Runs:
        return Runs(self, (place,) if place == self.most else (place, self.after(place)))

    def since(self, place: Place) -> Runs:
        """All from a place on, which may be before the first or behind the last."""
        if self.most is not None and place > self.most:
            return self.none
        return Runs(self, (max(place, self.least),))

    def until(self, place: Place) -> Runs:
        """All before a place."""
        return ~self.since(place)

    def between(self, least: int, most: int) -> Runs:
        """The integers of an interval, of which a part may not be on the axis."""
        return self.since(least) & self.until(most + 1)

    def compared(self, op: str, value: Value) -> Runs:
        """The values that compare so with one."""
        place = self.place(value)
        match op:
            case "=":
                return self.at(place)
            case "!=":
                return ~self.at(place)
            case ">=":
                return self.since(place)
            case "<":
                return self.until(place)
            case ">":
                return self.since(self.after(place))
            case "<=":
                return self.until(self.after(place))
            case _:
                raise AssertionError("a comparison has one of six operators")


@dataclass(frozen=True, slots=True)
class Runs:
    """A set of values of an axis."""

    axis: Axis
    cuts: tuple[Place, ...]

    def __bool__(self) -> bool:
        return bool(self.cuts)

    def __contains__(self, value: Value) -> bool:
        return self.holds(self.axis.place(value))

    def holds(self, place: Place) -> bool:
        return bisect_right(self.cuts, place) % 2 == 1

    def __invert__(self) -> Runs:
        least = self.axis.least
        return Runs(self.axis, self.cuts[1:] if self.cuts and self.cuts[0] == least else (least, *self.cuts))

    def __and__(self, other: Runs) -> Runs:
        if other.full or self.cuts == other.cuts:
            return self
        return other if self.full else self._swept(other, lambda one, two: one and two)

    def __or__(self, other: Runs) -> Runs:
        return self._swept(other, lambda one, two: one or two)

    def __sub__(self, other: Runs) -> Runs:
        return self & ~other

    def __le__(self, other: Runs) -> bool:
        return other.full or not self - other

    def _swept(self, other: Runs, keep: Callable[[bool, bool], bool]) -> Runs:
        one, two = self.cuts, other.cuts
        cuts: list[Place] = []
        i = j = 0
        inside = False
        while i < len(one) or j < len(two):
            if j == len(two) or (i < len(one) and one[i] <= two[j]):
                place = one[i]
            else:
                place = two[j]
            i += i < len(one) and one[i] == place
            j += j < len(two) and two[j] == place
            if keep(i % 2 == 1, j % 2 == 1) != inside:
                inside = not inside
                cuts.append(place)
        return Runs(self.axis, tuple(cuts))

    @property
    def full(self) -> bool:
        return len(self.cuts) == 1 and self.cuts[0] == self.axis.least

    @property
    def least(self) -> Place:
        """The first place."""
        return self.cuts[0]

    @property
    def most(self) -> Place | None:
        """The last place of integers; None for texts without bound, and for texts in general, where the end may have no last."""
        if self.axis.most is None:
            return None
        return self.axis.most if len(self.cuts) % 2 else self.cuts[-1] - 1

    @property
    def single(self) -> Place | None:
        """The place of the only value; None if there are several."""
        match self.cuts:
            case (start,):
                return start if start == self.axis.most else None
            case (start, end) if end == self.axis.after(start):
                return start
        return None

    def intervals(self) -> Iterator[Runs]:
        """The maximal runs, in their order."""
        for index in range(0, len(self.cuts), 2):
            yield Runs(self.axis, self.cuts[index : index + 2])

    def size(self, most: int) -> int | None:
        """How many values there are; None if they are more than `most`."""
        total = 0
        for run in self.intervals():
            if self.axis.most is None:
                if len(run.cuts) < 2 or run.cuts[1] != run.cuts[0] + NEXT * (steps := len(run.cuts[1]) - len(run.cuts[0])) or steps <= 0:
                    return None
                total += steps
            else:
                assert run.most is not None, "integers end"
                total += run.most - run.least + 1
            if total > most:
                return None
        return total

    def places(self) -> Iterator[Place]:
        """All places, in their order; only if they are finitely many."""
        for run in self.intervals():
            place, end = run.least, run.cuts[1] if len(run.cuts) > 1 else None
            while place != end and (end is not None or place <= self.axis.most):
                yield place
                place = self.axis.after(place)

    def values(self) -> Iterator[Value]:
        return map(self.axis.value, self.places())


def union(parts: Sequence[Runs]) -> Runs:
    """All values of some sets, in one sweep.

    >>> number = axis(NUMBER)
    >>> union([number.between(0, 3), number.only(9), number.between(2, 8)]).cuts
    (0, 10)
    """
    if len(parts) == 1:
        return parts[0]
    turns: dict[Place, int] = {}
    for part in parts:
        for index, cut in enumerate(part.cuts):
            turns[cut] = turns.get(cut, 0) + (1 if index % 2 == 0 else -1)
    cuts: list[Place] = []
    depth = 0
    for cut in sorted(turns):
        before, depth = depth, depth + turns[cut]
        if (before > 0) != (depth > 0):
            cuts.append(cut)
    return Runs(parts[0].axis, tuple(cuts))


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_LARGEST_DOUBLE = 0x7FEFFFFFFFFFFFFF


def _bits(value: float) -> int:
    """The place of a double: its bits, which for positive ones are in their order."""
    bits: int = struct.unpack("<q", struct.pack("<d", abs(value)))[0]
    return -bits if value < 0 else bits


def _double(place: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(place)))[0]
    return -value if place < 0 else value


@cache
def axis(type_: Type) -> Axis:
    """The axis of a type."""
    match type_.kind:
        case "number":
            return Axis(type_, MIN_NUMBER, MAX_NUMBER)
        case "unsigned":
            return Axis(type_, 0, MAX_UNSIGNED)
        case "symbol":
            return Axis(type_, "", None)
        case "boolean":
            return Axis(type_, 0, 1)
        case "date":
            return Axis(type_, datetime.date.min.toordinal(), datetime.date.max.toordinal())
        case "timestamp":
            first, last = (moment.replace(tzinfo=datetime.UTC) for moment in (datetime.datetime.min, datetime.datetime.max))
            return Axis(type_, (first - _EPOCH) // _MICROSECOND, (last - _EPOCH) // _MICROSECOND)
        case "decimal":
            return Axis(type_, 1 - 10**type_.precision, 10**type_.precision - 1)
        case "float":
            return Axis(type_, -_LARGEST_DOUBLE, _LARGEST_DOUBLE)
        case "set" | "tuple":
            raise AssertionError("checked: conditions have no sets and no tuples")
        case _:
            assert_never(type_.kind)


__all__ = ["NUMBER", "SYMBOL", "Axis", "Place", "Runs", "axis", "union"]
