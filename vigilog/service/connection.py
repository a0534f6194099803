"""A client on a WebSocket: one subscription, or several that have ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.utils import ClientDisconnected

from vigilog.core.errors import DataError, VigilogError
from vigilog.protocol.messages import ClientMessage, Id, id_of, read_client, write
from vigilog.service.access import Rights
from vigilog.service.gate import Gate
from vigilog.service.hub import Hub
from vigilog.service.subscription import Subscription
from vigilog.service.wire import FRAMES, frame

GONE = (WebSocketDisconnect, ClientDisconnected, ConnectionError, RuntimeError)  # the client, in the words of the layers below
RESTART, TOO_BIG, REFUSED = 1012, 1009, 1008


class Connection:
    """See `Outlet`. It ends with the client, with the server, or when a client says what is not even text within the limits."""

    kind = "websocket"

    def __init__(self, hub: Hub, gate: Gate, socket: WebSocket) -> None:
        self.hub, self.gate, self.socket = hub, gate, socket
        known = (socket.scope.get("extensions") or {}).get(FRAMES)
        self.frames = known is not None
        self.push: Callable[[bytes], bool] = known["push"] if known else lambda _: False
        self.running: dict[Id | None, tuple[Subscription, asyncio.Task[None]]] = {}
        self.rights: Rights | None = None

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        message = b'{"%b":%b}' % (kind.encode(), body) if id is None else b'{"id":%b,"%b":%b}' % (write(id), kind.encode(), body)  # type: ignore[arg-type]
        return frame(message) if self.frames else message + b"\n"

    async def send(self, data: bytes) -> None:
        if self.frames:
            await self.socket._send({"type": FRAMES, "data": data})  # Starlette lets only messages that it knows pass
        else:
            for message in data.decode().rstrip().split("\n"):
                await self.socket.send_text(message)

    async def say(self, kind: str, said: Any, id: Id | None = None) -> None:
        await self.send(self.form(kind, write(said), id))

    async def serve(self) -> None:
        """Takes what the client says until it is gone."""
        try:
            self.gate.check_origin(self.socket.headers)
            self.rights = self.gate.rights_of(self.socket.headers, None) if not self.gate.may_come_later(self.socket.headers) else None
        except VigilogError as reason:
            self.gate.refused(reason, self.socket)
            await self.socket.close(REFUSED, reason.message[:120])
            return
        await self.socket.accept()
        self.hub.connections.add(self)
        try:
            while True:
                message = await self.socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                text = message.get("text")
                data = text.encode() if text is not None else message.get("bytes") or b""
                if len(data) > self.hub.limits.message:
                    await self.socket.close(TOO_BIG, f"a message has at most {self.hub.limits.message} bytes")
                    break
                await self._take(data)
        except GONE:
            pass
        finally:
            self.hub.connections.discard(self)
            await self._end()

    async def _take(self, data: bytes) -> None:
        try:
            await self._do(read_client(data))
        except VigilogError as reason:
            self.gate.refused(reason, self.socket)
            await self.say("error", {"code": reason.code, "message": reason.message}, id_of(data))

    async def _do(self, said: ClientMessage) -> None:
        if said.subscribe is not None:
            if said.id in self.running:
                raise DataError("this connection has such a subscription; another one needs another id", "id")
            if said.subscribe.token is not None or self.rights is None:
                self.rights = self.gate.rights_of(self.socket.headers, said.subscribe.token)
            self.gate.limit(self.rights)
            found = await self.hub.subscribe(self, said.subscribe, said.id, self.rights)
            self.running[said.id] = found, asyncio.create_task(self._run(found))
        elif said.ack is not None:
            self.hub.acknowledge(self._own(said.id), said.ack)
        elif said.cancel is not None:
            found = self._own(said.id)
            await self.hub.cancel(found)
            await self.running[said.id][1]
            await self.say("cancelled", {}, said.id)
        else:
            await self.say("pong", said.ping, said.id)

    def _own(self, id: Id | None) -> Subscription:
        if id not in self.running:
            raise DataError("this connection has no such subscription", "id")
        return self.running[id][0]

    async def _run(self, subscription: Subscription) -> None:
        try:
            await subscription.run()
            if subscription.error is not None:
                self.gate.refused(subscription.error, self.socket)
        except GONE:
            pass
        finally:
            self.running.pop(subscription.id, None)

    async def close(self) -> None:
        """The server stops: what is there to send is sent, and the client is told where to go on."""
        for subscription, task in list(self.running.values()):
            subscription.finish()
            await asyncio.wait([task])
            await self.say("closing", {"tx": max(subscription.told, 0)}, subscription.id)
        await self.socket.close(RESTART)

    async def _end(self) -> None:
        for subscription, task in list(self.running.values()):
            subscription.end()
            task.cancel()
        await asyncio.gather(*(task for _, task in self.running.values()), return_exceptions=True)
