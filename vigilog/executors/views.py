"""Views that are kept true, whichever executor does it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from vigilog.core.delta import Delta
from vigilog.core.proofs import Proof
from vigilog.core.values import Row
from vigilog.executors.evaluation import Stats
from vigilog.language.goal import Goal


class Views(Protocol):
    """The base relations of a plain program as of the last transaction, and its views. It holds resources: close it."""

    stats: Stats  # what the last call cost

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        """Those of the rows that a base relation has."""

    def apply(self, changes: Mapping[str, Delta], *, keep: bool = True) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the views that changed. Without `keep`, nothing is applied."""

    def rows(self, relation: str) -> Iterable[Row]:
        """All rows of a base relation or of a view."""

    def answers(self, goal: Goal) -> Iterable[Row]:
        """The answers to a goal; only what it needs is derived."""

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it, None if it has none."""

    def close(self) -> None: ...
