"""Iceberg tables that Spark reads: every type, columns that were renamed, deletions beside the files, many rows."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import vigilog
from tests.iceberg import catalog, delete_at, options
from vigilog.core.errors import DataError, VigilogError
from vigilog.core.sets import Set
from vigilog.core.values import Row
from vigilog.folder import large, tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = datetime.UTC
TYPED = ".decl r(s: symbol, n: number, f: float, b: boolean, d: date, t: timestamp, c: decimal(10,2), e: set<number>)\n.output r\n"
SCHEMA = pa.schema(
    [
        pa.field("S", pa.string()),  # however it is written
        pa.field("n", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("b", pa.bool_()),
        pa.field("old", pa.date32()),
        pa.field("t", pa.timestamp("us", "UTC")),
        pa.field("c", pa.decimal128(10, 2)),
        pa.field("e", pa.list_(pa.int64())),
        pa.field("unused", pa.binary()),
    ]
)


def rows(*numbers: int) -> pa.Table:
    day, at = datetime.date(2026, 11, 16), datetime.datetime(2026, 11, 16, 8, 30, 0, 1, UTC)
    cells = [("ü 😀", n, 0.5, True, day, at, Decimal("-0.01"), [3, 1, 3], b"x") for n in numbers]
    return pa.table([list(column) for column in zip(*cells, strict=True)], schema=SCHEMA)


def row(number: int) -> Row:
    day, at = datetime.date(2026, 11, 16), datetime.datetime(2026, 11, 16, 8, 30, 0, 1, UTC)
    return ("ü 😀", number, 0.5, True, day, at, Decimal("-0.01"), Set([1, 3]))


def refused(code: str, why: str) -> pytest.RaisesExc[VigilogError]:
    return pytest.RaisesExc(DataError, check=lambda reason: reason.code == code and why in str(reason))


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_iceberg(many: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few changed rows come to this process, many stay on Spark, which then holds the relation, too."""
    if many:
        monkeypatch.setattr(tables, "HERE", 0)
        monkeypatch.setattr(large, "FEW_ROWS", 0)
    table = catalog(tmp_path).create_table("shop.r", schema=SCHEMA)
    table.append(rows(1, 2, 3))
    with table.update_schema() as change:
        change.rename_column("old", "d")
    with vigilog.open(TYPED, data=tmp_path / "data", memory=0 if many else None) as db:
        if many:
            db.compact(["r"])
        assert db.sync("r", "shop.r", **options(tmp_path)).tx == 1
        assert db.view("r") == {row(1), row(2), row(3)}
        (first,) = (task.file.file_path for task in table.scan().plan_files())
        table.append(rows(4).rename_columns([*SCHEMA.names[:4], "d", *SCHEMA.names[5:]]))
        delete_at(table, first, 1)
        outcome = db.sync("r", "shop.r", **options(tmp_path))
        assert db.view("r") == {row(1), row(3), row(4)} and outcome.tx == 2
        table.append(rows(5).rename_columns([*SCHEMA.names[:4], "d", *SCHEMA.names[5:]]).set_column(0, "S", pa.array([None], pa.string())))
        with refused("null", "s of r is null"):
            db.sync("r", "shop.r", **options(tmp_path))
        assert db.view("r") == {row(1), row(3), row(4)} and db.tx == 2
        assert db.sync("r", "shop.r", **options(tmp_path), nulls="skip").tx == 3, "what is read in another way is read as a whole"
        assert db.view("r") == {row(1), row(3), row(4)}
        if many:
            assert db.large == {"r"} and db.verify().fine
