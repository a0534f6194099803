"""A client on a WebSocket: one subscription, or several that have ids."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.utils import ClientDisconnected

from vigilog.core.errors import DataError, VigilogError
from vigilog.protocol.messages import ClientMessage, ErrorBody, Id, id_of, read_client, write
from vigilog.service.access import Rate
from vigilog.service.background import Mistake
from vigilog.service.clients import tool_of
from vigilog.service.gate import Gate
from vigilog.service.hub import Hub
from vigilog.service.subscription import ClientGone, Subscription
from vigilog.service.wire import FRAMES, frame

GONE = (WebSocketDisconnect, ClientDisconnected, ConnectionError, RuntimeError)  # the client, in the words of the layers below
RESTART, TOO_BIG, NO_TEXT, REFUSED = 1012, 1009, 1007, 1008
MOST_ERRORS = 100.0  # a second, and at once; a client that is wrong more often is sent away
MOST_ENDED = 1000  # subscriptions of a connection of which it is known that there was one


class Connection:
    """See `Outlet`. It ends with the client, with the server, or when a client says what is not even text within the limits, or nonsense without end."""

    kind = "websocket"

    def __init__(self, hub: Hub, gate: Gate, socket: WebSocket) -> None:
        self.hub, self.gate, self.socket = hub, gate, socket
        extension = (socket.scope.get("extensions") or {}).get(FRAMES)
        self.frames = extension is not None
        self.push: Callable[[bytes], bool] = extension["push"] if extension else lambda _: False
        self.running: dict[Id | None, tuple[Subscription, asyncio.Task[None]]] = {}
        self.ended: deque[Id | None] = deque(maxlen=MOST_ENDED)  # subscriptions that the server ended, which the client may not know yet
        self.token: str | None = None  # what the client said as one
        self.admitted = not gate.may_come_later(socket.headers)  # whether it has shown that it may come
        self.errors = Rate(MOST_ERRORS)

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        message = b'{"%b":%b}' % (kind.encode(), body) if id is None else b'{"id":%b,"%b":%b}' % (write(id), kind.encode(), body)
        return frame(message) if self.frames else message + b"\n"

    async def send(self, data: bytes) -> None:
        try:
            if self.frames:
                await self.socket._send({"type": FRAMES, "data": data})  # Starlette lets only messages that it knows pass
            else:
                for message in data.decode().rstrip().split("\n"):
                    await self.socket.send_text(message)
        except GONE:
            raise ClientGone from None

    async def say(self, kind: str, content: Any, id: Id | None = None) -> None:
        await self.send(self.form(kind, write(content), id))

    async def serve(self) -> None:
        """Takes what the client says until it is gone."""
        try:
            self.gate.check_origin(self.socket.headers)
            if self.admitted:
                self.gate.rights_of(self.socket.headers, None)
        except VigilogError as reason:
            self.gate.refused(reason, self.socket)
            await self.socket.close(REFUSED)
            return
        try:
            await self.socket.accept()
        except GONE:
            return
        self.hub.connections.add(self)
        try:
            while (data := await self._next()) is not None:
                if (code := await self._take(data)) is not None:
                    await self._close(code)
                    break
        except ClientGone:
            pass
        finally:
            self.hub.connections.discard(self)
            await self._end()

    async def _next(self) -> bytes | None:
        """What the client says next; None if it says no more."""
        try:
            async with asyncio.timeout(None if self.admitted else self.hub.limits.silence):
                message = await self.socket.receive()
        except TimeoutError:
            await self._close(REFUSED, "a token was to come")
            return None
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        return text.encode() if text is not None else message.get("bytes") or b""

    async def _take(self, data: bytes) -> int | None:
        """Does what the client says; gives the code with which the connection is to end, if it is."""
        if len(data) > self.hub.limits.message:
            return TOO_BIG
        try:
            await self._do(read_client(data))
        except ClientGone:
            raise
        except Exception as mistake:
            if not isinstance(mistake, VigilogError):
                self.hub.background.count("connections", mistake)
            reason = mistake if isinstance(mistake, VigilogError) else Mistake()
            self.gate.refused(reason, self.socket)
            await self.say("error", ErrorBody.of(reason), id_of(data))
            if reason.code == "json":
                return NO_TEXT
            if self.errors.take(""):
                return REFUSED
        return None

    async def _do(self, message: ClientMessage) -> None:
        if message.subscribe is not None:
            if message.id in self.running:
                raise DataError("this connection has such a subscription; another one needs another id", "id")
            self.token = message.subscribe.token or self.token
            self.socket.state.tool = message.subscribe.tool or tool_of(self.socket.headers)
            rights = self.gate.rights_of(self.socket.headers, self.token)
            self.socket.state.user = rights.name
            self.admitted = True
            self.gate.limit(rights)
            subscription = await self.hub.subscribe(
                self, replace(message.subscribe, tool=self.socket.state.tool or None), message.id, rights
            )
            self.running[message.id] = subscription, asyncio.create_task(self._run(subscription))
        elif message.id in self.ended and message.id not in self.running and (message.ack is not None or message.progress is not None):
            pass  # it has crossed the end of its subscription
        elif message.ack is not None:
            self.hub.acknowledge(self._own(message.id)[0], message.ack)
        elif message.progress is not None:
            self._own(message.id)[0].ask(message.progress)
        elif message.cancel is not None:
            subscription, task = self._own(message.id)
            await self.hub.cancel(subscription)
            await asyncio.wait([task])
            await self.say("cancelled", {}, message.id)
        else:
            await self.say("pong", message.ping, message.id)

    def _own(self, id: Id | None) -> tuple[Subscription, asyncio.Task[None]]:
        if id not in self.running:
            raise DataError("this connection has no such subscription", "id")
        return self.running[id]

    async def _run(self, subscription: Subscription) -> None:
        try:
            await subscription.run()
            if subscription.error is not None:
                self.gate.refused(subscription.error, self.socket)
        finally:
            self.running.pop(subscription.id, None)
            self.ended.append(subscription.id)

    async def _close(self, code: int, reason: str = "") -> None:
        with suppress(*GONE):
            await self.socket.close(code, reason)

    async def close(self) -> None:
        """The server stops: what is there to send is sent, and the client is told where to go on."""
        for subscription, task in list(self.running.values()):
            subscription.finish()
            await asyncio.wait([task])
            with suppress(ClientGone):
                await self.say("closing", await subscription.where(), subscription.id)
        await self._close(RESTART)

    async def _end(self) -> None:
        tasks = [task for _, task in self.running.values()]
        for subscription, task in list(self.running.values()):
            subscription.end()
            task.cancel()
            self.hub.leave(subscription)  # a task that is cancelled before it begins does nothing at all
        await asyncio.gather(*tasks, return_exceptions=True)
