"""A strategy: how a view is kept."""

from __future__ import annotations

from dataclasses import dataclass

from vigilog.language.syntax import Declaration


@dataclass(frozen=True)
class Strategy:
    """What is kept of a view, and who keeps it up to date.

    Of a view that is `stored`, all that it is derived from is stored, too. `keeper` names who changes a stored component on SQLite (`executors/embedded/keepers.py`). What a strategy cannot keep is left to `materialized`.
    """

    name: str
    about: str  # what it keeps, for those who choose
    stored: bool = True
    keeper: str = ""
    recursive: bool = True  # whether it can keep what is,
    nullary: bool = True  # and what has no columns

    def keeps(self, declaration: Declaration, *, recursive: bool) -> bool:
        return (self.recursive or not recursive) and (self.nullary or bool(declaration.attributes))
