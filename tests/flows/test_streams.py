"""Streams: each batch one transaction, once, whatever happens between reading, commit and checkpoint."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vigilog
from vigilog.core.errors import DataError, VigilogError
from vigilog.core.values import Row
from vigilog.engine.evaluate import run
from vigilog.executors.watch import Watch
from vigilog.flows import streams
from vigilog.flows.streams import FolderStream
from vigilog.folder.durable import Durable
from vigilog.language.check import check
from vigilog.spark import streams as spark_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """
.decl orders(id: number, item: symbol, day: date)
.key orders(id)
.input orders(IO=stream, format={format}, path="{path}"{more})
.decl wanted(item: symbol)
.output wanted
wanted(i) :- orders(_, i, _).
"""
DAY = "2026-11-16"


def opened(tmp_path: Path, format_: str = "json", more: str = "") -> Durable:
    (tmp_path / "in").mkdir(exist_ok=True)
    if (tmp_path / "data").exists():
        return vigilog.open(data=tmp_path / "data")
    return vigilog.open(ORDERS.format(format=format_, path=tmp_path / "in", more=more), data=tmp_path / "data")


def arrive(tmp_path: Path, name: str, *rows: dict[str, Any]) -> None:
    """A file comes into the folder of the stream, whole at once."""
    hidden = tmp_path / name
    hidden.write_text("".join(json.dumps({"day": DAY, **row}) + "\n" for row in rows))
    hidden.rename(tmp_path / "in" / name)


def items(db: Durable) -> set[Row]:
    return {(row[0], row[1]) for row in db.rows("orders")}


def read_all(db: Durable) -> None:
    db.stream("orders", once=True).catch_up()


def refused(code: str) -> pytest.RaisesExc[VigilogError]:
    return pytest.RaisesExc(DataError, check=lambda reason: reason.code == code)


def test_operations_apply_in_their_order(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        stream = db.stream("orders")
        arrive(
            tmp_path,
            "1.json",
            {"id": 1, "item": "nail"},
            {"op": "insert", "id": 2, "item": "bolt"},
            {"op": "upsert", "id": 3, "item": "old"},
        )
        stream.catch_up()
        assert (items(db), db.tx) == ({(1, "nail"), (2, "bolt"), (3, "old")}, 1)
        arrive(
            tmp_path,
            "2.json",
            {"op": "delete", "id": 1, "item": "nail"},
            {"op": "insert", "id": 1, "item": "screw"},
            {"op": "upsert", "id": 3, "item": "newer"},
            {"op": "upsert", "id": 3, "item": "newest"},
            {"op": "delete_key", "id": 2, "item": None, "day": None},
            {"op": "insert", "id": 4, "item": "gone again"},
            {"op": "delete_key", "id": 4},
        )
        stream.catch_up()
        assert (items(db), db.tx) == ({(1, "screw"), (3, "newest")}, 2)
        assert (stream.active, stream.error, db.streams()) == (True, None, [stream])
    assert not stream.active


def test_files_in_other_formats(spark: SparkSession, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("csv", "bare", "parquet")}
    text = ""
    options = {"csv": "format=csv", "bare": 'format=csv, headers=false, op="op"', "parquet": "format=parquet"}
    for name, folder in folders.items():
        folder.mkdir()
        text += f'.decl {name}(id: number, item: symbol)\n.key {name}(id)\n.input {name}(IO=stream, path="{folder}", {options[name]})\n.output {name}\n'
    (folders["csv"] / "1.csv").write_text('id,item\n1,"a, b"\n2,c\n')
    (folders["csv"] / "2.csv").write_text("op,item,id\ndelete_key,,2\nupsert,d,1\n")
    (folders["bare"] / "1.csv").write_text("1,a,insert\n1,,delete_key\n2,b,upsert\n")
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "item": ["a", "b"]}), folders["parquet"] / "1.parquet")
    pq.write_table(pa.table({"op": ["upsert", "delete_key"], "id": [1, 2], "item": ["c", None]}), folders["parquet"] / "2.parquet")
    with vigilog.open(text, data=tmp_path / "data") as db:
        for name in folders:
            db.stream(name, once=True).catch_up()
        assert (db.view("csv"), db.view("bare"), db.view("parquet")) == ({(1, "d")}, {(2, "b")}, {(1, "c")})


def test_change_events_of_debezium(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path, "debezium", ", max_files=1") as db:
        nail, bolt = ({"id": number, "item": item, "day": 20773} for number, item in ((1, "nail"), (2, "bolt")))
        arrive(tmp_path, "1.json", {"op": "r", "before": None, "after": nail}, {"payload": {"op": "c", "after": bolt}, "schema": None})
        changed = {"op": "u", "before": nail, "after": {**nail, "item": "screw"}}
        arrive(tmp_path, "2.json", changed, {"op": "d", "before": {"id": 2}, "after": None}, changed)
        read_all(db)
        assert (items(db), db.tx) == ({(1, "screw")}, 2)
        arrive(tmp_path, "3.json", {"op": "c", "after": bolt}, {"op": "t"})
        with refused("operation"):
            read_all(db)
        assert (items(db), db.tx) == ({(1, "screw")}, 2)


# -- once, across restarts


def failing(reason: str) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise DataError(reason, "disk")

    return fail


def before_reading(patch: pytest.MonkeyPatch, db: Durable) -> None:
    patch.setattr(spark_streams, "from_files", failing("before"))


def between_reading_and_commit(patch: pytest.MonkeyPatch, db: Durable) -> None:
    patch.setattr(streams, "folded", failing("between"))


def inside_the_commit(patch: pytest.MonkeyPatch, db: Durable) -> None:
    patch.setattr(db.book, "note_source", failing("inside"))


def between_commit_and_checkpoint(patch: pytest.MonkeyPatch, db: Durable) -> None:
    take = FolderStream._take_new

    def taken(self: FolderStream, *arguments: Any) -> None:
        take(self, *arguments)
        raise DataError("after", "disk")

    patch.setattr(FolderStream, "_take_new", taken)


POINTS = [before_reading, between_reading_and_commit, inside_the_commit, between_commit_and_checkpoint]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.__name__)
def test_a_batch_is_taken_once(point: Callable[..., None], spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as db:
        arrive(tmp_path, "1.json", {"id": 1, "item": "nail"})
        read_all(db)
        arrive(tmp_path, "2.json", {"op": "delete_key", "id": 1}, {"id": 2, "item": "bolt"})
        with monkeypatch.context() as patch, refused("disk"):
            point(patch, db)
            read_all(db)
        committed = point is between_commit_and_checkpoint
        assert (items(db), db.tx) == (({(2, "bolt")}, 2) if committed else ({(1, "nail")}, 1))
        db.apply({"upsert": {"orders": [(1, "by hand", DAY)]}})
    with opened(tmp_path) as db:
        arrive(tmp_path, "3.json", {"id": 3, "item": "rivet"})
        read_all(db)
        expected = {(2, "bolt"), (3, "rivet")} | ({(1, "by hand")} if committed else set())
        assert (items(db), db.tx) == (expected, 4)
        read_all(db)
        assert db.tx == 4, "nothing comes twice"


def test_a_batch_that_breaks_a_constraint_leaves_no_trace(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        db.define('.decl bad(item: symbol)\nbad(i) :- orders(_, i, _), contains("!", i).\n.constraint bad\n.alert wanted')
        arrive(tmp_path, "1.json", {"id": 1, "item": "nail"})
        read_all(db)
        arrive(tmp_path, "2.json", {"id": 2, "item": "bolt"}, {"id": 3, "item": "b!"})
        before = list(db.file.connection.iterdump())
        with refused("constraint"):
            read_all(db)
        assert list(db.file.connection.iterdump()) == before, "nor has the position moved"
        db.define('bad(i) :- orders(_, i, _), contains("?", i).')
        read_all(db)
        assert items(db) == {(1, "nail"), (2, "bolt"), (3, "b!")}
        assert [said["row"] for _, said in db.reports(0)] == [["nail"], ["b!"], ["bolt"]], "each once"


def checkpoint(tmp_path: Path) -> Path:
    return next(path for path in (tmp_path / "data" / "streams" / "orders").iterdir() if path.is_dir())


LOST = {"commit": ["commits/1"], "commit-and-offset": ["commits/1", "offsets/1"], "batch": ["commits/1", "offsets/1", "sources/0/1"]}


@pytest.mark.parametrize("lost", LOST)
def test_what_the_checkpoint_lost(lost: str, spark: SparkSession, tmp_path: Path) -> None:
    """As after the machine failed: the data folder is on the disk, some of Spark's notes are not, and more files have come."""
    with opened(tmp_path) as db:
        for number in (1, 2):
            arrive(tmp_path, f"{number}.json", {"id": number, "item": f"item {number}"})
            read_all(db)
        db.apply({"delete_key": {"orders": [(2,)]}})
    for name in LOST[lost]:
        for path in (checkpoint(tmp_path) / name, (checkpoint(tmp_path) / name).with_name(f".{Path(name).name}.crc")):
            path.unlink(missing_ok=True)
    arrive(tmp_path, "3.json", {"id": 3, "item": "item 3"})
    with opened(tmp_path) as db:
        read_all(db)
        assert (items(db), db.tx) == ({(1, "item 1"), (3, "item 3")}, 4)


