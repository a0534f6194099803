"""What calls answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from vigilog.client.columns import Columns
from vigilog.core.delta import Delta
from vigilog.core.values import Row

if TYPE_CHECKING:
    import pandas
    import pyarrow


@dataclass(frozen=True)
class Receipt:
    """A transaction that was committed: its number, and how many rows each view that it changed has gained and lost; what alerts say of it, and what triggers did.

    After a retry `views` may be empty: the transaction happened once, the first time.
    """

    tx: int
    views: Mapping[str, tuple[int, int]]
    alerts: tuple[Mapping[str, Any], ...] = ()
    triggered: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preview:
    """What a transaction would change in the views, and what each subscription would be sent."""

    tx: int
    views: Mapping[str, Delta]
    columns: Mapping[str, Columns]
    subscriptions: tuple[Mapping[str, Any], ...] = ()
    alerts: tuple[Mapping[str, Any], ...] = ()
    triggered: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """A view that can be followed: its columns, and how the server keeps it."""

    name: str
    columns: Columns
    strategy: str = ""


@dataclass(frozen=True)
class Answer(Sequence[Row]):
    """Rows, sorted, as of a transaction.

    >>> from vigilog.core.values import SYMBOL
    >>> answer = Answer(7, Columns(("x",), (SYMBOL,)), (("a",), ("b",)))
    >>> len(answer), answer[0], ("b",) in answer
    (2, ('a',), True)
    """

    tx: int
    columns: Columns
    rows: tuple[Row, ...]
    db: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self.rows[index]

    def to_arrow(self) -> pyarrow.Table:
        return self.columns.to_arrow(self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        return self.columns.to_pandas(self.rows)
