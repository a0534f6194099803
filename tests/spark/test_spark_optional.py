"""Nulls in sources that Spark reads: split off, given a value, told before long work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

import vigilog
from tests.engine.test_optional import PEOPLE, PROGRAM, expected, in_step, state
from tests.engine.test_optional import write as write_text
from vigilog.core.errors import DataError
from vigilog.spark import sources

SCHEMA = pa.schema([("phone", pa.string()), ("employee", pa.int64()), ("name", pa.string()), ("manager", pa.int64())])


def write(path: Path, people: list[dict[str, Any]], form: str = "parquet") -> None:
    table = pa.Table.from_pylist(people, schema=SCHEMA)
    if form == "orc":
        orc.write_table(table, path)
    else:
        pq.write_table(table, path)


def opened(folder: Path, options: str, **given: Any) -> Any:
    (folder / "p.dl").write_text(PROGRAM.format(options=options))
    return vigilog.open(folder / "p.dl", folder, data=folder / "data", **given)


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("memory", [None, 1], ids=["resident", "large"])
def test_a_column_that_may_be_null_on_spark(tmp_path: Path, form: str, memory: int | None) -> None:
    write(tmp_path / f"people.{form}", PEOPLE, form)
    with opened(tmp_path, f'IO={form}, filename="{tmp_path}/people.{form}", ', memory=memory) as db:
        assert bool(db.large) == (memory is not None)
        if memory is None:
            assert state(db) == expected(PEOPLE)
        bob = {"employee": 2, "name": "bob", "manager": None, "phone": "77"}
        write(tmp_path / "more", [bob, {"employee": 4, "name": "dan", "manager": 3}], form)
        db.load("employees", tmp_path / "more", upsert=True, IO=form)
        people = [PEOPLE[0], bob, PEOPLE[2], {"employee": 4, "name": "dan", "manager": 3}]
        assert {name: set(db.ask(f"{name}(_, _)")) for name in expected([])} == expected(people)
        write(tmp_path / "more", PEOPLE, form)
        db.sync("employees", tmp_path / "more", IO=form)
        assert {name: set(db.ask(f"{name}(_, _)")) for name in expected([])} == expected(PEOPLE)
        assert db.view("above") == {(2, 1), (3, 2), (3, 1)} and db.verify().problems == []


@pytest.mark.parametrize("how", ["json", "csv", "headless", "tabs"])
def test_text_through_spark_is_split_alike(tmp_path: Path, how: str) -> None:
    """A relation that is on Spark reads text there."""
    (tmp_path / "p.dl").write_text(PROGRAM.format(options=""))
    (tmp_path / "employees.facts").write_text("")
    with vigilog.open(tmp_path / "p.dl", tmp_path, data=tmp_path / "data", memory=1) as db:
        db.compact()
        write_text(tmp_path / "more", how, PEOPLE)
        given = {"json": {"IO": "json"}, "csv": {"IO": "csv"}, "headless": {"IO": "csv", "headers": "false"}, "tabs": {"IO": "file"}}[how]
        db.sync("employees", tmp_path / "more", **given)
        assert {name: set(db.ask(f"{name}(_, _)")) for name in expected([])} == expected(PEOPLE)
    text = '.decl e(employee: number, manager: number) .input e(IO=parquet, nulls="manager=-1", filename="{}") .output e'
    write(tmp_path / "e.parquet", PEOPLE)
    (tmp_path / "e.dl").write_text(text.format(tmp_path / "e.parquet"))
    with vigilog.open(tmp_path / "e.dl", tmp_path) as memory:
        assert memory.rows("e") == {(1, -1), (2, 1), (3, 2)}


def test_a_stream_keeps_the_split_in_step(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def put(name: str, *lines: dict[str, Any]) -> None:
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    put("1.json", *PEOPLE)
    with opened(tmp_path, f'IO=stream, format=json, path="{folder}", ') as db:
        stream = db.stream("employees")
        stream.catch_up()
        assert state(db) == expected(PEOPLE) and db.tx == 1
        put("2.json", {"op": "upsert", **PEOPLE[1], "manager": None}, {"op": "delete_key", "employee": 3})
        stream.catch_up()
        people = [PEOPLE[0], {**PEOPLE[1], "manager": None}]
        assert state(db) == expected(people) and db.tx == 2
        assert db.view("head") == {("ann",), ("bob",)} and db.verify().problems == []


def test_nulls_are_told_before_a_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "people.parquet", PEOPLE)
    text = '.decl employees(employee: number, manager: number) .input employees(IO=parquet, filename="{}") .output employees'
    (tmp_path / "p.dl").write_text(text.format(tmp_path / "people.parquet"))

    def no_reading(*_: Any) -> None:
        raise AssertionError("it is known without reading")

    monkeypatch.setattr(sources, "read", no_reading)
    monkeypatch.setattr(sources, "raw", no_reading)
    for data in ({}, {"data": tmp_path / "data"}):
        with pytest.raises(DataError, match=r"people.parquet, row 1: column manager of employees is null"):
            vigilog.open(tmp_path / "p.dl", tmp_path, **data)  # type: ignore[call-overload]


def test_loads_of_text_stay_in_step(tmp_path: Path) -> None:
    (tmp_path / "employees.facts").write_text("")
    with opened(tmp_path, "") as db:
        db.sync("employees", _json(tmp_path), IO="json")
        in_step(db, tmp_path, "json")


def _json(folder: Path) -> Path:
    write_text(folder / "people.jsonl", "json", PEOPLE)
    return folder / "people.jsonl"
