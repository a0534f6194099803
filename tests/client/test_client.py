"""The Python client with real servers, which are killed, stopped and restored under it."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import logging
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.service.conftest import Serve
from tests.service.serving import Served, until
from vigilog.client import (
    AsyncClient,
    Change,
    Client,
    Disconnected,
    Gap,
    Mark,
    Progress,
    Snapshot,
    Stale,
    Subscribed,
    aconnect,
    connect,
)
from vigilog.core.delta import Delta
from vigilog.core.errors import ConnectionLost, DataError, UsageError
from vigilog.folder import backup
from vigilog.folder.opening import open_program

pytestmark = pytest.mark.apart

PATIENCE = 60.0  # seconds after which a test gives up


def edges(*pairs: str) -> dict[str, Any]:
    return {"edge": [tuple(pair) for pair in pairs]}


def a_snapshot(event: object) -> Snapshot:
    assert isinstance(event, Snapshot)
    return event


def a_change(event: object) -> Change:
    assert isinstance(event, Change)
    return event


def equal(view: Any, client: Client, tx: int) -> bool:
    """Whether a copy has come to a transaction, and is the server's view."""
    return bool(view.wait_for(tx, PATIENCE)) and set(view) == set(client.view(view.name))


# -- calls


def test_calls(shared: Served) -> None:
    with connect(shared.url) as client:
        assert [view.name for view in client.views()] == ["closure", "open", "degree", "dear"]
        last = client.status()["tx"]
        told = client.tell(insert=edges("ab", "bc"))
        assert (told.tx, told.views) == (last + 1, {"closure": (3, 0), "open": (3, 0), "degree": (2, 0)})
        assert list(client.ask('closure("a", y)')) == [("a", "b"), ("a", "c")]
        assert client.view("closure", bind={"x": "b"}).rows == (("b", "c"),)
        assert client.view("closure", at=last).rows == ()
        proof = client.why('closure("a", "c")')
        assert proof is not None
        assert proof.text().splitlines()[-1].endswith('└─ edge("b", "c")')
        assert client.why('closure("c", "a")') is None and client.why_not('closure("a", "c")') is None
        reason = client.why_not('closure("a", "z")', depth=2)
        assert reason is not None and reason.text().count('edge("b", "z") is not there; near: edge("b", "c")') == 1
        assert reason.rules[1].place == proof.place, "of the same rule"
        again = [client.why('closure("a", "c")') for _ in range(3)]
        assert [found and found.text() for found in again] == [proof.text()] * 3
        preview = client.what_if(delete=edges("bc"))
        assert preview.views["closure"] == Delta(frozenset(), frozenset({("a", "c"), ("b", "c")}))
        assert client.tell({"delete": edges("bc")}).tx == last + 2
        assert client.define(".decl loop(x: symbol)\n.output loop\nloop(x) :- closure(x, x).").tx == last + 3
        assert "loop" in client.program()
        assert client.define('\n\nloop("a") :- true.', "rules/loops.dl").tx == last + 4
        assert (found := client.why('loop("a")')) is not None and found.place == "loops.dl:3:1"
        assert client.drop("loop").tx == last + 5
        assert client.status()["tx"] == last + 5


def test_refused_calls_have_the_servers_code(shared: Served) -> None:
    with connect(shared.url) as client:
        last = client.status()["tx"]
        for call, code in (
            (lambda: client.tell(insert={"edge": [("a",)]}), "columns"),
            (lambda: client.tell(insert={"closure": [("a", "b")]}), "derived"),
            (lambda: client.tell(b"{"), "json"),
            (lambda: client.ask("closure("), None),
            (lambda: client.view("clsure"), "unknown-relation"),
            (lambda: client.subscribe("clsure"), "unknown-relation"),
            (lambda: client.enroll("clsure"), "unknown-relation"),
            (lambda: client.subscribe("closure", bind={"z": 1}), "column"),
            (lambda: client.subscribe("closure", since=last + 1), "future"),
        ):
            with pytest.raises(DataError) as refused:
                call()
            assert code is None or refused.value.code == code
        with pytest.raises(UsageError):
            client.tell({"insert": {}}, delete={})
        with pytest.raises(DataError, match="cannot be sent"):
            client.tell(insert={"edge": [(object(), "a")]})
        assert client.status()["tx"] == last


