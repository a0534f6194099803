"""Snapshots of large relations: Parquet, written by Spark, at a known transaction. They never change; a new one takes the place of the old."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.files.place import is_uri
from vigilog.spark.session import cause, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from vigilog.spark.indexed import Lazily

FILTERED_ROWS = 200_000  # so many values are expected in a part of a file for which there is a filter
DONE = "_SUCCESS"  # what Spark writes last
SPOOLED_ROWS = 50_000  # of those that go from this process to Spark, so many are in memory at once


@dataclass(frozen=True)
class RowOrder:
    """Rows are sorted by `columns`, and there are filters for the `filtered` ones."""

    columns: tuple[int, ...] = ()
    filtered: tuple[int, ...] = ()


PLAIN = RowOrder()


@dataclass(frozen=True)
class Written:
    """A snapshot, or a large change, as the file of the database knows it."""

    location: str
    rows: int


@dataclass(frozen=True)
class Spooled(Written):
    """Rows that were written on this machine for a while, in a folder of their own: it is removed when nobody has this object any more."""

    root: str = ""

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.root or self.location, ignore_errors=True)


def spool(columns: Sequence[str], types: Sequence[Type], rows: Iterable[Row]) -> Spooled:
    """Distinct rows of this process as Spark on this machine reads them, without ever having all of them in memory."""
    import pyarrow.parquet as pq

    from vigilog.core.arrow import arrow_schema, to_arrow

    location, given, number = tempfile.mkdtemp(prefix="vigilog-"), iter(rows), 0
    try:
        with pq.ParquetWriter(Path(location) / "part-0.parquet", arrow_schema(columns, types)) as file:
            while part := list(islice(given, SPOOLED_ROWS)):
                file.write_table(to_arrow(columns, types, part))
                number += len(part)
        (Path(location) / DONE).touch()
    except OSError as reason:
        shutil.rmtree(location, ignore_errors=True)
        raise DataError(f"{location} cannot be written ({reason.strerror or reason}); nothing was changed", "disk") from None
    return Spooled(location, number)


def spooled(frame: DataFrame) -> Spooled:
    """The rows of a frame as files of this machine, for a while. One action."""
    root = tempfile.mkdtemp(prefix="vigilog-")
    try:
        written = write(frame, root, "rows", "spooled")
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    return Spooled(written.location, written.rows, root)


def write(frame: DataFrame, warehouse: str, relation: str, what: str, order: RowOrder = PLAIN, rows: int = 0) -> Written:
    """Writes the rows of a frame, about so many, into a new folder of the warehouse; gives it with their number. One action. Each file has its rows in an order."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    location = f"{warehouse.rstrip('/')}/{relation}/{what}-{secrets.token_hex(8)}"
    counted = Observation()
    try:
        observed = frame.observe(counted, F.count(F.lit(1)).alias("rows"))
        if order.columns:
            observed = observed.sortWithinPartitions(*(F.col(f"`{frame.columns[column]}`") for column in order.columns))
        writer = observed.write.option("parquet.bloom.filter.fpp", "0.01")
        for column in order.filtered:
            named = frame.columns[column]
            writer = writer.option(f"parquet.bloom.filter.enabled#{named}", "true")
            writer = writer.option(f"parquet.bloom.filter.expected.ndv#{named}", str(max(1_000, min(rows, FILTERED_ROWS))))
        writer.parquet(location, compression="zstd")
    except Exception as reason:
        remove(location)
        raise DataError(f"{location} cannot be written: {cause(reason)}; nothing was changed", "spark") from None
    return Written(location, int(counted.get["rows"]))


def write_table(table: pa.Table, warehouse: str, relation: str, what: str) -> Written:
    """Writes the rows of a table into a new folder of the warehouse: by this process, if it is on this machine."""
    if is_uri(warehouse):
        return write(session().createDataFrame(table), warehouse, relation, what)
    import pyarrow.parquet as pq

    location = Path(warehouse) / relation / f"{what}-{secrets.token_hex(8)}"
    try:
        location.mkdir(parents=True)
        pq.write_table(table, location / "part-0.parquet")
        (location / DONE).touch()
    except OSError as reason:
        remove(str(location))
        raise DataError(f"{location} cannot be written ({reason.strerror or reason}); nothing was changed", "disk") from None
    return Written(str(location), table.num_rows)


