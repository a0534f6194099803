"""`./run demo`, as a user starts it: its story comes to its end, and nothing of it is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.apart
ROOT = Path(__file__).parents[2]


def demo(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The demo, with a folder of its own for what is temporary."""
    return subprocess.Popen(
        [sys.executable, "-m", "examples.demo", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        env=os.environ | {"TMPDIR": str(folder), "COLUMNS": "200"},
    )


def test_story_is_told_to_its_end(tmp_path: Path) -> None:
    told = demo(tmp_path, "--once")
    said, _ = told.communicate()
    lines = said.splitlines()
    assert told.returncode == 0, said
    assert lines[-1].startswith("Yes: every copy, kept by changes alone, equals the view computed anew.")
    assert [line.split()[-2:] for line in lines[-5:-1]] == [["equal", "equal"]] * 4
    assert [part for part in ("refused (key)", "transaction 5", "4 of 4 clients have come back") if part not in said] == []
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    told = demo(tmp_path)
    assert told.stdout
    said = next(line for line in told.stdout if "rows, as Parquet" in line)  # Spark starts next
    told.send_signal(signal.SIGINT)
    said, _ = told.communicate()
    assert told.returncode == 130, said
    assert said.splitlines()[-1] == "Interrupted. All processes have ended."
    assert list(tmp_path.iterdir()) == []
