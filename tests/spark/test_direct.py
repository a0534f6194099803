"""Parquet files of this machine that are read without Spark: what it would read, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vigilog.engine.places import source_place
from vigilog.files.place import Place
from vigilog.language.check import check
from vigilog.spark import direct, sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = check(
    ".decl item(id: number, name: symbol, fine: boolean)\n.input item(IO=parquet)\n.decl cost(x: float)\n.input cost(IO=parquet)\n"
)
COLUMNS = {"fine": [True, False, True, True], "id": [3, 1, 3, -7], "name": ["ä", "", "ä", "b"], "other": [1.5, None, 2.5, 3.5]}
ROWS = [(-7, "b", True), (1, "", False), (3, "ä", True)]


def place(path: Path, relation: str = "item", **options: str) -> Place:
    return source_place(PROGRAM.program, relation, str(path), {"IO": "parquet", **options})


def written(path: Path, columns: dict[str, Any] = COLUMNS, **types: pa.DataType) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({name: pa.array(cells, types.get(name)) for name, cells in columns.items()}), path)
    return path


def test_rows_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    one = written(tmp_path / "item.parquet", id=pa.int16())
    assert list(direct.rows(place(one), 4) or ()) == ROWS == sorted(set(sources.rows(place(one))))
    for number in range(2):
        written(tmp_path / "several" / f"{number}.parquet", COLUMNS | {"id": [number, 1, 3, -7]})
    (tmp_path / "several" / "_SUCCESS").touch()
    several = place(tmp_path / "several")
    assert list(direct.rows(several, 8) or ()) == sorted(set(sources.rows(several)))


@pytest.mark.parametrize(
    ("columns", "types"),
    [
        ({"name": ["a", "b\x00", "c", "d"]}, {}),
        ({"name": ["a", None, "c", "d"]}, {}),
        ({"id": [1.0, 2.0, 3.0, 4.0]}, {}),
        ({"id": [1, 2, 3, 2**63]}, {"id": pa.uint64()}),
        ({"ID": [1, 2, 3, 4]}, {}),
        ({"name": [b"\xff", b"b", b"c", b"d"]}, {"name": pa.binary()}),
    ],
    ids=["a zero", "a null", "floats", "unsigned", "two of a name", "bytes"],
)
def test_what_is_not_plain_is_left_to_spark(tmp_path: Path, columns: dict[str, Any], types: dict[str, pa.DataType]) -> None:
    assert direct.rows(place(written(tmp_path / "item.parquet", COLUMNS | columns, **types)), 10) is None


def test_what_cannot_be_told_is_left_to_spark(tmp_path: Path) -> None:
    one = written(tmp_path / "item.parquet")
    assert direct.rows(place(one), 3) is None, "that are too many"
    assert direct.rows(place(one, nulls="skip"), 10) is None
    assert direct.rows(place(written(tmp_path / "cost.parquet", {"x": [1.0]}), "cost"), 10) is None, "a float may be none"
    assert direct.rows(place(written(tmp_path / "without.parquet", {"id": [1]})), 10) is None
    written(tmp_path / "deep" / "item.parquet")
    (tmp_path / "deep" / "fine=true").mkdir()
    assert direct.rows(place(tmp_path / "deep"), 10) is None, "names of folders may be values"
    one.write_bytes(one.read_bytes()[:-9])
    assert direct.rows(place(one), 10) is None
