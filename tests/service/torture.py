"""Writers, subscribers that come and go, and a server that is killed at any instant: `python -m tests.service.torture FOLDER SECONDS SEED`.

Every writer sends its transactions with a key of their own, again and again until they are acknowledged. Every subscriber writes down what it is told. At the end all transactions are played again, in the order
of their numbers, in a database of this process, and what each subscriber was told is compared with that, message by message; its copy is compared with what the reference derives from the base rows.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from tests.service.serving import Row, Served, rows_of
from vigilog import reference
from vigilog.core.delta import Delta
from vigilog.engine.database import Database
from vigilog.folder.opening import open_program
from vigilog.language.check import check

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl blocked(x: symbol)
.decl weight(x: symbol, n: number)
.key weight(x)
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
.decl safe(x: symbol, y: symbol)
.output safe
safe(x, y) :- closure(x, y), !blocked(y).
.decl load(x: symbol, n: number)
.output load
.key load(x)
load(x, n) :- edge(x, _), n = sum w : { safe(x, y), weight(y, w) }.
"""
GOAL = 'closure("n1", y), !safe("n2", y)'
QUERY = f".decl query(y: symbol) .output query query(y) :- {GOAL}."  # what the goal asks for, as a view of its own
NODES = [f"n{number}" for number in range(10)]
RETAINED = {"transactions": 40}
LIMITS = {"progress": 0.2, "pending": 60, "large": 20, "part": 7, "forget_queries": 4, "rate": 10_000}
LOST = (OSError, ConnectionClosed, WebSocketException, httpx.HTTPError, TimeoutError, EOFError)

Sides = dict[str, tuple[set[Row], set[Row]]]


# -- writers


def wish(chance: random.Random) -> dict[str, Any]:
    """A few changes, sometimes many."""
    many = chance.random() < 0.05
    edges = [[chance.choice(NODES), chance.choice(NODES)] for _ in range(chance.randint(8, 20) if many else chance.randint(0, 2))]
    gone = [[chance.choice(NODES), chance.choice(NODES)] for _ in range(chance.randint(20, 60) if many else chance.randint(1, 3))]
    found: dict[str, Any] = {"delete": {"edge": gone}, "insert": {"edge": edges}}
    if chance.random() < 0.2:
        found[chance.choice(["insert", "delete"])]["blocked"] = [[chance.choice(NODES)]]
    if chance.random() < 0.2:
        found["upsert"] = {"weight": [[chance.choice(NODES), chance.randint(0, 5)]]}
    return found


async def writer(server: Served, name: int, chance: random.Random, over: asyncio.Event, done: dict[int, dict[str, Any]]) -> None:
    """Sends transactions until it is over, each until it is acknowledged; notes them by their numbers."""
    async with httpx.AsyncClient(timeout=10) as client:
        for number in count():
            if over.is_set():
                return
            body, key = wish(chance), f"writer {name}, {number}"
            while True:
                try:
                    if chance.random() < 0.02:  # the answer is lost, and so the request is made again
                        with suppress(TimeoutError):
                            async with asyncio.timeout(0.002):
                                await client.post(f"{server.url}/v1/transactions", json=body, headers={"Idempotency-Key": key})
                    answer = await client.post(f"{server.url}/v1/transactions", json=body, headers={"Idempotency-Key": key})
                    if answer.status_code == 503:
                        await asyncio.sleep(0.05)
                        continue
                    assert answer.status_code == 200, answer.text
                    break
                except httpx.HTTPError:
                    await asyncio.sleep(0.05)
            tx = answer.json()["tx"]
            assert tx not in done, f"two requests became transaction {tx}"
            done[tx] = body
            await asyncio.sleep(chance.uniform(0, 0.004))


# -- subscribers


@dataclass
class Told:
    """One thing that a subscriber was told: from a position to another, and the rows; a first answer comes from nowhere."""

    kind: str
    tx: int
    sides: Sides = field(default_factory=dict)
    since: int | None = None


