"""Spark's process is killed while a server answers: what it worked for is refused, /health tells it, and the server starts another by itself."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.java import JAVA
from tests.service.serving import Served, until
from tests.treatments import SIZE
from vigilog.folder.opening import open_program

PROGRAM = """
.decl item(id: number, kind: symbol)
.key item(id)
.decl open(kind: symbol)
.decl shown(id: number, kind: symbol)
.output shown
shown(i, k) :- item(i, k), open(k).
.decl total(kind: symbol, n: number)
.output total
total(k, n) :- open(k), n = count : { item(_, k) }.
"""
ITEMS = {(number, f"k{number % 3}") for number in range(300)}
PAUSES = (0.02, 0.1, 0.4) if SIZE != "long" else tuple(0.005 * number for number in range(100))
pytestmark = pytest.mark.apart


def spark_of(server: Served) -> int | None:
    """The process of Spark that a server has started."""
    assert server.process is not None
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().partition("(")[2].rpartition(")")
            if name == "java" and int(rest.split()[1]) == server.process.pid and rest.split()[0] != "Z":
                return int(status.parent.name)
        except (OSError, IndexError):
            continue
    return None


def kill(server: Served) -> None:
    found = spark_of(server)
    assert found is not None
    os.kill(found, signal.SIGKILL)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("VIGILOG_SPARK_CONF", f"spark.driver.extraJavaOptions={JAVA}")
    monkeypatch.setenv("VIGILOG_SPARK_MEMORY", "1g")
    monkeypatch.setattr("tests.service.serving.PATIENCE", 120.0)  # Spark takes its time
    found = Served(tmp_path, program=PROGRAM)
    with open_program(PROGRAM, {"item": ITEMS, "open": {("k1",)}}, data=found.data, memory=0) as db:
        db.compact(["item"])
    found.start()
    yield found
    found.kill()


def test_spark_dies_between_calls(server: Served) -> None:
    until(lambda: server.logged("Spark has started"))
    until(lambda: server.get("/health")["status"] == "ok")
    kill(server)
    until(lambda: server.call("GET", "/health").status_code == 503)
    assert server.call("GET", "/health").json()["problems"] == ["spark: failed (spark) and is tried again; the log says more"]
    until(lambda: server.call("GET", "/health").status_code == 200)
    assert "Spark's process has ended" in server.logged("background work failed")[0]["reason"]
    assert len(server.logged("Spark has started again")) == 1
    assert server.view("total") == {("k1", 100)}
    assert server.mistakes() == []


def killed_during(server: Served, pause: float, *call: str, **given: Any) -> httpx.Response:
    """What a call answers, in the middle of which Spark's process ends."""
    with ThreadPoolExecutor() as pool:
        told = pool.submit(server.call, *call, **given)
        time.sleep(pause)
        if spark_of(server) is not None:
            kill(server)
        return told.result()


def test_spark_dies_in_the_middle_of_calls(server: Served) -> None:
    shown = {row for row in ITEMS if row[1] == "k1"}
    assert server.view("shown") == shown
    for number, pause in enumerate(PAUSES):
        tx, row = server.get("/v1/views")["tx"], (-1 - number, "k1")
        if number % 2:
            found = killed_during(server, pause, "POST", "/v1/ask", json={"goal": 'shown(i, "k1")'})
        else:
            found = killed_during(server, pause, "POST", "/v1/transactions", json={"insert": {"item": [row]}})
        if found.status_code != 200:
            assert found.json()["error"]["code"] == "spark", found.text
            assert server.get("/v1/views")["tx"] == tx, "nothing has changed"
        elif not number % 2:
            shown |= {row}
        assert server.view("shown") == shown, "the next call works"
    assert server.view("total") == {("k1", len(shown))}
    assert server.mistakes() == []
    assert "incubator" not in server.log.read_text() and "\tat " not in server.log.read_text()
