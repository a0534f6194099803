"""The archive of Spark's classes: it is made once, and Spark starts with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vigilog.spark import archive, session

pytestmark = pytest.mark.apart

SMALL = """
from vigilog.cli import rehearsal
from vigilog.spark.session import session
rehearsal.os.nice = lambda _: None  # others compute, too
rehearsal._rehearse = lambda folder: session().range(3).count()
rehearsal.main()
"""
FAILING = """
from vigilog.cli import rehearsal
rehearsal._rehearse = lambda folder: 1 / 0
rehearsal.main()
"""
USING = "from vigilog.spark.session import session; assert session().range(3).count() == 3"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "VIGILOG_"))}
    loaded = f"spark.driver.extraJavaOptions=-Xlog:class+load:file={tmp_path / 'loaded'}"
    return kept | {archive.SETTING: str(tmp_path / "archives"), "VIGILOG_SPARK_MEMORY": "1g", "VIGILOG_SPARK_CONF": loaded}


def run(code: str, environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr + done.stdout


@pytest.mark.slow
def test_it_is_made_and_used(tmp_path: Path, environment: dict[str, str]) -> None:
    assert run(SMALL, environment) == ""
    (found,) = (tmp_path / "archives").glob("*.jsa")
    made = found.stat()
    assert made.st_size > 10 * 2**20
    assert run(SMALL, environment) == "" and found.stat() == made, "it is there"
    assert run(USING, environment) == ""
    lines = (tmp_path / "loaded").read_text().splitlines()
    spark = [line for line in lines if " org.apache.spark." in line]
    assert sum("shared objects file (top)" in line for line in spark) > 0.5 * len(spark) > 1000


def test_what_cannot_be_made_is_not_tried_again(tmp_path: Path, environment: dict[str, str]) -> None:
    assert run(FAILING, environment) == ""
    (found,) = (tmp_path / "archives").glob("*.jsa")
    assert found.stat().st_size == 0 and not archive.usable(found)


def test_one_makes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archive.SETTING, str(tmp_path))
    session.ensure_java()
    with archive.making() as first, archive.making() as second:
        assert first is not None and second is None
        first[0].write_bytes(b"classes")
    with archive.making() as third:
        assert third is None
    found = archive.place()
    assert found is not None and archive.usable(found) and f"-XX:SharedArchiveFile={found}" in archive.options()
    monkeypatch.setenv(archive.SETTING, "none")
    assert archive.place() is None and "Archive" not in archive.options()
