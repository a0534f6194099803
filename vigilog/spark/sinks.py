"""Writes relations through Spark."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.schema import PRESENT
from vigilog.core.values import Type
from vigilog.files.place import Place
from vigilog.files.reader import NULLARY
from vigilog.files.writer import unwritable
from vigilog.spark.types import TIMESTAMP_PATTERN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_BROKEN = "VIGILOG_SYMBOL_HOLDS_DELIMITER"


def write(session: SparkSession, frame: DataFrame, place: Place, path: Path | None) -> None:
    """Writes a frame as the place says: to `path`, or, if that is None, to the place's own location. Rows of text are sorted."""
    if place.columns:
        frame = frame.toDF(*place.columns)
    if place.format == "table":
        frame.write.mode("overwrite").saveAsTable(place.location)
        return
    target = place.location if path is None else f"file://{path.absolute()}"
    if place.format in ("parquet", "orc"):
        frame.write.mode("overwrite").format(place.format).save(target)
        return
    lines = _lines(frame, place)
    if path is None:
        lines.write.mode("overwrite").text(target)
    else:
        _one_file(lines, place, path)


def _lines(frame: DataFrame, place: Place) -> DataFrame:
    from pyspark.sql import functions as F

    if not place.columns:
        return frame.where(F.col(PRESENT)).select(F.lit(NULLARY).alias("line"))
    ordered = frame.orderBy(*(F.col(f"`{name}`") for name in place.columns))
    cells = [(F.col(f"`{name}`"), type_) for name, type_ in zip(place.columns, place.types, strict=True)]
    if place.format == "json":
        fields = [_json_cell(type_, cell).alias(name) for (cell, type_), name in zip(cells, place.columns, strict=True)]
        return ordered.select(F.to_json(F.struct(*fields)).alias("line"))
    texts = [_field(place, type_, cell) for cell, type_ in cells]
    return ordered.select(F.concat_ws(place.delimiter, *texts).alias("line"))


def _field(place: Place, type_: Type, cell: Column) -> Column:
    """A cell's text, quoted if need be; a symbol that the file could not hold fails."""
    from pyspark.sql import functions as F

    text = text_of(type_, cell)
    if type_.kind != "symbol":
        return text
    marks = [place.delimiter, "\n", "\r"] + (['"'] if place.quoted else [])
    holds = F.lit(False)
    for mark in marks:
        holds = holds | F.contains(cell, F.lit(mark))
    if place.quoted:
        quoted = F.concat(F.lit('"'), F.replace(cell, F.lit('"'), F.lit('""')), F.lit('"'))
        return F.when(holds | (cell == ""), quoted).otherwise(cell)
    return F.when(holds, F.raise_error(F.lit(_BROKEN)).cast("string")).otherwise(cell)


def text_of(type_: Type, cell: Column) -> Column:
    """A value's canonical text. Java's text of a float is not always the shortest, so Python writes those."""
    from pyspark.sql import functions as F

    if type_.kind == "float":
        return F.udf(lambda value: None if value is None else repr(value), "string", useArrow=True)(cell)
    if type_.kind == "timestamp":
        return F.date_format(cell, TIMESTAMP_PATTERN)
    return cell.cast("string")


def _json_cell(type_: Type, cell: Column) -> Column:
    return text_of(type_, cell) if type_.kind in ("date", "timestamp", "decimal") else cell


def _one_file(lines: DataFrame, place: Place, path: Path) -> None:
    """Spark writes sorted parts; their concatenation is the file."""
    parts = Path(tempfile.mkdtemp(prefix=".parts-", dir=path.parent))
    try:
        try:
            lines.write.mode("overwrite").option("lineSep", "\n").text(f"file://{parts.absolute()}/lines")
        except Exception as reason:
            if _BROKEN in str(reason):
                raise unwritable(place) from None
            raise
        with path.open("wb") as file:
            if place.headers and place.format != "json":
                file.write((place.delimiter.join(place.columns) + "\n").encode())
            for part in sorted((parts / "lines").glob("part-*")):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
