"""Values in Arrow tables: one layout for segments, for Spark, for what is sent and for exports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from vigilog.core.rows import Converter, transposed
from vigilog.core.schema import PRESENT
from vigilog.core.values import BOOLEAN, Kind, Row, Type, Value, utc

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
    listed = rows if isinstance(rows, list) else list(rows)
    cells = transposed(listed) if listed else [[] for _ in types]
    arrays = [
        pa.array(list(map(Decimal, values)) if type_.kind == "unsigned" else values, arrow_type(type_))
        for type_, values in zip(types, cells, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns, types))


def from_arrow(types: Sequence[Type], table: pa.Table) -> Iterator[Row]:
    """The rows of an Arrow table as values."""
    converters = [_converter(type_) for type_ in types]
    for batch in table.to_batches():
        cells = zip(converters, map(_cells, batch.columns), strict=True)
        yield from zip(*(map(convert, values) if convert else values for convert, values in cells), strict=True)


def _cells(column: pa.Array) -> list[Any]:
    """A column's values. Those that Arrow makes one by one come by way of NumPy, in a tenth of the time."""
    kind = column.type
    if column.null_count == 0 and (kind in (pa.date32(), pa.timestamp("us", tz="UTC")) or pa.types.is_decimal128(kind)):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())


def _converter(type_: Type) -> Converter:
    match type_.kind:
        case "unsigned":
            return int
        case "timestamp":
            return utc
        case "float":
            return (0.0).__add__
        case "symbol" | "number" | "boolean" | "date" | "decimal":
            return None
        case _:
            assert_never(type_.kind)


def narrowed(table: pa.Table, bound: Mapping[int, Value]) -> pa.Table:
    """The rows of a table that have some values in some columns."""
    import pyarrow.compute as pc

    for column, value in bound.items():
        kind = table.schema.types[column]
        wanted = pa.scalar(Decimal(value) if isinstance(value, int) and pa.types.is_decimal128(kind) else value, kind)
        table = table.filter(pc.equal(table.column(column), wanted))
    return table
