"""Who may do what: each call, and the subscription, with each kind of token; what is refused is logged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.service.conftest import Serve
from tests.service.serving import PATIENCE, Served, until
from vigilog.core.errors import UsageError
from vigilog.service.access import add_token
from vigilog.service.server import Settings

pytestmark = pytest.mark.apart

KINDS: dict[str, dict[str, Any]] = {
    "reader": {"read": ["closure"], "write": [], "define": False},
    "writer": {"read": [], "write": ["edge"], "define": False},
    "definer": {"read": [], "write": [], "define": True},
    "all": {"read": ["*"], "write": ["*"], "define": True},
}
READERS, WRITERS, DEFINERS, ANY = {"reader", "all"}, {"writer", "all"}, {"definer", "all"}, set(KINDS)
EDGE = {"insert": {"edge": [["a", "b"]]}}

# method, path, body, who may
CALLS: list[tuple[str, str, Any, set[str]]] = [
    ("POST", "/v1/transactions", EDGE, WRITERS),
    ("POST", "/v1/transactions?dry_run=true", EDGE, WRITERS),
    ("POST", "/v1/transactions", {"insert": {"blocked": [["z"]]}}, {"all"}),
    ("POST", "/v1/transactions", {"insert": {"edge": [["a", "b"]]}, "delete": {"blocked": [["z"]]}}, {"all"}),
    ("GET", "/v1/views", None, ANY),
    ("GET", "/v1/views/closure", None, READERS),
    ("GET", "/v1/views/closure?at=0", None, READERS),
    ("GET", "/v1/views/open", None, {"all"}),
    ("GET", "/v1/views/closure/changes/1", None, READERS),
    ("GET", "/v1/views/open/changes/1", None, {"all"}),
    ("POST", "/v1/ask", {"goal": "closure(x, y)"}, READERS),
    ("POST", "/v1/ask", {"goal": "closure(x, y)", "at": 0}, READERS),
    ("POST", "/v1/ask", {"goal": "closure(x, y), !blocked(x)"}, {"all"}),
    ("POST", "/v1/ask", {"goal": "closure(x, y), 0 = count : { blocked(y) }"}, {"all"}),
    ("POST", "/v1/ask", {"goal": "edge(x, y)"}, {"all"}),
    ("GET", '/v1/why?goal=closure("a", "b")', None, {"all"}),  # a proof shows edges, too
    ("GET", "/v1/program", None, DEFINERS),
    ("POST", "/v1/definitions", {"text": ".decl more(x: symbol) .output more more(x) :- edge(x, _)."}, DEFINERS),
    ("GET", "/v1/status", None, DEFINERS),
    ("GET", "/v1/overrides", None, DEFINERS),
    ("POST", "/v1/loads", {"relation": "edge", "source": "FACTS"}, {"all"}),
    ("GET", "/v1/subscriptions", None, ANY),
    ("GET", "/metrics", None, ANY),
]


class Guarded:
    """A server with tokens."""

    def __init__(self, server: Served, path: Path, tokens: dict[str, str]) -> None:
        self.server, self.path, self.tokens = server, path, tokens

    def refusals(self, code: str) -> int:
        return len([line for line in self.server.logged("refused") if line["code"] == code])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    path = folder / "tokens.json"
    tokens = {name: add_token(path, name, rights["read"], rights["write"], define=rights["define"]) for name, rights in KINDS.items()}
    server = Served(folder / "served", "--tokens", str(path)).start()
    (folder / "edge.facts").write_text("a\tb\n")
    server.token = tokens["all"]
    server.insert(("a", "b"))
    yield Guarded(server, path, tokens)
    server.kill()


@pytest.mark.parametrize(("method", "path", "body", "who"), CALLS, ids=[f"{method} {path} {body}" for method, path, body, _ in CALLS])
def test_calls(guarded: Guarded, method: str, path: str, body: Any, who: set[str]) -> None:
    server = guarded.server
    if body and body.get("source") == "FACTS":
        body = body | {"source": str(guarded.path.parent / "edge.facts")}
    for kind, token in {"none": "", "unknown": "nobody's", **guarded.tokens}.items():
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        before = guarded.refusals("token") + guarded.refusals("forbidden")
        found = httpx.request(method, server.url + path, json=body, headers=headers, timeout=60)
        expected = 401 if kind in ("none", "unknown") else 200 if kind in who else 403
        assert found.status_code == expected, f"{kind}: {found.text}"
        if expected != 200:
            assert found.json()["error"]["code"] == ("token" if expected == 401 else "forbidden")
            assert guarded.refusals("token") + guarded.refusals("forbidden") == before + 1, "it is logged"


def test_some_calls_are_for_everybody(guarded: Guarded) -> None:
    for path in ("/health", "/openapi.json"):
        assert httpx.get(guarded.server.url + path).status_code == 200


def test_views_are_listed_for_those_who_may_read_them(guarded: Guarded) -> None:
    listed = {
        kind: [view["view"] for view in guarded.server.get("/v1/views", token=token)["views"]] for kind, token in guarded.tokens.items()
    }
    assert listed["reader"] == ["closure"]
    assert listed["writer"] == listed["definer"] == []
    assert {"closure", "open", "degree"} <= set(listed["all"])


def test_an_answer_shows_only_views_that_may_be_read(guarded: Guarded) -> None:
    found = guarded.server.call("POST", "/v1/transactions", json={"insert": {"edge": [["p", "q"]]}}, token=guarded.tokens["writer"])
    assert found.json()["views"] == {}


SUBSCRIPTIONS: list[tuple[dict[str, Any], set[str]]] = [
    ({"view": "closure"}, READERS),
    ({"view": "open"}, {"all"}),
    ({"views": ["closure", "open"]}, {"all"}),
    ({"query": 'closure("a", y)'}, READERS),
    ({"query": "closure(x, y), !blocked(y)"}, {"all"}),
    ({"query": "closure(x, y), 0 = count : { blocked(y) }"}, {"all"}),
]


@pytest.mark.parametrize(("spec", "who"), SUBSCRIPTIONS)
def test_subscriptions(guarded: Guarded, spec: dict[str, Any], who: set[str]) -> None:
    """By a header, by the first message, and as events with a parameter."""
    url = f"ws://127.0.0.1:{guarded.server.port}/v1/subscribe"
    for kind, token in {"unknown": "nobody's", **guarded.tokens}.items():
        with connect(url) as socket:
            socket.send(json.dumps({"subscribe": spec | {"token": token}}))
            said = json.loads(socket.recv(PATIENCE))
        allowed = kind in who
        assert "subscribed" in said if allowed else said["error"]["code"] == ("token" if kind == "unknown" else "forbidden"), kind
        if kind != "unknown":
            with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as socket:
                socket.send(json.dumps({"subscribe": spec}))
                assert ("subscribed" in json.loads(socket.recv(PATIENCE))) == allowed
        if "views" not in spec:
            with httpx.stream("GET", f"{guarded.server.url}/v1/changes", params=spec | {"token": token}) as answer:
                assert answer.status_code == (200 if allowed else 401 if kind == "unknown" else 403)
    with connect(url) as socket:
        socket.send(json.dumps({"subscribe": spec}))
        assert json.loads(socket.recv(PATIENCE))["error"]["code"] == "token"
    with pytest.raises(InvalidStatus), connect(url, additional_headers={"Authorization": "Bearer nobody's"}):
        pass


def test_names_belong_to_tokens(guarded: Guarded) -> None:
    url = f"ws://127.0.0.1:{guarded.server.port}/v1/subscribe"
    with connect(url) as mine, connect(url) as yours:
        for socket, kind in ((mine, "reader"), (yours, "all")):
            socket.send(json.dumps({"subscribe": {"view": "closure", "name": "it", "token": guarded.tokens[kind]}}))
            assert "subscribed" in json.loads(socket.recv(PATIENCE)) and "snapshot" in json.loads(socket.recv(PATIENCE))
        mine.send(json.dumps({"ping": 1}))
        assert json.loads(mine.recv(PATIENCE)) == {"pong": 1}, "it was not taken over"
        assert guarded.server.call("DELETE", "/v1/subscriptions/it", token=guarded.tokens["writer"]).status_code == 404
        names = [found["name"] for found in guarded.server.get("/v1/subscriptions", token=guarded.tokens["reader"])["subscriptions"]]
        assert names == ["it"]


def test_keys_of_requests_belong_to_tokens(guarded: Guarded) -> None:
    first, second = (
        guarded.server.call("POST", "/v1/transactions", json=EDGE, token=guarded.tokens[kind], headers={"Idempotency-Key": "7"}).json()[
            "tx"
        ]
        for kind in ("writer", "all")
    )
    assert first != second


def test_a_preview_shows_what_may_be_read(guarded: Guarded) -> None:
    """Another's query is not told to one who may not read what it asks for."""
    server, wish = guarded.server, {"insert": {"edge": [["s", "t"]]}}
    with server.following(query="edge(x, y), !blocked(x)") as talk, server.following(view="closure"):
        told = {
            kind: server.call("POST", "/v1/transactions?dry_run=true", json=wish, token=guarded.tokens[kind]).json()
            for kind in ("writer", "all")
        }
        assert told["writer"]["views"] == {} and told["writer"]["subscriptions"] == []
        assert {view for found in told["all"]["subscriptions"] for view in found["views"]} == {"query", "closure"}
        with pytest.raises(TimeoutError):
            talk.hear(seconds=0.1)


