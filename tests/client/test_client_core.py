"""The client's core without a server: what it says and gives, for each thing that a server may say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from vigilog.client import calls
from vigilog.client.columns import Columns
from vigilog.client.effects import Close, Effect, Give, Lost, Open, Pause, Receive, Request, Response, Running, Send
from vigilog.client.events import Change, Disconnected, Event, Gap, Progress, Snapshot, Stale, Subscribed
from vigilog.client.subscription import Subscription, follow
from vigilog.client.wishes import Following, followed, held
from vigilog.core.delta import Delta
from vigilog.core.errors import ConnectionLost, DataError, UsageError
from vigilog.core.values import SYMBOL
from vigilog.protocol.calls import ARROW
from vigilog.protocol.messages import Mark

EDGE = {"edge": {"columns": [{"name": "x", "type": "symbol"}, {"name": "y", "type": "symbol"}]}}
DAY = {"day": {"columns": [{"name": "day", "type": "date"}, {"name": "price", "type": "decimal(6,2)"}], "key": ["day"]}}


class World:
    """Plays the server's part: what was said is in `sent`, what was given in `given`; a pause takes no time."""

    def __init__(self, subscription: Subscription) -> None:
        self.running = Running(follow(subscription))
        self.sent: list[Any] = []
        self.given: list[Event] = []
        self.opened = 0
        self.fetched: list[str] = []
        self.answers: dict[str, Response] = {}

    def hear(self, *messages: dict[str, Any] | Lost) -> World:
        """Lets the client hear messages, one after the other, and gives what it wants then."""
        waiting = iter(messages)
        while self._go_on(waiting):
            pass
        return self

    def _go_on(self, waiting: Iterator[dict[str, Any] | Lost]) -> bool:
        effect = self.running.effect
        came: Any = None
        match effect:
            case Open():
                self.opened += 1
            case Send():
                self.sent.append(json.loads(effect.text))
            case Give():
                self.given.append(effect.event)
                came = True
            case Request():
                self.fetched.append(effect.path)
                assert effect.headers["Accept"] == ARROW
                came = self.answers[effect.path]
            case Receive():
                said = next(waiting, None)
                if said is None:
                    return False
                if isinstance(said, Lost):
                    self.running.lose(said)
                    return True
                came = json.dumps(said)
            case _:
                assert isinstance(effect, Pause | Close)
        self.running.answer(came)
        return True


def subscribed(tx: int, views: dict[str, Any] = EDGE, db: str = "h1") -> dict[str, Any]:
    return {"subscribed": {"db": db, "tx": tx, "views": views}}


def part(tx: int, rows: list[list[Any]], number: int = 1, of: int = 1) -> dict[str, Any]:
    return {"snapshot": {"tx": tx, "rows": rows, "part": number, "of": of, "last": number == of}}


def change(tx: int, plus: Any = (), minus: Any = (), **more: Any) -> dict[str, Any]:
    return {"change": {"tx": tx, "plus": plus, "minus": minus, **more}}


def test_first_answer_in_parts_then_changes_each_once() -> None:
    world = World(followed("edge", {}))
    world.hear(subscribed(41), part(41, [["a", "b"]], 1, 2), part(41, [["b", "c"]], 2, 2), change(43, [["a", "h"]], [["a", "b"]]))
    assert world.sent == [{"subscribe": {"view": "edge", "from": None}}]
    assert isinstance(world.given[0], Subscribed)
    assert world.given[1:] == [
        Snapshot("h1", 41, {"edge": frozenset({("a", "b"), ("b", "c")})}),
        Change(43, {"edge": Delta(frozenset({("a", "h")}), frozenset({("a", "b")}))}),
    ]


def test_values_are_those_of_the_columns_types() -> None:
    from datetime import date
    from decimal import Decimal

    world = World(followed("day", {})).hear(
        subscribed(1, DAY), part(1, [["2026-11-16", "1.50"]]), change(2, [["2026-11-16", "2.00"]], [["2026-11-16", "1.50"]],
        modified=[{"old": ["2026-11-16", "1.50"], "new": ["2026-11-16", "2.00"]}])
    )  # fmt: skip
    old, new = (date(2026, 11, 16), Decimal("1.50")), (date(2026, 11, 16), Decimal("2.00"))
    assert world.given[1] == Snapshot("h1", 1, {"day": frozenset({old})})
    assert world.given[2] == Change(2, {"day": Delta(frozenset({new}), frozenset({old}))}, {"day": ((old, new),)})


