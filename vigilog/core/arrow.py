"""Values in Arrow tables: one layout for segments, for Spark, for what is sent and for exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from vigilog.core.schema import PRESENT
from vigilog.core.values import BOOLEAN, Kind, Row, Type, utc

_ARROW: dict[Kind, pa.DataType] = {
    "symbol": pa.string(),
    "number": pa.int64(),
    "unsigned": pa.decimal128(20, 0),
    "float": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type(type_: Type) -> pa.DataType:
    return pa.decimal128(type_.precision, type_.scale) if type_.kind == "decimal" else _ARROW[type_.kind]


def arrow_schema(columns: Sequence[str], types: Sequence[Type]) -> pa.Schema:
    return pa.schema([pa.field(name, arrow_type(type_), nullable=False) for name, type_ in zip(columns, types, strict=True)])


def to_arrow(columns: Sequence[str], types: Sequence[Type], rows: Iterable[Row]) -> pa.Table:
    """Rows of values as an Arrow table; one without columns gets one, `present`."""
    if not columns:
        return to_arrow([PRESENT], [BOOLEAN], [(True,) for _ in rows])
    cells = list(zip(*rows, strict=True)) or [()] * len(types)
    arrays = []
    for type_, values in zip(types, cells, strict=True):
        given = [Decimal(value) for value in values] if type_.kind == "unsigned" else list(values)
        arrays.append(pa.array(given, arrow_type(type_)))
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns, types))


def from_arrow(types: Sequence[Type], table: pa.Table) -> Iterator[Row]:
    """The rows of an Arrow table as values."""
    converters = [_converter(type_) for type_ in types]
    for batch in table.to_batches():
        columns = [column.to_pylist() for column in batch.columns]
        columns = [list(map(convert, cells)) if convert else cells for convert, cells in zip(converters, columns, strict=True)]
        yield from zip(*columns, strict=True)


def _converter(type_: Type) -> Callable[[Any], Any] | None:
    match type_.kind:
        case "unsigned":
            return int
        case "timestamp":
            return utc
        case "float":
            return lambda value: value + 0.0
        case "symbol" | "number" | "boolean" | "date" | "decimal":
            return None
        case _:
            assert_never(type_.kind)
