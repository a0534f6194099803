"""Who keeps a stored component true on SQLite, by the name that strategies give it (`rewriting/maintenance/strategies/`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from vigilog.executors.embedded.counted import Counter
from vigilog.executors.embedded.improved import ImprovedComponent
from vigilog.executors.embedded.statements import WorkTables
from vigilog.executors.embedded.stored import StoredComponent
from vigilog.executors.embedded.tables import Tables
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.plan import ComponentPlan
from vigilog.rewriting.maintenance.states import Direction


class Keeper(Protocol):
    derived: int
    rounds: int

    def maintain(self) -> dict[str, Direction]:
        """Brings the relations up to date with changes of what they read, which are in the tables for that; gives their own. What is lost leaves a relation when the transaction ends."""

    def forget(self) -> None:
        """A transaction was taken back."""

    def warm(self) -> None:
        """Lets SQLite compile the statements, by running them over nothing."""


KEEPERS: Mapping[str, Callable[[ComponentPlan, Program, Tables, Mapping[str, int], WorkTables, set[str]], Keeper]] = {
    "rederiving": StoredComponent,
    "improving": ImprovedComponent,
    "counting": Counter,
}