def test_after_a_lost_connection_it_goes_on_from_its_position() -> None:
    world = World(followed("edge", {}))
    world.hear(subscribed(41), part(41, []), change(43, [["a", "h"]]), {"progress": {"tx": 57}}, Lost("gone"))
    assert world.opened == 2
    assert world.sent[1] == {"subscribe": {"view": "edge", "from": 57, "db": "h1"}}
    assert any(isinstance(event, Disconnected) for event in world.given)
    world.hear(subscribed(57), change(58, [], [["a", "h"]]))
    assert world.given[-1] == Change(58, {"edge": Delta(frozenset(), frozenset({("a", "h")}))})


def test_positions_are_told_with_their_digests() -> None:
    world = World(followed("edge", {"since": Mark(7, "d7"), "db": "h1"}))
    world.hear(subscribed(7), change(8, [["a", "b"]], digest="d8"), Lost("gone"))
    assert [said["subscribe"]["from"] for said in world.sent] == [{"tx": 7, "digest": "d7"}, {"tx": 8, "digest": "d8"}]
    world.hear(subscribed(8), {"progress": {"tx": 9, "digest": "d9"}}, Lost("gone"))
    assert world.sent[-1]["subscribe"]["from"] == {"tx": 9, "digest": "d9"}
    world.hear(subscribed(9), change(10, [["b", "c"]]), Lost("gone"))
    assert world.sent[-1]["subscribe"]["from"] == 10, "a digest is of one position only"
    copied, _ = held("edge", {"since": Snapshot("h1", 7, {"edge": frozenset()}, "d7")})
    assert World(copied).hear().sent[-1]["subscribe"]["from"] == {"tx": 7, "digest": "d7"}


def test_a_first_answer_that_was_cut_off_is_asked_for_again() -> None:
    world = World(followed("edge", {}))
    world.hear(subscribed(41), {"progress": {"tx": 42}}, part(41, [["a", "b"]], 1, 2), Lost("gone"))
    assert world.sent[1] == world.sent[0]
    world.hear(subscribed(44), part(44, [["c", "d"]]))
    assert world.given[-1] == Snapshot("h1", 44, {"edge": frozenset({("c", "d")})})


def test_a_server_that_closes_says_where_to_go_on() -> None:
    world = World(followed("edge", {})).hear(subscribed(1), part(1, []), {"closing": {"tx": 9}}, Lost("1012"))
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": 9, "db": "h1"}}


def test_after_a_gap_a_new_first_answer_comes_on_the_same_connection() -> None:
    world = World(followed("edge", {})).hear(subscribed(1), part(1, []), Lost("gone"))
    world.hear({"error": {"code": "gap", "message": "gone"}}, subscribed(90), part(90, [["a", "b"]]))
    assert world.opened == 2
    assert world.given[-3:] == [Gap("gap", "gone"), world.given[-2], Snapshot("h1", 90, {"edge": frozenset({("a", "b")})})]


def test_a_gap_whose_answer_was_cut_off_is_begun_anew() -> None:
    world = World(followed("edge", {})).hear(subscribed(1), part(1, []), {"error": {"code": "gap", "message": "gone"}}, Lost("gone"))
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": None}}


@pytest.mark.parametrize("code", ["history", "future"])
def test_another_history_after_a_reconnect_begins_anew(code: str) -> None:
    world = World(followed("edge", {})).hear(subscribed(5), part(5, []), Lost("gone"), {"error": {"code": code, "message": "no"}})
    assert world.opened == 3
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": None}}
    world.hear(subscribed(2, db="h2"), part(2, []), Lost("gone"))
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": 2, "db": "h2"}}


def test_a_stated_position_of_another_history_is_refused() -> None:
    world = World(followed("edge", {"since": 7, "db": "h0"}))
    with pytest.raises(DataError, match="no such history") as refused:
        world.hear({"error": {"code": "history", "message": "no such history"}})
    assert refused.value.code == "history"
    assert world.sent == [{"subscribe": {"view": "edge", "from": 7, "db": "h0"}}]


def test_a_copy_of_another_history_is_made_anew() -> None:
    subscription, _ = held("edge", {"since": Snapshot("h0", 7, {"edge": frozenset()})})
    world = World(subscription).hear({"error": {"code": "history", "message": "no"}}, subscribed(3), part(3, []))
    assert [list(said["subscribe"].items()) for said in world.sent] == [
        [("view", "edge"), ("from", 7), ("db", "h0")],
        [("view", "edge"), ("from", None)],
    ]


