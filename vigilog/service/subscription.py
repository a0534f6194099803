"""One subscription, from its first answer on.

Its life:

    begin       it says what it has: nothing, and gets a first answer, or a position
    behind      what it needs is read from the outbox on the disk, until nothing is left there that the hub has not seen
    live        the hub offers each change as it is committed; what cannot be sent at once waits, a little of it in memory; if that is too much, it is behind again
    ended       by itself, by its connection, or because what it follows is gone

`position` is the law: every change up to it was sent, or does not concern this subscription; and none after it was sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from vigilog.core.errors import DataError, VigilogError
from vigilog.engine.nested import shape_of
from vigilog.protocol.messages import ErrorBody, Id, Progress, Snapshot, Stale, Subscribe, Subscribed, write
from vigilog.service.access import Rights
from vigilog.service.background import Mistake
from vigilog.service.slices import Channel, Slice, netted
from vigilog.service.spelling import Manner

if TYPE_CHECKING:
    from vigilog.service.hub import Hub

log = logging.getLogger("vigilog.service")
CHUNK = 256 * 1024  # bytes that are handed to a connection at once

Words = tuple[str, str, Manner]  # what the words of a change depend on: the outlet's kind, precision, how rows are told


class ClientGone(Exception):
    """The client is."""


class Outlet(Protocol):
    """Where messages go. It waits while the client does not read, and raises Gone when it will not any more."""

    kind: str

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        """A message as it is sent."""

    def push(self, data: bytes) -> bool:
        """Sends at once, if nothing has to be waited for; whether it did."""

    async def send(self, data: bytes) -> None: ...


class Subscription:
    __slots__ = (
        "awaited",
        "behind",
        "busy",
        "channel",
        "ended",
        "error",
        "finishing",
        "frame",
        "heard",
        "hub",
        "id",
        "late",
        "manner",
        "nudged",
        "number",
        "outlet",
        "pending",
        "position",
        "rights",
        "sent",
        "spec",
        "stale",
        "timer",
        "told",
        "waiting_rows",
        "woken",
    )

    def __init__(self, hub: Hub, outlet: Outlet, spec: Subscribe, id: Id | None, rights: Rights, channel: Channel) -> None:
        self.hub, self.outlet, self.spec, self.id, self.rights, self.channel = hub, outlet, spec, id, rights, channel
        self.frame = None if spec.frame is None else shape_of(hub.db.program, spec.frame)  # what its client knows of its structure
        self.number = next(hub.numbers)
        self.manner = Manner(spec.integers, spec.rows)
        self.position = -1
        self.told = -1  # the newest position that the client knows,
        self.awaited = -1  # and one that it waits for
        self.heard = 0.0  # when it was last sent something,
        self.sent = float("-inf")  # and when rows
        self.pending: list[Slice] = []
        self.waiting_rows = 0
        self.behind = True
        self.late = time.monotonic()  # since when it is behind
        self.stale = False
        self.nudged = False
        self.busy = True  # whether its own task is at work, so that nobody else may send
        self.ended = self.finishing = False
        self.error: VigilogError | None = None
        self.woken = asyncio.Event()
        self.timer: asyncio.TimerHandle | None = None

    def note(self, event: str) -> None:
        """Of clients that say which tool they are it is logged what they follow."""
        if self.spec.tool is not None:
            about = {"user": self.rights.name, "tool": self.spec.tool, "views": list(self.channel.shapes), "id": self.number}
            log.info(event, extra=about)

    # -- what the hub says

    def take(self, changes: Sequence[Slice], written: dict[Words, bytes]) -> None:
        """Changes that were just committed: sent at once, if they may be, in the words in which others are told them, too."""
        if self.behind or self.ended:
            return
        if not self.busy and not self.pending and self.id is None and self.spec.qos.immediate and changes[0].tx > self.position:
            words = self.outlet.kind, self.spec.qos.precision, self.manner
            if words not in written:
                written[words] = b"".join(map(self._form, changes))
            if self.outlet.push(written[words]):
                self.position = self.told = changes[-1].tx
                self.heard = self.sent = time.monotonic()
                return
        for change in changes:
            self.offer(change)

    def offer(self, change: Slice) -> None:
        """A change that was just committed."""
        if self.behind or change.tx <= self.position:
            return
        if not self.pending:
            self.position = change.tx - 1  # nothing in between concerns it
        self.pending.append(change)
        self.waiting_rows += change.rows + 1
        if self.waiting_rows > self.hub.limits.pending and len(self.pending) > 1:
            self.fall_behind()
        self.woken.set()

    def fall_behind(self) -> None:
        """What it needs next is on the disk."""
        if not self.behind:
            self.late = self.pending[0].at if self.pending else time.monotonic()
        self.behind, self.pending, self.waiting_rows = True, [], 0
        self.woken.set()

    def ask(self, tx: int) -> None:
        """The client waits for a transaction."""
        self.awaited = tx
        self.woken.set()

    def nudge(self, now: float) -> None:
        """Time has passed: perhaps it is to be told how far all is."""
        limits, quiet = self.hub.limits, now - self.heard
        if quiet >= limits.progress and (self.told < self.hub.tx or quiet >= limits.heartbeat):
            self.nudged = True
            self.woken.set()
        elif self._is_awaited() or self._grows_stale(now):
            self.woken.set()

    def end(self, error: VigilogError | None = None) -> None:
        if not self.ended:
            self.ended, self.error = True, error
        self.woken.set()

    def fail(self, reason: Exception) -> None:
        """A mistake of the server ends it, and no other."""
        self.hub.background.count("subscriptions", reason, views=self.channel.views)
        self.end(Mistake())

    def finish(self) -> None:
        """It is to end when all that there is was sent, due or not."""
        self.finishing = True
        self.woken.set()

    # -- its life

    async def run(self) -> None:
        """Serves it until it ends."""
        try:
            await self._begin()
            while not self.ended:
                await self._serve()
                if not self.ended:
                    self.busy = False
                    await self.woken.wait()
                    self.woken.clear()
                    self.busy = True
        except VigilogError as reason:
            self.end(reason)
        except ClientGone:
            self.end()
            return
        except Exception as reason:
            self.fail(reason)
        finally:
            if self.timer:
                self.timer.cancel()
            self.hub.leave(self)
        if self.error:
            with suppress(ClientGone):
                await self._say("error", ErrorBody.of(self.error))

    async def _begin(self) -> None:
        try:
            start = await self.hub.start_of(self)
        except DataError as reason:
            if reason.code != "gap":
                raise
            await self._say("error", ErrorBody.of(reason))
            start = None
        if start is None:
            await self._first_answer()
        else:
            self.position = self.told = start
            self.awaited = self.hub.tx  # it is told that it has all
            await self._say("subscribed", self._subscribed(start, await self.hub.digest(start)))

    async def _first_answer(self) -> None:
        if self.spec.snapshot == "fetch":
            tx = self.hub.tx
            digest = await self.hub.digest(tx)
            await self.hub.begun(self)
            await self._say("subscribed", self._subscribed(tx, digest))
            await self._say("snapshot", Snapshot(tx=tx, digest=digest, fetch=self.channel.whole(tx, self.manner), last=True))
        else:
            tx = await self._parts()
        self.position = self.told = tx
        self.sent = time.monotonic()

    async def _parts(self) -> int:
        """Sends the first answer; gives the transaction that it is of."""
        answer = await self.hub.first_answer(self)
        try:
            await self._say("subscribed", self._subscribed(answer.tx, answer.digest))
            for body in answer.bodies(single=self.channel.single):
                await self._send(self.outlet.form("snapshot", body, self.id))
        finally:
            answer.close()
        return answer.tx

    def _subscribed(self, tx: int, digest: str) -> Subscribed:
        views = {label: shape.described for label, shape in self.channel.shapes.items()}
        return Subscribed(self.hub.history, tx, digest, views, self.frame.json() if self.frame is not None else {})

    async def _serve(self) -> None:
        """Sends what is due, and sees to it that it is woken when something will be."""
        while not self.ended:
            if self.behind and self.position >= self.hub.tx:
                self.behind = False  # from here on, what comes is offered
            await self._tell_staleness()
            if not self.pending and not self.behind:
                self.ended = self.ended or self.finishing
                break
            if (due := self._due()) > time.monotonic() and not self.finishing:
                self._wake_at(due)
                break
            await self._deliver()
        if (self.nudged or self._is_awaited()) and not self.ended:
            self.nudged = False
            if not self.pending and not self.behind and not self.channel.passing:
                self.position = max(self.position, self.hub.tx)
            self.told = self.position
            await self._say("progress", await self.where())

    async def _deliver(self) -> None:
        """Sends what waits, or what the disk has; if that is not there any more, all of it anew."""
        coalesce = self.spec.qos.coalesce
        if not self.behind:
            changes, self.pending, self.waiting_rows = self.pending, [], 0
            reached = changes[-1].tx
            await self._send_changes(netted(changes, self.position) if coalesce else changes)
        else:
            try:
                changes, reached = await self.hub.changes(self.channel, self.position, coalesce=coalesce)
            except DataError as reason:
                if reason.code != "gap":
                    raise
                await self._say("error", ErrorBody.of(reason))
                await self._first_answer()
                return
            await self._send_changes(changes)
        self.position = reached

    async def _send_changes(self, changes: Sequence[Slice]) -> None:
        """Sends changes, some together; after each time the client knows those that were sent."""
        batch: list[bytes] = []
        size = 0
        for change in changes:
            batch.append(self._form(change))
            size += len(batch[-1])
            if size >= CHUNK or change is changes[-1]:
                await self._send(b"".join(batch))
                self.told, self.sent = change.tx, self.heard
                batch, size = [], 0

    def _form(self, change: Slice) -> bytes:
        """A change as it is sent: written once for all who are told the same."""
        precision, manner = self.spec.qos.precision, self.manner
        if self.channel.reporting:
            return b"".join(self.outlet.form("alert", body, self.id) for body in change.reports(manner))
        if self.id is not None:
            return self.outlet.form("change", change.body(precision, manner), self.id)
        key = self.outlet.kind, precision, manner
        if key not in change.written:
            change.written[key] = self.outlet.form("change", change.body(precision, manner), None)
        return change.written[key]

    async def where(self) -> Progress:
        """The position that its client knows."""
        tx = max(self.told, 0)
        return Progress(tx, await self.hub.digest(tx))

    async def _send(self, data: bytes) -> None:
        await self.outlet.send(data)
        self.heard = time.monotonic()

    async def _say(self, kind: str, message: Struct) -> None:
        await self._send(self.outlet.form(kind, write(message), self.id))

    # -- when

    def _due(self) -> float:
        """When what waits is to be sent."""
        qos, due = self.spec.qos, 0.0
        if qos.within is not None and self.pending and len(self.pending) < (qos.changes or 2**62):
            due = self.pending[0].at + qos.within
        elif qos.within is not None and self.behind and qos.changes is None:
            due = self.late + qos.within
        return due if qos.every is None else max(due, self.sent + qos.every)

    def _is_awaited(self) -> bool:
        """Whether the client waits to be told that nothing is left for it."""
        return self.told < self.awaited <= self.hub.tx and not self.pending and not self.behind and not self.channel.passing

    def _wake_at(self, due: float) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self.woken.set)

    def _waited(self, now: float) -> float:
        """How long the oldest change waits that was not sent."""
        return now - self.pending[0].at if self.pending else now - self.late if self.behind else 0.0

    def _grows_stale(self, now: float) -> bool:
        limit = self.spec.qos.max_staleness
        return limit is not None and not self.stale and self._waited(now) > limit

    async def _tell_staleness(self) -> None:
        limit = self.spec.qos.max_staleness
        if limit is not None and ((waited := self._waited(time.monotonic())) > limit) != self.stale:
            self.stale = not self.stale
            await self._say("stale", Stale(self.hub.tx, round(waited, 3) if self.stale else 0.0, self.told))
