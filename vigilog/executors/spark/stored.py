"""Relations that Spark keeps while transactions change them.

What was settled once is a frame: what was written on this machine, which can be looked up in this process, too (`near`), or else cached column by column; its lineage is cut, so that a source that changes is
not read again. What changed since, the *tail*, is a delta in this process: few rows beside many. A tail that has grown is folded in, which settles the relation anew. A relation with few rows is all tail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING

import pyarrow as pa

from vigilog.core.arrow import from_arrow, to_arrow
from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.values import Row, Value
from vigilog.executors.spark.local import Rows
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.files.place import Place
from vigilog.spark import snapshots
from vigilog.spark.indexed import Lazily
from vigilog.spark.snapshots import Spooled, Written
from vigilog.spark.sources import REFUSED, expected, read, refusal, told_by_reader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LOCAL_ROWS = 20_000  # a relation with no more rows is kept in this process
SHORT_TAIL, LONG_TAIL = 20_000, 200_000  # a tail is never folded in below the one, always above the other,
FOLDED_PART = 100  # and between them when it is more than one row in so many
MOST_NEAR = 200_000  # so many rows are looked at in this process for what one transaction tells
FEW_VALUES = 1_000  # so many values of a column are compared with what is known of each part of a file
ORDERED = ("number", "symbol", "date")  # kinds for which something is known
_NUMBER = "__number"


@dataclass(frozen=True)
class TailedSnapshot:
    """A relation as it was written once, and what has changed since."""

    written: Written
    tail: Delta


class Snapshot:
    """A relation at one time. It never changes: a change gives another one. `near` has the settled rows, if they can be looked up in this process; those that are `spooled` are in files as long as somebody has them."""

    def __init__(
        self,
        frames: TemporaryViews,
        relation: str,
        tail: Delta,
        settled: DataFrame | None = None,
        settled_rows: int = 0,
        near: Lazily | None = None,
        spooled: Spooled | None = None,
    ) -> None:
        self.frames, self.relation, self.tail, self.settled, self.settled_rows = frames, relation, tail, settled, settled_rows
        self.near, self.spooled = near, spooled
        self.rows = settled_rows + len(tail.plus) - len(tail.minus)

    def on(self, frames: TemporaryViews) -> Snapshot:
        """The same, for another evaluation."""
        return Snapshot(frames, self.relation, self.tail, self.settled, self.settled_rows, self.near, self.spooled)

    def after(self, change: Delta) -> Snapshot:
        """The relation after a net change."""
        return Snapshot(self.frames, self.relation, self.tail.then(change), self.settled, self.settled_rows, self.near, self.spooled)

    @cached_property
    def here(self) -> Rows:
        """The rows that are not settled, with indexes."""
        rows = Rows()
        rows.add(self.tail.plus)
        return rows

    @cached_property
    def came(self) -> DataFrame:
        return self.frames.local(self.relation, list(self.tail.plus))

    @cached_property
    def gone(self) -> DataFrame:
        """The settled rows that are no more."""
        return self.frames.local(self.relation, list(self.tail.minus))

    @cached_property
    def read(self) -> DataFrame:
        """All rows, and those that are `gone`: what rules read that look up what is gone by themselves."""
        if self.settled is None:
            return self.came
        return self.settled.unionAll(self.came) if self.tail.plus else apart(self.settled)

    @property
    def exact(self) -> DataFrame:
        """All rows."""
        from pyspark.sql.functions import broadcast

        if self.settled is None or not self.tail.minus:
            return self.read
        left = self.settled.join(broadcast(self.gone), list(self.settled.columns), "left_anti")
        return left.unionAll(self.came) if self.tail.plus else left

    def collect(self) -> set[Row]:
        """All rows, here."""
        if self.settled is None:
            return set(self.tail.plus)
        return set(rows_of(self.frames, self.relation, self.frames.act(self.exact.toArrow)))

    @property
    def overdue(self) -> bool:
        """Whether the tail has grown so long that it is to be folded in. What was written is written anew by those who wrote it."""
        if self.near is not None and self.spooled is None:
            return False
        length = len(self.tail.plus) + len(self.tail.minus)
        if self.settled is None:
            return length > LOCAL_ROWS
        return length > min(LONG_TAIL, max(SHORT_TAIL, self.settled_rows // FOLDED_PART))

    def folded(self) -> Snapshot:
        return settled(self.frames, self.relation, self.exact) if self.spooled is None else spooled(self.frames, self.relation, self.exact)

    def forget(self) -> None:
        if self.settled is not None:
            self.settled.unpersist()


def load(frames: TemporaryViews, relation: str, source: Iterable[Row] | Place | TailedSnapshot | None) -> Snapshot:
    """A relation as its source has it."""
    frames.watch.begin(f"reading {relation}", _rows_in(source) if frames.watch.report else 0)
    if isinstance(source, TailedSnapshot):
        columns, types = frames.layout.columns[relation], frames.layout.types[relation]
        if source.written.rows <= LOCAL_ROWS:
            rows = frozenset(snapshots.read_rows(frames.layout.program.relations[relation].types, source.written.location))
            return Snapshot(frames, relation, Delta(plus=rows).then(source.tail))
        written = snapshots.read(frames.session, source.written, columns, types)
        near = snapshots.indexed(types, source.written)
        return Snapshot(frames, relation, source.tail, written.persist() if near is None else written, source.written.rows, near)
    if not isinstance(source, Place):
        rows = frozenset(source or ())
        snapshot = Snapshot(frames, relation, Delta(plus=rows))
        return snapshot.folded() if snapshot.overdue else snapshot
    try:
        return settled(frames, relation, read(frames.session, source).distinct(), source)
    except DataError as reason:
        raise told_by_reader(source) or reason from None


def _rows_in(source: Iterable[Row] | Place | TailedSnapshot | None) -> int:
    """How many rows a source has, if that is known."""
    match source:
        case TailedSnapshot():
            return source.written.rows
        case Place():
            return expected(source)
        case _:
            return len(source) if isinstance(source, Sized) else 0


def settled(frames: TemporaryViews, relation: str, frame: DataFrame, source: Place | None = None) -> Snapshot:
    """A relation with the distinct rows of a frame; with a source, rows that it marks as refused are an error."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    counts = {"rows": F.count(F.lit(1))}
    if source is not None:
        counts["refused"] = F.count_if(F.col(REFUSED))
    done, totals = frames.settle(frame, counts, StorageLevel.DISK_ONLY)
    if source is not None and totals["refused"]:
        place = source
        raise frames.act(lambda: refusal(frames.session, place))
    kept = done.select(*(F.col(f"`{name}`") for name in frames.layout.columns[relation]))
    if totals["rows"] <= LOCAL_ROWS:
        return Snapshot(frames, relation, Delta(plus=frozenset(rows_of(frames, relation, frames.act(kept.toArrow)))))
    cached = kept.persist()
    frames.act(cached.count)
    return Snapshot(frames, relation, Delta(), cached, totals["rows"])


