"""The face for programs on asyncio: what the synchronous one does, awaited; a view is kept by a task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from inspect import isawaitable
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, assert_never, overload

import httpx
from websockets.asyncio.client import connect as connect_socket

from vigilog.client import calls
from vigilog.client.answers import Answer, Described, Preview, Receipt
from vigilog.client.calls import Operations, Transaction
from vigilog.client.copies import Copy
from vigilog.client.effects import Close, Effect, Give, Lost, Open, Pause, Performed, Play, Receive, Request, Response, Running, Send
from vigilog.client.events import Alert, Change, Disconnected, Event, Snapshot, Stale
from vigilog.client.following import Calling, Follower
from vigilog.client.subscription import Subscription
from vigilog.client.views import CopyHandle, OneView, SeveralViews
from vigilog.client.wishes import Following, Holding, Subject, alerted, followed, held, names
from vigilog.core.errors import ConnectionLost, UsageError
from vigilog.core.proofs import Proof
from vigilog.core.values import Value
from vigilog.core.whynot import WhyNot
from vigilog.protocol.calls import Load

T = TypeVar("T")


class AsyncClient(Calling):
    """A connection to a server. Close it, or use it in an `async with`; that also ends its subscriptions. It belongs to one loop."""

    def _begin(self) -> None:
        self._http = httpx.AsyncClient(**self.server.http)
        self._closed = False
        self._open: set[AsyncChanges | AsyncFeed] = set()

    # -- calls

    async def tell(self, transaction: Transaction | None = None, *, key: str | None = None, **operations: Unpack[Operations]) -> Receipt:
        """Commits a transaction, given as a whole or by its operations; raises DataError, and nothing has changed, if it is refused.

        It happens once, even if the connection is lost and it is sent again. A `key` of one's own makes that hold for calls of several processes.
        """
        return await self._do(calls.tell(transaction, key, operations))

    async def what_if(self, transaction: Transaction | None = None, **operations: Unpack[Operations]) -> Preview:
        """What a transaction would change; nothing is applied."""
        return await self._do(calls.what_if(transaction, operations))

    async def ask(self, goal: str, at: int | None = None, *, named: bool = False, enumerate: bool = False) -> Answer:
        """The answers to a goal like `closure("a", y)`, now or as of a transaction; each a NamedTuple, if they are to be `named`. Of a constrained relation these are facts, or, if it is to `enumerate` them, rows."""
        return await self._do(calls.ask(goal, at, named=named, enumerate=enumerate))

    async def why(self, goal: str) -> Proof | None:
        """A proof of an atom; None if it does not hold."""
        return await self._do(calls.why(goal))

    async def why_not(self, goal: str, depth: int = 1) -> WhyNot | None:
        """Why an atom does not hold, down to some levels of rules; None if it holds."""
        return await self._do(calls.why_not(goal, depth))

    async def views(self) -> list[Described]:
        """The views that can be read and followed."""
        return await self._do(calls.views())

    @overload
    async def view(
        self,
        name: str,
        bind: Mapping[str, Value] | None = None,
        at: int | None = None,
        *,
        named: bool = False,
        nested: Literal[False] = False,
    ) -> Answer: ...

    @overload
    async def view(
        self, name: str, bind: Mapping[str, Value] | None = None, at: int | None = None, *, nested: Literal[True]
    ) -> list[dict[str, Any]]: ...

    async def view(
        self, name: str, bind: Mapping[str, Value] | None = None, at: int | None = None, *, named: bool = False, nested: bool = False
    ) -> Answer | list[dict[str, Any]]:
        """All rows of a view, or those with some values, now or as of a transaction; each a NamedTuple, if they are to be `named`. Of a view frame `nested` gives its objects."""
        if nested:
            return await self._do(calls.nested(name, bind, at))
        return await self._do(calls.view(name, bind, at, named=named))

    async def violations(self) -> list[dict[str, Any]]:
        """The present violations of all constraints, enforced or not, with why."""
        return await self._do(calls.violations())

    async def acknowledge(self, alert: str, row: Iterable[Value]) -> None:
        """Somebody has seen what an alert says of a row, or of a key: the server's sinks are silent about that key until it ceases."""
        await self._do(calls.acknowledge(alert, row))

    async def program(self) -> str:
        """The text of the server's program."""
        return await self._do(calls.program())

    async def define(self, text: str, name: str = "definition") -> Receipt:
        """Adds relations and rules, or replaces those it has rules for; tells how many rows views gain and lose by that. Proofs and errors call the text by its `name`."""
        return await self._do(calls.define(text, name))

    async def drop(self, name: str) -> Receipt:
        """Removes a relation that no other is derived from."""
        return await self._do(calls.drop(name))

    async def load(
        self,
        relation: str,
        source: str,
        *,
        sync: bool = False,
        upsert: bool = False,
        delete_key: bool = False,
        op: str | None = None,
        **options: str,
    ) -> Receipt:
        """Adds the rows of a place that the server can read, a file or a table, to a base relation; with `sync` it is made equal to it, with `upsert` rows take the place of those with their key, with `delete_key` they are keys whose rows go, with `op` they say in that column what is to be done."""
        return await self._do(calls.load(Load(relation, source, sync, upsert, delete_key, op, options)))

    async def status(self) -> dict[str, Any]:
        """What the server holds, where, and how it is kept."""
        return await self._do(calls.status())

    async def subscriptions(self) -> list[dict[str, Any]]:
        """The named subscriptions of this token, with what they have acknowledged."""
        return await self._do(calls.subscriptions())

    async def cancel(self, name: str) -> None:
        """Forgets a named subscription."""
        await self._do(calls.cancel(name))

    async def bound(self, views: Iterable[str], bind: Mapping[str, str]) -> dict[str, Value]:
        """Values for `bind` from text, as a facts file has them."""
        return await self._do(calls.bound(views, bind))

    # -- subscriptions

    def subscribe(self, what: Subject, **wishes: Unpack[Following]) -> AsyncChanges:
        """Follows a view, several views or a goal: a Snapshot first, then every Change after it, once, in order, over all lost connections.

        With `since`, what came after a position, and no snapshot. With `name`, what came after the position that was acknowledged last under it, unless `anew`. What a loop was given is
        acknowledged when it asks for the next, or, with `acknowledge=False`, by `ack`.
        """
        return AsyncChanges(self, followed(what, wishes))

    def alerts(self, alert: str, **wishes: Unpack[Following]) -> AsyncChanges:
        """Follows an alert: a Snapshot of the rows that hold first, then every report after it, each an Alert, over all lost connections. It is wished for like views."""
        return AsyncChanges(self, alerted(alert, wishes))

    @overload
    async def enroll(self, what: str, **wishes: Unpack[Holding]) -> AsyncView: ...

    @overload
    async def enroll(self, what: list[str] | tuple[str, ...], **wishes: Unpack[Holding]) -> AsyncViews: ...

    async def enroll(self, what: str | list[str] | tuple[str, ...], **wishes: Unpack[Holding]) -> AsyncView | AsyncViews:
        """A copy of a view, of a goal's answers, or of several views together, that keeps itself equal to the server's from now on."""
        feed = AsyncFeed(self, *held(what, wishes))
        await feed.start()
        views = [AsyncView(feed, view) for view in names(what)]
        return views[0] if isinstance(what, str) else AsyncViews(feed, views)

    # -- its life

    async def close(self) -> None:
        """Ends all subscriptions, which go on from where they are when they are made again, and the connection."""
        self._closed = True
        for subscription in list(self._open):
            await subscription.close()
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def _do(self, play: Play[T]) -> T:
        running = Running(play)
        while (effect := running.effect) is not None:
            try:
                came = await self.perform(effect)
            except Lost as lost:
                running.lose(lost)
            else:
                running.answer(came)
        return running.result  # type: ignore[return-value]  # of a play that has come to its end

    async def perform(self, effect: Effect) -> Response | None:
        if isinstance(effect, Pause):
            await asyncio.sleep(effect.seconds)
            return None
        assert isinstance(effect, Request), "a call makes requests and pauses"
        if self._closed:
            raise ConnectionLost("the client is closed")
        with self.server.losing():
            answered = await self._http.request(**self.server.request(effect))
            return self.server.response(answered)


