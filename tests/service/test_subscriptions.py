"""Subscriptions from their first answer on: where they go on, what they are told when they cannot, and what a stop leaves."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError

from tests.service.conftest import Serve
from tests.service.serving import PATIENCE, PROGRAM, Served, Talk, apply, rows_of, until
from vigilog.folder.backup import restore
from vigilog.folder.opening import open_program

pytestmark = pytest.mark.apart

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    server = Served(tmp_path_factory.mktemp("subscriptions"), "--limit=large=50", "--limit=part=3", "--limit=progress=0.3").start()
    yield server
    server.kill()
    assert server.mistakes() == []


@pytest.fixture
def server(running: Served) -> Served:
    for found in running.get("/v1/subscriptions")["subscriptions"]:
        running.call("DELETE", f"/v1/subscriptions/{found['name']}")
    return running.clear()


# -- where they go on


def test_a_first_answer_in_parts_and_what_follows(server: Served) -> None:
    server.insert(*((f"n{index}", "z") for index in range(10)))
    with server.socket() as talk:
        talk.say(subscribe={"views": ["closure", "degree"]})
        said = talk.hear("subscribed")["subscribed"]
        assert said["views"]["degree"] == {"columns": [{"name": "x", "type": "symbol"}, {"name": "n", "type": "number"}], "key": ["x"]}
        parts = [talk.hear("snapshot")["snapshot"] for _ in range(8)]
        assert [part["part"] for part in parts] == list(range(1, 9)) and {part["of"] for part in parts} == {8}
        assert [part["last"] for part in parts] == [False] * 7 + [True]
        tx = server.insert(("n1", "y"))
        change = talk.hear("change")["change"]
        assert change["tx"] == tx and change["views"]["closure"] == {"plus": [["n1", "y"]], "minus": []}
        assert change["views"]["degree"]["modified"] == [{"old": ["n1", 1], "new": ["n1", 2]}]


def test_resuming_gives_what_came_since(server: Served) -> None:
    server.insert(("a", "b"))
    with server.following(view="closure") as talk:
        copy, tx, db = talk.rows(), talk.tx, talk.db
    txs = [server.insert(("b", "c")), server.delete(("a", "b")), server.insert(("c", "d"))]
    with server.socket() as talk:
        talk.copy, talk.tx = {"closure": copy}, tx
        talk.subscribe(view="closure", since=tx, db=db)
        assert [talk.change()["tx"] for _ in txs] == txs
        assert talk.rows() == server.view("closure")
    with server.socket() as talk:
        talk.tx = txs[-1]
        talk.subscribe(view="closure", since=txs[-1], db=db)
        tx = server.insert(("d", "e"))
        assert talk.hear("change")["change"]["tx"] == tx, "nothing was between"


def test_positions_of_the_future_and_of_another_history(server: Served) -> None:
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": 10_000_000})
        assert talk.hear()["error"]["code"] == "future"
        talk.say(subscribe={"view": "closure", "from": 0, "db": "another"})
        assert talk.hear()["error"]["code"] == "history"
        talk.subscribe(view="closure")


def test_slices_and_goals(server: Served) -> None:
    server.tell(insert={"edge": [["a", "b"], ["b", "c"]], "blocked": [["c"]]})
    specs: dict[str, dict[str, Any]] = {
        "a": {"view": "closure", "bind": {"x": "a"}},
        "both": {"views": ["closure", "degree"], "bind": {"x": "b"}},
        "goal": {"query": 'closure("a", y), !blocked(y)'},
        "yes or no": {"query": 'closure("a", "d"), !blocked("d")'},
        "part": {"query": 'closure("b", y)'},
    }
    with ExitStack() as stack:
        talks = {name: stack.enter_context(server.following(**spec)) for name, spec in specs.items()}
        assert talks["a"].rows() == {("a", "b"), ("a", "c")}
        assert talks["both"].copy == {"closure": {("b", "c")}, "degree": {("b", 1)}}
        assert talks["goal"].rows() == {("b",)}
        assert talks["yes or no"].rows() == set()
        assert talks["part"].rows() == {("b", "c")}
        tx = server.tell(insert={"edge": [["c", "d"]]}, delete={"blocked": [["c"]]})
        for talk in talks.values():
            assert talk.change()["tx"] == tx
        assert talks["goal"].rows() == {("b",), ("c",), ("d",)}
        assert talks["yes or no"].rows() == {()}
        assert talks["part"].rows() == {("b", "c"), ("b", "d")}
        assert talks["both"].copy == {"closure": {("b", "c"), ("b", "d")}, "degree": {("b", 1)}}


def test_integers_as_text(server: Served) -> None:
    server.insert(("a", "b"))
    with server.following(view="degree", integers="text") as talk:
        assert talk.rows() == {("a", "1")}
        server.insert(("a", "c"))
        assert talk.change()["modified"] == [{"old": ["a", "1"], "new": ["a", "2"]}]
        server.insert(*(("b", f"{index}") for index in range(60)), *((f"m{index}", "z") for index in range(60)))
        place = talk.change()["plus"]["fetch"]
        assert ["b", "60"] in server.get(place)["plus"]


# -- names


def test_a_name_goes_on_where_it_acknowledged(serve: Serve) -> None:
    """Also after the server was killed, and in a new connection that knows nothing."""
    server = serve("--limit=progress=0.3")
    server.insert(("a", "b"))
    with server.following(view="closure", name="it") as talk:
        begun = talk.tx
        first = server.insert(("b", "c"))
        assert talk.change()["tx"] == first
        talk.say(ack=first)
        second = server.insert(("c", "d"))
        assert talk.change()["tx"] == second
        talk.say(ping=1)
        talk.hear("pong")
        until(lambda: server.get("/v1/subscriptions")["subscriptions"][0]["tx"] == first)
        known = server.get("/v1/subscriptions")["subscriptions"][0]
        assert known["name"] == "it" and known["connected"] and known["spec"]["view"] == "closure" and begun < first
    server.kill()
    server.start()
    with server.socket() as talk:
        assert talk.subscribe(view="closure", name="it", resumes=True)["tx"] == first
        assert talk.hear("change")["change"]["tx"] == second, "what was not acknowledged comes again"
    with server.socket() as talk:
        assert talk.subscribe(view="degree", name="it")["tx"] == second, "another view under this name begins anew"
    with server.socket() as talk:
        talk.subscribe(view="degree", name="it")
        talk.say(cancel={})
        talk.hear("cancelled")
    assert server.get("/v1/subscriptions")["subscriptions"] == []


def test_a_second_connection_takes_a_name_over(server: Served) -> None:
    with server.following(view="closure", name="it") as first, server.socket() as second:
        tx = server.insert(("a", "b"))
        first.change()
        second.subscribe(view="closure", name="it", resumes=False)
        assert first.hear("error")["error"]["code"] == "taken-over"
        first.say(ack=tx)  # which may well cross the message that says so
        first.say(progress=tx)
        last = server.insert(("b", "c"))
        while second.hear("change")["change"]["tx"] < last:
            pass
        first.say(ping=1)
        assert first.hear() == {"pong": 1}


def test_cancelling(server: Served) -> None:
    with server.socket() as talk:
        talk.subscribe(view="closure")
        talk.say(cancel={})
        assert talk.hear("cancelled") == {"cancelled": {}}
        server.insert(("a", "b"))
        talk.say(cancel={})
        assert talk.hear()["error"]["code"] == "id"
        talk.say(id="other", ack=1)
        assert talk.hear()["error"]["code"] == "id"
        talk.subscribe(view="closure", name="mine")
        assert talk.rows() == {("a", "b")}
        talk.say(cancel={})
        assert talk.hear("cancelled") == {"cancelled": {}}
        talk.subscribe(view="closure", name="yours")
        assert server.call("DELETE", "/v1/subscriptions/yours").json() == {"cancelled": "yours"}
        assert talk.hear("error")["error"]["code"] == "cancelled"
        assert server.call("DELETE", "/v1/subscriptions/yours").status_code == 404


def test_several_on_one_connection(server: Served) -> None:
    with server.socket() as talk:
        for id, spec in {1: {"view": "closure"}, "two": {"view": "degree"}}.items():
            talk.say(id=id, subscribe=spec)
            assert talk.hear()["id"] == id and talk.hear()["id"] == id
        talk.say(id=1, subscribe={"view": "open"})
        assert talk.hear("error") == {
            "id": 1,
            "error": {"code": "id", "message": "this connection has such a subscription; another one needs another id"},
        }
        tx = server.insert(("a", "b"))
        assert {(said["id"], said["change"]["tx"]) for said in (talk.hear("change"), talk.hear("change"))} == {(1, tx), ("two", tx)}
        talk.say(id=1, ack=tx)
        talk.say(id=1, cancel={})
        assert talk.hear("cancelled")["id"] == 1
        tx = server.insert(("a", "c"))
        assert talk.hear("change")["id"] == "two"
        talk.say(ack=tx)
        assert talk.hear("error")["error"]["code"] == "id"


# -- much


def test_large_changes_are_fetched(server: Served) -> None:
    """As JSON, as Arrow, in slices, and of goals."""
    with server.following(view="degree") as talk, server.following(query='edge(x, "z"), !blocked(x)') as goal:
        tx = server.insert(*((f"n{index}", "z") for index in range(80)), ("a", "b"))
        said = talk.hear("change")["change"]
        assert said["plus"]["rows"] == 81 and said["minus"] == []
        found = server.get(said["plus"]["fetch"])
        assert found["tx"] == tx and len(found["plus"]) == 81 and found["minus"] == []
        table = pa.ipc.open_stream(server.call("GET", said["plus"]["fetch"], headers=ARROW).content).read_all()
        assert table.column_names == ["change", "x", "n"] and table.num_rows == 81
        assert table.schema.metadata[b"tx"] == str(tx).encode()
        said = goal.hear("change")["change"]
        found = server.get(said["plus"]["fetch"])
        assert rows_of(found["plus"]) == {(f"n{index}",) for index in range(80)}
    with server.socket() as talk:
        talk.subscribe(view="closure", bind={"y": "z"}, since=tx - 1)
        said = talk.hear("change")["change"]
        assert {row[1] for row in server.get(said["plus"]["fetch"])["plus"]} == {"z"}
    assert server.call("GET", f"/v1/views/degree/changes/{tx + 1000}").json()["error"]["code"] == "future"


def test_first_answers_are_fetched(server: Served) -> None:
    server.insert(*((f"n{index}", "z") for index in range(80)))
    for spec, rows in {
        '{"view": "degree"}': {(f"n{index}", 1) for index in range(80)},
        '{"view": "degree", "bind": {"x": "n1"}}': {("n1", 1)},
        '{"query": "edge(x, \\"z\\"), !blocked(x)"}': {(f"n{index}",) for index in range(80)},
    }.items():
        with server.socket() as talk:
            talk.say(subscribe=json.loads(spec) | {"snapshot": "fetch"})
            talk.hear("subscribed")
            said = talk.hear("snapshot")["snapshot"]
            assert said["last"]
            server.insert(("later", "z"))
            assert rows_of(server.get(said["fetch"])["rows"]) == rows, "as of then"
            table = pa.ipc.open_stream(server.call("GET", said["fetch"], headers=ARROW).content).read_all()
            assert rows_of(zip(*table.to_pydict().values(), strict=True)) == rows
            server.delete(("later", "z"))


def test_arrow_answers(server: Served) -> None:
    server.insert(("a", "b"), ("b", "c"))
    for path, rows in {"/v1/views/closure": 3, "/v1/views/closure?bind.x=a": 2, "/v1/views/closure?bind.x=nobody": 0}.items():
        answer = server.call("GET", path, headers=ARROW)
        table = pa.ipc.open_stream(answer.content).read_all()
        assert answer.headers["Content-Type"] == ARROW["Accept"] and table.num_rows == rows
        assert rows_of(zip(*table.to_pydict().values(), strict=True)) == rows_of(server.get(path)["rows"])


# -- server-sent events


def events(server: Served, path: str, number: int, headers: dict[str, str] | None = None) -> list[tuple[str, Any, str]]:
    """The first events: kind, what is said, id."""
    found: list[tuple[str, Any, str]] = []
    with httpx.stream("GET", server.url + path, headers=headers, timeout=PATIENCE) as answer:
        assert answer.status_code == 200, answer.read()
        lines: dict[str, str] = {}
        for line in answer.iter_lines():
            if line:
                name, _, text = line.partition(": ")
                lines[name] = text
                continue
            if lines["event"] != "progress":
                found.append((lines["event"], json.loads(lines["data"]), lines.get("id", "")))
            lines = {}
            if len(found) == number:
                return found
    return found


def test_events(server: Served) -> None:
    server.insert(("a", "b"), ("b", "c"))
    subscribed, snapshot = events(server, "/v1/changes?view=closure&bind.x=a", 2)
    assert subscribed[0] == "subscribed" and snapshot[1]["rows"] == [["a", "b"], ["a", "c"]]
    db, tx = snapshot[2].split(":")
    assert db == f"{subscribed[1]['db']}.{snapshot[1]['digest']}" and int(tx) == snapshot[1]["tx"]
    last = server.insert(("c", "d"))
    subscribed, change = events(server, "/v1/changes?view=closure&bind.x=a", 2, {"Last-Event-ID": snapshot[2]})
    said, name = change[1], f"{subscribed[1]['db']}.{change[1]['digest']}:{last}"
    assert subscribed[1]["tx"] == int(tx) and change[::2] == ("change", name)
    assert said == {"tx": last, "digest": said["digest"], "plus": [["a", "d"]], "minus": []}
    for other in (f"{subscribed[1]['db']}.0123456789abcdef:{tx}", "another:1"):
        assert events(server, "/v1/changes?view=closure", 1, {"Last-Event-ID": other})[0][1]["code"] == "history"
    both = events(server, f"/v1/changes?view=closure&view=degree&from={tx}&every=0.1&coalesce=true", 2)
    assert set(both[1][1]["views"]) == {"closure", "degree"}
    assert events(server, "/v1/changes?query=closure(x,%20%22d%22)", 2)[1][1]["rows"] == [["a", "d"], ["b", "d"], ["c", "d"]]
    for query, status in {
        "": 400,
        "view=none": 404,
        "view=closure&bind.z=1": 400,
        "view=closure&evry=1": 400,
        "view=closure&every=often": 400,
        "view=closure&coalesce=maybe": 400,
        "view=closure&from=x": 400,
        "query=closure(x,y)&bind.x=a": 400,
        "query=closure(x": 400,
    }.items():
        assert server.call("GET", f"/v1/changes?{query}").status_code == status, query
    until(lambda: server.get("/v1/status")["subscribers"] == 0)


# -- what a dry run tells


def test_a_preview_tells_whom_it_would_be_sent_to(server: Served) -> None:
    server.insert(("a", "b"))
    with server.following(view="closure", bind={"x": "a"}, name="mine") as mine, server.following(query="edge(x, y), !blocked(y)"):
        found = server.call("POST", "/v1/transactions?dry_run=true", json={"insert": {"edge": [["b", "c"]]}}).json()
        assert found["views"]["closure"] == {"plus": [["a", "c"], ["b", "c"]], "minus": []}
        told = {one.get("name"): one["views"] for one in found["subscriptions"]}
        assert told == {"mine": {"closure": {"plus": [["a", "c"]], "minus": []}}, None: {"query": {"plus": [["b", "c"]], "minus": []}}}
        assert server.view("closure") == {("a", "b")}
        tx = server.insert(("b", "c"))
        assert mine.change()["tx"] == tx == found["tx"] + 1


# -- definitions


def test_definitions_change_under_subscribers(serve: Serve) -> None:
    """A view that keeps its columns changes; one that does not, or is dropped, ends; the others do not notice."""
    server = serve(
        program=PROGRAM + ".decl pair(x: symbol, y: symbol) .output pair pair(x, y) :- edge(x, y), edge(y, x)."
        ".decl day(d: date) .decl priced(x: symbol, d: date) .output priced priced(x, d) :- edge(x, _), day(d)."
    )
    server.tell(insert={"edge": [["a", "b"], ["b", "a"], ["b", "c"]], "day": [["2026-01-01"]]})
    with ExitStack() as stack:
        other, pair, bound, priced = (
            stack.enter_context(server.following(**spec))
            for spec in ({"view": "closure"}, {"view": "pair"}, {"view": "pair", "bind": {"y": "b"}}, {"view": "priced"})
        )
        before, copy = pair.tx, set(pair.rows())
        _define(server, "pair(x, y) :- edge(x, y), x != y.")
        assert pair.change()["plus"] == [["b", "c"]]
        assert pair.rows() == server.view("pair")
        _define(server, ".decl pair(x: symbol) pair(x) :- edge(x, _).")
        for talk in (pair, bound):
            assert talk.hear("error")["error"]["code"] == "definition"
        _define(server, ".decl priced(d: date, x: symbol, n: number) priced(d, x, 1) :- edge(x, _), day(d).")
        assert priced.hear("error")["error"]["code"] == "definition"
        pair.subscribe(view="pair")
        assert pair.rows() == {("a",), ("b",)}
        with server.socket() as late:
            late.say(subscribe={"view": "pair", "from": before})
            assert late.hear("error")["error"]["code"] == "gap", "what came before is of other columns"
            late.begun()
            assert late.rows() == server.view("pair") != copy
        assert server.call("GET", f"/v1/views/pair/changes/{before + 1}").status_code == 410
        assert server.call("DELETE", "/v1/definitions/pair").status_code == 200
        assert pair.hear("error")["error"]["code"] == "definition"
        tx = server.insert(("c", "d"))
        assert other.change()["tx"] == tx and other.rows() == server.view("closure")
        query = stack.enter_context(server.following(query="closure(x, y), !blocked(y)"))
        assert server.call("DELETE", "/v1/definitions/open").status_code == 200
        _define(server, "closure(x, y) :- edge(x, y).")
        query.change()
        assert query.rows() == server.view("closure")
    assert server.mistakes() == []


def _define(server: Served, text: str) -> None:
    found = server.call("POST", "/v1/definitions", json={"text": text})
    assert found.status_code == 200, found.text


# -- gaps and histories


def test_gaps_and_a_restored_backup(tmp_path: Path, serve: Serve) -> None:
    folder = tmp_path / "served0"
    open_program(PROGRAM, data=folder / "data", retain={"transactions": 5}).close()
    server = serve("--limit=pending=1")
    with server.following(view="closure", name="it") as talk:
        first, db = server.insert(("a", "b")), talk.db
        talk.change()
        talk.say(ack=first)
        talk.say(ping=1)
        talk.hear("pong")
    for index in range(20):
        server.insert(("b", f"c{index}"))
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": first, "db": db})
        assert talk.hear()["error"]["code"] == "gap"
        talk.begun()
        assert talk.rows() == server.view("closure"), "a new first answer"
        tx = server.insert(("x", "y"))
        assert talk.change()["tx"] == tx
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "name": "it"})
        assert talk.hear()["error"]["code"] == "gap"
        talk.begun()
        assert talk.rows() == server.view("closure")
        last = talk.tx
        talk.say(ack=last)
        talk.say(ping=1)
        talk.hear("pong")
    with open_copy(server, tmp_path / "copy"):
        restore(tmp_path / "copy", server.data)
    server.start()
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": last, "db": db})
        assert talk.hear()["error"]["code"] == "history"
        said = talk.subscribe(view="closure", name="it")
        assert said["db"] != db and talk.rows() == server.view("closure"), "a name begins anew in another history"


def test_a_copied_folder_that_went_another_way(tmp_path: Path, serve: Serve) -> None:
    """Its history has the same name; a position of the one is none of the other, if it is said with its digest."""
    server = serve()
    server.insert(("a", "b"))
    assert server.stop() == 0
    shutil.copytree(server.data, tmp_path / "copy")
    server.start()
    marks: list[dict[str, Any]] = []
    with server.following(view="closure") as talk:
        marks.append({"tx": talk.tx, "digest": talk.digest})
        for edge in (("b", "c"), ("c", "d")):
            tx = server.insert(edge)
            said = talk.change()
            marks.append({"tx": tx, "digest": said["digest"]})
        db = talk.db
    with server.following(view="degree", qos={"every": 0.01, "coalesce": True}, since=marks[0]) as late:
        said = late.hear("change")["change"]
        assert {"tx": said["tx"], "digest": said["digest"]} == marks[2], "of several changes it is that of the last"
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": marks[1], "db": db})
        assert talk.hear("subscribed")["subscribed"]["digest"] == marks[1]["digest"]
        talk.say(progress=2)
        assert [talk.hear("change")["change"]["digest"], talk.next(PATIENCE)["progress"]] == [marks[2]["digest"], marks[2]]
    assert server.stop() == 0
    shutil.rmtree(server.data)
    shutil.copytree(tmp_path / "copy", server.data)
    server.start()
    for edge in (("b", "c"), ("x", "y")):
        server.insert(edge)
    for mark, plain, code in ((marks[0], 1, ""), (marks[1], 2, "history"), (marks[2], 3, "history"), ({**marks[2], "tx": 4}, 4, "future")):
        for start in (mark, mark["tx"]):
            with server.socket() as talk:
                talk.say(subscribe={"view": "closure", "from": start, "db": db})
                said = talk.hear()
                expected = code if start is mark or code == "future" else ""
                assert said.get("error", {}).get("code", "") == expected and mark["tx"] == plain, (start, said)
    with server.socket() as talk:
        for wrong in ({"tx": 1}, {"digest": "x"}, {"tx": 1, "digest": 7}, {"tx": -1, "digest": "x"}, {"tx": 2**70, "digest": "x"}):
            talk.say(subscribe={"view": "closure", "from": wrong})
            assert talk.hear()["error"]["code"] == "message", wrong
    assert server.mistakes() == []


def test_the_oldest_position_that_is_retained_has_its_digest(tmp_path: Path, serve: Serve) -> None:
    open_program(PROGRAM, data=tmp_path / "served0" / "data", retain={"transactions": 2}).close()
    server = serve()
    marks: list[dict[str, Any]] = []
    with server.following(view="closure") as talk:
        marks.append({"tx": talk.tx, "digest": talk.digest})
        for index in range(4):
            server.insert(("a", f"b{index}"))
            said = talk.change()
            marks.append({"tx": said["tx"], "digest": said["digest"]})
    for mark in marks:
        with server.socket() as talk:
            talk.say(subscribe={"view": "closure", "from": mark})
            assert talk.hear().get("error", {}).get("code", "") == ("gap" if mark["tx"] < 2 else ""), mark
    with server.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": {**marks[3], "tx": 2}})
        assert talk.hear()["error"]["code"] == "history"


class open_copy:  # noqa: N801  # a small context manager
    """Stops a server, and puts a backup of its folder in its place."""

    def __init__(self, server: Served, target: Path) -> None:
        self.server, self.target = server, target

    def __enter__(self) -> None:
        with_server_stopped = self.server.stop()
        assert with_server_stopped == 0
        with open_program(data=self.server.data) as db:
            db.backup(self.target)
        self.server.data.rename(self.server.data.with_name("old"))

    def __exit__(self, *_: object) -> None: ...


# -- the end


def test_a_stop_in_good_order_says_where_to_go_on(serve: Serve) -> None:
    """While writers write: what was acknowledged is there, what was told is true, and nothing is between."""
    server = serve()
    acknowledged: list[int] = []
    refused: list[str] = []

    def write(name: str) -> None:
        with httpx.Client() as client:
            for number in range(10_000):
                try:
                    answer = client.post(f"{server.url}/v1/transactions", json={"insert": {"edge": [[name, str(number)]]}})
                except httpx.HTTPError as reason:
                    refused.append(type(reason).__name__)
                    return
                if answer.status_code != 200:
                    assert answer.status_code == 503, answer.text
                    refused.append(answer.json()["error"]["code"])
                    return
                acknowledged.append(answer.json()["tx"])

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    with server.following(view="closure", qos={"every": 60}) as waiting, server.following(view="closure") as talk, server.socket() as idle:
        for thread in writers:
            thread.start()
        until(lambda: len(acknowledged) >= 40)
        assert server.stop() == 0
        ends = [_closing(one) for one in (talk, waiting)]
        assert ends[0] == ends[1] == max(acknowledged) and talk.copy == waiting.copy, "all was sent, due or not"
        with pytest.raises(ConnectionClosed) as closed:
            idle.hear()
        assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
    for thread in writers:
        thread.join(PATIENCE)
    assert len(refused) == 3
    assert server.mistakes() == []
    server.start()
    with server.socket() as again:
        again.copy, again.tx = talk.copy, ends[0]
        again.subscribe(view="closure", since=ends[0])
        assert server.view("closure") == again.rows(), "nothing is lost"
        tx = server.insert(("z", "z"))
        assert again.change()["tx"] == tx


def _closing(talk: Talk) -> int:
    """Reads to the end; gives where to go on."""
    while "closing" not in (said := talk.hear()):
        if "change" in said:
            talk.apply(said["change"])
    with pytest.raises(ConnectionClosedError) as closed:
        talk.hear()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
    tx: int = said["closing"]["tx"]
    assert tx >= talk.tx
    return tx


def test_events_end_with_the_server(serve: Serve) -> None:
    server = serve()
    ends: list[Any] = []
    listening = threading.Thread(target=lambda: ends.extend(events(server, "/v1/changes?view=closure", 4)))
    listening.start()
    until(lambda: server.get("/v1/status")["subscribers"] == 1)
    server.insert(("a", "b"))
    assert server.stop() == 0
    listening.join(PATIENCE)
    assert [kind for kind, _, _ in ends] == ["subscribed", "snapshot", "change", "closing"]
    assert ends[-1][1] == {"tx": 1, "digest": ends[-2][1]["digest"]}


def test_a_stop_does_not_wait_for_long_questions(serve: Serve) -> None:
    server = serve(program=".decl p(x: number) .output p")
    server.tell(insert={"p": [[number] for number in range(3000)]})
    answers: list[httpx.Response | Exception] = []

    def ask() -> None:
        try:
            answers.append(server.call("POST", "/v1/ask", json={"goal": "p(a), p(b), p(c), p(d), a + b + c + d = -1"}))
        except httpx.HTTPError as reason:
            answers.append(reason)

    asking, worked = threading.Thread(target=ask), server.worked
    asking.start()
    until(lambda: server.worked > worked + 0.5)  # it is being answered
    began = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - began < 40, "a minute is what an answer may take"
    asking.join(PATIENCE)
    assert answers and (not isinstance(answers[0], httpx.Response) or answers[0].status_code == 503)


def test_apply_is_exact() -> None:
    with pytest.raises(AssertionError):
        apply({("a",)}, {("a",)}, set())
    with pytest.raises(AssertionError):
        apply(set(), set(), {("a",)})
