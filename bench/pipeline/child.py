"""A process for one contender: `python -m bench.pipeline.child CONTENDER ORDERS FACTS OWN REPEATS TURN OPERATION …`.

It does the operations it is told, says what came of each, and waits until its standard input is closed. What it says are lines of JSON. What fails is said, too, and the next operation tried.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, assert_never

from bench.pipeline.data import Shop
from bench.pipeline.operations import Bulk, Change, Look, Operation, Whole, operations
from bench.pipeline.told import Told


class Contender(Protocol):
    """What is measured: from what is told in Python, or from files, to rows in Python."""

    def init(self) -> None: ...

    def change(self, change: Change, turn: int) -> Mapping[str, Told]: ...

    def bulk(self, bulk: Bulk, place: Path) -> Mapping[str, Told]: ...

    def look(self, look: Look) -> int: ...

    def verify(self) -> None: ...

    def why(self) -> str: ...


def contender(name: str, shop: Shop, facts: Path, own: Path) -> Contender:
    if name in ("cached", "uncached"):
        from bench.pipeline.plain import Plain

        return Plain(shop, facts, own, cached=name == "cached")
    from bench.pipeline.ours import RESIDENT, Ours

    return Ours(shop, facts, own, memory=RESIDENT if name == "resident" else 56 * shop.orders)


def main() -> None:
    name, orders, facts, own, repeats, *names = sys.argv[1:]
    shop = Shop.of(int(orders))
    known = {operation.name: operation for operation in operations(shop)}
    measured = contender(name, shop, Path(facts), Path(own))
    say(event="ready")
    for operation in names:
        try:
            found = once(measured, known[operation], Path(facts), int(repeats))
        except Exception as reason:
            say(event="failed", operation=operation, reason=f"{type(reason).__name__}: {reason}"[:300])
        else:
            say(event="operation", operation=operation, why=measured.why(), **found)
    say(event="done")
    sys.stdin.read()


def once(measured: Contender, operation: Operation, facts: Path, repeats: int) -> dict[str, Any]:
    """The seconds that an operation takes, the first time and later, and what was told."""
    times: list[float] = []
    answers: list[Any] = []
    for turn in range(repeats + 1 if isinstance(operation, Change) else 2 if isinstance(operation, Look) else 1):
        began = time.perf_counter()
        match operation:
            case Change():
                answers.append(measured.change(operation, turn))
            case Bulk():
                answers.append(measured.bulk(operation, facts.parent / ("new" if operation.new else "version")))
            case Look():
                answers.append(measured.look(operation))
            case Whole(name="init"):
                measured.init()
            case Whole():
                measured.verify()
            case _:
                assert_never(operation)
        times.append(time.perf_counter() - began)
    return {"times": times, "told": answers}


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
