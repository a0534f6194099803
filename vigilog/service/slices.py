"""Which rows of a transaction concern whom.

A subscription follows a *channel*: parts of views, each the rows that have some values in some columns. Those who follow the same rows share a channel. A table of all bindings, by view and by columns, leads from a
changed row to the channels it concerns, so a transaction costs what it changes, however many bindings there are.

Rows are as JSON has them: what the log says can be sent as it is.

>>> index = Index()
>>> mine, yours = (Channel((Part("closure", "closure", ((0, name),)),), {}) for name in "ab")
>>> index.add(mine), index.add(yours)
(None, None)
>>> index.touched({"closure": ([("a", "h"), ("c", "h")], [])})[mine]
{'closure': ([('a', 'h')], [])}
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from msgspec import UNSET, UnsetType

from vigilog.core.delta import Delta, modified
from vigilog.core.facts import fact_rows
from vigilog.core.named import objects
from vigilog.core.values import Row, Type
from vigilog.protocol.messages import Change, Described, Fetch, Modified, ViewChange, columns_of, write
from vigilog.service.spelling import Manner

if TYPE_CHECKING:
    from vigilog.service.subscription import Subscription

Side = Sequence[Row] | Fetch
Sides = tuple[Side, Side]  # what came, what went
RowSides = tuple[Sequence[Row], Sequence[Row]]  # likewise, at hand


class Uncut(Sequence[Row]):
    """So many rows that nobody looks at here: they are too many to be sent, and those who follow them fetch them from the disk."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("rows that are fetched are not looked at before")


@dataclass(frozen=True)
class Part:
    """The rows of a view that have some values in some columns, less their first columns; messages call it by its label."""

    view: str
    label: str
    bound: tuple[tuple[int, Any], ...] = ()
    hidden: int = 0
    since: int = 0  # changes up to this transaction are not known
    condition: str = ""  # of an alert: the relation that it is on, whose columns its reports have; `view` is where they are in the outbox

    @property
    def relation(self) -> str:
        """The relation whose rows, or whose reports, these are."""
        return self.condition or self.view

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(column for column, _ in self.bound)

    @property
    def values(self) -> Row:
        return tuple(value for _, value in self.bound)

    def of(self, rows: Iterable[Sequence[Any]]) -> list[Row]:
        """Those of the view's rows that are meant."""
        if not self.bound:
            return [tuple(row) for row in rows]
        columns, values, hidden = self.columns, self.values, self.hidden
        return [tuple(row[hidden:]) for row in rows if tuple([frozen(row[column]) for column in columns]) == values]


def frozen(cell: Any) -> Any:
    """A cell of JSON as it is looked up by: a set or tuple, which is a list after it was read, is a tuple before it is written."""
    return tuple(map(frozen, cell)) if isinstance(cell, list) else cell


@dataclass(frozen=True)
class Shape:
    """The columns of a part's rows, their types, and which of them are a key."""

    columns: tuple[str, ...]
    types: tuple[Type, ...]
    key: tuple[int, ...] = ()
    constrained: bool = False  # its rows are texts of conditions, and are told as facts

    def told(self, rows: Sequence[Row], manner: Manner) -> Sequence[Any]:
        """Rows as messages have them."""
        return fact_rows(self.columns, rows) if self.constrained else manner.told(self.columns, self.types, rows)

    @property
    def described(self) -> Described:
        key = [self.columns[column] for column in self.key]
        return Described(columns_of(self.columns, self.types), key, self.constrained or UNSET)


@dataclass(eq=False)
class Channel:
    """What some subscriptions follow together."""

    parts: tuple[Part, ...]
    shapes: Mapping[str, Shape]  # by label
    members: set[Subscription] = field(default_factory=set)
    fresh: list[Slice] = field(default_factory=list)  # changes that are about to be passed on
    passing: bool = False  # whether changes are being passed on now, or a time is set for that
    rested: float = 0.0  # when changes may be passed on again

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(part.view for part in self.parts)

    @property
    def single(self) -> bool:
        """Whether messages need not say which view is meant."""
        return len(self.parts) == 1 and (self.parts[0].label in (self.parts[0].view, "query") or self.reporting)

    @property
    def reporting(self) -> bool:
        """Whether an alert is followed, and not a view."""
        return bool(self.parts[0].condition)

    @property
    def since(self) -> int:
        return max(part.since for part in self.parts)

    def large(self, part: Part, tx: int, rows: int) -> Fetch:
        """Where rows can be fetched that are too many to send."""
        return Fetch(_place(f"/v1/views/{quote(part.view)}/changes/{tx}", self._query(part)), rows)

    def whole(self, tx: int, manner: Manner) -> str:
        """Where all rows of the only part can be fetched, as of a transaction."""
        part = self.parts[0]
        return _place(f"/v1/views/{quote(part.view)}", {"at": str(tx)} | self._query(part) | manner.parameters)

    def _query(self, part: Part) -> dict[str, str]:
        """What is bound, and what is left out, as parameters of a call: values are written as in a file."""
        names = self.bound_names.get(part.label, ())
        bind = {
            f"bind.{name}": value if isinstance(value, str) else json.dumps(value) for name, value in zip(names, part.values, strict=True)
        }
        return bind | ({"skip": str(part.hidden)} if part.hidden else {})

    bound_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the columns that each part binds


