"""A writer that is killed at any instant leaves all of a transaction or nothing of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.treatments import amount

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("rounds", "seed"), [(amount(100), 1), (amount(100), 2)])
def test_killed_at_random_instants(tmp_path: Path, rounds: int, seed: int) -> None:
    """A process of its own, because it forks."""
    command = [sys.executable, "-m", "tests.folder.crash", str(tmp_path / "data"), str(rounds), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{rounds} writers killed")
