"""One subscription, without input and output: what it says to the server, what it makes of what it hears, and where it stands.

Its life: it asks as it was told to; from the first snapshot or change on its position is that of its holder, and after a lost connection it asks for what came since; when that cannot be had it begins anew.
A position is acknowledged when its holder has dealt with it, never before.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from msgspec import UnsetType
from msgspec.structs import replace

from vigilog.client.calls import asked, body
from vigilog.client.columns import FETCHED, Columns, read_columns
from vigilog.client.effects import Backoff, Close, Give, Lost, Open, Pause, Play, Receive, Request, Response, Send
from vigilog.client.events import Alert, Change, Disconnected, Event, Gap, Pairs, Progress, Snapshot, Stale, Subscribed
from vigilog.core.delta import Delta
from vigilog.core.errors import ConnectionLost, DataError, UsageError
from vigilog.core.values import Row
from vigilog.protocol import messages
from vigilog.protocol.messages import ClientMessage, Fetch, Mark, ServerMessage, Side, Subscribe, ViewChange, read
from vigilog.protocol.shapes import Shape

ALERT_FIELDS = {field.name for field in fields(Alert)}
GONE = ("gap", "history", "future")  # what was asked for cannot be had, but a first answer can
NOT_NOW = ("stopping", "closed", "limit", "rate", "disk")  # may be better soon, for one that had a subscription already


class Subscription:
    def __init__(self, wish: Subscribe, *, acknowledges: bool = True, renews: bool = False, named: bool = False) -> None:
        """With `acknowledges`, a named subscription tells the server about everything that was dealt with; without, only `ack` does.

        With `renews`, a position that the server does not know is replaced by a first answer even when it was stated. Rows are NamedTuples, if they are to be `named`.
        """
        self.wish, self.acknowledges, self.renews, self.named = wish, acknowledges, renews, named
        self.db = wish.db or ""
        self.position, self.digest = wish.position, wish.digest
        self.columns: dict[str, Columns] = {}
        self.established = False  # whether the server has promised something once
        self.settled = wish.resumes and bool(wish.db)  # whether what its holder has is that of the position
        self.held = False  # whether something was given and not dealt with
        self.acknowledged = -1
        self._anew = False
        self._given = (-1, 0)  # the transaction of the last report, and how many were left of it
        self._parts: dict[str, list[Row]] = {}

    @property
    def mark(self) -> Mark | int | None:
        """The position, with its digest if the server has told it."""
        return Mark(self.position, self.digest) if self.position is not None and self.digest else self.position

    # -- what it says

    def opening(self) -> str:
        """The first message of a connection."""
        self._parts = {}
        if self.settled:
            return _text(ClientMessage(subscribe=replace(self.wish, start=self.mark, db=self.db)))
        return _text(ClientMessage(subscribe=replace(self.wish, start=None, db=None) if self._anew else self.wish))

    def dealt(self, event: Event, well: bool) -> str | None:
        """After an event was given, and dealt with (well or not): what to say to the server, if anything."""
        if isinstance(event, Subscribed) and self.settled and self.acknowledged >= 0:
            return _text(ClientMessage(ack=self.acknowledged))  # which may have been lost
        if isinstance(event, Alert) and event.left:
            self.held = self.held or not well or not self.acknowledges
            return None
        if isinstance(event, Snapshot | Change | Alert):
            self.held = self.held or not well or not self.acknowledges
        elif not isinstance(event, Progress) or not self.settled:
            return None
        return None if self.held else self._ack(event.tx)

    def ack(self, tx: int) -> str | None:
        """Everything up to a position is dealt with, says its holder. What to say to the server, if anything."""
        if self.wish.name is None:
            raise UsageError("only a subscription with a name has positions to acknowledge")
        if self.position is None or tx > self.position:
            raise UsageError(f"{tx} cannot be acknowledged: the last position is {self.position}")
        self.held = self.held and tx < self.position
        return self._ack(tx)

    def ask(self, tx: int) -> str | None:
        """Somebody waits for a position. What to say to the server, if anything, so that he is told of it soon."""
        return _text(ClientMessage(progress=tx)) if self.settled and self.position is not None and tx > self.position else None

    def _ack(self, tx: int) -> str | None:
        if self.wish.name is None or tx <= self.acknowledged:
            return None
        self.acknowledged = tx
        return _text(ClientMessage(ack=tx))

    # -- what it hears

    def take(self, text: str | bytes) -> Play[Event | None]:
        """What a message of the server means, after rows that were too many to send are fetched."""
        message = read(text, ServerMessage, "message of a server")
        if message.subscribed is not None:
            return self._subscribed(message.subscribed)
        if message.snapshot is not None:
            return (yield from self._snapshot(message.snapshot))
        if message.change is not None:
            return (yield from self._change(message.change))
        if message.alert is not None:
            return self._alert(message.alert)
        if message.error is not None:
            return self._error(message.error)
        if message.stale is not None:
            return Stale(message.stale.tx, message.stale.behind, message.stale.since)
        progress = message.progress or message.closing
        return self._progress(progress) if progress is not None else None

    def _subscribed(self, message: messages.Subscribed) -> Subscribed:
        self.established = True
        self.db = message.db
        self.columns = {
            name: read_columns(view.columns, view.key, view.constrained, name if self.named else "") for name, view in message.views.items()
        } or self.columns
        if not self.settled:
            self.position, self.digest = message.tx, message.digest
            self.settled = self.wish.resumes and not self._anew
        return Subscribed(message.db, message.tx, self.columns, Shape.from_json(message.frame) if message.frame else None, message.digest)

    def _snapshot(self, message: messages.Snapshot) -> Play[Event | None]:
        if not isinstance(message.fetch, UnsetType):
            fetched = yield from self._fetched(message.fetch)
            if isinstance(fetched, Gap):
                self.wish = replace(self.wish, snapshot="json")
                return fetched
            self._parts = {self._only: self.columns[self._only].fetched(fetched)}
        else:
            parts = {self._only: message.rows} if not isinstance(message.rows, UnsetType) else message.views or {}
            for view, rows in parts.items():
                self._parts.setdefault(view, []).extend(self._columns(view).rows(rows))
        if not message.last:
            return None
        rows_of = {view: frozenset(self._parts.pop(view, ())) for view in self.columns}
        self.position, self.digest, self.settled, self._anew = message.tx, message.digest, True, False
        return Snapshot(self.db, message.tx, rows_of, message.digest)

    def _change(self, message: messages.Change) -> Play[Event | None]:
        if self.position is not None and message.tx <= self.position:
            raise DataError(f"the server has sent change {message.tx} after position {self.position}", "message")
        single = not isinstance(message.views, dict)
        parts = {self._only: ViewChange(message.plus, message.minus, message.modified)} if single else message.views
        assert isinstance(parts, dict), "one or the other"
        views: dict[str, Delta] = {}
        counts: dict[str, tuple[int, int]] = {}
        modified: dict[str, Pairs] = {}
        for view, part in parts.items():
            if isinstance(part.plus, int) or isinstance(part.minus, int):
                counts[view] = (_number(part.plus), _number(part.minus))
            elif self.wish.qos.precision == "rows":
                delta = yield from self._delta(view, part)
                if isinstance(delta, Gap):
                    return delta
                views[view] = delta
            if not isinstance(part.modified, UnsetType):
                rows = self._columns(view).rows
                pairs = zip(rows([pair.old for pair in part.modified]), rows([pair.new for pair in part.modified]), strict=True)
                modified[view] = tuple(pairs)
        self.position, self.digest, self.settled = message.tx, message.digest, True
        return Change(message.tx, views, modified, counts, None if isinstance(message.since, UnsetType) else message.since, message.digest)

    def _alert(self, message: dict[str, Any]) -> Alert | None:
        """A report. The position is that before its transaction until the last of it is here; what is told again then is not given again."""
        rows = self._columns(message["alert"]).rows
        members: dict[str, Any] = {name: value for name, value in message.items() if name in ALERT_FIELDS}
        alert = Alert(**members | {name: rows([members[name]])[0] for name in ("row", "old") if name in members})
        if self.position is not None and alert.tx <= self.position:
            raise DataError(f"the server has sent an alert of {alert.tx} after position {self.position}", "message")
        repeated = self._given == (alert.tx, alert.left) or (self._given[0] == alert.tx and alert.left > self._given[1])
        self._given = alert.tx, min(alert.left, self._given[1]) if self._given[0] == alert.tx else alert.left
        self.position, self.digest, self.settled = alert.tx - bool(alert.left), alert.digest, True
        return None if repeated else alert

    def _delta(self, view: str, part: ViewChange) -> Play[Delta | Gap]:
        columns = self._columns(view)
        sides: dict[str, frozenset[Row]] = {}
        for side, rows in (("plus", part.plus), ("minus", part.minus)):
            if side not in sides and isinstance(rows, Fetch):
                fetched = yield from self._fetched(rows.fetch)
                if isinstance(fetched, Gap):
                    return fetched
                both = columns.fetched_change(fetched)
                sides |= both if part.plus == part.minus or _same_place(part.plus, part.minus) else {side: both[side]}
            elif side not in sides:
                sides[side] = frozenset(columns.rows(rows if isinstance(rows, list) else ()))
        return Delta(sides["plus"], sides["minus"])

    def _fetched(self, place: str) -> Play[Response | Gap]:
        """What the server has at a place; if it has it no more, the subscription begins anew."""
        try:
            response = yield from asked(Request("GET", place, headers={"Accept": FETCHED}))
        except ConnectionLost as lost:
            raise Lost(lost.message) from None
        except DataError as error:
            if error.code not in GONE:
                raise
            return self._begin_anew("fetch", error.message)
        return response

    def _progress(self, message: messages.Progress) -> Progress:
        if self.settled and self.position is not None and message.tx >= self.position:
            self.position, self.digest = message.tx, message.digest
        return Progress(message.tx, message.digest)

    def _error(self, error: messages.ErrorBody) -> Gap | None:
        if error.code == "ack":  # which does not end the subscription; it is said again with the next
            self.acknowledged = -1
            return None
        if error.code == "gap":
            return self._begin_anew("gap", error.message)
        if (self.established or self.renews) and error.code in GONE:
            return self._begin_anew(error.code, error.message)
        if self.established and error.code in NOT_NOW:
            raise Lost(error.message)
        raise DataError(error.message, error.code)

    def _begin_anew(self, code: str, message: str) -> Gap:
        self.settled, self._anew, self._parts = False, True, {}
        return Gap(code, message)

    @property
    def _only(self) -> str:
        if len(self.columns) != 1:
            raise DataError("the server has sent rows without saying of which view", "message")
        return next(iter(self.columns))

    def _columns(self, view: str) -> Columns:
        if view not in self.columns:
            raise DataError(f"the server has sent rows of {view}, which nobody has asked for", "message")
        return self.columns[view]


def follow(subscription: Subscription) -> Play[None]:
    """Subscribes, gives what comes, and subscribes again whenever the connection is lost, without end; what cannot be mended is raised."""
    backoff = Backoff()
    while True:
        try:
            yield Open()
            yield Send(subscription.opening())
            event: Event | None = None
            while not (isinstance(event, Gap) and event.ended):
                event = yield from subscription.take((yield Receive()))
                if event is None:
                    continue
                if not isinstance(event, Subscribed | Gap):
                    backoff = Backoff()
                well = yield Give(event)
                if (message := subscription.dealt(event, bool(well))) is not None:
                    yield Send(message)
            yield Close()
            yield Pause(backoff.next())
        except Lost as lost:
            if not subscription.established and backoff.spent >= lost.patience:
                raise ConnectionLost(lost.reason) from None
            pause = backoff.next()
            yield Close()
            yield Give(Disconnected(lost.reason, pause))
            yield Pause(pause)


def _text(message: ClientMessage) -> str:
    return body(message).decode()


def _number(side: Side | UnsetType) -> int:
    return side if isinstance(side, int) else 0


def _same_place(plus: Side | UnsetType, minus: Side | UnsetType) -> bool:
    return isinstance(plus, Fetch) and isinstance(minus, Fetch) and plus.fetch == minus.fetch
