"""Every change takes one way: each is judged, with the rows that the judge asks for, and what follows from it is a part of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vigilog.conditions import MOST_ROUNDS
from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError
from vigilog.core.values import Row
from vigilog.engine import database
from vigilog.engine.database import Database
from vigilog.engine.outcome import Judge
from vigilog.engine.transaction import Transaction
from vigilog.folder import large
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

PROGRAM = """\
.decl item(i: number, n: number)
.decl other(i: number)
.decl small(i: number)
.decl both(i: number)
.output both
small(i) :- item(i, n), n < 3.
both(i) :- small(i), other(i).
"""
STRATEGIES = ["auto", "external", "materialized", "counted"]


class Observer(Judge):
    """Notes all it is asked to judge; refuses an item with a negative number."""

    views = ("small",)  # which is no output

    def __init__(self) -> None:
        self.seen: list[Delta] = []

    def judge(self, net: Effect) -> None:
        self.seen.append(net.delta("small"))
        if min(numbers(net.delta("small").plus), default=0) < 0:
            raise DataError("no negative items", "refused")

    def last(self) -> Delta:
        (found,) = self.seen
        self.seen.clear()
        return found


class Chain(Judge):
    """What comes to `small` goes to `other`, and items of `other` beget others, up to ten."""

    views = ("small", "other")

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        came = {*numbers(change.delta("small").plus), *(i + 1 for i in numbers(change.delta("other").plus) if 5 <= i < 10)}
        return {"insert": {"other": [(i,) for i in sorted(came)]}} if came else None


def numbers(found: Iterable[Row]) -> list[int]:
    """The first columns of rows."""
    return [int(str(row[0])) for row in found]


def rows(*found: int) -> frozenset[Row]:
    return frozenset((number,) for number in found)


def is_watched(db: Database, observer: Observer, number: int) -> None:
    """A change is judged with rows of what is no output, a refused one leaves nothing, and no output is what it was not."""
    outcome = db.take({"insert": {"item": [(number, 1)]}})
    assert observer.last() == Delta(rows(number)) and outcome.deltas == {}
    with pytest.raises(DataError, match="no negative"):
        db.take({"insert": {"item": [(-number, 1)]}})
    assert observer.last() == Delta(rows(-number))
    assert db.take({"delete": {"item": [(number, 1)]}}).deltas == {} and observer.last() == Delta(minus=rows(number))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_judge_outlives_tables(tmp_path: Path, strategy: str) -> None:
    with open_program(PROGRAM, {"item": [(1, 1), (2, 5)]}, data=tmp_path / "data", strategy=strategy) as db:
        observer = Observer()
        db.add(observer)
        is_watched(db, observer, 10)
        db.define("small(i) :- item(i, n), n < 6.")
        assert observer.last() == Delta(rows(2)), "definitions are judged, too"
        with pytest.raises(DataError, match="no negative"):
            db.define("small(-7) :- item(_, _).")
        assert observer.last() == Delta(plus=rows(-7), minus=rows(1, 2)) and "-7" not in db.known_program()
        is_watched(db, observer, 11)
        view = db.follow("item(i, n), other(n)").view
        is_watched(db, observer, 12)
        db.unfollow(view)
        is_watched(db, observer, 13)
        assert db.verify().problems == []
        assert [change for change in db.changes(0) if change[1] == "small"] == [], "what is only watched is told to nobody"


def test_a_judge_outlives_tables_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOST_OVERRUNS", 1)
    with open_program(PROGRAM, {"item": [(n, 1) for n in range(20)], "other": [(n,) for n in range(20)]}, budget=1) as db:
        observer = Observer()
        db.add(observer)
        db.apply({"delete": {"other": [(3,)]}})
        observer.seen.clear()
        db.apply({"delete": {"item": [(n, 1) for n in range(1, 9)]}})
        assert "both" in db.stored, "it cost too much, so the tables are others now"
        assert observer.last() == Delta(minus=rows(*range(1, 9)))
        is_watched(db, observer, 30)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "FEW_ROWS", 5)


def parquet(folder: Path, spark: SparkSession, found: Iterator[tuple[int, int]]) -> Path:
    spark.createDataFrame(list(found), "i long, n long").write.parquet(str(folder))
    return folder


def test_what_stays_on_spark_is_judged(few: None, spark: SparkSession, tmp_path: Path) -> None:
    """Loads whose rows do not come here, snapshots, and what moves there and back."""
    observer = Observer()
    with open_program(PROGRAM, {"other": [(1,)]}, data=tmp_path / "data", memory=0) as db:
        db.add(observer)
        outcome = db.load("item", parquet(tmp_path / "one", spark, ((i, i % 5) for i in range(1, 21))), IO="parquet")
        assert "item" in db.large and outcome.deltas == {"both": Delta(rows(1))}
        assert observer.last() == Delta(rows(*(i for i in range(1, 21) if i % 5 < 3)))
        is_watched(db, observer, 30)
        db.compact()
        is_watched(db, observer, 31)
        before = db.tx
        with pytest.raises(DataError, match="no negative"):
            db.load("item", parquet(tmp_path / "two", spark, ((-i, 1) for i in range(1, 21))), IO="parquet")
        assert len(observer.last().plus) == 20 and db.tx == before and len(db.rows("item")) == 20
        db.define("small(i) :- item(i, n), n < 2.")
        assert observer.last() == Delta(minus=rows(*(i for i in range(1, 21) if i % 5 == 2)))
        assert db.verify().problems == []


def follows(db: Database) -> None:
    outcome = db.take({"insert": {"item": [(4, 1)]}})
    assert outcome.changes == {"item": Delta(frozenset({(4, 1)})), "other": Delta(rows(4))} and outcome.deltas == {"both": Delta(rows(4))}
    assert db.what_if(insert={"item": [(5, 1)]}) == {"both": Delta(rows(5))} and db.rows("other") == rows(4)
    outcome = db.take({"insert": {"item": [(5, 1)]}})
    assert outcome.changes["other"] == Delta(rows(*range(5, 11))), "all rounds are one transaction"
    assert db.tx == 2 and db.view("both") == rows(4, 5)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_follows_is_the_same_transaction(tmp_path: Path, strategy: str) -> None:
    with open_program(PROGRAM, strategy=strategy) as memory:
        memory.add(Chain())
        follows(memory)
    with open_program(PROGRAM, data=tmp_path / "data", strategy=strategy) as db:
        db.add(Chain())
        follows(db)
        assert db.verify().problems == []
        assert [(tx, delta) for tx, _, delta in db.changes(0)] == [(1, Delta(rows(4))), (2, Delta(rows(5)))]
    with open_program(data=tmp_path / "data") as again:
        assert isinstance(again, Durable) and again.rows("other") == rows(*range(4, 11))


def test_what_follows_on_spark(few: None, spark: SparkSession, tmp_path: Path) -> None:
    with open_program(PROGRAM, engine="spark") as memory:
        memory.add(Chain())
        follows(memory)
    with open_program(PROGRAM, data=tmp_path / "data", memory=0) as db:
        db.add(Chain())
        db.load("item", parquet(tmp_path / "one", spark, ((i, i % 3) for i in range(1, 11))), IO="parquet")
        assert db.rows("other") == rows(*range(1, 11)) and db.view("both") == rows(*range(1, 11)) and db.tx == 1
        db.take({"insert": {"item": [(20, 1)]}})
        assert db.view("both") == rows(*range(1, 11), 20) and db.verify().problems == []


class Itself(Judge):
    """What comes to a relation that stays on Spark brings one more row to it."""

    views = ("item",)

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        plus = change.delta("item").plus
        return {"insert": {"item": [(100, 100)]}, "delete": {"item": [(1, 1)]}} if len(plus) > 1 else None


def test_a_load_that_is_changed_further(few: None, spark: SparkSession, tmp_path: Path) -> None:
    with open_program(PROGRAM, data=tmp_path / "data", memory=0) as db:
        db.add(Itself())
        db.load("item", parquet(tmp_path / "one", spark, ((i, i % 3) for i in range(1, 11))), IO="parquet")
        right = {(i, i % 3) for i in range(2, 11)} | {(100, 100)}
        assert db.rows("item") == right and db.tx == 1
    with open_program(data=tmp_path / "data") as again:
        assert again.rows("item") == right and isinstance(again, Durable) and again.verify().problems == []


class Endless(Judge):
    views = ("other",)

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        return {"insert": {"other": [(max(numbers(change.delta("other").plus)) + 1,)]}}


def test_rounds_are_bounded(tmp_path: Path) -> None:
    with open_program(PROGRAM, data=tmp_path / "data") as db:
        db.add(Endless())
        with pytest.raises(DataError, match=f"more than {MOST_ROUNDS} rounds"):
            db.apply({"insert": {"other": [(1,)]}})
        assert db.rows("other") == set() and db.tx == 0


def test_hundreds_of_rounds(tmp_path: Path) -> None:
    """A round does not stand on the shoulders of the one before: so many would be too deep."""
    program = ".decl a(x: number)\n.decl next(x: number)\nnext(x + 1) :- a(x), x < 1500.\n.trigger next(insert=a)\n"
    with open_program(program, data=tmp_path / "data", cascade=1500) as db:
        assert len(db.take({"insert": {"a": [(0,)]}}).triggered["a"].plus) == 1500 and db.tx == 1
        db.cascade = 700
        with pytest.raises(DataError, match="more than 700 rounds"):
            db.take({"insert": {"a": [(-1,)]}, "delete": {"a": [(number,) for number in range(1501)]}})
        assert len(db.rows("a")) == 1501 and db.verify().problems == []


def test_the_log_has_one_writer() -> None:
    """Nothing is committed past the step."""
    tree = Path(database.__file__).parents[1]
    calls: list[tuple[str, Any]] = []
    for path in sorted(tree.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func).endswith("log.append"):
                calls.append((path.name, ast.unparse(node.func)))
    assert calls == [("book.py", "self.log.append")]
