"""Reads relations through Spark: text, CSV, JSON lines, Parquet, ORC, catalog tables, databases, Delta tables.

A source becomes a frame with the relation's columns and one more, `REFUSED`, which marks rows that no relation may hold: nulls, texts that are no
number, lines with a column too many. Whoever settles the frame counts these, and if there are any asks `refusal` for the reason.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, reduce
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from vigilog.core.arrow import from_arrow
from vigilog.core.errors import DataError
from vigilog.core.schema import PRESENT, distinct
from vigilog.core.values import Row, Type
from vigilog.files import reader
from vigilog.files.place import Place
from vigilog.files.reader import NULLARY, Order
from vigilog.spark import cells, delta, iceberg, jdbc
from vigilog.spark.paths import escaped
from vigilog.spark.session import cause
from vigilog.spark.session import session as start_session

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

REFUSED = "__refused"
MOST_ASKED = 1_000  # files whose numbers of rows are looked up
LOOKED_AT = 1_000  # rows that a first look is at
LINE_OK, ROW = "__line_ok", "__row"
_FILE = "__file"
_START, _NUMBER = "__start", "__number"


def read(session: SparkSession, place: Place) -> DataFrame:
    """The rows of a source, lazily: the relation's columns under their SQL names, and `REFUSED`."""
    from pyspark.sql import functions as F

    cells_, parts, refused = _judged(session, place)
    names = distinct(place.columns).values()
    columns = [cell.value.alias(name) for cell, name in zip(parts, names, strict=True)] or [F.lit(True).alias(PRESENT)]
    return cells_.select(*columns, refused.alias(REFUSED))


def rows(place: Place) -> Iterator[Row]:
    """The rows of a source that only Spark can read, for the embedded executor."""
    session = start_session()
    frame = read(session, place)
    try:
        table = frame.toArrow()
    except Exception as reason:
        raise unreadable(place, reason) from None
    if any(table[REFUSED].to_pylist()):
        raise refusal(session, place)
    if not place.columns:
        return iter([()] * min(1, table.num_rows))
    return from_arrow(place.types, table.drop_columns([REFUSED]))


def expected(place: Place) -> int:
    """About how many rows a source says that it has: an Iceberg table, or Parquet files on this machine, if they are not too many to be asked; else 0."""
    if place.format == "iceberg":
        return iceberg.Opened(place).records
    if place.format != "parquet" or not place.local:
        return 0
    import pyarrow.parquet as pq

    paths = list(islice(place.path.rglob("*.parquet"), MOST_ASKED)) if place.path.is_dir() else [place.path]
    try:
        return sum(pq.read_metadata(path).num_rows for path in paths) if len(paths) < MOST_ASKED else 0
    except (OSError, ValueError):  # reading it will say what is wrong
        return 0


def look(place: Place) -> None:
    """A first look, which takes no time to speak of: raises DataError for nulls that a source's statistics tell, or that its first rows have, before long work begins."""
    if place.text:
        for _ in islice(reader.rows(place), LOOKED_AT) if place.local else ():
            pass
    elif place.format == "parquet" and place.local:
        _look_at_parquet(place)
    elif place.format == "iceberg":
        iceberg.Opened(place).ensure_no_nulls()
    else:
        session = start_session()
        frame, parts, refused = _judged(session, place)
        first = frame.limit(LOOKED_AT).where(refused).limit(1)
        try:
            bad = bool(first.head(1))
        except Exception as reason:
            raise unreadable(place, reason) from None
        if bad:
            raise told(place, first, parts)


