"""A client that costs as little as one can in Python, so that what is measured is the server: raw frames, raw requests."""

from __future__ import annotations

import asyncio
import base64
import os
import time
from collections.abc import Callable
from typing import cast

Hear = Callable[[bytes, float], None]


class Listener(asyncio.Protocol):
    """A WebSocket: what comes is given to `hear`, frame by frame, with the time it came."""

    def __init__(self, hear: Hear, path: str) -> None:
        self.hear, self.path = hear, path
        self.buffer = bytearray()
        self.open = asyncio.get_running_loop().create_future()
        self.shaken = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {self.path} HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self.transport.write("\r\n".join(lines).encode())

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self.buffer += data
        if not self.shaken:
            head, found, rest = bytes(self.buffer).partition(b"\r\n\r\n")
            if not found:
                return
            assert b" 101 " in head, head
            self.shaken, self.buffer = True, bytearray(rest)
            self.open.set_result(None)
        self._frames(now)

    def _frames(self, now: float) -> None:
        buffer, begin = self.buffer, 0
        while len(buffer) - begin >= 2:
            size, head = buffer[begin + 1] & 127, 2
            if size == 126:
                size, head = int.from_bytes(buffer[begin + 2 : begin + 4], "big"), 4
            elif size == 127:
                size, head = int.from_bytes(buffer[begin + 2 : begin + 10], "big"), 10
            if len(buffer) - begin < head + size:
                break
            if buffer[begin] & 15 == 9:  # a ping
                self._write(0x8A, bytes(buffer[begin + head : begin + head + size]))
            else:
                self.hear(bytes(buffer[begin + head : begin + head + size]), now)
            begin += head + size
        del buffer[:begin]

    def say(self, text: bytes) -> None:
        self._write(0x81, text)

    def _write(self, kind: int, data: bytes) -> None:
        assert self.transport, "it is connected"
        size = len(data)
        length = bytes([128 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
        self.transport.write(bytes([kind]) + length + bytes(4) + data)  # masked with zeros

    def pause(self) -> None:
        assert self.transport, "it is connected"
        self.transport.pause_reading()

    def close(self) -> None:
        if self.transport:
            self.transport.close()


async def listen(port: int, hear: Hear, path: str = "/v1/subscribe") -> Listener:
    _, listener = await asyncio.get_running_loop().create_connection(lambda: Listener(hear, path), "127.0.0.1", port)
    await listener.open
    return listener


class Caller:
    """One connection for requests, one after the other."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Caller:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def call(self, path: str, body: bytes = b"", method: str = "POST") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        found = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in found.partition(b"\r\n")[0], found
        lengths = [line for line in found.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return await self.reader.readexactly(int(lengths[0].split(b":")[1]))
