"""How often, how much, and how late: each wish with a real subscription. Times are compared with each other, never with a clock's idea of fast."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.service.serving import Served

pytestmark = pytest.mark.apart


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = ("--limit=progress=0.2", "--limit=heartbeat=2", "--limit=large=15", "--limit=pending=10")
    server = Served(tmp_path_factory.mktemp("qos"), *limits).start()
    yield server
    server.kill()


@pytest.fixture
def server(running: Served) -> Served:
    return running.clear()


def play(server: Served, number: int = 6) -> list[int]:
    """Some transactions, of which two undo each other; gives their numbers."""
    txs = [server.insert((f"n{index}", f"n{index + 1}")) for index in range(number)]
    return [*txs, server.insert(("brief", "z")), server.delete(("brief", "z"))]


def test_at_once_by_default(server: Served) -> None:
    with server.following(view="closure") as talk:
        txs = play(server)
        assert [talk.change()["tx"] for _ in txs] == txs
        assert talk.rows() == server.view("closure")


def test_at_most_so_often(server: Served) -> None:
    """Messages of an interval come together, none of them left out, and no two intervals are shorter than wished."""
    with server.following(view="closure", qos={"every": 1.0}) as talk:
        first = server.insert(("a", "b"))
        assert talk.change()["tx"] == first
        came = [time.monotonic()]
        txs = play(server, 3)
        for tx in txs:
            assert talk.change()["tx"] == tx
            came.append(time.monotonic())
        assert came[1] - came[0] > 0.5, "it waited"
        later = [server.insert(("x", "y"))]
        assert talk.change()["tx"] == later[0]
        assert time.monotonic() - came[-1] > 0.5
        assert talk.rows() == server.view("closure")


def test_coalesced(server: Served) -> None:
    """One message with the net effect: a row that came and went is not in it."""
    with server.following(view="closure", qos={"every": 3.0, "coalesce": True}) as talk:
        begun = talk.tx
        txs = play(server, 4)
        said = [talk.change()]
        while said[-1]["tx"] < txs[-1] and talk.rows() != server.view("closure"):
            said.append(talk.change())
        assert len(said) <= 3 < len(txs)
        assert said[0]["since"] >= begun and all(one["tx"] <= other["since"] for one, other in itertools.pairwise(said))
        assert all(row[0] != "brief" for one in said if one["tx"] == txs[-1] for row in [*one["plus"], *one["minus"]])
        assert talk.rows() == server.view("closure")


def test_nothing_is_said_of_what_came_and_went(server: Served) -> None:
    with server.following(view="closure", qos={"within": 1.5, "coalesce": True}) as talk:
        server.insert(("a", "b"))
        last = server.delete(("a", "b"))
        while (said := talk.next()).get("progress", {}).get("tx") != last:
            assert "change" not in said


def test_so_many_changes_or_so_long(server: Served) -> None:
    with server.following(view="closure", qos={"changes": 3, "within": 60}) as talk:
        txs = [server.insert((f"n{index}", "z")) for index in range(3)]
        assert [talk.change()["tx"] for _ in txs] == txs, "three are there, so none waits for a minute"
        server.insert(("one", "more"))
        with pytest.raises(TimeoutError):
            talk.change(seconds=0.5)
    with server.following(view="closure", qos={"changes": 100, "within": 0.3}) as talk:
        tx = server.insert(("a", "z"))
        assert talk.change()["tx"] == tx


@pytest.mark.parametrize("precision", ["counts", "signal"])
def test_precision(server: Served, precision: str) -> None:
    server.insert(("a", "b"))
    with server.following(view="closure", qos={"precision": precision}) as talk, server.socket() as both:
        both.subscribe(views=["closure", "degree"], qos={"precision": precision})
        tx = server.insert(("b", "c"))
        counts = {"closure": {"plus": 2, "minus": 0}, "degree": {"plus": 1, "minus": 0}}
        said = talk.change()
        assert said == {"tx": tx, "digest": said["digest"], **(counts["closure"] if precision == "counts" else {})}
        assert both.hear("change")["change"] == {
            "tx": tx,
            "digest": said["digest"],
            "views": counts if precision == "counts" else {"closure": {}, "degree": {}},
        }


def test_counts_of_large_changes(server: Served) -> None:
    with server.following(view="degree", qos={"precision": "counts"}) as talk:
        server.insert(*((f"n{index}", "z") for index in range(20)))
        assert talk.change()["plus"] == 20


def test_staleness_is_told_once_and_taken_back(server: Served) -> None:
    with server.following(view="closure", qos={"every": 3.0, "max_staleness": 0.5}) as talk:
        server.insert(("a", "b"))
        last = server.insert(("b", "c"))
        said = [talk.hear() for _ in range(4)]
        kinds = [next(iter(one)) for one in said]
        assert kinds in (["stale", "change", "change", "stale"], ["change", "stale", "change", "stale"]), kinds
        stale = [one["stale"] for one in said if "stale" in one]
        assert stale[0]["behind"] > 0.5 and stale[0]["since"] < last and stale[1]["behind"] == 0


def test_progress_and_heartbeat(server: Served) -> None:
    """An idle client is told how far all is: soon where there is news, later where there is none; and while its changes wait."""
    with server.following(view="closure", bind={"x": "nobody"}) as idle, server.socket() as waiting:
        waiting.subscribe(view="closure", qos={"every": 60})
        waiting.say(ping=0)
        waiting.hear("pong")
        tx = server.insert(("a", "b"))
        began = time.monotonic()
        while idle.next()["progress"]["tx"] != tx:
            pass
        news = time.monotonic() - began
        assert idle.next()["progress"]["tx"] == tx, "a heartbeat"
        assert time.monotonic() - began > news
        said = waiting.next()
        assert said["progress"]["tx"] < tx, "what waits is not taken to be told"


WISHES: list[dict[str, Any]] = [
    {},
    {"every": 0.05},
    {"every": 0.05, "coalesce": True},
    {"changes": 4, "within": 0.2},
    {"changes": 4, "within": 0.2, "coalesce": True},
    {"within": 0.1},
    {"max_staleness": 0.01},
]


def test_whatever_is_wished_the_copy_is_right(server: Served) -> None:
    """Little waits in memory here, so that most of what waits comes from the disk."""
    with ExitStack() as stack:
        talks = [stack.enter_context(server.following(views=["closure", "degree"], qos=qos)) for qos in WISHES]
        for index in range(30):
            server.tell(insert={"edge": [[f"n{index % 7}", f"n{index % 5}"]]}, delete={"edge": [[f"n{index % 3}", f"n{index % 4}"]]})
        last = server.insert(("end", "z"))
        for talk in talks:
            while talk.tx < last:
                said = talk.hear()
                if "change" in said:
                    talk.apply(said["change"])
            assert talk.copy == {view: server.view(view) for view in talk.copy}
