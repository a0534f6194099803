"""Constrained and updatable relations in a database: transactions, boxes that ordinary rules read, what is withdrawn, what is refused, a data folder that is opened again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.mediators.test_algorithms import CASES
from vigilog.core.errors import DataError, ProgramError, UsageError
from vigilog.core.named import named_answer
from vigilog.engine.database import Database
from vigilog.engine.updates import overrides
from vigilog.engine.watch import watch
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.folder.verify import verify
from vigilog.language.check import check
from vigilog.mediators.view import Change

OVERLAP = """
.decl a(x: number) constrained
.decl c(x: number) constrained
.decl n(x: number)
.input n
.decl c_n(x: number)
.decl rest(x: number)
.decl many(k: number)
.output a
.output c_n
.output rest
.output many
a(x) :- x <= 3.
a(x) :- x <= 5.
c(x) :- a(x), x >= 2.
c_n(x) :- n(x), c(x).
rest(x) :- n(x), !c(x).
many(k) :- k = count : { n(x), c(x) }.
"""


def fact(text: str, *args: str) -> dict[str, Any]:
    return {"args": list(args or ("x",)), "where": text}


def lines(db: Database, *transactions: dict[str, Any]) -> list[dict[str, Any]]:
    return list(watch(db, [json.dumps(one) for one in transactions]))


@pytest.mark.parametrize("deletion", ["auto", "dred", "recompute"])
@pytest.mark.parametrize("name", [name for name in CASES if name != "aside"])
def test_the_cases_of_the_paper(name: str, deletion: str) -> None:
    text, steps = CASES[name]
    program = check(text).program
    told = check(text + "".join(f" .output {name}" for name in program.relations)).program
    with Database(told, {}, deletion=deletion) as db:
        for transaction, expected in steps:
            columns = {name: list(declaration.columns) for name, declaration in program.relations.items()}
            given = {
                operation: {
                    relation: [{"args": columns[relation], **one} if isinstance(one, dict) else one for one in facts]
                    for relation, facts in by.items()
                }
                for operation, by in transaction.items()
            }
            (answer,) = lines(db, given)
            shown = {
                relation: {side: [one["where"] for one in change[side]] for side in ("plus", "minus")}
                for relation, change in answer["views"].items()
            }
            assert shown == expected


@pytest.mark.parametrize("strategy", ["auto", "external", "materialized", "counted"])
def test_ordinary_rules_read_constrained_relations(strategy: str) -> None:
    with Database(check(OVERLAP).program, {"n": [(x,) for x in range(10)]}, strategy) as db:
        assert db.view("c_n") == {(2,), (3,), (4,), (5,)} and db.view("rest") == {(0,), (1,), (6,), (7,), (8,), (9,)}
        deleted, inserted, both = lines(
            db,
            {"delete": {"a": [fact("x >= 3, x <= 4")]}},
            {"insert": {"a": [fact("y >= 4, y <= 8", "y")], "n": [[100]]}},
            {"delete": {"a": [fact("x = 7")]}, "insert": {"a": [fact("x >= 6, x <= 7")]}},
        )
        assert deleted["views"] == {
            "a": {"plus": [], "minus": [fact("x >= 3, x <= 4")]},
            "c_n": {"plus": [], "minus": [[3], [4]]},
            "rest": {"plus": [[3], [4]], "minus": []},
            "many": {"plus": [[2]], "minus": [[4]]},
        }
        assert inserted["views"]["c_n"]["plus"] == [[4], [6], [7], [8]] and inserted["views"]["rest"]["plus"] == [[100]]
        assert both["views"] == {}


UPDATABLE = """
.decl e(x: symbol, y: symbol)
.decl c(x: symbol, y: symbol) updatable
.output c
c(x, y) :- e(x, y).
c(x, y) :- e(x, z), c(z, y).
"""


@pytest.mark.parametrize("strategy", ["external", "materialized", "auto"])
def test_the_latest_update_of_a_row_decides(strategy: str) -> None:
    with Database(check(UPDATABLE).program, {"e": [("a", "b"), ("b", "c")]}, strategy) as db:
        found = lines(
            db,
            {"delete": {"c": [["b", "c"]]}},  # what depends on it goes, too
            {"delete": {"e": [["b", "c"]]}},
            {"insert": {"e": [["b", "c"]]}},  # what was deleted stays out when a source brings it
            {"insert": {"c": [["b", "c"], ["c", "z"]]}},
            {"withdraw": [2]},
            {"withdraw": [1]},
        )
        assert [line["views"].get("c") for line in found] == [
            {"plus": [], "minus": [["a", "c"], ["b", "c"]]},
            None,
            None,
            {"plus": [["a", "c"], ["a", "z"], ["b", "c"], ["b", "z"], ["c", "z"]], "minus": []},
            {"plus": [], "minus": [["a", "c"], ["b", "c"]]},
            {"plus": [["a", "c"], ["b", "c"]], "minus": []},
        ]
        assert overrides(db) == [{"id": 3, "tx": 4, "relation": "c", "insert": ["c", "z"]}]


def test_what_is_refused_changes_nothing() -> None:
    with Database(check(OVERLAP).program, {"n": [(1,)]}) as db:
        before = db.view("a")
        for transaction, code in (
            ({"insert": {"a": [fact("x >=")]}}, "where"),
            ({"insert": {"a": [fact("y = 1")]}}, "where"),
            ({"insert": {"a": [fact("x * x = 4")]}}, "where"),
            ({"insert": {"a": [{"args": ["x", "y"], "where": "x = 1"}]}}, "where"),
            ({"insert": {"n": [fact("x = 1")]}}, "json"),
            ({"insert": {"a_updates": [[1, 1, True, "x = 1"]]}}, "derived"),
            ({"insert": {"c_n": [[1]]}}, "derived"),
            ({"withdraw": [7]}, "absent"),
            ({"upsert": {"a": [[1]]}}, "operation"),
            ({"delete": {"a": [fact("x = 1")]}, "insert": {"n": [["text"]]}}, "value"),
        ):
            (answer,) = lines(db, transaction)
            assert answer["error"]["code"] == code, answer
        assert db.apply({"delete": {"a": [fact("x = 1")]}}, dry_run=True).keys() == {"a"}
        assert db.view("a") == before and overrides(db) == []


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("a(x) :- x * x > 2.", "multiplies variables"),
        ("a(x) :- m(x), !a2(x). .decl a2(x: number) constrained a2(x) :- x > 1.", "negates a2"),
        ("m(x) :- a(x).", "x has no values to take"),
        (".decl f(x: float) constrained f(x) :- x + 1.0 > 2.0.", "computes with a float"),
        ("a(x) :- m(x). m(x) :- n(x), a(x). .decl n(x: number)", "depends on m"),
    ],
)
def test_programs_that_are_refused(rules: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Database(check(f".decl a(x: number) constrained .decl m(x: number) {rules}").program, {}).close()


def test_straight_deletion_needs_supports() -> None:
    with pytest.raises(UsageError, match="not ground"):
        Database(check(CASES["ring"][0]).program, {}, deletion="straight")


def test_a_data_folder_remembers_what_was_told(tmp_path: Path) -> None:
    rows = {"n": [(x,) for x in range(10)]}
    with open_program(OVERLAP, rows, data=tmp_path) as db:
        db.apply({"delete": {"a": [fact("x >= 3, x <= 4")]}})
        first = {name: db.view(name) for name in ("a", "c_n", "rest", "many")}
    with open_program(data=tmp_path) as db:
        assert {name: db.view(name) for name in first} == first
        changes = db.apply({"withdraw": [1]})  # type: ignore[dict-item]  # it names no relations
        assert changes["a"].plus == {("x >= 3, x <= 4",)} and changes["c_n"].plus == {(3,), (4,)}
        assert [change.delta.plus for change in db.changes_of("a", 1)] == [{("x >= 3, x <= 4",)}]


@pytest.mark.parametrize("by", ["reference", "embedded"])
def test_a_data_folder_verifies_constrained_relations(tmp_path: Path, by: str) -> None:
    with open_program(OVERLAP, {"n": [(x,) for x in range(10)]}, data=tmp_path) as db:
        db.apply({"delete": {"a": [fact("x >= 3, x <= 4")]}})
        db.apply({"insert": {"a": [fact("x >= 4, x <= 8")], "n": [[100]]}})
        db.apply({"withdraw": [1]})  # type: ignore[dict-item]  # it names no relations
        assert isinstance(db, Durable) and db.mediation is not None
        found = verify(db, by)
        assert not found.problems and {"view a", "changes of a since 0", "view c", "view c_n"} <= {*found.checked}
        db.mediation.algorithm.change(Change({"a": {("update", 9): db.mediation.region_of("a", ["x = 50"])}}))
        assert verify(db, by).problems == ["view a: x = 50 should not be there", "view c: x = 50 should not be there"]


def test_rows_that_do_not_bound_a_relation_are_refused() -> None:
    text = ".decl d(x: number, y: number) constrained d(x, y) :- x < y. .decl m(x: number, y: number) .decl k(x: number) .output k k(x) :- m(x, y), d(x, y)."
    with pytest.raises(DataError, match="without bounds"):
        Database(check(text).program, {})


def test_what_was_only_tried_is_forgotten_with_its_boxes() -> None:
    """The first transaction is tried only, the second refused, the third kept: ordinary rules read the boxes that are there."""
    told = {"delete": {"a": [{"args": ["x"], "where": "x = 3"}]}}
    with Database(check(OVERLAP).program, {"n": [(3,)]}) as db:
        tried = db.apply(told, dry_run=True)
        with pytest.raises(DataError):
            db.apply({**told, "insert": {"n": [["no number"]]}})
        assert db.apply(told) == tried


MIXED = """
.decl b(x: number) constrained
.decl a(x: number) constrained
.decl c(x: number) constrained
.decl d(x: number) constrained
.output a
.output c
.output d
b(x) :- x >= 0, x <= 9.
a(x) :- b(x).
a(y) :- a(x), y = (x + 1) % 10, x >= 0, x <= 9.
c(x) :- a(x), x >= 3.
c(x) :- b(x), x <= 1.
d(x) :- b(x), x >= 8.
"""


def test_each_relation_has_the_algorithm_that_fits(tmp_path: Path) -> None:
    with open_program(MIXED, {}, data=tmp_path) as db:
        assert db.mediation is not None
        given = [{"delete": {"b": [fact("x >= 1")]}}, {"delete": {"a": [fact("x = 4")]}}, {"withdraw": [1]}]
        first, second, third = watch(db, map(json.dumps, given), stats=True)
        assert first["stats"]["deletion"]["of"] == {"a": "dred", "b": "straight", "c": "straight", "d": "straight"}
        assert first["views"] == {
            "c": {"plus": [], "minus": [fact("x = 1")]},
            "d": {"plus": [], "minus": [fact("x >= 8, x <= 9")]},
        }
        assert second["views"]["c"] == {"plus": [], "minus": [fact("x >= 4, x <= 9")]}
        assert {name: change["plus"] for name, change in third["views"].items()} == {
            "a": [fact("x >= 5, x <= 9")],
            "c": [fact("x = 1"), fact("x >= 5, x <= 9")],
            "d": [fact("x >= 8, x <= 9")],
        }
        shown = db.mediation.supports().splitlines()
        assert shown[0].startswith("// a is kept as a set") and "d(x) :- x >= 8, x <= 9. // <6, <1>>" in shown
        assert verify(db).problems == []
        assert db.view("c", 0) == {("x >= 0, x <= 1",), ("x >= 3, x <= 9",)}


def test_facts_stand_beside_rows_that_are_proved_and_named() -> None:
    with Database(check(OVERLAP).program, {"n": [(1,), (4,)]}) as db:
        given = [{"delete": {"a": [fact("x = 4")]}}, {"withdraw": [1]}]
        deleted, withdrawn = watch(db, map(json.dumps, given), why=True)
        assert deleted["views"]["a"] == {"plus": [], "minus": [fact("x = 4")], "why": {"plus": [], "minus": []}}
        assert len(deleted["views"]["c_n"]["why"]["minus"]) == 1
        assert withdrawn["views"]["c_n"]["plus"] == [[4]], "what is only tried for its reasons takes no number"
        named = named_answer(deleted, db.columns)["views"]
        assert named["a"]["minus"] == [fact("x = 4")] and named["c_n"]["minus"] == [{"x": 4}]
        assert db.columns_of("a(x)") == ("x",)


def test_proofs_are_of_rows() -> None:
    with Database(check(OVERLAP).program, {"n": [(1,)]}) as db:
        with pytest.raises(DataError, match="proofs are of rows, and c is constrained"):
            db.why("c(3)")
        with pytest.raises(DataError, match="c is constrained"):
            db.why_not("c(77)")


TWICE = """
.decl n(x: number)
.decl m(x: number)
.decl other(x: number)
.decl a(x: number) constrained
.output a
a(x) :- n(x).
a(x) :- m(x).
"""


@pytest.mark.parametrize(("deletion", "touched", "rederived"), [("straight", 1, 0), ("dred", 2, 1), ("recompute", None, 0)])
def test_stats_are_those_of_one_transaction(deletion: str, touched: int | None, rederived: int) -> None:
    with Database(check(TWICE).program, {"n": [(1,), (2,)], "m": [(1,)]}, deletion=deletion) as db:
        given = [{"delete": {"n": [[1]]}}, {"insert": {"other": [[7]]}}, {"delete": {"n": [[2]]}}]
        first, unconcerned, gone = (line["stats"] for line in watch(db, map(json.dumps, given), stats=True))
        assert first["deletion"]["algorithm"] == deletion and first["solved"]["z3"] == 0
        assert touched is None or first["deletion"] == {"algorithm": deletion, "touched": touched, "rederived": rederived}
        assert unconcerned["deletion"] == {"algorithm": deletion, "touched": 0, "rederived": 0}
        assert unconcerned["solved"] == {"own": 0, "z3": 0}
        assert gone["deletion"]["rederived"] == 0
