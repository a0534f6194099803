"""Rows that are looked up in files of this machine."""

from __future__ import annotations

import datetime
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from vigilog.core.arrow import from_arrow, to_arrow
from vigilog.core.type_names import type_named
from vigilog.core.values import BOOLEAN, FLOAT, NUMBER, SYMBOL, Row
from vigilog.spark import indexed, snapshots
from vigilog.spark.indexed import IndexedRows, Lazily

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = [NUMBER, SYMBOL, type_named("date"), FLOAT, type_named("set<number>")]
NAMES = ["i", "s", "d", "f", "n"]


def some_rows(number: int) -> list[Row]:
    chance = random.Random(7)
    day, sets = datetime.date(1969, 12, 30).toordinal(), [type_named("set<number>").from_json(cells) for cells in ([], [1], [1, 2])]
    return [
        (
            chance.randint(-3, 40) * 2**40,
            chance.choice(["", "a", "ä", "\U0001f600", "\uffff", "ab"]),
            datetime.date.fromordinal(day + chance.randint(0, 9)),
            float(place),
            chance.choice(sets),
        )
        for place in range(number)
    ]


@pytest.mark.parametrize(("batch", "size"), [(2**20, 2**26), (7, 2**26), (2**20, 1)], ids=["at once", "few rows", "few bytes"])
def test_rows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, size: int) -> None:
    """By any columns, as if all were looked at."""
    monkeypatch.setattr(indexed, "BATCH_ROWS", batch)
    monkeypatch.setattr(indexed, "BATCH_BYTES", size)
    monkeypatch.setattr(indexed, "SLACK", 0)
    rows = some_rows(100)
    found = IndexedRows(TYPES, to_arrow(NAMES, TYPES, rows).to_batches(max_chunksize=10), tmp_path)
    assert found.rows == 100 and not list(tmp_path.iterdir()), "nothing of it has a name"
    for columns in [(0,), (1,), (2,), (0, 1), (1, 2), (2, 3), (4, 0), (0, 1, 2, 3, 4)]:
        keys = {tuple(row[column] for column in columns) for row in rows[::9]} | {tuple(rows[1][column] for column in columns)}
        wanted = [row for row in rows if tuple(row[column] for column in columns) in keys]
        assert sorted(found.having(columns, keys, 1000) or [], key=str) == sorted(wanted, key=str), columns
        gone = {row for place, row in enumerate(rows) if row in wanted and place % 9}
        still = {tuple(row[column] for column in columns) for row in wanted if row not in gone}
        assert found.some(columns, keys | {tuple(rows[2][column] for column in columns)}, rows, 1000) == set(), "all are gone"
        assert found.some(columns, keys, gone, 1000) == still, columns
    assert found.some((1,), {("a",), ("b",)}, (), 0) == {("a",)}, "one row suffices, however many there are"
    assert found.having((0,), {(5,)}, 1000) == [], "there is no such row"
    assert found.having((1,), {("a",)}, 1) is None, "that are too many"
    assert not found.serves((3, 4)) and found.having((3,), {(1.0,)}, 1000) is None, "these have no index"
    assert IndexedRows([NUMBER], [], tmp_path).having((0,), {(1,)}, 10) == []


def test_what_cannot_be_made_is_looked_up_elsewhere(tmp_path: Path) -> None:
    """It is tried once; who asks goes another way."""
    tries = []

    def damaged() -> Iterator[pa.RecordBatch]:
        tries.append(1)
        raise OSError("it is damaged")

    lazily = Lazily(lambda: IndexedRows([BOOLEAN], damaged(), tmp_path))
    assert not lazily.serves((0,)) and lazily.having((0,), {(1,)}, 10) is None and lazily.having((0,), {(1,)}, 10) is None
    assert len(tries) == 1 and not list(tmp_path.iterdir())
    gone = Lazily(lambda: IndexedRows([NUMBER], to_arrow(["i"], [NUMBER], [(1,)]).to_batches(), tmp_path / "nowhere"))
    assert gone.having((0,), {(1,)}, 10) is None