def test_a_transaction_with_a_key_happens_once(shared: Served) -> None:
    with connect(shared.url) as one, connect(shared.url) as other:
        first = one.tell(insert=edges("ab"), key="order 17")
        assert other.tell(insert=edges("ab"), key="order 17") == first
        assert other.tell(insert=edges("bc")).tx == first.tx + 1


def test_values_of_all_types(shared: Served) -> None:
    day = datetime.date(2026, 11, 16)
    with connect(shared.url) as client, client.subscribe("dear") as changes:
        assert isinstance(next(changes), Snapshot)
        client.tell(insert={"price": [("tea", day, Decimal("12.5"))]})
        assert a_change(next(changes)).plus == {("tea", day, Decimal("12.50"))}
        client.tell(upsert={"price": [("tea", day, Decimal("13"))]})
        change = next(changes)
        assert isinstance(change, Change)
        assert change.modified == {"dear": ((("tea", day, Decimal("12.50")), ("tea", day, Decimal("13.00"))),)}
        assert client.view("dear", bind={"amount": Decimal("13"), "day": day}).rows == (("tea", day, Decimal("13.00")),)
        with client.enroll("dear", bind={"day": day}) as view, client.enroll("dear", bind={"day": day.replace(year=2025)}) as none:
            assert (len(view), len(none)) == (1, 0)
            assert view.to_pandas().to_dict("list") == {"item": ["tea"], "day": [day], "amount": [Decimal("13.00")]}
            assert view.to_arrow().to_pylist() == [{"item": "tea", "day": day, "amount": Decimal("13.00")}]
        assert client.ask("dear(i, d, a)").to_arrow().column_names == ["item", "day", "amount"]


