"""Real servers: `vigilog serve` in a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vigilog.client import connect

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, z) :- closure(x, y), edge(y, z).
.decl degree(x: symbol, n: number)
.output degree
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
.decl price(item: symbol, day: date, amount: decimal(6,2))
.input price
.key price(item)
.decl dear(item: symbol, day: date, amount: decimal(6,2))
.output dear
.key dear(item)
dear(i, d, a) :- price(i, d, a), a > 10.
"""


class Serving:
    """A server on a data folder. After it has ended, or was killed, it can be started again, on the same folder and port."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.options, self.port = folder, options, 0
        self.program = folder / "program.dl"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Serving:
        command = [sys.executable, "-m", "vigilog.cli.main", "serve", str(self.program), "--data", str(self.folder / "data")]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), "--no-spark", *self.options], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)", first)
        assert found, f"it did not start: {first}{(self.folder / 'log').read_text()}"
        self.port = int(found[1])
        return self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    def kill(self) -> None:
        self.stop(signal.SIGKILL)


@pytest.fixture
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Serving]]:
    """Starts servers, with options of `vigilog serve`; all are stopped at the end."""
    started: list[Serving] = []

    def serve(*options: str, prepare: Callable[[Serving], None] | None = None) -> Serving:
        made = Serving(tmp_path_factory.mktemp("served"), *options)
        if prepare is not None:
            prepare(made)
        started.append(made)
        return made.start()

    yield serve
    for server in started:
        server.stop()


@pytest.fixture
def server(serving: Callable[..., Serving]) -> Serving:
    return serving()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A server for all tests of a file that leave it alive."""
    server = Serving(tmp_path_factory.mktemp("lasting")).start()
    yield server
    server.stop()


@pytest.fixture
def shared(lasting: Serving) -> Serving:
    """That server, without rows."""
    with connect(lasting.url) as client:
        client.tell(delete={"edge": client.ask("edge(x, y)"), "price": client.ask("price(i, d, a)")})
        for found in client.subscriptions():
            client.cancel(found["name"])
    return lasting


os.environ.pop("VIGILOG_TOKEN", None)
