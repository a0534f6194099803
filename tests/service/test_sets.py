"""Sets between client and server: told, asked for, followed, bound; and classes that a client may not name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.serving import Served
from vigilog.client import connect
from vigilog.core.sets import Set

pytestmark = pytest.mark.apart

PROGRAM = """
.decl tournament(v: symbol, d: symbol, l: symbol)
.decl dominates(v: symbol, w: set<symbol>)
.output dominates
dominates(v, w) :- setof(d, tournament(v, d, l), w).
.decl told(k: number, s: set<(symbol, unsigned)>)
.decl pairs(s: set<(symbol, unsigned)>, n: number)
.output pairs
pairs(s, n) :- told(_, s), count(s, n).
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("sets"), program=PROGRAM).start()
    yield server
    server.kill()
    assert server.mistakes() == []


def test_a_subscription_is_bound_to_a_set(served: Served) -> None:
    with served.socket() as talk:
        talk.say(subscribe={"view": "dominates", "bind": {"w": ["vader", "maul"]}, "from": None})
        talk.hear("subscribed")
        assert talk.hear("snapshot")["snapshot"]["rows"] == []
        served.tell(insert={"tournament": [["yoda", "vader", "dagobah"]]})
        first = served.tell(insert={"tournament": [["yoda", "maul", "dagobah"]]})
        change = talk.hear("change")["change"]
        assert (change["tx"], change["plus"], change["minus"]) == (first, [["yoda", ["maul", "vader"]]], [])
        second = served.tell(delete={"tournament": [["yoda", "vader", "dagobah"]]})
        change = talk.hear("change")["change"]
        assert (change["tx"], change["plus"], change["minus"]) == (second, [], [["yoda", ["maul", "vader"]]])
    with served.socket() as later:  # the same from the outbox
        later.say(subscribe={"view": "dominates", "bind": {"w": ["maul", "vader"]}, "from": first - 1})
        later.hear("subscribed")
        assert later.hear("change")["change"]["plus"] == [["yoda", ["maul", "vader"]]]
        assert later.hear("change")["change"]["minus"] == [["yoda", ["maul", "vader"]]]
    found = served.call("GET", "/v1/views/dominates", params={"bind.w": '["maul"]'}).json()
    assert found["rows"] == [["yoda", ["maul"]]]


def test_the_client_has_sets(served: Served) -> None:
    big = 2**64 - 1
    with connect(served.url) as client:
        client.tell(insert={"told": [(1, Set([("a", big), ("b", 0)]))]})
        assert set(client.ask("pairs(s, n)").rows) == {(Set([("a", big), ("b", 0)]), 2)}
    found = served.get("/v1/views/pairs?integers=text")["rows"]
    assert found == [[[["a", str(big)], ["b", "0"]], "2"]]
    served.call("POST", "/v1/transactions?integers=text", json={"delete": {"told": [["1", [["a", str(big)], ["b", "0"]]]]}})


def test_a_class_that_the_server_was_not_started_with_is_forbidden(served: Served) -> None:
    text = (
        '.aggregate stolen(s: set<symbol>, r: symbol) python="os:Path"\n.decl x(r: symbol) .output x x(r) :- dominates(_, s), stolen(s, r).'
    )
    found = served.call("POST", "/v1/definitions", json={"text": text})
    assert (found.status_code, found.json()["error"]["code"]) == (403, "forbidden")
    assert served.call("POST", "/v1/ask", json={"goal": f"dominates(v, w). {text}"}).status_code == 400