def test_loads(shared: Served, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("item,day,amount\ntea,2026-11-16,12.5\nrice,2026-11-16,20\n")
    (tmp_path / "keys.csv").write_text("item\nrice\n")
    with connect(shared.url) as client:
        client.load("price", str(tmp_path / "rows.csv"), upsert=True)
        told = client.load("price", str(tmp_path / "keys.csv"), delete_key=True)
        assert told.views == {"dear": (0, 1)}
        with pytest.raises(DataError, match="one of them"):
            client.load("price", str(tmp_path / "rows.csv"), upsert=True, op="op")


# -- views


def test_a_view_is_a_set_that_keeps_itself(shared: Served) -> None:
    came, went, told = list[Any](), list[Any](), list[Change]()
    with connect(shared.url) as client:
        first = client.tell(insert=edges("ab")).tx
        with client.enroll("closure", on_plus=came.append, on_minus=went.append) as view:
            view.on_change(told.append)
            assert set(view) == {("a", "b")}
            assert (len(view), ("a", "b") in view, view.position) == (1, True, first)
            before = view.snapshot()
            tx = client.tell(insert=edges("bc"), delete=edges("ab")).tx
            assert equal(view, client, tx)
            assert (came, went, [change.tx for change in told]) == ([("b", "c")], [("a", "b")], [tx])
            assert before.rows == {("a", "b")}
            assert view & {("b", "c"), ("x", "y")} == {("b", "c")}
        client.tell(insert=edges("xy"))
        assert not view.live
        assert ("x", "y") not in view
        with pytest.raises(UsageError, match="closed"):
            view.wait_for(tx + 99)


def test_callbacks_may_hear_the_first_answer(shared: Served) -> None:
    came: list[Any] = []
    with connect(shared.url) as client:
        client.tell(insert=edges("ab"))
        client.enroll("closure", on_plus=came.append, first=True)
        assert came == [("a", "b")]


def test_waiting_for_a_transaction_that_concerns_others(serve: Serve) -> None:
    server = serve("--limit", "progress=600", "--limit", "heartbeat=600")
    with connect(server.url) as client, client.enroll("closure") as view:
        assert view.wait_for(client.tell(insert={"blocked": [("x",)]}).tx, PATIENCE)
        waiting = threading.Thread(target=view.wait_for, args=(2, PATIENCE))
        waiting.start()
        client.tell(insert={"blocked": [("y",)]})
        waiting.join()
        assert view.position == 2, "also if it begins to wait before there is such a transaction"

    async def work() -> None:
        async with aconnect(server.url) as other:
            copy = await other.enroll("closure")
            assert await copy.wait_for((await other.tell(insert={"blocked": [("z",)]})).tx, PATIENCE)

    run(work())


def test_slices_and_goals(shared: Served) -> None:
    with connect(shared.url) as client:
        slice_ = client.enroll("closure", bind={"x": "a"})
        goal = client.enroll('closure("a", y), !edge("a", y)')
        client.tell(insert=edges("ab", "xy"))
        tx = client.tell(insert=edges("bc")).tx
        assert slice_.wait_for(tx, PATIENCE)
        assert goal.wait_for(tx, PATIENCE)
        assert set(slice_) == {("a", "b"), ("a", "c")}
        assert set(goal) == {("c",)}


def test_several_views_change_together(shared: Served) -> None:
    done = threading.Event()
    wrong: list[Snapshot] = []
    with connect(shared.url) as client, client.enroll(["closure", "degree"]) as views:

        def look() -> None:
            while not done.is_set():
                seen = views.snapshot()
                if {x for x, _ in seen.views["closure"]} != {x for x, _ in seen.views["degree"]}:
                    wrong.append(seen)

        readers = [threading.Thread(target=look) for _ in range(2)]
        for reader in readers:
            reader.start()
        try:
            for number in range(60):
                tx = client.tell(insert=edges(f"{number % 10}{number % 7}"), delete=edges(f"{(number + 3) % 10}{number % 5}")).tx
            assert equal(views["closure"], client, tx)
            assert equal(views["degree"], client, tx)
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert wrong == []


def test_an_error_of_a_callback_is_told_and_the_view_goes_on(shared: Served, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Exception] = []
    with connect(shared.url) as client:
        view = client.enroll("closure", name="cache", on_error=told.append)

        @view.on_plus
        def fails(row: Any) -> None:
            raise RuntimeError(f"no place for {row}")

        with caplog.at_level(logging.ERROR, "vigilog.client"):
            tx = client.tell(insert=edges("ab")).tx
            assert equal(view, client, tx)
        assert [str(error) for error in told] == ["no place for ('a', 'b')"]
        assert view.error is told[0]
        assert "no place for" in caplog.text
        view.close()
        with client.subscribe("closure", name="cache") as changes:
            assert next(changes).tx == tx, "what a callback has not dealt with is not acknowledged"


def test_a_callback_cannot_wait_for_what_comes_later(shared: Served) -> None:
    told: list[Exception] = []
    with connect(shared.url) as client:
        view = client.enroll("closure", on_error=told.append)

        @view.on_change
        def wait(change: Change) -> None:
            assert view.wait_for(change.tx)
            view.wait_for(change.tx + 1)

        view.wait_for(client.tell(insert=edges("ab")).tx, PATIENCE)
        assert isinstance(told[0], UsageError)


def test_a_view_that_is_dropped_ends(server: Served) -> None:
    told: list[Exception] = []
    with connect(server.url) as client:
        view = client.enroll("degree", on_error=told.append)
        tx = client.drop("degree").tx
        with pytest.raises(DataError) as ended:
            view.wait_for(tx, PATIENCE)
        assert ended.value.code == "definition"
        assert told == [ended.value]


# -- lost connections


def test_a_killed_server_that_comes_back_has_lost_nothing_for_its_clients(server: Served) -> None:
    received: list[Change] = []
    with connect(server.url) as client, client.enroll("closure", on_change=received.append) as view, client.subscribe("degree") as changes:
        copy = set(a_snapshot(next(changes)).views["degree"])
        seen = []
        killed = threading.Event()

        def write() -> None:
            for number in itertools.takewhile(lambda _: not killed.is_set(), itertools.count()):
                client.tell(insert=edges(f"{number % 8}{number % 5}"), delete=edges(f"{(number + 3) % 8}{number % 5}"))

        writer = threading.Thread(target=write)
        writer.start()
        for _ in range(3):
            assert view.wait_for(view.position + 5, PATIENCE)
            server.kill()
            server.start()
        killed.set()
        writer.join(PATIENCE)
        tx = client.tell(insert=edges("zz")).tx
        for change in changes:
            assert isinstance(change, Change)
            seen.append(change.tx)
            copy = change.views["degree"].apply(copy)
            if change.tx == tx:
                break
        assert equal(view, client, tx)
        assert copy == set(client.view("degree"))
        assert seen == sorted(set(seen))
        assert [change.tx for change in received] == sorted({change.tx for change in received})


def test_a_server_that_stops_says_so_and_is_waited_for(server: Served) -> None:
    with connect(server.url) as client, client.subscribe("closure") as changes:
        assert isinstance(next(changes), Snapshot)
        server.stop()
        while not isinstance(event := changes.get(PATIENCE), Disconnected):
            assert isinstance(event, Progress)
        server.start()
        tx = client.tell(insert=edges("ab")).tx
        assert next(changes).tx == tx
        assert changes.position == tx


def test_a_call_waits_for_a_server_only_if_it_was_there(server: Served) -> None:
    with connect(server.url, patience=1.0) as client:
        client.views()
        server.stop()
        with pytest.raises(ConnectionLost, match="cannot be reached"):
            client.tell(insert=edges("ab"))
    with connect(server.url) as stranger:
        for call in (stranger.views, lambda: stranger.subscribe("closure"), lambda: stranger.enroll("closure")):
            with pytest.raises(ConnectionLost, match="cannot be reached"):
                call()
    with pytest.raises(UsageError):
        connect("closure")


def test_a_copy_from_before_is_brought_up_to_date(shared: Served) -> None:
    told: list[Change] = []
    with connect(shared.url) as client:
        client.tell(insert=edges("ab"))
        with client.enroll("closure") as view:
            known = view.snapshot()
        client.tell(insert=edges("bc"))
        tx = client.tell(delete=edges("ab")).tx
        assert tx == known.tx + 2
        with client.enroll("closure", since=known, on_change=told.append) as view:
            assert equal(view, client, tx)
            assert [change.tx for change in told] == [tx - 1, tx]
        with client.subscribe("closure", since=known) as changes:
            assert [next(changes).tx for _ in range(2)] == [tx - 1, tx]


def test_a_restored_backup_is_another_history(server: Served) -> None:
    told: list[Change] = []
    with connect(server.url) as client:
        client.tell(insert=edges("ab"))
        view = client.enroll("closure", on_change=told.append)
        known = view.snapshot()
        changes = client.subscribe("closure")
        next(changes)
        backup.backup(server.folder / "data", server.folder / "copy")
        tx = client.tell(insert=edges("bc")).tx
        assert equal(view, client, tx)
        assert next(changes).tx == tx
        server.stop()
        (server.folder / "data").rename(server.folder / "old")
        backup.restore(server.folder / "copy", server.folder / "data")
        server.start()
        events = changes.events()
        gap = next(event for event in events if isinstance(event, Gap))
        assert gap.code == "history"
        assert next(event for event in events if isinstance(event, Snapshot)).rows == {("a", "b")}
        with pytest.raises(DataError) as refused:
            client.subscribe("closure", since=known)
        assert refused.value.code == "history"
        again = client.enroll("closure", since=known)
        for pair in ("xy", "yz", "zx"):  # beyond the positions of the old history
            tx = client.tell(insert=edges(pair)).tx
        assert equal(view, client, tx)
        assert equal(again, client, tx)
        copy: set[Any] = {("a", "b")}
        for change in told:
            copy = change.views["closure"].apply(copy)
        assert copy == set(view), "callbacks were told the difference"


def test_a_copy_of_the_folder_that_went_another_way_is_another_history(server: Served) -> None:
    """It has the same id: only digests tell."""
    with connect(server.url) as client:
        client.tell(insert=edges("ab"))
        view, changes = client.enroll("closure"), client.subscribe("closure")
        next(changes)
        early = changes.mark
        server.stop()
        shutil.copytree(server.data, server.folder / "copy")
        server.start()
        tx = client.tell(insert=edges("bc")).tx
        assert equal(view, client, tx)
        assert next(changes).tx == tx
        late, known, db = changes.mark, view.snapshot(), changes.db
        server.stop()
        shutil.rmtree(server.data)
        (server.folder / "copy").rename(server.data)
        server.start()
        tx = client.tell(insert=edges("xy")).tx
        assert isinstance(late, Mark) and late.tx == tx
        until(lambda: view.snapshot().digest not in ("", late.digest))
        assert equal(view, client, tx), "it is made anew"
        gap = next(event for event in changes.events() if isinstance(event, Gap))
        assert gap.code == "history"
        with pytest.raises(DataError) as refused:
            client.subscribe("closure", since=late, db=db)
        assert refused.value.code == "history"
        with client.subscribe("closure", since=early, db=db) as again:
            change = next(again)
            assert isinstance(change, Change) and change.plus == {("x", "y")}
        renewed = client.enroll("closure", since=known)
        until(lambda: renewed.snapshot().digest not in ("", late.digest))
        assert equal(renewed, client, tx)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Served]:
    """A server that forgets all before the last transaction."""
    server = Served(tmp_path)
    open_program(tmp_path / "program.dl", data=server.data, retain={"transactions": 1}).close()
    yield server.start()
    server.kill()


