"""Tables of a PostgreSQL database. Comparisons are pushed down; many values of one column are asked in one statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from vigilog.core.errors import did_you_mean
from vigilog.core.extras import POSTGRES
from vigilog.core.secrets import without_secrets
from vigilog.core.type_names import type_named
from vigilog.core.values import BOOLEAN, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Row, Type
from vigilog.domains.databases import PARAMETER, Database, quoted
from vigilog.domains.domain import MAX_ROWS, TIMEOUT, Columns, DomainError, checked, with_variables
from vigilog.domains.options import patience
from vigilog.domains.retries import TransientError
from vigilog.domains.tables import OPERATORS

if TYPE_CHECKING:
    from psycopg import Connection

_TYPES = {
    "smallint": NUMBER,
    "integer": NUMBER,
    "bigint": NUMBER,
    "boolean": BOOLEAN,
    "real": FLOAT,
    "double precision": FLOAT,
    "date": DATE,
}
_CATALOGUE = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_TABLES = "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'p', 'f') AND pg_table_is_visible(oid) AND relnamespace <> 'pg_catalog'::regnamespace"


class Postgres(Database):
    """The tables and views that a user of a PostgreSQL database sees; `schema.table` names one of another schema."""

    @contextmanager
    def _connected(self) -> Iterator[Connection[Any]]:
        POSTGRES.need(f"{self.name} asks PostgreSQL")
        import psycopg

        wait = patience(self.options, TIMEOUT)
        login = {key: with_variables(self.options[key]) for key in ("user", "password") if key in self.options}
        try:
            url = with_variables(self.options["url"]).removeprefix("jdbc:")
            limit = f"-c statement_timeout={max(1, round(wait * 1000))}"
            with psycopg.connect(url, **login, connect_timeout=max(2, round(wait)), options=limit) as connection:  # type: ignore[arg-type]  # texts
                connection.read_only = True
                yield connection
        except psycopg.Error as reason:
            kind = TransientError if isinstance(reason, psycopg.OperationalError | psycopg.InterfaceError) else DomainError
            raise kind(self.name, without_secrets(str(reason).strip(), [login.get("password", "")])) from None

    def columns(self, table: str) -> Columns:
        with self._connected() as connection:
            types = self._catalogue(connection, table)
        return tuple((name, self._type_of(table, name, type_)) for name, type_ in types.items())

    def _catalogue(self, connection: Connection[Any], table: str) -> Mapping[str, str]:
        """The columns of a table, with their types as the source says."""
        columns = connection.execute(_CATALOGUE, (_path(table),)).fetchall()
        if not columns:
            there = sorted(name for (name,) in connection.execute(_TABLES))
            hint = did_you_mean(table, there) or f"there are {', '.join(there) or 'none'}"
            raise DomainError(self.name, f"there is no table {table} ({hint})")
        return dict(columns)

    def _type_of(self, table: str, column: str, name: str) -> Type:
        if name.startswith("timestamp"):
            return TIMESTAMP
        if scaled := re.fullmatch(r"numeric\((\d+),(\d+)\)", name):
            return type_named(f"decimal({scaled[1]},{scaled[2]})")
        if name == "numeric":
            raise DomainError(
                self.name, f"{column} of {table} is a numeric without digits; state its type: .table {self.name}:{table}(column: type, …)"
            )
        return _TYPES.get(name, SYMBOL)

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        signature = self.signature(function, fixed)
        with self._connected() as connection:
            if function == "query":
                text, names = self._statement(fixed[0])[0], [name for name, _ in signature.parameters]
                text = PARAMETER.sub(lambda token: token[0] if token[1] is None else f"%({token[1]})s", text.replace("%", "%%"))
                return [self._rows(connection, fixed[0], signature.results, text, dict(zip(names, row, strict=True))) for row in arguments]
            types = self._catalogue(connection, fixed[0])
            if missing := [name for name, _ in signature.results if name not in types]:
                raise DomainError(self.name, f"{fixed[0]} has no column {missing[0]} (there are {', '.join(types)})")
            text = f"SELECT {', '.join(_read(types, *column) for column in signature.results)} FROM {_path(fixed[0])}".replace("%", "%%")
            if function == "all":
                return [self._rows(connection, fixed[0], signature.results, text, {}) for _ in arguments]
            left = _read(types, fixed[1], signature.parameters[0][1], OPERATORS[function][0] not in ("=", "<>")).replace("%", "%%")
            if function == "select_eq" and len(arguments) > 1:
                together = {"values": [value for (value,) in arguments]}
                rows = self._rows(
                    connection, fixed[0], signature.results, f"{text} WHERE {left} = ANY(%(values)s)", together, len(arguments)
                )
                place = [name for name, _ in signature.results].index(fixed[1])
                by_value: dict[object, set[Row]] = {}
                for row in rows:
                    by_value.setdefault(row[place], set()).add(row)
                return [by_value.get(value, set()) for (value,) in arguments]
            text = f"{text} WHERE {left} {OPERATORS[function][0]} %(value)s"
            return [self._rows(connection, fixed[0], signature.results, text, {"value": value}) for (value,) in arguments]

    def _rows(
        self, connection: Connection[Any], what: str, columns: Columns, text: str, values: Mapping[str, Any], calls: int = 1
    ) -> set[Row]:
        """What a statement answers. One row more than is allowed is read, and no more."""
        most = calls * int(self.options.get("max_rows", MAX_ROWS))
        rows = connection.execute(text.encode(), values).fetchmany(most + 1)
        if len(rows) > most:
            raise DomainError(self.name, f"{what} gives more rows than max_rows, which is {most // calls}")
        told = [[_value(type_, cell) for (_, type_), cell in zip(columns, row, strict=False)] for row in rows]
        return checked(self.name, what, columns, told, {**self.options, "max_rows": str(most)})


def _read(types: Mapping[str, str], column: str, type_: Type, ordered: bool = False) -> str:
    """A column in a statement. What is a text here is a text there, and texts are ordered by their characters, not as in a language."""
    plain = types[column] == "text" or types[column].startswith("character varying")
    cast = quoted(column) if type_ != SYMBOL or plain else f"{quoted(column)}::text"
    return f'{cast} COLLATE "C"' if ordered and type_ == SYMBOL else cast


def _value(type_: Type, cell: object) -> object:
    """A cell as a value; a time with a zone is that time in UTC."""
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        return cell.astimezone(UTC).replace(tzinfo=None)
    if type_ == FLOAT and isinstance(cell, int):
        return float(cell)
    return cell


def _path(table: str) -> str:
    return ".".join(map(quoted, table.split(".")))
