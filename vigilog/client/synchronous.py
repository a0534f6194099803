"""The face for ordinary programs: calls wait for their answer; a view is kept by a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, assert_never, overload

import httpx
from websockets.sync.client import connect as connect_socket

from vigilog.client import calls
from vigilog.client.admin import ViewAdmin
from vigilog.client.answers import Answer, Described, Preview, Receipt
from vigilog.client.calls import Operations, Transaction
from vigilog.client.copies import Copy
from vigilog.client.effects import Close, Effect, Give, Lost, Open, Pause, Performed, Play, Receive, Request, Response, Running, Send
from vigilog.client.events import Alert, Change, Disconnected, Event, Snapshot, Stale
from vigilog.client.following import Calling, Follower
from vigilog.client.subscription import Subscription
from vigilog.client.views import CopyHandle, OneView, SeveralViews
from vigilog.client.wishes import Following, Framing, Holding, Subject, alerted, followed, held, names
from vigilog.core.errors import ConnectionLost, UsageError
from vigilog.core.proofs import Proof
from vigilog.core.values import Value
from vigilog.core.whynot import WhyNot
from vigilog.protocol.calls import Load

T = TypeVar("T")


class Client(Calling):
    """A connection to a server. Close it, or use it in a `with`; that also ends its subscriptions. It may be used from several threads."""

    def _begin(self) -> None:
        self._http = httpx.Client(**self.server.http)
        self._closing = threading.Event()
        self._open: set[Changes | Feed] = set()

    # -- calls

    def tell(self, transaction: Transaction | None = None, *, key: str | None = None, **operations: Unpack[Operations]) -> Receipt:
        """Commits a transaction, given as a whole or by its operations; raises DataError, and nothing has changed, if it is refused.

        It happens once, even if the connection is lost and it is sent again. A `key` of one's own makes that hold for calls of several processes.
        """
        return self._do(calls.tell(transaction, key, operations))

    def what_if(self, transaction: Transaction | None = None, **operations: Unpack[Operations]) -> Preview:
        """What a transaction would change; nothing is applied."""
        return self._do(calls.what_if(transaction, operations))

    def ask(self, goal: str, at: int | None = None, *, named: bool = False, enumerate: bool = False) -> Answer:
        """The answers to a goal like `closure("a", y)`, now or as of a transaction; each a NamedTuple, if they are to be `named`. Of a constrained relation these are facts, or, if it is to `enumerate` them, rows."""
        return self._do(calls.ask(goal, at, named=named, enumerate=enumerate))

    def why(self, goal: str) -> Proof | None:
        """A proof of an atom; None if it does not hold."""
        return self._do(calls.why(goal))

    def why_not(self, goal: str, depth: int = 1) -> WhyNot | None:
        """Why an atom does not hold, down to some levels of rules; None if it holds."""
        return self._do(calls.why_not(goal, depth))

    def views(self) -> list[Described]:
        """The views that can be read and followed."""
        return self._do(calls.views())

    @overload
    def view(
        self,
        name: str,
        bind: Mapping[str, Value] | None = None,
        at: int | None = None,
        *,
        named: bool = False,
        nested: Literal[False] = False,
    ) -> Answer: ...

    @overload
    def view(
        self, name: str, bind: Mapping[str, Value] | None = None, at: int | None = None, *, nested: Literal[True]
    ) -> list[dict[str, Any]]: ...

    def view(
        self, name: str, bind: Mapping[str, Value] | None = None, at: int | None = None, *, named: bool = False, nested: bool = False
    ) -> Answer | list[dict[str, Any]]:
        """All rows of a view, or those with some values, now or as of a transaction; each a NamedTuple, if they are to be `named`. Of a view frame `nested` gives its objects."""
        if nested:
            return self._do(calls.nested(name, bind, at))
        return self._do(calls.view(name, bind, at, named=named))

    def enroll_frame(self, frame: str, **wishes: Unpack[Framing]) -> ViewAdmin:
        """The objects of a view frame, patched in place by `process_update_message`, or by a thread of their own (`run`)."""
        return ViewAdmin(self, frame, **wishes)

    def violations(self) -> list[dict[str, Any]]:
        """The present violations of all constraints, enforced or not, with why."""
        return self._do(calls.violations())

    def acknowledge(self, alert: str, row: Iterable[Value]) -> None:
        """Somebody has seen what an alert says of a row, or of a key: the server's sinks are silent about that key until it ceases."""
        self._do(calls.acknowledge(alert, row))

    def program(self) -> str:
        """The text of the server's program."""
        return self._do(calls.program())

    def define(self, text: str, name: str = "definition") -> Receipt:
        """Adds relations and rules, or replaces those it has rules for; tells how many rows views gain and lose by that. Proofs and errors call the text by its `name`."""
        return self._do(calls.define(text, name))

    def drop(self, name: str) -> Receipt:
        """Removes a relation that no other is derived from."""
        return self._do(calls.drop(name))

    def load(
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
        return self._do(calls.load(Load(relation, source, sync, upsert, delete_key, op, options)))

    def status(self) -> dict[str, Any]:
        """What the server holds, where, and how it is kept."""
        return self._do(calls.status())

    def subscriptions(self) -> list[dict[str, Any]]:
        """The named subscriptions of this token, with what they have acknowledged."""
        return self._do(calls.subscriptions())

    def cancel(self, name: str) -> None:
        """Forgets a named subscription."""
        self._do(calls.cancel(name))

    def bound(self, views: Iterable[str], bind: Mapping[str, str]) -> dict[str, Value]:
        """Values for `bind` from text, as a facts file has them."""
        return self._do(calls.bound(views, bind))

    # -- subscriptions

    def subscribe(self, what: Subject, **wishes: Unpack[Following]) -> Changes:
        """Follows a view, several views or a goal: a Snapshot first, then every Change after it, once, in order, over all lost connections.

        With `since`, what came after a position, and no snapshot. With `name`, what came after the position that was acknowledged last under it, unless `anew`. What a loop was given is
        acknowledged when it asks for the next, or, with `acknowledge=False`, by `ack`.
        """
        changes = Changes(self, followed(what, wishes))
        changes.begin()
        return changes

    def alerts(self, alert: str, **wishes: Unpack[Following]) -> Changes:
        """Follows an alert: a Snapshot of the rows that hold first, then every report after it, each an Alert, over all lost connections. It is wished for like views."""
        changes = Changes(self, alerted(alert, wishes))
        changes.begin()
        return changes

    @overload
    def enroll(self, what: str, **wishes: Unpack[Holding]) -> View: ...

    @overload
    def enroll(self, what: list[str] | tuple[str, ...], **wishes: Unpack[Holding]) -> Views: ...

    def enroll(self, what: str | list[str] | tuple[str, ...], **wishes: Unpack[Holding]) -> View | Views:
        """A copy of a view, of a goal's answers, or of several views together, that keeps itself equal to the server's from now on."""
        feed = Feed(self, *held(what, wishes))
        feed.start()
        views = [View(feed, view) for view in names(what)]
        return views[0] if isinstance(what, str) else Views(feed, views)

    # -- its life

    def close(self) -> None:
        """Ends all subscriptions, which go on from where they are when they are made again, and the connection."""
        self._closing.set()
        for subscription in list(self._open):
            subscription.close()
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _do(self, play: Play[T]) -> T:
        running = Running(play)
        while (effect := running.effect) is not None:
            try:
                came = self.perform(effect)
            except Lost as lost:
                running.lose(lost)
            else:
                running.answer(came)
        return running.result  # type: ignore[return-value]  # of a play that has come to its end

    def perform(self, effect: Effect) -> Response | None:
        if isinstance(effect, Pause):
            self._closing.wait(effect.seconds)
            return None
        assert isinstance(effect, Request), "a call makes requests and pauses"
        if self._closing.is_set():
            raise ConnectionLost("the client is closed")
        with self.server.losing():
            answered = self._http.request(**self.server.request(effect))
            return self.server.response(answered)


class Changes(Follower):
    """What a subscription gives, one after the other. One thread at a time takes from it; others may close it, or acknowledge."""

    def __init__(self, client: Client, subscription: Subscription) -> None:
        super().__init__(subscription)
        self._client = client
        self._sockets = ExitStack()
        self._closing = threading.Event()
        self._until: float | None = None  # when the pause that is under way ends
        client._open.add(self)

    def begin(self) -> None:
        """Waits until the server has promised something. Raises what it refuses with."""
        while isinstance(self._step(None), Disconnected):
            self._given = True

    def get(self, timeout: float | None = None) -> Event | None:
        """The next event of any kind; None if none has come in so many seconds, or none will come."""
        event = self._step(None if timeout is None else time.monotonic() + timeout)
        self._given = event is not None
        return event

    def events(self) -> Iterator[Event]:
        """Everything that happens, also to the connection."""
        while (event := self.get()) is not None:
            yield event

    def __iter__(self) -> Iterator[Snapshot | Change | Alert | Stale]:
        return self

    def __next__(self) -> Snapshot | Change | Alert | Stale:
        while (event := self.get()) is not None:
            if isinstance(event, Snapshot | Change | Alert | Stale):
                return event
        raise StopIteration

    def ack(self, tx: int) -> None:
        """Everything up to a position is dealt with. What the server does not hear now, because the connection is lost, it hears with the next."""
        self._say(self._subscription.ack(tx))

    def expect(self, tx: int) -> None:
        """Makes the server tell as soon as it has come to a transaction, whether that changed anything or not; otherwise it takes some seconds."""
        self._say(self._subscription.ask(tx))

    def _say(self, message: str | None) -> None:
        if message is not None and self._socket is not None:
            with suppress(Lost), self._client.server.losing():
                self._socket.send(message)

    def cancel(self) -> None:
        """Ends it, and forgets its name."""
        self.close()
        if self._subscription.wish.name is not None:
            self._client.cancel(self._subscription.wish.name)

    def close(self) -> None:
        """Ends it; under a name, another one can go on from there."""
        self._closing.set()
        self._client._open.discard(self)
        self._disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _step(self, deadline: float | None) -> Event | None:
        """Goes on to the next event that is given, or, when there is no time left, not as far."""
        try:
            self._go_on()
            while not isinstance(effect := self._running.effect, Give):
                if effect is None or self._closing.is_set():
                    return None
                try:
                    came = self._perform(effect, None if deadline is None else max(0.0, deadline - time.monotonic()))
                except TimeoutError:
                    return None
                except Lost as lost:
                    if self._closing.is_set():
                        return None
                    self._running.lose(lost)
                else:
                    self._running.answer(came)
            return effect.event
        except Exception:
            self.close()
            raise

    def _perform(self, effect: Performed, timeout: float | None) -> Any:
        losing = self._client.server.losing
        match effect:
            case Open():
                with losing():
                    self._socket = self._sockets.enter_context(connect_socket(self._client.server.socket_url, **self._client.server.socket))
                self._client.server.reached = True
                if self._closing.is_set():
                    self._disconnect()
            case Close():
                self._disconnect()
            case Pause():
                self._pause(effect.seconds, timeout)
            case Send() | Receive():
                socket = self._socket
                if socket is None:
                    raise Lost("the connection was closed")
                if isinstance(effect, Send):
                    with losing():
                        return socket.send(effect.text)
                try:
                    return socket.recv(timeout)
                except TimeoutError:
                    raise
                except Exception as reason:
                    with losing():
                        raise reason
            case Request():
                return self._client.perform(effect)
            case _:
                assert_never(effect)
        return None

    def _pause(self, seconds: float, timeout: float | None) -> None:
        """Waits; if there is less time than that, the rest is for the next time."""
        now = time.monotonic()
        self._until = self._until or now + seconds
        rest = self._until - now
        if not self._closing.wait(rest if timeout is None else min(rest, timeout)) and timeout is not None and timeout < rest:
            raise TimeoutError
        self._until = None

    def _disconnect(self) -> None:
        self._socket = None
        with suppress(Lost), self._client.server.losing():
            self._sockets.close()


class Feed:
    """The thread that keeps a copy equal to the server's views, until it is closed or cannot."""

    def __init__(self, client: Client, subscription: Subscription, copy: Copy) -> None:
        self.copy, self._client = copy, client
        self.changes = Changes(client, subscription)
        self.thread = threading.Thread(target=self._run, name=f"vigilog view {subscription.wish.view or ''}", daemon=True)
        client._open.add(self)

    @property
    def connected(self) -> bool:
        return self.changes.connected

    def start(self) -> None:
        """Waits for the first answer. Raises what the server refuses with."""
        self.thread.start()
        try:
            self.wait_for(0, None)
        except BaseException:
            self.close()
            raise

    def wait_for(self, tx: int, timeout: float | None) -> bool:
        if threading.current_thread() is self.thread:
            if self.copy.position >= tx:
                return True
            raise UsageError("a callback cannot wait for what comes after it")
        come = threading.Event()
        self.copy.when(tx, come.set)
        self.changes.expect(tx)
        if not come.wait(timeout):
            self.copy.give_up(come.set)
        return self.copy.reached(tx)

    def close(self) -> None:
        self.changes.close()
        self._client._open.discard(self)
        if self.thread.ident is not None and threading.current_thread() is not self.thread:
            self.thread.join()

    def _run(self) -> None:
        ended: Exception | None = None
        try:
            for event in self.changes.events():
                for call in self.copy.take(event):
                    try:
                        call()
                    except Exception as error:
                        self.changes.hold()
                        self.copy.trouble(error)
                self.copy.settle()
        except Exception as error:
            ended = error
            self.changes.close()
        self.copy.end(ended)


class _Living(CopyHandle):
    """What a holder of views can do with their life."""

    _feed: Feed

    def wait_for(self, tx: int, timeout: float | None = None) -> bool:
        """Waits until the copy has come to a transaction, and callbacks were told; False if that takes longer. Raises what has ended the view."""
        return self._feed.wait_for(tx, timeout)

    def ack(self, tx: int) -> None:
        """Everything up to a position is dealt with, after a callback had failed."""
        self._feed.changes.ack(tx)

    def cancel(self) -> None:
        """Ends it, and forgets its name."""
        self._feed.close()
        self._feed.changes.cancel()

    def close(self) -> None:
        """Ends it; the rows stay as they are."""
        self._feed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class View(_Living, OneView):
    """The rows of a view, kept by a thread."""


class Views(_Living, SeveralViews[View]):
    """Views that change together, kept by a thread."""
