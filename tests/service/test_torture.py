"""Nothing is lost, told twice or out of order, whatever happens to server and clients."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.treatments import amount

pytestmark = pytest.mark.apart

ROOT = Path(__file__).parents[2]


def test_servers_killed_and_clients_that_come_and_go(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.service.torture", str(tmp_path / "served"), str(amount(14)), "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"\d+ servers ended, \d+ transactions", done.stdout), done.stdout
