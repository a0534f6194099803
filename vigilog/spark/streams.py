"""Streams: Spark finds the files that are new in a folder, in order, and remembers them; what is in them is read as any source is.

A row says what is to be done with it in a column of its own, or is inserted. All of them come here in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.arrow import from_arrow
from vigilog.core.errors import DataError, UsageError
from vigilog.core.values import SYMBOL
from vigilog.files import events
from vigilog.files.events import OPERATION, OPERATIONS, Line, Operation
from vigilog.files.place import Place
from vigilog.spark import delta, sources
from vigilog.spark.cells import Cell
from vigilog.spark.session import cause, is_remote, session
from vigilog.spark.sources import LINE_OK, REFUSED, ROW, every
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

MOST_FILES = "100"  # that one batch reads, unless stated otherwise
_FILES = "path string, modificationTime timestamp, length bigint, content binary"
_ORDER, _NUMBER = "__order", "__number"
_ONE_PARTITION = 1 << 33
_BLANK: dict[str, str | bool] = {"symbol": "", "boolean": False, "date": "1970-01-01", "timestamp": "1970-01-01"}

OnBatch = Callable[[int, list[str]], None]


def follow(place: Place, checkpoint: Path, on_batch: OnBatch, *, once: bool) -> StreamingQuery:
    """Starts to follow a folder: `on_batch` gets the number of each batch and its files. With `once`, it ends when all that is there now was read."""
    spark = session()
    if is_remote(spark):
        raise UsageError("a stream needs a Spark session of this process: through Spark Connect its batches do not reach it")
    if place.local and not place.path.is_dir():
        raise missing(place)

    def batch(frame: DataFrame, number: int) -> None:
        on_batch(number, [path for _, path in sorted((row["modificationTime"], row["path"]) for row in frame.collect())])

    try:
        new = spark.readStream.format("binaryFile").schema(_FILES).option("maxFilesPerTrigger", place.options.get("max_files", MOST_FILES))
        writer = new.load(sources.uri(place)).select("path", "modificationTime").writeStream.foreachBatch(batch)
        writer = writer.option("checkpointLocation", checkpoint.absolute().as_uri())
        timed = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=f"{place.options.get('every', 1)} seconds")
        return timed.start()
    except Exception as reason:
        raise DataError(f"{place.location}: cannot be followed for {place.relation}: {cause(reason)}", "unreadable") from None


def catch_up(query: StreamingQuery) -> None:
    """Waits until all that is there now was read, or the query has failed, which `query.exception()` tells."""
    with suppress(Exception):
        query.processAllAvailable()


def missing(place: Place) -> DataError:
    return DataError(f"{place.location}: cannot be followed for {place.relation}: there is no such folder", "unreadable")


def from_files(place: Place, key: Sequence[int], paths: Sequence[str]) -> list[Operation]:
    """What the rows of some files say, in their order. Raises DataError if a file is not there, or one of its rows is refused."""
    files = [replace(place, format=place.options["format"], location=_plain(path)) for path in paths]
    if place.options["format"] == "debezium":
        return [operation for file in files for operation in events.operations(file, key, _lines(file))]
    judged = []
    for file in files:
        part = _with_operation(replace(file, options={}), place.options.get(OPERATION), key)
        judged.append((part, sources.raw(session(), part.place)))
    return _collected(place, judged)


def from_version(place: Place, version: int) -> list[Operation]:
    """What a version of a Delta table brought and took."""
    part = _Part(_widened(replace(place, format="delta"), delta.CHANGE), (), (*delta.COMES, *delta.GOES), operated=True, required=True)
    kinds = dict.fromkeys(delta.COMES, "insert") | dict.fromkeys(delta.GOES, "delete")
    rows = _collected(place, [(part, sources.columnar(part.place, delta.changes(session(), place, version)))])
    return [(kinds[operation], row) for operation, row in rows]


def _lines(file: Place) -> Iterator[Line]:
    """The lines of a file, wherever it is."""
    if file.local:
        yield from events.lines(file)
        return
    try:
        table = session().read.option("lineSep", "\n").text(file.location).toArrow()
    except Exception as reason:
        raise sources.unreadable(file, reason) from None
    for number, line in enumerate(table["value"].to_pylist(), start=1):
        yield f"{file.location}:{number}", line


def _plain(path: str) -> str:
    """A local path as such; Spark calls it `file:/…`."""
    return path.removeprefix("file:").replace("//", "/") if path.startswith("file:") else path


# -- rows and their operations


@dataclass(frozen=True)
class _Part:
    """One file of a batch: its place has one more column, the last, if its rows have operations."""

    place: Place
    key: Sequence[int]
    operations: Sequence[str]
    operated: bool
    required: bool  # whether every row must say its operation

    def judged(self) -> tuple[list[Cell], Column, Column, Column]:
        """The cells of a row, its operation, whether it is to be skipped, whether it is refused."""
        from pyspark.sql import functions as F

        cells = sources.parsed(self.place)
        values, told = (cells[:-1], cells[-1]) if self.operated else (cells, None)
        operation, allowed = F.lit("insert"), F.lit(True)
        if told is not None:
            operation = F.coalesce(told.value, F.lit("insert"))
            allowed = told.value.isin(*self.operations) | (told.null & F.lit(not self.required))
        gone = F.lit(False)
        if self.place.absent:  # of a column that is null there is no row: an upsert takes away the one that there was
            gone = values[self.place.columns.index(self.place.absent)].null
            operation = F.when(gone & (operation == "upsert"), F.lit("delete_key")).otherwise(operation)
        by_key = every([operation == "delete_key", *(values[column].good for column in self.key)])
        skipped = every([F.col(LINE_OK), F.lit(self.place.skip_nulls) | gone, ~by_key]) & ~every(~cell.null for cell in values)
        refused = ~every([F.col(LINE_OK), allowed, every(cell.good for cell in values) | by_key])
        return cells, operation, skipped, refused

    def read(self, raw: DataFrame, order: int) -> DataFrame:
        from pyspark.sql import functions as F

        cells, operation, skipped, refused = self.judged()
        values = []
        for i, (cell, type_) in enumerate(zip(cells[: len(cells) - self.operated], self.place.types, strict=False)):
            blank = F.lit(None if type_.parts else _BLANK.get(type_.kind, 0)).cast(
                spark_type(type_)
            )  # a key alone says nothing of the other columns
            values.append((cell.value if i in self.key else F.when(operation == "delete_key", blank).otherwise(cell.value)).alias(f"v{i}"))
        numbers = [F.lit(order).alias(_ORDER), F.monotonically_increasing_id().alias(_NUMBER)]
        kept = raw.select(*raw.columns, *numbers).where(~skipped)
        return kept.select(_ORDER, _NUMBER, refused.alias(REFUSED), operation.alias(OPERATION), *values)

    def refusal(self, raw: DataFrame) -> DataError:
        """What is wrong with the first row that is refused."""
        from pyspark.sql import functions as F

        cells, operation, skipped, refused = self.judged()
        number = F.monotonically_increasing_id()
        row = F.coalesce(F.col(ROW), F.when(number < _ONE_PARTITION, number)).alias(ROW)
        first = raw.select(*(name for name in raw.columns if name != ROW), row, number.alias(_NUMBER)).where(~skipped & refused)
        return sources.told(self.place, first.orderBy(_NUMBER).limit(1), cells, operation=operation, operations=self.operations)


def _with_operation(place: Place, stated: str | None, key: Sequence[int]) -> _Part:
    """A file, with the column of its operations if it has one."""
    column = stated or OPERATION
    if stated is None and (column in place.columns or not (place.headers or place.format != "csv")):
        return _Part(place, key, OPERATIONS, operated=False, required=False)
    wide = _widened(place, column)
    operated = stated is not None or place.format == "json" or sources.has_columns(session(), wide)
    return _Part(wide if operated else place, key, OPERATIONS, operated=operated, required=stated is not None)


def _widened(place: Place, column: str) -> Place:
    source = (*place.source, column) if place.source else ()
    return replace(place, columns=(*place.columns, column), types=(*place.types, SYMBOL), source=source)


def _collected(place: Place, parts: Sequence[tuple[_Part, DataFrame]]) -> list[Operation]:
    """The rows of all parts, in order, each with its operation."""
    if not parts:
        return []
    frames = [part.read(raw, order) for order, (part, raw) in enumerate(parts)]
    try:
        table = reduce(lambda left, right: left.unionAll(right), frames).toArrow().sort_by([(_ORDER, "ascending"), (_NUMBER, "ascending")])
        for order, refused in zip(table[_ORDER].to_pylist(), table[REFUSED].to_pylist(), strict=True):
            if refused:
                part, raw = parts[order]
                raise part.refusal(raw)
    except DataError:
        raise
    except Exception as reason:
        raise sources.unreadable(place, reason) from None
    operations = table[OPERATION].to_pylist()
    values = table.drop_columns([_ORDER, _NUMBER, REFUSED, OPERATION])
    rows = from_arrow(place.types, values) if place.columns else iter([()] * table.num_rows)
    return list(zip(operations, rows, strict=True))
