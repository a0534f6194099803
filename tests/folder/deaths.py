"""Spark dies in each stage of each operation: `python -m tests.folder.deaths FOLDER KILLS`. It prints a line of JSON for each death.

An operation consists of actions of Spark. Before one of them, or right behind it, Spark's process is killed, or ends by itself as it does when its memory is full. What the operation was for is then
refused, nothing has changed, and the same operation, told again, does what it should.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from vigilog.core.errors import VigilogError
from vigilog.executors.mixed import MixedViews
from vigilog.executors.spark import stored, temporary
from vigilog.folder import large
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.folder.reading.distant import begin
from vigilog.spark import snapshots
from vigilog.spark.session import session

PROGRAM = """
.decl item(id: number, kind: symbol, price: number)
.input item
.key item(id)
.decl kind(name: symbol)
.input kind
.decl cheap(id: number, kind: symbol)
.output cheap
cheap(i, k) :- item(i, k, p), kind(k), p < 10.
.decl total(kind: symbol, price: number)
.output total
total(k, t) :- kind(k), t = sum p : { item(_, k, p) }.
"""
ITEMS = [(number, f"k{number % 3}", number % 20) for number in range(60)]

Operation = Callable[[Durable], object]
OPERATIONS: dict[str, Operation] = {
    "insert": lambda db: db.apply({"insert": {"item": [(100 + db.tx, "k1", 5)]}}),
    "upsert": lambda db: db.apply({"upsert": {"item": [(3, "k1", 100 + db.tx)]}}),
    "load": lambda db: db.load("item", _items(db, 1000 + db.tx)),
    "sync": lambda db: db.sync("item", _items(db, 2000 + db.tx)),
    "compact": lambda db: db.compact(["item"]),
    "view": lambda db: db.view("total"),
    "ask": lambda db: db.ask('total("k1", t)'),
    "why": lambda db: db.why('cheap(1, "k1")'),
    "reading": lambda db: _read(db),
    "verify": lambda db: db.verify(),
}


def _items(db: Durable, number: int) -> Path:
    place = db.folder / "items.facts"
    place.write_text("".join(f"{number + place}\tk2\t7\n" for place in range(3)))
    return place


def _read(db: Durable) -> object:
    with db.reading("total") as state:
        return list(state.rows("total"))


def main() -> None:
    folder, kills = Path(sys.argv[1]), int(sys.argv[2])
    stored.LOCAL_ROWS = large.FEW_ROWS = 0  # so that everything is done by Spark,
    snapshots.indexed = lambda *_: None  # and nothing is looked up here
    with open_program(PROGRAM, {"item": ITEMS, "kind": [("k0",), ("k1",)]}, data=folder / "data", memory=0) as db:
        db.compact(["item"])
        number = 0
        for name, operation in OPERATIONS.items():
            acted = _steady(db, operation)
            for place in range(acted) if kills > len(OPERATIONS) else [(2 * number + 1) % acted]:
                number += 1
                print(json.dumps(_death(db, name, operation, place, DEATHS[number % len(DEATHS)])), flush=True)
        print(json.dumps({"prepared": _prepared(db), "problems": db.verify().problems}), flush=True)


def _prepared(db: Durable) -> bool:
    """What was prepared in a process that has ended meanwhile, while nobody waited for it, is nobody's error."""
    before = db.view("total")
    assert isinstance(db.views, MixedViews)
    db.views.renew()
    begin(db)
    killed()
    session()  # somebody has started another
    return db.view("total") == before


def _steady(db: Durable, operation: Operation) -> int:
    """How many actions an operation takes, once what it reads first and what is prepared for it are there."""
    counts = [-1]
    while len(counts) < 3 or counts[-1] != counts[-2]:
        with _acting(lambda _: None) as acted:
            operation(db)
        counts.append(acted[0])
    return counts[-1]


def _death(db: Durable, name: str, operation: Operation, place: int, die: Callable[[], None]) -> dict[str, Any]:
    before, told = db.tx, ""
    with _acting(lambda number: die() if number == place + 1 else None):
        try:
            operation(db)
        except VigilogError as error:
            told = f"{error.code}: {error.message}"
    tx = db.tx
    operation(db)
    return {"operation": name, "place": place, "how": die.__name__, "told": told, "changed": tx - before}


@contextmanager
def _acting(at: Callable[[int], None]) -> Iterator[list[int]]:
    """Calls a function with the number of each action, before it."""
    usual, acted = temporary.TemporaryViews.act, [0]

    def act(self: temporary.TemporaryViews, action: Callable[[], Any]) -> Any:
        acted[0] += 1
        at(acted[0])
        return usual(self, action)

    temporary.TemporaryViews.act = act  # type: ignore[method-assign]
    try:
        yield acted
    finally:
        temporary.TemporaryViews.act = usual  # type: ignore[method-assign]


def killed() -> None:
    from pyspark import SparkContext

    assert SparkContext._gateway is not None
    process = SparkContext._gateway.proc
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


def exited() -> None:
    """It ends by itself, after it has stopped its context, and perhaps some time later."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None

    def end() -> None:
        with suppress(Exception):
            gateway.jvm.System.exit(52)

    thread = threading.Thread(target=end)
    thread.start()
    context = SparkContext._active_spark_context
    with suppress(Exception):
        while context is not None and not context._jsc.sc().isStopped():
            pass


DEATHS = [killed, exited]

if __name__ == "__main__":
    main()
