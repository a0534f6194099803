"""WebSocket frames that are made once and written to many connections.

A server's frames are not masked, and without compression they do not depend on the connection, so the same bytes serve all who are told the same. uvicorn's protocol takes whole messages only; this one also takes frames.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

FRAMES = "vigilog.frames"  # the extension of ASGI by which an application knows that it may send frames


class FramesProtocol(WebSocketsSansIOProtocol):
    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][FRAMES] = {"push": self.push}

    def push(self, data: bytes) -> bool:
        """Writes frames at once, if the client takes what it is sent; whether it did."""
        if not self.writable.is_set() or self.disconnected or self.close_sent or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def keepalive_timeout(self) -> None:
        """One that does not answer may not take what it is sent, either: then that is not waited for."""
        super().keepalive_timeout()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def shutdown(self) -> None:
        try:
            super().shutdown()
        except InvalidState:  # the client has just begun to close; uvicorn would stop stopping
            self.transport.close()

    async def send(self, message: Any) -> None:
        if message["type"] != FRAMES:
            await super().send(message)
            return
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(message["data"])


def frame(text: bytes) -> bytes:
    """A text message as one frame.

    >>> frame(b"hello")
    b'\\x81\\x05hello'
    """
    size = len(text)
    if size < 126:
        return b"\x81" + size.to_bytes(1, "big") + text
    if size < 2**16:
        return b"\x81\x7e" + size.to_bytes(2, "big") + text
    return b"\x81\x7f" + size.to_bytes(8, "big") + text