@dataclass
class Subscriber:
    """Follows something, whatever happens to its connections; each of them is a list of what it was told."""

    spec: dict[str, Any]
    chance: random.Random
    done: dict[int, dict[str, Any]]  # the transactions that were acknowledged
    patience: float = 0.0  # seconds between two messages that it reads
    durable: bool = False  # it goes on by its name
    copy: dict[str, set[Row]] = field(default_factory=dict)
    tx: int = -1
    db: str = ""
    told: list[list[Told]] = field(default_factory=list)
    gaps: int = 0
    fetched: int = 0

    def reached(self, tx: int) -> bool:
        return self.tx >= tx

    @property
    def wanted(self) -> dict[str, Any]:
        """What it asks for now."""
        if self.durable:
            return self.spec
        return self.spec | ({"from": self.tx, "db": self.db} if self.tx >= 0 else {})

    async def live(self, server: Served, over: asyncio.Event) -> None:
        while True:
            self.told.append([])
            with suppress(*LOST):
                await self.connection(server, over)
            if over.is_set() and self.reached(len(self.done)):
                return
            await asyncio.sleep(self.chance.choice([0, 0.02, 0.3, self.chance.uniform(0, 3)]) if not over.is_set() else 0.05)

    async def connection(self, server: Served, over: asyncio.Event) -> None:
        """One connection, for a random time; at the end until all is known."""
        deadline = time.monotonic() + self.chance.choice([0.05, 0.5, self.chance.uniform(0, 6)])
        async with connect(f"ws://127.0.0.1:{server.port}/v1/subscribe", max_size=None, close_timeout=0.2, max_queue=1) as socket:
            await self.begin(socket)
            while over.is_set() or time.monotonic() < deadline:
                async with asyncio.timeout(1):
                    message = json.loads(await socket.recv())
                await self.hear(server, message)
                if "error" in message and message["error"]["code"] != "gap":
                    return
                if self.durable and self.told[-1] and self.tx >= self.told[-1][-1].tx and self.chance.random() < 0.3:
                    await socket.send(json.dumps({"ack": self.told[-1][-1].tx}))  # what this connection was sent
                if over.is_set() and self.reached(len(self.done)):
                    return
                if self.patience and not over.is_set():
                    await asyncio.sleep(self.patience)
            socket.transport.abort()

    async def begin(self, socket: ClientConnection) -> None:
        await socket.send(json.dumps({"subscribe": self.wanted}))

    async def hear(self, server: Served, message: dict[str, Any]) -> None:
        told = self.told[-1]
        match next(iter(message.items())):
            case "subscribed", said:
                self.db = said["db"]
                told.append(Told("subscribed", said["tx"], {view: (set(), set()) for view in said["views"]}))
            case "snapshot", said:
                if told[-1].kind == "subscribed":
                    told.append(Told("snapshot", said["tx"], told[-1].sides))
                for view, rows in self.by_view(said, "rows").items():
                    told[-1].sides[view][0].update(rows_of(rows))
                if said["last"]:
                    self.copy, self.tx = {view: set(rows) for view, (rows, _) in told[-1].sides.items()}, said["tx"]
            case "change", said:
                sides = {view: await self.rows(server, parts) for view, parts in self.by_view(said, "").items()}
                told.append(Told("change", said["tx"], sides, said.get("since")))
                if said["tx"] > self.tx:  # one that goes on by its name may be told again what it did not acknowledge
                    self.tx = said["tx"]
                    for view, (plus, minus) in sides.items():
                        self.copy[view] = (self.copy[view] - minus) | plus
            case "progress", said:
                told.append(Told("progress", said["tx"]))
                self.tx = max(self.tx, said["tx"])
            case "error", said:
                assert said["code"] in ("gap", "stopping", "definition"), said
                self.gaps += said["code"] == "gap"
            case kind, said:
                assert kind == "closing", (kind, said)

    def by_view(self, said: dict[str, Any], member: str) -> dict[str, Any]:
        only = next(iter(self.told[-1][0].sides))
        found: dict[str, Any] = said["views"] if "views" in said else {only: said[member] if member else said}
        return found

    async def rows(self, server: Served, parts: dict[str, Any]) -> tuple[set[Row], set[Row]]:
        """Both sides of a change; what was too large to be sent is fetched."""
        places = [side["fetch"] for side in parts.values() if isinstance(side, dict)]
        if places:
            async with httpx.AsyncClient(timeout=10) as client:
                answer = await client.get(server.url + places[0])
            if answer.status_code == 410:  # too late: it begins anew
                self.tx, self.copy = -1, {}
                raise EOFError
            if answer.status_code == 503:  # the server is going: as if the connection were lost
                raise EOFError
            assert answer.status_code == 200, answer.text
            self.fetched += 1
            parts = parts | {side: answer.json()[side] for side in ("plus", "minus") if isinstance(parts[side], dict)}
        return rows_of(parts["plus"]), rows_of(parts["minus"])


