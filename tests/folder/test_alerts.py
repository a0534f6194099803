"""Alerts of a data folder: what waits, what is held back, and where reports go, with a clock that the tests turn."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from vigilog.core.errors import DataError
from vigilog.folder.alerts import Clock
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

PATIENCE = 30.0
PROGRAM = """
.decl stock(item: symbol, n: number)
.key stock(item)
.decl low(item: symbol, n: number)
low(i, n) :- stock(i, n), n < 4.
.alert low(key=item, message="{item}: {n}", severity=warning, every=600)
.alert low(name=slow, key=item, for=60, keep=30)
.alert low(name=event, key=item, mode=resatisfiable)
"""


class Turned:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Turned:
    """The clock of every database that a test opens, which nobody looks at but the test."""
    turned = Turned()
    monkeypatch.setattr(Durable, "clock", staticmethod(turned))
    monkeypatch.setattr(Clock, "start", lambda self: None)
    return turned


def opened(folder: Path, clock: Turned, program: str | None = PROGRAM) -> Durable:
    db = open_program(program, data=folder)
    assert db.clock is clock
    return db


def levels(db: Durable, **found: int) -> list[tuple[str, str, tuple[Any, ...]]]:
    outcome = db.take({"upsert": {"stock": list(found.items())}})
    return [(report.alert, report.state, report.row) for report in outcome.alerts if report.alert == "slow"]


def fallen_due(db: Durable) -> list[tuple[str, tuple[Any, ...]]]:
    outcome = db.due()
    return [(report.state, report.row) for report in outcome.alerts] if outcome else []


def test_what_holds_long_enough_is_reported_as_a_transaction_of_its_own(tmp_path: Path, clock: Turned) -> None:
    with opened(tmp_path / "data", clock) as db:
        assert levels(db, nut=3, pin=1) == []
        clock.now += 59
        assert fallen_due(db) == [] and levels(db, pin=9) == [], "what has ceased before is not reported at all"
    with opened(tmp_path / "data", clock, None) as db:
        clock.now += 1
        before = db.tx
        assert fallen_due(db) == [("satisfied", ("nut", 3))] and db.tx == before + 1
        assert [entry.kind for entry in db.book.log.entries(before)] == ["alerts"]
        assert fallen_due(db) == []
    with opened(tmp_path / "data", clock, None) as db:
        assert fallen_due(db) == [], "nothing is reported again because of a restart"
        assert levels(db, nut=8) == []
        clock.now += 29
        assert levels(db, nut=2) == [] and fallen_due(db) == [], "it came back in time"
        levels(db, nut=8)
        clock.now += 30
        assert fallen_due(db) == [("ceased", ("nut", 2))]
        assert [said["state"] for _, said in db.reports(0, alerts=["slow"])] == ["satisfied", "ceased"]
        assert db.verify().problems == []


def test_a_refused_or_hypothetical_transaction_leaves_nothing_waiting(tmp_path: Path, clock: Turned) -> None:
    program = PROGRAM + ".decl bad(i: symbol)\nbad(i) :- stock(i, n), n < 0.\n.constraint bad\n"
    with opened(tmp_path / "data", clock, program) as db:
        with pytest.raises(DataError, match="bad is violated"):
            db.take({"upsert": {"stock": [("nut", -1)]}})
        db.take({"upsert": {"stock": [("nut", 1)]}}, keep=False)
        assert not db.waiting and db.reports(0) == [] and db.tx == 0
        (noted,) = db.file.connection.execute("SELECT count(*) FROM vigilog_alerts").fetchone()
        assert noted == 0


def test_time_passes_by_itself(tmp_path: Path) -> None:
    with open_program(PROGRAM.replace("for=60, keep=30", "for=1"), data=tmp_path / "data") as db:
        heard = threading.Event()
        db.on_alert("slow", lambda said: heard.set())
        db.take({"upsert": {"stock": [("nut", 1)]}})
        assert heard.wait(PATIENCE)


def test_every_and_acknowledgements_hold_callables_back(tmp_path: Path, clock: Turned) -> None:
    with opened(tmp_path / "data", clock) as db:
        heard: list[tuple[Any, ...]] = []
        sink = db.on_alert("low", lambda said: heard.append((said["tx"], said["state"], said["row"])))
        levels(db, nut=3)
        levels(db, nut=8)
        levels(db, nut=2)  # within 600 seconds
        levels(db, nut=8)
        clock.now += 600
        levels(db, nut=1)
        sink.catch_up(PATIENCE)
        assert heard == [(1, "satisfied", ["nut", 3]), (2, "ceased", ["nut", 3]), (5, "satisfied", ["nut", 1])]
        assert len(db.reports(0, alerts=["low"])) == 5, "the outbox has every report"
        heard.clear()
        event = db.on_alert("event", lambda said: heard.append((said["state"], said["row"])))
        assert db.ack("event", ["nut"]) == ("nut",) and db.ack("event", ["nut", 1]) == ("nut",)
        levels(db, nut=0)
        levels(db, nut=9)
        levels(db, nut=0)
        event.catch_up(PATIENCE)
        assert [said for said in heard if len(said) == 2] == [("ceased", ["nut", 0]), ("satisfied", ["nut", 0])], "silent until it ceased"
        with pytest.raises(DataError, match=r'event does not hold for \["pin"\]') as unseen:
            db.ack("event", ["pin"])
        assert unseen.value.code == "absent", "what comes later nobody has seen"
        for name, row, why in (("evnt", ["nut"], "did you mean event"), ("low", [1, 2, 3], "cells"), ("low", [7], "nut|text|symbol")):
            with pytest.raises(DataError, match=why):
                db.ack(name, row)


def test_what_is_not_reported_yet_is_not_seen(tmp_path: Path, clock: Turned) -> None:
    """Nothing would end such a note, if it ceased before it was reported; while it waits to have ceased, it still holds."""
    with opened(tmp_path / "data", clock) as db:
        levels(db, nut=3)
        with pytest.raises(DataError, match="slow does not hold"):
            db.ack("slow", ["nut"])
        clock.now += 60
        assert fallen_due(db) == [("satisfied", ("nut", 3))] and db.ack("slow", ["nut"]) == ("nut",)
        levels(db, nut=9)
        assert db.ack("slow", ["nut"]) == ("nut",)
        clock.now += 30
        assert fallen_due(db) == [("ceased", ("nut", 3))]
        with pytest.raises(DataError, match="slow does not hold"):
            db.ack("slow", ["nut", 3])
        assert db.file.connection.execute("SELECT count(*) FROM vigilog_alerts").fetchone() == (0,)


BY_ITEM = ".alert low(name=slow, key=item, for=60, keep=30)\n"


@pytest.mark.parametrize(
    ("before", "after", "back"),
    [
        (BY_ITEM, "", True),
        (BY_ITEM, BY_ITEM.replace("key=item", "key=n"), True),
        ("low(item: symbol, n: number)\nlow(i, n)", "low(item: symbol)\nlow(i)", False),
    ],
)
def test_what_waits_for_an_alert_that_is_redefined_is_forgotten(before: str, after: str, back: bool, tmp_path: Path, clock: Turned) -> None:
    """Where it was kept, it was reported of whatever had the name later, or could not be read any more."""
    program = (
        PROGRAM.replace(', message="{item}: {n}", severity=warning, every=600', "")
        + ".decl bad(i: symbol)\nbad(i) :- stock(i, n), n < 0.\n.constraint bad\n"
    )
    other = program.replace(before, after)
    with opened(tmp_path / "data", clock, program) as db:
        levels(db, nut=3, pin=1)
        db.ack("low", ["nut"])
        with pytest.raises(DataError, match="bad is violated"):
            db.define(BY_ITEM.replace("key=item", "key=n") + 'stock("neg", -1).')
        assert len(db.waiting) == 2, "what is refused forgets nothing"
        noted = db.file.connection.execute("SELECT kind, alert FROM vigilog_alerts").fetchall()
        assert sorted(noted) == [("seen", "low"), ("waiting", "slow"), ("waiting", "slow")]
    with open_program(other, data=tmp_path / "data", define=True) as db:
        assert not db.waiting
        clock.now += 100
        assert db.due() is None and db.verify().problems == []
        levels(db, pin=9)
    if back:
        with open_program(program, data=tmp_path / "data", define=True) as db:
            assert not db.waiting and db.due() is None, "what held before counts as reported"
            assert [said["row"] for _, said in db.reports(0, alerts=["slow"])] == []


def test_a_callable_that_raises_is_tried_again(tmp_path: Path, clock: Turned, caplog: pytest.LogCaptureFixture) -> None:
    with opened(tmp_path / "data", clock) as db:
        heard: list[str] = []

        def awkward(said: dict[str, Any]) -> None:
            heard.append(said["row"][0])
            if len(heard) == 2:
                raise ValueError("not now")

        sink = db.on_alert("low", awkward)
        levels(db, nut=1, pin=2)
        sink.catch_up(PATIENCE)
        assert heard == ["nut", "pin", "pin"] and "raised ValueError: not now" in caplog.text


class Heard(HTTPServer):
    """A server that notes what is posted; it refuses the first."""

    def __init__(self) -> None:
        self.posts: list[tuple[str, Any, str]] = []
        self.refusing = 1
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = 503 if server.refusing else 200
                server.refusing = max(0, server.refusing - 1)
                if status == 200:
                    server.posts.append((self.path, body, self.headers["Idempotency-Key"]))
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """It is quiet."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def heard() -> Iterator[Heard]:
    server = Heard()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def lines_of(path: Path) -> list[tuple[int, str, str, list[Any]]]:
    return [(said["tx"], said["alert"], said["state"], said["row"]) for said in map(json.loads, path.read_text().splitlines())]


