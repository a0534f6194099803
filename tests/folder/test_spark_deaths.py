"""Spark's process ends in the middle of work; the next call works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.folder.deaths import OPERATIONS
from tests.java import JAVA
from tests.treatments import SIZE

ROOT = Path(__file__).parents[2]


@pytest.mark.apart
@pytest.mark.timeout(1800)
def test_spark_dies_in_every_stage(tmp_path: Path) -> None:
    kills = 1000 if SIZE == "long" else len(OPERATIONS)
    settings = {"VIGILOG_SPARK_CONF": f"spark.driver.extraJavaOptions={JAVA}", "VIGILOG_SPARK_MEMORY": "1g"}
    command = [sys.executable, "-m", "tests.folder.deaths", str(tmp_path), str(kills)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *deaths, last = map(json.loads, done.stdout.splitlines())
    assert {death["operation"] for death in deaths} == OPERATIONS.keys()
    for death in deaths:
        assert death["told"].startswith("spark: Spark's process has ended"), death
        assert death["changed"] == 0, death
    assert last == {"prepared": True, "problems": []}
    assert done.stderr == "", "neither Java nor Python has more to say"