def _look_at_parquet(place: Place) -> None:
    import pyarrow.parquet as pq

    strict = {column.lower(): column for column in place.columns if column not in place.lenient}
    paths = list(islice(place.path.rglob("*.parquet"), MOST_ASKED)) if place.path.is_dir() else [place.path]
    for path in paths if strict and not place.skip_nulls else ():
        try:
            metadata = pq.read_metadata(path)
        except (OSError, ValueError):  # reading it will say what is wrong
            continue
        before = 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for index in range(group.num_columns):
                column = group.column(index)
                if (name := strict.get(column.path_in_schema.lower())) and column.statistics and column.statistics.null_count:
                    cells = pq.ParquetFile(path).read_row_group(number, columns=[column.path_in_schema]).column(0)
                    row = before + cells.is_null().index(True).as_py() + 1
                    raise reader.null_error(f"{path}, row {row}", place, name)
            before += group.num_rows


def refusal(session: SparkSession, place: Place) -> DataError:
    """Why a source is refused: what is wrong with its first bad row, and where that is."""
    return told_by_reader(place) or _first_refused(session, place)


def told_by_reader(place: Place) -> DataError | None:
    """What the reader of small files has against a source; it can tell the line."""
    if place.text and place.local:
        try:
            for _ in reader.rows(place):
                pass
        except DataError as reason:
            return reason
    return None


def unreadable(place: Place, reason: Exception) -> DataError:
    why = jdbc.why(place.options, reason) if place.format == "jdbc" else cause(reason)
    return DataError(f"{place.location}: cannot be read for {place.relation}: {why}", "unreadable")


def _first_refused(session: SparkSession, place: Place) -> DataError:
    frame, parts, refused = _judged(session, place)
    return told(place, frame.where(refused).orderBy(_FILE, ROW).limit(1), parts)


def told(
    place: Place, first: DataFrame, parts: Sequence[cells.Cell], *, operation: Column | None = None, operations: Sequence[str] = ()
) -> DataError:
    """What is wrong with a refused row, and where it is."""
    from pyspark.sql import functions as F

    flags = [cell.good.alias(f"good{i}") for i, cell in enumerate(parts)] + [cell.null.alias(f"null{i}") for i, cell in enumerate(parts)]
    texts = [cell.text.alias(f"text{i}") for i, cell in enumerate(parts)]
    asked = (F.lit(None) if operation is None else operation).alias("operation")
    row = first.select(_FILE, ROW, LINE_OK, asked, *flags, *texts).collect()[0]
    where = _shown(place, row[_FILE]) + ("" if row[ROW] is None else f", row {row[ROW] + 1}")
    if not row[LINE_OK]:
        wanted = "is no JSON object" if place.format == "json" else f"does not have the {len(place.columns)} columns of {place.relation}"
        return DataError(f"{where}: a line {wanted}, or is not UTF-8", "columns")
    if row["operation"] is not None and row["operation"] not in operations:
        return DataError(f"{where}: there is no operation {row['operation'][:60]} (there are {', '.join(operations)})", "operation")
    for index, (column, type_) in enumerate(zip(place.columns, place.types, strict=True)):
        if row[f"null{index}"]:
            return reader.null_error(where, place, column)
        if not row[f"good{index}"]:
            return DataError(f"{where}: column {column} of {place.relation}: {_no_value(type_, row[f'text{index}'])}", "value")
    raise AssertionError("a row is refused for its line or for one of its cells")


def _no_value(type_: Type, text: str) -> str:
    try:
        type_.parse(text)
    except ValueError as reason:
        return str(reason)
    shown = (
        text if type_.kind == "symbol" else json.dumps(text, ensure_ascii=False)
    )  # JSON has a number for a text, or a text for something else
    return f"{shown} is not a {type_}: {type_.form}"


def _judged(session: SparkSession, place: Place) -> tuple[DataFrame, list[cells.Cell], Column]:
    """The raw rows, their cells, and which rows are refused; rows to be skipped are gone."""
    from pyspark.sql import functions as F

    frame, parts = raw(session, place), parsed(place)
    if place.absent:
        frame = frame.where(~F.col(LINE_OK) | ~parts[place.columns.index(place.absent)].null)
    if place.skip_nulls:
        frame = frame.where(~F.col(LINE_OK) | every(~cell.null for cell in parts))
    return frame, parts, ~every([F.col(LINE_OK), *(cell.good for cell in parts)])


