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

LIGHT = 100_000  # rows up to which what was evaluated stays for the next transaction


class Anew(Protocol):
    """Views that are not stored, evaluated as they are before a change; after it they are so before the next one."""

    stats: Stats

    @property
    def read(self) -> Collection[str]:
        """The relations whose changes are needed."""

    def after(self, changes: Mapping[str, Delta]) -> dict[str, Delta]:
        """The net changes of the wanted views, once the tables have changed, by these net changes of what is read."""

    @property
    def light(self) -> bool:
        """Whether it is so little that it may stay for the next transaction."""

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
        before, self.before = self.before, self._whole()
        return {name: delta for name in self.wanted if (delta := between(before[name], self.before[name]))}

    @property
    def light(self) -> bool:
        return sum(map(len, self.before.values())) <= LIGHT

    def _whole(self) -> dict[str, set[Row]]:
        before = self.machine.derived
        try:
            for component in self.left:
                self.stats.rounds += fixpoint(component, self.machine, self.tables.watch)
            self.stats.derived += self.machine.derived - before
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