def test_after_a_gap_the_whole_view_comes_again(forgetful: Served) -> None:
    told: list[Change] = []
    with connect(forgetful.url) as client:
        client.tell(insert=edges("ab", "bc"))
        with client.enroll("closure") as view:
            known = view.snapshot()
        for number in range(20):
            tx = client.tell(insert={"edge": [("c", str(number))]}, delete={"edge": [("c", str(number - 1))]}).tx
        with client.subscribe("closure", since=known) as changes:
            events = [changes.get(PATIENCE) for _ in range(3)]
            assert [type(event) for event in events] == [Gap, Subscribed, Snapshot]
        with client.enroll("closure", since=known, on_change=told.append) as view:
            assert equal(view, client, tx)
            assert [(change.tx, change.since) for change in told] == [(tx, known.tx)]
            assert told[0].views["closure"].apply(set(known.rows)) == set(view)


# -- names


def acknowledged(client: Client, name: str) -> int | None:
    """What the server remembers of a name, which it writes down a little later than it hears it."""
    return next((found["tx"] for found in client.subscriptions() if found["name"] == name), None)


def test_a_name_goes_on_after_what_was_dealt_with(server: Served) -> None:
    with connect(server.url) as client:
        with client.subscribe("closure", name="cache") as changes:
            assert isinstance(next(changes), Snapshot)
            for pair in ("ab", "bc", "cd"):
                client.tell(insert=edges(pair))
            assert [next(changes).tx for _ in range(2)] == [1, 2]  # 2 was given, but what came of it is not known
        with client.subscribe("closure", name="cache") as changes:
            assert [next(changes).tx for _ in range(2)] == [2, 3]
            changes.ack(3)
        client.subscribe("closure", name="cache").close()  # which the server writes down what it has heard for
        server.kill()
        server.start()
    with connect(server.url) as client:
        with client.subscribe("closure", name="cache") as changes:
            client.tell(insert=edges("de"))
            assert next(changes).tx == 4
        with client.subscribe("closure", name="cache", anew=True) as changes:
            assert isinstance(next(changes), Snapshot)
            changes.cancel()
        assert acknowledged(client, "cache") is None
        with client.subscribe("closure", name="cache") as changes:
            assert isinstance(next(changes), Snapshot)