def parsed(place: Place) -> list[cells.Cell]:
    """The cells of raw rows."""
    from pyspark.sql import functions as F

    parse = TEXTS[place.format][1] if place.text else cells.from_column
    columns = [F.col(f"r{i}") for i in range(len(place.types))]
    if place.format in ("file", "csv"):  # an empty cell of a column that may be null is one
        columns = [F.when(raw != "", raw) if name in place.lenient else raw for name, raw in zip(place.columns, columns, strict=True)]
    parts = [parse(type_, raw) for type_, raw in zip(place.types, columns, strict=True)]
    given = [place.blanks.get(name) for name in place.columns]
    return [
        cell if value is None else cells.filled(cell, type_, value) for cell, type_, value in zip(parts, place.types, given, strict=True)
    ]


# -- raw cells: r0, r1, … as the source has them


def raw(session: SparkSession, place: Place) -> DataFrame:
    """The rows of a source as it has them: r0, r1, …, whether their line is one, and where they are from."""
    assert place.format in (TEXTS if place.text else COLUMNAR), f"there is no source {place.format}"
    if place.local and place.format != "delta":
        reader.files(place)  # says what is wrong with a path better than Spark does
    try:
        if not place.text:
            return columnar(place, COLUMNAR[place.format](session, place))
        read_ = TEXTS[place.format][0]
        return reduce(lambda left, right: left.union(right), (read_(session, place, *part) for part in _parts(session, place)))
    except DataError:
        raise
    except Exception as reason:
        raise unreadable(place, reason) from None


def _parts(session: SparkSession, place: Place) -> list[tuple[list[str], Order]]:
    """What Spark is to read as one, with the order of its columns: all, unless the headers of a folder's files differ."""
    if not place.local:
        return [([uri(place)], _header(session, place))]
    orders = reader.orders(place)
    if len(orders) > 1:
        return [([escaped(path) for path in paths], order) for order, paths in orders.items()]
    return [([uri(place)], next(iter(orders), reader.same_order(place)))]


def _header(session: SparkSession, place: Place) -> Order:
    """The order that the header of a file elsewhere tells."""
    from pyspark.sql import functions as F

    if not place.headers:
        return reader.same_order(place)
    lines = _text(session, place, [uri(place)]).where((F.col(_START) == 0) & ((F.col("value") != "") | F.lit(not place.quoted)))
    return reader.order_of(place, place.location, [row["value"] for row in lines.head(1)])


def _delimited(session: SparkSession, place: Place, paths: list[str], order: Order) -> DataFrame:
    return (_csv if place.quoted and place.columns else _lines)(session, place, paths, order)


def _lines(session: SparkSession, place: Place, paths: list[str], order: Order) -> DataFrame:
    from pyspark.sql import functions as F

    text = _text(session, place, paths)
    text = text.where(F.col("value") != "") if place.quoted else text
    text = _without_headers(text) if place.headers else text
    width = len(place.fields)
    fields = F.split("value", re.escape(place.delimiter), -1) if width > 1 else F.array("value")
    split = text.select("value", fields.alias("fields"), _FILE, ROW)
    good = F.size("fields") == width if width else F.col("value") == NULLARY
    kept = [F.get("fields", F.lit(index)).alias(f"r{i}") for i, index in enumerate(order)]
    return split.select(*kept, (good & F.is_valid_utf8("value")).alias(LINE_OK), _FILE, ROW)


def _text(session: SparkSession, place: Place, paths: list[str]) -> DataFrame:
    """Lines without their line ends; Spark keeps invalid bytes, so they can still be told."""
    from pyspark.sql import functions as F

    read_ = session.read.option("lineSep", "\n").text(paths)
    line = F.when(F.endswith("value", F.lit("\r")), F.expr("left(value, char_length(value) - 1)")).otherwise(F.col("value"))
    return read_.select(line.alias("value"), F.col("_metadata.file_block_start").alias(_START), *_metadata(place))


