"""Large changes, as frames: what a source has and a relation has not, and what that changes in the views. No row of them comes to this process unless they are few."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.delta import Delta
from vigilog.core.values import Row
from vigilog.executors.spark import stored as keeping
from vigilog.executors.spark.stored import Snapshot, TailedSnapshot
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.executors.watch import Watch
from vigilog.files.place import Place
from vigilog.language.program import Program
from vigilog.spark import snapshots, sources
from vigilog.spark.session import session, started
from vigilog.spark.snapshots import PLAIN, RowOrder, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PART = 1_000_000  # rows of a part that is read as a whole
Source = Iterable[Row] | Place | TailedSnapshot


@dataclass(frozen=True)
class Difference:
    """What comes to a relation and what goes, settled, with their numbers."""

    plus: DataFrame
    minus: DataFrame
    came: int
    gone: int

    @property
    def rows(self) -> int:
        return self.came + self.gone


class Bulk:
    """TemporaryViews of base relations of a plain program."""

    def __init__(self, program: Program, watch: Watch) -> None:
        if not started():
            watch.begin("starting Spark")
        self.frames = TemporaryViews(session(), program, watch)

    def compare(self, relation: str, current: Source, wanted: Source, *, replacing: bool, key: Sequence[str] = ()) -> Difference:
        """From what a relation has to what it is to have; unless that is `replacing` the old, only rows go whose `key` a new one has."""
        new, old = keeping.load(self.frames, relation, wanted), keeping.load(self.frames, relation, current)
        self.frames.watch.begin(f"comparing {relation}", new.rows + old.rows)
        plus = _less(new.exact, old.exact) if old.rows else new.exact
        if key:
            columns = [f"`{name}`" for name in plus.columns]
            same = old.exact.join(plus.select(*(f"`{name}`" for name in key)), list(key), "left_semi").select(*columns)
            minus = _less(same, new.exact)  # of two new rows with one key, one of which is there, neither goes: the key is judged later
        else:
            minus = _less(old.exact, new.exact) if replacing and old.rows else old.exact.limit(0)
        return self._settled(plus, minus)

    def few(self, relation: str, current: Source, wanted: Place, most: int) -> Delta | None:
        """What makes a relation equal to a source, by one comparison; None if that are more than `most` rows."""
        from pyspark.sql import functions as F

        new, old = sources.read(self.frames.session, wanted), keeping.load(self.frames, relation, current).exact
        self.frames.watch.begin(f"comparing {relation}")
        columns = [F.col(f"`{name}`") for name in old.columns]
        given = new.select(*columns, F.lit(True).alias("__new"), F.lit(False).alias("__old"), F.col(sources.REFUSED).alias("__bad"))
        there = old.select(*columns, F.lit(False).alias("__new"), F.lit(True).alias("__old"), F.lit(False).alias("__bad"))
        grouped = given.unionAll(there).groupBy(*columns)
        marked = grouped.agg(*(F.bool_or(mark).alias(mark) for mark in ("__new", "__old", "__bad")))
        asked = marked.where((F.col("__new") != F.col("__old")) | F.col("__bad")).limit(most + 1)
        table = self.frames.act(asked.toArrow)
        if pc.any(table["__bad"]).as_py():
            raise self.frames.act(lambda: sources.refusal(self.frames.session, wanted))
        if table.num_rows > most:
            return None
        plus, minus = (table.filter(table[f"__{name}"]).select(list(old.columns)) for name in ("new", "old"))
        return Delta(*(frozenset(keeping.rows_of(self.frames, relation, part)) for part in (plus, minus)))

    def take(
        self,
        relation: str,
        wanted: Place,
        warehouse: str,
        what: str,
        rows: int,
        *,
        key: Sequence[str],
        ordered: bool,
        order: RowOrder = PLAIN,
    ) -> tuple[Written, bool]:
        """Writes the rows of a source, about so many, as a snapshot; says whether a key tells them apart. If it does, none is there twice, which need not be looked at before they are written."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        frames, observation = self.frames, Observation()
        frames.watch.begin(f"writing {relation}", rows)
        observed = sources.read(frames.session, wanted).observe(observation, F.count_if(F.col(sources.REFUSED)).alias("refused"))
        columns = [F.col(f"`{name}`") for name in frames.layout.columns[relation]]
        plain = observed.select(*columns)
        frame = plain if key else plain.distinct()
        if ordered:
            frame = frame.repartitionByRange(rows // PART + 1, *columns).sortWithinPartitions(*columns)
        written: Written = frames.act(lambda: snapshots.write(frame, warehouse, relation, what, order, rows))
        if observation.get["refused"]:
            snapshots.remove(written.location)
            raise frames.act(lambda: sources.refusal(frames.session, wanted))
        is_sorted = [frames.layout.columns[relation][column] for column in order.columns] == list(key)
        if key and (snapshots.twice(written, key) if is_sorted else None) is not False and self.twice(relation, written, key):
            snapshots.remove(written.location)
            return self.take(relation, wanted, warehouse, what, rows, key=(), ordered=ordered, order=order)
        return written, bool(key)

    def twice(self, relation: str, written: Written, key: Sequence[str]) -> bool:
        """Whether several rows that were written have the same values in some columns."""
        layout = self.frames.layout
        frame = snapshots.read(self.frames.session, written, layout.columns[relation], layout.types[relation])
        grouped = frame.groupBy(*(f"`{name}`" for name in key)).count()
        return bool(self.frames.act(grouped.where("count > 1").limit(1).toArrow).num_rows)

    def without(self, relation: str, current: Source, keys: Place, key: Sequence[str]) -> Difference:
        """From what a relation has to what it has without the rows whose `key` a source of keys has."""
        from pyspark import StorageLevel
        from pyspark.sql import functions as F

        self.frames.watch.begin(f"reading keys of {relation}")
        named = sources.read(self.frames.session, keys).distinct().toDF(*key, sources.REFUSED)
        asked, totals = self.frames.settle(named, {"refused": F.count_if(F.col(sources.REFUSED))}, StorageLevel.DISK_ONLY)
        if totals["refused"]:
            raise self.frames.act(lambda: sources.refusal(self.frames.session, keys))
        old = keeping.load(self.frames, relation, current).exact
        columns = [F.col(f"`{name}`") for name in old.columns]
        gone = old.join(asked.drop(sources.REFUSED), list(key), "left_semi").select(*columns)
        return self._settled(old.limit(0), gone)

    def exchange(self, relation: str, current: Source, came: Place, gone: Place) -> Difference:
        """From what a relation has to what it has with the rows of one source, and without those of another."""
        self.frames.watch.begin(f"comparing {relation}")
        old = keeping.load(self.frames, relation, current).exact
        new, lost = (keeping.load(self.frames, relation, side).exact for side in (came, gone))
        return self._settled(_less(new, old), _less(old.join(lost, list(old.columns), "left_semi"), new))

    def rows(self, relation: str, difference: Difference) -> Delta:
        """A difference that is small, here."""
        return Delta(self.collect(relation, difference.plus), self.collect(relation, difference.minus))

    def collect(self, relation: str, frame: DataFrame) -> frozenset[Row]:
        """The rows of a frame, here."""
        return frozenset(keeping.rows_of(self.frames, relation, self.frames.act(frame.toArrow)))

    def write(self, relation: str, frame: DataFrame, warehouse: str, what: str, rows: int = 0, order: RowOrder = PLAIN) -> Written:
        self.frames.watch.begin(f"writing {relation}", rows)
        written: Written = self.frames.act(lambda: snapshots.write(frame, warehouse, relation, what, order, rows))
        return written

    def after(self, relation: str, current: Source, difference: Difference) -> DataFrame:
        """All rows of a relation after a change."""
        old = keeping.load(self.frames, relation, current)
        if not old.rows:
            return difference.plus
        left = _less(old.exact, difference.minus) if difference.gone else old.exact
        return left.unionAll(difference.plus)

    def between(self, before: DataFrame | None, after: DataFrame) -> Difference:
        """What a view gains and loses."""
        self.frames.watch.begin("comparing views")
        if before is None:
            return self._settled(after, after.limit(0))
        return self._settled(_less(after, before), _less(before, after))

    def then(self, relation: str, difference: Difference, later: Delta) -> Difference:
        """A difference and a later change as one, by the law of deltas: what came and went again is in neither part."""
        came, gone = (self.local(relation, list(rows)) for rows in (later.plus, later.minus))
        plus = _less(difference.plus, gone).unionAll(_less(came, difference.minus))
        minus = _less(difference.minus, came).unionAll(_less(gone, difference.plus))
        return self._settled(plus, minus)

    def load(self, relation: str, source: Source) -> Snapshot:
        return keeping.load(self.frames, relation, source)

    def sorted(self, relation: str, snapshot: Snapshot) -> Iterable[Row]:
        """The rows of a relation, here, in the order in which a table takes them fastest."""
        if snapshot.settled is None:
            return sorted(snapshot.tail.plus)
        table = self.frames.act(snapshot.exact.toArrow)
        keys = [(name, "ascending") for name in table.column_names if not pa.types.is_nested(table.schema.field(name).type)]
        return keeping.rows_of(self.frames, relation, table.sort_by(keys) if keys else table)

    def ordered(self, relation: str, snapshot: Snapshot) -> DataFrame:
        """All rows of a relation, sorted, in parts that are not too large to be read one by one."""
        from pyspark.sql import functions as F

        columns = [F.col(f"`{name}`") for name in snapshot.exact.columns]
        return snapshot.exact.repartitionByRange(snapshot.rows // PART + 1, *columns).sortWithinPartitions(*columns)

    def count(self, frame: DataFrame) -> int:
        """How many rows a frame has, all of whose columns are read."""
        self.frames.watch.begin("counting")
        from pyspark.sql import functions as F

        hashed = frame.select(F.xxhash64(*(F.col(f"`{name}`") for name in frame.columns)).alias("hash"))
        row = self.frames.act(hashed.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor("hash").alias("hash")).collect)[0]
        return int(row["rows"])

    def local(self, relation: str, rows: Sequence[Row]) -> DataFrame:
        return self.frames.local(relation, rows)

    def close(self) -> None:
        self.frames.close()

    def _settled(self, plus: DataFrame, minus: DataFrame) -> Difference:
        from pyspark.sql import functions as F

        counts = {"rows": F.count(F.lit(1))}
        plus, came = self.frames.settle(plus, counts)
        minus, gone = self.frames.settle(minus, counts)
        return Difference(plus, minus, came["rows"], gone["rows"])


def _less(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.join(other, list(one.columns), "left_anti")