def test_acknowledging_by_hand(shared: Served) -> None:
    with connect(shared.url) as client:
        with client.subscribe("closure", name="cache", acknowledge=False) as changes:
            first = next(changes).tx
            for pair in ("ab", "bc", "cd"):
                client.tell(insert=edges(pair))
            assert [next(changes).tx for _ in range(3)] == [first + 1, first + 2, first + 3]
            changes.ack(first + 1)
            with pytest.raises(UsageError):
                changes.ack(first + 4)
        with client.subscribe("closure", name="cache") as changes:
            assert next(changes).tx == first + 2
    with connect(shared.url) as client, client.subscribe("closure") as unnamed, pytest.raises(UsageError):
        unnamed.ack(0)


def test_a_name_goes_on_while_its_position_is_written_down(serve: Serve) -> None:
    with connect(serve().url) as client, ThreadPoolExecutor(1) as pool:
        with client.subscribe("degree", name="cache", acknowledge=False) as changes:
            client.tell(insert=edges("ab"))
            assert [next(changes).tx for _ in range(2)] == [0, 1]
            chain = {"edge": [(f"n{number}", f"n{number + 1}") for number in range(600)]}
            long = pool.submit(client.tell, insert=chain)
            changes.ack(1)
            time.sleep(0.7)  # the server writes down every half second what it has heard, now after the long transaction
            assert not long.done()
        with client.subscribe("degree", name="cache") as changes:
            assert next(changes).tx == long.result().tx == 2


