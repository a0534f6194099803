"""Real servers for the tests: a process, a port on the loopback interface, a data folder."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.input edge
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
"""


class Server:
    """A server process, and others after it on the same port and the same data."""

    def __init__(self, folder: Path, *options: str, program: str = PROGRAM) -> None:
        self.folder, self.options = folder, options
        self.program = folder / "program.dl"
        self.program.write_text(program)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers."""
        words = ["serve", str(self.program), "--data", str(self.folder / "data"), "--port", str(self.port), *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "vigilog.cli.main", *words], stdout=log, stderr=log)
        while True:
            try:
                httpx.get(f"{self.url}/health").raise_for_status()
                return
            except httpx.HTTPError:
                if self.process.poll() is not None:
                    raise AssertionError((self.folder / "server.log").read_text()) from None
                time.sleep(0.05)

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """As a service manager does it."""
        self.kill(signal.SIGTERM)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path, "--origin", "*")
    found.start()
    yield found
    found.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
