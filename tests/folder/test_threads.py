"""Several threads with one database: calls queue, none waits for ever, and each reader sees the state after some transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.folder.test_faults import PROGRAM
from vigilog.engine.database import Database
from vigilog.folder.opening import open_program

WRITERS, EACH = 4, 25
PATIENCE = 60


def together(*works: Callable[[], None]) -> None:
    """Does several things at once; raises what any of them raises."""
    failed: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as reason:
            failed.append(reason)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread waits for ever"
    if failed:
        raise failed[0]


def writer(db: Database, number: int) -> Callable[[], None]:
    def write() -> None:
        for index in range(EACH):
            with db.transaction() as tx:
                tx.insert("edge", [(f"{number}", f"{number}.{index}"), (f"{number}.{index}", f"{number} end")])
            assert (f"{number}", f"{number} end") in tx.changes["closure"].plus or index
            if index % 5 == 4:
                db.apply({"delete": {"edge": [(f"{number}", f"{number}.{index}")]}})

    return write


def reader(db: Database, done: threading.Event) -> Callable[[], None]:
    def read() -> None:
        while not done.is_set():
            edges: Any = db.ask('edge("0", y), edge(y, z)')
            assert all(last == "0 end" for _, last in edges), "both edges of a transaction, or none"
            assert db.why('closure("0", "0 end")') is None or edges is not None
            db.what_if(insert={"edge": [("x", "y")]})
            assert ("x", "y") not in db.view("closure")

    return read


@pytest.mark.parametrize("durable", [True, False])
def test_writers_and_readers_at_once(tmp_path: Path, durable: bool) -> None:
    with open_program(PROGRAM, {}, data=tmp_path / "data") if durable else open_program(PROGRAM, {}) as db:
        done = threading.Event()

        def writers() -> None:
            try:
                together(*(writer(db, number) for number in range(WRITERS)))
            finally:
                done.set()

        together(writers, reader(db, done), reader(db, done))
        assert db.tx == WRITERS * (EACH + EACH // 5)
        assert len(db.view("degree")) == WRITERS * (1 + EACH)


def test_looking_back_and_copying_while_others_write(tmp_path: Path) -> None:
    with open_program(PROGRAM, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        done = threading.Event()

        def look_back() -> None:
            while not done.is_set():
                assert db.view("closure", at=0) == {("a", "b")}
                assert db.ask('closure("a", y)', at=0) == [("a", "b")]
                copy: set[Any] = {("a", "b")}
                until = db.tx
                for _, view, delta in db.changes(0, until):
                    copy = delta.apply(copy) if view == "closure" else copy
                assert copy == db.view("closure", at=until)

        def copy() -> None:
            number = 0
            while not done.is_set():
                number += 1
                last = db.backup(tmp_path / f"copy{number}")
                with open_program(data=tmp_path / f"copy{number}") as other:
                    assert other.tx == last and other.view("closure") == db.view("closure", at=last)

        def writers() -> None:
            try:
                together(*(writer(db, number) for number in range(2)))
            finally:
                done.set()

        together(writers, look_back, copy)
        assert db.verify().problems == []


def test_definitions_and_writers_at_once(tmp_path: Path) -> None:
    with open_program(PROGRAM, {}, data=tmp_path / "data") as db:

        def define() -> None:
            for number in range(6):
                db.define(f".decl more{number}(x: symbol) .output more{number} more{number}(x) :- edge(x, _).")
                db.drop(f"more{number}")

        together(writer(db, 0), writer(db, 1), define)
        assert db.tx == 2 * (EACH + EACH // 5) + 12
        assert db.verify().problems == []