def test_a_name_is_acknowledged_when_it_was_dealt_with() -> None:
    world = World(followed("edge", {"name": "cache"}))
    world.hear(subscribed(1), part(1, []), change(2, [["a", "b"]]), {"progress": {"tx": 4}}, {"progress": {"tx": 4}})
    assert world.sent == [{"subscribe": {"view": "edge", "name": "cache"}}, {"ack": 1}, {"ack": 2}, {"ack": 4}]


def test_what_was_acknowledged_is_said_again_after_a_lost_connection() -> None:
    world = World(followed("edge", {"name": "cache"})).hear(subscribed(1), part(1, []), Lost("gone"), subscribed(1))
    assert world.sent[-2:] == [{"subscribe": {"view": "edge", "from": 1, "db": "h1", "name": "cache"}}, {"ack": 1}]


def test_acknowledging_by_hand() -> None:
    subscription = followed("edge", {"name": "cache", "acknowledge": False})
    world = World(subscription).hear(subscribed(1), part(1, []), change(2, [["a", "b"]]), {"progress": {"tx": 4}})
    assert len(world.sent) == 1
    assert subscription.ack(1) == '{"ack":1}'
    world.hear({"progress": {"tx": 5}})
    assert len(world.sent) == 1, "2 is not dealt with yet"
    assert subscription.ack(5) == '{"ack":5}'
    world.hear({"progress": {"tx": 6}})
    assert world.sent[1:] == [{"ack": 6}]
    with pytest.raises(UsageError):
        subscription.ack(7)


def test_known_names_go_on_and_new_ones_get_a_first_answer() -> None:
    world = World(followed("edge", {"name": "cache"})).hear(subscribed(5), change(6, [["a", "b"]]), Lost("gone"))
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": 6, "db": "h1", "name": "cache"}}
    again = World(followed("edge", {"name": "cache"})).hear(subscribed(5), Lost("gone"))
    assert again.sent[-1] == again.sent[0], "whether a snapshot was to come is the server's to say"