def _place(path: str, query: Mapping[str, str]) -> str:
    parameters = urlencode(query)
    return f"{path}?{parameters}" if parameters else path


class Slice:
    """What one transaction changed in a channel. It is written once, for all who follow it."""

    __slots__ = ("at", "channel", "digest", "sides", "since", "tx", "written")

    def __init__(self, channel: Channel, tx: int, sides: Mapping[str, Sides], since: int | None = None, digest: str = "") -> None:
        self.channel, self.tx, self.sides, self.since, self.digest = channel, tx, sides, since, digest
        self.at = time.monotonic()
        self.written: dict[Any, bytes] = {}

    @property
    def rows(self) -> int:
        """How many rows it holds in memory."""
        return sum(len(side) for sides in self.sides.values() for side in sides if not isinstance(side, Fetch))

    @property
    def large(self) -> bool:
        return any(isinstance(side, Fetch) for sides in self.sides.values() for side in sides)

    def reports(self, manner: Manner) -> list[bytes]:
        """What each `alert` says: one message for each report, which tells how many are left of its transaction."""
        ((label, (entries, _)),) = self.sides.items()
        assert not isinstance(entries, Fetch), "reports are sent"
        shape, messages = self.channel.shapes[label], []
        for left, cells in zip(reversed(range(len(entries))), entries, strict=True):
            report = json.loads(str(cells[-1]))
            report |= {name: manner.told(shape.columns, shape.types, [report[name]])[0] for name in ("row", "old") if name in report}
            place = {"tx": self.tx} if left or not self.digest else {"tx": self.tx, "digest": self.digest}  # the position of the last
            messages.append(write({**place, **report, **({"left": left} if left else {})}))
        return messages

    def body(self, precision: str, manner: Manner) -> bytes:
        """What a `change` says."""
        key = precision, manner
        if key not in self.written:
            self.written[key] = self._body(precision, manner)
        return self.written[key]

    def _body(self, precision: str, manner: Manner) -> bytes:
        views = {label: self._view_change(label, sides, precision, manner) for label, sides in self.sides.items()}
        since = UNSET if self.since is None else self.since
        if not self.channel.single:
            return write(Change(tx=self.tx, digest=self.digest, since=since, views=views))
        only = next(iter(views.values()))
        return write(Change(tx=self.tx, digest=self.digest, since=since, plus=only.plus, minus=only.minus, modified=only.modified))

    def _view_change(self, label: str, sides: Sides, precision: str, manner: Manner) -> ViewChange:
        if precision == "signal":
            return ViewChange()
        shape = self.channel.shapes[label]
        if precision == "counts":
            plus, minus = (side.rows if isinstance(side, Fetch) else len(side) for side in sides)
            return ViewChange(plus, minus)
        spelled = Manner(manner.integers)
        told: Sequence[Any] = [_placed(side, manner) if isinstance(side, Fetch) else shape.told(side, spelled) for side in sides]
        pairs = UNSET if any(isinstance(side, Fetch) for side in told) else paired(told[0], told[1], shape.key)
        if manner.rows == "objects" and not shape.constrained:
            told = [side if isinstance(side, Fetch) else objects(shape.columns, side) for side in told]
            pairs = [Modified(*objects(shape.columns, (pair.old, pair.new))) for pair in pairs] if pairs else UNSET
        return ViewChange(told[0], told[1], pairs)


