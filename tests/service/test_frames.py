"""Frames that no client should send: an error, or an end, for the one who sends them, and nothing for the others."""

from __future__ import annotations

import base64
import json
import os
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

import pytest
from websockets.exceptions import ConnectionClosed

from tests.service.conftest import Serve
from tests.service.serving import PATIENCE, Row, Served, Talk, until

pytestmark = pytest.mark.apart

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9
GROWTH = 150 * 2**20  # bytes that the server may have more in memory after all of it; what it was sent is much more


def frame(data: bytes, opcode: int = TEXT, *, fin: bool = True, masked: bool = True, length: int | None = None, reserved: int = 0) -> bytes:
    """A client's frame, or what looks like one."""
    size = len(data) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved | opcode])
    mask = 0x80 if masked else 0
    if size < 126:
        head += bytes([mask | size])
    else:
        head += bytes([mask | 126]) + struct.pack("!H", size) if size < 2**16 else bytes([mask | 127]) + struct.pack("!Q", size)
    if not masked:
        return head + data
    key = os.urandom(4)
    return head + key + bytes(byte ^ key[place % 4] for place, byte in enumerate(data))


def end_of(data: bytes) -> int | None:
    """The code of the frame that ends a connection, among the frames that a server sent: they are not masked."""
    place = 0
    while place + 2 <= len(data):
        size, head = data[place + 1], 2
        if size >= 126:
            head = 4 if size == 126 else 10
            size = int.from_bytes(data[place + 2 : place + head])
        if data[place] == 0x80 | CLOSE and place + 4 <= len(data):
            return int.from_bytes(data[place + 2 : place + 4])
        place += head + size
    return None


class Raw:
    """A connection after its handshake, on which any bytes can be sent."""

    def __init__(self, server: Served, buffer: int = 0) -> None:
        self.socket = socket.socket()
        if buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", server.port))
        key = base64.b64encode(os.urandom(16)).decode()
        asked = f"GET /v1/subscribe HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self.socket.sendall(asked.encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.socket.recv(1)
        assert answer.startswith(b"HTTP/1.1 101"), answer

    def send(self, data: bytes) -> None:
        """As much as the server takes."""
        with suppress(OSError):
            self.socket.sendall(data)

    def say(self, message: object) -> None:
        self.send(frame(json.dumps(message).encode()))

    def rest(self) -> bytes:
        """All that comes until the server says the end."""
        found = b""
        with suppress(ConnectionError):
            while end_of(found) is None and (part := self.socket.recv(65536)):
                found += part
        return found

    def close(self) -> None:
        self.socket.close()


@contextmanager
def raw(server: Served, buffer: int = 0) -> Iterator[Raw]:
    found = Raw(server, buffer)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("frames"), "--limit", "message=100000", "--limit", "rate=100000").start()
    server.insert(("a", "b"))
    yield server
    server.kill()
    assert server.mistakes() == []


@pytest.fixture
def watched(running: Served) -> Iterator[Served]:
    """The server, beside which another client follows a view: it gets its changes as if nothing were."""
    before = running.memory
    nodes = (f"{time.monotonic()}.{number}" for number in count())
    with running.following(view="degree") as talk:
        yield running
        for _ in range(3):
            tx = running.insert((next(nodes), "z"))
            while talk.change()["tx"] < tx:
                pass
        assert talk.rows() == running.view("degree")
    assert running.memory < before + GROWTH