def test_all_alerts_go_into_one_file_once_each_and_in_order(tmp_path: Path, clock: Turned) -> None:
    """Also those that are defined later; and a line whose note was lost is not written again."""
    path = tmp_path / "alerts.jsonl"
    with opened(tmp_path / "data", clock) as db:
        sink = db.sink("alert:*", "file", path, name="all")
        levels(db, nut=3)
        db.define(".decl high(item: symbol)\nhigh(i) :- stock(i, n), n > 50.\n.alert high(every=600)")
        levels(db, pin=60)
        levels(db, pin=6)
        levels(db, pin=60, nut=2)
        sink.catch_up(PATIENCE)
        expected = [
            (1, "event", "satisfied", ["nut", 3]),
            (1, "low", "satisfied", ["nut", 3]),
            (3, "high", "satisfied", ["pin"]),
            (4, "high", "ceased", ["pin"]),
            (5, "event", "again", ["nut", 2]),
        ]
        assert lines_of(path) == expected
        noted = db.book.position("sink all")
        levels(db, bolt=1)
        sink.catch_up(PATIENCE)
        expected += [(6, "event", "satisfied", ["bolt", 1]), (6, "low", "satisfied", ["bolt", 1])]
        assert lines_of(path) == expected
        sink.stop()
        with db.writing():
            db.book.note_source("sink all", {**noted, "tx": 5, "done": 1})  # as if it had ended between the line and the note
    with path.open("ab") as half:
        half.write(b'{"tx": 7')  # as if the machine had ended while it was written
    with opened(tmp_path / "data", clock, None) as db:
        again = db.sink("alert:*", "file", path, name="all")
        levels(db, bolt=9)
        again.catch_up(PATIENCE)
        assert b'{"tx": 7\n{"tx": 7, "alert": "event"' in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(b'{"tx": 7\n', b""))
        assert lines_of(path) == [*expected, *((7, name, "ceased", ["bolt", 1]) for name in ("event", "low"))]


