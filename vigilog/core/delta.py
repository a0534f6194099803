"""The algebra of changes. Nothing else in Vigilog invents deltas.

A delta says which rows a relation gained and which it lost. The law: `plus` and `minus` have no row in common, and for the relation the delta belongs to,
`minus` was in it and `plus` was not. So `apply` is exact, `inverse` undoes it, and `then` puts two into one.

>>> old, new = {(1,), (2,)}, {(2,), (3,)}
>>> change = between(old, new)
>>> change.apply(old) == new and change.inverse().apply(new) == old
True
>>> change.then(change.inverse()) == Delta()
True
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from vigilog.core.values import Row, sorted_rows


@dataclass(frozen=True)
class Delta:
    plus: frozenset[Row] = frozenset()
    minus: frozenset[Row] = frozenset()

    def __post_init__(self) -> None:
        assert self.plus.isdisjoint(self.minus), "a delta gains and loses different rows"

    def __bool__(self) -> bool:
        return bool(self.plus or self.minus)

    @cached_property
    def ordered(self) -> tuple[list[Row], list[Row]]:
        """Both sides, sorted: once for all who write or tell them, and none of whom changes the lists."""
        return sorted_rows(self.plus), sorted_rows(self.minus)

    def apply(self, rows: AbstractSet[Row]) -> set[Row]:
        return (set(rows) - self.minus) | self.plus

    def inverse(self) -> Delta:
        return Delta(self.minus, self.plus)

    def then(self, later: Delta) -> Delta:
        """Both changes as one: what came and went again is in neither part."""
        return Delta((self.plus - later.minus) | (later.plus - self.minus), (self.minus - later.plus) | (later.minus - self.plus))


def modified(delta: Delta, key: tuple[int, ...]) -> list[tuple[Row, Row]]:
    """The rows of a delta that replace each other, told by their key: the old one and the new one.

    >>> modified(Delta(frozenset({("a", 2), ("b", 1)}), frozenset({("a", 1)})), (0,))
    [(('a', 1), ('a', 2))]
    """
    old: dict[Row, list[Row]] = {}
    new: dict[Row, list[Row]] = {}
    for rows, by_key in ((delta.minus, old), (delta.plus, new)):
        for row in rows:
            by_key.setdefault(tuple(row[column] for column in key), []).append(row)
    same = sorted(values for values in old.keys() & new.keys() if len(old[values]) == len(new[values]) == 1)
    return [(old[values][0], new[values][0]) for values in same]


@dataclass(frozen=True, eq=False)
class Keyed(Delta):
    """A delta whose rows have a key: what is modified is told apart from what is inserted and deleted. Without a key, nothing is modified.

    >>> change = Keyed(frozenset({("a", 2), ("b", 1)}), frozenset({("a", 1)}), (0,))
    >>> change.modified, change.inserted, change.deleted, change == Delta(change.plus, change.minus)
    ([(('a', 1), ('a', 2))], frozenset({('b', 1)}), frozenset(), True)
    """

    key: tuple[int, ...] | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Delta) and (self.plus, self.minus) == (other.plus, other.minus)

    def __hash__(self) -> int:
        return hash((self.plus, self.minus))

    @cached_property
    def modified(self) -> list[tuple[Row, Row]]:
        """Rows that take each other's place: the old one and the new one."""
        return modified(self, self.key) if self.key is not None else []

    @property
    def inserted(self) -> frozenset[Row]:
        return self.plus - {new for _, new in self.modified}

    @property
    def deleted(self) -> frozenset[Row]:
        return self.minus - {old for old, _ in self.modified}


def between(old: AbstractSet[Row], new: AbstractSet[Row]) -> Delta:
    """The change from one state of a relation to another."""
    return Delta(frozenset(new - old), frozenset(old - new))


def net(rows: AbstractSet[Row], deletions: Iterable[Row], insertions: Iterable[Row]) -> Delta:
    """What remains of a transaction's wishes: deletions come first, absent rows are not deleted, present ones not inserted.

    >>> net({(1,)}, deletions=[(1,), (2,)], insertions=[(1,), (3,)])
    Delta(plus=frozenset({(3,)}), minus=frozenset())
    """
    wanted = frozenset(insertions)
    return Delta(wanted - rows, frozenset(deletions) & rows - wanted)
