"""A process for one measurement of `bench store`: `python -m bench.store_child NAME FOLDER ARGUMENTS`. Its last line is JSON."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.measure import peaks
from bench.watch.data import acyclic

CLOSURE = """
.decl edge(x: number, y: number)
.decl closure(x: number, y: number)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
"""
ORDERS = """
.decl orders(o: number, c: number, a: number)
.input orders(IO=parquet)
.decl customer(c: number, r: number)
.decl blocked(c: number)
.decl due(o: number, c: number, r: number)
.output due
due(o, c, r) :- orders(o, c, a), customer(c, r), !blocked(c), a > 900.
"""
CUSTOMERS = 10_000
SECONDS = 4.0


def fsync(folder: Path) -> dict[str, Any]:
    file = os.open(folder / "written", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def once() -> None:
        os.write(file, b"x" * 4096)
        os.fsync(file)

    return {"per second": _rate(once)}


def sqlite(folder: Path) -> dict[str, Any]:
    connection = sqlite3.connect(folder / "peer.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE edge (x INTEGER, y INTEGER, PRIMARY KEY (x, y)) WITHOUT ROWID")
    numbers = iter(range(10**9))
    return {"per second": _rate(lambda: connection.execute("INSERT INTO edge VALUES (?, 1)", (next(numbers),)))}


def single(folder: Path) -> dict[str, Any]:
    import vigilog

    edges = sorted(acyclic(2_000, 2_400, 1))
    db = vigilog.open(CLOSURE, {"edge": edges}, data=folder / "data")
    turns = _turns(edges)
    for _ in range(20):
        db.apply(next(turns))
    times: list[float] = []

    def once() -> None:
        began = time.perf_counter()
        db.apply(next(turns))
        times.append((time.perf_counter() - began) * 1000)

    rate = _rate(once)
    times.sort()
    return {"per second": rate, "p50 ms": times[len(times) // 2], "p99 ms": times[int(len(times) * 0.99)]}


def _turns(edges: list[tuple[int, ...]]) -> Iterator[dict[str, Any]]:
    """One edge goes, and comes again."""
    while True:
        for edge in edges:
            yield {"delete": {"edge": [edge]}}
            yield {"insert": {"edge": [edge]}}


def grouped(folder: Path) -> dict[str, Any]:
    import vigilog

    db = vigilog.open(CLOSURE, {}, data=folder / "data")
    numbers = iter(range(0, 10**9, 2))

    def once() -> None:
        db.apply({"insert": {"edge": [(number, number + 1) for number, _ in zip(numbers, range(1_000), strict=False)]}})

    once()
    return {"rows per second": 1_000 * _rate(once)}


def recovery(folder: Path, transactions: int) -> dict[str, Any]:
    writer = subprocess.Popen(
        [sys.executable, "-m", "bench.store_child", "writer", str(folder), json.dumps({"transactions": transactions})],
        stdout=subprocess.PIPE,
    )
    assert writer.stdout is not None, "asked for"
    writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    import vigilog

    began = time.perf_counter()
    with vigilog.open(data=folder / "data") as db:
        db.ask("closure(1, y)")
        seconds = time.perf_counter() - began
        assert db.tx >= transactions, "all that were acknowledged"
        return {
            "transactions": db.tx,
            "seconds": seconds,
            "file MiB": sum(file.stat().st_size for file in (folder / "data").glob("vigilog.db*")) / 2**20,
        }


def writer(folder: Path, transactions: int) -> dict[str, Any]:
    """Commits until it is killed; says when there have been enough."""
    import vigilog

    edges = sorted(acyclic(2_000, 2_400, 1))
    db = vigilog.open(CLOSURE, {"edge": edges}, data=folder / "data")
    db.file.connection.execute("PRAGMA synchronous=OFF")  # only to have written them sooner: what is killed is the process, not the machine
    for number, change in enumerate(_turns(edges), start=1):
        db.apply(change)
        if number == transactions:
            print("enough", flush=True)
    raise AssertionError("it is killed")


def large(folder: Path, rows: int, changed: int) -> dict[str, Any]:
    import vigilog

    facts = _orders(folder, rows)
    began = time.perf_counter()
    db = vigilog.open(ORDERS, facts, data=folder / "data")
    loaded = time.perf_counter() - began
    db.apply({"insert": {"customer": [(c, c % 50) for c in range(CUSTOMERS)], "blocked": [(c,) for c in range(0, CUSTOMERS, 7)]}})
    assert db.large == {"orders"} or rows < 1_000_000, "it is not resident"
    half = changed // 2

    def change(turn: int) -> dict[str, Any]:
        gone = [(o, o % CUSTOMERS, o % 1_000) for o in range(turn * half, (turn + 1) * half)]
        return {"delete": {"orders": gone}, "insert": {"orders": [(rows + o, c, a) for o, c, a in gone]}}

    db.apply(change(0))
    times = []
    for turn in (1, 2, 3):
        began = time.perf_counter()
        found = db.apply(change(turn))
        times.append(time.perf_counter() - began)
    assert found["due"].plus, "something changed"
    seconds = sorted(times)[1]
    recomputed = _recomputed(db, change(4))
    return {
        "rows": rows,
        "load seconds": loaded,
        "changed": changed,
        "change seconds": seconds,
        "recompute seconds": recomputed,
        **_peaks(),
    }


def _recomputed(db: Any, change: dict[str, Any]) -> float:
    """What people do today: read the relation with the changed rows, evaluate the view, compare it with the last answer, which is a table."""
    session = db.frame("due").sparkSession
    columns = ("o", "c", "a")
    before = db.frame("due").localCheckpoint()
    orders = db.frame("orders").localCheckpoint()
    gone = session.createDataFrame(change["delete"]["orders"], columns).localCheckpoint()
    came = session.createDataFrame(change["insert"]["orders"], columns).localCheckpoint()
    customer = session.createDataFrame(sorted(db.rows("customer")), ("c", "r")).localCheckpoint()
    blocked = session.createDataFrame(sorted(db.rows("blocked")), ("c",)).localCheckpoint()

    def once() -> float:
        began = time.perf_counter()
        new = orders.join(gone, list(columns), "left_anti").unionAll(came)
        after = new.where("a > 900").join(customer, "c").join(blocked, "c", "left_anti").select("o", "c", "r").distinct().localCheckpoint()
        after.exceptAll(before).collect()
        before.exceptAll(after).collect()
        return time.perf_counter() - began

    once()
    return sorted(once() for _ in range(3))[1]


def memory(folder: Path, rows: int) -> dict[str, Any]:
    import vigilog

    facts = _orders(folder, rows)
    db = vigilog.open(ORDERS, facts, data=folder / "data", memory=64 * 2**20)
    db.apply({"insert": {"customer": [(1, 1)]}})
    db.apply({"delete": {"orders": [(1, 1, 1)]}, "insert": {"orders": [(-1, 1, 999)]}})
    return {"rows": rows, **_peaks()}


def _orders(folder: Path, rows: int) -> Path:
    """A folder with a Parquet file of so many orders, written in parts."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    place = folder / "facts"
    place.mkdir()
    schema = pa.schema([(name, pa.int64()) for name in "oca"])
    with pq.ParquetWriter(place / "orders.parquet", schema) as file:
        for start in range(0, rows, 1_000_000):
            o = pa.array(range(start, min(start + 1_000_000, rows)), pa.int64())
            parts = [o, *(pc.subtract(o, pc.multiply(pc.divide(o, size), size)) for size in (CUSTOMERS, 1_000))]
            file.write_table(pa.Table.from_arrays(parts, schema=schema))
    return place


def _rate(once: Callable[[], object]) -> float:
    """How often a second something can be done."""
    began, times = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        once()
        times += 1
    return times / (time.perf_counter() - began)


def _peaks() -> dict[str, float]:
    found = peaks(os.getpid())
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"python MiB": own, "java MiB": found.java if found else 0.0}


if __name__ == "__main__":
    name, folder, arguments = sys.argv[1:]
    print(json.dumps(globals()[name](Path(folder), **json.loads(arguments))), flush=True)
