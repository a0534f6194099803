"""Programs that change while their data stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, ProgramError
from vigilog.folder.opening import open_program

BASE = ".decl e(x: number)\n.input e\n"
SMALL = BASE + ".decl p(x: number)\n.output p\np(x) :- e(x), x < 3.\n"


def told(*changes: tuple[int, str, Delta]) -> list[tuple[int, str, Delta]]:
    return list(changes)


def test_changes_are_told_in_the_words_of_their_time(tmp_path: Path) -> None:
    """A view that is declared anew, with other columns: what it lost and what it gained are rows of different types."""
    with open_program(SMALL, {"e": [(1,)]}, data=tmp_path) as db:
        db.apply({"insert": {"e": [(2,), (7,)]}})
    with open_program(BASE + ".decl p(s: symbol)\n.output p\np(to_string(x)) :- e(x).\n", data=tmp_path, define=True) as db:
        db.apply({"delete": {"e": [(7,)]}})
        assert list(db.changes(0)) == told(
            (1, "p", Delta(plus=frozenset({(2,)}))),
            (2, "p", Delta(plus=frozenset({("1",), ("2",), ("7",)}), minus=frozenset({(1,), (2,)}))),
            (3, "p", Delta(minus=frozenset({("7",)}))),
        )
        db.drop("p")
        assert list(db.changes(3)) == told((4, "p", Delta(minus=frozenset({("1",), ("2",)}))))
        assert db.verify().fine


def test_facts_of_a_program_come_and_go_with_it(tmp_path: Path) -> None:
    with open_program(SMALL + "e(1). e(2).\n", data=tmp_path) as db:
        db.apply({"insert": {"e": [(0,)]}})
    with open_program(SMALL + "e(2). e(5).\n", data=tmp_path, define=True) as db:
        assert db.redefined == "- e(1).\n+ e(5)."
        assert db.rows("e") == {(0,), (2,), (5,)}
        assert db.redefinition == {"p": Delta(minus=frozenset({(1,)}))}
        assert db.verify().fine


def test_rows_stay_when_a_base_relation_gets_rules_beside_them(tmp_path: Path) -> None:
    with open_program(BASE + ".output e\n", {"e": [(1,)]}, data=tmp_path) as db:
        deltas = db.define("e(x + 1) :- e(x), x < 3.")
        assert deltas == {"e": Delta(plus=frozenset({(2,), (3,)}))}
        assert db.rows("e") == {(1,)} and db.view("e") == {(1,), (2,), (3,)}
        assert db.apply({"delete": {"e": [(1,)]}}) == {"e": Delta(minus=frozenset({(1,), (2,), (3,)}))}


def test_rows_that_would_have_no_place_are_kept(tmp_path: Path) -> None:
    with open_program(BASE + ".decl d(x: number)\n.output d\n", {"e": [(1,)], "d": [(9,)]}, data=tmp_path) as db:
        for text in (".decl e(x: symbol)", ".decl e(x: number, y: number)"):
            with pytest.raises(DataError) as refused:
                db.define(text)
            assert refused.value.code == "has-rows"
        assert (db.rows("e"), db.view("d"), db.tx) == ({(1,)}, {(9,)}, 0)
        db.apply({"delete": {"e": [(1,)]}})
        db.define(".decl e(x: symbol)")
        assert db.apply({"insert": {"e": [("a",)]}}) == {} and db.rows("e") == {("a",)}


def test_another_program_is_shown_and_confirmed(tmp_path: Path) -> None:
    with open_program(SMALL, {"e": [(1,), (2,)]}, data=tmp_path):
        pass
    changed = SMALL.replace("x < 3", "x < 2")
    with pytest.raises(DataError) as refused:
        open_program(changed, data=tmp_path)
    assert refused.value.code == "program-changed"
    assert refused.value.message.endswith("\n- p(x) :- e(x), x < 3.\n+ p(x) :- e(x), x < 2.")
    with open_program(changed, data=tmp_path, define=True) as db:
        assert db.redefinition == {"p": Delta(minus=frozenset({(2,)}))}
    with open_program(changed, data=tmp_path) as db:
        assert db.view("p") == {(1,)} and db.tx == 1


def test_a_view_that_was_not_kept_is_kept_with_other_columns(tmp_path: Path) -> None:
    """It had a table all the same, to be evaluated into, which must not stay as it was."""
    before = ".decl e(x: number)\n.decl p(x: number)\n.output p\np(x) :- e(x), x > 0.\np(2).\n"
    after = ".decl e(x: number)\n.decl p(x: number, y: number)\np(x, x + 1) :- e(x).\n"
    after += ".decl q(x: number, y: number)\n.output q\nq(x, y) :- p(x, y).\nq(x, y) :- p(x, z), q(z, y).\n"
    with open_program(before, {"e": [(1,)]}, data=tmp_path / "data") as db:
        assert db.view("p") == {(1,), (2,)}
    with open_program(after, data=tmp_path / "data", define=True) as db:
        assert db.view("q") == {(1, 2)}
        assert db.apply({"insert": {"e": [[2]]}})["q"].plus == {(1, 3), (2, 3)}


def test_errors_are_told_where_they_are_in_the_text_given(tmp_path: Path) -> None:
    with open_program(SMALL, {"e": [(1,)]}, data=tmp_path) as db:
        with pytest.raises(ProgramError) as refused:
            db.define("// a comment\n\n.decl q(x: number)\n.output q\nq(x) :-\n  ee(x).\n")
        assert refused.value.message.startswith("definition:6:3: error[unknown-relation]: there is no relation ee\n    ee(x).\n    ^")
        with pytest.raises(ProgramError) as refused:
            db.define("\np(x) :- e(y).\n", "more.dl")
        assert refused.value.message.startswith("more.dl:2:")
        with pytest.raises(ProgramError) as refused:  # what was right before, and is not any more
            db.define("\n\n\n.decl p(x: number, y: number)\n", "more.dl")
        assert refused.value.message.startswith("program:5:1: error[arity]") and "  p(x) :- e(x), x < 3.\n  ^" in refused.value.message
        assert db.tx == 0 and db.view("p") == {(1,)}