KINDS = [
    "number",
    "symbol",
    "unsigned",
    "float",
    "boolean",
    "date",
    "timestamp",
    "decimal(7,2)",
    "set<(number, symbol)>",
    "(date, boolean)",
]
CELLS = [
    [-(2**63), "", 0, -1.5, False, "0001-01-01", "0001-01-01T00:00:00Z", "-12345.67", [], ["9999-12-31", True]],
    [
        2**63 - 1,
        "\U0001f600",
        2**64 - 1,
        1e300,
        True,
        "9999-12-31",
        "9999-12-31T23:59:59.999999Z",
        "0.01",
        [[1, "a"], [2, ""]],
        ["0001-01-01", False],
    ],
]


@pytest.mark.parametrize("spooled", [False, True], ids=["by Spark", "from here"])
def test_cells_of_all_types_come_back(spark: SparkSession, tmp_path: Path, spooled: bool) -> None:
    """As Spark writes them, and as they are spooled for it."""
    types = [type_named(kind) for kind in KINDS]
    names = [f"c{place}" for place in range(len(types))]
    rows = {tuple(type_.from_json(cell) for type_, cell in zip(types, cells, strict=True)) for cells in CELLS}
    if spooled:
        written: snapshots.Written = snapshots.spool(names, types, iter(rows))
    else:
        written = snapshots.write(spark.createDataFrame(to_arrow(names, types, list(rows))), str(tmp_path), "r", "snapshot")
    assert written.rows == 2 and set(snapshots.read_rows(types, written.location)) == rows
    assert set(from_arrow(types, snapshots.read(spark, written, names, types).toArrow())) == rows
    near = snapshots.indexed(types, written)
    assert near is not None
    for column in (0, 1, 5):
        for row in rows:
            assert near.having((column,), {(row[column],)}, 10) == [row]


def test_few_parts_of_a_file_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """Files are sorted by the key, and have filters for other columns by which rules ask."""
    import pyarrow.parquet as pq

    chance = random.Random(3)
    rows = [(number, chance.randint(0, 10**9) * 2) for number in range(50_000)]
    chance.shuffle(rows)
    frame = spark.createDataFrame(to_arrow(["id", "who"], [NUMBER, NUMBER], rows)).repartition(3)
    written = snapshots.write(frame, str(tmp_path), "orders", "snapshot", snapshots.RowOrder((0,), (1,)), len(rows))
    files = sorted(Path(written.location).glob("*.parquet"))
    assert written.rows == len(rows) and len(files) == 3
    for path in files:
        ids = pq.read_table(path)["id"].to_pylist()
        assert ids == sorted(ids)
    read = snapshots.read(spark, written, ["id", "who"], [NUMBER, NUMBER])
    some = rows[7]
    assert [tuple(row) for row in read.where(read["id"].isin(some[0])).collect()] == [some]
    footers = spark.sparkContext._jvm.org.apache.parquet.hadoop.ParquetFileReader  # type: ignore[union-attr]
    path = spark.sparkContext._jvm.org.apache.hadoop.fs.Path(str(files[0]))  # type: ignore[union-attr]
    footer = footers.readFooter(spark.sparkContext._jsc.hadoopConfiguration(), path)
    columns = footer.getBlocks().get(0).getColumns()
    assert columns.get(0).getBloomFilterOffset() < 0 < columns.get(1).getBloomFilterOffset()


def test_sorted_files_show_whether_a_key_holds(tmp_path: Path) -> None:
    def written(*files: list[tuple[int, str]]) -> snapshots.Written:
        import pyarrow.parquet as pq

        place = Path(tempfile.mkdtemp(dir=tmp_path))
        for number, rows in enumerate(files):
            pq.write_table(to_arrow(["i", "s"], [NUMBER, SYMBOL], rows), place / f"{number}.parquet", row_group_size=2)
        return snapshots.Written(str(place), 0)

    assert snapshots.twice(written([(5, "a"), (7, "a"), (9, "b")], [], [(1, "a"), (2, "a")]), ["i"]) is False
    assert snapshots.twice(written([(1, "a"), (2, "a"), (2, "b")]), ["i"]) is True, "beside each other, in two parts"
    assert snapshots.twice(written([(1, "a"), (2, "a"), (2, "b")]), ["i", "s"]) is False
    assert snapshots.twice(written([(1, "a"), (5, "a")], [(5, "b"), (6, "a")]), ["i"]) is None, "the files have to be compared"
