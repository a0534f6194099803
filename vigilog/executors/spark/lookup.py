"""Tables on Spark as rules in this process read them: what is here, and of the rest the rows that are asked for.

A rule that meets a key which was not asked for yet goes on without it. Then all keys that the rules of a round have met are asked for, in one action, and these rules run again. What is settled never changes, so
what was fetched of it serves the state before a transaction and the one after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from vigilog.core.arrow import from_arrow
from vigilog.core.values import Row
from vigilog.executors.spark import temporary as sizes
from vigilog.executors.spark.stored import Snapshot, among, having, rows_of, sought, there
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.executors.spark.together import Part, part_of, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MUCH = 2  # so many rows for a key are little more than what was asked for


class Unbound(Exception):
    """A table that is not here would have to be read as a whole."""


class Fetched:
    """The rows of a settled relation that were asked for, by the columns they were asked by, and the keys that are still to be asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}
        self.wanted: dict[tuple[int, ...], set[Row]] = {}
        self.many: set[tuple[int, ...]] = set()  # columns by which more rows were asked for than are fetched

    def matching(self, columns: tuple[int, ...], key: Row) -> Sequence[Row] | None:
        """The rows that have these values in these columns; None if that is not known yet."""
        if not columns or columns in self.many:
            raise Unbound
        rows = self.indexes.get(columns, {}).get(key)
        if rows is None:
            self.wanted.setdefault(columns, set()).add(key)
        return rows

    def take(self, columns: tuple[int, ...], rows: Iterable[Row]) -> None:
        """The rows for all keys that were wanted by these columns."""
        index = self.indexes.setdefault(columns, {})
        index.update((key, []) for key in self.wanted.pop(columns))
        for row in rows:
            index[tuple([row[column] for column in columns])].append(row)