def _without_headers(text: DataFrame) -> DataFrame:
    """All lines but the first of each file: of those in the block at the file's start the one that is read first."""
    from pyspark.sql import functions as F

    numbered = text.withColumn(_NUMBER, F.monotonically_increasing_id())
    headers = numbered.where(F.col(_START) == 0).groupBy(_FILE).agg(F.min(_NUMBER).alias(_NUMBER))
    return numbered.join(F.broadcast(headers.select(_NUMBER)), _NUMBER, "left_anti")


def _csv(session: SparkSession, place: Place, paths: list[str], order: Order) -> DataFrame:
    """Quoted fields are the CSV reader's; bytes are read as Latin-1 so that invalid UTF-8 is not lost, line ends as LF so that CR LF in quotes is not."""
    from pyspark.sql import functions as F

    if place.local:
        reader.ensure_closed(place)
    width = len(place.fields)
    schema = ", ".join([*(f"b{i} string" for i in range(width)), "corrupt string"])
    options = {
        "sep": place.delimiter.encode().decode("latin-1").replace("\\", "\\\\"),
        "header": str(place.headers).lower(),
        "quote": '"',
        "escape": '"',
        "unescapedQuoteHandling": "RAISE_ERROR",
        "multiLine": "true",
        "lineSep": "\n",
        "encoding": "ISO-8859-1",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "corrupt",
        "enforceSchema": "true",
        "maxColumns": "100000",
    }
    read_ = session.read.options(**options).schema(schema).csv(paths)
    texts = [F.encode(F.coalesce(f"b{i}", F.lit("")), "ISO-8859-1").cast("string") for i in order]
    last = order.index(width - 1) if width - 1 in order else None
    if last is None or place.types[last].kind != "symbol" or _may_end_in_cr(place):
        if last is not None:
            texts[last] = F.regexp_replace(texts[last], "\r\\z", "")
        read_ = read_.where(~every([F.col("b0") == "\r", *(F.col(f"b{i}").isNull() for i in range(1, width))]))
    first = order.index(0) if 0 in order and not place.headers else None
    if first is not None:
        texts[first] = F.regexp_replace(texts[first], "\\A\ufeff", "")
    kept = [text.alias(f"r{i}") for i, text in enumerate(texts)]
    split = read_.select(*kept, F.col("corrupt").isNull().alias("whole"), *_metadata(place))
    good = every([F.col("whole"), *(F.is_valid_utf8(f"r{i}") for i in range(len(order)))])
    return split.select(*(f"r{i}" for i in range(len(order))), good.alias(LINE_OK), _FILE, ROW)


def _may_end_in_cr(place: Place) -> bool:
    """Whether lines may end in CR LF: for a local source, whether the first of a file does."""
    if not place.local:
        return True
    for path in reader.files(place):
        with path.open("rb") as file:
            if file.readline(1 << 16).endswith(b"\r\n"):
                return True
    return False


def _json_lines(session: SparkSession, place: Place, paths: list[str], _: Order) -> DataFrame:
    """Each line is parsed as the only element of an array, for the parser takes no notice of what follows a value."""
    from pyspark.sql import functions as F

    text = _text(session, place, paths).where(F.rlike("value", F.lit("\\S")))
    parsed = text.select(F.try_parse_json(F.concat(F.lit("["), "value", F.lit("]"))).alias("v"), "value", _FILE, ROW)
    kind = F.schema_of_variant(F.try_variant_get("v", "$[0]", "variant"))
    good = [F.is_valid_utf8("value"), F.startswith(kind, F.lit("OBJECT")), F.try_variant_get("v", "$[1]", "variant").isNull()]
    kept = [F.try_variant_get("v", f"$[0].{column}", "variant").alias(f"r{i}") for i, column in enumerate(place.columns)]
    return parsed.select(*kept, every(good).alias(LINE_OK), _FILE, ROW)


