"""Conditions of a data folder: definitions are judged, loads that stay on Spark are, and a crash leaves all of a cascade or nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, Refused
from vigilog.folder import large
from vigilog.folder.opening import open_program

STOCK = """
.decl stock(item: number, n: number)
.decl orders(item: number, n: number)
.decl low(item: number, n: number)
low(i, n) :- stock(i, n), n < 4.
.alert low(key=item)
.alert low(name=event, mode=resatisfiable, key=item)
.trigger low(insert=orders)
.decl negative(item: number, n: number)
negative(i, n) :- stock(i, n), n < 0.
.constraint negative
"""


def states(reports: Any) -> list[tuple[str, str, tuple[Any, ...]]]:
    return [(report.alert, report.state, report.row) for report in reports]


def test_definitions_are_judged_and_fire_nothing(tmp_path: Path) -> None:
    with open_program(STOCK, {"stock": [(1, 3), (2, 9)]}, data=tmp_path / "data") as db:
        assert db.rows("orders") == set() and db.reports(0) == [], "facts fire nothing and are not reported"
        db.define("low(i, n) :- stock(i, n), n < 10.")
        assert [(said["alert"], said["state"], said["row"]) for _, said in db.reports(0)] == [
            ("event", "satisfied", [2, 9]),
            ("low", "satisfied", [2, 9]),
        ]
        assert db.rows("orders") == set() and db.warnings == []
        db.define('.alert low(name=new, mode=resatisfiable)\n.alert low(key=item, message="{item}!")')
        assert len(db.reports(0)) == 2, "what held before an alert was defined counts as reported"
        db.define(".decl many(item: number)\nmany(i) :- stock(i, n), n > 2.\n.constraint many")
        assert [(warning.code, warning.message) for warning in db.warnings] == [("violated", "many is violated by 2 rows")]
        db.take({"delete": {"stock": [(1, 3)]}})
        with pytest.raises(Refused, match="many is violated"):
            db.take({"insert": {"stock": [(3, 3)]}})
        db.define(".decl extra(item: number)\nnegative(i, n) :- stock(i, n), n < 0, !extra(i).")
        with pytest.raises(Refused, match="negative is violated by 1 row"):
            db.define("stock(7, -1).")
        assert "stock(7" not in db.known_program() and (7, -1) not in db.rows("stock")
        assert db.verify().problems == []


@pytest.mark.parametrize(
    "text",
    [
        ".decl low_by_item(x: number)\nlow_by_item(i) :- stock(i, _).",
        ".decl event_proof_1(x: number)\n.decl low_proof_1(x: number)\nlow_proof_1(1).",
        ".decl low(item: number)\nlow(i) :- stock(i, n), n < 4.",
        ".decl low(item: number, n: number, more: number)\nlow(i, n, 7) :- stock(i, n), n < 4.",
    ],
)
def test_a_definition_may_take_names_and_columns_of_conditions(text: str, tmp_path: Path) -> None:
    program = STOCK.replace(".trigger low(insert=orders)", ".constraint low(key=item)")
    with open_program(program, {"stock": [(1, 3), (2, 9)]}, data=tmp_path / "data") as db:
        db.define(text)
        assert db.reports(0) == [], "nothing has happened"
        db.take({"delete": {"stock": [(1, 3)]}})
        assert [(said["alert"], said["state"], said["row"][0]) for _, said in db.reports(0)] == [
            ("event", "ceased", 1),
            ("low", "ceased", 1),
        ]
        with pytest.raises(Refused, match="low is violated"):
            db.take({"insert": {"stock": [(4, 0)]}})
        assert db.verify().problems == []


def test_facts_that_violate_a_constraint_are_taken_with_a_warning(tmp_path: Path) -> None:
    with open_program(STOCK, {"stock": [(1, -3), (2, -9), (3, 4)]}, data=tmp_path / "data") as db:
        assert [(warning.code, warning.message) for warning in db.warnings] == [("violated", "negative is violated by 2 rows")]
    with open_program(data=tmp_path / "data") as db:
        assert db.warnings == [], "it is said once"


def test_what_stays_on_spark_is_judged(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "FEW_ROWS", 5)

    def parquet(name: str, rows: list[tuple[int, int]]) -> Path:
        spark.createDataFrame(rows, "item long, n long").write.parquet(str(tmp_path / name))
        return tmp_path / name

    with open_program(STOCK, {}, data=tmp_path / "data", memory=0) as db:
        outcome = db.load("stock", parquet("one", [(i, i % 8) for i in range(40)]), IO="parquet")
        few = {(i, i % 8) for i in range(40) if i % 8 < 4}
        assert "stock" in db.large and db.rows("orders") == few and outcome.triggered == {"orders": Delta(frozenset(few))}
        assert states(outcome.alerts) == [(name, "satisfied", row) for name in ("event", "low") for row in sorted(few)]
        before = db.tx
        with pytest.raises(Refused, match="negative is violated by 20 rows") as refused:
            db.load("stock", parquet("two", [(100 + i, -1) for i in range(20)]), IO="parquet")
        assert len(refused.value.members["rows"]) == 20 and len(refused.value.members["why"]) == 10
        assert db.tx == before and len(db.rows("stock")) == 40 and db.rows("orders") == few
        outcome = db.take({"delete": {"stock": [(0, 0)]}, "insert": {"stock": [(0, 2)]}})
        assert states(outcome.alerts) == [("event", "again", (0, 2))] and outcome.alerts[0].old == (0, 0)
        monkeypatch.setattr(large, "MOST_ROWS", 10)
        with pytest.raises(DataError) as too_many:
            db.load("stock", parquet("three", [(1000 + i, 1) for i in range(20)]), IO="parquet")
        assert too_many.value.code == "large" and db.tx == before + 1


FAR = """
.decl big, wish, mark(item: number, n: number)
.decl small(item: number, n: number)
small(i, n) :- big(i, n), n < 2.
.output small
.trigger small(insert=mark)
.trigger wish(insert=big)
.decl odd(item: number)
odd(i) :- wish(i, _), i % 2 != 0.
.constraint odd
"""


def test_rounds_that_reach_spark_are_taken_back(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wish itself concerns only what is resident; what follows from it changes a relation on Spark, and views of it."""
    monkeypatch.setattr(large, "FEW_ROWS", 5)
    spark.createDataFrame([(i, i % 8) for i in range(40)], "item long, n long").write.parquet(str(tmp_path / "big"))
    with open_program(FAR, {}, data=tmp_path / "data", memory=0) as db:
        db.load("big", tmp_path / "big", IO="parquet")
        assert "big" in db.large
        monkeypatch.setattr(large, "FEW_ROWS", 1_000_000)
        before = db.view("small")
        for number in range(2):  # once before Spark's part is there, and once after it
            with pytest.raises(Refused, match="odd is violated"):
                db.take({"insert": {"wish": [(101, number), (102, number)]}})
            told = db.take({"insert": {"wish": [(102, 0)]}}, keep=False)
            assert told.deltas["small"].plus == {(102, 0)} and told.triggered["mark"].plus == {(102, 0)}
            assert db.view("small") == before and len(db.rows("big")) == 40 and db.rows("wish") == set()
        done = db.take({"insert": {"wish": [(102, 0), (104, 9)]}})
        assert done.triggered == {"big": Delta(frozenset({(102, 0), (104, 9)})), "mark": Delta(frozenset({(102, 0)}))}
        assert db.view("small") == before | {(102, 0)} and len(db.rows("big")) == 42
        assert db.verify().problems == []


