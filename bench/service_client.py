"""One measurement of `bench service`, in a process of its own beside the server: `python -m bench.service_client NAME PORT ARGUMENTS`.

It prints its result as a line of JSON.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine
from decimal import Decimal
from pathlib import Path
from typing import Any

import uvloop

from bench.wire import Caller, Listener, listen
from vigilog.client import connect

REPEATED = 5  # batches
WARM = 30  # changes before it counts
Result = dict[str, Any]


def spread(seconds: list[float]) -> Result:
    ordered = sorted(seconds)
    return {f"p{part} ms": ordered[min(len(ordered) - 1, len(ordered) * part // 100)] * 1000 for part in (50, 95, 99)}


def toggle(number: int, row: list[Any], relation: str = "edge") -> bytes:
    """A row that comes and goes."""
    return json.dumps({"delete" if number % 2 else "insert": {relation: [row]}}).encode()


class Heard:
    """What one subscription was told: when each change came."""

    def __init__(self) -> None:
        self.changes: list[float] = []
        self.ready = asyncio.Event()
        self.news = asyncio.Event()
        self.bytes = 0

    def __call__(self, message: bytes, now: float) -> None:
        self.bytes += len(message)
        if b'"snapshot"' in message[:40]:
            if b'"last":true' in message[-40:]:
                self.ready.set()
        elif b'"change"' in message[:40] or message.startswith((b'{"insert"', b'{"delete"')):
            self.changes.append(now)
            self.news.set()


async def subscribed(port: int, spec: dict[str, Any]) -> tuple[Heard, Listener]:
    heard = Heard()
    listener = await listen(port, heard)
    listener.say(json.dumps({"subscribe": spec}).encode())
    await heard.ready.wait()
    return heard, listener


async def latency(port: int, changes: int) -> Result:
    """From sending a one-row transaction to hearing of the view's change, and to its acknowledgement."""
    heard, _ = await subscribed(port, {"view": "closure"})
    told, acknowledged = [], []
    async with Caller(port) as caller:
        for number in range(WARM + changes):
            heard.news.clear()
            began = time.perf_counter()
            answer = asyncio.ensure_future(caller.call("/v1/transactions", toggle(number, ["a", "b"])))
            await heard.news.wait()
            told.append(heard.changes[-1] - began)
            await answer
            acknowledged.append(time.perf_counter() - began)
    return spread(told[WARM:]) | {"acknowledged p50 ms": statistics.median(acknowledged[WARM:]) * 1000}


async def paced(port: int, rate: float, seconds: float, row: list[Any]) -> list[float]:
    """Commits at a rate; gives when each was sent."""
    sent = []
    async with Caller(port) as caller:
        began = time.perf_counter()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            sent.append(time.perf_counter())
            await caller.call("/v1/transactions", toggle(number, row))
    return sent


async def crowd(port: int, subscribers: int, rate: float, seconds: float) -> Result:
    """Many who follow one view, at a rate of commits: how late the last of them hears of each."""
    before = await resident(port)
    heard: list[Heard] = []
    for first in range(0, subscribers, 50):
        heard += [
            one for one, _ in await asyncio.gather(*(subscribed(port, {"view": "closure"}) for _ in range(min(50, subscribers - first))))
        ]
    idle = await resident(port)
    sent = await paced(port, rate, seconds, ["a", "b"])
    wanted = len(sent)
    for _ in range(600):
        if all(len(one.changes) >= wanted for one in heard):
            break
        await asyncio.sleep(0.1)
    late = [arrived - began for one in heard for arrived, began in zip(one.changes, sent, strict=False)]
    return {
        "subscribers": subscribers,
        "commits a second": wanted / (sent[-1] - sent[0] + 1 / rate),
        "messages": sum(len(one.changes) for one in heard),
        "missing": sum(wanted - len(one.changes) for one in heard),
        **spread(late),
        "idle kB each": (idle - before) / subscribers / 1000,
    }


async def resident(port: int) -> int:
    """The server's memory, in bytes, as its own metrics do not tell: by its process."""
    await asyncio.sleep(0.5)
    return int(Path(f"/proc/{PROCESS}/statm").read_text(encoding="ascii").split()[1]) * 4096


