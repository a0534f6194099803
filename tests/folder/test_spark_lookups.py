"""What a small change needs to know of large relations: few rows of them, and nothing that it does not concern."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from vigilog.executors.mixed import MixedViews
from vigilog.executors.spark import demand, stored
from vigilog.executors.spark.views import SparkViews
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl customers(id: number, region: symbol)
.input customers
.key customers(id)
.decl orders(id: number, customer: number, n: number)
.input orders
.decl region(name: symbol)
.output region
region(r) :- customers(_, r).
.decl sold(region: symbol, n: number)
.output sold
sold(r, n) :- region(r), n = sum x : { orders(_, c, x), customers(c, r) }.
"""
CUSTOMERS = [(number, "north" if number else "south") for number in range(200)]
ORDERS = [(number, number % 200, 1) for number in range(400)]


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Durable:
    """Everything is on Spark, and no more than ten rows come here for a transaction."""
    monkeypatch.setattr(stored, "LOCAL_ROWS", 0)
    monkeypatch.setattr(demand, "COLLECTED_ROWS", 10)
    monkeypatch.setattr(demand, "MET_ROWS", 10)
    db = open_program(PROGRAM, {"customers": CUSTOMERS, "orders": ORDERS}, data=tmp_path / "data", memory=0)
    db.compact(["customers", "orders"])
    return db


def distant(db: Durable) -> SparkViews:
    assert isinstance(db.views, MixedViews)
    return db.views.distant


def test_whether_a_row_is_there_takes_one(db: Durable) -> None:
    """Nearly all customers are in the north, but nobody looks at them to see that there still is one."""
    with db:
        assert db.apply({"delete": {"customers": [(6, "north")]}})["sold"].plus == {("north", 396)}, "groups are filled"
        found = db.apply({"delete": {"customers": [(5, "north")]}})
        assert "region" not in found and found["sold"].plus == {("north", 394)}
        assert db.stats.spark_jobs == 0, "nothing was asked of Spark"
        found = db.apply({"upsert": {"customers": [(0, "west")]}})
        assert found["region"].plus == {("west",)} and found["region"].minus == {("south",)}
        assert db.stats.spark_jobs == 0
        assert found["sold"].plus == {("west", 2)} and found["sold"].minus == {("south", 2)}
        db.apply({"delete": {"customers": [(number, "north") for number in range(191, 200)]}})
        assert db.view("region") == {("north",), ("west",)}
        assert db.verify().problems == []


def test_groups_are_filled_when_a_change_concerns_them(db: Durable) -> None:
    with db:
        views = distant(db)
        assert not views._filled
        db.apply({"insert": {"customers": [(1_000, "north")]}})
        filled = {name for keeper in views._filled for name in keeper.kept}
        assert filled and filled <= views.snapshots.keys()
        assert db.view("sold") == {("north", 398), ("south", 2)}


def test_the_first_goal_fills_no_groups(db: Durable) -> None:
    with db:
        assert {tuple(row) for row in db.ask('sold("south", n)')} == {("south", 2)}
        assert not distant(db)._filled
        assert {tuple(row) for row in db.ask("sold(r, n)")} == {("south", 2), ("north", 398)}
        assert distant(db)._filled
        assert {tuple(row) for row in db.ask("sold(r, n), n > 2")} == {("north", 398)}
