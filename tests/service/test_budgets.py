"""A query that a client brings has a budget. Beyond it the query is dropped, who follows it is told, and everybody else is served."""

from __future__ import annotations

import json
import sqlite3
from contextlib import ExitStack

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served, until

PROGRAM = """
.decl acct(a: number, b: number)
.decl rich(a: number)
.output rich
rich(a) :- acct(a, b), b > 995.
"""
DEAR = "acct(a, b), acct(c, d), acct(e, f)"
pytestmark = pytest.mark.apart


def accounts(serve: Serve, *options: str, rows: int = 1000) -> Served:
    server = serve(*(word for option in options for word in ("--limit", option)), program=PROGRAM)
    server.tell(insert={"acct": [[number, number] for number in range(rows)]})
    return server


def kept(server: Served) -> tuple[str, int]:
    """What the file says of queries, and the bytes of its write-ahead log."""
    with sqlite3.connect(f"file:{server.data / 'vigilog.db'}?mode=ro", uri=True) as file:
        (said,) = file.execute("SELECT value FROM vigilog_about WHERE name = 'queries'").fetchone() or ("{}",)
    log = server.data / "vigilog.db-wal"
    return str(said), log.stat().st_size if log.exists() else 0


@pytest.mark.parametrize("limit", ["seconds=1", "derived=100000", "bytes=30000000"])
def test_a_refused_query_leaves_nothing_behind(serve: Serve, limit: str) -> None:
    server = accounts(serve, limit)
    before = server.memory
    with server.socket() as talk:
        talk.say(subscribe={"query": DEAR, "name": "mine"})
        assert talk.hear()["error"]["code"] in ("timeout", "budget")
    assert server.get("/v1/subscriptions") == {"subscriptions": []}
    for number in range(3):
        server.tell(insert={"acct": [[2000 + number, 5]]})
    assert server.memory - before < 800 * 2**20
    until(lambda: kept(server)[0] == "{}")
    assert kept(server)[1] < 20 * 2**20, "the write-ahead log has the rows that were told, and no more"
    server.kill()
    server.start()
    server.tell(insert={"acct": [[3000, 999]]})
    assert (3000,) in server.view("rich") and server.mistakes() == []


def test_a_query_that_becomes_too_dear_is_dropped(serve: Serve) -> None:
    """In a transaction: who follows it is told, all others hear what they should, and what was given up leaves nothing behind."""
    server = accounts(serve, "query_derived=20000", rows=10)
    with (
        server.following(query=DEAR, name="dear") as dear,
        server.following(query="acct(a, b), acct(b, c), acct(c, a)", name="another") as other,
        server.following(view="rich") as view,
        server.following(query=DEAR) as another,
    ):
        server.tell(insert={"acct": [[50, 51]]})
        assert len(dear.change()["plus"]) == len(another.change()["plus"]) == 11**3 - 10**3
        with server.following(query="acct(1, b), acct(c, d), acct(e, f)", name="gone"):
            pass
        tx = server.tell(insert={"acct": [[number, number] for number in range(900, 1100)]})
        for talk in (dear, another):
            error = talk.hear("error")["error"]
            assert error["code"] == "budget" and "20000 rows" in error["message"]
        assert other.change()["tx"] == tx and view.change()["tx"] == tx
        assert other.rows() == {(n, n, n) for n in (*range(10), *range(900, 1100))}
        assert view.rows() == server.view("rich") == {(n,) for n in range(996, 1100)}
        assert len(json.loads(kept(server)[0])) == 1
        until(lambda: [found["name"] for found in server.get("/v1/subscriptions")["subscriptions"]] == ["another"])
        assert "vigilog_queries_dropped_total 2.0" in server.call("GET", "/metrics").text
        server.kill()
    server.start()
    server.tell(delete={"acct": [[0, 0]]})
    with server.socket() as talk:
        talk.say(subscribe={"query": DEAR, "from": tx - 1})
        assert talk.hear("error")["error"]["code"] == "gap", "it was not followed all the time"


def test_many_dear_queries_cost_no_more_than_all_may(serve: Serve) -> None:
    """Each is within its allowance, and they are dropped together, not one in each of many attempts."""
    server = accounts(serve, "query_seconds=1", rows=8)
    with ExitStack() as open_:
        cheap = open_.enter_context(server.following(query="acct(a, b), b > 995"))
        dear = [
            open_.enter_context(server.following(query=f"acct(a, b), acct(c, d), acct(e, f), a + c + e = 10000{number}"))
            for number in range(14)
        ]
        before = server.worked
        server.tell(insert={"acct": [[number, 0] for number in range(100, 1300)]})
        assert server.worked - before < 12
        for talk in dear:
            assert talk.hear("error")["error"]["code"] == "budget"
        server.tell(insert={"acct": [[1, 999]]})
        assert cheap.change()["plus"] == [[1, 999]]


def test_whoever_asks_too_much_many_times_delays_nobody_long(serve: Serve) -> None:
    """Their queries are found to cost too much in one attempt, and dropped at once."""
    server = accounts(serve, "query_derived=2000", rows=8)
    with ExitStack() as open_:
        dear = [
            open_.enter_context(server.following(query=f"acct(a, b), acct(c, d), acct(e, f), a + c + e != 10000{number}"))
            for number in range(16)
        ]
        before = server.worked
        server.tell(insert={"acct": [[number, 0] for number in range(100, 400)]})
        assert server.worked - before < 2
        for talk in dear:
            error = talk.hear("error")["error"]
            assert error["code"] == "budget" and "2000 rows" in error["message"]
