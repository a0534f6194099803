"""How rows are told, and taken: integers as text for those whose numbers are not exact beyond 2^53, and then told so, too; rows as arrays, or as objects by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vigilog.core.named import objects
from vigilog.core.values import Row, Type
from vigilog.language.program import Program


class Manner(NamedTuple):
    """How somebody wants rows to be told.

    >>> from vigilog.core.values import NUMBER
    >>> Manner("text", "objects").told(("n",), (NUMBER,), [(7,)])
    [{'n': '7'}]
    """

    integers: str = "number"
    rows: str = "arrays"

    def told(self, columns: Sequence[str], types: Sequence[Type], rows: Sequence[Row]) -> Sequence[Any]:
        return self.shaped(columns, spelled(types, rows, self.integers))

    def shaped(self, columns: Sequence[str], rows: Sequence[Row]) -> Sequence[Any]:
        """Rows that are spelled, as arrays or as objects."""
        return objects(columns, rows) if self.rows == "objects" else rows

    @property
    def parameters(self) -> dict[str, str]:
        """What a call has to say to be answered so."""
        return {name: value for name, value in self._asdict().items() if value != self._field_defaults[name]}


def spelled(types: Sequence[Type], rows: Sequence[Row], integers: str) -> Sequence[Row]:
    """Rows with their integers as text, if that is wished."""
    spell = [type_.spelled for type_ in types]
    if integers != "text" or not any(spell):
        return rows
    return [tuple(cell if each is None else each(cell) for each, cell in zip(spell, row, strict=True)) for row in rows]


def read_spelled(program: Program, wish: Mapping[str, Any]) -> dict[str, Any]:
    """A transaction whose integers may be told as text, with integers; what fits nowhere is left, to be refused.

    >>> from vigilog.language.check import check
    >>> program = check(".decl stock(item: symbol, level: number) .key stock(item) .output stock").program
    >>> read_spelled(program, {"insert": {"stock": [["7", "7"], ["8", "x"]]}, "delete_key": {"stock": [["7"]]}})
    {'insert': {'stock': [['7', 7], ['8', 'x']]}, 'delete_key': {'stock': [['7']]}}
    """
    return {operation: _read_operation(program, operation, told) for operation, told in wish.items()}


def _read_operation(program: Program, operation: str, told: Any) -> Any:
    if not isinstance(told, Mapping):
        return told
    by_relation = dict(told)
    for relation in by_relation.keys() & program.relations.keys():
        declaration, rows = program.relations[relation], by_relation[relation]
        places = program.keys.get(relation, ()) if operation == "delete_key" else range(declaration.arity)
        types = {declaration.columns[place]: declaration.types[place] for place in places}
        if isinstance(rows, list):
            by_relation[relation] = [_read_row(types, row) for row in rows]
    return by_relation


def _read_row(types: Mapping[str, Type], row: Any) -> Any:
    """A row, in its order or by its names; an update is of two."""
    if isinstance(row, list) and len(row) == len(types):
        return [type_.from_spelled(cell) for type_, cell in zip(types.values(), row, strict=True)]
    if isinstance(row, dict) and row.keys() == {"old", "new"} and not row.keys() <= types.keys():
        return {side: _read_row(types, part) for side, part in row.items()}
    if isinstance(row, dict):
        return {name: types[name].from_spelled(cell) if name in types else cell for name, cell in row.items()}
    return row
