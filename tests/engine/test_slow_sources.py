"""A source that is slow, hangs, lies or dies keeps nobody waiting but those who need its answer; refreshes that come by themselves."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.domains.domain import DomainError
from vigilog.engine import asking
from vigilog.engine.database import Database
from vigilog.engine.outcome import Outcome
from vigilog.engine.refreshing import Refresher
from vigilog.engine.watch import watch
from vigilog.folder.opening import open_program

LONG = 60.0  # seconds, for what comes at once on a machine that is not busy


class Service:
    """A real HTTP server. It answers what `values` say, counts who asks, and holds back the answers of those whose gate is shut."""

    def __init__(self) -> None:
        service = self
        self.values: dict[str, list[float]] = {}
        self.gates: dict[str, threading.Event] = {}
        self.asked: list[str] = []
        self.entered = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                city = parse_qs(urlsplit(self.path).query)["city"][0]
                answer = list(service.values.get(city, ()))  # as it is when it is asked
                with service.entered:
                    service.asked.append(city)
                    service.entered.notify_all()
                service.gates.get(city, OPEN).wait(LONG)
                body = json.dumps([{"temp": value} for value in answer]).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def shut(self, city: str) -> threading.Event:
        self.gates[city] = threading.Event()
        return self.gates[city]

    def was_asked(self, city: str, times: int = 1) -> None:
        """Waits until somebody has asked so often."""
        with self.entered:
            assert self.entered.wait_for(lambda: self.asked.count(city) >= times, LONG)

    def close(self) -> None:
        for gate in self.gates.values():
            gate.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


OPEN = threading.Event()
OPEN.set()


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    yield found
    found.close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as found:
        yield found


def opened(folder: Path, service: Service, kind: str, facts: dict[str, Any], options: str = "", head: str = "now") -> Database:
    text = f"""
