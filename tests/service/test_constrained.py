"""Facts that are not ground, over the wire: first answers, regions, questions; copies that count."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from tests.engine.test_slow_sources import LONG, Service
from tests.service.conftest import Serve
from tests.service.serving import Served
from vigilog.client import connect
from vigilog.core.errors import DataError
from vigilog.core.facts import Fact
from vigilog.service.access import add_token

pytestmark = pytest.mark.apart

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


def test_a_client_states_domains_with_a_right_of_its_own(serve: Serve, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.json"
    plain = add_token(tokens, "plain", ["*"], ["*"], define=True)
    trusted = add_token(tokens, "trusted", ["*"], ["*"], define=True, domains=True)
    (tmp_path / "g.csv").write_text("arg,value\nb,a\n")
    served = serve("--tokens", str(tokens), program=PROGRAM)
    text = f'.domain d(kind=file, path="{tmp_path}") .decl p(x: symbol) .output p\np(r.value) :- in(r, d:select_eq("g", "arg", "b")).'
    with connect(served.url, token=plain) as client, pytest.raises(DataError, match="may not state domains"):
        client.define(text)
    with connect(served.url, token=trusted) as client:
        client.define(text)
        assert set(client.view("p")) == {("a",)}
        (tmp_path / "g.csv").write_text("arg,value\nb,c\n")
        done = httpx.post(f"{served.url}/v1/refresh", json={"domains": ["d"]}, headers={"Authorization": f"Bearer {trusted}"}).json()
        assert done["views"] == {"p": {"plus": 1, "minus": 1}} and set(client.view("p")) == {("c",)}
        (source,) = httpx.get(f"{served.url}/v1/status", headers={"Authorization": f"Bearer {trusted}"}).json()["sources"]
        assert source.items() >= {"name": "d", "kind": "file", "calls": 1, "stale": False}.items()
        (tmp_path / "g.csv").unlink()
        refused = httpx.post(f"{served.url}/v1/refresh", json={"domains": ["d"]}, headers={"Authorization": f"Bearer {trusted}"})
        assert refused.status_code == 503 and refused.json()["error"]["code"] == "domain"
        with pytest.raises(DataError, match="Python functions"):
            client.define('.domain m(kind=python, module="os") .decl q(x: number) q(x) :- in(x, m:getpid()).')
        with pytest.raises(DataError, match="not stated"):
            client.define(".decl q(x: number) .call q(domain=d) q(1).")


def test_a_slow_source_keeps_no_other_client_waiting(serve: Serve) -> None:
    source = Service()
    text = f"""
.domain w(kind=rest, url="http://127.0.0.1:{source.server.server_port}")
.function w:now(city: symbol) -> (temp: float)
.decl city(x: symbol)
.decl now(x: symbol, t: float)
.output now
now(x, r.temp) :- city(x), in(r, w:now(x)).
.decl other(x: number)
.decl twice(x: number)
.output twice
twice(2 * x) :- other(x).
"""
    source.values = {"oslo": [3.0]}
    try:
        served = serve(program=text)
        gate = source.shut("oslo")
        with ThreadPoolExecutor(1) as pool, connect(served.url) as client:
            slow = pool.submit(httpx.post, f"{served.url}/v1/transactions", json={"insert": {"city": [["oslo"]]}}, timeout=LONG)
            source.was_asked("oslo")
            assert client.tell(insert={"other": [[1]]}).views == {"twice": (1, 0)}
            assert list(client.view("twice")) == [(2,)] and not slow.done()
            gate.set()
            assert slow.result(LONG).json()["views"] == {"now": {"plus": 1, "minus": 0}}
            assert source.asked == ["oslo"], "a call is made once"
    finally:
        source.close()