CONDITIONS = """
.decl a, b, secret(x: number)
.decl odd(x: number)
odd(x) :- a(x), x % 2 = 1.
.constraint odd(message="{x} is odd")
.decl hidden(x: number)
hidden(x) :- a(x), secret(x).
.constraint hidden(priority=1)
.decl more(x: number)
more(x) :- a(x), x > 50.
.trigger more(insert=b)
.decl less(x: number)
less(x) :- a(x), secret(y), y < 60, x > 60.
.trigger less(delete=b)
.decl up(x: number)
up(x + 1) :- b(x), secret(_).
.trigger up(insert=b)
"""


def test_a_refusal_shows_no_rows_that_may_not_be_read(tmp_path: Path, serve: Serve) -> None:
    """Neither as rows, nor in proofs, nor in its text."""
    path = tmp_path / "tokens.json"
    tokens = {
        name: add_token(path, name, read, ["a", "b", "secret"], define=False)
        for name, read in {"writer": [], "some": ["a", "b", "odd", "hidden"], "all": ["*"]}.items()
    }
    server = serve("--tokens", str(path), program=CONDITIONS)

    def refused(who: str, *rows: int) -> dict[str, Any]:
        said = server.call("POST", "/v1/transactions", json={"insert": {"a": [[row] for row in rows]}}, token=tokens[who])
        assert said.status_code == 422, said.text
        return dict(said.json()["error"])

    server.call("POST", "/v1/transactions", json={"insert": {"secret": [[4]]}}, token=tokens["all"])
    assert refused("all", 3, 4)["why"] and refused("all", 3)["message"] == "3 is odd"
    odd = refused("some", 3, 4)
    assert odd["rows"] == [[3]] and odd["why"] and odd["others"] == {"hidden": [[4]]}
    assert refused("some", 4)["rows"] == [[4]] and "why" not in refused("some", 4), "a proof would show a secret"
    found = refused("writer", 3, 4)
    assert found.keys() == {"code", "message", "constraint", "place"} and found["message"] == "odd is violated"
    conflict = refused("all", 70)
    assert (conflict["code"], conflict["row"]) == ("conflict", [70]) and "70" in conflict["message"] and conflict["why"]
    assert refused("some", 70)["row"] == [70] and "why" not in refused("some", 70)
    found = refused("writer", 70)
    assert found.keys() == {"code", "message", "triggers", "relation"} and "70" not in found["message"]
    assert refused("all", 52)["code"] == "cascade" and refused("all", 52)["why"]
    assert refused("some", 52).keys() == {"code", "message", "chain"}