class AsyncChanges(Follower):
    """What a subscription gives, one after the other. One task at a time takes from it; taking may be cancelled, and loses nothing."""

    def __init__(self, client: AsyncClient, subscription: Subscription) -> None:
        super().__init__(subscription)
        self._client = client
        self._closed = asyncio.Event()
        client._open.add(self)

    async def begin(self) -> None:
        """Waits until the server has promised something. Raises what it refuses with."""
        while isinstance(await self._step(), Disconnected):
            self._given = True

    async def get(self) -> Event | None:
        """The next event of any kind; None if none will come."""
        event = await self._step()
        self._given = event is not None
        return event

    async def events(self) -> AsyncIterator[Event]:
        """Everything that happens, also to the connection."""
        while (event := await self.get()) is not None:
            yield event

    def __aiter__(self) -> AsyncIterator[Snapshot | Change | Alert | Stale]:
        return self

    async def __anext__(self) -> Snapshot | Change | Alert | Stale:
        while (event := await self.get()) is not None:
            if isinstance(event, Snapshot | Change | Alert | Stale):
                return event
        raise StopAsyncIteration

    async def ack(self, tx: int) -> None:
        """Everything up to a position is dealt with. What the server does not hear now, because the connection is lost, it hears with the next."""
        await self._say(self._subscription.ack(tx))

    async def expect(self, tx: int) -> None:
        """Makes the server tell as soon as it has come to a transaction, whether that changed anything or not; otherwise it takes some seconds."""
        await self._say(self._subscription.ask(tx))

    async def _say(self, message: str | None) -> None:
        if message is not None and self._socket is not None:
            with suppress(Lost), self._client.server.losing():
                await self._socket.send(message)

    async def cancel(self) -> None:
        """Ends it, and forgets its name."""
        await self.close()
        if self._subscription.wish.name is not None:
            await self._client.cancel(self._subscription.wish.name)

    async def close(self) -> None:
        """Ends it; under a name, another one can go on from there."""
        self._closed.set()
        self._client._open.discard(self)
        await self._disconnect()

    async def __aenter__(self) -> Self:
        try:
            await self.begin()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def _step(self) -> Event | None:
        """Goes on to the next event that is given."""
        try:
            self._go_on()
            while not isinstance(effect := self._running.effect, Give):
                if effect is None or self._closed.is_set():
                    return None
                try:
                    came = await self._perform(effect)
                except Lost as lost:
                    if self._closed.is_set():
                        return None
                    self._running.lose(lost)
                else:
                    self._running.answer(came)
            return effect.event
        except asyncio.CancelledError:
            if isinstance(self._running.effect, Send):  # whether it was sent is not known
                self._running.lose(Lost("sending was cancelled"))
            raise
        except Exception:
            await self.close()
            raise

    async def _perform(self, effect: Performed) -> Any:
        losing = self._client.server.losing
        match effect:
            case Open():
                with losing():
                    self._socket = await connect_socket(self._client.server.socket_url, **self._client.server.socket)
                self._client.server.reached = True
                if self._closed.is_set():
                    await self._disconnect()
            case Close():
                await self._disconnect()
            case Pause():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closed.wait(), effect.seconds)
            case Send() | Receive():
                socket = self._socket
                if socket is None:
                    raise Lost("the connection was closed")
                with losing():
                    return await (socket.send(effect.text) if isinstance(effect, Send) else socket.recv())
            case Request():
                return await self._client.perform(effect)
            case _:
                assert_never(effect)
        return None

    async def _disconnect(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            with suppress(Lost), self._client.server.losing():
                await socket.close()


class AsyncFeed:
    """The task that keeps a copy equal to the server's views, until it is closed or cannot."""

    def __init__(self, client: AsyncClient, subscription: Subscription, copy: Copy) -> None:
        self.copy, self._client = copy, client
        self.changes = AsyncChanges(client, subscription)
        self.task: asyncio.Task[None] | None = None
        client._open.add(self)

    @property
    def connected(self) -> bool:
        return self.changes.connected

    async def start(self) -> None:
        """Waits for the first answer. Raises what the server refuses with."""
        self.task = asyncio.create_task(self._run(), name="vigilog view")
        try:
            await self.wait_for(0, None)
        except BaseException:
            await self.close()
            raise

    async def wait_for(self, tx: int, timeout: float | None) -> bool:
        if asyncio.current_task() is self.task:
            if self.copy.position >= tx:
                return True
            raise UsageError("a callback cannot wait for what comes after it")
        come = asyncio.Event()
        self.copy.when(tx, come.set)
        await self.changes.expect(tx)
        try:
            async with asyncio.timeout(timeout):
                await come.wait()
        except TimeoutError:
            pass
        finally:
            self.copy.give_up(come.set)
        return self.copy.reached(tx)

    async def close(self) -> None:
        await self.changes.close()
        self._client._open.discard(self)
        if self.task is not None and asyncio.current_task() is not self.task:
            await asyncio.wait([self.task])

    async def _run(self) -> None:
        ended: Exception | None = None
        try:
            async for event in self.changes.events():
                for call in self.copy.take(event):
                    try:
                        if isawaitable(came := call()):
                            await came
                    except Exception as error:
                        self.changes.hold()
                        self.copy.trouble(error)
                self.copy.settle()
        except Exception as error:
            ended = error
            await self.changes.close()
        finally:
            self.copy.end(ended)


class _AsyncLiving(CopyHandle):
    """What a holder of views can do with their life."""

    _feed: AsyncFeed

    async def wait_for(self, tx: int, timeout: float | None = None) -> bool:
        """Waits until the copy has come to a transaction, and callbacks were told; False if that takes longer. Raises what has ended the view."""
        return await self._feed.wait_for(tx, timeout)

    async def ack(self, tx: int) -> None:
        """Everything up to a position is dealt with, after a callback had failed."""
        await self._feed.changes.ack(tx)

    async def cancel(self) -> None:
        """Ends it, and forgets its name."""
        await self._feed.close()
        await self._feed.changes.cancel()

    async def close(self) -> None:
        """Ends it; the rows stay as they are."""
        await self._feed.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


class AsyncView(_AsyncLiving, OneView):
    """The rows of a view, kept by a task. Callbacks may be coroutine functions."""


class AsyncViews(_AsyncLiving, SeveralViews[AsyncView]):
    """Views that change together, kept by a task."""
