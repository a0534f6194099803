"""What relations and columns are called in SQL.

SQL does not tell `Edge` from `edge`, the language does; and a relation without columns needs one to be a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from vigilog.core.schema import PRESENT, distinct
from vigilog.core.values import BOOLEAN, Type
from vigilog.language.program import Program
from vigilog.language.syntax import Declaration


class Layout:
    """The SQL names of a program's relations and columns, and the columns' types. Tables may have a prefix of their own."""

    def __init__(self, program: Program, prefix: str = "", functional: Mapping[str, int] | None = None) -> None:
        """In relations that are `functional` so many of the last columns follow from the others."""
        self.program, self.prefix, self.functional = program, prefix, functional or {}

    @cached_property
    def tables(self) -> Mapping[str, str]:
        return {name: self.prefix + table for name, table in distinct(self.program.relations).items()}

    @property
    def excepted(self) -> Mapping[str, str]:
        """For relations of which not all rows of their table count, the table of those that do not."""
        return {}

    @cached_property
    def taken(self) -> frozenset[str]:
        """The names of tables as SQL tells them from each other."""
        return frozenset(table.lower() for table in self.tables.values())

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        return {name: _columns(declaration) for name, declaration in self.program.relations.items()}

    @cached_property
    def types(self) -> Mapping[str, tuple[Type, ...]]:
        return {name: declaration.types or (BOOLEAN,) for name, declaration in self.program.relations.items()}


class FileLayout(Layout):
    """Names of tables that last: those of a relation do not depend on what else a program has."""

    @cached_property
    def tables(self) -> Mapping[str, str]:
        return {name: file_table(name) for name in self.program.relations}


def file_table(relation: str) -> str:
    """The table of a relation in a file, which has other tables, too.

    >>> file_table("edge"), file_table("Edge")
    ('r_edge', 'r_^edge')
    """
    return "r_" + "".join(f"^{letter.lower()}" if letter.lower() != letter else letter for letter in relation)


def _columns(declaration: Declaration) -> tuple[str, ...]:
    return tuple(distinct(declaration.columns).values()) or (PRESENT,)
