"""Rows by the names of their columns: told as objects, and, on request, answered so.

>>> in_order("member", ("user", "group"), [{"group": "g1", "user": "ann"}, ("bob", "g2")])
[('ann', 'g1'), ('bob', 'g2')]
>>> in_order("member", ("user", "group"), [{"usr": "ann", "group": "g1"}])
Traceback (most recent call last):
...
vigilog.core.errors.DataError: row 1 of member: there is no column usr; did you mean user? A row of member has user, group
>>> Member = record("member", ("user", "group"), (SYMBOL, SYMBOL))
>>> Member("ann", "g1")
member(user='ann', group='g1')
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from operator import itemgetter
from typing import Any

from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.values import PYTHON, SYMBOL, Row, Type

__all__ = ["SYMBOL", "in_order", "named_answer", "objects", "record", "records"]
SEQUENCES = frozenset({list, tuple})


def in_order(relation: str, columns: Sequence[str], given: Iterable[Any]) -> list[Any]:
    """Rows, of which some may be told by name, as mappings or dataclasses, in the order of the columns. Raises DataError for names that do not fit; what is no row at all is left as it is."""
    rows = given if type(given) is list else list(given)
    if set(map(type, rows)) <= SEQUENCES:
        return rows
    if columns and set(map(type, rows)) == {dict} and set(map(len, rows)) == {len(columns)}:
        pick: Callable[[Any], Any] = itemgetter(*columns)
        try:
            return list(map(pick, rows)) if len(columns) > 1 else [(pick(row),) for row in rows]
        except KeyError:
            pass  # of which row, is said below
    return [_in_order(relation, columns, number, row) for number, row in enumerate(rows, start=1)]


def _in_order(relation: str, columns: Sequence[str], number: int, row: Any) -> Any:
    if is_dataclass(row) and not isinstance(row, type):
        row = {field.name: getattr(row, field.name) for field in fields(row)}
    if not isinstance(row, Mapping):
        return row
    has = f"A row of {relation} has {', '.join(columns) or 'no columns'}"
    for name in row:
        if name not in columns:
            hint = did_you_mean(str(name), columns)
            raise DataError(f"row {number} of {relation}: there is no column {name}" + (f"; {hint}" if hint else ";") + f" {has}", "column")
    if missing := [column for column in columns if column not in row]:
        raise DataError(f"row {number} of {relation} does not say {' and '.join(missing)}. {has}", "column")
    return tuple(row[column] for column in columns)


def objects(columns: Sequence[str], rows: Iterable[Any]) -> list[Any]:
    """Rows as JSON's objects. Facts of constrained relations are some already.

    >>> objects(("x", "y"), [(1, 2)])
    [{'x': 1, 'y': 2}]
    """
    return [row if isinstance(row, Mapping) else dict(zip(columns, row, strict=True)) for row in rows]


def named_answer(answer: dict[str, Any], columns: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """An answer as `watch` prints it, with the rows of its views as objects.

    >>> named_answer({"tx": 1, "views": {"p": {"plus": [[1, 2]], "minus": []}}}, {"p": ("x", "y")})
    {'tx': 1, 'views': {'p': {'plus': [{'x': 1, 'y': 2}], 'minus': []}}}
    """
    if "views" not in answer:
        return answer
    return answer | {"views": {view: _named_sides(sides, columns[view]) for view, sides in answer["views"].items()}}


def _named_sides(sides: dict[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    named = {side: objects(columns, rows) for side, rows in sides.items() if side != "modified" and isinstance(rows, list)}
    pairs = [dict(zip(("old", "new"), objects(columns, (pair["old"], pair["new"])), strict=True)) for pair in sides.get("modified", ())]
    return sides | named | ({"modified": pairs} if pairs else {})


@cache
def record(name: str, columns: tuple[str, ...], types: tuple[Type, ...]) -> Any:
    """A NamedTuple for the rows of a relation, with the Python types of its columns. A column whose name is none in Python is called by its place: `_1`."""
    made: Any = namedtuple(name if re.fullmatch(r"[A-Za-z]\w*", name) else "row", columns, rename=True)  # type: ignore[misc]  # the columns are known here only
    made.__annotations__ = dict(zip(made._fields, (PYTHON[type_.kind] for type_ in types), strict=True))
    return made


def records(name: str, columns: Sequence[str], types: Sequence[Type], rows: Iterable[Row]) -> list[Row]:
    """Rows as NamedTuples: equal to the plain ones, and sorted like them."""
    return list(map(partial(tuple.__new__, record(name, tuple(columns), tuple(types))), rows))
