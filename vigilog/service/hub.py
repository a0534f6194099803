"""Where changes come in and subscriptions are.

The hub lives in the server's event loop. It hears of each commit right after it, in their order, and offers it to those whom it concerns. It holds no rows: what a client has not taken yet is in the outbox on the disk, and
here are only the newest changes of those who take them as they come.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, TypeVar

from msgspec import UNSET

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, VigilogError, did_you_mean
from vigilog.core.reports import ALERT, outbox_entry
from vigilog.core.rows import json_rows
from vigilog.core.values import Type
from vigilog.engine.asking import Inquiry, Unanswered
from vigilog.engine.compiled import Compiled
from vigilog.engine.nested import shape_of
from vigilog.engine.outcome import Outcome
from vigilog.executors.allowance import TooDear
from vigilog.folder.durable import Durable
from vigilog.folder.positions import Key, Remembered, begin, following, forget, remember, remembered
from vigilog.folder.queries import Followable
from vigilog.folder.reading.states import MOST_READERS, bound_columns
from vigilog.language.conditions import alerts as conditions_alerts
from vigilog.language.frames.translate import shapes
from vigilog.language.program import Program
from vigilog.protocol.messages import Id, Subscribe
from vigilog.service.access import Forbidden, Rights, Tokens, Unknown
from vigilog.service.answers import Answer, first_answer
from vigilog.service.background import Background
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics
from vigilog.service.outbox import Outbox
from vigilog.service.slices import Channel, Index, Part, RowSides, Shape, Side, Slice, Uncut
from vigilog.service.subscription import Outlet, Subscription, Words

log = logging.getLogger("vigilog.service")
TURNS = 20  # a second: in each, a part of the subscriptions is looked at
LONG_AGO = float("-inf")
LONGEST_STOP = 5.0  # seconds that clients have to take what there is for them
AT_ONCE = 200  # members of a channel that are served before others have their turn
LONGEST_REST = 0.25  # seconds
TOO_DEAR = ("budget", "timeout")  # how first answers are refused that are not to be had tomorrow, either
NOTE_EVERY = 0.5  # seconds between two notes of what was acknowledged

T = TypeVar("T")


class Closing(Protocol):
    """A connection that can be ended in good order."""

    async def close(self) -> None: ...


class Hub:
    """The subscriptions of a database that is served. `start` it inside the event loop, and `stop` it there."""

    def __init__(self, db: Durable, limits: Limits, metrics: Metrics, tokens: Tokens | None = None) -> None:
        self.db, self.limits, self.metrics, self.tokens = db, limits, metrics, tokens
        self.allowed = tokens.known if tokens else {}  # as subscriptions were last compared with it
        self.history, self.tx, self.compiled = db.file.history, db.tx, db.compiled
        self.index, self.outbox = Index(), Outbox(db, limits)
        self.newest = self.tx, db.book.log.digest(self.tx)
        self.subscriptions: dict[int, Subscription] = {}
        self.turns: list[dict[int, Subscription]] = [{} for _ in range(TURNS)]  # the same, in parts
        self.owned: Counter[str] = Counter()
        self.named: dict[Key, Subscription] = {}
        self.acknowledged: dict[Key, Remembered] = {}
        self.noting = asyncio.Lock()  # who reads what was written down waits for what is being written
        self.unused: dict[str, float] = {}  # queries that nobody follows any more, and since when
        self.failed: set[str] = set()  # queries whose last first answer was not to be had
        self.numbers = count(1)
        self.readers = ThreadPoolExecutor(MOST_READERS + 2, thread_name_prefix="reader")
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self.first = asyncio.Semaphore(limits.answers)
        self.background, self.turn = Background(metrics), 0
        self.connections: set[Closing] = set()
        self.stopping = self.stopped = False

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.db.step.listeners.append(self._heard)
        self.db.queries.allowance = self.limits.query
        self.db.queries.listeners.append(self._given_up)
        self.loop.set_exception_handler(self.background.heard)
        self.background.start("heartbeats", self._turn, 1 / TURNS)
        self.background.start("notes of acknowledgements", self._note, NOTE_EVERY)
        self.background.start("looks at tokens", self._look, NOTE_EVERY)
        self.background.start("dropping of queries", self._tidy, NOTE_EVERY)
        self.unused = dict.fromkeys(self.db.queries.known, time.monotonic())

    async def stop(self) -> None:
        """Lets the writes that were begun end, sends what there is to send, says where to go on, and notes what was acknowledged."""
        self.stopping = True
        await self._write(lambda: None)
        closing = [asyncio.create_task(connection.close()) for connection in self.connections]
        if closing:
            await asyncio.wait(closing, timeout=LONGEST_STOP)
        self.background.stop()
        self.db.step.listeners.remove(self._heard)
        self.db.queries.listeners.remove(self._given_up)
        try:
            await self._note()
        except Exception as reason:
            self.background.count("notes of acknowledgements", reason)
        self.stopped = True
        self.writer.shutdown(wait=True)
        self.db.readers.close()  # what is still read is ended, and those who asked for it are told
        self.readers.shutdown(wait=False)

    async def read(self, work: Callable[..., T], *args: Any) -> T:
        """Does something that reads, beside all else."""
        if self.stopped:
            raise _stopping()
        try:
            return await self.loop.run_in_executor(self.readers, functools.partial(work, *args))
        except asyncio.CancelledError:
            if self.stopped:  # nothing ends it, and nobody waits any longer
                raise _stopping() from None
            raise

    async def write(self, work: Callable[..., T], *args: Any) -> T:
        """Does something that writes, after what others write."""
        if self.stopping:
            raise _stopping()
        return await self._write(work, *args)

    async def _write(self, work: Callable[..., T], *args: Any) -> T:
        """What needs a source's answer is taken back, and done again when that is here: meanwhile others write."""
        asked = Inquiry()

        def tried() -> T:
            with self.db.trying.lending(asked):
                return work(*args)

        while True:
            try:
                return await self.loop.run_in_executor(self.writer, tried)
            except Unanswered as missing:
                await asyncio.wait([asyncio.wrap_future(missing.future)])
                if self.stopping:
                    raise _stopping() from None

    # -- commits

    def _heard(self, outcome: Outcome) -> None:
        """A transaction was committed: told by the thread that did it, before the next one can be."""
        try:
            self._measure(outcome)
            followed = self.changes_of(outcome, self.db.program)
            digest = self.db.book.log.digest(outcome.tx)
        except Exception as reason:  # it is committed, whatever happens here
            self.background.count("publishing", reason)
            self.loop.call_soon_threadsafe(self._missed, outcome.tx)
        else:
            self.loop.call_soon_threadsafe(self._published, outcome, digest, self.db.compiled, followed)

    def _measure(self, outcome: Outcome) -> None:
        self.metrics.commits.labels(engine=self.db.views.stats.engine).inc()
        if self.db.views.stats.recomputed:
            self.metrics.recomputed.inc()
        for view, delta in outcome.deltas.items():
            name = "query" if view in self.db.queries.names else view
            self.metrics.deltas.labels(view=name, side="plus").inc(len(delta.plus))
            self.metrics.deltas.labels(view=name, side="minus").inc(len(delta.minus))

    def _missed(self, tx: int) -> None:
        """A transaction could not be passed on: the disk has it, and from there everybody reads it."""
        self.tx = max(self.tx, tx)
        for subscription in list(self.subscriptions.values()):
            subscription.fall_behind()

    def changes_of(
        self, outcome: Outcome, program: Program, taken: Mapping[str, Any] | None = None, *, whole: bool = False
    ) -> dict[str, RowSides]:
        """What a transaction changed in views that somebody follows, as JSON has it; those that are `taken` are left out.

        If all follow a whole view, rows that will not be sent are not looked at, unless they are wanted `whole`.
        """
        views = [view for view in outcome.deltas if view in self.index.by_view and view not in (taken or {})]
        alerts = {} if not outcome.alerts else {alert.name: program.relations[alert.relation].types for alert in conditions_alerts(program)}
        reported: dict[str, RowSides] = {}
        for report in outcome.alerts:
            if (name := ALERT + report.alert) in self.index.by_view and name not in (taken or {}):
                reported.setdefault(name, ([], []))[0].append(tuple(outbox_entry(alerts[report.alert], report)))  # type: ignore[attr-defined]  # made here
        return reported | {
            view: json_sides(
                outcome.deltas[view], program.relations[view].types, None if whole or self.index.is_sliced(view) else self.limits.large
            )
            for view in views
            if view in program.relations
        }

    def _published(self, outcome: Outcome, digest: str, compiled: Compiled, followed: dict[str, RowSides]) -> None:
        try:
            self._publish(outcome, digest, compiled, followed)
        except Exception as reason:
            self.background.count("publishing", reason)
            self._missed(outcome.tx)

    def _publish(self, outcome: Outcome, digest: str, compiled: Compiled, followed: dict[str, RowSides]) -> None:
        followed |= self.changes_of(outcome, compiled.program, followed)  # somebody may have come since
        if compiled is not self.compiled:
            self._redefined(compiled)
        self.tx, self.newest = max(self.tx, outcome.tx), (outcome.tx, digest)
        for channel, sides in self.index.touched(followed).items():
            cut = {part.label: self._cut(channel, part, outcome.tx, sides) for part in channel.parts if part.label in sides}
            channel.fresh.append(Slice(channel, outcome.tx, cut, digest=digest))
            if not channel.passing:
                self._pass_on(channel)
        uncut = [view for view, sides in followed.items() if any(isinstance(side, Uncut) for side in sides)]
        for channel in {*self.index.following(*outcome.far), *self.index.following(*uncut, sliced=True)}:
            for member in channel.members:
                member.fall_behind()

    def _pass_on(self, channel: Channel) -> None:
        """Passes the fresh changes of a channel on to its members: at once, or, if they are so many that this takes its time, after a rest, with all that has come until then."""
        channel.passing = True
        rest = channel.rested - time.monotonic()
        if rest > 0:
            self.loop.call_later(rest, self._begin_pass, channel)
        else:
            self._begin_pass(channel)

    def _begin_pass(self, channel: Channel) -> None:
        changes, channel.fresh = channel.fresh, []
        self._pass(channel, changes, list(channel.members), {}, time.monotonic())

    def _pass(self, channel: Channel, changes: list[Slice], members: list[Subscription], written: dict[Words, bytes], began: float) -> None:
        for member in members[:AT_ONCE]:
            try:
                member.take(changes, written)
            except Exception as reason:
                member.fail(reason)
        self.metrics.delivered.inc(len(changes) * len(members[:AT_ONCE]))
        if len(members) > AT_ONCE:
            self.loop.call_soon(self._pass, channel, changes, members[AT_ONCE:], written, began)
            return
        now = time.monotonic()
        channel.rested = now + min(2 * (now - began), LONGEST_REST)
        channel.passing = False
        if channel.fresh:
            self._pass_on(channel)

    def _cut(self, channel: Channel, part: Part, tx: int, sides: Mapping[str, RowSides]) -> tuple[Side, Side]:
        """Rows to send, or, if they are many, where to fetch them."""
        plus, minus = (
            side if len(side) < self.limits.large or part.condition else channel.large(part, tx, len(side)) for side in sides[part.label]
        )
        return plus, minus

    def _redefined(self, compiled: Compiled) -> None:
        """The program has changed: who follows what is gone, or is another thing now, is told so."""
        self.compiled, program = compiled, compiled.program
        for channel in list(self.index.channels.values()):
            views = {*program.outputs, *(ALERT + alert.name for alert in compiled.conditions.alerts)}
            fits = all(
                part.view in views and part.relation in program.relations and _shape(program, part) == channel.shapes[part.label]
                for part in channel.parts
            )
            if not fits:
                for member in list(channel.members):
                    member.end(DataError(f"{' and '.join(channel.views)} was declared anew or dropped", "definition"))

        frames = shapes(program)
        for one in list(self.subscriptions.values()):
            if one.frame is not None and frames.get(one.frame.name) != one.frame:
                one.end(DataError(f"{one.frame.name} was declared anew or dropped", "definition"))

    def _given_up(self, reason: TooDear) -> None:
        """Queries were dropped, because they cost too much: told by the thread that writes, before the transaction that goes on without them."""
        self.metrics.given_up.inc(len(reason.queries))
        self.loop.call_soon_threadsafe(self._dropped, reason)

    def _dropped(self, reason: TooDear) -> None:
        for view in reason.queries:
            self.unused.pop(view, None)
        for channel in self.index.following(*reason.queries):
            for member in list(channel.members):
                member.end(reason)
                self.acknowledged.pop((member.rights.name, member.spec.name or ""), None)
        self.writer.submit(self._forget_followers, reason.queries)

    def _forget_followers(self, queries: frozenset[str]) -> None:
        """The names under which dropped queries were followed go with them, after what is being noted."""
        try:
            for owner, name in following(self.db, queries):
                now = self.named.get((owner, name))
                if now is None or now.ended:  # nobody has made it anew
                    forget(self.db, owner, name)
        except Exception as reason:
            self.background.count("dropping of queries", reason)

    def _allow(self, subscription: Subscription, now: Rights | None) -> None:
        """The file of tokens has changed: who may not follow any more what it follows is told so."""
        reads = {relation for part in subscription.channel.parts for relation in self.db.reads_of(part.relation)}
        if not now:
            subscription.end(Unknown("this token is not known any more"))
        elif not now.may_read(*reads):
            subscription.end(Forbidden(f"this token may not read {' and '.join(sorted(reads))} any more"))
        else:
            subscription.rights = now

    # -- subscriptions

    async def subscribe(self, outlet: Outlet, spec: Subscribe, id: Id | None, rights: Rights) -> Subscription:
        """A new subscription, which is to be run. Raises DataError if it makes no sense, or is not allowed."""
        self._check_room(rights)
        parts = await self.parts(spec, rights)
        try:
            self._check_room(rights)  # others may have come meanwhile
        except DataError:
            self._left(parts)
            raise
        channel = self._channel(parts)
        subscription = Subscription(self, outlet, spec, id, rights, channel)
        channel.members.add(subscription)
        self.subscriptions[subscription.number] = self.turns[subscription.number % TURNS][subscription.number] = subscription
        self.owned[rights.name] += 1
        self.metrics.subscribers.set(len(self.subscriptions))
        subscription.note("subscribed")
        if spec.name is not None:
            key = rights.name, spec.name
            before = self.named.get(key)
            self.named[key] = subscription
            if before is not None:
                before.end(DataError(f"another connection has taken over {spec.name}", "taken-over"))
        return subscription

    def _check_room(self, rights: Rights) -> None:
        if self.stopping:
            raise _stopping()
        if self.owned[rights.name] >= self.limits.subscriptions:
            raise DataError(f"there are {self.limits.subscriptions} subscriptions of this token already", "limit")

    async def parts(self, spec: Subscribe, rights: Rights) -> tuple[Part, ...]:
        """What a subscription is to follow."""
        if spec.query is not None:
            return (await self._query_part(spec, rights),)
        if spec.alert is not None:
            return (self._alert_part(spec, rights),)
        views = [spec.view] if spec.view is not None else spec.views or []
        if spec.frame is not None:
            views = list(shape_of(self.db.program, spec.frame).relations)
        if spec.snapshot == "fetch" and len(views) > 1:
            raise DataError('"snapshot": "fetch" goes with one view', "message")
        relations, outputs = self.db.program.relations, self.db.outputs
        for view in views:
            if view not in outputs or view not in relations:
                hint = did_you_mean(view, outputs)
                raise DataError(f"there is no view {view}" + (f"; {hint}" if hint else ""), "unknown-relation")
        rights.require_read(views)
        if spec.bind and (facts := [view for view in views if view in self.db.program.constrained]):
            raise DataError(f"{facts[0]} is constrained: its facts have conditions and no values to bind; follow all of it", "column")
        strange = [name for name in spec.bind if not any(name in relations[view].columns for view in views)]
        if strange:
            raise DataError(f"{' and '.join(views)} has no column {strange[0]}", "column")
        return tuple(
            self.part(view, {name: value for name, value in spec.bind.items() if name in relations[view].columns}, spec.integers)
            for view in views
        )

    def part(self, view: str, bind: Mapping[str, Any], integers: str = "number") -> Part:
        """The rows of a view that have some values in some columns."""
        declaration = self.db.program.relations[view]
        types = declaration.types
        if integers == "text":
            bind = {name: types[declaration.columns.index(name)].from_spelled(value) for name, value in bind.items()}
        bound = bound_columns(self.db.program, view, bind)
        return Part(view, view, tuple((column, types[column].to_json(value)) for column, value in sorted(bound.items())))

    def shape(self, view: str) -> Shape:
        """The columns of a view, as messages tell its rows."""
        return _shape(self.db.program, Part(view, view))

    def _alert_part(self, spec: Subscribe, rights: Rights) -> Part:
        alerts = {alert.name: alert for alert in self.db.conditions.alerts}
        if spec.alert not in alerts:
            hint = did_you_mean(spec.alert or "", alerts)
            raise DataError(f"there is no alert {spec.alert}" + (f"; {hint}" if hint else ""), "unknown-relation")
        relation = alerts[spec.alert].relation
        rights.require_read([relation])
        if strange := [name for name in spec.bind if name not in self.db.program.relations[relation].columns]:
            raise DataError(f"{relation} has no column {strange[0]}", "column")
        part = self.part(relation, spec.bind, spec.integers)
        return replace(part, view=ALERT + spec.alert, label=spec.alert, condition=relation)

    async def _query_part(self, spec: Subscribe, rights: Rights) -> Part:
        assert spec.query is not None, "it is a query"
        if spec.bind:
            raise DataError("a query says its values itself; bind goes with view and views", "bind")
        rights.require_read(await self.read(self.reads, spec.query))
        followable = await self.write(self._follow, spec.query)
        program = self.db.program
        if followable.view not in program.relations:
            raise DataError("the program was changed meanwhile; try again", "definition")
        types = program.relations[followable.view].types
        bound = tuple((column, types[column].to_json(value)) for column, value in sorted(followable.bound.items()))
        return Part(followable.view, "query", bound, followable.hidden, followable.since)

    def reads(self, goal: str) -> set[str]:
        """The relations that a goal asks for."""
        if len(goal) > self.limits.goal:
            raise DataError(f"a goal has at most {self.limits.goal} characters", "size")
        return self.db.reads(goal)

    def _follow(self, goal: str) -> Followable:
        """Where the answers to a goal can be followed. From now on that is not taken to be unused."""
        try:
            followable = self.db.follow(goal, self.limits.queries, tried=True)
        except DataError as reason:
            if reason.code != "limit":
                raise
            self._forget_queries(0.0)
            followable = self.db.follow(goal, self.limits.queries, tried=True)
        self.unused.pop(followable.view, None)
        return followable

    def _channel(self, parts: tuple[Part, ...]) -> Channel:
        if parts not in self.index.channels:
            program = self.db.program
            names = {part.label: tuple(program.relations[part.relation].columns[column] for column in part.columns) for part in parts}
            self.index.add(Channel(parts, {part.label: _shape(program, part) for part in parts}, bound_names=names))
        return self.index.channels[parts]

    def leave(self, subscription: Subscription) -> None:
        """A subscription has ended."""
        if self.subscriptions.pop(subscription.number, None) is None:
            return
        del self.turns[subscription.number % TURNS][subscription.number]
        self.owned[subscription.rights.name] -= 1
        channel, key = subscription.channel, (subscription.rights.name, subscription.spec.name or "")
        channel.members.discard(subscription)
        if not channel.members:
            self.index.remove(channel)
            self._left(channel.parts)
        if self.named.get(key) is subscription:
            del self.named[key]
        self.metrics.subscribers.set(len(self.subscriptions))
        subscription.note("left")

    def _left(self, parts: Sequence[Part]) -> None:
        """Somebody does not follow these any more: perhaps nobody does. A query of which nobody has had an answer is dropped at once."""
        for part in parts:
            if part.label == "query" and part.view in self.db.queries.names and part.view not in self.index.by_view:
                vain = part.view in self.db.queries.tried or part.view in self.failed
                self.unused[part.view] = LONG_AGO if vain else time.monotonic()
                if vain and not self.stopping:  # before whatever is written next; if it fails, it is tried again
                    self.writer.submit(self._forget_queries, self.limits.forget_queries)

    def acknowledge(self, subscription: Subscription, tx: int) -> None:
        """All up to a transaction is dealt with."""
        if subscription.ended:
            raise DataError("this subscription has ended", "id")
        if tx > subscription.told:
            raise DataError(f"transaction {tx} was not sent yet: the last that you were told of is {max(subscription.told, 0)}", "ack")
        if subscription.spec.name is not None:
            key = subscription.rights.name, subscription.spec.name
            before = self.acknowledged.get(key)
            if before is None or before.tx is None or before.tx < tx:
                self.acknowledged[key] = Remembered(told_spec(subscription.spec), tx)

    async def cancel(self, subscription: Subscription) -> None:
        """Ends a subscription, and forgets its name."""
        name = subscription.spec.name
        subscription.end()
        if name is not None:
            await self.forget(subscription.rights, name)

    async def forget(self, rights: Rights, name: str) -> bool:
        self.acknowledged.pop((rights.name, name), None)
        if (subscription := self.named.get((rights.name, name))) is not None:
            subscription.end(DataError(f"another connection has cancelled {name}", "cancelled"))
        return await self.write(forget, self.db, rights.name, name)

    # -- what a subscription asks for

    async def start_of(self, subscription: Subscription) -> int | None:
        """The position at which a subscription goes on; None if it begins with a first answer. Raises DataError if it cannot go on where it wants to."""
        spec = subscription.spec
        if spec.db is not None and spec.db != self.history and spec.resumes:
            raise DataError(f"your position belongs to another history of the database; this one is {self.history}", "history")
        start = spec.position
        if spec.name is not None:
            await self._note()
            note = (await self.read(remembered, self.db, subscription.rights.name)).get(spec.name)
            if note is not None and note.spec == told_spec(spec) and spec.start is UNSET:
                start = note.tx
        if start is not None:
            await self.read(self.outbox.check, subscription.channel, start, spec.digest)
            await self.begun(subscription, start)
        return start

    async def digest(self, tx: int) -> str:
        """What tells a position from one with the same number in another history; empty if it is not known."""
        return self.newest[1] if self.newest[0] == tx else await self.read(self.outbox.digest, tx)

    async def first_answer(self, subscription: Subscription) -> Answer:
        channel, spec = subscription.channel, subscription.spec
        asked = {part.view for part in channel.parts if part.label == "query"}
        self.failed |= asked
        try:
            async with self.first:
                answer = await self.read(first_answer, self.db, channel, self.limits, subscription.manner)
        except VigilogError as reason:
            if asked and spec.name is not None and reason.code in TOO_DEAR:
                await self.write(forget, self.db, subscription.rights.name, spec.name)
            raise
        self.failed -= asked
        try:
            await self.begun(subscription)
        except BaseException:
            answer.close()
            raise
        return answer

    async def begun(self, subscription: Subscription, start: int | None = None) -> None:
        """Somebody has what a channel held at some transaction, and can go on from there after a restart; from now on his name is known."""
        if tried := [part.view for part in subscription.channel.parts if part.view in self.db.queries.tried]:
            await self.write(self.db.settle, *tried)
        if subscription.spec.name is not None and not subscription.ended:
            key = subscription.rights.name, subscription.spec.name
            await self.write(begin, self.db, key, Remembered(told_spec(subscription.spec), start))

    async def changes(self, channel: Channel, since: int, *, coalesce: bool) -> tuple[list[Slice], int]:
        """Changes of a channel after a position that are on the disk, perhaps not all, and the position that they lead to."""
        return await self.read(self.outbox.changes, channel, since, self.tx, coalesce)

    # -- time

    async def _turn(self) -> None:
        """A part of the subscriptions is looked at; one that fails is no matter of the others."""
        self.turn += 1
        now = time.monotonic()
        for subscription in list(self.turns[self.turn % TURNS].values()):
            try:
                subscription.nudge(now)
            except Exception as reason:
                subscription.fail(reason)

    async def _look(self) -> None:
        if self.tokens and (rights := self.tokens.look()) is not self.allowed:
            for subscription in list(self.subscriptions.values()):
                try:
                    self._allow(subscription, self.tokens.now(subscription.rights))
                except Exception as reason:  # what is not known to be allowed is not
                    subscription.fail(reason)
            self.allowed = rights

    async def _tidy(self) -> None:
        now = time.monotonic()
        if any(now - since > self.limits.forget_queries for since in list(self.unused.values())):
            await self._write(self._forget_queries, self.limits.forget_queries)

    async def _note(self) -> None:
        """Writes down what was acknowledged; what cannot be is written the next time."""
        async with self.noting:
            if self.acknowledged:
                noting, self.acknowledged = self.acknowledged, {}
                try:
                    await self._write(remember, self.db, noting)
                except BaseException as reason:
                    self.acknowledged = noting | self.acknowledged
                    if not isinstance(reason, VigilogError):  # a disk that is full, say, of which /health knows
                        raise

    def _forget_queries(self, age: float) -> None:
        """Drops queries that nobody has followed for some time."""
        now = time.monotonic()
        old = [view for view, since in list(self.unused.items()) if now - since > age]
        self.db.unfollow(*old)
        for view in old:
            self.unused.pop(view, None)
            self.failed.discard(view)


def told_spec(spec: Subscribe) -> str:
    """What a named subscription follows, as it is remembered."""
    others = {what: name for what in ("alert", "frame") if (name := getattr(spec, what)) is not None}
    return json.dumps({"view": spec.view, "views": spec.views, "query": spec.query, "bind": spec.bind, **others}, sort_keys=True)


def json_sides(delta: Delta, types: tuple[Type, ...], most: int | None = None) -> RowSides:
    """What came and what went, as JSON has it; a side of so many rows is not looked at."""
    large = [most is not None and len(rows) >= most for rows in (delta.plus, delta.minus)]
    plus, minus = (Uncut(len(rows)) if is_large else json_rows(types, rows) for rows, is_large in zip(delta.ordered, large, strict=True))
    return plus, minus


def _shape(program: Program, part: Part) -> Shape:
    declaration = program.relations[part.relation]
    if part.relation in program.constrained:
        return Shape(declaration.args, declaration.of, constrained=True)
    return Shape(declaration.columns[part.hidden :], declaration.types[part.hidden :], program.keys.get(part.relation, ()))


def _stopping() -> DataError:
    return DataError("the server is stopping; try again", "stopping")
