"""What relations and columns are called in SQL.

SQL does not tell `Edge` from `edge`, the language does; and a relation without columns needs one to be a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from vigilog.core.schema import PRESENT, distinct
from vigilog.core.values import BOOLEAN, Type
from vigilog.language.syntax import Declaration, Program


class Layout:
    """The SQL names of a program's relations and columns, and the columns' types. Tables may have a prefix of their own."""

    def __init__(self, program: Program, prefix: str = "") -> None:
        self.program, self.prefix = program, prefix

    @cached_property
    def tables(self) -> Mapping[str, str]:
        return {name: self.prefix + table for name, table in distinct(self.program.relations).items()}

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        return {name: _columns(declaration) for name, declaration in self.program.relations.items()}

    @cached_property
    def types(self) -> Mapping[str, tuple[Type, ...]]:
        return {name: declaration.types or (BOOLEAN,) for name, declaration in self.program.relations.items()}


def _columns(declaration: Declaration) -> tuple[str, ...]:
    return tuple(distinct(declaration.columns).values()) or (PRESENT,)
