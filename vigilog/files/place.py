"""Where a relation's rows are, and how they are written there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vigilog.core.values import Type

TEXT_FORMATS = frozenset({"file", "csv", "json"})
ELSEWHERE = frozenset({"table", "jdbc"})  # what has no path


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
