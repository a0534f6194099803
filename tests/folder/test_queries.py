"""Goals that are followed, beside all else that a database does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import GRAPH
from vigilog.core.errors import DataError
from vigilog.folder.opening import open_program

GOAL = 'edge(x, y), !edge(y, "c")'


def test_what_was_followed_is_no_change_of_the_program(tmp_path: Path) -> None:
    """The outbox has words of queries that nobody follows any more: they are left out, before and after a change of definitions."""
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        db.apply({"insert": {"edge": [("b", "c")]}})
        view = db.follow(GOAL).view
        db.apply({"insert": {"edge": [("c", "d")]}})
        assert {name for _, name, _ in db.changes(0)} == {"closure"}
        assert db.verify().problems == []
        db.unfollow(view)
        assert {name for _, name, _ in db.changes(0)} == {"closure"}
        db.follow(GOAL)
        db.apply({"insert": {"edge": [("d", "e")]}})
        db.define(".decl pair(x: symbol) .output pair pair(x) :- edge(x, _).")
        assert {name for _, name, _ in db.changes(0)} == {"closure", "pair"}
        assert db.verify().problems == []


def test_a_query_is_not_asked_for_by_another(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        view = db.follow(GOAL).view
        assert view not in db.outputs
        with pytest.raises(DataError, match="there is no relation"):
            db.reads(f"{view}(x, y)")


def test_queries_survive_a_restart_and_a_change_of_definitions(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        found = db.follow(GOAL)
    with open_program(data=tmp_path / "data") as db:
        assert db.follow(GOAL) == found, "the same view, since the same transaction"
        db.define(".decl pair(x: symbol) .output pair pair(x) :- edge(x, _).")
        assert db.follow(GOAL) == found
        db.drop("pair")
        assert db.verify().problems == []


def test_a_limit_concerns_new_queries_only(tmp_path: Path) -> None:
    with open_program(GRAPH, {"edge": [("a", "b")]}, data=tmp_path / "data") as db:
        found = db.follow('edge("a", y), edge(y, z)', most=1)
        assert db.follow('edge("b", y), edge(y, z)', most=1).view == found.view, "it differs in a constant alone"
        assert db.follow('closure("a", y)', most=1).view == "closure"
        with pytest.raises(DataError, match="1 queries are followed already"):
            db.follow(GOAL, most=1)
