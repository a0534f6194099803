"""Names of relations that passes make. They never collide with a user's: a clash gets a longer suffix.

>>> names = Naming(["edge", "edge_del"])
>>> names("edge", "del"), names("edge", "new"), names("edge", "del")
('edge_del_', 'edge_new', 'edge_del_')
"""

from __future__ import annotations

from collections.abc import Iterable


class Naming:
    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.given: dict[tuple[str, ...], str] = {}

    def __call__(self, *parts: str) -> str:
        """The name for some parts, the same each time."""
        if parts not in self.given:
            name = "_".join(parts)
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            self.given[parts] = name
        return self.given[parts]

    def fresh(self, stem: str) -> str:
        """A name with the next number that is free: `sup_1`, `sup_2` …"""
        number = 1
        while f"{stem}_{number}" in self.taken:
            number += 1
        self.taken.add(f"{stem}_{number}")
        return f"{stem}_{number}"
