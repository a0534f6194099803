"""What streams and sinks need of the database that they belong to."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vigilog.conditions.conditions import Conditions
from vigilog.core.delta import Delta
from vigilog.core.values import Row
from vigilog.engine.outcome import Outcome
from vigilog.engine.step import Step
from vigilog.engine.transaction import Transaction
from vigilog.files.place import Place
from vigilog.language.program import Program
from vigilog.store.file import DataFile
from vigilog.store.log import ChangeEntry, Log

if TYPE_CHECKING:
    from threading import RLock

    from vigilog.spark.types import DataFrame


class Positions(Protocol):
    """The book of a database: its log, and how far each source and sink has come."""

    @property
    def log(self) -> Log: ...

    def position(self, name: str) -> Any: ...

    def note_source(self, name: str, position: Any) -> None: ...

    def delta(self, relation: str, entry: ChangeEntry) -> Delta: ...


class Warehouse(Protocol):
    """What of a database is on Spark."""

    def is_far(self, name: str) -> bool: ...

    def located(self, location: str) -> str: ...

    def equalize(self, relation: str, wanted: Place, *, kind: str, source: tuple[str, Any]) -> Outcome:
        """Makes a relation equal to a source; its position is committed with that."""

    def follow(self, wanted: Place, name: str, *, kind: str, anew: bool = False) -> Outcome:
        """Makes a relation equal to a table that has snapshots, from the position of `name` on, which is committed with that, or `anew`."""


class Home(Protocol):
    """A database with a folder."""

    @property
    def folder(self) -> Path: ...

    @property
    def file(self) -> DataFile: ...

    @property
    def program(self) -> Program: ...

    @property
    def base(self) -> Collection[str]: ...

    @property
    def conditions(self) -> Conditions: ...

    @property
    def clock(self) -> Callable[[], float]: ...

    @property
    def lock(self) -> RLock: ...

    @property
    def step(self) -> Step: ...

    @property
    def book(self) -> Positions: ...

    @property
    def store(self) -> Warehouse: ...

    @property
    def tx(self) -> int: ...

    def take(self, transaction: Transaction, *, kind: str = ..., source: tuple[str, Any] | None = ...) -> Outcome: ...

    def view(self, name: str) -> set[Row]: ...

    def frame(self, name: str) -> DataFrame: ...

    def writing(self) -> AbstractContextManager[None]: ...