class Listener(Subscriber):
    """The same by server-sent events."""

    async def connection(self, server: Served, over: asyncio.Event) -> None:
        deadline = time.monotonic() + self.chance.uniform(0, 4)
        headers = {"Last-Event-ID": f"{self.db}:{self.tx}"} if self.tx >= 0 else {}
        async with (
            httpx.AsyncClient(timeout=1) as client,
            client.stream("GET", f"{server.url}/v1/changes?{urlencode(self.spec)}", headers=headers) as answer,
        ):
            assert answer.status_code in (200, 503), await answer.aread()
            kind = ""
            async for line in answer.aiter_lines():
                name, _, text = line.partition(": ")
                if name == "event":
                    kind = text
                elif name == "data":
                    await self.hear(server, {kind: json.loads(text)})
                if self.reached(len(self.done)) if over.is_set() else time.monotonic() > deadline:
                    return


class Pair(Subscriber):
    """Two subscriptions on one connection, of which the second is cancelled and made anew now and then."""

    other: Subscriber
    cancelling = False

    def reached(self, tx: int) -> bool:
        return super().reached(tx) and self.other.reached(tx)

    async def begin(self, socket: ClientConnection) -> None:
        self.socket, self.cancelling = socket, False
        self.other.told.append([])
        for id, one in ((1, self), (2, self.other)):
            await socket.send(json.dumps({"id": id, "subscribe": one.wanted}))

    async def hear(self, server: Served, message: dict[str, Any]) -> None:
        id = message.pop("id")
        if "cancelled" in message:
            self.cancelling = False
            self.other.told.append([])
            await self.socket.send(json.dumps({"id": 2, "subscribe": self.other.wanted}))
        elif id == 1:
            await super().hear(server, message)
        else:
            await self.other.hear(server, message)
            if "change" in message and not self.cancelling and self.chance.random() < 0.05:
                self.cancelling = True
                await self.socket.send(json.dumps({"id": 2, "cancel": {}}))


def subscribers(chance: random.Random, done: dict[int, dict[str, Any]]) -> list[Subscriber]:
    def one(patience: float = 0.0, *, durable: bool = False, **spec: Any) -> Subscriber:
        return Subscriber(spec, random.Random(chance.random()), done, patience, durable)

    pair = Pair({"view": "load"}, random.Random(chance.random()), done)
    pair.other = one(view="safe", bind={"y": "n7"})
    return [
        one(view="closure"),
        one(view="safe"),
        *(one(view="closure", bind={"x": node}) for node in NODES[:4]),
        one(view="closure", bind={"x": "n5", "y": "n6"}),
        one(views=["closure", "safe", "load"]),
        one(views=["safe", "load"], bind={"x": "n4"}),
        one(query=GOAL),
        one(query=GOAL),
        one(view="safe", qos={"every": 0.1, "coalesce": True}),
        one(views=["closure", "load"], qos={"changes": 7, "within": 0.3, "coalesce": True}),
        one(query=GOAL, qos={"within": 0.2, "coalesce": True}),
        one(view="load", qos={"every": 0.1}),
        one(view="safe", name="all that is safe", durable=True),
        one(views=["closure", "load"], name="two of them", durable=True),
        one(query=GOAL, name="a goal", durable=True),
        one(0.02, view="closure"),
        one(0.1, views=["closure", "safe"]),
        one(0.05, view="safe", qos={"coalesce": True}),
        Listener({"view": "closure"}, random.Random(chance.random()), done),
        Listener({"view": "safe", "bind.x": "n8"}, random.Random(chance.random()), done),
        pair,
    ]


# -- what is true


class Truth:
    """What every transaction changed in every view."""

    def __init__(self, done: dict[int, dict[str, Any]], needed: set[int]) -> None:
        assert sorted(done) == list(range(1, len(done) + 1)), "each number is one transaction"
        program = check(PROGRAM + QUERY).program
        self.columns = {name: program.relations[name].columns for name in program.outputs}
        self.deltas: dict[str, dict[int, Delta]] = {name: {} for name in program.outputs}
        self.states: dict[int, dict[str, set[Row]]] = {}
        with Database(program, {}) as database:
            for tx in range(len(done) + 1):
                for view, delta in (database.apply(done[tx]) if tx else {}).items():
                    self.deltas[view][tx] = delta
                if tx in needed:
                    self.states[tx] = {view: set(database.view(view)) for view in program.outputs}
            self.base = {name: database.rows(name) for name in ("edge", "blocked", "weight")}
        self.last = reference.evaluate(program, self.base)

    def cut(self, spec: dict[str, Any], view: str, rows: Any) -> set[Row]:
        bind = spec.get("bind", {}) | {key.removeprefix("bind."): value for key, value in spec.items() if key.startswith("bind.")}
        places = [(self.columns[view].index(column), value) for column, value in bind.items() if column in self.columns[view]]
        return {row for row in rows if all(row[place] == value for place, value in places)}

    def between(self, spec: dict[str, Any], view: str, since: int, until: int) -> Delta:
        found = Delta()
        for tx in range(since + 1, until + 1):
            if (delta := self.deltas[view].get(tx)) is not None:
                found = found.then(Delta(frozenset(self.cut(spec, view, delta.plus)), frozenset(self.cut(spec, view, delta.minus))))
        return found


