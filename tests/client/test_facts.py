"""Whether a fact covers a row, as the Python and the JavaScript client decide it: as the engine does, for all types; and what the engine writes is read again as the same set."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest

import vigilog.client
from tests.client.test_javascript import node
from vigilog.core.errors import DataError
from vigilog.core.facts import Fact, covers
from vigilog.core.type_names import type_named
from vigilog.core.values import Row, Type, Value
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import parsed_where, where
from vigilog.mediators.regions import minus
from vigilog.mediators.solver import Solver

NUMBERS = [
    "x >= 5, x != 6, !(x >= 8, x <= 9)",
    "x + 2 * y <= 20, x - y != 3",
    "x = (y + 3) % 4",
    "x % -3 = y / 2",
    "x * 4611686018427387904 <= 0",
    "!(x = 1, y >= 2)",
    "x = -3",
    "x >= -4, y = 2, x + y = -1",
    "true",
    "-x <= y",
]
OTHERS: list[tuple[str, str, list[Any]]] = [
    ("symbol", r'x >= "a", x < "b\"\\\n", x != "a\U0000200b"', ["a", 'a"', "b", 'b"', 'b"\\', "a\u200b", "\U0001f600", "\uffff", ""]),
    ("symbol", '!(x = "\U0001f600"), x > "\uffee"', ["\U0001f600", "\U0001f601", "\uffff", "a"]),
    ("float", "x > 0.1, x <= 1e3, x != 2.5", ["0.1", "0.10000000000000002", "1000.0", "1000.5", "2.5", "-1.0"]),
    ("decimal(8,3)", "x >= 1.5, x != 2.25", ["1.499", "1.500", "2.250", "99999.999"]),
    ("date", 'x >= "2026-02-28", x < "2026-03-02"', ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"]),
    ("timestamp", 'x > "2026-01-01T00:00:00Z"', ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z", "2025-12-31T23:59:59Z"]),
    ("boolean", "x = true", ["true", "false"]),
    ("unsigned", "x >= 18446744073709551614", ["18446744073709551615", "18446744073709551613", "0"]),
]


def cases() -> list[tuple[Fact, tuple[Type, ...], Row, bool]]:
    """Facts as the engine writes them, rows, and whether the engine has the row."""
    random, found = Random(7), list[tuple[Fact, tuple[Type, ...], Row, bool]]()
    number = type_named("number")
    for text in NUMBERS:
        columns = {"x": number, "y": number}
        rows: list[Row] = [
            *((random.randrange(-6, 12), random.randrange(-6, 12)) for _ in range(60)),
            (2**63 - 1, 2),
            (-(2**63), -1),
            (5, 2**62),
        ]
        found += decided(text, columns, rows)
    for name, text, values in OTHERS:
        type_ = type_named(name)
        found += decided(text, {"x": type_}, [(type_.parse(value),) for value in values])
    return found


def decided(text: str, columns: dict[str, Type], rows: list[Row]) -> list[tuple[Fact, tuple[Type, ...], Row, bool]]:
    found = []
    for part in parsed_where(text, columns):
        fact = Fact(tuple(columns), where(part))
        again = parsed_where(fact.where, columns)
        assert not minus([part], again, Solver()) and not minus(again, [part], Solver()), fact.where
        found += [(fact, tuple(columns.values()), row, holds(part, dict(zip(columns, row, strict=True)))) for row in rows]
    return found


def holds(part: Conjunction, values: dict[str, Value]) -> bool:
    """Whether something is left of a conjunction when each column has its value."""
    left: Conjunction | None = part
    for name, value in values.items():
        left = left and left.limited(name, left.runs[name].axis.only(value))
    assert left is None or not left.tests, "everything is known"
    return left is not None


def test_python_decides_as_the_engine() -> None:
    for fact, types, row, expected in cases():
        assert covers(fact, types, row) == expected, (fact.where, row)


@pytest.mark.apart
def test_javascript_decides_as_the_engine(tmp_path: Path) -> None:
    said = [
        {
            "fact": fact.json(),
            "columns": [{"name": name, "type": str(type_)} for name, type_ in zip(fact.args, types, strict=True)],
            "row": [
                str(cell) if isinstance(cell, int) and abs(cell) > 2**53 else type_.to_json(cell)
                for type_, cell in zip(types, row, strict=True)
            ],
            "expected": expected,
        }
        for fact, types, row, expected in cases()
    ]
    (tmp_path / "cases.json").write_text(json.dumps(said))
    script = f"""
import {{ readFileSync }} from "node:fs";
import {{ covers }} from "{Path(vigilog.client.__file__).parent}/javascript/vigilog.js";
for (const {{ fact, columns, row, expected }} of JSON.parse(readFileSync("{tmp_path}/cases.json"))) {{
  if (covers(fact, columns, row) !== expected) console.log(fact.where, JSON.stringify(row), expected);
}}
"""
    (tmp_path / "check.mjs").write_text(script)
    done = subprocess.run([*node(), str(tmp_path / "check.mjs")], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


@pytest.mark.parametrize("text", ["x ~ 3", "x >= ", "y >= 3", "x >= 3)", "x >= 3, ", "f(x) = 3", 'x = "a'])
def test_conditions_of_a_later_server_are_refused(text: str) -> None:
    with pytest.raises(DataError, match="cannot read"):
        covers(Fact(("x",), text), (type_named("number"),), (3,))
