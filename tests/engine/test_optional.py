"""Columns of sources that may be null: relations of their own, values, rows left out; told before long work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vigilog
from vigilog.core.errors import DataError, ProgramError
from vigilog.engine.database import Database
from vigilog.folder.durable import Durable
from vigilog.language.check import check
from vigilog.language.printer import show

PROGRAM = """
.decl employees(employee: number, name: symbol)
.key employees(employee)
.input employees({options}optional="manager: number, phone: symbol")
.decl above(employee: number, boss: number)
.output above
above(e, m) :- employees_manager(e, m).
above(e, b) :- employees_manager(e, m), above(m, b).
.decl head(name: symbol)
.output head
head(n) :- employees(e, n), !employees_manager(e, _).
"""
PEOPLE: list[dict[str, Any]] = [
    {"employee": 1, "name": "ann", "manager": None, "phone": "12"},
    {"employee": 2, "name": "bob", "manager": 1, "phone": None},
    {"employee": 3, "name": "cid", "manager": 2},
]
SOURCES = ["json", "csv", "headless", "tabs"]


def write(path: Path, how: str, people: list[dict[str, Any]]) -> None:
    """People as a file of some kind."""
    if how == "json":
        path.write_text("".join(json.dumps(person) + "\n" for person in people))
        return
    columns = ["phone", "employee", "manager", "name"] if how == "csv" else ["employee", "name", "manager", "phone"]
    lines = [[str(person[column]) if person.get(column) is not None else "" for column in columns] for person in people]
    lines = [columns, *lines] if how == "csv" else lines
    path.write_text("".join(("\t" if how == "tabs" else ",").join(line) + "\n" for line in lines))


def options(path: Path, how: str) -> str:
    told = {"json": "IO=json, ", "csv": "IO=csv, ", "headless": "IO=csv, headers=false, ", "tabs": ""}[how]
    return f'{told}filename="{path}", '


def state(db: Database) -> dict[str, set[Any]]:
    return {name: db.rows(name) for name in ("employees", "employees_manager", "employees_phone")}


def expected(people: list[dict[str, Any]]) -> dict[str, set[Any]]:
    return {
        "employees": {(p["employee"], p["name"]) for p in people},
        "employees_manager": {(p["employee"], p["manager"]) for p in people if p.get("manager") is not None},
        "employees_phone": {(p["employee"], p["phone"]) for p in people if p.get("phone") is not None},
    }


@pytest.mark.parametrize("how", SOURCES)
def test_a_column_that_may_be_null_is_a_relation_of_its_own(tmp_path: Path, how: str) -> None:
    path = tmp_path / "people"
    write(path, how, PEOPLE)
    program = tmp_path / "p.dl"
    program.write_text(PROGRAM.format(options=options(path, how)))
    with vigilog.open(program, tmp_path, data=tmp_path / "data") as db:
        assert state(db) == expected(PEOPLE)
        assert db.view("above") == {(2, 1), (3, 2), (3, 1)} and db.view("head") == {("ann",)}
        in_step(db, tmp_path, how)
    with vigilog.open(data=tmp_path / "data") as again:
        assert again.verify().problems == []


def in_step(db: Durable, folder: Path, how: str, **told: str) -> None:
    """Every way of loading keeps the split in step, each in one transaction."""
    given: Any = {
        **{"json": {"IO": "json"}, "csv": {"IO": "csv"}, "headless": {"IO": "csv", "headers": "false"}, "tabs": {}}.get(how, {}),
        **told,
    }
    more, tx = folder / "more", db.tx
    bob = {"employee": 2, "name": "bob", "manager": None, "phone": "77"}
    write(more, how, [bob, {"employee": 4, "name": "dan", "manager": 3, "phone": None}])
    db.load("employees", more, upsert=True, **given)
    people = [PEOPLE[0], bob, PEOPLE[2], {"employee": 4, "name": "dan", "manager": 3}]
    assert state(db) == expected(people) and db.tx == tx + 1, "what is null now is gone"
    write(more, how, [{"employee": 5, "name": "eve", "manager": 1}])
    db.load("employees", more, **given)
    assert state(db) == expected([*people, {"employee": 5, "name": "eve", "manager": 1}])
    write(more, how, PEOPLE)
    db.sync("employees", more, **given)
    assert state(db) == expected(PEOPLE) and db.tx == tx + 3
    db.apply({"delete_key": {"employees": [[2]]}})
    assert state(db) == expected([PEOPLE[0], PEOPLE[2]]), "what is known of one who is gone goes, too"
    db.apply({"upsert": {"employees": [[3, "cyd"]]}})
    assert (3, 2) in db.rows("employees_manager"), "one who is renamed keeps what is known of him"
    db.sync("employees", more, **given)
    assert db.verify().problems == []


@pytest.mark.parametrize("how", SOURCES)
def test_a_value_for_null(tmp_path: Path, how: str) -> None:
    path = tmp_path / "people"
    write(path, how, [{"phone": "", **person, **({"phone": "?"} if person.get("phone") is None else {})} for person in PEOPLE])
    text = '.decl employees(employee: number, name: symbol, manager: number, phone: symbol) .input employees({}nulls="manager=0") .output employees'
    (tmp_path / "p.dl").write_text(text.format(options(path, how)))
    with vigilog.open(tmp_path / "p.dl", tmp_path) as db:
        assert db.rows("employees") == {(1, "ann", 0, "12"), (2, "bob", 1, "?"), (3, "cid", 2, "?")}


def test_nulls_are_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "people"
    write(path, "json", PEOPLE)
    text = f'.decl employees(employee: number, manager: number) .input employees(IO=json, filename="{path}") .output employees'
    (tmp_path / "p.dl").write_text(text)
    with pytest.raises(
        DataError, match=r'people:1: column manager .* optional="manager: number" makes a relation employees_manager .* nulls="manager=…"'
    ):
        vigilog.open(tmp_path / "p.dl", tmp_path)
    (tmp_path / "p.dl").write_text(text.replace("IO=json", "IO=json, nulls=skip"))
    with vigilog.open(tmp_path / "p.dl", tmp_path) as db:
        assert db.rows("employees") == {(2, 1), (3, 2)}


def test_a_printed_program_means_the_same() -> None:
    program = check(PROGRAM.format(options="")).program
    again = check(show(program)).program
    assert again == program and again.keys["employees_manager"] == (0,)
    declared = PROGRAM.format(options="").replace("manager: number, phone: symbol", "manager, phone: symbol")
    assert "employees_manager" in check(declared + ".decl employees_manager(employee: number, manager: number)").program.relations


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('.decl e(x: number) .input e(optional="m: number")', "e has no key, which optional needs"),
        ('.decl e(x: number, m: number) .key e(x) .input e(optional="m: number")', "e has the optional column m itself"),
        ('.decl e(x: number) .key e(x) .input e(optional="m")', "the type of the optional column m is not said"),
        ('.decl e(x: number) .key e(x) .input e(optional="m: numbr")', "numbr"),
        ('.decl e(x: number) .decl e_m(m: number) .key e(x) .input e(optional="m: number")', "e_m does not have the columns x, m"),
        ('.decl e(x: number) .input e(nulls="y=0")', "e has no column y"),
        ('.decl e(x: number) .input e(nulls="x=none")', "no value of its type"),
        (".decl e(x: number) .input e(of=f)", ".input f says nothing of e"),
    ],
)
def test_what_makes_no_sense_is_told(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        check(text + " .output e")


def test_rows_by_name_say_optional_columns_too(tmp_path: Path) -> None:
    """By whichever operation; what is not said stays, what is null goes."""
    (tmp_path / "p.dl").write_text(PROGRAM.format(options=""))
    with vigilog.open(tmp_path / "p.dl") as db:
        db.apply({"insert": {"employees": PEOPLE}})
        assert state(db) == expected(PEOPLE)
        db.apply({"upsert": {"employees": [{"employee": 2, "name": "rob", "phone": "9"}, {"employee": 3, "name": "cid", "manager": None}]}})
        people = [PEOPLE[0], {"employee": 2, "name": "rob", "manager": 1, "phone": "9"}, {"employee": 3, "name": "cid"}]
        assert state(db) == expected(people)
        db.apply({"update": {"employees": [{"old": people[1], "new": {**people[1], "manager": 3, "phone": None}}]}})
        assert db.rows("employees_manager") == {(2, 3)} and db.rows("employees_phone") == {(1, "12")}
        db.apply({"delete": {"employees": [PEOPLE[0], [2, "rob"]]}})
        assert state(db) == expected([{"employee": 3, "name": "cid"}])
        with pytest.raises(DataError, match="there is no column boss"):
            db.apply({"insert": {"employees": [{"employee": 7, "name": "x", "boss": 1}]}})
