"""Real servers in processes of their own, on free ports of the loopback interface, and what a test says to them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.installed import Installation

PROGRAM = """
.decl edge(x: symbol, y: symbol)
.decl blocked(x: symbol)
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
.decl open(x: symbol, y: symbol)
.output open
open(x, y) :- closure(x, y), !blocked(y).
.decl degree(x: symbol, n: number)
.output degree
.key degree(x)
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
"""
PATIENCE = 30.0  # seconds after which something that should come is taken not to

Row = tuple[Any, ...]
Message = dict[str, Any]


def until(holds: Callable[[], object]) -> None:
    """Waits for something that nobody tells."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class Served:
    """A server on a data folder. When it has ended, or was killed, it can be started again, on the same folder and port."""

    def __init__(
        self, folder: Path, *options: str, program: str = PROGRAM, token: str | None = None, installation: Installation | None = None
    ) -> None:
        self.python = (sys.executable,) if installation is None else installation.command
        self.environment = None if installation is None else installation.environment
        self.folder, self.options, self.token, self.port = folder, options, token, free_port()
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "program.dl").write_text(program, encoding="utf-8")
        self.data, self.log = folder / "data", folder / "log"
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *options: str) -> Served:
        """Returns when it listens."""
        known = [] if (self.data / "vigilog.db").exists() else [str(self.folder / "program.dl")]
        command = [*self.python, "-m", "vigilog.cli.main", "serve", *known, "--data", str(self.data), "--port", str(self.port)]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [*command, "--no-spark", *self.options, *options],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environment,
            )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert "Serving" in first, f"it did not start: {first}{self.log.read_text()}"
        return self

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def stop(self) -> int:
        """As a service manager does it; gives the status that it ends with."""
        return self.end(signal.SIGTERM)

    def end(self, how: signal.Signals) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(how)
        status = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return status

    @property
    def memory(self) -> int:
        """Bytes that the process has in memory."""
        assert self.process is not None
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096

    @property
    def worked(self) -> float:
        """Seconds of computing that the process has done."""
        assert self.process is not None
        user, system = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def logged(self, event: str) -> list[Message]:
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == event]

    def mistakes(self) -> list[str]:
        """What the server did not see coming; that a client sends no UTF-8 is noted by the layer below as if it were one."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [line for line in lines if "Traceback" in line and "Invalid UTF-8 sequence received" not in line]

    # -- calls

    def call(self, method: str, path: str, *, token: str | None = None, **given: Any) -> httpx.Response:
        said = token or self.token
        headers = {"Authorization": f"Bearer {said}"} if said else {}
        return httpx.request(method, self.url + path, headers=headers | given.pop("headers", {}), timeout=60, **given)

    def get(self, path: str, **given: Any) -> Any:
        found = self.call("GET", path, **given)
        assert found.status_code == 200, found.text
        return found.json()

    def tell(self, **wish: Any) -> int:
        """Applies a transaction; gives its number."""
        found = self.call("POST", "/v1/transactions", json=wish)
        assert found.status_code == 200, found.text
        return int(found.json()["tx"])

    def insert(self, *edges: tuple[str, str]) -> int:
        return self.tell(insert={"edge": edges})

    def delete(self, *edges: tuple[str, str]) -> int:
        return self.tell(delete={"edge": edges})

    def clear(self) -> Served:
        """Leaves no base rows."""
        goals = {"edge": "edge(x, y)", "blocked": "blocked(x)"}
        self.tell(delete={name: self.call("POST", "/v1/ask", json={"goal": goal}).json()["rows"] for name, goal in goals.items()})
        return self

    def view(self, name: str, **given: Any) -> set[Row]:
        return rows_of(self.get(f"/v1/views/{name}", **given)["rows"])

    # -- subscriptions

    @contextmanager
    def socket(self, **given: Any) -> Iterator[Talk]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with connect(
            f"ws://127.0.0.1:{self.port}/v1/subscribe",
            additional_headers=headers | given.pop("headers", {}),
            max_size=None,
            close_timeout=1,
            **given,
        ) as found:
            yield Talk(found)

    @contextmanager
    def following(self, **spec: Any) -> Iterator[Talk]:
        """A subscription of which `subscribed` has been read, and, without a position, the first answer."""
        with self.socket() as talk:
            talk.subscribe(**spec)
            yield talk


class Talk:
    """One subscription on a WebSocket, and the copy that its messages lead to."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.copy: dict[str, set[Row]] = {}
        self.db, self.tx, self.digest = "", -1, ""

    def say(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def hear(self, kind: str = "", seconds: float = PATIENCE) -> Message:
        """The next message that is not `progress`, which may come between any two others; it is to be of this kind, if one is named."""
        deadline = time.monotonic() + seconds
        while "progress" in (message := self.next(deadline - time.monotonic())):
            pass
        assert kind in ("", *message), f"{kind} was to come, not {message}"
        return message

    def next(self, seconds: float = PATIENCE) -> Message:
        """The next message, whatever it is."""
        message: Message = json.loads(self.socket.recv(max(0.01, seconds)))
        return message

    def subscribe(self, *, resumes: bool = False, since: int | Message | None = None, **spec: Any) -> Message:
        self.say(subscribe=spec | ({} if since is None else {"from": since}))
        return self.begun(resumes=resumes or since is not None)

    def begun(self, *, resumes: bool = False) -> Message:
        """Reads `subscribed`, and the first answer if one follows."""
        said: Message = self.hear("subscribed")["subscribed"]
        self.db, self.tx, self.digest = said["db"], said["tx"], said.get("digest", "")
        if not resumes:
            self.first_answer(said)
        return said

    def first_answer(self, said: Message) -> None:
        self.copy = {view: set() for view in said["views"]}
        while True:
            part = self.hear("snapshot")["snapshot"]
            assert part["tx"] == said["tx"]
            if "fetch" in part:
                return
            for view, rows in (part["views"] if "views" in part else {next(iter(self.copy)): part["rows"]}).items():
                self.copy[view] |= rows_of(rows)
            if part["last"]:
                return

    def change(self, seconds: float = PATIENCE) -> Message:
        """The next change, which is applied to the copy."""
        said: Message = self.hear("change", seconds)["change"]
        self.apply(said)
        return said

    def apply(self, said: Message) -> None:
        assert said["tx"] > self.tx, f"{said['tx']} comes after {self.tx}"
        self.tx = said["tx"]
        for view, sides in (said["views"] if "views" in said else {next(iter(self.copy)): said}).items():
            if isinstance(sides.get("plus"), list) and isinstance(sides.get("minus"), list):
                apply(self.copy[view], rows_of(sides["plus"]), rows_of(sides["minus"]))

    def rows(self, view: str = "") -> set[Row]:
        return self.copy[view or next(iter(self.copy))]


def rows_of(rows: Any) -> set[Row]:
    return {tuple(row) for row in rows}


def apply(copy: set[Row], plus: set[Row], minus: set[Row]) -> None:
    """A change that is exact: what goes was there, what comes was not."""
    assert minus <= copy, f"{minus - copy} goes, and was not there"
    assert not plus & copy, f"{plus & copy} comes, and was there"
    copy -= minus
    copy |= plus
