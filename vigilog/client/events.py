"""What a subscription gives: the first answer, then every change after it, and what happens to the connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from vigilog.client.columns import Columns
from vigilog.core.delta import Delta
from vigilog.core.errors import UsageError
from vigilog.core.values import Row
from vigilog.protocol.shapes import Shape

V = TypeVar("V")
Pairs = tuple[tuple[Row, Row], ...]


@dataclass(frozen=True)
class Subscribed:
    """The server has promised every change after `tx` of the history `db`."""

    db: str
    tx: int
    columns: Mapping[str, Columns]
    frame: Shape | None = None  # the structure of a view frame
    digest: str = field(default="", compare=False)


@dataclass(frozen=True)
class Snapshot:
    """All rows of the views at one position. A later one (after a gap) takes the place of everything before it."""

    db: str
    tx: int
    views: Mapping[str, frozenset[Row]]
    digest: str = field(default="", compare=False)  # of the position

    @property
    def rows(self) -> frozenset[Row]:
        """The rows of the only view."""
        return _only(self.views)


@dataclass(frozen=True)
class Change:
    """What one transaction changed, or, with `since`, all those after that one, as a net effect.

    A subscription with less precision has `counts` (rows gained, rows lost) in place of `views`, or neither.
    """

    tx: int
    views: Mapping[str, Delta] = field(default_factory=dict)
    modified: Mapping[str, Pairs] = field(default_factory=dict)
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    since: int | None = None
    digest: str = field(default="", compare=False)  # of the position

    @property
    def plus(self) -> frozenset[Row]:
        """What the only view gained."""
        return _only(self.views).plus

    @property
    def minus(self) -> frozenset[Row]:
        """What the only view lost."""
        return _only(self.views).minus


@dataclass(frozen=True)
class Alert:
    """What an alert says of one key in one transaction: that it is `satisfied`, so `again` (with new `proofs`), or has `ceased`. `left` reports of the same transaction follow."""

    tx: int
    alert: str
    state: str
    row: Row
    old: Row | None = None
    proofs: int | None = None
    message: str = ""
    severity: str = ""
    left: int = 0
    digest: str = field(default="", compare=False)  # of the position, where nothing is left


@dataclass(frozen=True)
class Progress:
    """Nothing of the views changed up to here."""

    tx: int
    digest: str = field(default="", compare=False)


@dataclass(frozen=True)
class Stale:
    """`max_staleness` cannot be met: the copy is so many seconds behind. When it is met again `behind` is 0."""

    tx: int
    behind: float
    since: int


@dataclass(frozen=True)
class Gap:
    """What came after the position cannot be had any more (`code` is `gap`), or the server has another history (`history`, `future`): a new snapshot follows."""

    code: str
    message: str

    @property
    def ended(self) -> bool:
        """Whether the server has ended the subscription, so that it is to be made anew."""
        return self.code != "gap"


@dataclass(frozen=True)
class Disconnected:
    """The connection is lost; the next try comes after a pause."""

    reason: str
    pause: float


Event = Subscribed | Snapshot | Change | Alert | Progress | Stale | Gap | Disconnected


def _only(views: Mapping[str, V]) -> V:
    if len(views) != 1:
        raise UsageError("there is not one view here; look into `views`")
    return next(iter(views.values()))
