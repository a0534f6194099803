"""Domains, updates and constrained relations on Spark: the same answers as embedded; many calls of a Python function are made by its workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vigilog.engine import sources
from vigilog.engine.watch import watch
from vigilog.folder.opening import open_program

TEXT = """
.domain s(kind=file, path="FOLDER")
.domain m(kind=python, module="numbers", beside="FOLDER")
.decl b(x: symbol, y: symbol)
.decl a(x: symbol) updatable
.output a
a(x) :- b(x, _), in(r, s:select_eq("f", "arg", x)), x = r.value.
.decl n(x: number)
.decl near(x: number, low: number, high: number)
.output near
near(x, p.low, p.high) :- n(x), in(p, m:around(x)).
.decl c(x: number) constrained
.output c
c(x) :- x >= 2, x <= 5.
.decl both(x: number)
.output both
both(x) :- n(x), c(x).
"""
MODULE = """
import os
from typing import NamedTuple

class Pair(NamedTuple):
    low: int
    high: int

def around(x: int) -> list[Pair]:
    if x == 13:
        raise ValueError("no luck")
    return [Pair(x - 1, x + 1), Pair(x, os.getpid())] if x > 900 else [Pair(x - 1, x + 1)]
"""


def test_the_same_as_embedded_and_by_workers(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr(sources, "MANY", 50)
    (tmp_path / "f.csv").write_text("arg,value\nb,b\n")
    (tmp_path / "numbers.py").write_text(MODULE)
    facts: dict[str, list[tuple[Any, ...]]] = {"b": [("a", "b"), ("b", "b")], "n": [(1,), (3,)]}
    told = {}
    for engine in ("embedded", "spark"):
        (tmp_path / "f.csv").write_text("arg,value\nb,b\n")
        with open_program(TEXT.replace("FOLDER", str(tmp_path)), facts, engine=engine) as db:
            (tmp_path / "f.csv").write_text("arg,value\na,a\n")
            lines = [
                {"refresh": ["s"]},
                {"insert": {"n": [[4]], "a": [["z"]]}, "delete": {"c": [{"args": ["x"], "where": "x = 3"}]}},
                {"insert": {"n": [[13]]}},
                {"insert": {"n": [[x] for x in range(100, 200)]}},
                {"delete": {"b": [["a", "b"]]}},
            ]
            told[engine] = list(watch(db, map(json.dumps, lines), snapshot=True))
            if engine == "spark":
                refused = next(watch(db, [json.dumps({"insert": {"n": [[x] for x in range(-50, 50)]}})]))
                assert refused["error"]["code"] == "domain" and "no luck" in refused["error"]["message"]
                plus = db.apply({"insert": {"n": [[x] for x in range(901, 1000)]}})["near"].plus
                assert {high for x, low, high in plus if x == low} - {os.getpid()}, "others were asked"
    assert told["spark"] == told["embedded"] and told["spark"][3]["error"]["domain"] == "m"
