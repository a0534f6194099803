"""Arrow tables as frames of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vigilog.core.values import Type
from vigilog.spark.session import is_remote
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def to_frame(session: SparkSession, types: Sequence[Type], table: pa.Table) -> DataFrame:
    """An Arrow table as a frame. Spark Connect does not take an empty one."""
    if table.num_rows or not is_remote(session):
        return session.createDataFrame(table)
    columns = ", ".join(f"`{name}` {spark_type(type_)}" for name, type_ in zip(table.column_names, types, strict=True))
    return session.createDataFrame([], columns)