class Table:
    """A relation at one time. `missed` counts what it could not tell."""

    def __init__(self, snapshot: Snapshot, fetched: Fetched | None) -> None:
        self.snapshot, self.here, self.gone, self.fetched, self.missed = snapshot, snapshot.here, snapshot.tail.minus, fetched, 0
        self.there: dict[tuple[int, ...], dict[Row, bool]] = {}  # by columns, for keys of which it was asked whether a row has them
        self.doubted: dict[tuple[int, ...], set[Row]] = {}  # the keys of which that is still to be asked

    def matching(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """See `Rows`."""
        near = self.here.matching(columns, key)
        if self.fetched is None or None in key:
            return near
        far = self.fetched.matching(columns, key)
        self.missed += far is None
        return [*near, *(row for row in far if row not in self.gone)] if far else near

    def has(self, columns: tuple[int, ...], key: Row) -> bool:
        """See `Rows`. One row suffices, however many there are."""
        if self.fetched is None or None in key or not columns:
            return self.snapshot.rows > 0 if not columns else self.here.has(columns, key)
        if self.here.has(columns, key):
            return True
        if (far := self.fetched.indexes.get(columns, {}).get(key)) is not None:
            return any(row not in self.gone for row in far)
        if columns in self.fetched.many:
            raise Unbound
        present = self.there.get(columns, {}).get(key)
        if present is None:
            self.doubted.setdefault(columns, set()).add(key)
            self.missed += 1
        return bool(present)

    def decide(self, columns: tuple[int, ...], present: Collection[Row]) -> None:
        """Of the keys that were doubted, these are there."""
        self.there.setdefault(columns, {}).update((key, key in present) for key in self.doubted.pop(columns))


class Lookup:
    """What was asked of tables in one transaction: first whether rows are there, then what the rules need to know."""

    def __init__(self, frames: TemporaryViews) -> None:
        self.frames = frames
        self.habits: dict[
            str, tuple[int, ...]
        ] = {}  # the columns by which rules have asked of a table before, and got little more than they asked for
        self.forget()

    def forget(self) -> None:
        """All that was fetched; what comes next is another transaction."""
        self.fetched: dict[int, Fetched] = {}  # by the identity of what is settled, which it holds
        self.tables: dict[int, Table] = {}  # by that of a snapshot, which it holds
        self.size = 0

    def among(self, snapshot: Snapshot, rows: Collection[Row], most: int) -> set[Row]:
        """Those of some rows that a relation has. If it is known by which columns rules will ask, all rows are fetched that have what these rows have there."""
        columns = self.habits.get(snapshot.relation)
        if columns is None or snapshot.near is not None:
            return among(snapshot, rows)
        return self.having(snapshot, columns, {tuple([row[column] for column in columns]) for row in rows}, most).intersection(rows)

    def having(self, snapshot: Snapshot, columns: tuple[int, ...], values: Collection[Row], most: int) -> set[Row]:
        """The rows of a relation that have one of some values in their columns. Up to `most` of them are kept for the rules, too."""
        if snapshot.settled is None or snapshot.near is not None or not columns:
            return having(snapshot, columns, values)
        if self.size > most:  # of transactions that were refused
            self.forget()
        self.wish_nothing()
        table = self.table(snapshot)
        before = table.missed
        rows = {row for value in values for row in table.matching(columns, value)}
        if table.missed > before:
            if not self.fetch(most):
                return having(snapshot, columns, values)
            rows = {row for value in values for row in table.matching(columns, value)}
        return rows

    def table(self, snapshot: Snapshot) -> Table:
        if id(snapshot) not in self.tables:
            fetched = None
            if snapshot.settled is not None:
                fetched = self.fetched.setdefault(id(snapshot.settled), Fetched(snapshot))
            self.tables[id(snapshot)] = Table(snapshot, fetched)
        return self.tables[id(snapshot)]

    def fetch_near(self, most: int) -> bool:
        """Fetches what is wanted of relations that can be looked up in this process, up to `most` rows in all. False if nothing is known now that was not known before."""
        done = False
        for fetched in self.fetched.values():
            near = fetched.snapshot.near
            before = 0.0 if near is None else near.seconds
            for columns in [columns for columns in fetched.wanted if near is not None and near.serves(columns)]:
                assert near is not None, "it serves"
                done = True
                rows = near.having(columns, fetched.wanted[columns], most - self.size)
                if rows is None:
                    fetched.many.add(columns)
                    del fetched.wanted[columns]
                else:
                    self.size += len(rows)
                    fetched.take(columns, rows)
            for table in [table for table in self.tables.values() if near is not None and table.fetched is fetched]:
                for columns in [columns for columns in table.doubted if near is not None and near.serves(columns)]:
                    assert near is not None, "it serves"
                    done = True
                    some = near.some(columns, table.doubted[columns], table.gone, most)
                    if some is None:
                        fetched.many.add(columns)
                        del table.doubted[columns]
                    else:
                        table.decide(columns, some)
            if near is not None:
                self.frames.watch.started += near.seconds - before  # what is made once is not what the transaction costs
        return done

    def fetch(self, most: int) -> bool:
        """Fetches all that is wanted, by one action. False, and nothing is wanted any more, if that are more than `most` rows."""
        asked = [(fetched, columns, keys) for fetched in self.fetched.values() for columns, keys in fetched.wanted.items()]
        doubted = [(table, columns, keys) for table in self.tables.values() for columns, keys in table.doubted.items()]
        if sum(len(keys) for _, _, keys in [*asked, *doubted]) <= sizes.BROADCAST_ROWS:
            parts = [_part(fetched.snapshot, sought(fetched.snapshot, columns, keys)) for fetched, columns, keys in asked]
            parts += [_part(table.snapshot, there(table.snapshot, columns, keys), columns) for table, columns, keys in doubted]
            self.frames.configure(partitions=1, adaptive=False)
            answer = self.frames.act(together(self.frames, parts).limit(most + 1).toArrow)
            if answer.num_rows <= most:
                self.size += answer.num_rows
                for number, (fetched, columns, keys) in enumerate(asked):
                    own = part_of(answer, parts, number)
                    self._remember(fetched.snapshot.relation, columns, few=own.num_rows <= MUCH * len(keys))
                    fetched.take(columns, rows_of(self.frames, fetched.snapshot.relation, own))
                for number, (table, columns, _) in enumerate(doubted, start=len(asked)):
                    types = [self.frames.layout.types[table.snapshot.relation][column] for column in columns]
                    table.decide(columns, set(from_arrow(types, part_of(answer, parts, number))))
                return True
        self.wish_nothing()
        return False

    def wish_nothing(self) -> None:
        """Whoever asked has gone another way."""
        for fetched in self.fetched.values():
            fetched.wanted.clear()
        for table in self.tables.values():
            table.doubted.clear()

    def _remember(self, relation: str, columns: tuple[int, ...], *, few: bool) -> None:
        """By which columns rules ask of a relation, if that gives few rows."""
        if few:
            self.habits[relation] = columns
        elif self.habits.get(relation) == columns:
            del self.habits[relation]


def _part(snapshot: Snapshot, frame: DataFrame, columns: Sequence[int] | None = None) -> Part:
    return Part(snapshot.relation, range(len(frame.columns)) if columns is None else columns, frame)
