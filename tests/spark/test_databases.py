"""Sources that only Spark or a package reads: databases by JDBC, Delta tables; and what happens when they are not what they were."""

from __future__ import annotations

import datetime
import shutil
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import vigilog
from tests.postgres import PASSWORD, Postgres
from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, ProgramError, VigilogError
from vigilog.core.values import Row
from vigilog.folder.durable import Durable
from vigilog.language.check import check
from vigilog.spark import jdbc

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOCK = """
.decl stock(item: symbol, level: number)
.decl low(item: symbol)
.output low
low(i) :- stock(i, n), n < 10.
"""
TYPED = ".decl r(s: symbol, n: number, u: unsigned, f: float, b: boolean, d: date, t: timestamp, c: decimal(10,2))\n.output r\n"
TYPED_ROW: Row = (
    "ü 😀 'quoted'", -(2**63), 2**64 - 1, 0.1, True, datetime.date(2026, 11, 16), datetime.datetime(2026, 11, 16, 8, 30, 0, 1, datetime.UTC), Decimal("-0.01")
)  # fmt: skip


def opened(tmp_path: Path, program: str = STOCK) -> Durable:
    return vigilog.open(program, data=tmp_path / "data")


def stock(db: Durable) -> set[Row]:
    return db.rows("stock")


def refused(code: str, why: str = "") -> pytest.RaisesExc[VigilogError]:
    return pytest.RaisesExc(DataError, check=lambda reason: reason.code == code and why in str(reason) and PASSWORD not in str(reason))


# -- JDBC


def test_a_table_of_a_database(spark: SparkSession, database: Postgres, tmp_path: Path) -> None:
    database.run(
        "CREATE TABLE stock (level int, extra text, item varchar(20)); INSERT INTO stock VALUES (5, 'x', 'nail'), (50, 'y', 'screw')"
    )
    with opened(tmp_path) as db:
        assert db.load("stock", database.url, IO="jdbc", **database.login).deltas["low"].plus == {("nail",)}
        database.run("UPDATE stock SET level = 7 WHERE item = 'screw'; DELETE FROM stock WHERE item = 'nail'")
        changes = db.sync("stock", database.url, dbtable="stock", **database.login)
        assert changes.deltas["low"] == Delta(frozenset({("screw",)}), frozenset({("nail",)}))
        assert db.sync("stock", database.url, query="SELECT item, level FROM stock WHERE level > 100", **database.login).deltas[
            "low"
        ].minus == {("screw",)}
        assert stock(db) == set()
    database.run("DROP TABLE stock")


