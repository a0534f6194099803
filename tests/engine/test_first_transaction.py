"""The first transaction of a kind waits for nothing: when a database is opened, SQLite has all tables, indexes and statements that transactions need."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import vigilog
from tests.engine.test_changes import WISHES, applied, opened
from tests.golden import CHANGES, Case, cases
from tests.treatments import taken, treated

CASES = treated([case for case in taken(cases(CHANGES), 1 / 3) if case.path.stem != "many-rows-at-once"], WISHES)
SHORT = 300  # characters of a transaction; many rows, as of groups, come by statements for many


class Counting(sqlite3.Connection):
    """A connection that notes what it compiles: SQLite asks for permission then, and only then."""

    compiled: list[str]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        Counting.compiled = []
        self.set_authorizer(self._permit)

    def _permit(self, action: int, *what: str | None) -> int:
        Counting.compiled.append(f"{action} {' '.join(filter(None, what))}")
        return sqlite3.SQLITE_OK


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    connect = partial(sqlite3.connect, factory=Counting)
    monkeypatch.setattr("vigilog.executors.embedded.tables.sqlite3.connect", connect)
    yield


@pytest.mark.parametrize(("case", "strategy"), CASES, ids=str)
def test_no_statement_is_compiled_in_a_transaction(case: Case, strategy: str, tmp_path: Path) -> None:
    with closing(opened(case, tmp_path, strategy)) as database:
        for step in case.steps:
            Counting.compiled.clear()
            applied(database, step.transaction)
            if len(step.transaction) > SHORT:
                continue
            if step.refused:  # who refuses looks for proofs, in tables that are gone afterwards
                return
            assert Counting.compiled == []


PROGRAM = """
.decl edge(x: number, y: number)
.input edge
.decl closure(x: number, y: number)
.output closure
.decl back(y: number, x: number)
.output back
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
back(y, x) :- edge(x, y).
"""


@pytest.mark.parametrize("goal", ["closure(x, y)", "closure(x, 3)", "back(x, 1)"])
def test_a_question_leaves_the_statements_of_transactions_compiled(goal: str) -> None:
    with vigilog.open(PROGRAM, {"edge": [(1, 2), (2, 3)]}, strategy="external") as database:
        list(database.ask(goal))
        Counting.compiled.clear()
        database.apply({"insert": {"edge": [(3, 1)]}})
        assert [said for said in Counting.compiled if "aside" not in said] == []