def test_tokens_are_given_and_taken_back_while_the_server_runs(tmp_path: Path, serve: Serve) -> None:
    path = tmp_path / "tokens.json"
    add_token(path, "keeper", ["*"], ["*"], define=True)
    server = serve("--tokens", str(path))
    server.token = late = add_token(path, "late", ["closure"], ["edge"], define=False)
    until(lambda: server.call("GET", "/v1/views").status_code == 200)
    with server.following(view="closure") as talk:
        server.insert(("a", "b"))
        talk.change()
        content = json.loads(path.read_text())
        path.write_text("{")  # a file that is none leaves things as they are
        until(lambda: bool(server.logged("the tokens stay as they were")) or not server.insert(("b", str(time.monotonic()))))
        path.write_text(json.dumps({"tokens": [entry | {"read": ["open"]} for entry in content["tokens"] if entry["name"] == "late"]}))
        while "error" not in (said := talk.hear()):
            pass
        assert said["error"]["code"] == "forbidden", "it may not read this any more"
        assert server.call("GET", "/v1/views/closure").status_code == 403
        talk.say(subscribe={"view": "open"})
        assert "subscribed" in talk.hear() and "snapshot" in talk.hear()
        path.write_text('{"tokens": []}')
        while "error" not in (said := talk.hear()):
            pass
        assert said["error"]["code"] == "token", "it is taken back, and so is what it follows"
        assert server.call("GET", "/v1/views", token=late).status_code == 401
        talk.say(subscribe={"view": "open"})
        assert talk.hear()["error"]["code"] == "token"


