"""Keys that statistics of files order otherwise than Python does, or cut off: rows are found by them all the same, here and by Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from vigilog.executors.spark import stored
from vigilog.folder import large
from vigilog.folder.opening import open_program
from vigilog.spark import snapshots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """
.decl item(key: symbol, exact: unsigned, n: number)
.input item
.key item(key, exact)
.decl near(key: symbol)
.decl found(key: symbol, exact: unsigned, n: number)
.output found
found(k, e, n) :- near(k), item(k, e, n).
"""
LONG = "x" * 3_000  # statistics keep its beginning
TEXTS = (
    "",
    " ",
    "a",
    "a ",
    "A",
    LONG,
    LONG + "a",
    LONG + "b",
    LONG + "\U0001f600",
    "\uffff",  # in UTF-16 behind all that is beyond it,
    "\U00010000",  # in UTF-8 before it
    "\U0001f600",
    "e\u0301",
    "\u00e9",
    "\x01",
    "null",
    "NaN",
)
NUMBERS = (0, 2**31, 2**63 - 1, 2**63, 2**64 - 1)  # as a signed number the last ones are below the first

Items = dict[tuple[str, int], int]


@pytest.mark.parametrize("where", ["looked up here", "looked up by Spark"])
def test_keys_whose_statistics_mislead(where: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LOCAL_ROWS", 0)
    if where == "looked up by Spark":
        monkeypatch.setattr(snapshots, "indexed", lambda *_: None)
    items: Items = {(text, number): 0 for text in TEXTS for number in NUMBERS}
    facts: dict[str, Any] = {"item": [(*key, n) for key, n in items.items()], "near": [(text,) for text in TEXTS[1::2]]}
    with open_program(PROGRAM, facts, data=tmp_path / "data", memory=0) as db:
        db.compact(["item"])
        assert "item" in db.large

        def check() -> None:
            rows = {(*key, n) for key, n in items.items()}
            assert db.rows("item") == rows and db.view("found") == {row for row in rows if (row[0],) in facts["near"]}

        check()
        some = [(text, number) for place, text in enumerate(TEXTS) for number in NUMBERS[place % 3 :: 2]]
        for text in (LONG, "\U00010000", "e\u0301"):
            assert db.ask(f'item("{text}", {2**63}, n)') == [(text, 2**63, 0)]
        db.apply({"upsert": {"item": [(*key, 1) for key in some]}})
        items |= dict.fromkeys(some, 1)
        check()
        db.apply({"delete_key": {"item": some[::2]}})
        items = {key: n for key, n in items.items() if key not in some[::2]}
        check()
        monkeypatch.setattr(large, "FEW_ROWS", 1)
        (tmp_path / "more.json").write_text("".join(json.dumps({"key": key, "exact": exact, "n": 2}) + "\n" for key, exact in some))
        db.load("item", tmp_path / "more.json", upsert=True)
        items |= dict.fromkeys(some, 2)
        check()
        assert db.verify().problems == []
