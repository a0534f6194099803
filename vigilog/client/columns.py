"""Rows as they are sent, and rows as Python has them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any, assert_never

from vigilog.core import extras
from vigilog.core.errors import DataError
from vigilog.core.facts import Fact, fact_of_json
from vigilog.core.named import records
from vigilog.core.rows import json_rows, rows_from_json
from vigilog.core.sets import Set
from vigilog.core.type_names import type_named
from vigilog.core.values import BUILTIN, Row, Type, Value, sorted_rows, utc
from vigilog.protocol.calls import ARROW, LoggedChange, Rowset
from vigilog.protocol.messages import read

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from vigilog.client.effects import Response
    from vigilog.protocol.messages import Column

FETCHED = ARROW if extras.ARROW.installed else "application/json"  # as what many rows are fetched: without Arrow, as they are sent


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
    constrained: bool = False  # rows are facts with conditions
    record: str = ""  # if rows are NamedTuples: what they are called

    @cached_property
    def _plain(self) -> bool:
        """Whether rows are values as JSON has them, if a server that knows their types has sent them."""
        return all(type_.kind in ("symbol", "number", "unsigned", "boolean") for type_ in self.types)

    def rows(self, sent: Sequence[Any]) -> list[Row]:
        """Rows as a server has sent them; what is an object is a fact with conditions.

        >>> Columns(("user", "group"), (BUILTIN["symbol"], BUILTIN["symbol"]), record="member").rows([["ann", "g1"]])
        [member(user='ann', group='g1')]
        """
        if sent and isinstance(sent[0], dict):
            return [fact_of_json(fact) for fact in sent]
        if self._plain and not self.record:
            return list(map(tuple, sent))
        rows: Iterable[Any] = sent if self._plain else rows_from_json(self.types, sent)
        return self.named(rows, self.record) if self.record else list(rows)

    def named(self, rows: Iterable[Row], name: str = "row") -> list[Row]:
        """Rows as NamedTuples.

        >>> Columns(("user", "group"), (BUILTIN["symbol"], BUILTIN["symbol"])).named([("ann", "g1")])[0].user
        'ann'
        """
        return records(name, self.names, self.types, rows)

    def json(self, rows: Iterable[Row]) -> list[list[Any]]:
        """Rows as JSON has them, sorted."""
        if self.constrained:
            return [fact.json() for fact in sorted(map(Fact._make, rows), key=lambda fact: fact.where)]  # type: ignore[misc]  # JSON, too
        return list(map(list, json_rows(self.types, sorted_rows(rows))))

    def fetched(self, answer: Response) -> list[Row]:
        """The rows that were fetched, as Arrow or as JSON."""
        if answer.kind != ARROW:
            return self.rows(read(answer.body, Rowset, "answer of Vigilog").rows)
        return self._of_arrow(_read_arrow(answer.body))

    def fetched_change(self, answer: Response) -> dict[str, frozenset[Row]]:
        """Both sides of a change that was fetched; as Arrow, its first column tells them apart."""
        if answer.kind != ARROW:
            change = read(answer.body, LoggedChange, "answer of Vigilog")
            return {"plus": frozenset(self.rows(change.plus)), "minus": frozenset(self.rows(change.minus))}
        table = _read_arrow(answer.body)
        sides, rows = table.column(0).to_pylist(), self._of_arrow(table.select(range(1, table.num_columns)))
        return {side: frozenset(compress(rows, map(side.__eq__, sides))) for side in ("plus", "minus")}

    def _of_arrow(self, table: pyarrow.Table) -> list[Row]:
        from vigilog.core.arrow import from_arrow

        rows = from_arrow(self.types, table) if self.names else [()] * table.num_rows
        return self.named(rows, self.record) if self.record else list(rows)

    def to_arrow(self, rows: Iterable[Row]) -> pyarrow.Table:
        extras.ARROW.need()
        from vigilog.core.arrow import to_arrow

        return to_arrow(self.names, self.types, sorted_rows(rows))

    def to_pandas(self, rows: Iterable[Row]) -> pandas.DataFrame:
        """A frame with the columns' names; integers, floats, booleans and timestamps in columns of their own types, all else as objects."""
        extras.PANDAS.need()
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


def _read_arrow(body: bytes) -> pyarrow.Table:
    import pyarrow as pa

    try:
        return pa.ipc.open_stream(body).read_all()
    except pa.ArrowInvalid as reason:
        raise DataError(f"the server's answer is no Arrow stream: {reason}", "message") from None


def read_columns(columns: Sequence[Column], key: Sequence[str] = (), constrained: object = False, record: str = "") -> Columns:
    """Columns as a server tells them."""
    try:
        types = tuple(type_named(column.type) for column in columns)
    except ValueError as reason:
        raise DataError(f"{reason} that this client knows; the server is a later one", "message") from None
    return Columns(tuple(column.name for column in columns), types, tuple(key), constrained is True, record)


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
        case str() | int() | datetime.date():
            return str(value)
        case Set() | tuple():
            return json.dumps(value, default=_json_part, ensure_ascii=False, separators=(",", ":"))
        case _:
            assert_never(value)


def _json_part(value: Any) -> Any:
    """What is inside a set or a tuple and is no JSON: other sets, as arrays, and what is told as text."""
    return list(value) if isinstance(value, Set) else fact_text(value)
