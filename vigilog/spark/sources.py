"""Reads relations through Spark: text, CSV, JSON lines, Parquet, ORC, catalog tables.

A source becomes a frame with the relation's columns and one more, `REFUSED`, which marks rows that no relation may hold: nulls, texts that are no
number, lines with a column too many. Whoever settles the frame counts these, and if there are any asks `refusal` for the reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError
from vigilog.core.schema import PRESENT, distinct
from vigilog.core.values import Row
from vigilog.files import reader
from vigilog.files.place import Place
from vigilog.files.reader import NULLARY
from vigilog.spark import cells
from vigilog.spark.session import session as start_session
from vigilog.spark.values import from_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REFUSED = "__refused"
_LINE_OK, _FILE, _ROW = "__line_ok", "__file", "__row"


def read(session: SparkSession, place: Place) -> DataFrame:
    """The rows of a source, lazily: the relation's columns under their SQL names, and `REFUSED`."""
    from pyspark.sql import functions as F

    raw = _raw(session, place)
    parsed = _parsed(place)
    if place.skip_nulls:
        raw = raw.where(_all(~cell.null for cell in parsed))
    names = distinct(place.columns).values()
    columns = [cell.value.alias(name) for cell, name in zip(parsed, names, strict=True)] or [F.lit(True).alias(PRESENT)]
    return raw.select(*columns, (~_all([F.col(_LINE_OK), *(cell.good for cell in parsed)])).alias(REFUSED))


def rows(place: Place) -> Iterator[Row]:
    """The rows of a source that only Spark can read, for the embedded executor."""
    session = start_session()
    table = read(session, place).toArrow()
    if any(table[REFUSED].to_pylist()):
        raise refusal(session, place)
    if not place.columns:
        return iter([()] * min(1, table.num_rows))
    return from_arrow(place.types, table.drop_columns([REFUSED]))


def refusal(session: SparkSession, place: Place) -> DataError:
    """Why a source is refused: what is wrong with its first bad row, and where that is."""
    from pyspark.sql import functions as F

    if place.text and place.local:
        try:
            for _ in reader.rows(place):
                pass
        except DataError as reason:
            return reason
    parsed = _parsed(place)
    raw = _raw(session, place).where(~_all([F.col(_LINE_OK), *(cell.good for cell in parsed)]))
    flags = [cell.good.alias(f"good{i}") for i, cell in enumerate(parsed)] + [cell.null.alias(f"null{i}") for i, cell in enumerate(parsed)]
    texts = [cell.text.alias(f"text{i}") for i, cell in enumerate(parsed)]
    row = raw.select(_FILE, _ROW, _LINE_OK, *flags, *texts).limit(1).collect()[0]
    where = (row[_FILE] or place.location) + ("" if row[_ROW] is None else f", row {row[_ROW] + 1}")
    for index, (column, type_) in enumerate(zip(place.columns, place.types, strict=True)):
        if row[f"null{index}"] and not place.skip_nulls:
            return reader.null_error(where, place, column)
        if not row[f"good{index}"]:
            return DataError(
                f"{where}: column {column} of {place.relation}: {row[f'text{index}']!r} is not a {type_}: {type_.form}", "value"
            )
    return DataError(f"{where}: a line does not have the {len(place.columns)} columns of {place.relation}, or is not UTF-8", "columns")


def _parsed(place: Place) -> list[cells.Cell]:
    from pyspark.sql import functions as F

    parse = {"json": cells.from_variant, "parquet": cells.from_column, "orc": cells.from_column, "table": cells.from_column}
    return [parse.get(place.format, cells.from_text)(type_, F.col(f"r{i}")) for i, type_ in enumerate(place.types)]


# -- raw cells: r0, r1, … as the source has them


def _raw(session: SparkSession, place: Place) -> DataFrame:
    from pyspark.errors import AnalysisException

    if place.local and place.format != "table":
        reader.files(place)  # says what is wrong with a path better than Spark does
    try:
        if place.format == "json":
            return _json_lines(session, place)
        if place.format in ("parquet", "orc", "table"):
            return _columnar(session, place)
        if place.headers or place.quoted:
            return _csv(session, place)
        return _lines(session, place)
    except AnalysisException as reason:
        raise DataError(f"{place.location}: cannot be read for {place.relation}: {str(reason).split(chr(10))[0]}", "unreadable") from None


def _lines(session: SparkSession, place: Place) -> DataFrame:
    from pyspark.sql import functions as F

    text = _text(session, place)
    width = len(place.columns)
    fields = F.split("value", "\\Q" + place.delimiter + "\\E", -1) if width > 1 else F.array("value")
    split = text.select("value", fields.alias("fields"), _FILE, _ROW)
    good = F.size("fields") == width if width else F.col("value") == NULLARY
    raw = [F.get("fields", F.lit(i)).alias(f"r{i}") for i in range(width)]
    return split.select(*raw, (good & F.is_valid_utf8("value")).alias(_LINE_OK), _FILE, _ROW)


