"""Sets and tuples in what Spark reads and writes: the same values as this process reads and writes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.test_sources import derive
from vigilog.core.sets import Set
from vigilog.engine.evaluate import run
from vigilog.executors.watch import Watch
from vigilog.language.check import check

COLUMNS = "k: symbol, s: set<(symbol, unsigned)>, d: set<float>"
BIG = 2**64 - 1
ROWS = {("a", Set([("x", BIG), ("y", 0)]), Set([-1.5, 2.0])), ("b", Set(), Set())}


def program(options: str, output: str) -> str:
    return f"""
.decl r({COLUMNS})
.input r({options})
.decl p({COLUMNS})
.output p{output}
p(k, s, d) :- r(k, s, d).
.decl q(x: symbol, n: unsigned, m: number)
.output q
q(x, n, m) :- r(_, s, d), member((x, n), s), m = size(union(d, {{1.0, 2.0}})).
.decl g(s: set<symbol>)
.output g
g(s) :- setof(k, r(k, _, _), s).
"""


def given(folder: Path, format_: str) -> str:
    if format_ == "parquet":
        table = pa.table(
            {
                "k": ["a", "b"],
                "s": pa.array(
                    [[{"n": "y", "u": 0}, {"n": "x", "u": BIG}, {"n": "y", "u": 0}], []],
                    pa.list_(pa.struct([("n", pa.string()), ("u", pa.decimal128(20, 0))])),
                ),
                "d": [[2.0, -1.5], []],
            }
        )
        pq.write_table(table, folder / "r.parquet")
        return "IO=parquet"
    if format_ == "json":
        (folder / "r.jsonl").write_text(
            f'{{"k": "a", "s": [["y", 0], ["x", {BIG}], ["y", 0]], "d": [2.0, -1.5]}}\n{{"k": "b", "s": [], "d": []}}\n', encoding="utf-8"
        )
        return "IO=json"
    (folder / "r.facts").write_text(f'a\t[["y",0],["x",{BIG}]]\t[2.0,-1.5]\nb\t[]\t[]\n', encoding="utf-8")
    return ""


@pytest.mark.parametrize("format_", ["parquet", "json", "file"])
def test_sets_are_read(spark: object, tmp_path: Path, format_: str) -> None:
    text = program(given(tmp_path, format_), "").replace("r()", "r")
    for engine in ("spark", *(("embedded",) if format_ != "parquet" else ())):
        found = {name: set(rows) for name, rows in derive(text, tmp_path, engine).items()}
        assert found["p"] == ROWS
        assert found["q"] == {("x", BIG, 3), ("y", 0, 3)}
        assert found["g"] == {(Set(["a"]),), (Set(["b"]),)}  # a group for each binding of the other columns


@pytest.mark.parametrize("output", ["", "(IO=json)", "(IO=csv)"])
def test_sets_are_written_alike(spark: object, tmp_path: Path, output: str) -> None:
    text = program(given(tmp_path, "file"), output).replace("r()", "r")
    written = {}
    for engine in ("spark", "embedded"):
        run(check(text).program, tmp_path, tmp_path / engine, engine, Watch())
        written[engine] = {path.name: path.read_text(encoding="utf-8") for path in sorted((tmp_path / engine).iterdir())}
    assert written["spark"] == written["embedded"]