class Net:
    """Changes one after the other as one: what came and went again is in neither side. Those with rows that are not here stay apart.

    >>> channel = Channel((Part("p", "p"),), {})
    >>> found = netted([Slice(channel, 5, {"p": ([(1,), (2,)], [])}), Slice(channel, 7, {"p": ([(3,)], [(1,)])})], since=4)
    >>> [(change.since, change.tx, change.sides) for change in found]
    [(4, 7, {'p': ([(2,), (3,)], [])})]
    """

    def __init__(self, since: int) -> None:
        self.since = self.until = since
        self.digest = ""  # of the last that was added
        self.done: list[Slice] = []
        self.sides: dict[str, tuple[set[Row], set[Row]]] = {}

    @property
    def rows(self) -> int:
        return sum(len(side) for sides in self.sides.values() for side in sides)

    def add(self, change: Slice) -> None:
        if change.large:
            self._close(change.channel)
            self.done.append(change)
            self.since = change.tx
        else:
            for label, (plus, minus) in change.sides.items():
                came, went = self.sides.setdefault(label, (set(), set()))
                for rows, here, there in ((minus, came, went), (plus, went, came)):
                    assert not isinstance(rows, Fetch), "such a change is large"
                    for row in rows:
                        here.discard(row) if row in here else there.add(row)
        self.until, self.digest = change.tx, change.digest

    def _close(self, channel: Channel) -> None:
        sides = {label: (sorted(came), sorted(went)) for label, (came, went) in self.sides.items() if came or went}
        if sides:
            self.done.append(Slice(channel, self.until, sides, self.since, self.digest))
        self.sides = {}

    def slices(self, channel: Channel) -> list[Slice]:
        self._close(channel)
        return self.done


def netted(changes: Sequence[Slice], since: int) -> list[Slice]:
    """Changes after a position as one, or as few."""
    net = Net(since)
    for change in changes:
        net.add(change)
    return net.slices(changes[-1].channel)


def paired(came: Sequence[Row], went: Sequence[Row], key: tuple[int, ...]) -> list[Modified] | UnsetType:
    """The rows of a change that replace each other, if there is a key and are some."""
    pairs = modified(Delta(frozenset(came), frozenset(went)), key) if key and came and went else []
    return [Modified(*pair) for pair in pairs] or UNSET


def _placed(side: Fetch, manner: Manner) -> Fetch:
    """A place where rows are told in some manner."""
    parameters = urlencode(manner.parameters)
    return Fetch(side.fetch + ("&" if "?" in side.fetch else "?") + parameters, side.rows) if parameters else side


class Index:
    """From changed rows to channels."""

    def __init__(self) -> None:
        self.channels: dict[tuple[Part, ...], Channel] = {}
        self.by_view: dict[str, dict[tuple[int, ...], dict[Row, list[tuple[Channel, Part]]]]] = {}

    def add(self, channel: Channel) -> None:
        self.channels[channel.parts] = channel
        for part in channel.parts:
            self.by_view.setdefault(part.view, {}).setdefault(part.columns, {}).setdefault(part.values, []).append((channel, part))

    def remove(self, channel: Channel) -> None:
        del self.channels[channel.parts]
        for part in channel.parts:
            tables = self.by_view[part.view]
            entries = tables[part.columns][part.values]
            entries.remove((channel, part))
            if not entries:
                del tables[part.columns][part.values]
                if not tables[part.columns]:
                    del tables[part.columns]
                    if not tables:
                        del self.by_view[part.view]

    def following(self, *views: str, sliced: bool = False) -> set[Channel]:
        """All channels that follow rows of some views, or only those that follow some rows and not all."""
        tables = [table for view in views for columns, table in self.by_view.get(view, {}).items() if columns or not sliced]
        return {channel for table in tables for entries in table.values() for channel, _ in entries}

    def is_sliced(self, view: str) -> bool:
        """Whether somebody follows some of a view's rows, and not all. Any thread may ask."""
        return any(list(self.by_view.get(view, ())))

    def touched(self, changes: Mapping[str, RowSides]) -> dict[Channel, dict[str, RowSides]]:
        """What changes of views mean for the channels they concern; of rows that are not looked at, only those who follow all of them learn."""
        by_channel: dict[Channel, dict[str, Any]] = {}
        for view, sides in changes.items():
            for columns, table in self.by_view.get(view, {}).items():
                if not columns:
                    for channel, part in table.get((), ()):
                        by_channel.setdefault(channel, {})[part.label] = sides
                    continue
                for number, rows in enumerate(() if any(isinstance(side, Uncut) for side in sides) else sides):
                    for row in rows:
                        for channel, part in table.get(tuple([frozen(row[column]) for column in columns]), ()):
                            mine = by_channel.setdefault(channel, {}).setdefault(part.label, ([], []))
                            mine[number].append(row[part.hidden :])
        return by_channel
