"""Apache Iceberg tables: their rows, and what changed from one snapshot to another.

The `pyiceberg` package reads a table's catalog and manifests: which files each snapshot has. A snapshot never changes, nor does a file, so what differs between two snapshots is in the files that only one of them
has, or whose deletions differ; no other is read. Spark reads Parquet files by the numbers that columns have in a table, whatever they were called when a file was written; files with deletions beside them, and few
rows, come through this process, as Arrow.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.arrow import plain
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.extras import ICEBERG
from vigilog.core.secrets import without_secrets
from vigilog.files.place import Place
from vigilog.files.reader import null_error
from vigilog.spark.paths import escaped

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot
    from pyspark.sql import DataFrame, SparkSession

CATALOG = ("type", "uri", "warehouse")  # what may be said of a catalog beside its name
FIELD = "parquet.field.id"  # where Spark looks for the number of a column
_SIGN = "__sign"

Tasks = dict[str, "FileScanTask"]  # the files of a snapshot, by their paths


@dataclass(frozen=True)
class Change:
    """The files that only one of two snapshots has, or has in this way, and how many rows were written to them."""

    came: Tasks
    gone: Tasks

    @property
    def records(self) -> int:
        return _records(self.came) + _records(self.gone)


class Opened:
    """A table as it is now, or as a place states that it was, and what a place reads of it."""

    def __init__(self, place: Place) -> None:
        ICEBERG.need(f"{place.relation} is read from {place.location}")
        self.place = place
        with _told(place):
            self.table: Table = _catalog(place).load_table(place.options["name"])
            self.snapshot = self._stated() if "snapshot" in place.options else self.table.current_snapshot()

    def _stated(self) -> Snapshot:
        stated = self.place.options["snapshot"]
        snapshot = self.table.snapshot_by_id(int(stated)) if stated.isdigit() else self.table.snapshot_by_name(stated)
        if snapshot is None:
            hint = did_you_mean(stated, self.table.metadata.refs)
            raise ValueError(f"there is no snapshot {stated}" + (f" ({hint})" if hint else ""))
        return snapshot

    @property
    def uuid(self) -> str:
        return str(self.table.metadata.table_uuid)

    @property
    def newest(self) -> int | None:
        """The number of the snapshot; None of a table that never had one."""
        return None if self.snapshot is None else self.snapshot.snapshot_id

    @cached_property
    def schema(self) -> Schema:
        """The columns that the place reads, or, if one of them is not there, all that are."""
        older = self.snapshot is not None and self.snapshot != self.table.current_snapshot()
        number = self.snapshot.schema_id if older and self.snapshot else None
        whole = self.table.schema() if number is None else self.table.schemas()[number]
        exact = {field.name: field.name for field in whole.fields}
        folded = {name.lower(): name for name in exact}
        names = [exact.get(column) or folded.get(column.lower()) for column in self.place.columns]
        return whole if None in names else whole.select(*(name for name in names if name is not None))

    @property
    def fields(self) -> list[int]:
        """The numbers by which the table knows these columns, whatever they are called."""
        return [field.field_id for field in self.schema.fields]

    @property
    def flat(self) -> bool:
        """Whether no cell is a list or a structure, of which Arrow makes no groups."""
        return all(field.field_type.is_primitive for field in self.schema.fields)

    @cached_property
    def tasks(self) -> Tasks:
        """All files of the snapshot."""
        return self._tasks(self.snapshot)

    def _tasks(self, snapshot: Snapshot | None, without: Collection[str] = ()) -> Tasks:
        from pyiceberg.table import ManifestGroupPlanner

        if snapshot is None:
            return {}
        with _told(self.place):
            wanted = [manifest for manifest in snapshot.manifests(self.table.io) if manifest.manifest_path not in without]
            return {task.file.file_path: task for task in ManifestGroupPlanner(self.table.metadata, self.table.io).plan_files(wanted)}

    @property
    def records(self) -> int:
        """About how many rows the snapshot has: what is deleted beside the files is counted, too."""
        return _records(self.tasks)

    @property
    def rows(self) -> int:
        """How many rows the snapshot has, each as often as it is there."""
        whole, others = _split(self.tasks)
        return _records(whole) + (self.arrow(others).num_rows if others else 0)

    def since(self, before: int | None) -> Change | None:
        """What changed since another snapshot; None if the table has forgotten that one."""
        old = None if before is None else self.table.snapshot_by_id(before)
        if before is not None and old is None:
            return None
        with _told(self.place):
            shared = self._shared(old)
        gone, came = self._tasks(old, shared), self._tasks(self.snapshot, shared)
        same = {path for path in gone.keys() & came.keys() if _deletes(gone[path]) == _deletes(came[path])}
        return Change(*({path: task for path, task in side.items() if path not in same} for side in (came, gone)))

    def _shared(self, old: Snapshot | None) -> set[str]:
        """The manifests that two snapshots have in common, if no file of them can have got, or lost, deletions."""
        from pyiceberg.manifest import ManifestContent

        manifests = [[] if one is None else one.manifests(self.table.io) for one in (old, self.snapshot)]
        deletes = [{each.manifest_path for each in some if each.content == ManifestContent.DELETES} for some in manifests]
        before, now = ({each.manifest_path for each in some} for some in manifests)
        return (before & now) - deletes[0] if deletes[0] == deletes[1] else set()

    def arrow(self, tasks: Tasks) -> pa.Table:
        """The rows of files, in this process."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        with _told(self.place):
            return plain(ArrowScan(self.table.metadata, self.table.io, self.schema, AlwaysTrue()).to_table(tasks.values()))

    def frame(self, session: SparkSession, tasks: Tasks) -> DataFrame:
        """The rows of files, as a frame."""
        whole, others = _split(tasks)
        frames = [self._by_spark(session, whole)] if whole else []
        if others or not whole:
            frames.append(session.createDataFrame(self.arrow(others)))
        return reduce(lambda one, other: one.unionAll(other), frames)

    def _by_spark(self, session: SparkSession, tasks: Tasks) -> DataFrame:
        from pyspark.sql.types import StructField, StructType

        schema = session.createDataFrame(self.arrow({})).schema
        fields = [
            StructField(field.name, field.dataType, True, {FIELD: number}) for field, number in zip(schema.fields, self.fields, strict=True)
        ]
        session.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
        return session.read.schema(StructType(fields)).parquet(*map(_as_spark_has_it, tasks))

    def ensure_no_nulls(self) -> None:
        """Raises DataError for a null that the statistics of a file tell, and that a relation cannot hold."""
        strict = {} if self.place.skip_nulls else dict(zip(self.fields, self.place.columns, strict=False))
        for path, task in self.tasks.items():
            counts = {} if task.delete_files else task.file.null_value_counts or {}
            for number, column in strict.items():
                if counts.get(number) and column not in self.place.lenient:
                    raise null_error(path, self.place, column)