def has_columns(session: SparkSession, place: Place) -> bool:
    """Whether a source names all columns of its place, in a header or a schema."""
    try:
        if place.text:
            _parts(session, place)
        else:
            columnar(place, COLUMNAR[place.format](session, place))
    except DataError as reason:
        if reason.code == "columns":
            return False
        raise
    except Exception as reason:
        raise unreadable(place, reason) from None
    return True


def columnar(place: Place, frame: DataFrame) -> DataFrame:
    """The columns of a place in a frame that has them under their names. Raises DataError if it has not, or has other types."""
    from pyspark.sql import functions as F

    there = {name: name for name in frame.columns}
    folded = {name.lower(): name for name in frame.columns}
    names = [there.get(column) or folded.get(column.lower()) for column in place.columns]
    if None in names:
        missing = ", ".join(column for column, name in zip(place.columns, names, strict=True) if name is None)
        raise DataError(
            f"{place.location}: has no column {missing} for {place.relation}; its columns are {', '.join(frame.columns)}", "columns"
        )
    for column, name, type_ in zip(place.columns, names, place.types, strict=True):
        kind = frame.schema[str(name)].dataType.simpleString()
        if not cells.fits(type_, kind):
            raise DataError(
                f"{place.location}: column {column} of {place.relation} is a {type_}, but the source has a {kind} there", "type"
            )
    kept = [F.col(f"`{name}`").alias(f"r{i}") for i, name in enumerate(names)]
    return frame.select(*kept, F.lit(True).alias(LINE_OK), *_metadata(place))


# How each format of text is read, and its cells.
TEXTS: dict[str, tuple[Callable[[SparkSession, Place, list[str], Order], DataFrame], Callable[[Type, Column], cells.Cell]]] = {
    "file": (_delimited, cells.from_text),
    "csv": (_delimited, cells.from_text),
    "json": (_json_lines, cells.from_variant),
}

# How all other sources are read, which have columns with names and types.
COLUMNAR: dict[str, Callable[[SparkSession, Place], DataFrame]] = {
    "parquet": lambda session, place: session.read.parquet(uri(place)),
    "orc": lambda session, place: session.read.orc(uri(place)),
    "table": lambda session, place: session.table(place.location),
    "jdbc": lambda session, place: jdbc.read(session, place.options, place.relation),
    "delta": delta.read,
    "iceberg": iceberg.read,
}


def _metadata(place: Place) -> list[Column]:
    from pyspark.sql import functions as F

    file = F.lit(None).cast("string") if place.format in ("table", "jdbc", "delta", "iceberg") else F.col("_metadata.file_path")
    row = F.col("_metadata.row_index") if place.format == "parquet" else F.lit(None).cast("bigint")
    return [file.alias(_FILE), row.alias(ROW)]


def uri(place: Place) -> str:
    """The location as Spark takes it: a local path is absolute, with characters that Spark would expand escaped."""
    return escaped(_visible(place.path.absolute())) if place.local else place.location


@cache
def _visible(path: Path) -> Path:
    """Spark takes no notice of files whose names begin with `_` or `.`; such a one is read under another name."""
    if path.name[0] not in "._":
        return path
    folder = Path(tempfile.mkdtemp(prefix="vigilog-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    other = folder / f"file{path.name}"
    other.symlink_to(path)
    return other


def _shown(place: Place, file: str | None) -> str:
    """The name of a source's file: a path if it is a local one."""
    if file is None:
        return place.location
    if not place.local:
        return file
    path = unquote(re.sub(r"^file:(//)?", "", file))
    return path.replace(str(_visible(place.path.absolute())), str(place.path), 1)


def every(conditions: Iterable[Column]) -> Column:
    from pyspark.sql import functions as F

    return reduce(lambda left, right: left & right, (F.coalesce(condition, F.lit(False)) for condition in conditions), F.lit(True))
