"""Rows by the names of their columns, wherever rows are told, and answers that have names."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import vigilog
from vigilog.core.errors import DataError
from vigilog.engine.watch import watch

PROGRAM = """
.decl member(user: symbol, group: symbol)
.key member(user)
.decl price(item: symbol, day: date, amount: decimal(6,2))
.decl flag()
.decl in_group(group: symbol, user: symbol)
.output in_group
.output price
in_group(g, u) :- member(u, g).
"""
ANN, BOB = {"group": "g1", "user": "ann"}, {"user": "bob", "group": "g2"}


@dataclass
class Member:
    group: str
    user: str


@pytest.fixture(params=["memory", "folder"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    (tmp_path / "p.dl").write_text(PROGRAM)
    with vigilog.open(tmp_path / "p.dl", data=tmp_path / "data") if request.param == "folder" else vigilog.open(tmp_path / "p.dl") as db:
        yield db


def test_every_operation_takes_objects(db: Any) -> None:
    db.apply({"insert": {"member": [ANN, ("eve", "g9"), Member("g3", "cid")]}})
    assert db.view("in_group") == {("g1", "ann"), ("g9", "eve"), ("g3", "cid")}
    db.apply({"update": {"member": [{"old": ANN, "new": {**ANN, "group": "g5"}}]}, "upsert": {"member": [BOB]}})
    db.apply({"upsert": {"member": [{"user": "bob", "group": "g7"}]}, "delete_key": {"member": [{"user": "eve"}]}})
    db.apply({"delete": {"member": [{"user": "cid", "group": "g3"}]}})
    assert db.view("in_group") == {("g5", "ann"), ("g7", "bob")}
    assert db.what_if(insert={"member": [{"user": "zoe", "group": "g1"}]})["in_group"].plus == {("g1", "zoe")}
    with db.transaction() as tx:
        tx.insert("member", [Member("g1", "dan"), {"user": "flo", "group": "g1"}])
        tx.delete_key("member", [{"user": "ann"}])
        tx.update("member", [({"user": "bob", "group": "g7"}, ["bob", "g8"])])
        tx.insert("price", [{"day": datetime.date(2026, 1, 2), "item": "x", "amount": Decimal("1.5")}])
        tx.insert("flag", [{}])
    assert tx.changes["in_group"].plus == {("g1", "dan"), ("g1", "flo"), ("g8", "bob")}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [ANN, {"usr": "x", "group": "g"}],
            "row 2 of member: there is no column usr; did you mean user\\? A row of member has user, group",
        ),
        ([{"user": "x"}], "row 1 of member does not say group. A row of member has user, group"),
        ([{**ANN, "age": 3}], "there is no column age"),
        ([7], r'a list of lists, or of objects like {"user": "…", "group": "…"}'),
        ([{"user": "x", "group": 7}], "row 1 of member: 7 is not a symbol"),
    ],
)
def test_names_that_do_not_fit_are_told(db: Any, rows: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        db.apply({"insert": {"member": rows}})
    with pytest.raises(DataError, match="the key of member"):
        db.apply({"delete_key": {"member": [{"usr": "x"}]}})


def test_lines_of_watch_take_objects(db: Any) -> None:
    lines = ['{"insert": {"member": [{"group": "g1", "user": "ann"}]}}', '{"insert": {"member": [{"group": "g1"}]}}']
    first, second = watch(db, lines)
    assert first["views"]["in_group"]["plus"] == [["g1", "ann"]]
    assert second["error"] == {"code": "column", "message": "row 1 of member does not say user. A row of member has user, group"}


def test_answers_have_names_on_request(db: Any) -> None:
    db.apply({"insert": {"member": [ANN, BOB], "price": [("x", "2026-01-02", "1.5")]}})
    (row,) = db.ask('in_group("g1", u)', named=True)
    assert row == ("g1", "ann") and row.user == "ann" and row._asdict() == {"group": "g1", "user": "ann"}
    (other, _) = db.ask("member(u, g), g != u", named=True)
    assert (other.u, other.g) == ("ann", "g1")
    (price,) = db.view("price", named=True)
    assert price.amount == Decimal("1.50") and type(price).__annotations__ == {"item": str, "day": datetime.date, "amount": Decimal}


def test_facts_may_be_named() -> None:
    assert vigilog.evaluate(PROGRAM, {"member": [ANN, Member("g2", "bob")]}).relations["in_group"] == {("g1", "ann"), ("g2", "bob")}