def test_a_sink_begins_when_it_is_made(tmp_path: Path, clock: Turned, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not when its thread comes to look."""
    path = tmp_path / "alerts.jsonl"
    with opened(tmp_path / "data", clock) as db, monkeypatch.context() as later:
        later.setattr(threading.Thread, "start", lambda self: None)
        sink = db.sink("low", "file", path)
        levels(db, nut=3)
        later.undo()
        sink.thread.start()
        sink.catch_up(PATIENCE)
        assert lines_of(path) == [(1, "low", "satisfied", ["nut", 3])]


def test_a_webhook_and_alertmanager_and_a_file(tmp_path: Path, clock: Turned, heard: Heard) -> None:
    url, lines = f"http://127.0.0.1:{heard.server_port}", tmp_path / "alerts.jsonl"
    with opened(tmp_path / "data", clock) as db:
        levels(db, bolt=1)
        db.sink("low", "webhook", f"{url}/hook").catch_up(PATIENCE)
        levels(db, nut=3)
        db.sinks()[0].catch_up(PATIENCE)
        ((path, body, key),) = heard.posts
        history = db.file.history
        told = {"alert": "low", "state": "satisfied", "row": ["nut", 3], "message": "nut: 3", "severity": "warning"}
        assert path == "/hook" and body == {"alert": {"db": history, "tx": 2, **told, "at": 1000.0}} and key == f"{history}-alert:low-2-0"
    with opened(tmp_path / "data", clock, None) as db:
        heard.posts.clear()
        levels(db, nut=2)
        levels(db, nut=8, pin=1)
        db.sink("low", "webhook", f"{url}/hook").catch_up(PATIENCE)
        assert [(body["alert"]["state"], body["alert"]["row"]) for _, body, _ in heard.posts] == [
            ("ceased", ["nut", 2]),
            ("satisfied", ["pin", 1]),
        ], "it goes on where it was left"
        heard.posts.clear()
        manager = db.sink("alert:low", "alertmanager", url, name="manager")
        file = db.sink("event", "file", lines)
        for sink in (manager, file):
            sink.catch_up(PATIENCE)
        levels(db, gear=2)
        levels(db, gear=9)
        for sink in (manager, file):
            sink.catch_up(PATIENCE)
        (path, (began,), _), (_, (ended,), _) = [post for post in heard.posts if post[0] != "/hook"]
        assert path == "/api/v2/alerts" and began["labels"] == {"alertname": "low", "severity": "warning", "item": "gear"}
        assert began["annotations"] == {"summary": "gear: 2"} and began["endsAt"] > began["startsAt"]
        assert ended["labels"] == began["labels"] and ended["endsAt"] == began["startsAt"] and "startsAt" not in ended
        written = [json.loads(line) for line in lines.read_text().splitlines()]
        assert [(line["tx"], line["state"], line["row"]) for line in written] == [(5, "satisfied", ["gear", 2]), (6, "ceased", ["gear", 2])]
        with pytest.raises(DataError, match="there is no alert sloww"):
            db.on_alert("sloww", print)
