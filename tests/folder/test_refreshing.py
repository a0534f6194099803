"""A writer that is killed during a refresh leaves all of it or nothing: the remembered answers, and the views, are those of one reading of the source."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.folder.refreshing import KEYS, PROGRAM, write
from vigilog.folder.opening import open_program

pytestmark = pytest.mark.apart


def test_killed_during_a_refresh(tmp_path: Path) -> None:
    write(tmp_path, 0)
    with open_program(PROGRAM.format(folder=tmp_path), {"n": [(key,) for key in range(KEYS)]}, data=tmp_path / "data"):
        pass
    chance, last = random.Random(20), 0
    for _ in range(6):
        command = [sys.executable, "-m", "tests.folder.refreshing", str(tmp_path), str(last + 1)]
        with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None and writer.stdout.readline() == "open\n"
            time.sleep(chance.uniform(0, 0.4))
            writer.kill()
            said = [int(line) for line in writer.stdout if line.endswith("\n")]
        acknowledged = said[-1] if said else last
        (tmp_path / "t.csv").unlink(missing_ok=True)  # nobody is asked when it is opened
        with open_program(data=tmp_path / "data") as db:
            rows = db.view("v")
            (version,) = {int(str(value)) // 1000 for _, value in rows}
            assert acknowledged <= version <= acknowledged + 1, "what was acknowledged is there, and at most one refresh more"
            assert rows == {(key, version * 1000 + key) for key in range(KEYS)}, "all of one reading"
            assert db.verify().fine
            last = version
    assert last > 0, "some were not killed at once"


def test_a_definition_asks_what_it_states(tmp_path: Path) -> None:
    """What a definition states itself is asked for, and concluded from, in its own transaction."""
    write(tmp_path, 3)
    with open_program(".decl other(x: number)\n.output other\n", {}, data=tmp_path / "data") as db:
        text = PROGRAM.format(folder=tmp_path) + "n(7). .decl b(x: number) constrained\n.output b\nb(x) :- n(x).\nb(x) :- x <= 3.\n"
        assert db.define(text)["v"].plus == {(7, 3007)}
        assert db.view("v") == {(7, 3007)} and db.view("b") == {("x = 7",), ("x <= 3",)}
    with open_program(data=tmp_path / "data") as db:
        assert db.view("v") == {(7, 3007)} and db.view("b") == {("x = 7",), ("x <= 3",)}