def _text(session: SparkSession, place: Place) -> DataFrame:
    """Lines without their line ends; Spark keeps invalid bytes, so they can still be told."""
    from pyspark.sql import functions as F

    read_ = session.read.option("lineSep", "\n").text(uri(place))
    line = F.when(F.endswith("value", F.lit("\r")), F.expr("left(value, char_length(value) - 1)")).otherwise(F.col("value"))
    return read_.select(line.alias("value"), *_metadata(place))


def _csv(session: SparkSession, place: Place) -> DataFrame:
    """Quoted fields and header lines are the CSV reader's; bytes are read as Latin-1 so that invalid UTF-8 is not lost."""
    from pyspark.sql import functions as F

    width = max(len(place.columns), 1)
    schema = ", ".join([*(f"b{i} string" for i in range(width)), "corrupt string"])
    options = {
        "sep": place.delimiter.encode().decode("latin-1"),
        "header": str(place.headers).lower(),
        "quote": '"' if place.quoted else "",
        "escape": '"' if place.quoted else "",
        "multiLine": str(place.quoted).lower(),
        "encoding": "ISO-8859-1",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "corrupt",
        "enforceSchema": "true",
        "maxColumns": "100000",
    }
    read_ = session.read.options(**options).schema(schema).csv(uri(place))
    raw = [F.encode(F.coalesce(f"b{i}", F.lit("")), "ISO-8859-1").cast("string").alias(f"r{i}") for i in range(width)]
    valid = _all(F.is_valid_utf8(f"r{i}") for i in range(width))
    split = read_.select(*raw, F.col("corrupt").isNull().alias("whole"), *_metadata(place))
    good = F.col("whole") & valid & (F.lit(True) if place.columns else F.col("r0") == NULLARY)
    return split.select(*(f"r{i}" for i in range(len(place.columns))), good.alias(_LINE_OK), _FILE, _ROW)


def _json_lines(session: SparkSession, place: Place) -> DataFrame:
    from pyspark.sql import functions as F

    text = _text(session, place).where(F.trim("value") != "")
    parsed = text.select(F.try_parse_json("value").alias("v"), F.is_valid_utf8("value").alias("valid"), _FILE, _ROW)
    good = F.col("valid") & F.col("v").isNotNull() & F.startswith(F.schema_of_variant("v"), F.lit("OBJECT"))
    raw = [F.try_variant_get("v", f"$.{column}", "variant").alias(f"r{i}") for i, column in enumerate(place.columns)]
    return parsed.select(*raw, F.coalesce(good, F.lit(False)).alias(_LINE_OK), _FILE, _ROW)


def _columnar(session: SparkSession, place: Place) -> DataFrame:
    from pyspark.sql import functions as F

    frame = session.table(place.location) if place.format == "table" else getattr(session.read, place.format)(uri(place))
    there = {name: name for name in frame.columns}
    folded = {name.lower(): name for name in frame.columns}
    found = [there.get(column) or folded.get(column.lower()) for column in place.columns]
    if None in found:
        missing = ", ".join(column for column, name in zip(place.columns, found, strict=True) if name is None)
        raise DataError(
            f"{place.location}: has no column {missing} for {place.relation}; its columns are {', '.join(frame.columns)}", "columns"
        )
    for column, name, type_ in zip(place.columns, found, place.types, strict=True):
        kind = frame.schema[str(name)].dataType.simpleString()
        if not cells.fits(type_, kind):
            raise DataError(
                f"{place.location}: column {column} of {place.relation} is a {type_}, but the source has a {kind} there", "type"
            )
    raw = [F.col(f"`{name}`").alias(f"r{i}") for i, name in enumerate(found)]
    return frame.select(*raw, F.lit(True).alias(_LINE_OK), *_metadata(place))


def _metadata(place: Place) -> list[Column]:
    from pyspark.sql import functions as F

    file = F.lit(None).cast("string") if place.format == "table" else F.col("_metadata.file_path")
    row = F.col("_metadata.row_index") if place.format == "parquet" else F.lit(None).cast("bigint")
    return [file.alias(_FILE), row.alias(_ROW)]


def uri(place: Place) -> str:
    """The location as Spark takes it: a local path is absolute, with characters that Spark would expand escaped."""
    if not place.local:
        return place.location
    path = str(_visible(place.path.absolute()))
    return "file://" + "".join(f"\\{character}" if character in "[]{}*?\\" else character for character in path)


def _visible(path: Path) -> Path:
    """Spark takes no notice of files whose names begin with `_` or `.`; such a one is read under another name."""
    if path.name[0] not in "._":
        return path
    other = Path(tempfile.mkdtemp(prefix="vigilog-")) / f"file{path.name}"
    other.symlink_to(path)
    return other


def _all(conditions: Iterable[Column]) -> Column:
    from pyspark.sql import functions as F

    return reduce(lambda left, right: left & right, (F.coalesce(condition, F.lit(False)) for condition in conditions), F.lit(True))