.domain w(kind=rest, url="http://127.0.0.1:{service.server.server_port}", timeout=60{options})
.function w:now(city: symbol) -> (temp: float)
.decl city(x: symbol)
.decl now(x: symbol, t: float){" deferred" if head == "late" else ""}
.output now
now(x, r.temp) :- city(x), in(r, w:now(x)).
.decl other(x: number)
.decl twice(x: number)
.output twice
twice(2 * x) :- other(x).
"""
    if kind == "memory":
        return open_program(text, facts)
    return open_program(text, facts, data=folder / "data")


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_call_that_is_new_keeps_nobody_waiting(tmp_path: Path, service: Service, pool: ThreadPoolExecutor, kind: str) -> None:
    service.values = {"rome": [20.0], "oslo": [3.0]}
    with opened(tmp_path, service, kind, {"city": [("rome",)]}) as db:
        gate = service.shut("oslo")
        slow = pool.submit(db.take, {"insert": {"city": [["oslo"]]}})
        service.was_asked("oslo")
        time.sleep(3 * asking.PATIENCE)
        assert pool.submit(db.view, "now").result(LONG) == {("rome", 20.0)}, "who reads does not wait"
        assert pool.submit(db.take, {"insert": {"other": [[2]]}}).result(LONG).deltas["twice"].plus == {(4,)}, "nor who writes"
        assert not slow.done()
        gate.set()
        assert slow.result(LONG).deltas["now"].plus == {("oslo", 3.0)}
        assert service.asked.count("oslo") == 1, "a call is made once, however often a transaction is tried"
        assert db.tx == 2


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_refresh_keeps_nobody_waiting(tmp_path: Path, service: Service, pool: ThreadPoolExecutor, kind: str) -> None:
    service.values = {"rome": [20.0], "oslo": [3.0], "bern": [8.0]}
    with opened(tmp_path, service, kind, {"city": [("rome",), ("oslo",)]}) as db:
        gate = service.shut("oslo")
        service.values = {"rome": [21.0], "oslo": [4.0], "bern": [8.0]}
        refresh = pool.submit(db.refresh, "w")
        service.was_asked("oslo", 2)
        time.sleep(3 * asking.PATIENCE)
        assert pool.submit(db.ask, "now(x, t)").result(LONG) == [("oslo", 3.0), ("rome", 20.0)]
        assert pool.submit(db.apply, {"insert": {"city": [["bern"]]}}).result(LONG)["now"].plus == {("bern", 8.0)}
        assert pool.submit(db.apply, {"delete": {"city": [["rome"]]}}).result(LONG)["now"].minus == {("rome", 20.0)}
        gate.set()
        delta = refresh.result(LONG)["now"]
        assert delta == Delta(frozenset({("oslo", 4.0)}), frozenset({("oslo", 3.0)})), "what was forgotten meanwhile does not come back"
        assert db.view("now") == {("oslo", 4.0), ("bern", 8.0)}


def test_an_older_refresh_does_not_undo_a_later_one(tmp_path: Path, service: Service, pool: ThreadPoolExecutor) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, "memory", {"city": [("rome",)]}) as db:
        service.values = {"rome": [2.0]}
        gate = service.shut("rome")
        older = pool.submit(db.refresh, "w")
        service.was_asked("rome", 2)
        del service.gates["rome"]
        service.values = {"rome": [3.0]}
        assert db.refresh("w")["now"].plus == {("rome", 3.0)}
        gate.set()
        assert older.result(LONG) == {} and db.view("now") == {("rome", 3.0)}


def test_an_answer_that_is_older_than_a_refresh_is_asked_for_anew(tmp_path: Path, service: Service, pool: ThreadPoolExecutor) -> None:
    service.values = {"rome": [1.0], "oslo": [1.0]}
    with opened(tmp_path, service, "memory", {"city": [("rome",)]}) as db:
        gate = service.shut("oslo")
        slow = pool.submit(db.apply, {"insert": {"city": [["oslo"]]}})
        service.was_asked("oslo")
        service.values = {"rome": [2.0], "oslo": [2.0]}
        assert db.refresh("w")["now"].plus == {("rome", 2.0)}
        gate.set()
        assert slow.result(LONG)["now"].plus == {("oslo", 2.0)}, "as the refresh before it has seen the source"
        assert service.asked.count("oslo") == 2


def test_a_source_that_dies_while_it_is_waited_for(tmp_path: Path, service: Service, pool: ThreadPoolExecutor) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, "folder", {"city": [("rome",)]}, ", retries=0") as db:
        text = db.status().sources  # type: ignore[attr-defined]  # a folder has a status
        assert [(one.name, one.kind, one.calls, one.stale) for one in text] == [("w", "rest", 1, False)]
        gate = service.shut("oslo")
        slow = pool.submit(db.apply, {"insert": {"city": [["oslo"]]}})
        service.was_asked("oslo")
        service.server.server_close()  # nobody can connect any more
        gate.set()
        slow.result(LONG)
        with pytest.raises(DomainError):
            db.refresh("w")
        with pytest.raises(DomainError):
            db.apply({"insert": {"city": [["bern"]]}})
        assert db.apply({"insert": {"other": [[1]]}})["twice"].plus == {(2,)}
        assert db.view("now") == {("rome", 1.0)} and db.rows("city") == {("rome",), ("oslo",)}


def test_whoever_asks_a_deferred_relation_waits_alone(tmp_path: Path, service: Service, pool: ThreadPoolExecutor) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, "folder", {"city": [("rome",)]}, head="late") as db:
        assert service.asked == [], "nobody has asked"
        gate = service.shut("rome")
        answer = pool.submit(db.ask, "now(x, t)")
        service.was_asked("rome")
        assert pool.submit(db.apply, {"insert": {"other": [[1]]}}).result(LONG)["twice"].plus == {(2,)}
        gate.set()
        assert answer.result(LONG) == [("rome", 1.0)]


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_domain_is_refreshed_by_itself(tmp_path: Path, service: Service, kind: str) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, kind, {"city": [("rome",)]}, ", refresh=200ms") as db:
        told, came = list[Any](), threading.Event()

        def heard(outcome: Outcome) -> None:
            told.append(outcome.deltas["now"])
            came.set()

        db.step.listeners.append(heard)
        service.values = {"rome": [2.0]}
        assert came.wait(LONG) and told[0].plus == {("rome", 2.0)} and db.view("now") == {("rome", 2.0)}
        number = len(told)
        times = service.asked.count("rome")
        service.was_asked("rome", times + 2)
        assert len(told) == number, "nothing was different, nothing is told"
    before = len(service.asked)
    time.sleep(0.5)
    assert len(service.asked) <= before + 1, "a database that is closed asks nobody"


def test_a_refresh_by_itself_that_fails_is_told_by_the_status(tmp_path: Path, service: Service) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, "folder", {"city": [("rome",)]}, ", refresh=1h") as db:
        service.values = {"rome": [float("nan")]}  # which is no value
        Refresher(db).refresh("w")
        (source,) = db.status().sources  # type: ignore[attr-defined]  # a folder has a status
        assert source.stale and source.refresh == 3600 and "w" in source.trouble
        assert db.view("now") == {("rome", 1.0)}
        service.values = {"rome": [2.0]}
        Refresher(db).refresh("w")
        (source,) = db.status().sources  # type: ignore[attr-defined]  # a folder has a status
        assert not source.stale and source.read_at is not None and db.view("now") == {("rome", 2.0)}


def test_watch_tells_a_refresh_by_itself_between_the_lines(tmp_path: Path, service: Service) -> None:
    service.values = {"rome": [1.0]}
    with opened(tmp_path, service, "memory", {"city": [("rome",)]}, ", refresh=100ms") as db:
        more = threading.Event()

        def lines() -> Iterator[str]:
            yield '{"insert": {"other": [[1]]}}'
            more.wait(LONG)
            yield '{"insert": {"other": [[2]]}}'

        answers = watch(db, lines())
        assert next(answers)["views"]["twice"]["plus"] == [[2]]
        service.values = {"rome": [2.0]}
        assert next(answers) == {"tx": 1, "refresh": ["w"], "views": {"now": {"plus": [["rome", 2.0]], "minus": [["rome", 1.0]]}}}
        service.server.server_close()
        told = next(answers)
        assert told["tx"] == 1 and told["views"] == {} and "w" in told["stale"]
        more.set()
        assert next(answers) == {"tx": 2, "views": {"twice": {"plus": [[4]], "minus": []}}}
        assert list(answers) == [], "the lines are at their end"


def test_recursion_that_makes_ever_new_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vigilog.engine import rounds, sources

    monkeypatch.setattr(sources, "MOST_ROUNDS", 150)
    monkeypatch.setattr(rounds, "FOLLOWING_ROUNDS", 150)
    (tmp_path / "numbers.py").write_text("def succ(x: int) -> int:\n    return x + 1\n")
    text = f"""
.domain g(kind=python, module="numbers", beside="{tmp_path}")
.decl n(x: number)
.decl reach(x: number)
.output reach
reach(x) :- n(x).
reach(y) :- reach(x), in(y, g:succ(x)), x < {{most}}.
"""
    with open_program(text.format(most=130), {"n": []}) as db:
        assert db.apply({"insert": {"n": [[1]]}})["reach"].plus == {(x,) for x in range(1, 131)}
    with open_program(text.format(most=10**9), {"n": []}) as db:
        with pytest.raises(DataError) as refused:
            db.apply({"insert": {"n": [[1]]}})
        assert refused.value.code == "rounds" and db.view("reach") == set()
    with pytest.raises(DataError) as refused:
        open_program(text.format(most=10**9), {"n": [(1,)]})
    assert refused.value.code == "rounds"