def judge(subscriber: Subscriber, truth: Truth) -> int:
    """Compares all that a subscriber was told with what is true; gives how many changes these were."""
    spec, number = subscriber.spec, 0
    for connection in subscriber.told:
        views: list[str] = []
        position = -1
        for told in connection:
            about = f"{spec}: {told}"
            if told.kind == "subscribed":
                views, position = list(told.sides), told.tx
            elif told.kind == "snapshot":
                complete = told is not connection[-1]  # the last one may not have come to its end
                for view, (rows, _) in told.sides.items():
                    whole = truth.cut(spec, view, truth.states[told.tx][view])
                    assert rows == whole if complete else rows <= whole, about
                position = told.tx
            else:
                assert told.tx > position or (told.kind == "progress" and told.tx == position), f"out of order: {about}"
                single = told.kind == "change" and told.since is None  # of one transaction
                since = told.tx - 1 if single else position if told.since is None else told.since
                for view in views:
                    assert not truth.between(spec, view, position, since), f"skipped after {position}: {about}"
                    if not spec.get("qos", {}).get("coalesce") and told.kind == "change":
                        changed = [tx for tx in range(position + 1, told.tx) if truth.between(spec, view, tx - 1, tx)]
                        assert not changed, f"skipped {changed}: {about}"
                    plus, minus = told.sides.get(view, (set(), set()))
                    expected = truth.between(spec, view, since, told.tx)
                    assert plus == expected.plus and minus == expected.minus, f"{view} after {position}: {about}"
                number += told.kind == "change"
                position = told.tx
    for view, rows in subscriber.copy.items():
        assert rows == truth.cut(spec, view, truth.last[view]), f"the copy of {spec} differs from {view}"
    return number


# -- the whole


async def chaos(server: Served, chance: random.Random, seconds: float) -> int:
    """Kills the server now and then; sometimes it is stopped in good order."""
    killed, deadline = 0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        await asyncio.sleep(chance.uniform(1, 7))
        await asyncio.to_thread(server.kill if chance.random() < 0.8 else server.stop)
        killed += 1
        await asyncio.sleep(chance.choice([0, 0.5]))
        await asyncio.to_thread(server.start)
    return killed


async def play(server: Served, seconds: float, seed: int) -> tuple[dict[int, dict[str, Any]], list[Subscriber], int]:
    chance, over, resting = random.Random(seed), asyncio.Event(), asyncio.Event()
    done: dict[int, dict[str, Any]] = {}
    found = subscribers(chance, done)
    async with asyncio.timeout(seconds * 3 + 120), asyncio.TaskGroup() as group:
        writers = [group.create_task(writer(server, name, random.Random(chance.random()), resting, done)) for name in range(3)]
        for one in found:
            group.create_task(one.live(server, over))
        killed = await chaos(server, chance, seconds)
        resting.set()
        await asyncio.wait(writers)
        over.set()
    return done, found, killed


def main(folder: Path, seconds: float, seed: int) -> None:
    open_program(PROGRAM, data=folder / "data", retain=RETAINED).close()
    server = Served(folder, *(f"--limit={name}={value}" for name, value in LIMITS.items()), program=PROGRAM).start()
    try:
        done, found, killed = asyncio.run(play(server, seconds, seed))
    finally:
        server.stop()
    found += [one.other for one in found if isinstance(one, Pair)]
    needed = {told.tx for one in found for connection in one.told for told in connection if told.kind == "snapshot"}
    truth = Truth(done, needed)
    with closing(sqlite3.connect(server.data / "vigilog.db")) as file:
        requests = Counter(tx for (tx,) in file.execute("SELECT tx FROM vigilog_requests"))
    assert requests == Counter(done.keys()), "each request is one transaction"
    with open_program(data=server.data) as db:
        assert db.tx == len(done)
        assert {name: db.rows(name) for name in truth.base} == truth.base
        assert db.verify().fine
    assert server.mistakes() == []
    changes = sum(judge(one, truth) for one in found)
    connections, gaps, fetched = (sum(numbers) for numbers in zip(*((len(one.told), one.gaps, one.fetched) for one in found), strict=True))
    print(
        f"{killed} servers ended, {len(done)} transactions, {len(found)} subscribers, {connections} connections, {changes} changes, {gaps} gaps, {fetched} fetched"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