CASCADE = """
.decl r0, r1, r2, r3(x: number)
.decl c0, c1, c2(x: number)
c0(x) :- r0(x).
c1(x) :- r1(x).
c2(x) :- r2(x).
.trigger c0(insert=r1)
.trigger c1(insert=r2)
.trigger c2(insert=r3)
.decl done(x: number)
done(x) :- r3(x), r0(x).
.alert done
"""
WRITER = """
import sys
from vigilog.folder.opening import open_program
with open_program(data=sys.argv[1]) as db:
    number = len(db.rows("r0"))
    while True:
        db.take({"insert": {"r0": [(number := number + 1,)]}})
        print(number, flush=True)
"""


@pytest.mark.apart
def test_a_crash_leaves_all_of_a_cascade_or_nothing(tmp_path: Path) -> None:
    open_program(CASCADE, data=tmp_path / "data").close()
    acknowledged, chance = 0, random.Random(7)
    for _ in range(4):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "data")], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        for _ in range(chance.randint(1, 20)):
            acknowledged = int(writer.stdout.readline())
        time.sleep(chance.random() / 50)
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split()
        writer.stdout.close()
        writer.wait()
        acknowledged = max([acknowledged, *(int(line) for line in rest if line.isdigit())][-2:])
        with open_program(data=tmp_path / "data") as db:
            rows = db.rows("r0")
            assert rows == db.rows("r1") == db.rows("r2") == db.rows("r3") and len(rows) >= acknowledged
            assert [said["row"] for _, said in db.reports(0)] == [[number] for number in range(1, len(rows) + 1)], (
                "each alert once, in order"
            )
            assert db.verify().problems == []
