"""What relations and columns are called in SQL.

SQL does not tell `Edge` from `edge`, the language does; and a relation without columns needs one to be a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from vigilog.core.values import BOOLEAN, Type
from vigilog.language.syntax import Declaration, Program

PRESENT = "present"  # the only column of a relation without columns


class Layout:
    """The SQL names of a program's relations and columns, and the columns' types."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def tables(self) -> Mapping[str, str]:
        return distinct(self.program.relations)

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        return {name: _columns(declaration) for name, declaration in self.program.relations.items()}

    @cached_property
    def types(self) -> Mapping[str, tuple[Type, ...]]:
        return {name: declaration.types or (BOOLEAN,) for name, declaration in self.program.relations.items()}


def distinct(names: Iterable[str]) -> dict[str, str]:
    """For each name one that is different from all others in SQL, too; the name itself where that will do.

    >>> distinct(["edge", "Edge", "sqlite_x"])
    {'edge': 'edge', 'Edge': 'Edge_2', 'sqlite_x': '_sqlite_x'}
    """
    taken: set[str] = set()
    given = {}
    for name in names:
        stem = name.lstrip("?")
        stem = f"_{stem}" if stem.lower().startswith("sqlite_") else stem
        candidate, number = stem, 2
        while candidate.lower() in taken:
            candidate, number = f"{stem}_{number}", number + 1
        taken.add(candidate.lower())
        given[name] = candidate
    return given


def _columns(declaration: Declaration) -> tuple[str, ...]:
    return tuple(distinct(declaration.columns).values()) or (PRESENT,)
