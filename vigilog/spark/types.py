"""What the types of the language are called in Spark."""

from __future__ import annotations

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


def spark_type(type_: Type) -> str:
    return str(type_) if type_.kind == "decimal" else _SPARK[type_.kind]
