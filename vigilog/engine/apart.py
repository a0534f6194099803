"""Rows by name that say optional columns: these go to the relations of their own that the columns are.

>>> from vigilog.language.check import check
>>> text = '.decl e(x: number) .key e(x) .input e(optional="m: number") .output e'
>>> apart(check(text).program, {"upsert": {"e": [{"x": 1, "m": 5}, {"x": 2, "m": None}, {"x": 3}]}})
{'upsert': {'e': [{'x': 1}, {'x': 2}, {'x': 3}], 'e_m': [{'x': 1, 'm': 5}]}, 'delete_key': {'e_m': [{'x': 2}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from vigilog.language.program import Program

Operations = dict[str, dict[str, list[Any]]]


def apart(program: Program, transaction: Mapping[str, Any]) -> Mapping[str, Any]:
    """A transaction in which no row says columns that its relation leaves out. One that is null has no row; where it is not said, what is known of it stays."""
    owned = program.optional
    if not owned or not any(isinstance(told, Mapping) and not owned.keys().isdisjoint(told) for told in transaction.values()):
        return transaction
    operations: dict[str, Any] = {name: dict(told) if isinstance(told, Mapping) else told for name, told in transaction.items()}
    for operation, told in transaction.items():
        for relation in owned.keys() & told.keys() if isinstance(told, Mapping) and operation != "delete_key" else ():
            if isinstance(told[relation], list):
                operations[operation][relation] = [
                    _row(program, owned[relation], operation, relation, row, operations) for row in told[relation]
                ]
    return operations


def _row(program: Program, others: Mapping[str, str], operation: str, relation: str, row: Any, operations: Operations) -> Any:
    """A row without its optional columns, which are said of their own relations."""
    if operation == "update" and isinstance(row, Mapping) and row.keys() == {"old", "new"}:
        old = _row(program, others, "forget", relation, row["old"], operations)
        return {"old": old, "new": _row(program, others, "insert", relation, row["new"], operations)}
    if is_dataclass(row) and not isinstance(row, type):
        row = {field.name: getattr(row, field.name) for field in fields(row)}
    if not isinstance(row, Mapping) or others.keys().isdisjoint(row):
        return row
    columns = program.relations[relation].columns
    key = {columns[column]: row[columns[column]] for column in program.keys[relation] if columns[column] in row}
    for column in others.keys() & row.keys():
        if operation == "forget" or (operation == "upsert" and row[column] is None):
            operations.setdefault("delete_key", {}).setdefault(others[column], []).append(key)
        elif row[column] is not None:
            operations.setdefault(operation, {}).setdefault(others[column], []).append({**key, column: row[column]})
    return {name: cell for name, cell in row.items() if name not in others}