def read(session: SparkSession, written: Written, columns: Sequence[str], types: Sequence[Type]) -> DataFrame:
    """The rows of a snapshot. Raises DataError if it is not whole."""
    if not is_uri(written.location) and not (Path(written.location) / DONE).exists():
        raise DataError(
            f"the snapshot {written.location} is missing or was not written to its end; restore a backup (vigilog restore)", "damaged"
        )
    try:
        frame = session.read.option("parquet.page.verify-checksum.enabled", "true").parquet(written.location)
    except Exception as reason:
        raise DataError(
            f"the snapshot {written.location} cannot be read: {cause(reason)}; restore a backup (vigilog restore)", "damaged"
        ) from None
    if frame.columns != list(columns):
        raise DataError(f"the snapshot {written.location} has the columns {', '.join(frame.columns)}, not {', '.join(columns)}", "damaged")
    return frame


def read_rows(types: Sequence[Type], location: str) -> Iterator[Row]:
    """The rows of what Spark wrote, in this process; if it is on this machine, without Spark, and few at a time. Raises DataError if they are not what was written."""
    from vigilog.core.arrow import from_arrow

    try:
        for table in _tables(location):
            yield from from_arrow(types, table) if types else [()] * table.num_rows
    except Exception as reason:
        raise DataError(f"{location} cannot be read: {cause(reason)}; restore a backup (vigilog restore)", "damaged") from None


def _tables(location: str) -> Iterator[pa.Table]:
    import pyarrow as pa

    if not is_uri(location):
        yield from (pa.Table.from_batches([batch]) for batch in batches(location))
        return
    reading = session().read.option("parquet.page.verify-checksum.enabled", "true")
    for part in sorted(reading.parquet(location).inputFiles()):
        yield reading.parquet(part).toArrow()


def batches(location: str) -> Iterator[pa.RecordBatch]:
    """What was written on this machine, few rows at a time."""
    import pyarrow.parquet as pq

    if not (Path(location) / DONE).exists():
        raise FileNotFoundError(f"there is no {DONE}")
    for path in sorted(Path(location).glob("*.parquet")):
        with pq.ParquetFile(path, page_checksum_verification=True, coerce_int96_timestamp_unit="us") as file:
            yield from file.iter_batches()


def twice(written: Written, columns: Sequence[str]) -> bool | None:
    """Whether several rows of what was written have the same values in the columns by which its files are sorted; None if that is not to be seen here, since files of other machines, or with overlapping parts, have them."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if is_uri(written.location):
        return None
    ranges: list[tuple[Row, Row]] = []
    for path in sorted(Path(written.location).glob("*.parquet")):
        first: Row | None = None
        last: Row | None = None
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=list(columns)):
                ends = [tuple(column[place].as_py() for column in batch.columns) for place in (0, -1)] if batch.num_rows else []
                same = reduce(pc.and_, (pc.equal(column[1:], column[:-1]) for column in batch.columns))
                if pc.any(same).as_py() or (ends and ends[0] == last):
                    return True
                first, last = (first or ends[0], ends[1]) if ends else (first, last)
        if first is not None and last is not None:
            ranges.append((first, last))
    ranges.sort()
    return None if any(before[1] >= after[0] for before, after in pairwise(ranges)) else False


def indexed(types: Sequence[Type], written: Written) -> Lazily | None:
    """The rows of what was written, to be looked up in this process; None if it is not on this machine."""
    if is_uri(written.location) or not types:
        return None
    from vigilog.spark.indexed import IndexedRows, Lazily

    return Lazily(lambda: IndexedRows(types, batches(written.location), Path(written.location)))


def folders(warehouse: str, relation: str, what: str) -> list[str]:
    """What was written for a relation, or for all (`*`), if the warehouse is on this machine."""
    return [] if is_uri(warehouse) else [str(folder) for folder in Path(warehouse).glob(f"{relation}/{what}-*")]


def remove(location: str) -> None:
    """Removes what is not needed any more; on other file systems than this machine's it is left to whoever cares for them."""
    if not is_uri(location):
        shutil.rmtree(location, ignore_errors=True)
        with suppress(OSError):  # others are there
            Path(location).parent.rmdir()
