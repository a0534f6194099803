"""Conditions through the service: what transactions answer, what refuses them, and alerts that are followed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served, until
from vigilog.client import Alert, Snapshot, connect
from vigilog.core.errors import DataError, Refused

STOCK = """
.decl stock(item: symbol, n: number)
.key stock(item)
.output stock
.decl orders(item: symbol, n: number)
.decl low(item: symbol, n: number)
low(i, n) :- stock(i, n), n < 4.
.alert low(key=item, message="{item}: {n}", severity=warning)
.alert low(name=more, key=item, mode=resatisfiable)
.trigger low(insert=orders)
.decl negative(item: symbol, n: number)
negative(i, n) :- stock(i, n), n < 0.
.constraint negative
.decl many(n: number)
many(c) :- c = count : { orders(_, _) }, c > 100.
.constraint many(mode=deferred)
"""


@pytest.fixture
def stock(serve: Serve) -> Served:
    return serve(program=STOCK)


def rows(*found: tuple[str, int]) -> dict[str, Any]:
    return {"upsert": {"stock": list(found)}}


@pytest.mark.apart
def test_a_transaction_answers_with_what_conditions_made_of_it(stock: Served) -> None:
    with connect(stock.url) as client:
        preview = client.what_if(rows(("nut", 3)))
        receipt = client.tell(rows(("nut", 3)))
        said = {"alert": "low", "state": "satisfied", "row": ["nut", 3], "message": "nut: 3", "severity": "warning"}
        assert receipt.alerts[0] == preview.alerts[0] == said and receipt.alerts[1]["alert"] == "more"
        assert receipt.triggered == preview.triggered == {"orders": {"insert": [["nut", 3]], "delete": []}}
        assert client.tell(rows(("pin", 9))).alerts == ()
        with pytest.raises(Refused, match="negative is violated by 1 row") as refused:
            client.tell(rows(("pin", -1)))
        members = refused.value.members
        assert members["constraint"] == "negative" and members["rows"] == [["pin", -1]] and members["place"].endswith(":13:13")
        assert members["why"][0]["literal"] == 'negative("pin", -1)'
        with pytest.raises(Refused):
            client.what_if(rows(("pin", -1)))
        assert client.violations() == [] and client.ask("stock(i, n)")[1] == ("pin", 9)


@pytest.mark.apart
def test_integers_in_reports_are_text_if_that_is_wished(stock: Served) -> None:
    """A report's rows are rows: a page whose numbers are not exact gets them as it gets all others."""
    stock.tell(upsert={"stock": [["nut", 3]]})
    for form in ("dry_run=true&", ""):
        said = stock.call("POST", f"/v1/transactions?{form}integers=text", json=rows(("nut", 2))).json()
        assert said["alerts"][-1]["row"] == ["nut", "2"] and said["alerts"][-1]["old"] == ["nut", "3"]
        assert said["triggered"]["orders"]["insert"] == [["nut", "2"]]


@pytest.mark.apart
def test_an_alert_is_followed_over_a_lost_connection_and_a_restart(stock: Served) -> None:
    with connect(stock.url) as client:
        client.tell(rows(("nut", 3), ("bolt", 1), ("pin", 9)))
        with client.alerts("low", name="mine", acknowledge=False) as alerts:
            first = next(alerts)
            assert isinstance(first, Snapshot) and first.rows == {("nut", 3), ("bolt", 1)}
            client.tell(rows(("pin", 2), ("nut", 8)))
            assert [next(alerts) for _ in range(2)] == [
                Alert(2, "low", "ceased", ("nut", 3), message="nut: 3", severity="warning", left=1),
                Alert(2, "low", "satisfied", ("pin", 2), message="pin: 2", severity="warning"),
            ]
            alerts.ack(2)
        client.tell(rows(("nut", 0)))
    stock.stop()
    stock.start()
    with connect(stock.url) as client:
        with client.alerts("low", name="mine") as alerts:
            later = next(alerts)
            assert isinstance(later, Alert) and (later.tx, later.state, later.row) == (3, "satisfied", ("nut", 0))
        with client.alerts("more", since=0, bind={"item": "nut"}) as alerts:
            found = [next(alerts) for _ in range(3)]
            assert [(one.tx, one.state, one.proofs) for one in found if isinstance(one, Alert)] == [
                (1, "satisfied", 1),
                (2, "ceased", None),
                (3, "satisfied", 1),
            ]
        with pytest.raises(DataError, match="there is no alert lwo; did you mean low"):
            client.alerts("lwo")
        with pytest.raises(DataError, match="low has no column items"):
            client.alerts("low", bind={"items": "x"})


