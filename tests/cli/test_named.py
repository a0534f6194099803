"""`--named`: rows as objects of JSON, wherever a command prints rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.test_cli import vigilog

PROGRAM = """
.decl stock(item: symbol, amount: number, price: decimal(5,2))
.key stock(item)
.decl level(item: symbol, amount: number, price: decimal(5,2))
.key level(item)
.output level
level(i, n, p) :- stock(i, n, p).
"""
BOLT, NUT = ({"item": item, "amount": amount, "price": price} for item, amount, price in (("bolt", 7, "0.50"), ("nut", 3, "0.10")))
FEWER = {**BOLT, "amount": 6}
FILL, SELL = ({way: {"stock": rows}} for way, rows in (("insert", [BOLT, NUT]), ("upsert", [FEWER])))
SOLD = {"plus": [FEWER], "minus": [BOLT], "modified": [{"old": BOLT, "new": FEWER}]}


def printed(folder: Path, *words: str) -> list[Any]:
    ended = vigilog(folder, *words)
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


def test_programs_and_data_folders(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    (tmp_path / "changes.jsonl").write_text(f"{json.dumps(FILL)}\n{json.dumps(SELL)}\nno line\n")
    ended = vigilog(tmp_path, "watch", "p.dl", "--changes", "changes.jsonl", "--named", "--snapshot")
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line.get("views", {}).get("level") for line in lines] == [
        {"plus": [], "minus": []},
        {"plus": [BOLT, NUT], "minus": []},
        SOLD,
        None,
    ]
    assert ended.status == 1 and lines[3]["error"]["code"] == "json"
    assert vigilog(tmp_path, "init", "p.dl", "--data", "data").status == 0
    for wish in (FILL, SELL):
        printed(tmp_path, "tell", "data", json.dumps(wish))
    assert printed(tmp_path, "view", "data", "level", "--named") == [FEWER, NUT]
    assert printed(tmp_path, "ask", "data", "level(i, n, p), n > 5", "--named") == [{"i": "bolt", "n": 6, "p": "0.50"}]
    assert printed(tmp_path, "ask", "data", 'level("nut", _, _)', "--named") == [NUT]
    assert printed(tmp_path, "subscribe", "data", "level", "--from", "1", "--named") == [{"tx": 2, "views": {"level": SOLD}}]
