"""Nothing that a client says, and nothing that fails, ends what the server does by itself: heartbeats, notes, looks at tokens, changes that are passed on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.serving import PATIENCE, PROGRAM, Served, until
from vigilog.folder.opening import open_program
from vigilog.folder.positions import Remembered
from vigilog.protocol.messages import Id, Subscribe
from vigilog.service.access import ANYONE, Tokens, add_token
from vigilog.service.app import application
from vigilog.service.background import Background
from vigilog.service.hub import Hub
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics
from vigilog.service.subscription import Subscription

pytestmark = pytest.mark.apart

HUGE = 2**70
NO_POSITIONS = [-HUGE, -1, 2**63, HUGE, 1.0, 1.5, True, "7", [7]]

# -- what clients say


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server whose heart beats fast."""
    server = Served(tmp_path_factory.mktemp("quick"), "--limit", "heartbeat=0.2", "--limit", "progress=0.1").start()
    server.insert(("a", "b"))
    yield server
    server.kill()
    assert server.mistakes() == []


def messages() -> list[dict[str, Any]]:
    positions = [{kind: value} for kind in ("ack", "progress") for value in NO_POSITIONS]
    starts = [{"id": 1, "subscribe": {"view": "closure", "from": value}} for value in NO_POSITIONS]
    counts = [{"id": 1, "subscribe": {"view": "closure", "qos": {"changes": value, "within": 1}}} for value in [0, *NO_POSITIONS]]
    return [*positions, *starts, *counts]


@pytest.mark.parametrize("message", messages(), ids=json.dumps)
def test_a_message_with_a_number_that_is_none(quick: Served, message: dict[str, Any]) -> None:
    with quick.following(view="closure", name="it") as talk:
        talk.say(**message)
        assert talk.hear("error")["error"]["code"] == "message"
        assert "progress" in talk.next(), "the heart goes on beating"


@pytest.mark.parametrize("value", ["-1", str(2**63), str(HUGE), str(-HUGE), "1.5", "true", "", "x", "\uff11"])
def test_a_parameter_that_is_no_position(quick: Served, value: str) -> None:
    history = quick.get("/v1/views")["db"]
    calls: dict[str, dict[str, Any]] = {
        "/v1/views/closure": {"params": {"at": value}},
        f"/v1/views/closure/changes/{value or 'x'}": {},
        "/v1/changes": {"params": {"view": "closure", "from": value}},
        "/v1/changes?view=closure": {"headers": {"Last-Event-ID": f"{history}:{value}".encode()}},
    }
    for path, given in calls.items():
        found = quick.call("GET", path, **given)
        assert found.status_code == 400 and found.json()["error"]["code"] == "message", f"{path}: {found.text}"


def test_numbers_that_are_only_said_back(quick: Served) -> None:
    with quick.socket() as talk:
        talk.say(ping=[HUGE, {"x": -HUGE}])
        assert talk.hear("pong") == {"pong": [HUGE, {"x": -HUGE}]}
        talk.say(id=HUGE, subscribe={"view": "closure"})
        assert talk.hear("subscribed")["id"] == HUGE


def test_the_last_position_that_there_can_be(quick: Served) -> None:
    """It is one, of a transaction that there is not yet."""
    most = 2**63 - 1
    assert quick.call("GET", "/v1/views/closure", params={"at": most}).json()["error"]["code"] == "future"
    with quick.following(view="closure") as talk:
        talk.say(ack=most)
        assert talk.hear("error")["error"]["code"] == "ack"
        talk.say(progress=most)
        assert "progress" in talk.next()
    with quick.socket() as talk:
        talk.say(subscribe={"view": "closure", "from": most})
        assert talk.hear("error")["error"]["code"] == "future"


# -- what fails