def parts(read: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows in the parts that a table is read in, from now on."""
    found: list[int] = []
    usual = getattr(jdbc, read)

    def counting(*given: Any) -> Any:
        frame = usual(*given)
        found[:] = [len(part) for part in frame.rdd.glom().collect()]
        return frame

    monkeypatch.setattr(jdbc, read, counting)
    return found


def test_a_large_table_is_read_in_parts(spark: SparkSession, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a column of numbers, whose bounds are measured, by one of dates, by one with a name that is quoted, and of a query."""
    database.run(
        'CREATE TABLE stock (item text, level bigint, day date, "Exact" numeric(12, 2));'
        " INSERT INTO stock SELECT 'item ' || n, n, date '2026-01-01' + n % 300, n / 7.0 FROM generate_series(-500, 4499) n"
    )
    found, rows = parts("read", monkeypatch), {(f"item {number}", number) for number in range(-500, 4500)}
    with opened(tmp_path) as db:
        db.sync("stock", database.url, partitionColumn="level", numPartitions="5", **database.login)
        assert stock(db) == rows
        assert len(found) == 5 and min(found) > 990 and sum(found) == 5000
        database.run("DELETE FROM stock WHERE level < 4000; UPDATE stock SET item = 'nail' WHERE level = 4001")
        rows = {row for row in rows if row[1] >= 4000} - {("item 4001", 4001)} | {("nail", 4001)}
        for options in (
            {"partitionColumn": "day"},
            {"partitionColumn": "Exact", "numPartitions": "3"},
            {"partitionColumn": "level", "lowerBound": "4100", "upperBound": "4400", "numPartitions": "3"},
            {"partitionColumn": "level", "numPartitions": "4", "query": "SELECT item, level FROM stock WHERE level >= 0"},
        ):
            db.sync("stock", database.url, **options, **database.login)
            assert stock(db) == rows
            assert len(found) == int(options.get("numPartitions", 2 * spark.sparkContext.defaultParallelism)) and min(found) > 50
        database.run("DELETE FROM stock")
        db.sync("stock", database.url, partitionColumn="level", **database.login)
        assert (stock(db), found) == (set(), [0])
    database.run("DROP TABLE stock")


def test_every_type_of_a_database(spark: SparkSession, database: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database.run(
        "CREATE TABLE r (s text, n bigint, u numeric(20,0), f double precision, b boolean, d date, t timestamptz, c numeric(10,2)); INSERT INTO r VALUES"
        " ('ü 😀 ''quoted''', -9223372036854775808, 18446744073709551615, 0.1, true, '2026-11-16', '2026-11-16 08:30:00.000001+00', -0.01)"
    )
    monkeypatch.setenv("SHOP_PASSWORD", PASSWORD)
    options = f'IO=jdbc, url="{database.url}", user="{database.login["user"]}", password="${{SHOP_PASSWORD}}"'
    text = TYPED + f".input r({options})\n"
    with vigilog.open(text, tmp_path, data=tmp_path / "data") as db:  # what a new database begins with
        assert db.view("r") == {TYPED_ROW}
    assert PASSWORD.encode() not in (tmp_path / "data" / "vigilog.db").read_bytes()
    database.run("DROP TABLE r")


def test_a_database_that_is_not_as_expected(spark: SparkSession, database: Postgres, tmp_path: Path) -> None:
    database.run("CREATE TABLE stock (item text, level int); INSERT INTO stock VALUES ('nail', 5)")
    with opened(tmp_path) as db:
        db.sync("stock", database.url, **database.login)
        before = db.tx
        with refused("unreadable", "password authentication failed"):
            db.sync("stock", database.url, user="nobody", password=PASSWORD)
        with refused("unreadable"):
            db.sync("stock", f"{database.url}?user=nobody&password={PASSWORD}")
        with refused("unreadable"):
            db.sync("stock", f"jdbc:postgresql://gardener:{PASSWORD}@127.0.0.1:1/none", **database.login)
        with refused("unreadable", "refused"):
            db.sync("stock", "jdbc:postgresql://127.0.0.1:1/none", **database.login)
        with refused("unreadable"):
            db.sync("stock", database.url.replace("postgresql", "nosuchdb"), **database.login)
        with refused("unknown-option"):
            db.sync("stock", database.url, pasword=PASSWORD)
        database.run("ALTER TABLE stock ALTER COLUMN level TYPE text")
        with refused("type"):
            db.sync("stock", database.url, **database.login)
        database.run("ALTER TABLE stock DROP COLUMN level")
        with refused("columns"):
            db.sync("stock", database.url, **database.login)
        database.run("ALTER TABLE stock ADD COLUMN level int")
        with refused("null"):
            db.sync("stock", database.url, **database.login)
        database.run("DROP TABLE stock")
        with refused("unreadable"):
            db.sync("stock", database.url, **database.login)
        assert (stock(db), db.tx) == ({("nail", 5)}, before)


def test_a_password_is_not_shown_with_a_wrong_directive() -> None:
    with pytest.raises(ProgramError) as caught:
        check(
            f'.decl r(x: symbol)\n.input r(IO=jdbc, url="jdbc:x://h?password={PASSWORD}", password="{PASSWORD}", filename="f")\n.output r\n'
        )
    assert caught.value.findings[0].code == "unknown-option"
    assert PASSWORD not in str(caught.value)


# -- folders of files


def test_a_folder_of_parquet_files_needs_no_format(spark: SparkSession, tmp_path: Path) -> None:
    for name, item in (("lake", "nail"), ("other", "screw")):
        (tmp_path / name).mkdir()
        pq.write_table(shelf((item, 5)), tmp_path / name / "part-0.parquet")
    (tmp_path / "nameless").mkdir()
    pq.write_table(shelf(("bolt", 1)), tmp_path / "nameless" / "part-0")
    with vigilog.open(STOCK + '.input stock(IO=parquet, filename="lake")\n', tmp_path, data=tmp_path / "data") as db:
        assert stock(db) == {("nail", 5)}
        db.sync("stock", tmp_path / "other")  # by the names of its files
        assert stock(db) == {("screw", 5)}
        db.load("stock", tmp_path / "nameless")  # by the `.input`
        assert stock(db) == {("screw", 5), ("bolt", 1)}


# -- Delta tables


def shelf(*rows: tuple[str, int]) -> pa.Table:
    return pa.table(
        {"item": pa.array([item for item, _ in rows], pa.string()), "level": pa.array([level for _, level in rows], pa.int64())}
    )


@pytest.mark.parametrize("partitions", [None, ["item"]], ids=["plain", "partitioned"])
def test_a_delta_table(partitions: list[str] | None, spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table 1")
    write_deltalake(table, shelf(("nail", 5), ("screw", 50)), partition_by=partitions)
    with opened(tmp_path) as db:
        assert db.sync("stock", table, IO="delta").deltas["low"].plus == {("nail",)}
        DeltaTable(table).delete("item = 'nail'")
        write_deltalake(table, shelf(("bolt", 1), ("a/b=c d", 2)), mode="append")
        assert db.sync("stock", table).deltas["low"].minus == {("nail",)}, "its log tells that it is one"
        assert stock(db) == {("screw", 50), ("bolt", 1), ("a/b=c d", 2)}
        db.sync("stock", table, IO="delta", version="0")
        assert stock(db) == {("nail", 5), ("screw", 50)}


def test_a_delta_table_that_is_not_as_expected(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    write_deltalake(table, shelf(("nail", 5)))
    with opened(tmp_path) as db:
        db.sync("stock", table, IO="delta")
        write_deltalake(table, pa.table({"item": ["nail"], "amount": [5]}), mode="overwrite", schema_mode="overwrite")
        with refused("columns"):
            db.sync("stock", table, IO="delta")
        with refused("unreadable"):
            db.sync("stock", table, IO="delta", version="9")
        shutil.rmtree(table)
        with refused("unreadable"):
            db.sync("stock", table, IO="delta")
        assert (stock(db), db.tx) == ({("nail", 5)}, 1)


FOLLOWED = STOCK + '.input stock(IO=stream, format=delta, path="{}")\n'
FEED = {"delta.enableChangeDataFeed": "true"}


def test_the_change_feed_of_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    write_deltalake(table, shelf(("nail", 5), ("screw", 50)), configuration=FEED)
    with opened(tmp_path, FOLLOWED.format(table)) as db:
        stream = db.stream("stock")
        stream.catch_up()
        assert (stock(db), db.tx, stream.position["version"]) == ({("nail", 5), ("screw", 50)}, 1, 0)
        write_deltalake(table, shelf(("bolt", 1)), mode="append")
        DeltaTable(table).update(updates={"level": "level + 10"}, predicate="item = 'nail'")
        DeltaTable(table).delete("item = 'screw'")
        stream.catch_up()
        assert (stock(db), db.tx) == ({("nail", 15), ("bolt", 1)}, 4)
        came, gone = Delta(frozenset({("bolt",)})), Delta(frozenset(), frozenset({("nail",)}))
        assert list(db.changes(1)) == [(2, "low", came), (3, "low", gone)]
    write_deltalake(table, shelf(("rivet", 2)), mode="append")
    with vigilog.open(data=tmp_path / "data") as db:
        stream = db.stream("stock", once=True)
        stream.catch_up()
        assert (stock(db), db.tx) == ({("nail", 15), ("bolt", 1), ("rivet", 2)}, 5)
        stream.catch_up()
        assert db.tx == 5, "a version is taken once"


def test_a_delta_table_that_cannot_be_followed(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    write_deltalake(table, shelf(("nail", 5)))
    with opened(tmp_path, FOLLOWED.format(table)) as db:
        db.stream("stock", once=True).catch_up()
        write_deltalake(table, shelf(("screw", 5)), mode="append")
        Path(DeltaTable(table).file_uris()[-1]).unlink()
        Path(DeltaTable(table).file_uris()[0]).unlink()
        with refused("source"):  # the version's file is gone
            db.stream("stock", once=True).catch_up()
        shutil.rmtree(table)
        with refused("unreadable"):
            db.stream("stock")
        write_deltalake(table, shelf(("nail", 5)), configuration=FEED)
        with refused("source"):  # it is another one
            db.stream("stock")
        assert (stock(db), db.tx) == ({("nail", 5)}, 1)
        write_deltalake(table, shelf(("bolt", 5)), mode="append")
        db.stream("stock", once=True, anew=True).catch_up()
        assert (stock(db), db.tx) == ({("nail", 5), ("bolt", 5)}, 2)
        stream = db.stream("stock")
        write_deltalake(table, shelf(("saw", 5)).rename_columns(["item", "amount"]), mode="overwrite", schema_mode="overwrite")
        with refused("columns"):  # it has other columns
            stream.catch_up()
        assert not stream.active and stream.error is not None and stream.error.code == "columns"
        assert (stock(db), db.tx) == ({("nail", 5), ("bolt", 5)}, 2)