def arrow(rows: list[tuple[str, str]], changes: list[str] | None = None) -> Response:
    import pyarrow as pa

    table = Columns(("x", "y"), (SYMBOL, SYMBOL)).to_arrow(rows)
    if changes is not None:
        table = table.add_column(0, "change", [pa.array(changes)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(200, ARROW, sink.getvalue().to_pybytes())


def test_large_changes_are_fetched_once() -> None:
    place = "/v1/views/edge/changes/2"
    world = World(followed("edge", {}))
    world.answers[place] = arrow([("a", "b"), ("c", "d"), ("e", "f")], ["minus", "plus", "plus"])
    side = {"fetch": place, "rows": 3}
    world.hear(subscribed(1), part(1, [["a", "b"]]), change(2, side, side))
    assert world.given[-1] == Change(2, {"edge": Delta(frozenset({("c", "d"), ("e", "f")}), frozenset({("a", "b")}))})
    assert world.fetched == [place]
    world.answers["/v1/views/edge/changes/3"] = arrow([("x", "y")], ["plus"])
    world.hear(change(3, {"fetch": "/v1/views/edge/changes/3", "rows": 1}, [["c", "d"]]))
    assert world.given[-1] == Change(3, {"edge": Delta(frozenset({("x", "y")}), frozenset({("c", "d")}))})


def test_a_large_change_that_is_gone_begins_anew() -> None:
    world = World(followed("edge", {}))
    world.answers["/c/2"] = Response(410, "application/json", b'{"error": {"code": "gap", "message": "not retained"}}')
    world.hear(subscribed(1), part(1, []), change(2, {"fetch": "/c/2", "rows": 9}))
    assert world.sent[-1] == {"subscribe": {"view": "edge", "from": None}}


def test_first_answers_by_arrow() -> None:
    world = World(followed("edge", {"fetch": True}))
    world.answers["/v1/views/edge?at=1"] = arrow([("a", "b")])
    world.hear(subscribed(1), {"snapshot": {"tx": 1, "fetch": "/v1/views/edge?at=1", "last": True}})
    assert world.sent[0]["subscribe"]["snapshot"] == "fetch"
    assert world.given[-1] == Snapshot("h1", 1, {"edge": frozenset({("a", "b")})})


def test_several_views_counts_signals_and_staleness() -> None:
    two = {**EDGE, "closure": EDGE["edge"]}
    world = World(followed(["edge", "closure"], {"bind": {"x": "a"}}))
    world.hear(subscribed(1, two), {"snapshot": {"tx": 1, "views": {"edge": [["a", "b"]]}, "last": True}})
    world.hear({"change": {"tx": 2, "views": {"closure": {"plus": [["a", "b"]], "minus": []}}}})
    assert world.given[1:] == [
        Snapshot("h1", 1, {"edge": frozenset({("a", "b")}), "closure": frozenset()}),
        Change(2, {"closure": Delta(frozenset({("a", "b")}))}),
    ]
    counted = World(followed("edge", {"precision": "counts", "every": 1.0, "coalesce": True}))
    counted.hear(subscribed(1), part(1, []), change(4, 3, 1, since=1), {"stale": {"tx": 4, "behind": 2.5, "since": 3}})
    assert counted.given[-2:] == [Change(4, counts={"edge": (3, 1)}, since=1), Stale(4, 2.5, 3)]
    signalled = World(followed("edge", {"precision": "signal"})).hear(subscribed(1), part(1, []), {"change": {"tx": 4}})
    assert signalled.given[-1] == Change(4)


def test_what_ends_a_subscription_is_raised() -> None:
    world = World(followed("edg", {}))
    with pytest.raises(DataError, match="did you mean edge") as refused:
        world.hear({"error": {"code": "unknown-relation", "message": "there is no view edg (did you mean edge?)"}})
    assert refused.value.code == "unknown-relation"
    with pytest.raises(DataError, match="taken over"):
        World(followed("edge", {})).hear(subscribed(1), part(1, []), {"error": {"code": "taken-over", "message": "taken over"}})
    with pytest.raises(DataError, match="change 1 after position 1"):
        World(followed("edge", {})).hear(subscribed(1), part(1, []), change(1))


def test_what_is_not_known_is_ignored() -> None:
    world = World(followed("edge", {})).hear({"weather": {}}, subscribed(1), part(1, []), {"progress": {"tx": 3, "mood": "good"}})
    assert world.given[-1] == Progress(3)


def test_a_server_that_was_never_there_is_told_of_at_once() -> None:
    running = Running(follow(followed("edge", {})))
    with pytest.raises(ConnectionLost, match="refused"):
        running.lose(Lost("refused"))


def test_wishes_that_make_no_sense() -> None:
    senseless: list[Following] = [{"every": -1.0}, {"changes": 3}, {"since": 3, "anew": True}, {"name": ""}]
    for wishes in senseless:
        with pytest.raises(UsageError):
            followed("edge", wishes)
    with pytest.raises(UsageError):
        followed([], {})
    with pytest.raises(UsageError):
        held("edge", {"precision": "counts"})
    with pytest.raises(UsageError):
        held(["a", "b"], {"on_plus": print})


def run(play: Any, *answers: Response | Lost) -> tuple[Any, list[Effect]]:
    running, wanted = Running(play), list[Effect]()
    waiting = iter(answers)
    while (effect := running.effect) is not None:
        wanted.append(effect)
        came = next(waiting) if isinstance(effect, Request) else None
        running.lose(came) if isinstance(came, Lost) else running.answer(came)
    return running.result, wanted


def test_a_transaction_is_sent_again_under_the_same_key() -> None:
    good = Response(200, "application/json", b'{"tx": 7, "views": {"edge": {"plus": 1, "minus": 0}}}')
    busy = Response(503, "application/json", b'{"error": {"code": "stopping", "message": "later"}}', patience=30.0)
    told, wanted = run(calls.tell(None, None, {"insert": {"edge": [("a", "b")]}}), Lost("reset", patience=30.0), busy, good)
    assert (told.tx, told.views) == (7, {"edge": (1, 0)})
    requests = [effect for effect in wanted if isinstance(effect, Request)]
    assert len(requests) == 3
    assert len({request.headers["Idempotency-Key"] for request in requests}) == 1
    assert requests[0].body == b'{"insert":{"edge":[["a","b"]]}}'


def test_a_definition_is_not_sent_again_if_it_may_have_happened() -> None:
    with pytest.raises(ConnectionLost, match="whether it was done is not known"):
        run(calls.define(".decl a(x: number)"), Lost("reset", patience=30.0))
    told, _ = run(
        calls.define(".decl a(x: number)"),
        Lost("refused", sent=False, patience=30.0),
        Response(200, "application/json", b'{"tx": 3, "views": {}}'),
    )
    assert told.tx == 3


def test_refusals_are_errors_with_the_servers_code() -> None:
    with pytest.raises(DataError) as refused:
        run(calls.ask("edge("), Response(400, "application/json", b'{"error": {"code": "syntax", "message": "no goal"}}'))
    assert (refused.value.code, refused.value.message) == ("syntax", "no goal")
    with pytest.raises(DataError, match="not as Vigilog does"):
        run(calls.views(), Response(502, "text/html", b"<h1>Bad gateway</h1>"))
