"""/health knows a broken disk, and what a broken disk does to transactions, subscriptions and names."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.service.serving import PROGRAM, Served
from vigilog.folder.opening import open_program

pytestmark = pytest.mark.apart


class Small:
    """A disk that can be filled: a small file system in memory, or, without the right to mount one, a server that may not write any more."""

    def __init__(self, server: Served) -> None:
        self.server, self.ballast = server, server.data / "ballast"
        server.data.mkdir(parents=True)
        mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(server.data)]
        self.mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        if not self.mounted:
            self._allow(0)
            return
        with self.ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)

    def free(self) -> None:
        if self.mounted:
            self.ballast.unlink()
        else:
            self._allow(resource.RLIM_INFINITY)

    def _allow(self, size: int) -> None:
        assert self.server.process is not None
        resource.prlimit(self.server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def remove(self) -> None:
        self.server.kill()
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.server.data)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Small]:
    found = Small(Served(tmp_path / "served"))
    try:
        found.server.start()
        yield found
    finally:
        found.remove()


def test_a_full_disk(disk: Small) -> None:
    """Transactions are refused and nothing of them is there; the others are served; when there is room again, all goes on."""
    small = disk.server
    small.insert(("a", "b"))
    with small.following(view="closure", name="it") as talk:
        disk.fill()
        health = small.call("GET", "/health")
        assert health.status_code == 503
        assert health.json()["status"] == "broken" and "cannot be written" in health.json()["problems"][0]
        talk.say(ack=talk.tx)
        statuses = set()
        for number in range(40):
            found = small.call("POST", "/v1/transactions", json={"insert": {"edge": [[f"n{number}{row}", "x" * 100] for row in range(40)]}})
            statuses.add(found.status_code)
            if found.status_code != 200:
                assert found.status_code == 503 and found.json()["error"]["code"] == "disk", found.text
        assert 503 in statuses
        assert small.view("closure"), "it is read all the same"
        assert small.call("POST", "/v1/ask", json={"goal": 'closure("a", y)'}).json()["rows"] == [["a", "b"]]
        disk.free()
        health = small.call("GET", "/health")
        assert health.status_code == 200, health.text
        tx = small.insert(("end", "z"))
        while talk.tx < tx:
            talk.change()
        assert talk.rows() == small.view("closure"), "no change was missed, and none that was refused was told"
    small.kill()
    small.start()
    assert talk.rows() == small.view("closure")
    assert small.mistakes() == []


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    server = Served(tmp_path / "served").start()
    try:
        server.insert(("a", "b"))
        assert httpx.get(f"{server.url}/health").json() == {"status": "ok", "db": server.get("/v1/views")["db"], "tx": 1, "problems": []}
        shutil.rmtree(server.data)
        found = httpx.get(f"{server.url}/health")
        assert found.status_code == 503 and "cannot be written" in found.json()["problems"][0]
    finally:
        server.kill()


def test_metrics(tmp_path: Path) -> None:
    open_program(PROGRAM, data=tmp_path / "served" / "data").close()
    server = Served(tmp_path / "served").start()
    try:
        with server.following(view="closure"), server.following(query="edge(x, y), !blocked(x)") as talk:
            server.insert(("a", "b"))
            talk.change()
            server.call("GET", "/v1/views/none")
            text = server.call("GET", "/metrics").text
        numbers = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        assert numbers['vigilog_commits_total{engine="embedded"}'] == "1.0"
        assert numbers['vigilog_delta_rows_total{side="plus",view="closure"}'] == "1.0"
        assert numbers['vigilog_delta_rows_total{side="plus",view="query"}'] == "1.0", "queries are counted together"
        assert numbers['vigilog_refused_total{code="unknown-relation"}'] == "1.0"
        assert numbers["vigilog_subscribers"] == "2.0" and numbers["vigilog_transaction"] == "1.0"
        assert float(numbers["vigilog_outbox_changes"]) >= 2 and numbers["vigilog_commit_seconds_count"] == "1.0"
    finally:
        server.kill()
