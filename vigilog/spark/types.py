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
    """What a type is called in Spark; a set is a sorted array.

    >>> from vigilog.core.type_names import type_named
    >>> spark_type(type_named("set<(symbol, unsigned)>"))
    'array<struct<_1: string, _2: decimal(20,0)>>'
    """
    match type_.kind:
        case "decimal":
            return str(type_)
        case "set":
            return f"array<{spark_type(type_.parts[0])}>"
        case "tuple":
            return f"struct<{', '.join(f'_{number}: {spark_type(part)}' for number, part in enumerate(type_.parts, start=1))}>"
        case kind:
            return _SPARK[kind]
