"""Conditions on the command line: what refuses a transaction says because of which part of it, and the rounds of a data folder's triggers can be stated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vigilog.cli.main import app
from vigilog.core.delta import Delta
from vigilog.core.errors import Refused, UsageError
from vigilog.engine.watch import watch
from vigilog.folder.opening import open_program

PROGRAM = """
.decl stock(item: symbol, n: number)
.input stock
.decl orders, gone(item: symbol, n: number)
.decl low(item: symbol, n: number)
low(i, n) :- stock(i, n), n > 0, n < 4.
.trigger low(insert=orders)
.decl more(item: symbol, n: number)
more(i, n + 1) :- orders(i, n), n < 30, !gone(i, _).
.trigger more(insert=orders)
.decl bad(item: symbol)
bad(i) :- stock(i, n), n < 0.
.constraint bad
.decl three(item: symbol, n: number)
three(i, n) :- stock(i, n), n = 3.
.trigger three(delete=orders)
.decl best(item: symbol, n: number)
.key best(item)
.decl twice(item: symbol, n: number)
twice(i, n) :- stock(i, m), m > 90, (n = 1 ; n = m).
.trigger twice(insert=best)
"""
WHY = {
    "constraint": ['bad("a")'],
    "conflict": ['low("c", 3)', 'three("c", 3)'],
    "cascade": ['more("e", 17)'],
    "key": ['twice("k", 1)', 'twice("k", 95)'],
}
MANY = {"insert": {"stock": [["pin", 1]]}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "stock.facts").write_text("nut\t-2\n")
    return tmp_path


def vigilog(*arguments: str, given: str | None = None) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(arguments), input=given)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("transaction", "code", "cause"),
    [
        ({"insert": {"stock": [["a", -1], ["b", 50]]}}, "constraint", {"insert": {"stock": [["a", -1]]}}),
        ({"insert": {"stock": [["c", 3]], "gone": [["d", 1]]}}, "conflict", {"insert": {"stock": [["c", 3]]}}),
        ({"insert": {"stock": [["e", 1]]}, "delete": {"gone": [["d", 1]]}}, "cascade", None),
        ({"insert": {"stock": [["k", 95], ["l", 50]]}}, "key", {"insert": {"stock": [["k", 95]]}}),
    ],
)
def test_a_refusal_has_a_cause(folder: Path, transaction: dict[str, Any], code: str, cause: Any) -> None:
    line = json.dumps(transaction) + "\n"
    _, plain, _ = vigilog("watch", str(folder / "p.dl"), "-F", str(folder), given=line)
    _, why, _ = vigilog("watch", str(folder / "p.dl"), "-F", str(folder), "--why", given=line)
    error = json.loads(why)["error"]
    found = error.pop("cause")
    assert error["code"] == code and error == json.loads(plain)["error"]
    assert [proof["literal"] for proof in error["why"]] == WHY[code]
    assert found == (cause or {"insert": {"stock": [["e", 1]], "orders": [["e", number] for number in range(1, 17)]}})


def test_a_data_folder_says_what_is_violated_and_takes_a_number_of_rounds(folder: Path) -> None:
    data = str(folder / "data")
    status, _, said = vigilog("init", str(folder / "p.dl"), "--data", data, "-F", str(folder))
    assert status == 0 and "warning[violated]: bad is violated by 1 row" in said
    status, told, _ = vigilog("tell", data, json.dumps(MANY))
    assert status == 1 and json.loads(told)["error"]["code"] == "cascade"
    status, told, _ = vigilog("tell", data, json.dumps(MANY), "--cascade", "40")
    assert status == 0 and json.loads(told)["tx"] == 1
    with pytest.raises(UsageError, match="give it to vigilog serve"):
        CliRunner().invoke(app, ["tell", "http://127.0.0.1:1", json.dumps(MANY), "--cascade", "40"], catch_exceptions=False)


def test_what_if_tells_alerts_triggered_rows_and_the_refusal(folder: Path) -> None:
    program = PROGRAM + '.alert low(key=item, message="{item}!")\n'
    (folder / "p.dl").write_text(program)
    given = (str(folder / "p.dl"), json.dumps({"insert": {"stock": [["a", 2]], "gone": [["a", 1]]}}), "-F", str(folder))
    status, told, _ = vigilog("what-if", *given)
    assert status == 0 and json.loads(told) == {
        "views": {},
        "alerts": [{"alert": "low", "state": "satisfied", "row": ["a", 2], "message": "a!"}],
        "triggered": {"orders": {"insert": [["a", 2]], "delete": []}},
    }
    status, told, _ = vigilog("what-if", given[0], json.dumps({"insert": {"stock": [["b", -1]]}}), *given[2:])
    error = json.loads(told)["error"]
    assert status == 1 and error["rows"] == [["b"]] and error["why"]
    with open_program(program, {"stock": [("nut", 9)]}) as db:
        would = db.what_if(insert={"stock": [("a", 2)], "gone": [("a", 1)]})
        assert would == {} and [report.row for report in would.alerts] == [("a", 2)]
        assert would.triggered == {"orders": Delta(frozenset({("a", 2)}))} and db.rows("orders") == set()
        with pytest.raises(Refused, match="bad is violated"):
            db.what_if(insert={"stock": [("b", -1)]})


def test_what_is_due_is_told_with_the_next_line_even_if_that_is_refused() -> None:
    program = ".decl a(x: number)\n.alert a(for=60)\n.decl no(x: number)\nno(x) :- a(x), x < 0.\n.constraint no\n"
    with open_program(program, {}) as db:
        now = [100.0]
        db.clock = lambda: now[0]

        def lines() -> Iterator[str]:
            for row in (1, -1, 2, 3):
                yield json.dumps({"insert": {"a": [[row]]}})
                now[0] += 50

        told = list(watch(db, lines()))
    said = [(answer["tx"], "error" in answer, [alert["row"] for alert in answer.get("alerts", [])]) for answer in told]
    assert said == [(1, False, []), (2, True, []), (3, False, [[1]]), (4, False, [])]
    with open_program(program, {}) as db:
        now = [100.0]
        db.clock = lambda: now[0]
        db.take({"insert": {"a": [(1,)]}})
        now[0] += 100
        assert [answer.get("alerts", [])[0]["row"] for answer in watch(db, ['{"insert": {"a": [[-1]]}}'])] == [[1]]


def test_what_held_long_enough_is_reported_before_it_ceases() -> None:
    """Although nobody looked at the clock in between."""
    with open_program(".decl a(x: number)\n.alert a(for=60)\n", {}) as db:
        told: list[tuple[str, Any]] = []
        db.step.listeners.append(lambda outcome: told.extend((report.state, report.row) for report in outcome.alerts))
        now = [100.0]
        db.clock = lambda: now[0]
        db.take({"insert": {"a": [(1,)]}})
        now[0] += 61
        db.take({"delete": {"a": [(1,)]}})
        assert told == [("satisfied", (1,)), ("ceased", (1,))]


REASONS = """
.decl a, b(x: number)
.decl k(x: number, y: symbol)
.key k(x)
.decl any()
any() :- a(x), b(x).
.decl seen()
seen() :- any().
.alert any(mode=resatisfiable)
.alert seen(mode=resatisfiable, unfold=true)
.decl five(x: number)
five(x) :- k(x, "five").
.trigger five(insert=b)
.decl two(x: number)
two(x) :- b(x).
.trigger two(delete_key=k, priority=1)
"""


@pytest.mark.parametrize("strategy", ["auto", "external", "materialized", "counted", "auxiliary"])
def test_what_is_reported_again_has_the_new_proof(strategy: str) -> None:
    with open_program(REASONS, {"a": [(1,), (2,)], "b": [(1,)]}, strategy=strategy) as db:
        (answer,) = watch(db, ['{"insert": {"b": [[2]], "k": [[7, "six"]]}}'], why=True)
    for said in answer["alerts"]:
        assert (said["state"], said["proofs"], said["cause"]) == ("again", 1, {"insert": {"b": [[2]]}})
        rule = f"{said['alert']}() :- a(x), b(x)."
        assert said["why"] == {
            "literal": f"{said['alert']}()",
            "rule": rule,
            "place": said["why"]["place"],
            "because": [{"literal": "a(2)"}, {"literal": "b(2)"}],
        }


def test_triggered_rows_have_the_proofs_of_their_rounds() -> None:
    """Also those whose condition does not hold any more when everything is done."""
    with open_program(REASONS) as db:
        (answer,) = watch(db, ['{"insert": {"k": [[8, "five"]]}}'], why=True)
    (inserted,), (deleted,) = (answer["triggered"][name]["why"] for name in ("b", "k"))
    assert (inserted["trigger"], inserted["row"], inserted["cause"]) == ("five", [8], {"insert": {"k": [[8, "five"]]}})
    assert inserted["why"]["because"] == [{"literal": 'k(8, "five")'}]
    assert (deleted["trigger"], deleted["row"], deleted["cause"]) == ("two", [8], {"insert": {"b": [[8]]}})
    assert deleted["why"]["because"] == [{"literal": "b(8)"}]


@pytest.mark.parametrize("strategy", ["auto", "external", "materialized", "auxiliary"])
def test_a_recursion_that_breaks_a_key_is_explained(strategy: str) -> None:
    """Its proofs need an index of a work table, which is in a database of its own for who only asks."""
    program = """
.decl b(x: number, y: number)
.decl k(x: number, y: number)
.key k(x)
.decl reached(x: number, y: number)
reached(x, y) :- b(x, y).
reached(x, y) :- b(x, z), reached(z, y).
.trigger reached(upsert=k)
"""
    with open_program(program, {"b": [(0, 1), (1, 2)]}, strategy=strategy) as db:
        for _ in range(3):
            db.what_if(delete={"b": [(0, 1)]})
            assert db.ask("reached(0, y)") == [(0, 1), (0, 2)]
            (answer,) = watch(db, ['{"insert": {"b": [[4, 0]]}}'], why=True)
            error = answer["error"]
            assert (error["code"], error["triggers"], error["cause"]) == ("key", ["reached"], {"insert": {"b": [[4, 0]]}})
            assert [proof["literal"] for proof in error["why"]] == ["reached(4, 0)", "reached(4, 1)"]
