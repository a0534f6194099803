"""Rows as they are sent, and rows as Python has them."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from vigilog.core.errors import DataError
from vigilog.core.values import BUILTIN, Row, Type, Value, sorted_rows, type_named, utc

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from vigilog.protocol.messages import Column


@dataclass(frozen=True)
class Columns:
    """The columns of a view with their types, and those of them that are its key.

    >>> day = Columns(("day", "price"), (type_named("date"), type_named("decimal(6,2)")))
    >>> day.rows([["2026-11-17", "1.50"]])
    [(datetime.date(2026, 11, 17), Decimal('1.50'))]
    """

    names: tuple[str, ...]
    types: tuple[Type, ...]
    key: tuple[str, ...] = ()

    @cached_property
    def _row(self) -> Callable[[Sequence[Any]], Row]:
        """Makes a row of what JSON has; most types have nothing to be made."""
        if all(type_.kind in ("symbol", "number", "unsigned", "boolean") for type_ in self.types):
            return tuple
        made = [type_.from_json for type_ in self.types]
        return lambda row: tuple(make(cell) for make, cell in zip(made, row, strict=True))

    def rows(self, said: Iterable[Sequence[Any]]) -> list[Row]:
        return list(map(self._row, said))

    def row(self, said: Sequence[Any]) -> Row:
        return self._row(said)

    def json(self, rows: Iterable[Row]) -> list[list[Any]]:
        """Rows as JSON has them, sorted."""
        return [[type_.to_json(cell) for type_, cell in zip(self.types, row, strict=True)] for row in sorted_rows(rows)]

    def read_arrow(self, body: bytes, skip: int = 0) -> tuple[pyarrow.Table, list[Row]]:
        """An Arrow stream: its table, and its rows without so many columns at the beginning."""
        import pyarrow as pa

        from vigilog.core.arrow import from_arrow

        try:
            table = pa.ipc.open_stream(body).read_all()
        except pa.ArrowInvalid as reason:
            raise DataError(f"the server's answer is no Arrow stream: {reason}", "message") from None
        own = table.select(range(skip, len(table.column_names)))
        return table, list(from_arrow(self.types, own)) if self.names else [()] * table.num_rows

    def to_arrow(self, rows: Iterable[Row]) -> pyarrow.Table:
        from vigilog.core.arrow import to_arrow

        return to_arrow(self.names, self.types, sorted_rows(rows))

    def to_pandas(self, rows: Iterable[Row]) -> pandas.DataFrame:
        """A frame with the columns' names; integers, floats, booleans and timestamps in columns of their own types, all else as objects."""
        import pandas as pd

        cells = list(zip(*sorted_rows(rows), strict=True)) or [()] * len(self.names)
        if not self.names:
            return pd.DataFrame(index=range(len(list(rows))))
        dtypes = {"number": "int64", "unsigned": "uint64", "float": "float64", "boolean": "bool", "timestamp": "datetime64[us, UTC]"}
        series = {
            name: pd.Series(list(column), dtype=dtypes.get(type_.kind, "object"))
            for name, type_, column in zip(self.names, self.types, cells, strict=True)
        }
        return pd.DataFrame(series)


def read_columns(columns: Sequence[Column], key: Sequence[str] = ()) -> Columns:
    """Columns as a server tells them."""
    try:
        types = tuple(type_named(column.type) for column in columns)
    except ValueError as reason:
        raise DataError(f"{reason} that this client knows; the server is a later one", "message") from None
    return Columns(tuple(column.name for column in columns), types, tuple(key))


def fact_text(value: Value) -> str:
    """A value as a facts file has it, told by its Python type.

    >>> fact_text("a"), fact_text(True), fact_text(0.5)
    ('a', 'true', '0.5')
    """
    match value:
        case bool():
            return BUILTIN["boolean"].text(value)
        case datetime.datetime():
            return BUILTIN["timestamp"].text(utc(value))
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
    return str(value)
