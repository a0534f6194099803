"""Where a relation's rows are, and how they are written there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vigilog.core.values import Type, Value

TEXT_FORMATS = frozenset({"file", "csv", "json"})
ELSEWHERE = frozenset({"table", "jdbc", "iceberg"})  # what has no path


@dataclass(frozen=True)
class Place:
    """One relation's file or table. `location` is a path, a URI, or the name of a table; `options` are what else a source needs, passwords among them, and are never shown."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    format: str
    location: str
    delimiter: str
    headers: bool
    quoted: bool
    skip_nulls: bool
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    source: tuple[str, ...] = ()  # all columns that there are, in their order, if these are more than the relation's
    absent: str = ""  # a column whose null means that there is no row
    blanks: Mapping[str, Value] = field(default_factory=dict, hash=False)  # the values that nulls of columns get

    @property
    def fields(self) -> tuple[str, ...]:
        """The columns of a line."""
        return self.source or self.columns

    @property
    def lenient(self) -> frozenset[str]:
        """The columns that may be null; in a text, empty."""
        return frozenset([*self.blanks, *([self.absent] if self.absent else [])])

    @property
    def text(self) -> bool:
        return self.format in TEXT_FORMATS

    @property
    def path(self) -> Path:
        return Path(self.location)

    @property
    def local(self) -> bool:
        return self.format not in ELSEWHERE and not is_uri(self.location)


def is_uri(location: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://?", location) is not None
