"""Names of columns and tables where SQL keeps them."""

from __future__ import annotations

from collections.abc import Iterable

PRESENT = "present"  # the only column of a relation without columns, which as a table needs one


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
