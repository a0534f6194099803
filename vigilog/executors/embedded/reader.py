"""Reads the file of a database as one transaction left it, while others write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.embedded.ask import Asker
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.executors.embedded.why import Reasoner
from vigilog.executors.watch import Watch
from vigilog.language.goal import Goal
from vigilog.language.program import Program
from vigilog.planning.layout import FileLayout
from vigilog.planning.order import Search
from vigilog.planning.sqlite import encoder


class EmbeddedReader:
    """A connection of its own to the tables of a plain program, of which the base relations and those `stored` have their rows in the file.

    Proofs are those of another program, `proved`, which reads nothing that is only kept to answer. What it reads between `begin` and `end` is one state. `indexes` makes an index, which a reader cannot; what is prepared before `begin` finds it.
    """

    def __init__(
        self,
        program: Program,
        proved: Program,
        stored: Collection[str],
        connection: sqlite3.Connection,
        sizes: Mapping[str, int],
        indexes: Callable[[Search], None],
    ) -> None:
        self.stored, self.connection, self.watch = stored, connection, Watch()
        self.tables = Tables(FileLayout(program), self.watch, connection=connection, indexes=indexes)
        self.tables.look()
        self.asker = Asker(program, stored, self.tables, sizes)
        self.reasoner = Reasoner(proved, self.tables, sizes)

    def begin(self) -> None:
        """From the next look on one state is read."""
        self.connection.execute("BEGIN")

    def end(self, *, failed: bool) -> bool:
        """Whether it can be used again. After a failure it cannot: its work tables may be gone, or may have grown large in memory."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK" if failed else "COMMIT")
        return not failed

    def prepare(self, goal: Goal) -> None:
        self.asker.prepare(goal)

    def prepare_rows(self, relation: str, columns: Collection[int]) -> None:
        """Rows will be looked up by the values of some columns."""
        if columns:
            self.tables.serve([Search(relation, frozenset(columns))])

    def rows(self, relation: str, bound: Mapping[int, Value]) -> Iterator[Row]:
        """The rows of a relation in the file, all or those with some values in some columns."""
        layout, where, values = self.tables.layout, [], []
        for column, value in bound.items():
            encode = encoder(layout.types[relation][column])
            where.append(f"{quote(layout.columns[relation][column])} = ?")
            values.append(encode(value) if encode else value)
        try:
            yield from self.tables.rows_of(relation, layout.tables[relation], " AND ".join(where), tuple(values), order=True)
        except sqlite3.OperationalError as reason:  # it may take too long while it is read
            raise self.tables.translated(reason) from None

    def answers(self, goal: Goal) -> list[Row]:
        return self.asker.answers(goal)

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        return self.reasoner.proofs(relation, rows)

    def some(self, goal: Goal, budget: int) -> list[Row]:
        """See `Answerer`."""
        return self.asker.answers(goal, budget if self.asker.budget is None else min(budget, self.asker.budget))

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """See `Answerer`."""
        return self.asker.nearest(relation, bound, most)

    def stop(self, reason: Exception) -> None:
        """Ends what another thread reads; there it raises this."""
        self.tables.stopped = reason
        self.connection.interrupt()

    def close(self) -> None:
        self.connection.close()
