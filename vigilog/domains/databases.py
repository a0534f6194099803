"""Tables of an SQL database. Comparisons are pushed down; `query(name, …)` asks a statement that the options state, with its parameters."""

from __future__ import annotations

import datetime
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

from vigilog.core.errors import did_you_mean
from vigilog.core.values import BOOLEAN, DATE, FLOAT, NUMBER, SYMBOL, TIMESTAMP, Row, Type, Value
from vigilog.domains.domain import TIMEOUT, Columns, DomainError, Options, Signature, checked, with_variables
from vigilog.domains.options import patience
from vigilog.domains.retries import TransientError
from vigilog.domains.tables import OPERATORS, Tables

_TYPES = (
    ("int", NUMBER),
    ("bool", BOOLEAN),
    ("timestamp", TIMESTAMP),
    ("date", DATE),
    ("real", FLOAT),
    ("double", FLOAT),
    ("float", FLOAT),
)


PARAMETER = re.compile(r"'[^']*'|(?<!:):([A-Za-z_]\w*)")  # :name, but not in a text, and not in a cast ::name


class Database(Tables):
    """The tables of a database, and the statements that the options state. What a statement takes and gives is stated, too; if only what it gives is, it takes texts."""

    def __init__(self, name: str, options: Options, stated: dict[str, Columns], functions: dict[str, Signature]) -> None:
        super().__init__(name, options, stated)
        self.functions = functions

    def fixed(self, function: str) -> int:
        return 1 if function == "query" else super().fixed(function)

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        if function != "query":
            return super().signature(function, fixed)
        query, names = fixed[0], self._statement(fixed[0])[1]
        if (signature := self.functions.get(query)) is not None:
            if sorted(names) != sorted(stated := [name for name, _ in signature.parameters]):
                raise DomainError(self.name, f"query {query} has the parameters {', '.join(names)}, and .function says {', '.join(stated)}")
            return signature
        if query not in self.stated:
            way = f".function {self.name}:{query}({', '.join(f'{name}: type' for name in names)}) -> (column: type, …)"
            raise DomainError(self.name, f"the columns of query {query} have no types; state them: {way}")
        return Signature(tuple((name, SYMBOL) for name in names), self.stated[query])

    def _statement(self, name: str) -> tuple[str, list[str]]:
        stated = {key.removeprefix("query."): value for key, value in self.options.items() if key.startswith("query.")}
        if name not in stated:
            hint = did_you_mean(name, stated) or f"there are {', '.join(stated) or 'none'}"
            raise DomainError(self.name, f"there is no query {name} ({hint})")
        return stated[name], list(dict.fromkeys(filter(None, PARAMETER.findall(stated[name]))))


class Sqlite(Database):
    """The tables of a SQLite file."""

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        path = Path(with_variables(self.options["url"]).removeprefix("sqlite:///"))
        if not path.is_file():
            raise DomainError(self.name, f"there is no database {path}")
        try:
            uri = f"file:{path}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=patience(self.options, TIMEOUT))) as connection:
                yield connection
        except sqlite3.OperationalError as reason:  # it is locked, say
            raise TransientError(self.name, str(reason)) from None
        except sqlite3.Error as reason:
            raise DomainError(self.name, str(reason)) from None

    def columns(self, table: str) -> Columns:
        with self._connected() as connection:
            columns = connection.execute("SELECT name, lower(type) FROM pragma_table_info(?)", (table,)).fetchall()
            there = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        if not columns:
            hint = did_you_mean(table, there) or f"there are {', '.join(there) or 'none'}"
            raise DomainError(self.name, f"there is no table {table} ({hint})")
        return tuple((name, _type_of(type_)) for name, type_ in columns)

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        signature = self.signature(function, fixed)
        results = ", ".join(quoted(name) for name, _ in signature.results)
        if function == "query":
            text, names = self._statement(fixed[0])[0], [name for name, _ in signature.parameters]
        else:
            test = f" WHERE {quoted(fixed[1])} {OPERATORS[function][0]} :value" if function != "all" else ""
            text, names = f"SELECT {results} FROM {quoted(fixed[0])}{test}", ["value"] if test else []
        with self._connected() as connection:
            answers = [connection.execute(text, dict(zip(names, map(_plain, row), strict=True))).fetchall() for row in arguments]
        typed = [[_values(signature.results, row) for row in rows] for rows in answers]
        return [checked(self.name, fixed[0], signature.results, rows, self.options) for rows in typed]


def _values(columns: Columns, row: Sequence[object]) -> list[object]:
    """What SQLite has for values that it has no types for."""
    values: list[object] = []
    for (_, type_), cell in zip(columns, row, strict=True):
        if type_.kind == "boolean" and cell in (0, 1):
            cell = bool(cell)
        elif isinstance(cell, str) and type_.kind in ("date", "timestamp"):
            cell = type_.parse(cell)
        values.append(cell)
    return values


def _plain(value: Value) -> Value | str:
    """A value as SQLite has it: times and decimals are texts."""
    return str(value) if isinstance(value, datetime.date | Decimal) else value


def _type_of(name: str) -> Type:
    return next((type_ for word, type_ in _TYPES if word in name), SYMBOL)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
