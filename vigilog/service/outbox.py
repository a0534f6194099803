"""What subscriptions read from the disk: changes that they were not there for, or too slow for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from vigilog.core.errors import DataError
from vigilog.core.rows import json_rows, rows_from_json
from vigilog.core.values import Row, Value
from vigilog.folder.durable import Durable
from vigilog.service.limits import Limits
from vigilog.service.slices import Channel, Net, Part, Side, Slice
from vigilog.store.log import ChangeEntry, Log

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
MOST_ROWS = 2_000  # that are read at once: so many are in memory for each client that does not read


class Outbox:
    def __init__(self, db: Durable, limits: Limits) -> None:
        self.db, self.limits = db, limits

    def check(self, channel: Channel, since: int, digest: str = "") -> None:
        """Raises DataError if a subscription cannot go on after a transaction, or, by its digest, not after that one."""
        with self.db.reading() as state:
            self._check(state.log, channel, since)
            if digest and digest != state.log.digest(since):
                raise DataError(f"your transaction {since} is not that of this database: it went another way before", "history")

    def digest(self, tx: int) -> str:
        """What tells a position from one with the same number in another history; empty if it is not known."""
        with self.db.reading() as state:
            return state.log.digest(tx)

    def _check(self, log: Log, channel: Channel, since: int) -> None:
        oldest = max(log.first, channel.since, *(self.db.declared(part.relation) for part in channel.parts))
        if since > log.last:
            raise DataError(f"there is no transaction {since} yet: the last is {log.last}", "future")
        if since < oldest:
            raise DataError(f"changes after {since} are not all retained: the oldest are after {oldest}", "gap")

    def changes(self, channel: Channel, since: int, until: int, coalesce: bool) -> tuple[list[Slice], int]:
        """What a channel gained and lost after a transaction, up to another or until it is much, and how far that leads."""
        try:
            return self._changes(channel, since, until, coalesce)
        except DataError:
            self.check(channel, since)  # what is dropped while it is read is no longer retained
            raise

    def _changes(self, channel: Channel, since: int, until: int, coalesce: bool) -> tuple[list[Slice], int]:
        slices: list[Slice] = []
        net, rows = Net(since), 0
        with self.db.reading() as state:
            self._check(state.log, channel, since)
            logged = state.log.changes(since, until, channel.views)
            for tx, entries in groupby(logged, key=lambda entry: entry[0]):
                change = self._slice(channel, tx, {view: entry for _, view, entry in entries}, state.log.digest(tx))
                if change.sides and coalesce:
                    net.add(change)
                    rows = net.rows
                elif change.sides:
                    slices.append(change)
                    rows += change.rows + 1
                if rows > MOST_ROWS:
                    until = tx
                    break
        return net.slices(channel) if coalesce else slices, until

    def _slice(self, channel: Channel, tx: int, entries: dict[str, ChangeEntry], digest: str) -> Slice:
        sides: dict[str, tuple[Side, Side]] = {}
        for part in channel.parts:
            if part.view in entries:
                plus, minus = (self._side(channel, part, tx, entries[part.view].get(side, [])) for side in ("plus", "minus"))
                if not (isinstance(plus, list) and isinstance(minus, list) and not plus and not minus):
                    sides[part.label] = plus, minus
        return Slice(channel, tx, sides, digest=digest)

    def _side(self, channel: Channel, part: Part, tx: int, content: Any) -> Side:
        if isinstance(content, dict) and not part.bound:
            return channel.large(part, tx, content["rows"])
        rows = part.of(self.rows(part.view, content))
        return rows if len(rows) < self.limits.large or part.condition else channel.large(part, tx, len(rows))

    def rows(self, view: str, content: Any) -> Iterable[Sequence[Any]]:
        """The rows of one side of a change, as JSON has them, wherever they are."""
        if not isinstance(content, dict):
            rows: Iterable[Sequence[Any]] = content
            return rows
        types = self.db.program.relations[view].types
        return json_rows(types, list(self.db.segment(view, content)))

    def change(self, view: str, tx: int) -> dict[str, list[Row]]:
        """Both sides of what a transaction changed in a view."""
        return self._retained(view, tx, lambda side, content: [tuple(row) for row in self.rows(view, content)])

    def table(self, view: str, tx: int, bound: Mapping[int, Value], skip: int) -> pa.Table:
        """The same as Arrow, of the rows with some values in some columns, without the first columns; a column `change` tells the sides apart."""
        import pyarrow as pa

        return pa.concat_tables(self._retained(view, tx, lambda side, content: self._table(view, side, content, bound, skip)).values())

    def _table(self, view: str, side: str, content: Any, bound: Mapping[int, Value], skip: int) -> pa.Table:
        """One side. What is in a segment is passed on as it is."""
        import pyarrow as pa

        from vigilog.core.arrow import narrowed, to_arrow

        columns, types = self.db.program.relations[view].columns, self.db.program.relations[view].types
        if isinstance(content, dict) and "segment" in content:
            table = self.db.book.segments.table(content)
        else:
            table = to_arrow(
                columns, types, self.db.segment(view, content) if isinstance(content, dict) else rows_from_json(types, content)
            )
        table = narrowed(table, bound)
        table = table.select(columns[skip:]) if columns[skip:] else to_arrow((), (), [()] * table.num_rows)
        return table.add_column(0, "change", pa.repeat(pa.scalar(side, pa.string()), table.num_rows))

    def _retained(self, view: str, tx: int, read: Callable[[str, Any], T]) -> dict[str, T]:
        """What is read of both sides of a change. Raises DataError if it is not retained any more, or not there yet."""
        try:
            with self.db.reading() as state:
                self._check_one(state.log, view, tx)
                entry = next((entry for _, _, entry in state.log.changes(tx - 1, tx, [view])), {})
            return {side: read(side, entry.get(side, [])) for side in ("plus", "minus")}
        except DataError:
            with self.db.reading() as state:
                self._check_one(state.log, view, tx)  # what is dropped while it is read is no longer retained
            raise

    def _check_one(self, log: Log, view: str, tx: int) -> None:
        oldest = max(log.first, self.db.declared(view))
        if tx <= oldest:
            raise DataError(f"transaction {tx} of {view} is not retained: the oldest is {oldest + 1}", "gap")
        if tx > log.last:
            raise DataError(f"there is no transaction {tx} yet: the last is {log.last}", "future")