def read(session: SparkSession, place: Place) -> DataFrame:
    """The rows of a table, as it is now or at the snapshot that is asked for."""
    opened = Opened(place)
    return opened.frame(session, opened.tasks)


def net(came: pa.Table, gone: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that came oftener than they went, and those that went oftener.

    >>> came, gone = net(pa.table({"x": [1, 2, 2, 3]}), pa.table({"x": [2, 3, 4]}))
    >>> came["x"].to_pylist(), gone["x"].to_pylist()
    ([1, 2], [4])
    """
    if not gone.num_rows or not came.num_rows:
        return came, gone
    signed = [side.append_column(_SIGN, pa.array([sign] * side.num_rows, pa.int8())) for side, sign in ((came, 1), (gone, -1))]
    summed = pa.concat_tables(signed).group_by(came.column_names).aggregate([(_SIGN, "sum")]).sort_by(came.column_names[0])
    sums = summed[f"{_SIGN}_sum"]
    rows = summed.select(came.column_names)
    return rows.filter(pc.greater(sums, 0)), rows.filter(pc.less(sums, 0))


def _split(tasks: Tasks) -> tuple[Tasks, Tasks]:
    """The files that Spark can read as they are, and the others."""
    whole = {path: task for path, task in tasks.items() if not task.delete_files and task.file.file_format == "PARQUET"}
    return whole, {path: task for path, task in tasks.items() if path not in whole}


def _records(tasks: Tasks) -> int:
    return sum(task.file.record_count for task in tasks.values())


def _deletes(task: FileScanTask) -> frozenset[tuple[str, int | None]]:
    """What is deleted from a file, by the names of the files that say so; of a file with several, by its place in it."""
    return frozenset((each.file_path, getattr(each, "content_offset", None)) for each in task.delete_files)


def _as_spark_has_it(path: str) -> str:
    """The address of a file: a local one with the characters escaped that Spark would expand."""
    if path.startswith(("/", "file:")):
        return escaped(Path("/" + path.removeprefix("file:").lstrip("/")))
    return path


def _catalog(place: Place) -> Catalog:
    return _loaded(place.options.get("catalog", ""), tuple((key, place.options[key]) for key in CATALOG if key in place.options))


@lru_cache(maxsize=16)
def _loaded(name: str, stated: tuple[tuple[str, str], ...]) -> Catalog:
    from pyiceberg.catalog import load_catalog

    return load_catalog(name or None, **dict(stated))


@contextmanager
def _told(place: Place) -> Iterator[None]:
    """What a catalog, or a file, has against being read is told of the place."""
    try:
        yield
    except DataError:
        raise
    except Exception as reason:
        message = without_secrets(str(reason).split("\n")[0])[:400]
        raise DataError(f"{place.location}: cannot be read for {place.relation}: {message}", "unreadable") from None
