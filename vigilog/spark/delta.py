"""Delta tables: their rows as frames, and what changed from one version to the next.

Where Spark has Delta among its extensions, it reads them itself. Elsewhere the `deltalake` package reads a table's log, and Spark the Parquet files that the log names; a table whose rows are more than its files
(deletion vectors, mapped columns) comes through Arrow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from vigilog.core.arrow import plain
from vigilog.core.errors import DataError
from vigilog.core.extras import DELTA
from vigilog.core.secrets import without_secrets
from vigilog.files.place import Place
from vigilog.spark.paths import escaped

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

CHANGE = "_change_type"
COMES, GOES = ("insert", "update_postimage"), ("delete", "update_preimage")
_FILE = "__delta_file"


@dataclass(frozen=True)
class State:
    """Which table this is, and its newest version."""

    table: str
    version: int


def read(session: SparkSession, place: Place) -> DataFrame:
    """The rows of a table, of its newest version or of the one that is asked for."""
    version = place.options.get("version")
    if "delta" in (session.conf.get("spark.sql.extensions", "") or "").lower():
        reader = session.read.format("delta")
        return (reader.option("versionAsOf", version) if version else reader).load(_location(place))
    table = _opened(place, None if version is None else int(version))
    if table.protocol().min_reader_version > 1:
        from deltalake import QueryBuilder

        return session.createDataFrame(plain(pa.table(QueryBuilder().register("rows", table).execute("SELECT * FROM rows"))))
    return _files(session, place, table)


def state(place: Place) -> State:
    table = _opened(place)
    return State(str(table.metadata().id), int(table.version()))


def changes(session: SparkSession, place: Place, version: int) -> DataFrame:
    """The rows that came and went with one version, and `CHANGE`: by the table's change feed, or else by the files that came and went, if those are all there is to it."""
    table = _opened(place)
    if table.protocol().min_reader_version > 1 and table.metadata().configuration.get("delta.enableChangeDataFeed") != "true":
        why = "it has no change feed; turn it on (delta.enableChangeDataFeed=true), or use sync"
        raise DataError(f"{place.location}: cannot be followed for {place.relation}: {why}", "source")
    try:
        return session.createDataFrame(plain(pa.table(table.load_cdf(starting_version=version, ending_version=version))))
    except Exception as reason:
        raise DataError(f"{place.location}: version {version} cannot be followed for {place.relation}: {_line(reason)}", "source") from None


def _opened(place: Place, version: int | None = None) -> DeltaTable:
    DELTA.need(f"{place.relation} is read from {place.location}")
    from deltalake import DeltaTable

    try:
        return DeltaTable(_location(place), version=version)
    except BaseException as reason:
        if not isinstance(reason, Exception) and type(reason).__name__ != "PanicException":  # what Rust makes of an address it cannot take
            raise
        raise DataError(f"{place.location}: cannot be read for {place.relation}: {_line(reason)}", "unreadable") from None


def _location(place: Place) -> str:
    return str(place.path.absolute()) if place.local else place.location


def _inside(place: Place, path: str) -> str:
    return escaped(place.path / path) if place.local else f"{place.location.rstrip('/')}/{path}"


def _line(reason: BaseException) -> str:
    return without_secrets(str(reason).split("\n")[0])[:400]


def _files(session: SparkSession, place: Place, table: DeltaTable) -> DataFrame:
    """The files of a table, read by Spark, each with the values of its partition, which only the log has."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    added = plain(pa.table(table.get_add_actions(flatten=True)))
    paths = [unquote(path) for path in added["path"].to_pylist()]
    files = [path if "://" in path else _inside(place, path) for path in paths]
    parts = list(table.metadata().partition_columns)
    if not files:
        return session.createDataFrame([], schema)
    inside = StructType([field for field in schema if field.name not in parts])
    frame = session.read.schema(inside).parquet(*files)
    if not parts:
        return frame
    names = pa.array([path.rsplit("/", 1)[-1] for path in paths])
    values = [(f"__part{i}", added[f"partition.{name}"]) for i, name in enumerate(parts)]
    partitions = session.createDataFrame(pa.table({_FILE: names, **dict(values)}))
    own = frame.withColumn(_FILE, F.url_decode(F.element_at(F.split("_metadata.file_path", "/"), -1)))
    joined = own.join(F.broadcast(partitions), _FILE)
    shown = {name: F.col(f"__part{i}").cast(schema[name].dataType) for i, name in enumerate(parts)}
    return joined.select(*(shown.get(field.name, F.col(f"`{field.name}`")).alias(field.name) for field in schema))
