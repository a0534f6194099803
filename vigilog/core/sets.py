"""Sets as values: equal to the frozenset of their elements, and ordered.

>>> Set(["b", "a"]) == frozenset({"a", "b"}), Set([2, 1, 2])
(True, Set([1, 2]))
>>> sorted([Set([2]), Set([1, 3]), Set([1]), Set()])
[Set([]), Set([1]), Set([1, 3]), Set([2])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from vigilog.core.errors import DataError

MOST_ELEMENTS = 1_000_000


class Set(frozenset[Any]):
    """A set of values of one type. Sets compare by their sorted elements, one that is the beginning of another before it; iterating goes through them in order."""

    __slots__ = ("ordered",)
    ordered: tuple[Any, ...]

    def __new__(cls, elements: Iterable[Any] = ()) -> Set:
        made = super().__new__(cls, elements)
        if len(made) > MOST_ELEMENTS:
            raise too_many(len(made))
        made.ordered = tuple(sorted(frozenset.__iter__(made)))
        return made

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ordered)

    def __repr__(self) -> str:
        return f"Set({list(self.ordered)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Set, (self.ordered,)

    def __lt__(self, other: AbstractSet[object]) -> bool:
        return self.ordered < (other if isinstance(other, Set) else Set(other)).ordered

    def __le__(self, other: AbstractSet[object]) -> bool:
        return self == other or self < other

    def __gt__(self, other: AbstractSet[object]) -> bool:
        return not self <= other

    def __ge__(self, other: AbstractSet[object]) -> bool:
        return not self < other


def too_many(elements: int) -> DataError:
    return DataError(f"a set would have {elements} elements; it has at most a million", "limit")
