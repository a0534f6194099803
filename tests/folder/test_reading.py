"""States that are read beside a writer, and the format of a folder before there were named subscriptions."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.folder.test_faults import PROGRAM
from tests.folder.test_places import as_format_3
from tests.folder.test_threads import together
from tests.golden import GRAPH
from vigilog.core.errors import DataError, Stopped
from vigilog.executors.allowance import Allowance
from vigilog.folder.opening import open_program
from vigilog.folder.positions import Remembered, forget, remember, remembered
from vigilog.language.goal import parse_goal
from vigilog.store.file import FORMAT

CHAIN = 40


def closure(edges: int) -> set[Any]:
    """Of a chain of so many edges."""
    return {(first, last) for first in range(edges + 1) for last in range(first + 1, edges + 1)}


NUMBERS = GRAPH.replace("symbol", "number")


@pytest.mark.parametrize("strategy", ["auto", "materialized", "counted", "external"])
def test_each_state_is_of_one_transaction(tmp_path: Path, strategy: str) -> None:
    """While a writer goes on: transaction n makes a chain of n edges, so the whole state is known from its number."""
    with open_program(NUMBERS, data=tmp_path / "data", strategy=strategy) as db:
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(CHAIN):
                    db.apply({"insert": {"edge": [(number, number + 1)]}})
            finally:
                done.set()

        def read(look: Callable[[], None]) -> Callable[[], None]:
            def reading() -> None:
                while not done.is_set():
                    look()

            return reading

        def whole() -> None:
            with db.reading("closure", "edge") as state:
                tx = state.tx
                assert set(state.rows("closure")) == closure(tx)
                time.sleep(0.002)  # the writer goes on
                assert len(list(state.rows("edge"))) == tx == state.log.last, "it is the same state"
                assert {number for number, _, _ in state.log.changes(0, tx)} == set(range(1, tx + 1))

        def slices() -> None:
            goal = parse_goal(db.program, "closure(0, y), !edge(y, 5)")
            with db.reading(("closure", {1: 7}), goal) as state:
                assert set(state.rows("closure", {1: 7})) == {row for row in closure(state.tx) if row[1] == 7}
                assert set(state.answers(goal)) == {
                    (last,) for first, last in closure(state.tx) if first == 0 and (last != 4 or state.tx < 5)
                }

        def proofs() -> None:
            goal = parse_goal(db.program, "closure(0, 3)")
            with db.reading(goal) as state:
                assert (state.why(goal) is not None) == (state.tx >= 3)
                assert state.tx >= 3 or state.why_not(goal).rules

        together(write, read(whole), read(slices), read(proofs), read(slices))
        assert db.tx == CHAIN and db.verify().problems == []


def test_everything_beside_a_writer(tmp_path: Path) -> None:
    """Names, queries and definitions come and go; what is asked of the past and of the file meanwhile waits for nobody for ever."""
    with open_program(PROGRAM, data=tmp_path / "data") as db:
        done = threading.Event()

        def write() -> None:
            try:
                for number in range(40):
                    db.apply(
                        {"insert": {"edge": [(f"{number % 9}", f"{number % 7}")]}, "delete": {"edge": [(f"{number % 5}", f"{number % 4}")]}}
                    )
            finally:
                done.set()

        def look() -> None:
            while not done.is_set():
                assert remembered(db, "me").keys() <= {"it"}
                assert db.declared("closure") == 0
                assert not db.large and db.oldest >= 0 and len(db.queries.known) <= 1
                assert {view for _, view, _ in db.changes(0)} <= {"closure", "degree", "more"} | set(db.outputs)

        def name() -> None:
            while not done.is_set():
                remember(db, {("me", "it"): Remembered("{}", db.tx)})
                forget(db, "me", "it")

        def follow() -> None:
            while not done.is_set():
                found = db.follow("edge(x, y), edge(y, x)")
                with db.reading(found.view) as state:
                    rows = set(state.rows(found.view))
                    assert {(y, x) for x, y in rows} == rows
                db.unfollow(found.view)

        def define() -> None:
            while not done.is_set():
                db.define(".decl more(x: symbol) .output more more(x) :- edge(x, _).")
                db.drop("more")

        together(write, look, look, name, follow, define)
        assert db.verify().problems == []


def test_an_answer_has_bounds(tmp_path: Path) -> None:
    with open_program(
        NUMBERS, {"edge": [(number, number + 1) for number in range(400)]}, data=tmp_path / "data", strategy="external"
    ) as db:
        goal = parse_goal(db.program, "closure(x, y)")
        with db.reading(goal, allowance=Allowance(rows=100)) as state, pytest.raises(DataError, match="costs too much"):
            state.answers(goal)
        slow = parse_goal(db.program, "edge(a, b), edge(c, d), edge(e, f), edge(g, h), a + c + e + g = -1")
        with db.reading(slow, allowance=Allowance(seconds=0.01)) as state, pytest.raises(Stopped, match="did not come to an end"):
            state.answers(slow)
        db.apply({"insert": {"edge": [(-1, 0)]}})
        with pytest.raises(Stopped, match="did not come to an end"):
            db.ask("edge(a, b), edge(c, d), edge(e, f), edge(g, h), a + c + e + g = -100", at=0, allowance=Allowance(seconds=0.01))
        with db.reading(goal) as state:
            assert len(state.answers(goal)) == 401 * 402 // 2, "and the next one is answered"
        assert db.apply({"delete": {"edge": [(-1, 0)]}})["closure"].minus and db.verify().problems == []


def test_closing_ends_what_is_read(tmp_path: Path) -> None:
    db = open_program(NUMBERS, {"edge": [(number, number + 1) for number in range(400)]}, data=tmp_path / "data")
    slow = parse_goal(db.program, "edge(a, b), edge(c, d), edge(e, f), edge(g, h), a + c + e + g = -1")
    begun = threading.Event()

    def read() -> None:
        with db.reading(slow) as state, pytest.raises(DataError, match="closed"):
            begun.set()
            state.answers(slow)

    def close() -> None:
        begun.wait(60)
        time.sleep(0.2)  # it is being answered
        db.close()

    together(read, close)
    with pytest.raises(DataError, match="closed"), db.reading("closure"):
        pass


def test_a_folder_of_format_1(tmp_path: Path) -> None:
    """It is brought to the format of today, after a copy of it was made."""
    folder = tmp_path / "data"
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=folder) as db:
        db.apply({"insert": {"edge": [("b", "c")]}})
        history = db.file.history
    as_format_3(folder)
    with closing(sqlite3.connect(folder / "vigilog.db", isolation_level=None)) as file:
        file.execute("DROP TABLE vigilog_subscriptions")
        file.execute("UPDATE vigilog_about SET value = 1 WHERE name = 'format'")
        file.execute("DELETE FROM vigilog_about WHERE name = 'sum'")
    with open_program(data=folder) as db:
        assert db.file.get("format") == FORMAT and db.file.history == history
        assert db.view("closure") == {("a", "b"), ("b", "c"), ("a", "c")} and db.tx == 1
        remember(db, {("me", "it"): Remembered("{}", 1)})
        db.apply({"insert": {"edge": [("c", "d")]}})
        assert [bool(db.book.log.digest(tx)) for tx in range(3)] == [False, False, True], "what was committed before has none"
        assert db.verify().problems == []
    with open_program(data=folder) as db:
        assert remembered(db, "me") == {"it": Remembered("{}", 1)}
    with closing(sqlite3.connect(folder / "vigilog.db.format1")) as copy:
        assert copy.execute("SELECT value FROM vigilog_about WHERE name = 'format'").fetchone() == (1,)