def spooled(frames: TemporaryViews, relation: str, frame: DataFrame) -> Snapshot:
    """A relation with the distinct rows of a frame, in files of this process, which can be looked up in it; nobody else may read them. One action."""
    if not frames.on_this_machine:
        return settled(frames, relation, frame)
    columns = frames.layout.columns[relation]
    return in_files(frames, relation, frames.act(lambda: snapshots.spooled(frame.toDF(*columns))))


def in_files(frames: TemporaryViews, relation: str, kept: Spooled) -> Snapshot:
    """A relation whose distinct rows are in files of this process."""
    columns, types = frames.layout.columns[relation], frames.layout.types[relation]
    if kept.rows <= LOCAL_ROWS:
        declared = frames.layout.program.relations[relation].types
        return Snapshot(frames, relation, Delta(plus=frozenset(snapshots.read_rows(declared, kept.location))))
    near = snapshots.indexed(types, kept)
    return Snapshot(frames, relation, Delta(), snapshots.read(frames.session, kept, columns, types), kept.rows, near, kept)


def apart(frame: DataFrame) -> DataFrame:
    """The same rows by another plan: when a view is dropped, Spark drops what is cached of its plan, whoever has cached it."""
    from pyspark.sql.functions import lit

    return frame.where(lit(True))


def among(snapshot: Snapshot, rows: Collection[Row]) -> set[Row]:
    """Those of some rows that a relation has: one action, none if that is known here."""
    from pyspark.sql import functions as F

    tail, settled, frames = snapshot.tail, snapshot.settled, snapshot.frames
    here = {row for row in rows if row in tail.plus}
    open_ = [row for row in set(rows) - here if row not in tail.minus]
    if settled is None or not open_:
        return here
    if snapshot.near is not None:
        near = snapshot.near.having(range(len(settled.columns)), set(open_), MOST_NEAR)
        if near is not None:
            return here.union(near)
    asked = F.broadcast(frames.session.createDataFrame(_numbered(frames, snapshot.relation, open_)))
    matched = settled.alias("s").join(asked.alias("l"), _same(settled.columns)).select(_NUMBER)
    return here | {open_[number] for number in frames.act(matched.toArrow)[_NUMBER].to_pylist()}


def having(snapshot: Snapshot, columns: Sequence[int], values: Collection[Row]) -> set[Row]:
    """The rows of a relation that have one of some values in their columns: one action, none if that is known here."""
    tail, settled, frames = snapshot.tail, snapshot.settled, snapshot.frames
    wanted = set(values)
    here = {row for row in tail.plus if tuple(row[column] for column in columns) in wanted}
    if settled is None or not wanted:
        return here
    near = snapshot.near.having(columns, wanted, MOST_NEAR) if snapshot.near is not None and columns else None
    if near is not None:
        return here.union(near) - tail.minus
    rows = set(rows_of(frames, snapshot.relation, frames.act(sought(snapshot, columns, wanted).toArrow)))
    return here | (rows - tail.minus)


