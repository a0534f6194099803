"""A domain: functions over a source. A function says what it takes and gives, and answers a batch of arguments, each with a set of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type

Options = Mapping[str, str]
Columns = tuple[tuple[str, Type], ...]

MAX_ROWS = 1_000_000  # of one call, unless `max_rows` says otherwise
TIMEOUT = 30.0  # seconds that a source may take, unless `timeout` says otherwise


class DomainError(DataError):
    """A source cannot be asked, or does not answer as it should."""

    code = "domain"

    def __init__(self, domain: str, message: str) -> None:
        super().__init__(f"{domain}: {message}", "domain")
        self.domain = domain

    def json(self) -> dict[str, Any]:
        return {**super().json(), "domain": self.domain}


@dataclass(frozen=True)
class Signature:
    """What a function takes and gives. `row` says that its results are rows with fields, and not single values; `takes` says of each argument
    that is a row which fields it has, and so how many of the parameters are its; None if it is a single value."""

    parameters: Columns
    results: Columns
    row: bool = True
    takes: tuple[tuple[str, ...] | None, ...] | None = None

    @property
    def arguments(self) -> tuple[tuple[str, ...] | None, ...]:
        return (None,) * len(self.parameters) if self.takes is None else self.takes


class Domain(Protocol):
    """A source. `fixed` are arguments that the program states (the name of a table, of a column), by which its functions differ."""

    def fixed(self, function: str) -> int:
        """How many of the first arguments of a function are fixed. Raises DomainError if there is no such function."""

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        """What a function takes and gives. Raises DomainError if it does not exist, with those that do."""

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        """For each tuple of arguments what the function gives, as it is now. Raises DomainError if the source is down, or gives what it should not."""


def checked(domain: str, what: str, columns: Columns, rows: Sequence[Sequence[object]], options: Options) -> set[Row]:
    """Rows of a source as rows of their types. A null is refused, or its row is skipped, as the options say; too many rows are refused."""
    most = int(options.get("max_rows", MAX_ROWS))
    if len(rows) > most:
        raise DomainError(domain, f"{what} gives {len(rows)} rows, and max_rows is {most}")
    typed_rows: set[Row] = set()
    for row in rows:
        if len(row) != len(columns):
            raise DomainError(domain, f"{what} gives a row with {len(row)} values, and has {len(columns)} columns")
        if any(cell is None for cell in row):
            if options.get("nulls", "refuse") == "skip":
                continue
            column = next(name for (name, _), cell in zip(columns, row, strict=True) if cell is None)
            raise DomainError(domain, f"{what} gives a null in {column} (nulls=skip leaves such rows out)")
        try:
            typed_rows.add(tuple(type_.check(cell) for (_, type_), cell in zip(columns, row, strict=True)))
        except ValueError as reason:
            raise DomainError(domain, f"{what}: {reason}") from None
    return typed_rows


def with_variables(text: str) -> str:
    """An option's value, with `${NAME}` replaced by what the environment has under that name."""

    def value(variable: re.Match[str]) -> str:
        if variable[1] not in os.environ:
            raise DataError(f"the environment has no {variable[1]}", "domain")
        return os.environ[variable[1]]

    return re.sub(r"\$\{(\w+)\}", value, text)
