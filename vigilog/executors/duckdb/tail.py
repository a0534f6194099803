"""Rounds with few new rows, on SQLite, in the course of a fixpoint on DuckDB.

A statement costs DuckDB a millisecond, however little it does, and SQLite some microseconds. Moving costs, too: all rows that the rules read go to SQLite, and what came there goes back. Nobody
knows how many rounds are still to come; so a fixpoint moves when its small rounds have cost as much as moving does, which is never more than twice what would have been best, and goes back when
rounds are large again. Each further move needs twice as much waste.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigilog.executors.duckdb.tables import DuckTables, quote
from vigilog.executors.embedded.bulk import patient
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.tables import Tables
from vigilog.executors.watch import Outgrown
from vigilog.language.parts import is_fact
from vigilog.language.strata import Component, dependencies

if TYPE_CHECKING:
    from collections.abc import Mapping

FEW, MANY = 1_000, 20_000  # recent rows up to which a round is small, and beyond which it is large on SQLite
A_ROUND = 1.0  # seconds that a round may take on SQLite
MOVING, A_ROW = 0.01, 2e-6  # seconds that a move takes at least, and for each row
A_CELL = 30  # bytes that SQLite takes for a value, which it cannot put on the disk


@dataclass
class Pace:
    """When a fixpoint changes engines."""

    moves: int = 0
    wasted: float = 0.0

    def down(self, recent: int, seconds: float, rows: int) -> bool:
        """Whether to go to SQLite after a round on DuckDB that took so long and gave so few recent rows, where so many rows are to be moved."""
        if recent <= FEW:
            self.wasted += seconds
        if recent > FEW or not recent or self.wasted < (MOVING + A_ROW * rows) * 2**self.moves:
            return False
        self.moves, self.wasted = self.moves + 1, 0.0
        return True

    def up(self, recent: int) -> bool:
        """Whether to go back to DuckDB after a round on SQLite."""
        return recent > MANY


class Tail:
    """The relations that a component reads, on SQLite, from some round on."""

    def __init__(self, tables: DuckTables, component: Component, recent: Mapping[str, str]) -> None:
        """Goes on from the recent rows, which are in these tables on DuckDB."""
        self.duck, self.component = tables, component
        self.tables = Tables(tables.layout, tables.watch, resident=True)
        try:
            needed = needed_by(component)
            for relation in tables.layout.program.relations:
                self.tables.create(relation)
                if relation in needed:
                    tables.give(relation, self.tables)
            self.machine = TableMachine(self.tables)
            self.machine.resume(component)
            for relation, table in recent.items():
                self.machine.take(relation, tables.stored(f"SELECT {tables.columns(relation)} FROM {quote(table)}"))
        except BaseException:
            self.close()
            raise

    def advance(self) -> int | None:
        """One round, unless that takes long: then nothing has come."""
        try:
            with patient(self.tables, A_ROUND):
                return self.machine.advance()
        except Outgrown:
            return None

    def back(self, recent: Mapping[str, str]) -> dict[str, int]:
        """Adds to DuckDB what came meanwhile, makes the tables of recent rows there, and gives how many these have."""
        layout, counts = self.duck.layout, {}
        for relation in self.component.relations:
            table, own = quote(layout.tables[relation]), self.machine.turns[relation][0]
            self.duck.execute(f"CREATE OR REPLACE TABLE {table} ({self.duck.columns(relation, typed=True)})")
            self.duck.take(relation, self.tables)
            self.duck.execute(f"CREATE OR REPLACE TABLE {quote(recent[relation])} ({self.duck.columns(relation, typed=True)})")
            counts[relation] = self.duck.copy(relation, recent[relation], self.tables, own)
        self.close()
        return counts

    def close(self) -> None:
        self.tables.close()


def needed_by(component: Component) -> set[str]:
    """The relations of a component, and those that it reads."""
    return {atom.relation for rule in component.rules if not is_fact(rule) for atom, _ in dependencies(rule)} | {*component.relations}
