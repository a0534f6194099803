"""Subscriptions to views that Spark holds: they are like all others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.service.serving import Row, Served, until
from vigilog.folder import large
from vigilog.folder.opening import open_program

PROGRAM = """
.decl item(i: number, n: number)
.decl minimum(n: number, least: number)
.decl short(i: number, n: number)
.output short
short(i, n) :- item(i, n), minimum(n, least), i < least.
.decl least(n: number, least: number)
.output least
least(n, least) :- minimum(n, least).
"""
LEAST = [(3, 50), (7, 100)]
pytestmark = pytest.mark.apart
LONG = 120.0  # seconds; Spark takes its time


def short(items: set[Row], least: list[tuple[int, int]]) -> set[Row]:
    return {(i, n) for i, n in items for other, below in least if n == other and i < below}


def descendants(server: Served) -> list[int]:
    """The processes that a server has started, and theirs."""
    assert server.process is not None
    parents = {int(path.parent.name): int(path.read_text().rpartition(")")[2].split()[1]) for path in Path("/proc").glob("[0-9]*/stat")}
    found = [server.process.pid]
    for parent in found:
        found += [process for process, its in parents.items() if its == parent]
    return found[1:]


@pytest.fixture
def server(tmp_path: Path) -> Served:
    open_program(PROGRAM, data=tmp_path / "data", memory=1).close()
    return Served(tmp_path, program=PROGRAM)


def test_first_answers_slices_changes_and_resuming(server: Served) -> None:
    server.start()
    try:
        items: set[Row] = {(number, number % 10) for number in range(large.MANY_ROWS)}
        server.tell(insert={"item": sorted(items), "minimum": LEAST})
        assert server.get("/v1/status")["relations"][0]["residency"] == "on Spark", "it has outgrown its budget"
        truth = short(items, LEAST)
        with (
            server.following(view="short") as whole,
            server.following(view="short", bind={"n": 7}) as slice_,
            server.following(views=["short", "least"]) as both,
        ):
            assert whole.rows() == truth and slice_.rows() == {row for row in truth if row[1] == 7}
            assert both.copy == {"short": truth, "least": set(LEAST)}
            began = whole.tx
            tx = server.tell(insert={"item": [[-1, 7], [-2, 3], [99_999, 7]]}, delete={"item": [[13, 3], [99, 9]]})
            change = whole.change(LONG)
            assert change == {"tx": tx, "digest": change["digest"], "plus": [[-2, 3], [-1, 7]], "minus": [[13, 3]]}
            assert slice_.change(LONG) == {"tx": tx, "digest": change["digest"], "plus": [[-1, 7]], "minus": []}
            later = server.tell(upsert={}, insert={"minimum": [[9, 20]]})
            assert {tuple(row) for row in whole.change(LONG)["plus"]} == {(9, 9), (19, 9)}
            both.change(LONG)
            assert both.change(LONG)["tx"] == later and both.copy == {"short": whole.rows(), "least": {*LEAST, (9, 20)}}
            assert slice_.tx == tx, "it does not concern this one"
        server.kill()
        server.start()
        with server.socket() as again:
            again.copy, again.tx = {"short": truth}, began
            again.subscribe(view="short", since=began)
            assert [again.change(LONG)["tx"] for _ in range(2)] == [tx, later]
            assert again.rows() == whole.rows() == server.view("short")
            server.tell(delete={"minimum": [[7, 100]]})
            assert again.change(LONG)["plus"] == [] and again.rows() == server.view("short")
        assert server.call("POST", "/v1/ask", json={"goal": "short(i, 3), least(3, m)"}).json()["rows"][0] == [-2, 50]
        assert server.mistakes() == []
        for process in descendants(server):
            os.kill(process, signal.SIGKILL)
        assert server.view("short") == again.rows(), "Spark begins anew, and nobody hears of it"
        for process in descendants(server):
            os.kill(process, signal.SIGKILL)
        until(lambda: server.call("GET", "/health").status_code == 503)
        assert server.call("GET", "/health").json()["problems"] == ["spark: failed (spark) and is tried again; the log says more"]
        until(lambda: server.call("GET", "/health").status_code == 200)
        assert server.tell(insert={"item": [[-3, 3]]}) and (-3, 3) in server.view("short"), "and it began anew by itself"
        assert server.mistakes() == [], "neither Java nor Python has filled the log"
        assert "incubator" not in server.log.read_text(encoding="utf-8")
    finally:
        server.kill()