async def bindings(port: int, number: int, changes: int) -> Result:
    """Commits that touch one of some bindings of a view."""
    each = min(1000, number)
    listeners: list[Listener] = []
    heard = Heard()
    count = 0
    done = asyncio.Event()

    def hear(message: bytes, now: float) -> None:
        nonlocal count
        if b'"snapshot"' in message[:60]:
            count += 1
            if count == number:
                done.set()
        elif b'"change"' in message[:60]:
            heard.changes.append(now)
            heard.news.set()

    for first in range(0, number, each):
        listener = await listen(port, hear)
        listeners.append(listener)
        for id in range(first, first + each):
            listener.say(json.dumps({"id": id, "subscribe": {"view": "holds", "bind": {"person": f"p{id}"}}}).encode())
            if id % 100 == 99:
                await asyncio.sleep(0)
    await done.wait()
    told, acknowledged = [], []
    async with Caller(port) as caller:
        for turn in range(WARM + changes):
            heard.news.clear()
            began = time.perf_counter()
            await caller.call("/v1/transactions", toggle(turn, ["p3", "i999999"], "owns"))
            acknowledged.append(time.perf_counter() - began)
            await heard.news.wait()
            told.append(heard.changes[-1] - began)
    extra = len(heard.changes) - WARM - changes
    return {"bindings": number, **spread(told[WARM:]), "commit p50 ms": statistics.median(acknowledged[WARM:]) * 1000, "told others": extra}


async def stall(port: int, rate: float, seconds: float) -> Result:
    """One client that does not read, beside one that does, while the first's changes pile up."""
    heard, _ = await subscribed(port, {"view": "closure"})
    _, silent = await subscribed(port, {"view": "closure"})
    before = await paced(port, rate, seconds / 4, ["a", "b"])
    base = [arrived - began for arrived, began in zip(heard.changes, before, strict=True)] if len(heard.changes) == len(before) else []
    silent.pause()
    heard.changes.clear()
    during = await paced(port, rate, seconds, ["a", "b"])
    await asyncio.sleep(0.5)
    late = [arrived - began for arrived, began in zip(heard.changes, during, strict=True)]
    return {
        **{f"before {key}": value for key, value in spread(base).items()},
        **{f"stalled {key}": value for key, value in spread(late).items()},
    }


async def batch(port: int, rows: int) -> Result:
    """Many rows told at once, until a copy of the view that they change has them."""
    return await asyncio.to_thread(_batch, port, rows)


def _batch(port: int, rows: int) -> Result:
    first = datetime.date(2026, 1, 1)
    told = [(n, f"name {n}", first + datetime.timedelta(days=n % 365), Decimal(n % 1000) / 4) for n in range(rows)]
    lines = [(n, k, *rest) for n, *rest in told for k in range(4)]
    json_ = min(_timed(lambda: json.loads(json.dumps([told, lines], default=str))) for _ in range(REPEATED))
    taken = {"insert": list[float](), "delete": list[float]()}
    with connect(f"http://127.0.0.1:{port}") as client, client.enroll("line") as view:
        for _ in range(REPEATED):
            taken["insert"].append(_timed(lambda: view.wait_for(client.tell(insert={"order": told}).tx)))
            assert len(view) == len(lines), "the copy has them all"
            taken["delete"].append(_timed(lambda: view.wait_for(client.tell(delete={"order": told}).tx)))
            assert not view, "it has none"
    insert, delete = (statistics.median(seconds) for seconds in taken.values())
    return {
        "rows told": rows,
        "view rows": len(lines),
        "inserted s": insert,
        "deleted s": delete,
        "JSON s": json_,
        "÷ JSON": insert / json_,
    }


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


MEASUREMENTS: dict[str, Callable[..., Coroutine[Any, Any, Result]]] = {
    "latency": latency,
    "crowd": crowd,
    "bindings": bindings,
    "stall": stall,
    "batch": batch,
}

if __name__ == "__main__":
    PROCESS = int(sys.argv[3])
    print(json.dumps(uvloop.run(MEASUREMENTS[sys.argv[1]](int(sys.argv[2]), **json.loads(sys.argv[4])))))