def test_a_checkpoint_that_does_not_fit(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        arrive(tmp_path, "1.json", {"id": 1, "item": "nail"})
        read_all(db)
        (checkpoint(tmp_path) / "commits" / "7").touch()
        with refused("source"):
            db.stream("orders")
        shutil.rmtree(checkpoint(tmp_path))
        with refused("source"):
            db.stream("orders")
        assert (items(db), db.tx) == ({(1, "nail")}, 1)
        db.apply({"delete_key": {"orders": [(1,)]}})
        db.stream("orders", once=True, anew=True).catch_up()
        assert (items(db), db.tx) == ({(1, "nail")}, 3)
        read_all(db)
        assert db.tx == 3


# -- what is wrong with a source

BAD: dict[str, tuple[str, dict[str, Any]]] = {
    "no-operation": ("operation", {"op": "replace", "id": 2, "item": "bolt"}),
    "no-value": ("value", {"id": "two", "item": "bolt"}),
    "a-null": ("null", {"id": 2, "item": None}),
    "no-column": ("null", {"id": 2}),
    "a-key-twice": ("key", {"id": 1, "item": "other"}),
    "no-key": ("value", {"op": "delete_key", "id": "x"}),
}


def test_a_batch_fails_as_a_whole(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        arrive(tmp_path, "1.json", {"id": 1, "item": "nail"})
        read_all(db)
        arrive(tmp_path, "2.json", {"id": 5, "item": "good"}, {"id": 6, "item": "good"})
        for code, row in BAD.values():
            (tmp_path / "in" / "2.json").write_text(
                "".join(json.dumps({"day": DAY, **each}) + "\n" for each in ({"id": 5, "item": "good"}, row))
            )
            stream = db.stream("orders")
            with refused(code):
                stream.catch_up()
            assert not stream.active and stream.error is not None and stream.error.code == code
            if code != "key":
                assert "2.json, row 2" in str(stream.error)
            assert (items(db), db.tx) == ({(1, "nail")}, 1)
        shutil.move(tmp_path / "in" / "2.json", tmp_path)  # a source that disappears
        with refused("unreadable"):
            read_all(db)
        assert (items(db), db.tx) == ({(1, "nail")}, 1)
        arrive(tmp_path, "2.json")  # what is to be left out can be emptied
        arrive(tmp_path, "3.json", {"id": 5, "item": "good"})
        read_all(db)
        assert (items(db), db.tx) == ({(1, "nail"), (5, "good")}, 3)


def test_a_folder_that_disappears(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        stream = db.stream("orders")
        shutil.rmtree(tmp_path / "in")
        assert stream.error is not None and stream.error.code == "unreadable"
        stream.stop()
        with refused("unreadable"):
            db.stream("orders")
        assert db.tx == 0


def test_a_schema_that_changed(spark: SparkSession, tmp_path: Path) -> None:
    with opened(tmp_path, "parquet") as db:
        day = pa.array([20773], pa.int32()).cast(pa.date32())
        good = pa.table({"id": [1], "item": ["nail"], "day": day})
        pq.write_table(good, tmp_path / "in" / "1.parquet")
        read_all(db)
        pq.write_table(good.rename_columns(["id", "article", "day"]), tmp_path / "in" / "2.parquet")
        with refused("columns"):
            read_all(db)
        pq.write_table(pa.table({"id": [2], "item": [2.5], "day": day}), tmp_path / "in" / "2.parquet")
        with refused("type"):
            read_all(db)
        assert (items(db), db.tx) == ({(1, "nail")}, 1)


def test_what_is_no_stream(tmp_path: Path) -> None:
    with opened(tmp_path) as db:
        with refused("stream"):
            db.stream("wanted")
        with refused("unknown-relation"):
            db.stream("order")
    program = check(ORDERS.format(format="json", path=tmp_path / "in", more="")).program
    with refused("stream"):
        run(program, tmp_path, None, "embedded", Watch())


def test_the_example_of_the_documentation(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "orders.dl").write_text(next(block for _, block in blocks if block.startswith(".decl orders")), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(next(block for language, block in blocks if language == "python"), {})
    assert set(pq.read_table(tmp_path / "feed")["item"].to_pylist()) == {"screw", "bolt"}
