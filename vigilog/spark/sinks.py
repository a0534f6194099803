"""Writes relations through Spark."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vigilog.core.errors import DataError
from vigilog.core.schema import PRESENT
from vigilog.core.values import Type
from vigilog.files.place import Place
from vigilog.files.reader import NULLARY
from vigilog.files.writer import line_writer, unwritable
from vigilog.spark.session import cause
from vigilog.spark.types import TIMESTAMP_PATTERN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_BROKEN = "VIGILOG_LINE_DOES_NOT_READ_BACK"
_HEADER = "__header"
_NO_DAY = "VIGILOG_DAY_THAT_ORC_DOES_NOT_HAVE"


def write(session: SparkSession, frame: DataFrame, place: Place, path: Path | None, *, few: bool = False) -> None:
    """Writes a frame as the place says: to `path`, or, if that is None, to the place's own location. Rows of text are sorted; if they are `few`, in one part."""
    target = place.location if path is None else f"file://{path.absolute()}"
    try:
        if not place.text:
            COLUMNAR[place.format](frame, place, target)
        elif path is None:
            _lines(frame, place, few=few, headed=place.headers).write.mode("overwrite").option("lineSep", "\n").text(target)
        else:
            _one_file(_lines(frame, place, few=few), place, path, few=few)
    except Exception as reason:
        if _BROKEN in cause(reason):
            raise unwritable(place) from None
        if _NO_DAY in cause(reason):
            days = "ORC has no days from 1582-10-05 to 1582-10-14"
            raise DataError(
                f"{place.location}: {place.relation} has a day that cannot be written: {days}; IO=parquet has them", "value"
            ) from None
        raise DataError(f"{place.location}: cannot be written: {cause(reason)}", "unwritable") from None


def _named(frame: DataFrame, place: Place) -> DataFrame:
    return frame.toDF(*place.columns) if place.columns else frame


def _with_days_of_orc(frame: DataFrame, place: Place) -> DataFrame:
    """Fails for days that ORC would silently make others: it has the Julian calendar before 1582-10-15, and Spark no way to tell it otherwise."""
    from pyspark.sql import functions as F

    def checked(name: str) -> Column:
        missing = F.col(f"`{name}`").cast("date").between(F.lit("1582-10-05").cast("date"), F.lit("1582-10-14").cast("date"))
        return F.when(missing, F.raise_error(F.lit(_NO_DAY))).otherwise(F.col(f"`{name}`")).alias(name)

    days = {name for name, type_ in zip(frame.columns, place.types, strict=False) if type_.kind in ("date", "timestamp")}
    return frame.select(*(checked(name) if name in days else F.col(f"`{name}`") for name in frame.columns)) if days else frame


# How what is no text is written.
COLUMNAR: dict[str, Callable[[DataFrame, Place, str], None]] = {
    "parquet": lambda frame, place, target: _named(frame, place).write.mode("overwrite").parquet(target),
    "orc": lambda frame, place, target: _named(_with_days_of_orc(frame, place), place).write.mode("overwrite").orc(target),
    "table": lambda frame, place, target: _named(frame, place).write.mode("overwrite").saveAsTable(target),
}


def in_order(frame: DataFrame, *, few: bool) -> DataFrame:
    """The rows of a frame, sorted. Spark looks at all of them once before it sorts them in several parts; a `few` are one part."""
    return frame.coalesce(1).sortWithinPartitions(*frame.columns) if few else frame.orderBy(*frame.columns)


