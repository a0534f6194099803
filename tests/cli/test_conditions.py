"""Conditions on the command line: what refuses a transaction says because of which part of it, and the rounds of a data folder's triggers can be stated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vigilog.cli.main import app
from vigilog.core.errors import UsageError

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
"""
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
    ],
)
def test_a_refusal_has_a_cause(folder: Path, transaction: dict[str, Any], code: str, cause: Any) -> None:
    line = json.dumps(transaction) + "\n"
    _, plain, _ = vigilog("watch", str(folder / "p.dl"), "-F", str(folder), given=line)
    _, why, _ = vigilog("watch", str(folder / "p.dl"), "-F", str(folder), "--why", given=line)
    error = json.loads(why)["error"]
    found = error.pop("cause")
    assert error["code"] == code and error == json.loads(plain)["error"]
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
