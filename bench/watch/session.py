"""What a contender is while it is measured, and what its answers are compared by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.watch.workloads import Change, Row

Rows = Iterable[tuple[Any, ...]]


class Changed(Protocol):
    """The rows that one view gained and lost."""

    @property
    def plus(self) -> Rows: ...

    @property
    def minus(self) -> Rows: ...


@dataclass(frozen=True)
class Answer:
    """Such rows, of a contender that has no better place for them."""

    plus: Iterable[Row] = ()
    minus: Iterable[Row] = ()


@dataclass(frozen=True)
class Cost:
    """What a contender tells of its last change, where it does."""

    derived: int | None = None
    statements: int | None = None
    rounds: int | None = None
    strategy: str = ""
    recomputed: bool = False


class Session(Protocol):
    """A program with its data loaded and its views computed. `apply` is what is measured: from rows in Python to rows in Python."""

    def apply(self, change: Change) -> Mapping[str, Changed]: ...

    def view(self, name: str) -> Rows: ...

    def cost(self) -> Cost: ...

    def close(self) -> None: ...


Digest = tuple[int, int]


def digest(rows: Rows) -> Digest:
    """How many rows, and a number that is the same for the same rows in any order and process.

    >>> digest([(1, 2), (3, 4)]) == digest({(3, 4), (1, 2)}) != digest([(1, 2), (4, 3)])
    True
    """
    count, mixed = 0, 0
    for row in rows:
        count += 1
        mixed += hash(row)
    return count, mixed % 2**61


@dataclass
class Told:
    """The digests of a change: for each view that changed, of what it gained and of what it lost."""

    views: dict[str, tuple[Digest, Digest]] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Mapping[str, Changed]) -> Told:
        found = {name: (digest(answer.plus), digest(answer.minus)) for name, answer in answers.items()}
        return cls({name: both for name, both in sorted(found.items()) if both[0][0] or both[1][0]})

    @property
    def effect(self) -> int:
        """How many rows of views came or went."""
        return sum(plus[0] + minus[0] for plus, minus in self.views.values())
