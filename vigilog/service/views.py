"""The calls that read views: whole, or as they change."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from vigilog.core import extras
from vigilog.core.errors import DataError, VigilogError
from vigilog.core.facts import fact_rows
from vigilog.core.named import objects
from vigilog.core.rows import json_rows
from vigilog.core.values import Row
from vigilog.engine.nested import shape_of
from vigilog.folder.reading.states import bound_columns
from vigilog.protocol.calls import ARROW, LoggedChange, NamedChange, NamedRowset, Objects, Rowset, View, ViewList
from vigilog.protocol.messages import MOST, Column, Id, Qos, Subscribe, write
from vigilog.service.access import Rights
from vigilog.service.answers import Answer, first_answer
from vigilog.service.context import Context, answered
from vigilog.service.entrance import rights_of
from vigilog.service.hub import Hub
from vigilog.service.openapi import CHANGES, REFUSALS, Form, Integers, answers
from vigilog.service.slices import Channel, Shape
from vigilog.service.spelling import Manner, spelled
from vigilog.service.subscription import Subscription

if TYPE_CHECKING:
    import pyarrow as pa

Skip = Annotated[int, Query(ge=0, le=1000, description="So many columns, the first ones, are left out.")]
PARAMETERS = {parameter["name"] for parameter in CHANGES["parameters"] if parameter["in"] == "query"}  # beside `bind.COLUMN`

PLACE = re.compile(rb'\{"tx":(\d+)(?:,"digest":"(\w+)")?')  # how a message that moves the position begins


def as_arrow(request: Request) -> bool:
    """Whether the caller takes Arrow, and this installation has it."""
    return ARROW in request.headers.get("accept", "") and extras.ARROW.installed


def views(context: Context) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=REFUSALS)
    db, hub, limits = context.db, context.hub, context.limits

    @router.get("/views", responses=answers(ViewList))
    async def listed(request: Request) -> Response:
        """The views that the caller may read."""
        rights = rights_of(request)
        shown = [
            View(
                name,
                context.columns(name),
                [db.program.relations[name].columns[column] for column in db.program.keys.get(name, ())],
                db.strategies[name].name if name in db.strategies else None,
                name in db.program.constrained or UNSET,
            )
            for name in db.outputs
            if rights.may_read(name)
        ]
        return answered(ViewList(hub.history, hub.tx, shown))

    @router.get("/views/{view}", responses=answers(Rowset, NamedRowset, also=ARROW))
    async def whole(
        request: Request,
        view: str,
        at: Annotated[int | None, Query(ge=0, le=MOST)] = None,
        skip: Skip = 0,
        integers: Integers = "number",
        nested: Annotated[bool, Query(description="The objects of a view frame: `{db, tx, objects}`.")] = False,
        rows: Form = "arrays",
    ) -> Response:
        """All rows of a view, or those with some values (`bind.COLUMN=VALUE`), now or as of a transaction; as JSON, or as an Arrow stream."""
        rights = rights_of(request)
        context.view(view)
        if nested:
            return await _objects(rights, view, at, _bound(view, request), integers)
        rights.require_read(db.reads_of(view))
        if view in db.program.constrained:
            tx, facts = await hub.read(_facts, view, at)
            return answered(Rowset(hub.history, tx, context.columns(view), facts, True))
        bind, columns = context.bind(view, request.query_params), context.columns(view)[skip:]
        async with hub.first:
            if as_arrow(request):
                table, tx = await hub.read(_table, view, bind, at, skip)
                return StreamingResponse(_stream(table, tx), media_type=ARROW)
            if at is not None and at != hub.tx:
                past = await hub.read(_past, view, bind, at, skip)
                declaration = db.program.relations[view]
                shown = spelled(declaration.types[skip:], json_rows(declaration.types[skip:], past), integers)
                if rows == "objects":
                    return answered(NamedRowset(hub.history, at, columns, objects(declaration.columns[skip:], shown)))
                return answered(Rowset(hub.history, at, columns, shown))
            answer = await hub.read(first_answer, db, _channel(view, bind, skip), limits, Manner(integers, rows))
            return StreamingResponse(_json(answer, columns), media_type="application/json")

    def _facts(view: str, at: int | None) -> tuple[int, list[dict[str, Any]]]:
        with db.lock:
            return db.tx if at is None else at, fact_rows(db.program.relations[view].args, sorted(db.view(view, at, limits.answer)))

    def _bound(view: str, request: Request) -> dict[str, Any]:
        """Values of a view frame's parameters."""
        texts = {key.removeprefix("bind."): text for key, text in request.query_params.items() if key.startswith("bind.")}
        shape, types, values = shape_of(db.program, view), db.program.relations[view].types, dict[str, Any]()
        shape.bound(texts)
        for (name, _), type_ in zip(shape.parameters, types, strict=False):
            try:
                values |= {name: type_.parse(texts[name])} if name in texts else {}
            except ValueError as reason:
                raise DataError(f"{view}.{name}: {reason}", "type") from None
        return values

    async def _objects(rights: Rights, view: str, at: int | None, bind: dict[str, Any], integers: str) -> Response:
        rights.require_read({name for relation in shape_of(db.program, view).relations for name in db.reads_of(relation)})
        async with hub.first:
            tx, objects = await hub.read(lambda: db.nested_at(view, at, limits.answer, bind=bind, integers=integers))
            return answered(Objects(hub.history, tx, objects))

    def _channel(view: str, bind: dict[str, Any], skip: int) -> Channel:
        declaration, part = db.program.relations[view], replace(hub.part(view, bind), hidden=skip)
        return Channel((part,), {view: Shape(declaration.columns[skip:], declaration.types[skip:])})

    def _past(view: str, bind: dict[str, Any], at: int, skip: int) -> list[Row]:
        bound = bound_columns(db.program, view, bind)
        return sorted(
            row[skip:] for row in db.view(view, at, limits.answer) if all(row[column] == value for column, value in bound.items())
        )

    def _table(view: str, bind: dict[str, Any], at: int | None, skip: int) -> tuple[pa.Table, int]:
        from vigilog.core.arrow import to_arrow

        declaration = db.program.relations[view]
        columns, types = declaration.columns[skip:], declaration.types[skip:]
        if at is not None and at != db.tx:
            return to_arrow(columns, types, _past(view, bind, at, skip)), at
        bound = bound_columns(db.program, view, bind)
        with db.reading((view, bound), allowance=limits.answer) as state:
            return to_arrow(columns, types, (row[skip:] for row in state.rows(view, bound))), state.tx

    def _stream(table: pa.Table, tx: int) -> Iterator[bytes]:
        import pyarrow as pa

        table = table.replace_schema_metadata({"tx": str(tx), "db": hub.history})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)
        data = memoryview(sink.getvalue())
        for begin in range(0, len(data), 2**20):
            yield bytes(data[begin : begin + 2**20])

    def _json(answer: Answer, columns: list[Column]) -> Iterator[bytes]:
        try:
            yield b'{"db":%b,"tx":%d,"columns":%b,"rows":[' % (write(hub.history), answer.tx, write(columns))
            first = True
            for _, rows in answer.pieces():
                if len(rows) > 2:
                    yield rows[1:-1] if first else b"," + rows[1:-1]
                    first = False
            yield b"]}"
        finally:
            answer.close()

    @router.get("/views/{view}/changes/{tx}", responses=answers(LoggedChange, NamedChange, also=ARROW))
    async def changed(
        request: Request,
        view: str,
        tx: Annotated[int, Path(ge=0, le=MOST)],
        skip: Skip = 0,
        integers: Integers = "number",
        rows: Form = "arrays",
    ) -> Response:
        """What one transaction changed in a view, as long as it is retained: what was too large to be sent."""
        rights = rights_of(request)
        context.view(view)
        rights.require_read(db.reads_of(view))
        bind = context.bind(view, request.query_params)
        if as_arrow(request) and view not in db.program.constrained:
            table = await hub.read(hub.outbox.table, view, tx, bound_columns(db.program, view, bind), skip)
            return StreamingResponse(_stream(table, tx), media_type=ARROW)
        return answered(await hub.read(_change, view, bind, tx, skip, Manner(integers, rows)))

    def _change(view: str, bind: dict[str, Any], tx: int, skip: int, manner: Manner) -> LoggedChange | NamedChange:
        part, declaration = hub.part(view, bind), db.program.relations[view]
        if view in db.program.constrained:
            return LoggedChange(tx, *(fact_rows(declaration.args, rows) for rows in hub.outbox.change(view, tx).values()))
        columns, types = declaration.columns[skip:], declaration.types[skip:]
        plus, minus = (manner.told(columns, types, [row[skip:] for row in part.of(rows)]) for rows in hub.outbox.change(view, tx).values())
        return LoggedChange(tx, plus, minus) if manner.rows == "arrays" else NamedChange(tx, list(plus), list(minus))

    @router.get(
        "/changes", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}}, openapi_extra=CHANGES
    )
    async def changes(request: Request) -> Response:
        """A subscription as server-sent events: `view=…` (several for views that change together) or `query=…`, `bind.COLUMN=VALUE`, `from`, `db`, `name`, and the members of `qos`."""
        rights = rights_of(request)
        spec = _spec(request)
        events = Events(hub, lambda reason: context.gate.refused(reason, request))
        events.subscription = await hub.subscribe(events, spec, None, rights)
        return EventStream(events)

    def _spec(request: Request) -> Subscribe:
        query = request.query_params
        if strange := [key for key in query if key not in PARAMETERS and not key.startswith("bind.")]:
            raise DataError(f"a subscription has no parameter {strange[0]}", "message")
        names = query.getlist("view")
        members: dict[str, Any] = {
            key: query[key] for key in ("query", "alert", "frame", "db", "name", "tool", "integers", "rows") if key in query
        }
        members |= {"tool": request.state.tool} if request.state.tool else {}
        if names:
            members |= {"view": names[0]} if len(names) == 1 else {"views": names}
        start = query.get("from")
        if last := request.headers.get("last-event-id"):
            place, _, start = last.rpartition(":")
            members["db"], _, digest = place.partition(".")
            start = f'{{"tx": {start}, "digest": {write(digest).decode()}}}' if digest else start
        try:  # numbers, true, false and null are written as JSON has them
            members["qos"] = {key: msgspec.json.decode(query[key]) for key in Qos.__struct_fields__ if key in query and key != "precision"}
            members["qos"] |= {"precision": query["precision"]} if "precision" in query else {}
            members |= {} if start is None else {"from": msgspec.json.decode(start)}
            spec = msgspec.convert(members, Subscribe)
        except (msgspec.MsgspecError, RecursionError) as reason:
            raise DataError(f"this is no subscription: {reason}", "message") from None
        bound = {key: text for key, text in query.items() if key.startswith("bind.")}
        if spec.query is not None:
            return msgspec.structs.replace(spec, bind=bound)
        if spec.alert is not None:
            names = [alert.relation for alert in db.conditions.alerts if alert.name == spec.alert]
            return msgspec.structs.replace(spec, bind=context.bind(names[0], bound) if names else {})
        if all(view in db.outputs for view in names):
            bind: dict[str, Any] = {}
            for view in names:
                columns = db.program.relations[view].columns
                bind |= context.bind(view, {key: text for key, text in bound.items() if key.removeprefix("bind.") in columns})
            missing = [key.removeprefix("bind.") for key in bound if key.removeprefix("bind.") not in bind]
            spec = msgspec.structs.replace(spec, bind=bind | dict.fromkeys(missing))
        return spec

    return router


