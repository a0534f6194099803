"""Proofs of what rests on tables that are on Spark: sought by the questions that answer a goal, over the rows that these have read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.proofs import Judge
from vigilog.core.errors import DataError
from vigilog.executors.spark import reader, stored
from vigilog.executors.spark.stored import Snapshot
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.language.goal import parse_goal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl orders(id: number, customer: number, item: number, amount: number)
.decl within(item: number, category: number)
.decl blocked(customer: number)
.decl belongs(item: number, category: number)
belongs(i, c) :- within(i, c).
belongs(i, c) :- within(i, d), belongs(d, c).
.decl bought(customer: number, category: number)
bought(k, c) :- orders(_, k, i, _), belongs(i, c).
.decl spent(customer: number, total: number)
spent(k, t) :- orders(_, k, _, _), t = sum a : { orders(_, k, _, a) }.
.decl good(customer: number, category: number)
.output good
good(k, c) :- bought(k, c), !blocked(k), spent(k, t), t > 10.
"""
FACTS: dict[str, Any] = {
    "orders": [(number, number % 7, number % 10, 1 + number % 9) for number in range(60)],
    "within": [*((item, 10 + item // 4) for item in range(10)), (10, 20), (11, 20), (12, 21), (20, 30)],
    "blocked": [(3,), (8,)],
}


@pytest.fixture
def db(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Durable]:
    """A data folder whose orders are on Spark, and no table of it small enough to come here as a whole."""
    monkeypatch.setattr(stored, "LOCAL_ROWS", 3)
    monkeypatch.setattr(reader, "FEW_ROWS", 0)
    with open_program(PROGRAM, FACTS, data=tmp_path / "data", memory=2**20, strategy="external") as db:
        db.store.memory = 0
        db.compact(["orders"])
    with open_program(data=tmp_path / "data", memory=0) as db:
        db.apply({"insert": {"orders": [(100, 1, 9, 50)]}, "delete": {"orders": [(0, 0, 0, 1)]}})
        yield db


def test_a_join_a_negation_a_recursion_and_an_aggregate(db: Durable, monkeypatch: pytest.MonkeyPatch) -> None:
    state = {name: set(rows) for name, rows in FACTS.items()}
    state["orders"] = state["orders"] - {(0, 0, 0, 1)} | {(100, 1, 9, 50)}
    judge = Judge(db.program, state)

    def refuse(self: Snapshot) -> set[Any]:
        raise AssertionError(f"all of {self.relation} is brought here")

    monkeypatch.setattr(Snapshot, "collect", refuse)
    for name in ("good", "spent"):
        rows = sorted(judge.state[name])
        asked = [*rows[:2], rows[-1], (3, 30), (1, 0)]
        found = [proof and judge.check(proof.json()) for proof in db.proofs(name, asked)]
        assert found == [(name, row) if row in judge.state[name] else None for row in asked]
    assert (proof := db.why("orders(100, x, 9, y)")) is not None and judge.check(proof.json()) == ("orders", (100, 1, 9, 50))
    goals = [parse_goal(db.program, text) for text in ("good(1, 30)", "good(3, 30)")]
    with db.reading(*goals) as reading:
        proofs = [reading.why(goal) for goal in goals]
    assert proofs[0] is not None and judge.check(proofs[0].json()) == ("good", (1, 30)) and proofs[1] is None


@pytest.mark.parametrize(
    ("limit", "said"), [("MOST_DERIVED", "more than 3 rows were derived on demand"), ("MOST_READ", "more than 3 rows")]
)
def test_a_proof_that_rests_on_too_much(db: Durable, monkeypatch: pytest.MonkeyPatch, limit: str, said: str) -> None:
    monkeypatch.setattr(reader, limit, 3)
    with pytest.raises(
        DataError, match=f"a proof of good is too far to seek: .*{said}; ask why a row holds that it is derived from"
    ) as refused:
        db.proofs("good", [(1, 30)])
    assert refused.value.code == "why"
    assert db.ask("good(1, 30)") == [(1, 30)], "it goes on"


MISSING = {
    "good(3, 30)": """
good(3, 30) does not hold
└─ good(k, c) :- bought(k, c), !blocked(k), spent(k, t), t > 10.   (program:14:1)
   └─ bought(3, 30), but !blocked(3) does not hold: there is blocked(3)""",
    "spent(1, 7)": """
spent(1, 7) does not hold
└─ spent(k, t) :- orders(_, k, _, _), t = sum a : { orders(_, k, _, a) }.   (program:11:1)
   └─ orders(_, 1, _, _), but 7 = sum a : { orders(_, 1, _, a) } does not hold: it is 95""",
    "bought(1, 77)": """
bought(1, 77) does not hold
└─ bought(k, c) :- orders(_, k, i, _), belongs(i, c).   (program:9:1)
   ├─ orders(_, 1, 0, _), but belongs(0, 77) does not hold
   │  ├─ belongs(i, c) :- within(i, c).   (program:6:1)
   │  │  └─ within(0, 77) is not there; near: within(0, 10)
   │  └─ belongs(i, c) :- within(i, d), belongs(d, c).   (program:7:1)
   │     └─ within(0, 10), but belongs(10, 77) does not hold
   ├─ orders(_, 1, 1, _), but belongs(1, 77) does not hold
   │  ├─ belongs(i, c) :- within(i, c).   (program:6:1)
   │  │  └─ within(1, 77) is not there; near: within(1, 10)
   │  └─ belongs(i, c) :- within(i, d), belongs(d, c).   (program:7:1)
   │     └─ within(1, 10), but belongs(10, 77) does not hold
   ├─ orders(_, 1, 2, _), but belongs(2, 77) does not hold
   │  ├─ belongs(i, c) :- within(i, c).   (program:6:1)
   │  │  └─ within(2, 77) is not there; near: within(2, 10)
   │  └─ belongs(i, c) :- within(i, d), belongs(d, c).   (program:7:1)
   │     └─ within(2, 10), but belongs(10, 77) does not hold
   └─ … and 6 more ways""",
    "orders(1, 2, 3, 4)": "orders(1, 2, 3, 4) is not there; near: orders(3, 3, 3, 4), orders(23, 2, 3, 6), orders(30, 2, 0, 4)",
}


def test_why_not(db: Durable) -> None:
    for goal, text in MISSING.items():
        found = db.why_not(goal, 2)
        assert found is not None
        assert without_derived(found.text()) == text.strip()
    assert db.why_not("good(1, 30)") is None
    asked = parse_goal(db.program, "good(3, 30)")
    with db.reading(asked) as state:
        assert state.why_not(asked).text() == MISSING["good(3, 30)"].strip()


def without_derived(text: str) -> str:
    """Rows near to ones that would be derived are only looked for where that is cheap."""
    return re.sub("; near: belongs.*", "", text)