@pytest.mark.parametrize(
    ("sent", "code"),
    {
        "not masked": (frame(b'{"ping": 1}', masked=False), 1002),
        "reserved bits": (frame(b'{"ping": 1}', reserved=0x40), 1002),
        "an opcode that there is not": (frame(b"", opcode=5), 1002),
        "a control frame in parts": (frame(b"", PING, fin=False), 1002),
        "a long control frame": (frame(b"x" * 200, PING), 1002),
        "a continuation of nothing": (frame(b"x", 0), 1002),
        "text inside text": (frame(b"{", fin=False) + frame(b"}"), 1002),
        "no UTF-8": (frame(b'{"ping": "\xff\xfe"}'), 1007),
        "a cut character": (frame('{"ping": "é'.encode()[:-1]), 1007),
        "no JSON": (frame(b"hello"), 1007),
        "binary": (frame(bytes(range(256)), BINARY), 1007),
        "nothing": (frame(b""), 1007),
        "deep": (frame(b'{"ping":' * 5_000), 1007),
        "huge": (frame(b"x" * 150_000), 1009),
        "a size that cannot be": (frame(b"x", length=2**62), 1009),
        "a size with a wrong bit": (frame(b"x", length=2**63 + 5), 1009),
        "huge in parts": (b"".join(frame(b"x" * 50_000, TEXT if part == 0 else 0, fin=False) for part in range(8)), 1009),
        "a strange end": (frame(struct.pack("!H", 999), CLOSE), 1002),
    }.values(),
    ids=lambda given: None if isinstance(given, int) else f"{given[:8].hex()}…",
)
def test_wrong_frames_end_the_connection(watched: Served, sent: bytes, code: int) -> None:
    with raw(watched) as client:
        client.say({"subscribe": {"view": "closure"}})
        client.send(sent)
        assert end_of(client.rest()) == code


@pytest.mark.parametrize(
    "message",
    [
        [],
        7,
        "text",
        None,
        {},
        {"subscribe": None},
        {"subscribe": {}},
        {"subscribe": {"view": "closure", "views": ["open"]}},
        {"subscribe": {"view": 7}},
        {"subscribe": {"views": []}},
        {"subscribe": {"views": ["closure", "closure"]}},
        {"subscribe": {"view": "clsure"}},
        {"subscribe": {"view": "edge"}},
        {"subscribe": {"view": "closure", "bnd": {}}},
        {"subscribe": {"view": "closure", "bind": {"z": 1}}},
        {"subscribe": {"view": "closure", "bind": {"x": 1}}},
        {"subscribe": {"view": "closure", "bind": {"x": {"y": []}}}},
        {"subscribe": {"view": "closure", "from": -1}},
        {"subscribe": {"view": "closure", "from": 2**70}},
        {"subscribe": {"view": "closure", "from": 10**9}},
        {"subscribe": {"view": "closure", "from": 0, "db": "another"}},
        {"subscribe": {"view": "closure", "name": ""}},
        {"subscribe": {"view": "closure", "name": "x\n"}},
        {"subscribe": {"view": "closure", "name": "x" * 201}},
        {"subscribe": {"view": "closure", "qos": {"every": 0}}},
        {"subscribe": {"view": "closure", "qos": {"every": 1e300}}},
        {"subscribe": {"view": "closure", "qos": {"changes": 5}}},
        {"subscribe": {"view": "closure", "qos": {"precision": "some"}}},
        {"subscribe": {"views": ["closure", "open"], "snapshot": "fetch"}},
        {"subscribe": {"query": ""}},
        {"subscribe": {"query": "closure(x"}},
        {"subscribe": {"query": "closure(x, y, z)"}},
        {"subscribe": {"query": "!closure(x, y)"}},
        {"subscribe": {"query": "nothing(x)"}},
        {"subscribe": {"query": "closure(x, y). closure(y, x)"}},
        {"subscribe": {"query": "closure(x, y)", "bind": {"x": "a"}}},
        {"subscribe": {"query": "x" * 90_000}},
        {"subscribe": {"query": "closure(x, y)," * 3_000 + "closure(x, y)"}},
        {"ack": 5},
        {"ack": "5"},
        {"ack": 2**70},
        {"cancel": {}},
        {"cancel": 5},
        {"id": {}, "ping": 1},
        {"id": 1.5, "ping": 1},
        {"ping": 1, "ack": 1},
        {"hello": 1},
    ],
    ids=lambda message: json.dumps(message)[:60],
)
def test_messages_that_are_none_are_errors(running: Served, message: object) -> None:
    """The connection goes on."""
    with running.socket() as talk:
        talk.socket.send(json.dumps(message))
        said = talk.hear()
        assert set(said["error"]) == {"code", "message"} and said["error"]["code"] != "internal", said
        talk.say(ping="still here")
        assert talk.hear() == {"pong": "still here"}