def sought(snapshot: Snapshot, columns: Sequence[int], values: Collection[Row]) -> DataFrame:
    """The settled rows of a relation that have one of some values in their columns."""
    from pyspark.sql import functions as F

    frames, relation, settled = snapshot.frames, snapshot.relation, snapshot.settled
    assert settled is not None, "other rows are here"
    names = [frames.layout.columns[relation][column] for column in columns]
    types = [frames.layout.types[relation][column] for column in columns]
    asked = F.broadcast(frames.session.createDataFrame(to_arrow(names, types, list(values))))
    for place, (name, type_) in enumerate(zip(names, types, strict=True)):
        if type_.kind in ORDERED and len(cells := {value[place] for value in values}) <= FEW_VALUES:
            settled = settled.where(F.col(f"`{name}`").isin(*cells))  # so few parts of files are read
    return settled.alias("s").join(asked.alias("l"), _same(names)).select("s.*")


def there(snapshot: Snapshot, columns: Sequence[int], values: Collection[Row]) -> DataFrame:
    """Those of some values that settled rows which are not gone have in their columns."""
    from pyspark.sql import functions as F

    rows = sought(snapshot, columns, values)
    if snapshot.tail.minus:
        rows = rows.join(F.broadcast(snapshot.gone), list(rows.columns), "left_anti")
    return rows.select(*(F.col(f"`{rows.columns[column]}`") for column in columns)).distinct()


def nearest(snapshot: Snapshot, bound: Mapping[int, Value], most: int) -> set[Row]:
    """The rows that agree with the values of some columns, in as many as there are rows for: one action, none if all rows are here."""
    from pyspark.sql import functions as F

    def agreeing(row: Row) -> int:
        return sum(row[column] == value for column, value in bound.items())

    frames, relation, settled = snapshot.frames, snapshot.relation, snapshot.settled
    here = {row for row in snapshot.tail.plus if agreeing(row)}
    if settled is None or not bound:
        return here
    names = [frames.layout.columns[relation][column] for column in bound]
    types = [frames.layout.types[relation][column] for column in bound]
    wanted = frames.session.createDataFrame(to_arrow(names, types, [tuple(bound.values())]))
    agreement = reduce(add, (F.when(F.col(f"s.`{name}`") == F.col(f"l.`{name}`"), 1).otherwise(0) for name in names))
    both = settled.alias("s").crossJoin(F.broadcast(wanted).alias("l")).select("s.*", agreement.alias(_NUMBER))
    best = both.where(F.col(_NUMBER) > 0).orderBy(F.col(_NUMBER).desc(), *(F.col(f"`{name}`") for name in settled.columns))
    rows = set(rows_of(frames, relation, frames.act(best.limit(most + len(snapshot.tail.minus)).drop(_NUMBER).toArrow)))
    return here | (rows - snapshot.tail.minus)


def twice(snapshot: Snapshot, columns: Sequence[int]) -> Row | None:
    """Values that several rows have in their columns, if there are any."""
    from pyspark.sql import functions as F

    frames, names = snapshot.frames, [snapshot.frames.layout.columns[snapshot.relation][column] for column in columns]
    grouped = snapshot.exact.groupBy(*(F.col(f"`{name}`") for name in names)).count()
    table = frames.act(grouped.where(F.col("count") > 1).select(*(F.col(f"`{name}`") for name in names)).limit(1).toArrow)
    types = [frames.layout.types[snapshot.relation][column] for column in columns]
    return next(iter(from_arrow(types, table)), None)


def _same(columns: Sequence[str]) -> Column:
    """That two rows, of `s` and of `l`, are equal: as `SparkDialect.sought` says it."""
    from pyspark.sql import functions as F

    sides = [[F.col(f"{side}.`{column}`") for column in columns] for side in "sl"]
    same = F.xxhash64(*sides[0]) == F.xxhash64(*sides[1])
    for left, right in zip(*sides, strict=True):
        same = same & (left <= right) & (left >= right)
    return same


def _numbered(frames: TemporaryViews, relation: str, rows: list[Row]) -> pa.Table:
    given = rows if frames.layout.program.relations[relation].attributes else [(True,) for _ in rows]
    table = to_arrow(frames.layout.columns[relation], frames.layout.types[relation], given)
    return table.append_column(_NUMBER, pa.array(range(len(rows)), pa.int64()))


def rows_of(frames: TemporaryViews, relation: str, table: pa.Table) -> Iterable[Row]:
    """The rows of an Arrow table as values of a relation."""
    if not frames.layout.program.relations[relation].attributes:
        return [()] * table.num_rows
    return frames.watch.counted(from_arrow(frames.layout.types[relation], table), table.num_rows)
