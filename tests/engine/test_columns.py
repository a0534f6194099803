"""A change is looked at column by column, and an aggregate over a join is one query over that join."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import read_case
from vigilog.core.values import Row
from vigilog.executors.spark import temporary
from vigilog.folder.opening import open_program

CASE = read_case(Path(__file__).parents[1] / "changes" / "revenue.case")
FACTS: dict[str, list[Row]] = {
    "orders": [(1, "ann", "tea", 2), (2, "ann", "pen", 1), (3, "bob", "tea", 5), (4, "eve", "ink", 1)],
    "customers": [("ann", "north", "1"), ("bob", "south", "2"), ("eve", "north", "3")],
    "products": [("tea", "food", 3), ("pen", "office", 2), ("ink", "office", 4)],
}
Wish = dict[str, dict[str, list[Row]]]
CALLED: Wish = {"upsert": {"customers": [("ann", "north", "7"), ("bob", "south", "8")]}}
MOVED: Wish = {"upsert": {"customers": [("ann", "south", "9")]}}
SWAPPED: Wish = {"upsert": {"customers": [("ann", "north", "1"), ("eve", "south", "3")]}}
PRICED: Wish = {"upsert": {"products": [("tea", "office", 4)]}}
ORDERED: Wish = {"upsert": {"orders": [(4, "bob", "tea", 3)]}}


@pytest.mark.parametrize("strategy", ["external", "materialized", "counted"])
@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_what_reads_other_columns_is_not_touched(engine: str, strategy: str) -> None:
    with open_program(CASE.program, FACTS, engine=engine, strategy=strategy) as database:
        assert database.apply(CALLED) == {}
        assert database.stats.derived == 0, "nobody reads a phone"
        moved = database.apply(MOVED)
        assert database.stats.derived and {row[0] for row in moved["revenue"].plus} == {"north", "south"}


@pytest.mark.parametrize("engine", ["embedded", "spark"])
def test_rows_that_swap_a_value_are_a_change(engine: str) -> None:
    """As many rows are in the north as before, but they are others."""
    with open_program(CASE.program, FACTS, engine=engine, strategy="external") as database:
        database.apply(MOVED)
        before = database.view("revenue")
        changed = database.apply(SWAPPED)["revenue"]
        assert changed.apply(before) == database.view("revenue") != before


def test_an_aggregate_over_a_join_of_large_relations_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporary, "BROADCAST_ROWS", 2)  # so that what has more rows is large
    with open_program(CASE.program, FACTS, engine="spark", strategy="external") as database:
        for change in (MOVED, PRICED, ORDERED):
            before = {name: database.view(name) for name in ("revenue", "best")}
            told = database.apply(change)
            for name, rows in before.items():
                assert (told[name].apply(rows) if name in told else rows) == database.view(name)
            with open_program(CASE.program, {name: list(database.rows(name)) for name in FACTS}) as anew:
                assert {name: anew.view(name) for name in before} == {name: database.view(name) for name in before}