class Events:
    """See `Outlet`. The events wait for the one who reads them, and so does what makes them."""

    kind = "events"

    def __init__(self, hub: Hub, refused: Callable[[VigilogError], None]) -> None:
        self.hub, self.refused = hub, refused
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=4)
        self.subscription: Subscription
        self.task: asyncio.Task[None]

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        event = b"event: %b\ndata: %b\n" % (kind.encode(), body)
        if (
            kind in ("change", "progress")
            or (kind == "alert" and b'"left":' not in body)
            or (kind == "snapshot" and body.endswith(b'"last":true}'))
        ):
            place = PLACE.match(body)
            assert place is not None, "what moves the position begins with it"
            tx, digest = place.groups()
            event += b"id: %b:%b\n" % (b".".join(part for part in (self.hub.history.encode(), digest) if part), tx)
        return event + b"\n"

    def push(self, data: bytes) -> bool:
        if self.queue.full():
            return False
        self.queue.put_nowait(data)
        return True

    async def send(self, data: bytes) -> None:
        await self.queue.put(data)

    def start(self) -> None:
        self.hub.connections.add(self)
        self.task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        self.hub.connections.discard(self)
        self.task.cancel()
        self.hub.leave(self.subscription)  # a task that is cancelled before it begins does nothing at all
        await asyncio.wait([self.task])

    async def told(self) -> AsyncIterator[bytes]:
        while (data := await self.queue.get()) is not None:
            yield data

    async def _run(self) -> None:
        try:
            await self.subscription.run()
            if self.subscription.error is not None:
                self.refused(self.subscription.error)
            if self.subscription.finishing:
                await self.send(self.form("closing", write(await self.subscription.where()), None))
        except Exception as reason:
            self.hub.background.count("subscriptions", reason)
        await self.queue.put(None)

    async def close(self) -> None:
        """The server stops."""
        self.subscription.finish()
        await asyncio.wait([self.task])


class EventStream(StreamingResponse):
    """The answer that a subscription is. It ends with it, whether the client hears anything or not."""

    def __init__(self, events: Events) -> None:
        super().__init__(events.told(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
        self.events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.events.start()
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.events.stop()
