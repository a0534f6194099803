"""Facts that are not ground, over the wire: first answers, regions, questions; copies that count."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random
from typing import Any

import httpx
import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.client import connect
from vigilog.core.errors import DataError
from vigilog.core.facts import Fact

PROGRAM = """
.decl a(x: number) constrained
.decl b(x: number) constrained
.decl n(x: number)
.decl c(x: number)
.output a
.output b
.output c
a(x) :- x <= 3.
a(x) :- b(x).
b(x) :- x >= 5, x <= 20.
b(x) :- x >= 10, x <= 30.
c(x) :- n(x), a(x).
"""


@pytest.fixture
def facts(serve: Serve) -> Served:
    return serve(program=PROGRAM)


def fact(text: str) -> dict[str, Any]:
    return {"args": ["x"], "where": text}


def test_calls_tell_facts(facts: Served) -> None:
    with httpx.Client(base_url=facts.url) as http:
        (a, *_) = http.get("/v1/views").json()["views"]
        assert a == {"view": "a", "columns": [{"name": "x", "type": "number"}], "key": [], "strategy": None, "constrained": True}
        assert http.get("/v1/views/b").json()["rows"] == [fact("x >= 10, x <= 30"), fact("x >= 5, x <= 20")], "its facts"
        said = http.post("/v1/ask", json={"goal": "b(x)"}).json()
        assert said["constrained"] and [one["where"] for one in said["rows"]] == ["x >= 10, x <= 30", "x >= 5, x <= 20"]
        assert http.post("/v1/ask", json={"goal": "b(7)"}).json()["rows"] == [[7]]
        assert http.post("/v1/ask", json={"goal": "b(4)"}).json()["rows"] == []
        rows = http.post("/v1/ask", json={"goal": "b(x) :- x < 8", "enumerate": True}).json()["rows"]
        assert rows == [[5], [6], [7]]
        refused = http.post("/v1/ask", json={"goal": "a(x)", "enumerate": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "infinite")
        dry = http.post("/v1/transactions?dry_run=true", json={"delete": {"b": [fact("x = 6")]}}).json()
        assert dry["views"]["a"] == {"plus": [], "minus": [fact("x = 6")]}
        done = http.post("/v1/transactions", json={"delete": {"b": [fact("x = 6")]}}).json()
        assert done.get("tx") == 1, done
        assert http.get("/v1/views/a/changes/1").json() == {"tx": 1, "plus": [], "minus": [fact("x = 6")]}
        assert http.post("/v1/ask", json={"goal": "b(6)"}).json()["rows"] == []
        assert http.post("/v1/ask", json={"goal": "b(6)", "at": 0}).json()["rows"] == [[6]], "the past is what it was"
        assert http.get("/v1/views/b?at=0").json()["rows"] == [fact("x >= 10, x <= 30"), fact("x >= 5, x <= 20")]
        (update,) = http.get("/v1/overrides").json()["overrides"]
        assert update.items() >= {"tx": 1, "relation": "b", "delete": fact("x = 6")}.items()
        assert http.post("/v1/transactions", json={"withdraw": [update["id"]]}).json()["views"]["a"] == {"plus": 1, "minus": 0}
        refused = http.get("/v1/why", params={"goal": "b(7)"})
        assert refused.json()["error"]["code"] == "unsupported" and "supports" in refused.json()["error"]["message"]


def test_the_command_line_asks_a_server(facts: Served) -> None:
    def vigilog(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "vigilog.cli.main", *words], capture_output=True, text=True, timeout=60)

    assert vigilog("ask", facts.url, "b(x)").stdout == "x >= 10, x <= 30\nx >= 5, x <= 20\n"
    assert vigilog("ask", facts.url, "b(x) :- x <= 6", "--enumerate").stdout == "5\n6\n"
    shown = vigilog("subscribe", facts.url, "a", "--once")
    (first,) = map(json.loads, shown.stdout.splitlines())
    assert first == {"tx": 0, "views": {"a": {"plus": [fact("x <= 3"), fact("x >= 5, x <= 30")], "minus": []}}}
    assert vigilog("ask", facts.url, "b(x)", "--all").returncode == 2


def test_a_copy_counts_the_facts_that_cover_a_row(facts: Served) -> None:
    """Overlapping facts, told as disjoint regions; whatever comes and goes, the copy has the rows that the server has."""
    random, window = Random(20), range(-3, 36)
    with connect(facts.url) as client, client.enroll("a") as copy, client.enroll(["a", "b", "c"]) as copies:
        assert set(copy) == {Fact(("x",), "x <= 3"), Fact(("x",), "x >= 5, x <= 30")}
        assert copies["b"].snapshot().rows == {(("x",), "x >= 5, x <= 30")}
        told = list[Any]()
        copy.on_change(told.append)
        client.tell(insert={"n": [[x] for x in window]})
        for _ in range(12):
            low = random.choice(window)
            region = fact(f"x >= {low}, x <= {low + random.randrange(6)}, x != {low + 1}")
            way = random.choice(["insert", "delete"])
            receipt = client.tell({way: {random.choice("ab"): [region]}})
            for held in (copy, copies["a"], copies["b"], copies["c"]):
                held.wait_for(receipt.tx) if held is copy else copies.wait_for(receipt.tx)
                goals = (client.ask(f"{held.name}({x})") for x in window)
                assert [(x,) in held for x in window] == [bool(answer) for answer in goals]
        assert told and all(isinstance(row, Fact) for change in told for row in change.plus | change.minus)
        with pytest.raises(DataError, match="follow all of it"):
            client.enroll("a", bind={"x": 3})


def test_a_copy_goes_on_after_a_restart(facts: Served) -> None:
    with connect(facts.url) as client, client.enroll("b") as copy:
        copy.wait_for(client.tell(delete={"b": [fact("x = 7")]}).tx)
        facts.kill()
        facts.start()
        tx = client.tell(insert={"b": [fact("x = 40")]}, delete={"b": [fact("x = 8")]}).tx
        copy.wait_for(tx)
        assert [(x,) in copy for x in (6, 7, 8, 9, 40, 41)] == [True, False, False, True, True, False]
