"""Faults of what is large: snapshots that are not whole, and a Spark that dies."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.folder.test_faults import FACTS, PROGRAM, insertion
from vigilog.core.errors import DataError
from vigilog.folder.backup import restore
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.spark.snapshots import DONE

ROOT = Path(__file__).parents[2]
CLOSURE = {("a", "b"), ("b", "c"), ("a", "c")}


def large(folder: Path) -> Durable:
    """A database whose one base relation is on Spark."""
    db = open_program(PROGRAM, FACTS, data=folder, memory=0)
    db.compact(["edge"])
    assert db.large == {"edge"}
    return db


def flip_last_value(path: Path) -> None:
    """Changes one byte of a page of a Parquet file, and takes away the sums that the file system keeps beside it."""
    column = pq.read_metadata(path).row_group(0).column(1)
    begin = column.dictionary_page_offset or column.data_page_offset
    data = bytearray(path.read_bytes())
    data[begin + column.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def test_snapshots(tmp_path: Path) -> None:
    with large(tmp_path / "data") as db:
        assert db.view("closure") == CLOSURE
        left = tmp_path / "data" / "warehouse" / "edge" / "snapshot-9-killed"
        left.mkdir()
        (left / "part-0.parquet").write_bytes(b"half of it")
        assert db.view("closure") == CLOSURE, "what a killed process left is not read"
        db.backup(tmp_path / "copy")
        assert db.compact() == {"edge": 2} and not left.exists(), "and goes with the next snapshot"
        assert db.view("closure") == CLOSURE
        assert db.verify().problems == []
        assert db.status().relations[0].residency == "on Spark" and db.status().relations[0].rows == 2
    restore(tmp_path / "copy", tmp_path / "other")
    with open_program(data=tmp_path / "other") as db:
        assert db.view("closure") == CLOSURE, "a backup has its own snapshots"
        taken = db.store.snapshot("edge")
        assert taken is not None
        location = Path(taken[0].location)
        assert tmp_path / "other" in location.parents
    parts = sorted(location.glob("*.parquet"))
    whole = {part: part.read_bytes() for part in parts}
    for part in parts:
        flip_last_value(part)
    refused(tmp_path / "other")
    for part in parts:
        part.write_bytes(whole[part][:-20])
    refused(tmp_path / "other")
    for part in parts:
        part.write_bytes(whole[part])
    (location / DONE).unlink()
    refused(tmp_path / "other")


def refused(folder: Path) -> None:
    """A snapshot that is not whole is said to be so, and never served."""
    with open_program(data=folder) as db:
        with pytest.raises(DataError) as error:
            db.view("closure")
        assert error.value.code in ("damaged", "spark")
        with pytest.raises(DataError):
            db.apply(insertion(("x", "y")))
        assert db.tx == 0
        assert not db.verify().fine


@pytest.mark.apart
def test_spark_dies(tmp_path: Path) -> None:
    """In a process of its own. What Spark worked for ends with an error, and has changed nothing; whatever is asked for next works, for it starts another."""
    code = """
        import os, signal, sys
        from pathlib import Path
        from pyspark import SparkContext
        from tests.folder.test_spark_faults import CLOSURE, insertion, large
        from vigilog.core.errors import VigilogError
        from vigilog.folder import large as limits
        from vigilog.executors.spark import stored
        from vigilog.executors.spark.temporary import TemporaryViews
        from vigilog.spark import snapshots

        stored.LOCAL_ROWS = 0  # or nothing would be asked of Spark for so few rows,
        snapshots.indexed = lambda *_: None  # and of more it would be looked up here

        def kill(*_):
            process = SparkContext._gateway.proc
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

        def told(owner, name, call):
            usual = getattr(owner, name)

            def dying(*given):
                kill()
                return usual(*given)

            setattr(owner, name, dying)
            try:
                return call()
            except VigilogError as error:
                return error.code
            finally:
                setattr(owner, name, usual)

        folder = Path(sys.argv[1])
        (folder / "incoming").mkdir(parents=True)
        (folder / "more.facts").write_text("d\\te\\ne\\tf\\n")
        db = large(folder / "data")
        assert db.view("closure") == CLOSURE
        print(told(TemporaryViews, "act", lambda: db.apply(insertion(("c", "d")))), db.tx, list(db.changes(0)))
        print(sorted(db.apply(insertion(("c", "d")))["closure"].plus), db.tx)
        limits.FEW_ROWS = 1
        print(told(snapshots, "write", lambda: db.load("edge", folder / "more.facts")), db.tx)
        print(db.verify().problems)
        print(db.load("edge", folder / "more.facts").tx, len(db.view("closure")))
        db.define(f".decl item(n: number) .input item(IO=stream, format=json, path=\\"{folder}/incoming\\")")
        stream = db.stream("item")
        kill()
        print(stream.active, stream.error)
        stream = db.stream("item")
        (folder / "incoming" / "1.json").write_text('{"n": 7}')
        stream.catch_up()
        print(db.rows("item"), stream.error)
        db.close()
        """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "spark 0 []",
        "[('a', 'd'), ('b', 'd'), ('c', 'd')] 1",
        "spark 1",
        "[]",
        "2 15",
        "False the stream of item ended: Spark's process has ended",
        "{(7,)} None",
    ], done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
