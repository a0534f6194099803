"""What the types of the language are called in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vigilog.core.values import Kind, Type

TIMESTAMP_PATTERN = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_SPARK: dict[Kind, str] = {
    "symbol": "string",
    "number": "bigint",
    "unsigned": "decimal(20,0)",
    "float": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame  # so that others can speak of frames


def spark_type(type_: Type) -> str:
    return str(type_) if type_.kind == "decimal" else _SPARK[type_.kind]