@pytest.mark.apart
def test_an_alert_is_followed_on_the_command_line(stock: Served) -> None:
    stock.tell(upsert={"stock": [["nut", 3], ["pin", 1]]})
    follow = [sys.executable, "-m", "vigilog.cli.main", "subscribe", stock.url]
    once = subprocess.run(
        [*follow, "low", "--alert", "--once", "--bind", "item=nut"], capture_output=True, text=True, check=True, timeout=60
    )
    assert json.loads(once.stdout) == {"tx": 1, "views": {"low": {"plus": [["nut", 3]], "minus": []}}}
    with subprocess.Popen([*follow, "more", "--alert", "--from", "0", "--name", "pager"], stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        said = [json.loads(following.stdout.readline())["alert"] for _ in range(2)]
        assert [(one["alert"], one["state"], one["row"], one["proofs"]) for one in said] == [
            ("more", "satisfied", ["nut", 3], 1),
            ("more", "satisfied", ["pin", 1], 1),
        ]
        with connect(stock.url) as client:
            until(lambda: [(found["name"], found["tx"]) for found in client.subscriptions()] == [("pager", 1)])
        following.send_signal(signal.SIGINT)
        following.wait(60)
    bound = subprocess.run([*follow, "more", "--alert", "--once", "--bind", "n=1"], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(bound.stdout)["views"]["more"]["plus"] == [["pin", 1]]


TIMED = """
.decl stock(item: symbol, n: number)
.key stock(item)
.decl low(item: symbol, n: number)
low(i, n) :- stock(i, n), n < 4.
.alert low(name=late, key=item, for=3600)
.alert low(name=long, key=item, keep=3600)
.alert low(key=item, keep=3600, for=3600)
"""


@pytest.mark.apart
def test_a_first_answer_is_what_was_reported(serve: Serve) -> None:
    """And not what holds, where that still waits: nobody would be told that it has ceased."""
    timed = serve(program=TIMED)
    with connect(timed.url) as client:
        client.tell(rows(("nut", 3), ("pin", 1)))
        client.tell(rows(("pin", 9)))
        for restarted in (False, True):
            if restarted:
                timed.kill()
                timed.start()
            for name, found in (("late", set()), ("long", {("nut", 3), ("pin", 1)}), ("low", set())):
                with client.alerts(name) as alerts:
                    first = next(alerts)
                    assert isinstance(first, Snapshot) and first.rows == found
        with client.alerts("long", bind={"item": "pin"}) as alerts:
            first = next(alerts)
            assert isinstance(first, Snapshot) and first.rows == {("pin", 1)}


VIOLATED = STOCK + 'stock("gone", -5).\n'


@pytest.mark.apart
def test_a_file_has_all_alerts_over_a_crash_and_a_definition(serve: Serve, tmp_path: Path) -> None:
    lines = tmp_path / "alerts.jsonl"
    stock = serve("--alerts", str(lines), program=VIOLATED)
    assert "warning[violated]: negative is violated by 1 row" in stock.log.read_text()
    with connect(stock.url) as client:
        client.tell(rows(("nut", 3)))
        client.define(".decl high(item: symbol)\nhigh(i) :- stock(i, n), n > 50.\n.alert high")
    stock.kill()
    stock.start()
    assert stock.log.read_text().count("warning[violated]") == 1, "it is said once"
    with connect(stock.url) as client:
        client.tell(rows(("nut", 60)))
    expected = [(1, "low", "satisfied"), (1, "more", "satisfied"), (3, "high", "satisfied"), (3, "low", "ceased"), (3, "more", "ceased")]
    until(lambda: [(said["tx"], said["alert"], said["state"]) for said in map(json.loads, lines.read_text().splitlines())] == expected)
