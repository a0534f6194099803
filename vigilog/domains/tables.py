"""Functions over tables, whatever holds them: `all(t)`, `select_eq(t, column, value)` and `_ne _lt _le _gt _ge`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from vigilog.core.errors import did_you_mean
from vigilog.core.values import Row
from vigilog.domains.domain import Columns, DomainError, Options, Signature, checked

OPERATORS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "select_eq": ("=", operator.eq),
    "select_ne": ("<>", operator.ne),
    "select_lt": ("<", operator.lt),
    "select_le": ("<=", operator.le),
    "select_gt": (">", operator.gt),
    "select_ge": (">=", operator.ge),
}
FUNCTIONS = ("all", *OPERATORS)


class Tables:
    """A domain of tables. Its kinds say which tables there are, and read or select their rows."""

    def __init__(self, name: str, options: Options, stated: dict[str, Columns]) -> None:
        self.name, self.options, self.stated = name, options, stated

    def columns(self, table: str) -> Columns:
        """The columns of a table, as they are stated or as the source says. Raises DomainError if there is none."""
        raise NotImplementedError

    def rows(self, table: str, columns: Columns) -> Sequence[Sequence[object]]:
        """All rows of a table."""
        raise NotImplementedError

    def fixed(self, function: str) -> int:
        if function not in FUNCTIONS:
            hint = did_you_mean(function, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}"
            raise DomainError(self.name, f"there is no function {function} ({hint})")
        return 1 if function == "all" else 2

    def signature(self, function: str, fixed: Sequence[str]) -> Signature:
        table, *rest = fixed
        columns = self.stated.get(table) or self.columns(table)
        if not rest:
            return Signature((), columns)
        types = dict(columns)
        if rest[0] not in types:
            hint = did_you_mean(rest[0], types) or f"there are {', '.join(types)}"
            raise DomainError(self.name, f"{table} has no column {rest[0]} ({hint})")
        return Signature(((rest[0], types[rest[0]]),), columns)

    def ask(self, function: str, fixed: Sequence[str], arguments: Sequence[Row]) -> list[set[Row]]:
        table, *rest = fixed
        columns = self.stated.get(table) or self.columns(table)
        rows = checked(self.name, table, columns, self.rows(table, columns), self.options)
        if not rest:
            return [rows for _ in arguments]
        place = [name for name, _ in columns].index(rest[0])
        compare = OPERATORS[function][1]
        if function == "select_eq":
            by_value: dict[object, set[Row]] = {}
            for row in rows:
                by_value.setdefault(row[place], set()).add(row)
            return [by_value.get(value, set()) for (value,) in arguments]
        return [{row for row in rows if compare(row[place], value)} for (value,) in arguments]
