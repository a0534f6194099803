"""The shop of the benchmark, smaller, with `orders` on a cluster: `python -m tests.spark.clustered FOLDER [GROUP]`, with the cluster in the environment.

In the middle of a transaction, and once more between two, a worker is killed: the group of processes, or else one of the executors that this process has started.
It prints what each step took and gave, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vigilog
from bench.pipeline.data import PROGRAM, Shop
from vigilog.core.errors import VigilogError
from vigilog.executors.spark import stored, temporary
from vigilog.folder import large
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.spark.session import on_this_machine, session

SHOP = Shop(orders=2_000, customers=100, products=50, blocked=10, employees=40)
CALLS = 20  # of which one succeeds, however many blocks went with a worker


def main() -> None:
    folder, group = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None
    large.FEW_ROWS = 100  # what is small is treated as if it were large:
    stored.LOCAL_ROWS = 500 if group is None else 0  # all but `orders` is here, or all is on the cluster
    SHOP.write(folder / "facts")
    SHOP.write_orders(folder / "more.parquet", SHOP.orders, SHOP.orders + 400)
    SHOP.write_orders(folder / "next.parquet", 0, SHOP.orders, versions=20)
    with open_program(PROGRAM, folder / "facts", data=folder / "data", memory=0, warehouse=str(folder / "warehouse")) as db:
        assert "orders" in db.large and not on_this_machine()
        step("blocked", lambda: db.apply({"insert": {"blocked": [(1,)]}}))
        step("orders", lambda: db.apply({"upsert": {"orders": [(7, 1, 2, 12, 3)], "customers": [(2, "another name", "region 1")]}}))
        kill = killer(group)
        step("load", lambda: db.load("orders", folder / "more.parquet"), kill)
        if group is not None:
            step("sync", lambda: db.sync("orders", folder / "next.parquet"))
        check(db)
        print(json.dumps({"problems": db.verify().problems}), flush=True)


def step(name: str, work: Callable[[], Any], kill: Callable[[], None] | None = None) -> None:
    """Does something; while a worker is killed it may be refused, and is told again."""
    began, usual, refused = time.monotonic(), temporary.TemporaryViews.act, []

    def act(self: temporary.TemporaryViews, action: Callable[[], Any]) -> Any:
        nonlocal kill
        if kill is not None:
            kill()
        kill = None
        return usual(self, action)

    temporary.TemporaryViews.act = act  # type: ignore[method-assign]
    try:
        for _ in range(CALLS):
            try:
                work()
                break
            except VigilogError as reason:
                refused.append(f"{reason.code}: {reason.message}")
    finally:
        temporary.TemporaryViews.act = usual  # type: ignore[method-assign]
    print(json.dumps({"step": name, "seconds": round(time.monotonic() - began, 1), "refused": refused}), flush=True)


def check(db: Durable) -> None:
    """All views are what SQLite computes anew."""
    began, refused = time.monotonic(), []
    base = {name: list(db.rows(name)) for name in db.homes}
    right = vigilog.evaluate(PROGRAM.replace("(IO=parquet)", ""), base)
    for name in db.program.outputs:
        for _ in range(CALLS):
            try:
                assert db.view(name) == right[name], name
                break
            except VigilogError as reason:
                refused.append(f"{reason.code}: {reason.message}")
    print(json.dumps({"step": "check", "seconds": round(time.monotonic() - began, 1), "refused": refused}), flush=True)


def killer(group: int | None) -> Callable[[], None]:
    def kill() -> None:
        if group is None:
            os.kill(executors()[0], signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)

    return kill


def executors() -> list[int]:
    """The processes of executors that Spark has started from this one."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue

    def below(process: int) -> bool:
        return process == os.getpid() or (process in parents and below(parents[process]))

    found = [process for process in parents if below(process)]
    return [process for process in found if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{process}/cmdline").read_bytes()]


if __name__ == "__main__":
    main()
    session().stop()