def test_random_bytes(watched: Served) -> None:
    chance = random.Random(5)
    for _ in range(40):
        with raw(watched) as client:
            for _ in range(chance.randint(1, 5)):
                data = chance.randbytes(chance.choice([1, 10, 200, 5_000]))
                client.send(
                    data if chance.random() < 0.5 else frame(data, chance.choice([0, TEXT, BINARY, PING, CLOSE]), fin=chance.random() < 0.7)
                )
            if chance.random() < 0.5:
                with suppress(OSError):
                    client.socket.shutdown(socket.SHUT_WR)


def test_messages_in_many_parts_are_taken(watched: Served) -> None:
    message = b'{"ping": "' + b"x" * 3_000 + b'"}'
    with raw(watched) as client:
        parts = [bytes([byte]) for byte in message]
        data = frame(parts[0], TEXT, fin=False) + b"".join(frame(part, 0, fin=False) for part in parts[1:-1])
        for byte in range(0, len(data), 997):
            client.send(data[byte : byte + 997])
        client.send(frame(b"are you there?", PING) + frame(parts[-1], 0))
        found = b""
        while b"xxx" not in found or not found.endswith(b'"}'):
            found += client.socket.recv(65536)
        assert b"are you there?" in found


def test_thousands_of_small_messages(watched: Served) -> None:
    """Of one that reads, and of one that does not; of nonsense, after which it is sent away."""
    with watched.socket() as talk, raw(watched, 2048) as deaf, raw(watched) as fool:
        asking = threading.Thread(target=deaf.send, args=(frame(json.dumps({"ping": "x" * 1000}).encode()) * 5_000,), daemon=True)
        asking.start()
        for number in range(3_000):
            talk.say(ping=number)
        for number in range(3_000):
            assert talk.hear() == {"pong": number}
        fool.send(frame(b'{"hello": 1}') * 2_000)
        assert end_of(fool.rest()) == 1008
        assert len([line for line in watched.logged("refused") if line["path"] == "/v1/subscribe"]) < 1_000, "not all of it is logged"
        deaf.close()
        asking.join(PATIENCE)


def test_half_open_connections(watched: Served) -> None:
    """Clients that begin and say no more, and some that vanish without a word."""
    begun = []
    for number in range(100):
        found = socket.create_connection(("127.0.0.1", watched.port))
        found.sendall(
            [
                b"",
                b"GET",
                b"GET /v1/subscribe HTTP/1.1\r\nHost: x",
                b"POST /v1/transactions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
            ][number % 4]
        )
        begun.append(found)
    silent = [Raw(watched) for _ in range(50)]
    for number, client in enumerate(silent):
        client.say({"subscribe": {"view": "closure", "name": f"silent {number}"}})
        client.send(frame(b'{"ping": ', fin=False))
        if number % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not an end
            client.close()
    assert watched.insert((f"half {time.monotonic()}", "z")) > 0
    for left in begun:
        left.close()
    for client in silent:
        client.close()


def test_clients_that_are_not_there_any_more(serve: Serve) -> None:
    """A connection on which nobody answers is ended, even if nobody takes what it is sent; one on which somebody does stays."""
    server = serve("--limit", "ping=0.5", program=".decl p(x: number, text: symbol) .output p")
    with server.following(view="p", name="there"), raw(server) as silent, raw(server, 2048) as deaf:
        silent.say({"subscribe": {"view": "p", "name": "silent"}})
        deaf.say({"subscribe": {"view": "p", "name": "deaf"}})
        server.tell(insert={"p": [[number, "x" * 500] for number in range(5_000)]})  # more than waits between two machines
        assert end_of(silent.rest()) == 1011
        until(lambda: [one["name"] for one in server.get("/v1/subscriptions")["subscriptions"] if one["connected"]] == ["there"])
    assert server.mistakes() == []


