"""Kills a writer again and again, at any instant, and looks at what it left: `python -m tests.folder.crash FOLDER ROUNDS SEED`.

Transaction number n is a function of n alone, so that the state after n transactions is known without the database. The writer, a fork of this process, says each number when it is acknowledged; it is killed
while it opens the folder, works or checkpoints. Then the folder must hold what was acknowledged, and at most one transaction more.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.golden import GRAPH
from vigilog.core.delta import Delta
from vigilog.folder import book as ledger
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

NODES = 9
DEFINED_EVERY, LARGE_EVERY, VERIFIED_EVERY = 40, 23, 25
LONGEST = 0.3  # seconds that a writer lives after it has opened the folder; it needs some to plan its statements
LONGEST_OPENING = 0.05
PART_OPENING = 0.15  # of the writers are killed while they open the folder
RETAINED = {"transactions": 300}
PAIRS = (
    ".decl pair(x: symbol, y: symbol)\n.output pair\n",
    "pair(x, y) :- edge(x, y), edge(y, x).\n",
    "pair(x, y) :- edge(x, z), edge(z, y).\n",
)

Edge = tuple[str, str]


def wish(number: int) -> tuple[list[Edge], list[Edge]]:
    """What transaction `number` deletes and inserts."""
    chance = random.Random(number)
    nodes = [f"n{node}" for node in range(NODES)]
    many = number % LARGE_EVERY == 0
    gone = [(chance.choice(nodes), chance.choice(nodes)) for _ in range(60 if many else chance.randint(0, 2))]
    came = [(chance.choice(nodes), chance.choice(nodes)) for _ in range(40 if many else chance.randint(0, 2))]
    return gone, came


def definition(number: int) -> str:
    return PAIRS[0] + PAIRS[1 + number // DEFINED_EVERY % 2]


class Model:
    """What the database should be after each transaction."""

    def __init__(self) -> None:
        self.tx, self.edges = 0, set[Edge]()

    def step(self) -> Delta:
        """One transaction more; gives what it changes in the base."""
        self.tx += 1
        before = set(self.edges)
        if self.tx % DEFINED_EVERY:
            gone, came = wish(self.tx)
            self.edges = (self.edges - set(gone)) | set(came)
        return Delta(frozenset(self.edges - before), frozenset(before - self.edges))

    @property
    def views(self) -> dict[str, set[Any]]:
        defined = self.tx // DEFINED_EVERY
        pairs = self._both() if defined % 2 == 0 else self._two()
        return {"closure": self._closure(), **({"pair": pairs} if defined else {})}

    def _both(self) -> set[Edge]:
        return {(x, y) for x, y in self.edges if (y, x) in self.edges}

    def _two(self) -> set[Edge]:
        return {(x, y) for x, z in self.edges for other, y in self.edges if z == other}

    def _closure(self) -> set[Edge]:
        found = set(self.edges)
        while more := {(x, y) for x, z in self.edges for other, y in found if z == other} - found:
            found |= more
        return found


def write(folder: Path, said: int) -> None:
    """Writes transactions until it is killed; says each number when it is acknowledged."""
    db = open_program(data=folder)
    db.file.connection.execute("PRAGMA wal_autocheckpoint=50")
    os.write(said, b"open\n")
    while True:
        number = db.tx + 1
        if number % DEFINED_EVERY == 0:
            db.define(definition(number))
        else:
            gone, came = wish(number)
            db.take({"delete": {"edge": gone}, "insert": {"edge": came}}, request=str(number))
        os.write(said, f"{number}\n".encode())


def killed_writer(folder: Path, seconds: float, *, opening: bool) -> int:
    """Starts a writer, kills it some time after it has opened the folder, or while it does; gives the last number that it said, 0 if none."""
    reading, writing = os.pipe()
    writer = os.fork()
    if writer == 0:
        os.close(reading)
        try:
            write(folder, writing)
        finally:
            os._exit(1)  # a writer never ends by itself
    os.close(writing)
    if not opening:
        assert os.read(reading, 5) == b"open\n"
    time.sleep(seconds)  # so long the writer writes, before it is killed
    os.kill(writer, signal.SIGKILL)
    _, status = os.waitpid(writer, 0)
    assert os.WIFSIGNALED(status), "the writer failed by itself"
    with os.fdopen(reading) as pipe:
        numbers = [line for line in pipe.read().split("\n")[:-1] if line != "open"]
    return int(numbers[-1]) if numbers else 0


def check(db: Durable, model: Model, acknowledged: int) -> None:
    """Compares what a killed writer left with the model, which follows."""
    first, before = model.tx, model.views
    assert db.tx in (max(first, acknowledged), max(first, acknowledged) + 1), f"{acknowledged} was acknowledged, {db.tx} is there"
    changes = {}
    while model.tx < db.tx:
        delta = model.step()
        changes[model.tx] = {"edge": delta} if delta else {}
    if first >= db.book.log.first:
        entries = {entry.tx: _deltas(db, entry.changes) for entry in db.book.log.entries(first)}
        assert entries == changes, "the log says what was wished"
        for _, view, delta in db.changes(first):
            before[view] = delta.apply(before.get(view, set()))
        assert {name: rows for name, rows in before.items() if name in model.views} == model.views, "the outbox leads to the views"
    assert db.rows("edge") == model.edges
    assert {name: db.view(name) for name in db.program.outputs} == model.views
    for request in (str(db.tx), str(db.tx + 1)):
        expected = db.tx if request == str(db.tx) and db.tx and db.tx % DEFINED_EVERY else None
        assert db.book.answered(request) == expected, "a request is noted with its transaction"


def _deltas(db: Durable, said: Any) -> dict[str, Delta]:
    return {name: db.book.delta(name, parts) for name, parts in said.items()}


def main(folder: Path, rounds: int, seed: int) -> None:
    ledger.MANY_ROWS, ledger.LOOK_EVERY = 10, 50  # segments and pruning happen in short runs, too
    chance, model, verified = random.Random(seed), Model(), 0
    open_program(GRAPH, data=folder, strategy=chance.choice(["auto", "counted", "materialized"]), retain=RETAINED).close()
    for number in range(1, rounds + 1):
        opening = chance.random() < PART_OPENING
        acknowledged = killed_writer(folder, chance.uniform(0, LONGEST_OPENING if opening else LONGEST), opening=opening)
        with open_program(data=folder) as db:
            check(db, model, acknowledged)
            if number % VERIFIED_EVERY == 0 or number == rounds:
                found = db.verify()
                assert found.fine, found.problems
                verified += 1
    print(f"{rounds} writers killed, {model.tx} transactions, {verified} times verified")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