def _lines(frame: DataFrame, place: Place, *, few: bool, headed: bool = False) -> DataFrame:
    """The lines of a text, sorted; with a header in front they are one part."""
    from pyspark.sql import functions as F

    if not place.columns:
        holds = "{}" if place.format == "json" else f"{_header(place)}\n{NULLARY}" if headed else NULLARY
        return frame.where(F.col(PRESENT)).select(F.lit(holds).alias("line"))
    names = [f"c{i}" for i in range(len(place.columns))]
    frame = frame.toDF(*names)
    if place.format == "json":
        cells = zip(names, place.types, place.columns, strict=True)
        fields = [F.concat(F.lit(f'"{column}": '), _json_cell(type_, F.col(name))) for name, type_, column in cells]
        return in_order(frame, few=few).select(F.concat(F.lit("{"), F.concat_ws(", ", *fields), F.lit("}")).alias("line"))
    line = _line(place, [text_of(type_, F.col(name)) for name, type_ in zip(names, place.types, strict=True)])
    if not headed:
        return in_order(frame, few=few).select(line.alias("line"))
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in frame.schema]
    header = frame.sparkSession.range(1).select(*nothing, F.lit(True).alias(_HEADER))
    both = header.union(frame.select(*names, F.lit(False))).coalesce(1).sortWithinPartitions(F.col(_HEADER).desc(), *names)
    return both.select(F.when(F.col(_HEADER), F.lit(_header(place))).otherwise(line).alias("line"))


def _header(place: Place) -> str:
    return line_writer(place)(place.columns)[:-1]


def _line(place: Place, texts: list[Column]) -> Column:
    """A row's line, its fields quoted if need be; without quotes, a line that would not read back as these fields fails."""
    from pyspark.sql import functions as F

    if place.quoted:
        return F.concat_ws(place.delimiter, *(_quoted(place, text) for text in texts))
    line = F.concat_ws(place.delimiter, *texts)
    reads_back = (F.split(line, re.escape(place.delimiter), -1) == F.array(*texts)) & ~line.rlike("[\r\n]")
    return F.when(reads_back, line).otherwise(F.raise_error(F.lit(_BROKEN)).cast("string"))


def _quoted(place: Place, text: Column) -> Column:
    from pyspark.sql import functions as F

    special = (text == "") | text.rlike('[\r\n"]') | F.contains(text, F.lit(place.delimiter))
    return F.when(special, F.concat(F.lit('"'), F.replace(text, F.lit('"'), F.lit('""')), F.lit('"'))).otherwise(text)


def text_of(type_: Type, cell: Column) -> Column:
    """A value's canonical text. Java's text of a float is not always the shortest, so Python writes those."""
    from pyspark.sql import functions as F

    if type_.kind == "float":
        return F.udf(lambda value: None if value is None else repr(value), "string", useArrow=True)(cell)
    if type_.kind == "timestamp":
        return F.date_format(cell, TIMESTAMP_PATTERN)
    if type_.parts:
        return F.udf(_writing(type_, spaced=False), "string", useArrow=True)(cell)
    return cell.cast("string")


def _writing(type_: Type, *, spaced: bool) -> Callable[[Any], str | None]:
    """From a set or tuple of Spark to its JSON text."""

    def write(cell: Any) -> str | None:
        from vigilog.core.arrow import value_of

        read = value_of(type_)
        if cell is None or read is None:
            return None
        return json.dumps(type_.to_json(read(cell)), ensure_ascii=False) if spaced else type_.text(read(cell))

    return write


def _json_cell(type_: Type, cell: Column) -> Column:
    """A value as this process writes it in JSON, too."""
    from pyspark.sql import functions as F

    if type_.parts:
        return F.udf(_writing(type_, spaced=True), "string", useArrow=True)(cell)
    text = text_of(type_, cell)
    if type_.kind in ("number", "unsigned", "float", "boolean"):
        return text
    listed = F.to_json(F.array(text))
    return F.substr(listed, F.lit(2), F.length(listed) - 2)


def _one_file(lines: DataFrame, place: Place, path: Path, *, few: bool) -> None:
    """A `few` lines come here, to be written; of many, Spark writes sorted parts, whose concatenation is the file."""
    header = f"{_header(place)}\n".encode() if place.headers and place.format != "json" else b""
    if few:
        path.write_bytes(header + "".join(f"{line}\n" for line in lines.toArrow()["line"].to_pylist()).encode())
        return
    parts = Path(tempfile.mkdtemp(prefix=".parts-", dir=path.parent))
    try:
        lines.write.mode("overwrite").option("lineSep", "\n").text(f"file://{parts.absolute()}/lines")
        with path.open("wb") as file:
            file.write(header)
            for part in sorted((parts / "lines").glob("part-*")):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, file)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
