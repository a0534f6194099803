"""A stream that a server follows: a file that is refused ends it, is told by /health, and when the file is mended the stream goes on by itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.service.serving import Served, until

PROGRAM = """
.decl item(i: number, n: number)
.input item(IO=stream, format=json, path="{path}")
.decl many(i: number)
.output many
many(i) :- item(i, n), n > 9.
"""
pytestmark = pytest.mark.apart


def test_a_file_that_is_refused_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.service.serving.PATIENCE", 120.0)  # Spark takes its time
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.json").write_text(json.dumps({"i": 1, "n": 10}) + "\n")
    server = Served(tmp_path, program=PROGRAM.format(path=folder)).start()
    try:
        until(lambda: server.view("many") == {(1,)})
        assert server.call("GET", "/health").status_code == 200
        bad = tmp_path / "2.json"
        bad.write_text(json.dumps({"i": 2, "n": "many"}) + "\n")
        bad.rename(folder / "2.json")
        until(lambda: server.call("GET", "/health").status_code == 503)
        assert server.call("GET", "/health").json()["problems"] == ["stream item: failed (value) and is tried again; the log says more"]
        assert "many" in server.logged("background work failed")[0]["reason"], "the log says why"
        assert 'vigilog_background_failures_total{work="stream item"}' in server.call("GET", "/metrics").text
        (folder / "2.json").write_text(json.dumps({"i": 2, "n": 20}) + "\n")
        until(lambda: server.view("many") == {(1,), (2,)})
        until(lambda: server.call("GET", "/health").status_code == 200)
        assert server.mistakes() == []
    finally:
        server.kill()