def test_work_that_fails_is_told_and_tried_again() -> None:
    metrics, tries = Metrics(), 0
    background = Background(metrics)

    async def step() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")

    async def story() -> None:
        background.start("notes", step, 0.01)
        await become(lambda: tries == 1)
        assert background.problems == {"notes": "notes: failed (OverflowError) and is tried again; the log says more"}
        await become(lambda: tries == 3 and not background.problems)
        await become(lambda: tries > 5)
        background.stop()

    asyncio.run(story())
    assert 'vigilog_background_failures_total{work="notes"} 2.0' in metrics.text(lambda: None).decode()


async def become(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


class Ear:
    """An outlet that keeps what it is sent."""

    kind = "ear"

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        return kind.encode() + b" " + body + b"\n"

    def push(self, data: bytes) -> bool:
        for line in data.decode().splitlines():
            kind, _, body = line.partition(" ")
            self.heard.append((kind, json.loads(body)))
        return True

    async def send(self, data: bytes) -> None:
        self.push(data)

    def of(self, kind: str) -> list[Any]:
        return [body for own, body in self.heard if own == kind]


class InProcess:
    """A hub in this process, the application in front of it, and those who listen."""

    def __init__(self, hub: Hub, client: httpx.AsyncClient) -> None:
        self.hub, self.client = hub, client
        self.tasks: list[asyncio.Task[None]] = []

    async def listen(self, view: str = "closure", rights: Any = ANYONE, **spec: Any) -> tuple[Ear, Subscription]:
        ear = Ear()
        found = await self.hub.subscribe(ear, Subscribe(view=view, **spec), None, rights)
        self.tasks.append(asyncio.create_task(found.run()))
        await become(lambda: ear.of("snapshot"))
        return ear, found

    async def insert(self, *edges: tuple[str, str]) -> int:
        return (await self.hub.write(lambda: self.hub.db.take({"insert": {"edge": list(edges)}}))).tx

    async def health(self) -> httpx.Response:
        return await self.client.get("/health")

    async def failures(self) -> dict[str, float]:
        text = (await self.client.get("/metrics")).text
        lines = [line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("vigilog_background_failures_total{")]
        return {name.split('"')[1]: float(number) for name, number in lines}


@asynccontextmanager
async def served(tmp_path: Path, tokens: Tokens | None = None) -> AsyncIterator[InProcess]:
    with open_program(PROGRAM, data=tmp_path / "data") as db:
        app, hub = application(db, Limits(heartbeat=0.2, progress=0.1), tokens)
        hub.start()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
            found = InProcess(hub, client)
            try:
                yield found
            finally:
                for subscription in list(hub.subscriptions.values()):
                    subscription.end()
                await asyncio.gather(*found.tasks)
                await hub.stop()


def play(tmp_path: Path, story: Callable[[InProcess], Awaitable[None]], tokens: Tokens | None = None) -> None:
    async def whole() -> None:
        async with served(tmp_path, tokens) as one:
            await story(one)

    asyncio.run(whole())


def test_a_note_that_cannot_be_written_is_no_matter_of_the_heart(tmp_path: Path) -> None:
    """As if a position had come through that the file cannot hold."""

    async def story(one: InProcess) -> None:
        ear, _ = await one.listen(name="it")
        one.hub.acknowledged["", "it"] = Remembered("{}", -HUGE)
        await become(lambda: one.hub.background.problems)
        health = await one.health()
        assert health.status_code == 503 and health.json()["status"] == "broken"
        assert health.json()["problems"] == ["notes of acknowledgements: failed (OverflowError) and is tried again; the log says more"]
        assert (await one.failures())["notes of acknowledgements"] >= 1
        before = len(ear.of("progress"))
        await become(lambda: len(ear.of("progress")) > before + 1)
        tx = await one.insert(("a", "b"))
        await become(lambda: [change["tx"] for change in ear.of("change")] == [tx])
        one.hub.acknowledged["", "it"] = Remembered("{}", tx)
        await become(lambda: not one.hub.background.problems)
        assert (await one.health()).status_code == 200 and not one.hub.acknowledged

    play(tmp_path, story)


def test_a_token_that_is_taken_back_while_something_fails(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    add_token(file, "ann", ["*"], [], define=False)
    tokens = Tokens(file)

    async def story(one: InProcess) -> None:
        ear, subscription = await one.listen(rights=next(iter(tokens.known.values())))
        one.hub.acknowledged["", "it"] = Remembered("{}", -HUGE)
        await become(lambda: one.hub.background.problems)
        file.write_text('{"tokens": []}', encoding="utf-8")
        await become(lambda: subscription.ended)
        await become(lambda: ear.of("error"))
        assert ear.of("error")[0]["code"] == "token"
        one.hub.acknowledged.clear()

    play(tmp_path, story, tokens)


def fail_once(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but for the first time."""
    times = 0

    def failing(*args: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            raise ZeroDivisionError("a mistake")
        return work(*args)

    return failing


@pytest.mark.parametrize("where", ["while it is committed", "when it is passed on"])
def test_a_change_that_cannot_be_passed_on_is_read_from_the_disk(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(one: InProcess) -> None:
        ear, _ = await one.listen()
        if where == "while it is committed":
            monkeypatch.setattr(one.hub, "changes_of", fail_once(one.hub.changes_of))
        else:
            monkeypatch.setattr(one.hub.index, "touched", fail_once(one.hub.index.touched))
        txs = [await one.insert((f"a{number}", "b")) for number in range(3)]
        await become(lambda: len(ear.of("change")) == 3)
        assert [change["tx"] for change in ear.of("change")] == txs, "each once, in order"
        assert await one.failures() == {"publishing": 1.0}

    play(tmp_path, story)


@pytest.mark.parametrize("what", ["take", "nudge"])
def test_a_subscription_that_fails_ends_alone(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(one: InProcess) -> None:
        (ear, subscription), (other, _) = await one.listen(), await one.listen()
        real = getattr(Subscription, what)

        def failing(self: Subscription, *args: Any) -> Any:
            return 1 // 0 if self is subscription else real(self, *args)

        monkeypatch.setattr(Subscription, what, failing)
        txs = [await one.insert((f"a{number}", "b")) for number in range(3)]
        await become(lambda: subscription.ended and ear.of("error"))
        assert ear.of("error")[0]["code"] == "internal"
        await become(lambda: len(other.of("change")) == 3)
        assert [change["tx"] for change in other.of("change")] == txs
        await become(lambda: other.of("progress"))
        assert await one.failures() == {"subscriptions": 1.0}

    play(tmp_path, story)


def test_what_nobody_waits_for_is_counted(tmp_path: Path) -> None:
    async def story(one: InProcess) -> None:
        one.hub.loop.call_soon(lambda: [][0])
        await become(lambda: one.hub.metrics.failures.labels(work="loop")._value.get())

    play(tmp_path, story)


# -- Spark


def test_spark_that_is_needed_and_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGILOG_SPARK_MASTER", "spark://127.0.0.1:1")
    (tmp_path / "in").mkdir()
    server = Served(tmp_path, program=PROGRAM + f'.input edge(IO=stream, format=json, path="{tmp_path / "in"}")\n').start()
    try:
        until(lambda: server.call("GET", "/health").status_code == 503)
        assert server.call("GET", "/health").json()["problems"] == ["spark: failed (spark) and is tried again; the log says more"]
        until(lambda: len(server.logged("background work failed")) > 1)
        assert server.logged("background work failed")[0]["work"] == "spark"
        assert server.insert(("a", "b")) == 1, "all else is done"
        assert server.mistakes() == []
    finally:
        server.kill()


def test_spark_that_nothing_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIGILOG_SPARK_MASTER", "spark://127.0.0.1:1")
    server = Served(tmp_path, "--spark").start()
    try:
        until(lambda: server.logged("Spark is not there: what needs it will fail"))
        assert server.call("GET", "/health").status_code == 200
    finally:
        server.kill()