def test_a_name_is_taken_over(shared: Served) -> None:
    with connect(shared.url) as client, client.subscribe("closure", name="cache") as first:
        next(first)
        with client.subscribe("closure", name="cache"):
            with pytest.raises(DataError) as ended:
                next(first)
            assert ended.value.code == "taken-over"
            assert list(first) == []


# -- large changes, quality of service, tokens


def test_large_changes_are_fetched(serve: Serve) -> None:
    server = serve("--limit", "large=5", "--limit", "part=7")
    rows = [(str(number), str(number + 1)) for number in range(12)]
    with connect(server.url) as client:
        whole = client.enroll("closure")
        part = client.enroll("closure", bind={"x": "0"})
        goal = client.enroll('closure("0", y)')
        two = client.enroll(["closure", "degree"])
        changes = client.subscribe("closure")
        next(changes)
        tx = client.tell(insert={"edge": rows}).tx
        assert equal(whole, client, tx)
        assert equal(two["degree"], client, tx)
        assert set(two["closure"]) == set(whole)
        assert goal.wait_for(tx, PATIENCE)
        assert part.wait_for(tx, PATIENCE)
        assert set(part) == {(x, y) for x, y in whole if x == "0"}
        assert set(goal) == set(client.ask('closure("0", y)'))
        assert a_change(next(changes)).plus == set(whole)
        tx = client.tell(delete={"edge": rows[3:8]}).tx
        assert equal(whole, client, tx)
        assert client.enroll("closure", fetch=True) == whole, "in parts, or as Arrow"


def test_quality_of_service(shared: Served) -> None:
    with connect(shared.url) as client:
        coalesced = client.subscribe("closure", every=0.5, coalesce=True, max_staleness=0.05)
        counted = client.subscribe("closure", precision="counts")
        signalled = client.subscribe("closure", precision="signal")
        for changes in (coalesced, counted, signalled):
            assert isinstance(next(changes), Snapshot)
        first = client.tell(insert=edges("ab", "bc")).tx
        client.tell(delete=edges("bc"))
        assert a_change(next(counted)).counts == {"closure": (3, 0)}
        assert next(signalled) == Change(first)
        seen = [next(coalesced)]
        while not isinstance(seen[-1], Change) or seen[-1].tx < first + 1:
            seen.append(next(coalesced))
        net = Delta()
        for change in seen:
            net = net.then(change.views["closure"]) if isinstance(change, Change) else net
        assert net == Delta(frozenset({("a", "b")}))
        assert all(isinstance(event, Change | Stale) for event in seen)


def test_tokens(serve: Serve, tmp_path: Path) -> None:
    from vigilog.service.access import add_token

    file = tmp_path / "tokens.json"
    reader, writer = add_token(file, "reader", ["closure"], [], define=False), add_token(file, "writer", ["*"], ["edge"], define=True)
    server = serve("--tokens", str(file))
    for token in (None, "guess"):
        with connect(server.url, token) as stranger:
            for call in (
                stranger.views,
                lambda client=stranger: client.subscribe("closure"),
                lambda client=stranger: client.enroll("closure"),
            ):
                with pytest.raises(DataError) as refused:
                    call()
                assert refused.value.code in ("token", "forbidden")
    with connect(server.url, reader) as reads, connect(server.url, writer) as writes:
        view = reads.enroll("closure", name="cache")
        with pytest.raises(DataError) as refused:
            reads.tell(insert=edges("ab"))
        assert refused.value.code == "forbidden"
        with pytest.raises(DataError) as refused:
            reads.enroll("degree")
        assert refused.value.code == "forbidden"
        assert equal(view, reads, writes.tell(insert=edges("ab")).tx)
        assert writes.subscriptions() == []


