"""A group of bindings that are aggregated: what is kept of it, and what is shown. How it changes is in `turning.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import ge, le
from typing import Any

from vigilog.core.values import Type
from vigilog.language import accumulators
from vigilog.language.syntax import Atom, Builtin, Declaration, Rule, Variable

EXTREMES: Mapping[str, Callable[[Any, Any], bool]] = {"min": le, "max": ge}  # whether one value is as good as another, or better
ADDED = frozenset({"sum", "squares"})  # what is added up, and so can be taken away
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class StatePart:
    """What is kept of a column of the bindings: an exact sum (`accumulators.py`), of the values or of their squares, or the least or the greatest value."""

    op: str
    column: int
    type: Type


@dataclass(frozen=True)
class GroupAggregate:
    """An aggregate: the variable that gets its value, and the part that it is found from; `count` needs none, `variance` another one, the sum of the `squares`."""

    variable: Variable
    op: str
    type: Type
    part: int | None
    squares: int = -1


@dataclass(frozen=True)
class Group:
    """Aggregates of one rule over the same bindings, `rows`, whose first columns, `keys`, are the group's. If rows are `own`, they are kept, too.

    `state` has, for each group, the number of its bindings and its parts; `aux` the values that rules read, where they exist and pass the `tests`.
    """

    rows: Declaration
    aux: Declaration
    state: Declaration
    definition: Rule  # of `aux`, by all bindings
    keys: int
    parts: tuple[StatePart, ...]
    shown: tuple[GroupAggregate, ...]
    read: tuple[int, ...]  # which of the values rules read
    tests: tuple[Builtin, ...]
    bound: tuple[str, ...]  # the variables whose values the columns of `rows` are
    source: Atom | None  # the atom whose rows are the bindings, if that is all there is to them
    own: bool
    asked: bool  # whether a rule asks if a group is empty

    @property
    def looked_up(self) -> bool:
        """Whether an extreme that leaves has to be looked up."""
        return any(part.op in EXTREMES for part in self.parts)

    @cached_property
    def readers(self) -> list[tuple[int, Callable[[str], int]]]:
        """How texts in states are read, by their places."""
        return [(place, accumulators.reader(part.type)) for place, part in enumerate(self.parts, start=1) if part.op in ADDED]

    @cached_property
    def writers(self) -> list[tuple[int, Callable[[int], str]]]:
        """How texts in states are written, by their places."""
        return [(place, accumulators.writer(part.type)) for place, part in enumerate(self.parts, start=1) if part.op in ADDED]

    @property
    def kept(self) -> tuple[Declaration, ...]:
        return (self.aux, self.state, *((self.rows,) if self.own else ()))
