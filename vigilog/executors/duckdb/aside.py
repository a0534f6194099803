"""Relations before a change and after it, compared where they are."""

from __future__ import annotations

from collections.abc import Iterable

from vigilog.core.delta import Delta
from vigilog.core.values import Row
from vigilog.executors.duckdb.tables import DuckTables, fresh, quote


class Aside:
    """Derived relations that are put aside, so that they can be derived anew; of those that are wanted, what they were is kept."""

    def __init__(self, tables: DuckTables, derived: Iterable[str], wanted: Iterable[str]) -> None:
        self.tables, self.wanted = tables, [*wanted]
        layout, taken = tables.layout, set(tables.layout.taken)
        self.before = {name: fresh(f"{layout.tables[name]} before", taken) for name in self.wanted}
        for name in derived:
            table = quote(layout.tables[name])
            if name in self.before:
                tables.execute(f"ALTER TABLE {table} RENAME TO {quote(self.before[name])}")
                tables.create(name)
            else:
                tables.execute(f"TRUNCATE {table}")
            tables.sizes[name] = 0

    def differences(self) -> dict[str, Delta]:
        """What the wanted relations have gained and lost; those that are the same are left out."""
        deltas = {}
        for name in self.wanted:
            now, then = f"SELECT * FROM {quote(self.tables.layout.tables[name])}", f"SELECT * FROM {quote(self.before[name])}"
            delta = Delta(self._rows(name, f"{now} EXCEPT {then}"), self._rows(name, f"{then} EXCEPT {now}"))
            if delta:
                deltas[name] = delta
        return deltas

    def drop(self) -> None:
        for table in self.before.values():
            self.tables.execute(f"DROP TABLE {quote(table)}")

    def _rows(self, relation: str, sql: str) -> frozenset[Row]:
        return frozenset(self.tables.decoded(relation, sql))