# -- the asynchronous face


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, PATIENCE))


def test_asynchronous_calls_views_and_changes(shared: Served) -> None:
    async def play(client: AsyncClient) -> None:
        told: list[Change] = []

        async def tell(change: Change) -> None:
            await asyncio.sleep(0)
            told.append(change)

        await client.tell(insert=edges("ab"))
        view = await client.enroll("closure", on_change=tell)
        views = await client.enroll(["closure", "degree"])
        async with client.subscribe("closure", name="cache") as changes:
            assert isinstance(await anext(changes), Snapshot)
            tx = (await client.tell(insert=edges("bc"))).tx
            assert (await anext(changes)).tx == tx
            await changes.ack(tx)
        assert await view.wait_for(tx, PATIENCE)
        assert await views.wait_for(tx, PATIENCE)
        assert set(view) == set(await client.view("closure")) == set(views["closure"])
        assert [change.tx for change in told] == [tx]
        assert not await view.wait_for(tx + 1, 0.01)
        with pytest.raises(DataError) as refused:
            await client.enroll("clsure")
        assert refused.value.code == "unknown-relation"
        await view.cancel()
        assert not view.live
        await client.cancel("cache")
        assert await client.subscriptions() == []

    async def main() -> None:
        async with aconnect(shared.url) as client:
            await play(client)

    run(main())


def test_asynchronous_clients_survive_a_killed_server(server: Served) -> None:
    async def main() -> None:
        async with aconnect(server.url) as client:
            view = await client.enroll("closure")
            changes = client.subscribe("closure")
            copy = set(a_snapshot(await anext(changes)).rows)

            async def write() -> int:
                for number in range(40):
                    told = await client.tell(insert=edges(f"{number % 8}{number % 5}"), delete=edges(f"{(number + 3) % 8}{number % 5}"))
                return told.tx

            writing = asyncio.create_task(write())
            for _ in range(2):
                await asyncio.sleep(0.2)
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
            await writing
            tx = (await client.tell(insert=edges("zz"))).tx
            seen = []
            async for change in changes:
                assert isinstance(change, Change)
                seen.append(change.tx)
                copy = change.views["closure"].apply(copy)
                if change.tx == tx:
                    break
            assert seen == sorted(set(seen))
            assert await view.wait_for(tx, PATIENCE)
            assert set(view) == copy == set(await client.view("closure"))
            await changes.close()

    run(main())


def test_taking_changes_may_be_cancelled(shared: Served) -> None:
    async def main() -> None:
        async with aconnect(shared.url) as client, client.subscribe("closure", name="cache") as changes:
            first = (await anext(changes)).tx
            received: list[int] = []
            for number in range(30):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001 * (number % 4)):
                        while True:
                            received.append((await anext(changes)).tx)
                await client.tell(insert={"edge": [(str(number), "x")]})
            while len(received) < 30:
                received.append((await anext(changes)).tx)
            assert received == list(range(first + 1, first + 31))

    run(main())


def test_get_gives_up_in_time(server: Served) -> None:
    with connect(server.url) as client, client.subscribe("closure") as changes:
        assert [type(changes.get(PATIENCE)) for _ in range(2)] == [Subscribed, Snapshot]
        while isinstance(event := changes.get(0.01), Progress):
            pass
        assert event is None
        server.kill()
        while isinstance(event := changes.get(PATIENCE), Progress):
            pass
        assert isinstance(event, Disconnected)
        assert changes.get(0.0) is None
        server.start()
        tx = client.tell(insert=edges("ab")).tx
        while not isinstance(event := changes.get(PATIENCE), Change):
            assert event is not None
        assert event.tx == tx


def test_closing_from_another_thread_ends_a_loop(shared: Served) -> None:
    with connect(shared.url) as client:
        changes = client.subscribe("closure")
        received: list[Any] = []
        loop = threading.Thread(target=lambda: received.extend(changes))
        loop.start()
        client.tell(insert=edges("ab"))
        changes.close()
        loop.join(PATIENCE)
        assert not loop.is_alive()
        assert all(isinstance(event, Snapshot | Change) for event in received)
