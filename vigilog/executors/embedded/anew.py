"""Views evaluated before a change and after it, and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.executors.evaluation import Stats
from vigilog.executors.fixpoint import fixpoint
from vigilog.executors.watch import Outgrown
from vigilog.language.strata import Component


class Anew(Protocol):
    """Views that are not stored, evaluated as they are before a change."""

    stats: Stats

    @property
    def read(self) -> Collection[str]:
        """The relations whose changes are needed."""

    def after(self, changes: Mapping[str, Delta]) -> dict[str, Delta]:
        """The net changes of the wanted views, once the tables have changed, by these net changes of what is read."""

    def close(self) -> None: ...


class Compared:
    """On SQLite, in the tables of the views themselves, which are empty before and afterwards."""

    read: Collection[str] = ()

    def __init__(self, tables: Tables, left: Sequence[Component], wanted: Iterable[str]) -> None:
        self.tables, self.left, self.stats = tables, left, Stats("embedded")
        derived = {relation for component in left for relation in component.relations}
        self.wanted = [name for name in wanted if name in derived]
        self.machine = TableMachine(tables)
        self.before = self._whole()

    def after(self, changes: Mapping[str, Delta]) -> dict[str, Delta]:
        after = self._whole()
        self.stats.derived = self.machine.derived
        return {name: delta for name in self.wanted if (delta := between(self.before[name], after[name]))}

    def _whole(self) -> dict[str, set[Row]]:
        try:
            for component in self.left:
                self.stats.rounds += fixpoint(component, self.machine, self.tables.watch)
            return {name: set(self.tables.rows(name)) for name in self.wanted}
        except Outgrown:
            self.tables.stopped = None
            self.machine.forget()
            raise
        finally:
            for relation in (relation for component in self.left for relation in component.relations):
                self.tables.execute(f"DELETE FROM {quote(self.tables.layout.tables[relation])}")

    def close(self) -> None:
        """The tables are those of the database."""
