"""Snapshots of large relations: Parquet, written by Spark, at a known transaction. They never change; a new one takes the place of the old."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
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

DONE = "_SUCCESS"  # what Spark writes last
SPOOLED_ROWS = 50_000  # of those that go from this process to Spark, so many are in memory at once


@dataclass(frozen=True)
class Written:
    """A snapshot, or a large change, as the file of the database knows it."""

    location: str
    rows: int


@dataclass(frozen=True)
class Spooled(Written):
    """Rows that were written on this machine for a while: they are removed when nobody has this object any more."""

    def __post_init__(self) -> None:
        weakref.finalize(self, shutil.rmtree, self.location, ignore_errors=True)


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


def write(frame: DataFrame, warehouse: str, relation: str, what: str) -> Written:
    """Writes the rows of a frame into a new folder of the warehouse; gives it with their number. One action."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    location = f"{warehouse.rstrip('/')}/{relation}/{what}-{secrets.token_hex(8)}"
    counted = Observation()
    try:
        frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.parquet(location, compression="zstd")
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
