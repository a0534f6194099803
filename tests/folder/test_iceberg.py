"""Iceberg tables: a relation is made equal to one from snapshot to snapshot, by reading only what has changed. All here is so little that nobody asks Spark."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType

import vigilog
from tests.iceberg import catalog, delete_at, options
from tests.treatments import COMMIT, amount
from vigilog.core.errors import DataError, VigilogError
from vigilog.core.values import Row
from vigilog.folder.durable import Durable

PROGRAM = """
.decl orders(id: number, item: symbol)
.decl wanted(item: symbol)
.output wanted
wanted(i) :- orders(_, i).
"""
SCHEMA = pa.schema([("id", pa.int64()), ("item", pa.string()), ("extra", pa.float64())])


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table({"id": [i for i, _ in pairs], "item": [item for _, item in pairs], "extra": [0.5] * len(pairs)}, schema=SCHEMA)


def there(table: Table) -> set[Row]:
    return {(row["id"], row["item"]) for row in table.scan().to_arrow().to_pylist()}


def files(table: Table) -> list[str]:
    return sorted(task.file.file_path for task in table.scan().plan_files())


@pytest.fixture
def table(tmp_path: Path) -> Table:
    found = catalog(tmp_path).create_table("shop.orders", schema=SCHEMA)
    found.append(rows((1, "nail"), (2, "screw"), (3, "bolt")))
    return found


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Durable]:
    with vigilog.open(PROGRAM, data=tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def sync(db: Durable, tmp_path: Path) -> Callable[[], set[Row]]:
    def work() -> set[Row]:
        db.sync("orders", "shop.orders", **options(tmp_path))
        return db.rows("orders")

    return work


def refused(code: str, why: str = "") -> pytest.RaisesExc[VigilogError]:
    return pytest.RaisesExc(DataError, check=lambda reason: reason.code == code and why in str(reason))


def test_what_did_not_change_is_not_read(table: Table, db: Durable, sync: Callable[[], set[Row]]) -> None:
    table.append(rows((4, "saw")))
    assert sync() == there(table)
    kept = files(table)
    table.append(rows((5, "rivet"), (6, "file")))
    (new,) = set(files(table)) - set(kept)
    table.delete("id = 5")  # which writes the rest of that file anew
    table.upsert(rows((6, "rasp"), (7, "plane")), join_cols=["id"])
    expected = there(table)
    for path in kept:
        Path(path.removeprefix("file://")).unlink()
    assert sync() == expected == {(1, "nail"), (2, "screw"), (3, "bolt"), (4, "saw"), (6, "rasp"), (7, "plane")}
    assert not Path(db.store.warehouse).exists() or not list(Path(db.store.warehouse).rglob("*.parquet")), "nothing is left of it"
    before = db.tx
    assert sync() == expected and db.tx == before, "no new snapshot, no transaction"
    table.append(rows((8, "clamp")))
    Path(new.removeprefix("file://")).unlink(missing_ok=True)
    db.apply({"insert": {"orders": [(9, "by hand")]}, "delete": {"orders": [(1, "nail")]}})
    assert sync() == expected | {(8, "clamp")}, "what others changed is undone"


def test_rows_deleted_by_position(table: Table, sync: Callable[[], set[Row]]) -> None:
    table.append(rows((4, "saw")))
    assert sync() == there(table)
    (of_three,) = (task.file.file_path for task in table.scan().plan_files() if task.file.record_count == 3)
    delete_at(table, of_three, 0, 2)
    assert sync() == there(table) == {(2, "screw"), (4, "saw")}
    delete_at(table, of_three, 1)
    assert sync() == there(table) == {(4, "saw")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
def test_whatever_happens_to_the_table(table: Table, db: Durable, sync: Callable[[], set[Row]]) -> None:
    """Rows may be there twice, come back, change by hand; the table may go back to an older snapshot, be rewritten, or forget one."""
    chance = random.Random(COMMIT)

    def some() -> pa.Table:
        return rows(*((chance.randrange(12), chance.choice("abc")) for _ in range(chance.randrange(1, 4))))

    def upsert() -> None:
        table.upsert(rows(*{chance.randrange(12): chance.choice("abc") for _ in range(2)}.items()), join_cols=["id"])

    def delete_some() -> None:
        found = [(path.file.file_path, path.file.record_count) for path in table.scan().plan_files() if not path.delete_files]
        if found:
            path, number = chance.choice(found)
            delete_at(table, path, chance.randrange(number))

    def go_back() -> None:
        with table.manage_snapshots() as managed:
            managed.rollback_to_snapshot(chance.choice(table.history()).snapshot_id)

    def forget() -> None:
        table.maintenance.expire_snapshots().by_id(chance.choice([one.snapshot_id for one in table.snapshots()])).commit()

    def by_hand() -> None:
        db.apply({"insert": {"orders": [(chance.randrange(12), "a")]}, "delete": {"orders": [(chance.randrange(12), "b")]}})

    steps: list[Callable[[], object]] = [
        *[lambda: table.append(some())] * 2,
        lambda: table.delete(f"id = {chance.randrange(12)}"),
        lambda: table.overwrite(some()),
        lambda: table.overwrite(table.scan().to_arrow()),
        *[upsert, delete_some, go_back, forget, by_hand],
    ]
    for _ in range(amount(60)):
        step = chance.choice(steps)
        try:
            step()
        except ValueError:  # the table does not let it happen: two rows have one id, the snapshot is in use
            continue
        if chance.random() < 0.6:
            assert sync() == there(table), step


def test_another_table_of_that_name(table: Table, sync: Callable[[], set[Row]], tmp_path: Path) -> None:
    sync()
    catalog(tmp_path).drop_table("shop.orders")
    other = catalog(tmp_path).create_table("shop.orders", schema=SCHEMA)
    assert sync() == set(), "it has no snapshot yet"
    other.append(rows((2, "screw")))
    assert sync() == {(2, "screw")}


def test_a_column_that_is_another_one(table: Table, sync: Callable[[], set[Row]]) -> None:
    sync()
    with table.update_schema() as change:
        change.rename_column("item", "old")
    with table.update_schema() as change:
        change.add_column("item", StringType())
    table.overwrite(table.scan().to_arrow().set_column(3, "item", pa.array(["x", "y", "z"])))
    assert sync() == {(1, "x"), (2, "y"), (3, "z")}


def test_a_relation_that_is_declared_anew(table: Table, db: Durable, sync: Callable[[], set[Row]]) -> None:
    sync()
    db.define("wanted(i) :- orders(1, i).")
    table.delete("id = 1")
    assert sync() == there(table) and db.view("wanted") == set()


def test_a_trigger_that_changes_the_relation(table: Table, db: Durable, sync: Callable[[], set[Row]]) -> None:
    db.define('.decl more(id: number, item: symbol)\nmore(i, "extra") :- orders(i, "screw").\n.trigger more(insert=orders)')
    assert sync() == there(table) | {(2, "extra")}
    table.append(rows((4, "saw")))
    assert sync() == there(table), "the trigger fires for what is new, which (2, screw) is not"


def test_what_is_refused(table: Table, db: Durable, sync: Callable[[], set[Row]], tmp_path: Path) -> None:
    sync()
    before = db.tx, db.rows("orders")
    with refused("unreadable", "Iceberg table shop.order: cannot be read for orders: Table does not exist"):
        db.sync("orders", "shop.order", **options(tmp_path))
    with refused("unreadable"):
        db.sync("orders", "shop.orders", IO="iceberg", catalog="nowhere")
    with refused("unreadable", "there is no snapshot 7"):
        db.sync("orders", "shop.orders", **options(tmp_path), snapshot="7")
    table.append(rows((6, "saw")))
    shutil.rmtree(tmp_path / "lake" / "shop" / "orders" / "data")
    with refused("unreadable"):
        sync()
    assert (db.tx, db.rows("orders")) == before


def test_first_rows_and_older_ones(table: Table, tmp_path: Path) -> None:
    said = options(tmp_path)
    with table.manage_snapshots() as managed:
        managed.create_tag(table.history()[0].snapshot_id, "monday")
    table.delete("id = 1")
    text = PROGRAM + f'.input orders(IO=iceberg, name="shop.orders", catalog=shop, uri="{said["uri"]}")\n'
    with vigilog.open(text, tmp_path, data=tmp_path / "data") as db:
        assert db.rows("orders") == there(table)
        db.sync("orders", "shop.orders", **said, snapshot="monday")
        assert db.rows("orders") == {(1, "nail"), (2, "screw"), (3, "bolt")}


def test_a_stream_of_snapshots(table: Table, tmp_path: Path) -> None:
    text = PROGRAM + f'.input orders(IO=stream, format=iceberg, path="shop.orders", catalog=shop, uri="{options(tmp_path)["uri"]}")\n'
    with vigilog.open(text, data=tmp_path / "data") as db:
        stream = db.stream("orders")
        stream.catch_up()
        assert db.rows("orders") == there(table) and db.tx == 1
        table.upsert(rows((1, "tack"), (4, "saw")), join_cols=["id"])  # several snapshots, of which nobody saw the first
        stream.catch_up()
        assert db.rows("orders") == there(table) and db.tx == 2
    table.delete("id = 2")
    with vigilog.open(data=tmp_path / "data") as db:
        db.stream("orders", once=True).catch_up()
        assert db.rows("orders") == there(table) and db.tx == 3
        db.apply({"insert": {"orders": [(9, "by hand")]}})
        db.stream("orders", once=True, anew=True).catch_up()
        assert db.rows("orders") == there(table)
        catalog(tmp_path).drop_table("shop.orders")
        catalog(tmp_path).create_table("shop.orders", schema=SCHEMA)
        with refused("source", "is another table"):
            db.stream("orders")
