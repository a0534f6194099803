"""Which format a source has that nobody states, and what is said of files that are no text."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

import vigilog
from vigilog.core.errors import DataError
from vigilog.engine.places import source_place
from vigilog.files.formats import format_of
from vigilog.language.check import check

PROGRAM = ".decl stock(item: symbol, level: number)\n.output stock\n"
TABLE = pa.table({"item": ["nail"], "level": [5]})


def stated(tmp_path: Path, directive: str, location: str, **options: str) -> tuple[str, str, bool]:
    """The format, the delimiter and the headers of a source, for a relation with an `.input`."""
    place = source_place(check(PROGRAM + directive).program, "stock", str(tmp_path / location), options)
    return place.format, place.delimiter, place.headers


@pytest.mark.parametrize("name", ["part-0.parquet", "part-0.snappy.PARQUET", "year=2026/month=1/part-0.parquet"])
def test_a_folder_has_the_format_of_its_files(name: str, tmp_path: Path) -> None:
    (tmp_path / "orders" / name).parent.mkdir(parents=True)
    for file in (name, "_SUCCESS", ".part-0.csv"):
        (tmp_path / "orders" / file).touch()
    assert format_of(str(tmp_path / "orders")) == "parquet"


def test_a_folder_with_a_log_of_delta_is_no_folder_of_parquet_files(tmp_path: Path) -> None:
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "part-0.parquet").touch()
    assert format_of(str(tmp_path)) == "delta"


def test_a_folder_of_several_formats_is_refused_unless_one_is_stated(tmp_path: Path) -> None:
    for name in ("part-0.parquet", "part-1.csv"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"several formats \(csv, parquet\)"):
        stated(tmp_path, "", ".")
    assert stated(tmp_path, "", ".", IO="csv")[0] == "csv"


def test_what_is_stated_goes_before_the_name_and_the_name_before_the_input(tmp_path: Path) -> None:
    parquet = ".input stock(IO=parquet)\n"
    assert stated(tmp_path, parquet, "stock.csv", IO="json")[0] == "json"
    assert stated(tmp_path, parquet, "stock.csv")[0] == "csv"
    assert stated(tmp_path, parquet, "stock")[0] == "parquet"
    assert stated(tmp_path, "", "stock")[0] == "file"
    assert stated(tmp_path, ".input stock(IO=stream, format=json, path=p)\n", "stock")[0] == "json"
    assert stated(tmp_path, '.input stock(IO=jdbc, url="jdbc:x://h", password=p)\n', "stock")[0] == "file", "it is no address"


def test_how_a_format_is_written_is_taken_from_an_input_of_that_format(tmp_path: Path) -> None:
    semicolons = '.input stock(IO=csv, delimiter=";", headers=false)\n'
    assert stated(tmp_path, semicolons, "stock.csv") == ("csv", ";", False)
    assert stated(tmp_path, semicolons, "stock.csv", delimiter="|") == ("csv", "|", False)
    assert stated(tmp_path, semicolons, "stock.facts") == ("file", "\t", False)
    assert stated(tmp_path, '.input stock(delimiter=" ")\n', "more") == ("file", " ", False)


def test_a_password_goes_to_no_other_address() -> None:
    program = check(PROGRAM + '.input stock(IO=jdbc, url="jdbc:x://here", user=ann, password=secret)\n').program
    assert source_place(program, "stock", "jdbc:x://elsewhere", {}).options == {"url": "jdbc:x://elsewhere"}


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("stock.facts", "nail\t5\n")


def write_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE stock (item, level)")
    connection.close()


OTHERS: dict[str, Callable[[Path], object]] = {
    "a Parquet file": lambda path: pyarrow.parquet.write_table(TABLE, path),
    "an ORC file": lambda path: pyarrow.orc.write_table(TABLE, path),
    "an Arrow file": lambda path: pyarrow.feather.write_feather(TABLE, path),
    "an SQLite database": write_database,
    "a zip archive": write_zip,
    "a gzip archive": lambda path: path.write_bytes(gzip.compress(b"nail\t5\n" * 100)),
    "text in UTF-16": lambda path: path.write_text("nail\t5\n", encoding="utf-16"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_bytes_that_are_no_text_are_told_by_what_they_look_like(kind: str, tmp_path: Path) -> None:
    OTHERS[kind](tmp_path / "stock")
    with vigilog.open(PROGRAM, data=tmp_path / "data") as db:
        with pytest.raises(DataError, match=rf"is not UTF-8 text.*; it looks like {kind}") as caught:
            db.load("stock", tmp_path / "stock")
        assert (caught.value.code, db.tx) == ("encoding", 0)


def test_text_may_begin_as_other_files_do(tmp_path: Path) -> None:
    (tmp_path / "stock.facts").write_text("ORC\t5\nPAR1\t6\n")
    with vigilog.open(PROGRAM, data=tmp_path / "data") as db:
        db.load("stock", tmp_path / "stock.facts")
        assert db.view("stock") == {("ORC", 5), ("PAR1", 6)}


def test_a_folder_of_folders_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "lake" / "stock").mkdir(parents=True)
    (tmp_path / "lake" / "stock" / "part-0.facts").write_text("nail\t5\n")
    with vigilog.open(PROGRAM, data=tmp_path / "data") as db:
        db.sync("stock", tmp_path / "lake" / "stock")
        with pytest.raises(DataError, match="has folders and no files for stock"):
            db.sync("stock", tmp_path / "lake")
        assert db.view("stock") == {("nail", 5)}


@pytest.mark.apart
def test_the_command_line_takes_formats_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "part-0.jsonl").write_text('{"item": "nail", "level": 5}\n')
    vigilog.open(PROGRAM + ".input stock(IO=parquet)\n", data=tmp_path / "data").close()
    command = [sys.executable, "-m", "vigilog.cli.main", "load", "data", "stock", "more", "--sync"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("transaction 1: 1 row of stock changed\n", "")
