"""Values in Arrow tables: one layout for segments, for Spark, for what is sent and for exports."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, assert_never

import pyarrow as pa

from vigilog.core.rows import transposed
from vigilog.core.schema import PRESENT
from vigilog.core.sets import Set
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


_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
_FIRST_MOMENT = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def arrow_type(type_: Type) -> pa.DataType:
    match type_.kind:
        case "decimal":
            return pa.decimal128(type_.precision, type_.scale)
        case "set":
            return pa.list_(arrow_type(type_.parts[0]))
        case "tuple":
            return pa.struct([(f"_{number}", arrow_type(part)) for number, part in enumerate(type_.parts, start=1)])
        case kind:
            return _ARROW[kind]


def plain(table: pa.Table) -> pa.Table:
    """Arrow rows of others as Spark takes them: without the newer kinds of text and bytes."""
    kinds = {pa.string_view(): pa.string(), pa.large_string(): pa.string(), pa.binary_view(): pa.binary(), pa.uint64(): pa.int64()}
    return table.cast(pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in table.schema]))


def cell_of(type_: Type) -> Callable[[Any], Any] | None:
    """From a value to the Python object that Arrow, and Spark, make a cell of; None if that is the same. A set is a sorted list, a tuple a mapping from `_1`, `_2` …"""
    match type_.kind:
        case "unsigned":
            return Decimal
        case "set":
            each = cell_of(type_.parts[0])
            return list if each is None else lambda value: list(map(each, value))
        case "tuple":
            converters = [(f"_{number}", cell_of(part)) for number, part in enumerate(type_.parts, start=1)]
            return lambda value: {
                name: each if convert is None else convert(each) for (name, convert), each in zip(converters, value, strict=True)
            }
        case "symbol" | "number" | "float" | "boolean" | "date" | "timestamp" | "decimal":
            return None
        case _:
            assert_never(type_.kind)


def _as_it_is(value: Any) -> Any:
    return value


def value_of(type_: Type) -> Callable[[Any], Any] | None:
    """From such an object, as Arrow and Spark give it back, to the value."""
    match type_.kind:
        case "unsigned":
            return int
        case "timestamp":
            return utc
        case "float":
            return (0.0).__add__
        case "set":
            each = value_of(type_.parts[0]) or _as_it_is
            return lambda cell: Set(map(each, cell.tolist() if hasattr(cell, "tolist") else cell))  # Spark's are arrays of numpy
        case "tuple":
            parts = [value_of(part) for part in type_.parts]

            def read(cell: Any) -> Any:
                cells = cell.values() if isinstance(cell, dict) else cell
                return tuple(each if part is None else part(each) for part, each in zip(parts, cells, strict=True))

            return read
        case "symbol" | "number" | "boolean" | "date" | "decimal":
            return None
        case _:
            assert_never(type_.kind)


def arrow_schema(columns: Sequence[str], types: Sequence[Type]) -> pa.Schema:
    return pa.schema([pa.field(name, arrow_type(type_), nullable=False) for name, type_ in zip(columns, types, strict=True)])


def to_arrow(columns: Sequence[str], types: Sequence[Type], rows: Iterable[Row]) -> pa.Table:
    """Rows of values as an Arrow table; one without columns gets one, `present`."""
    if not columns:
        return to_arrow([PRESENT], [BOOLEAN], [(True,) for _ in rows])
    listed = rows if isinstance(rows, list) else list(rows)
    cells = transposed(listed) if listed else [[] for _ in types]
    arrays = [
        pa.array(values if (convert := cell_of(type_)) is None else list(map(convert, values)), arrow_type(type_))
        for type_, values in zip(types, cells, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=arrow_schema(columns, types))


def from_arrow(types: Sequence[Type], table: pa.Table) -> Iterator[Row]:
    """The rows of an Arrow table as values."""
    for batch in table.to_batches():
        yield from zip(*(_values(type_, column) for type_, column in zip(types, batch.columns, strict=True)), strict=True)


def _values(type_: Type, column: pa.Array) -> Iterable[Any]:
    """A column's values. Dates, moments and decimals, which Arrow makes slowly, are made of the integers and texts that they are for it."""
    own = column.type == arrow_type(type_) and column.null_count == 0
    match type_.kind:
        case "date" if own:
            return [datetime.date.fromordinal(_FIRST_DAY + days) for days in column.view(pa.int32()).to_pylist()]
        case "timestamp" if own:
            return [_FIRST_MOMENT + datetime.timedelta(microseconds=since) for since in column.view(pa.int64()).to_pylist()]
        case "decimal" if own:
            return map(Decimal, column.cast(pa.string()).to_pylist())
        case "unsigned":
            return map(int, column.cast(pa.string()).to_pylist() if own else column.to_pylist())
        case "timestamp":
            return map(utc, column.to_pylist())
        case "float":
            return map((0.0).__add__, column.to_pylist())
        case "set" | "tuple":
            read = value_of(type_)
            assert read is not None, "of what is nested, each value is made"
            return map(read, column.to_pylist())
        case "symbol" | "number" | "boolean" | "date" | "decimal":
            return column.to_pylist()  # type: ignore[no-any-return]  # Arrow has no types for mypy
        case _:
            assert_never(type_.kind)


def narrowed(table: pa.Table, bound: Mapping[int, Value]) -> pa.Table:
    """The rows of a table that have some values in some columns."""
    import pyarrow.compute as pc

    for column, value in bound.items():
        kind = table.schema.types[column]
        if isinstance(value, tuple | Set):
            table = table.filter(pa.array([_same(cell, value) for cell in table.column(column).to_pylist()], pa.bool_()))
            continue
        wanted = pa.scalar(Decimal(value) if isinstance(value, int) and pa.types.is_decimal128(kind) else value, kind)
        table = table.filter(pc.equal(table.column(column), wanted))
    return table


def _same(cell: Any, value: Any) -> bool:
    """Whether a nested cell of a table is a value."""
    match value:
        case Set():
            return len(cell) == len(value) and all(map(_same, cell, value))
        case tuple():
            return all(map(_same, cell.values(), value))
        case _:
            return bool(cell == value)
