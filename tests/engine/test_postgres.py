"""Domains over a real PostgreSQL: what is pushed down, types, statements, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import PASSWORD, USER, Postgres
from vigilog.core.errors import ProgramError
from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.folder.opening import open_program

pytestmark = pytest.mark.apart

PROGRAM = """
.domain pg(kind=sql, url="URL", user="gardener", password="${GARDEN_PASSWORD}", nulls=skip, max_rows=50,
    query.like="SELECT name, level::bigint FROM med.person WHERE name LIKE :p || '%' AND 'a:b' <> name")
.table pg:like(name: symbol, level: number)
.decl who(x: symbol)
.decl known(x: symbol, level: number, born: date, rate: decimal(6, 2), well: boolean, id: symbol, seen: timestamp, f: float)
.output known
known(x, r.level, r.born, r.rate, r.well, r.id, r.seen, r.f) :- who(x), in(r, pg:select_eq("med.person", "name", x)).
.decl above(x: symbol, y: symbol)
.output above
above(x, r.name) :- who(x), in(r, pg:select_gt("med.person", "name", x)).
.decl like(x: symbol, level: number)
.output like
like(r.name, r.level) :- who(x), in(r, pg:query("like", x)).
.decl absent(x: symbol)
.output absent
absent(x) :- who(x), !in(_, pg:select_eq("med.person", "name", x)).
"""


@pytest.fixture
def people(database: Postgres, monkeypatch: pytest.MonkeyPatch) -> Postgres:
    monkeypatch.setenv("GARDEN_PASSWORD", PASSWORD)
    database.run("""
DROP SCHEMA IF EXISTS med CASCADE; CREATE SCHEMA med;
CREATE TABLE med.person (name varchar(20), level int, born date, rate numeric(6, 2), well boolean, id uuid, seen timestamptz, f real);
INSERT INTO med.person VALUES
 ('ann', 1, '2001-02-03', 1.50, true, '00000000-0000-0000-0000-000000000001', '2020-01-01 12:00+02', 0.5),
 ('Zoe', 2, '1999-12-31', 2.25, false, '00000000-0000-0000-0000-000000000002', '2020-01-01 12:00+00', 1),
 ('100%', 3, '1999-12-31', 0, false, '00000000-0000-0000-0000-000000000003', '2020-01-01 12:00+00', 2),
 ('eve', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE med.many AS SELECT generate_series(1, 1000) AS x;
""")
    return database


def opened(folder: Path, database: Postgres, text: str, facts: dict[str, list[tuple[Any, ...]]]) -> Database:
    (folder / "p.dl").write_text(text.replace("URL", database.url.removeprefix("jdbc:")))
    return open_program(folder / "p.dl", facts)


def test_tables_are_asked_with_what_is_known(people: Postgres, tmp_path: Path) -> None:
    with opened(tmp_path, people, PROGRAM, {"who": [("ann",), ("eve",), ("b",), ("100%",)]}) as db:
        shown = next(iter(watch(db, [], snapshot=True)))["views"]
        assert shown["known"]["plus"] == [
            ["100%", 3, "1999-12-31", "0.00", False, "00000000-0000-0000-0000-000000000003", "2020-01-01T12:00:00.000000Z", 2.0],
            ["ann", 1, "2001-02-03", "1.50", True, "00000000-0000-0000-0000-000000000001", "2020-01-01T10:00:00.000000Z", 0.5],
        ]
        assert db.view("above") == {("100%", "Zoe"), ("100%", "ann")}, "by characters: Z is before a; what has a null is skipped"
        assert db.view("like") == {("ann", 1), ("100%", 3)}
        assert db.view("absent") == {("b",), ("eve",)}, "a row that is skipped is none"
        people.run("UPDATE med.person SET level = 7 WHERE name = 'ann'")
        (refreshed,) = watch(db, [json.dumps({"refresh": ["pg"]})])
        assert refreshed["views"]["like"] == {"plus": [["ann", 7]], "minus": [["ann", 1]]}
        people.run("ALTER TABLE med.person RENAME TO gone")
        down, other = watch(db, [json.dumps({"refresh": ["pg"]}), json.dumps({"delete": {"who": [["b"]]}})])
        assert down["error"]["code"] == "domain" and down["error"]["domain"] == "pg"
        assert other["views"]["absent"] == {"plus": [], "minus": [["b"]]}, "what asks nobody goes on"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('pg:all("med.persn")', "there is no table med.persn"),
        ('pg:select_eq("med.person", "nam", "x")', "did you mean name"),
        ('pg:select_eqq("med.person", "name", "x")', "did you mean select_eq"),
        ('pg:query("likee", "x")', "did you mean like"),
        ('pg:all("med.many")', "gives more rows than max_rows, which is 50"),
    ],
)
def test_what_is_wrong_is_named(people: Postgres, tmp_path: Path, call: str, message: str) -> None:
    text = PROGRAM.partition(".decl")[0] + f".decl p()\n.output p\np() :- in(_, {call})."
    with pytest.raises(Exception, match=message) as raised:
        opened(tmp_path, people, text, {})
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("wrong", ["password", "port"])
def test_a_database_that_is_not_there(people: Postgres, tmp_path: Path, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PROGRAM
    if wrong == "password":
        monkeypatch.setenv("GARDEN_PASSWORD", "rose-secret")
    else:
        text = text.replace("URL", "postgresql://127.0.0.1:1/none")
    with pytest.raises(ProgramError) as raised:
        opened(tmp_path, people, text, {"who": []})
    assert raised.value.findings[0].code == "domain" and PASSWORD not in str(raised.value) and "rose-secret" not in str(raised.value)
    assert USER in str(raised.value) or wrong == "port"
