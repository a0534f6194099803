"""Views that are kept true, whichever executor does it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from vigilog.core.delta import Delta
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.allowance import Allowance
from vigilog.executors.evaluation import Stats
from vigilog.language.goal import Goal

Settle = Callable[[Mapping[str, Delta]], object]


def nothing(_: Mapping[str, Delta]) -> None:
    """What is to be done with the changes of a transaction that concerns nobody else."""


class Views(Protocol):
    """The base relations of a plain program as of the last transaction, and its views. It holds resources: close it."""

    stats: Stats  # what the last call cost

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        """Those of the rows that a base relation has."""

    def having(self, relation: str, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        """The rows of a base relation that have one of some values in their columns."""

    def twice(self, relation: str, columns: tuple[int, ...]) -> Row | None:
        """Values that several rows of a base relation have in their columns, if there are any."""

    def apply(self, changes: Mapping[str, Delta], settle: Settle = nothing, *, keep: bool = True) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the views that changed. Without `keep`, nothing is applied.

        `settle` is told the changes while everything is in its new state and can still be taken back: if it raises, nothing has changed.
        """

    def rows(self, relation: str) -> Iterable[Row]:
        """All rows of a base relation or of a view."""

    def prepare(self, goal: Goal) -> None:
        """Makes what it takes to answer a goal, which cannot be made while a transaction is under way."""

    def answers(self, goal: Goal) -> Iterable[Row]:
        """The answers to a goal; only what it needs is derived."""

    def within(self, allowance: Allowance | None) -> AbstractContextManager[None]:
        """What is answered inside costs no more than that, or raises Stopped."""

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it, None if it has none."""

    def some(self, goal: Goal, budget: int) -> Collection[Row]:
        """The answers to a goal, see `Answerer` in whynot.py."""

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> Collection[Row]:
        """Rows near to one that is missing, see `Answerer` in whynot.py."""

    def attach(self) -> None:
        """Goes on after others have worked on the same tables, and have failed."""

    def close(self) -> None: ...
