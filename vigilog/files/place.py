"""Where a relation's rows are, and how they are written there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from vigilog.core.values import Type

TEXT_FORMATS = frozenset({"file", "csv", "json"})


@dataclass(frozen=True)
class Place:
    """One relation's file or table. `location` is a path, a URI, or the name of a table."""

    relation: str
    columns: tuple[str, ...]
    types: tuple[Type, ...]
    format: str
    location: str
    delimiter: str
    headers: bool
    quoted: bool
    skip_nulls: bool

    @property
    def text(self) -> bool:
        return self.format in TEXT_FORMATS

    @property
    def path(self) -> Path:
        return Path(self.location)

    @property
    def local(self) -> bool:
        return self.format != "table" and not is_uri(self.location)


def is_uri(location: str) -> bool:
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://?", location) is not None