# -- from where


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "[", "127.0.0.1.evil.example", "localhost@evil.example"])
def test_names_that_are_not_of_this_machine_are_refused(server: Served, host: str) -> None:
    """A page of elsewhere whose name leads here, by its own name server, would be let in by a browser."""
    for path in ("/v1/views", "/v1/changes?view=closure", "/metrics"):
        assert httpx.get(server.url + path, headers={"Host": host}).status_code == 403
    assert httpx.get(server.url + "/v1/views", headers={"Host": f"localhost:{server.port}"}).status_code == 200
    assert httpx.get(server.url + "/v1/views", headers={"Host": f"[::1]:{server.port}"}).status_code == 200


def test_pages_of_elsewhere_are_refused(serve: Serve) -> None:
    server = serve("--origin", "https://shop.example")
    url = f"ws://127.0.0.1:{server.port}/v1/subscribe"
    for origin, allowed in {
        "https://evil.example": False,
        "null": False,
        "http://[": False,
        f"http://127.0.0.1:{server.port + 1}": False,
        f"http://127.0.0.1:{server.port}": True,
        "https://shop.example": True,
    }.items():
        assert (server.call("GET", "/v1/views", headers={"Origin": origin}).status_code == 200) == allowed, origin
        assert (server.call("POST", "/v1/transactions", json=EDGE, headers={"Origin": origin}).status_code == 200) == allowed, origin
        with nullcontext() if allowed else pytest.raises(InvalidStatus), connect(url, additional_headers={"Origin": origin}):
            pass
    asked = httpx.options(
        f"{server.url}/v1/transactions", headers={"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    )
    assert asked.headers["Access-Control-Allow-Origin"] == "https://shop.example"
    found = server.call("GET", "/v1/views", headers={"Origin": "https://shop.example"})
    assert found.headers["Access-Control-Allow-Origin"] == "https://shop.example"
    text = {"Content-Type": "text/plain"}
    form = server.call("POST", "/v1/transactions", content=json.dumps(EDGE), headers=text | {"Origin": "https://shop.example"})
    assert form.status_code == 400, "what a form of a page could send"
    assert server.call("POST", "/v1/transactions", content=json.dumps(EDGE), headers=text).status_code == 200, "curl -d"


def test_other_addresses_need_tokens(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "", "192.0.2.1"):
        with pytest.raises(UsageError, match="tokens are needed"):
            Settings(host=host)
        Settings(host=host, tokens=tmp_path)
    for host in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        Settings(host=host)


def test_without_tls_it_warns(tmp_path: Path, serve: Serve) -> None:
    token = add_token(tmp_path / "tokens.json", "all", ["*"], ["*"], define=True)
    server = serve("--host", "0.0.0.0", "--tokens", str(tmp_path / "tokens.json"), token=token)
    assert "without TLS" in server.log.read_text()
    assert server.insert(("a", "b")) == 1
    assert httpx.get(server.url + "/v1/views").status_code == 401


def test_one_who_says_no_token_is_sent_away(tmp_path: Path, serve: Serve) -> None:
    add_token(tmp_path / "tokens.json", "all", ["*"], ["*"], define=True)
    server = serve("--tokens", str(tmp_path / "tokens.json"), "--limit", "silence=0.5")
    with connect(f"ws://127.0.0.1:{server.port}/v1/subscribe") as socket, pytest.raises(ConnectionClosed) as closed:
        socket.recv(PATIENCE)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


# -- how much


def test_limits_of_calls(serve: Serve) -> None:
    server = serve("--limit", "body=2000", "--limit", "rows=10", "--limit", "derived=50", program=WIDE)
    server.tell(insert={"p": [[number] for number in range(8)]})
    assert _refused(server, "POST", "/v1/transactions", json={"insert": {"p": [[number] for number in range(11)]}}) == (413, "size")
    for path, body in {
        "/v1/transactions": {"insert": {"p": [["x" * 2000]]}},
        "/v1/ask": {"goal": "x" * 2000},
        "/v1/definitions": {"text": "x" * 2000},
    }.items():
        assert _refused(server, "POST", path, json=body) == (413, "size")
        chunks = (part for part in [json.dumps(body).encode()])
        assert _refused(server, "POST", path, content=chunks, headers={"Content-Type": "application/json"}) == (413, "size")
    assert _refused(server, "POST", "/v1/ask", json={"goal": "p(x), p(y), p(z)"}) == (400, "budget")
    assert _refused(server, "GET", "/v1/views/wide")[1] == "budget"
    with server.socket() as talk:
        talk.say(subscribe={"view": "wide"})
        assert talk.hear()["error"]["code"] == "budget"
    assert server.view("p") == {(number,) for number in range(8)}, "others are served"


WIDE = """
.decl p(x: number)
.output p
.decl wide(x: number, y: number, z: number)
.output wide
wide(x, y, z) :- p(x), p(y), p(z).
"""


def test_a_limit_of_time(serve: Serve) -> None:
    """What takes too long is stopped, whether it is asked, looked back for, read or followed."""
    server = serve("--limit", "seconds=0.01", program=".decl p(x: number) .output p .decl q(x: number) .output q")
    server.tell(insert={"p": [[number] for number in range(100_000)]})
    server.tell(insert={"q": [[1]]})
    goal = "p(a), p(b), p(c), a + b + c = -1"
    assert _refused(server, "POST", "/v1/ask", json={"goal": goal}) == (400, "timeout")
    assert _refused(server, "POST", "/v1/ask", json={"goal": goal, "at": 1}) == (400, "timeout")
    assert _refused(server, "GET", "/v1/views/p") == (400, "timeout")
    with server.socket() as talk:
        talk.say(subscribe={"view": "p"})
        assert talk.hear()["error"]["code"] == "timeout"
    assert server.tell(insert={"q": [[2]]}) == 3, "and transactions go on"
    assert server.view("q") == {(1,), (2,)}


def test_a_limit_of_requests(serve: Serve) -> None:
    server = serve("--limit", "rate=5")
    with httpx.Client() as client:
        found = [client.get(f"{server.url}/v1/views") for _ in range(20)]
    refused = [answer for answer in found if answer.status_code == 429]
    assert len(found) - len(refused) >= 5 and refused
    assert int(refused[0].headers["Retry-After"]) >= 1 and refused[0].json()["error"]["code"] == "rate"
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_limits_of_subscriptions(serve: Serve) -> None:
    server = serve("--limit", "subscriptions=2", "--limit", "queries=1", "--limit", "message=300")
    with server.socket() as talk:
        for id, spec in enumerate([{"view": "closure"}, {"query": "edge(x, y), !blocked(y)"}]):
            talk.say(id=id, subscribe=spec)
            assert "subscribed" in talk.hear() and "snapshot" in talk.hear()
        talk.say(id=3, subscribe={"view": "open"})
        assert talk.hear()["error"]["code"] == "limit"
        talk.say(id=0, cancel={})
        assert "cancelled" in talk.hear()
        talk.say(id=3, subscribe={"query": "edge(x, y), !blocked(x)"})
        assert talk.hear()["error"]["code"] == "limit", "one query is followed already"
        talk.say(id=3, subscribe={"query": 'edge(x, "b"), !blocked("b")'})
        assert talk.hear()["error"]["code"] == "limit"
        talk.say(id=3, subscribe={"query": 'closure("a", y)'})
        assert "subscribed" in talk.hear() and "snapshot" in talk.hear(), "this one is a part of a view"
        talk.say(id=1, cancel={})
        assert "cancelled" in talk.hear()
        talk.say(id=4, subscribe={"query": "edge(x, y), !blocked(x)"})
        assert "subscribed" in talk.hear(), "the one that nobody follows makes room"
        talk.say(ping="x" * 400)
        with pytest.raises(ConnectionClosed) as closed:
            while talk.hear():
                pass
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


def test_no_pattern_takes_long(serve: Serve) -> None:
    """A pattern that another engine tries in all ways, as a goal and as a followed query."""
    server = serve("--limit", "seconds=20")
    server.insert(("a", "b"))
    goal = f'edge(x, y), t = cat("{"a" * 200}", y), !match("(a+)+$", t)'
    assert server.call("POST", "/v1/ask", json={"goal": goal}).json()["rows"] == [["a", "b", "a" * 200 + "b"]]
    with server.following(query=goal) as talk:
        server.insert(("b", "c"))
        assert talk.change()["plus"] == [["b", "c", "a" * 200 + "c"]]


def _refused(server: Served, method: str, path: str, **given: Any) -> tuple[int, str]:
    found = server.call(method, path, **given)
    return found.status_code, found.json().get("error", {}).get("code", found.text)
