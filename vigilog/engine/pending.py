"""A transaction while it is being written, or thought of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vigilog.core.delta import Delta, Keyed
from vigilog.core.reports import Report


class WhatIf(dict[str, Delta]):
    """What a transaction would change in the views; `alerts` is what would be reported of it, `triggered` what triggers would do."""

    def __init__(self, deltas: Mapping[str, Delta], alerts: Sequence[Report], triggered: Mapping[str, Delta]) -> None:
        super().__init__(deltas)
        self.alerts, self.triggered = alerts, triggered


class Pending:
    """The changes of one transaction; a row is a sequence, or says its columns by name, as a mapping or a dataclass.

    After its block, `tx` is its number and `changes` holds what they did to the views, `alerts` what is reported of it, `triggered` what triggers did.
    """

    def __init__(self) -> None:
        self.tx = 0
        self.collected: dict[str, dict[str, list[Any]]] = {}
        self.changes: dict[str, Keyed] = {}
        self.alerts: Sequence[Report] = ()
        self.triggered: Mapping[str, Delta] = {}

    def insert(self, relation: str, rows: Iterable[Any]) -> None:
        self._collect("insert", relation, rows)

    def delete(self, relation: str, rows: Iterable[Any]) -> None:
        self._collect("delete", relation, rows)

    def update(self, relation: str, pairs: Iterable[tuple[Iterable[Any], Iterable[Any]]]) -> None:
        """Replaces rows, each given with the one that takes its place; an old row that is not there is an error."""
        self._collect("update", relation, ({"old": old, "new": new} for old, new in pairs))

    def upsert(self, relation: str, rows: Iterable[Any]) -> None:
        """Inserts rows in the place of those with the same key."""
        self._collect("upsert", relation, rows)

    def delete_key(self, relation: str, keys: Iterable[Any]) -> None:
        """Deletes the rows that have some keys."""
        self._collect("delete_key", relation, keys)

    def _collect(self, operation: str, relation: str, given: Iterable[Any]) -> None:
        self.collected.setdefault(operation, {}).setdefault(relation, []).extend(given)
