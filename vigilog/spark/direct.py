"""Reads Parquet files of this machine, and Iceberg tables, without Spark: where their rows are few, and cannot be refused. What is not so plain is left to Spark, which means the same by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.values import Row
from vigilog.files import reader
from vigilog.files.place import Place

if TYPE_CHECKING:
    import pyarrow as pa

PLAIN = ("number", "symbol", "boolean")  # kinds all of whose values there can be columns of files


def rows(place: Place, most: int) -> Iterator[Row] | None:
    """The distinct rows of a source, in the order in which a table takes them fastest; None if there are more than `most`, or if Spark is needed to judge them."""
    table = _table(place, most)
    if table is None:
        return None
    from vigilog.core.arrow import from_arrow

    return _distinct(from_arrow(place.types, table.sort_by([(name, "ascending") for name in table.column_names])))


def _distinct(ordered: Iterator[Row]) -> Iterator[Row]:
    before: Row | None = None
    for row in ordered:
        if row != before:
            yield row
        before = row


def _table(place: Place, most: int) -> pa.Table | None:
    plain = all(type_.kind in PLAIN for type_ in place.types) and place.types
    if place.format not in _PARTS or not plain or place.absent or place.blanks or place.skip_nulls:
        return None
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        return None  # nor is there Spark, which says how to install both
    from vigilog.core.arrow import arrow_type

    with suppress(OSError, ValueError):  # of which Arrow's errors are some; Spark will say what is wrong
        parts = _PARTS[place.format](place, most)
        if not parts or not all(_fits(place, part.schema) for part in parts):
            return None
        schema = pa.schema([(name, arrow_type(t)) for name, t in zip(place.columns, place.types, strict=True)])
        table = pa.concat_tables([part.select(list(place.columns)) for part in parts]).cast(schema)
        table.validate(full=True)
        return table if all(_is_good(column) for column in table.columns) else None
    return None


def _parquet(place: Place, most: int) -> list[pa.Table]:
    """The tables of files on this machine; none if they have too many rows, or other columns."""
    import pyarrow.parquet as pq

    parts: list[pa.Table] = []
    left = most
    for path in _files(place) if place.local else ():
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            left -= file.metadata.num_rows
            if left < 0 or not _fits(place, file.schema_arrow):
                return []
            parts.append(file.read(columns=list(place.columns)))
    return parts


def _iceberg(place: Place, most: int) -> list[pa.Table]:
    """The rows of a table; none if these are too many."""
    from vigilog.spark.iceberg import Opened

    opened = Opened(place)
    return [opened.arrow(opened.tasks)] if opened.records <= most else []


_PARTS = {"parquet": _parquet, "iceberg": _iceberg}


def _files(place: Place) -> list[Path]:
    """The files of a source; none if some are in folders of their own, whose names may be values."""
    path = place.path
    deep = path.is_dir() and any(inner.is_dir() and inner.name[0] not in "._" for inner in path.iterdir())
    return [] if deep else reader.files(place)


def _fits(place: Place, schema: pa.Schema) -> bool:
    """Whether a file has the columns under their names, which are told apart however they are written, and with their types."""
    import pyarrow as pa

    names = [name.lower() for name in schema.names]
    if len(names) > len(set(names)) or not set(place.columns) <= set(schema.names):
        return False
    tests = {"number": pa.types.is_signed_integer, "symbol": pa.types.is_string, "boolean": pa.types.is_boolean}
    return all(tests[type_.kind](schema.field(name).type) for name, type_ in zip(place.columns, place.types, strict=True))


def _is_good(column: pa.ChunkedArray) -> bool:
    """Whether no relation would refuse a cell of a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        return False
    return not pa.types.is_string(column.type) or not pc.any(pc.match_substring(column, "\x00")).as_py()