def test_a_client_that_never_reads(serve: Serve) -> None:
    """Its changes are on the disk; the others get theirs, and the server keeps little in memory. When it reads again, it gets all of them."""
    server = serve("--limit", "pending=1000", program=".decl p(x: number, text: symbol) .output p")
    with server.following(view="p") as quick, raw(server, 2048) as deaf, raw(server, 2048) as sleeper:
        for client in (deaf, sleeper):
            client.say({"subscribe": {"view": "p"}})
        server.tell(insert={"p": [[-1, "first"]]})
        quick.change()
        before = server.memory
        for number in range(24):
            tx = server.tell(insert={"p": [[number * 1000 + row, "x" * 500] for row in range(1000)]})
            if number % 2:
                server.tell(delete={"p": [[number * 1000 + row, "x" * 500] for row in range(1000)]})
                quick.change()
            assert quick.change()["tx"] in (tx, tx + 1)
        assert server.memory < before + GROWTH, "18 MB were written, for each of them"
        deaf.close()
        data, copy = b"", set[Row]()
        while len(copy) < len(quick.rows()):
            data += sleeper.socket.recv(2**20)
            messages, data = frames(data)
            for message in messages:
                said = json.loads(message)
                rows = said.get("snapshot", {}).get("rows", []) + said.get("change", {}).get("plus", [])
                copy |= {tuple(row) for row in rows}
                copy -= {tuple(row) for row in said.get("change", {}).get("minus", [])}
        assert server.get("/health")["status"] == "ok"


def frames(data: bytes) -> tuple[list[bytes], bytes]:
    """The texts in a server's frames, and what is left of the bytes."""
    found = []
    while len(data) >= 10:
        size, begin = data[1] & 0x7F, 2
        if size == 126:
            size, begin = struct.unpack("!H", data[2:4])[0], 4
        elif size == 127:
            size, begin = struct.unpack("!Q", data[2:10])[0], 10
        if len(data) < begin + size:
            break
        if data[0] == 0x81:
            found.append(data[begin : begin + size])
        data = data[begin + size :]
    return found, data


def test_acknowledging_the_future(watched: Served) -> None:
    with watched.socket() as talk:
        said = talk.subscribe(view="closure", name="ahead")
        for tx in (said["tx"] + 1, 2**62):
            talk.say(ack=tx)
            assert talk.hear("error")["error"]["code"] == "ack"
        talk.say(ack=said["tx"])
        talk.say(ping=1)
        assert talk.hear("pong")


def test_storms_of_subscriptions(watched: Served) -> None:
    """Made and cancelled at once, by name and without, on one connection and on many."""
    with watched.socket() as talk:
        for number in range(300):
            named = {"name": f"storm {number % 7}"} if number % 3 == 0 else {}
            talk.say(id=number, subscribe={"view": "closure", "bind": {"x": f"n{number % 5}"}, **named})
            talk.say(id=number, cancel={})
        ended = 0
        while ended < 300:
            said = talk.hear()
            ended += "cancelled" in said
            assert "error" not in said or said["error"]["code"] in ("id", "taken-over"), said
    talks: list[Talk] = []
    for number in range(60):
        with watched.socket() as talk:
            talk.say(subscribe={"view": "open", "name": f"brief {number % 3}"})
            if number % 2:
                talk.hear("subscribed")
            talks.append(talk)
    until(lambda: watched.get("/v1/status")["subscribers"] == 1)  # those who left are forgotten


def test_one_that_is_sent_away_can_come_back(running: Served) -> None:
    with raw(running) as client:
        client.send(frame(b"hello"))
        client.rest()
    with running.socket() as talk:
        talk.subscribe(view="closure")
    with pytest.raises(ConnectionClosed), running.socket() as talk:
        talk.socket.send(b"\x00\x01")
        while talk.hear():
            pass
