"""States of which a part is on Spark: nobody who writes waits for one who reads, and each state is of its transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.folder.test_reading import closure
from vigilog.core.errors import DataError, Stopped
from vigilog.executors.allowance import Allowance
from vigilog.executors.mixed import MixedViews
from vigilog.executors.spark import stored
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.language.goal import parse_goal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl edge(x: number, y: number)
.decl mark(x: number)
.decl lone(x: number)
.decl closure(x: number, y: number)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
.decl marked(x: number)
.output marked
marked(y) :- closure(0, y), mark(y).
.decl single(x: number)
.output single
single(x) :- lone(x), x > 1.
"""
SHORT, LONG = 5, 20  # edges of a chain; Spark takes as many rounds


@contextmanager
def far(folder: Path, chain: int, strategy: str = "external", **options: Any) -> Iterator[Durable]:
    """A chain that is on Spark, and relations that are not."""
    edges = [(number, number + 1) for number in range(chain)]
    facts: dict[str, Any] = {"edge": edges, "mark": [(3,)], "lone": [(2,)]}
    with open_program(PROGRAM, facts, data=folder, strategy=strategy, memory=2**20) as db:
        db.store.memory = 0
        db.compact(["edge"])
        assert db.large == {"edge"}
    with open_program(data=folder, memory=0, **options) as db:
        yield db


@pytest.fixture(params=["external", "materialized"])
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Durable]:
    monkeypatch.setattr(stored, "LOCAL_ROWS", 3)  # so that Spark has frames of it
    with far(tmp_path / "data", SHORT, request.param) as db:
        yield db


def test_a_state_is_of_its_transaction(db: Durable) -> None:
    goal = parse_goal(db.program, "closure(0, y), mark(y), !lone(y)")
    why = parse_goal(db.program, "closure(0, 3)")
    with db.reading("closure", ("closure", {1: 4}), "marked", "single", goal, why) as state:
        db.apply({"insert": {"edge": [(SHORT, SHORT + 1)], "mark": [(5,)], "lone": [(3,)]}, "delete": {"edge": [(0, 1)]}})
        assert (state.tx, state.log.last, db.tx) == (0, 0, 1)
        for _ in range(2):  # what is read is not gone with the second
            db.compact(["edge"])
        assert set(state.rows("closure")) == closure(SHORT)
        assert list(state.rows("closure", {1: 4})) == [(number, 4) for number in range(4)]
        assert list(state.rows("marked")) == [(3,)] and list(state.rows("single")) == [(2,)]
        assert state.answers(goal) == [(3,)] and state.why(why) is not None
    with db.reading("closure", "marked", "single", goal, why) as state:
        assert state.tx == 1 and list(state.rows("marked")) == []
        assert set(state.rows("closure")) == {(x + 1, y + 1) for x, y in closure(SHORT)}
        assert list(state.rows("single")) == [(2,), (3,)] and state.answers(goal) == [] and state.why(why) is None
    assert db.verify().problems == []


def test_writers_do_not_wait(spark: SparkSession, tmp_path: Path) -> None:
    with far(tmp_path / "data", LONG) as db:
        begun, found = threading.Event(), dict[str, Any]()

        def read() -> None:
            with db.reading("closure") as state:
                begun.set()
                found.update(tx=state.tx, rows=set(state.rows("closure")))

        reading = threading.Thread(target=read)
        reading.start()
        assert begun.wait(120)
        assert db.apply({"insert": {"lone": [(7,)]}})["single"].plus == {(7,)}
        assert db.apply({"insert": {"edge": [(-9, -8)]}})["closure"].plus == {(-9, -8)}
        assert not found, "the answer comes later than what was committed after it had begun"
        reading.join()
        assert found == {"tx": 0, "rows": closure(LONG)}


def test_spark_begins_beside_writers(spark: SparkSession, tmp_path: Path) -> None:
    """What is committed meanwhile is in the first state; one that needs Spark waits for it."""
    computing = threading.Event()
    with far(tmp_path / "data", LONG, "materialized", report=lambda stage: computing.set() if stage.round > 1 else None) as db:
        found = dict[str, Any]()

        def read() -> None:
            with db.reading("closure", "marked") as state:
                found.update(tx=state.tx, rows=set(state.rows("closure")), marked=set(state.rows("marked")))

        reading = threading.Thread(target=read)
        reading.start()
        assert computing.wait(120)
        assert db.apply({"insert": {"lone": [(7,)]}})["single"].plus == {(7,)}
        assert isinstance(db.views, MixedViews) and db.views.begin() is not None, "it is still being made"
        assert db.apply({"insert": {"mark": [(5,)]}})["marked"].plus == {(5,)}
        reading.join()
        assert found["rows"] == closure(LONG) and found["marked"] == ({(3,), (5,)} if found["tx"] == 2 else {(3,)})


def test_an_answer_has_bounds(db: Durable) -> None:
    goal = parse_goal(db.program, "closure(x, y), closure(y, z)")
    with db.reading("closure", goal, allowance=Allowance(rows=10)) as state:
        with pytest.raises(DataError, match="costs too much") as error:
            state.rows("closure")
        assert error.value.code == "budget"
        with pytest.raises(DataError, match="costs too much"):
            state.answers(goal)
    with db.reading("closure", goal, allowance=Allowance(seconds=0.01)) as state, pytest.raises(Stopped, match="did not come to an end"):
        state.answers(goal)
    with db.reading("closure") as state:
        assert set(state.rows("closure")) == closure(SHORT), "and the next one is answered"


def test_closing_ends_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    with far(tmp_path / "data", LONG) as db:
        begun, ended = threading.Event(), list[str]()

        def read() -> None:
            try:
                with db.reading("closure") as state:
                    begun.set()
                    state.rows("closure")
            except DataError as reason:
                ended.append(reason.code)

        reading = threading.Thread(target=read)
        reading.start()
        assert begun.wait(120)
        db.close()
        reading.join()
        assert ended == ["closed"]
