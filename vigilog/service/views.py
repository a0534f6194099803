"""The calls that read views: whole, or as they change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Annotated, Any

import msgspec
import pyarrow as pa
from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vigilog.core.arrow import to_arrow
from vigilog.core.errors import DataError
from vigilog.core.values import Row
from vigilog.engine.ledger import json_rows
from vigilog.protocol.messages import Id, Subscribe, write
from vigilog.service import models
from vigilog.service.answers import Answer, first_answer
from vigilog.service.context import ARROW, REFUSALS, Context, answered
from vigilog.service.hub import Hub
from vigilog.service.slices import Channel, Shape, spelled
from vigilog.service.subscription import Subscription

Integers = Annotated[str, Query(pattern="^(number|text)$", description="Whether integers come as numbers or as text.")]
QOS = {"every": float, "changes": int, "within": float, "max_staleness": float, "coalesce": str, "precision": str}
ROWS: dict[int | str, dict[str, Any]] = {200: {"content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}}}


def views(context: Context) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=REFUSALS)
    db, hub, gate, limits = context.db, context.hub, context.gate, context.limits

    @router.get("/views", response_model=models.Views)
    async def listed(request: Request) -> Response:
        """The views that the caller may read."""
        rights = gate.admit(request)
        shown = [
            {
                "view": name,
                "columns": context.columns(name),
                "key": [db.program.relations[name].columns[column] for column in db.program.keys.get(name, ())],
                "strategy": db.strategies[name].name if name in db.strategies else None,
            }
            for name in db.outputs
            if rights.may_read(name)
        ]
        return answered({"db": hub.history, "tx": hub.tx, "views": shown})

    @router.get("/views/{view}", response_model=models.Rowset, responses=ROWS)
    async def whole(
        request: Request, view: str, at: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None, integers: Integers = "number"
    ) -> Response:
        """All rows of a view, or those with some values (`bind.COLUMN=VALUE`), now or as of a transaction; as JSON, or as an Arrow stream."""
        rights = gate.admit(request)
        context.view(view)
        rights.require_read([view])
        bind = context.bind(view, request.query_params)
        if ARROW in request.headers.get("accept", ""):
            table, tx = await hub.read(_table, view, bind, at)
            return StreamingResponse(_stream(table, tx), media_type=ARROW)
        if at is not None and at != hub.tx:
            rows, tx = await hub.read(_past, view, bind, at)
            shown = spelled(db.program.relations[view].types, rows, integers)
            return answered({"db": hub.history, "tx": tx, "columns": context.columns(view), "rows": shown})
        async with hub.first:
            answer = await hub.read(first_answer, db, _channel(view, bind), limits, integers)
        return StreamingResponse(_json(answer, context.columns(view)), media_type="application/json")

    def _channel(view: str, bind: dict[str, Any]) -> Channel:
        declaration = db.program.relations[view]
        return Channel((hub.part(view, bind),), {view: Shape(declaration.columns, declaration.types)})

    def _past(view: str, bind: dict[str, Any], at: int) -> tuple[list[Row], int]:
        part, types = hub.part(view, bind), db.program.relations[view].types
        return part.of(json_rows(types, sorted(db.view(view, at)))), at

    def _table(view: str, bind: dict[str, Any], at: int | None) -> tuple[pa.Table, int]:
        declaration = db.program.relations[view]
        if at is not None and at != db.tx:
            rows, tx = _past(view, bind, at)
            typed = (tuple(type_.from_json(cell) for type_, cell in zip(declaration.types, row, strict=True)) for row in rows)
            return to_arrow(declaration.columns, declaration.types, typed), tx
        bound = {
            declaration.columns.index(name): declaration.types[declaration.columns.index(name)].from_json(value)
            for name, value in bind.items()
        }
        with db.reading((view, bound), seconds=limits.seconds, budget=limits.derived) as state:
            return to_arrow(declaration.columns, declaration.types, state.rows(view, bound)), state.tx

    def _stream(table: pa.Table, tx: int) -> Iterator[bytes]:
        table = table.replace_schema_metadata({"tx": str(tx), "db": hub.history})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)
        data = memoryview(sink.getvalue())
        for begin in range(0, len(data), 2**20):
            yield bytes(data[begin : begin + 2**20])

    def _json(answer: Answer, columns: list[dict[str, str]]) -> Iterator[bytes]:
        try:
            yield b'{"db":%b,"tx":%d,"columns":%b,"rows":[' % (write(hub.history), answer.tx, write(columns))  # type: ignore[arg-type]
            first = True
            for _, rows in answer.pieces():
                if len(rows) > 2:
                    yield rows[1:-1] if first else b"," + rows[1:-1]
                    first = False
            yield b"]}"
        finally:
            answer.close()

    @router.get("/views/{view}/changes/{tx}", response_model=models.Change, responses=ROWS)
    async def changed(
        request: Request,
        view: str,
        tx: Annotated[int, Path(ge=0, le=2**63 - 1)],
        skip: Annotated[int, Query(ge=0, le=1000)] = 0,
        integers: Integers = "number",
    ) -> Response:
        """What one transaction changed in a view, as long as it is retained: what was too large to be sent."""
        rights = gate.admit(request)
        context.view(view)
        rights.require_read(db.query_reads(view) if view in db.queries.names else [view])
        bind = context.bind(view, request.query_params)
        sides = await hub.read(_sides, view, bind, tx, skip)
        declaration = db.program.relations[view]
        types, columns = declaration.types[skip:], declaration.columns[skip:]
        if ARROW in request.headers.get("accept", ""):
            table = await hub.read(_change_table, columns, types, sides)
            return StreamingResponse(_stream(table, tx), media_type=ARROW)
        return answered({"tx": tx} | {side: spelled(types, rows, integers) for side, rows in sides.items()})

    def _sides(view: str, bind: dict[str, Any], tx: int, skip: int) -> dict[str, list[Row]]:
        part = hub.part(view, bind)
        return {side: [tuple(row[skip:]) for row in part.of(rows)] for side, rows in hub.outbox.change(view, tx).items()}

    def _change_table(columns: Any, types: Any, sides: dict[str, list[Row]]) -> pa.Table:
        tables = []
        for side, rows in sides.items():
            typed = (tuple(type_.from_json(cell) for type_, cell in zip(types, row, strict=True)) for row in rows)
            table = to_arrow(columns, types, typed)
            tables.append(table.add_column(0, "change", pa.array([side] * table.num_rows, pa.string())))
        return pa.concat_tables(tables)

    @router.get("/changes", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
    async def changes(request: Request) -> Response:
        """A subscription as server-sent events: `view=…` (several for views that change together) or `query=…`, `bind.COLUMN=VALUE`, `from`, `db`, `name`, and the members of `qos`."""
        rights = gate.admit(request)
        spec = _spec(request)
        events = Events(hub.history)
        subscription = await hub.subscribe(events, spec, None, rights)
        return StreamingResponse(events.served(subscription, hub), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    def _spec(request: Request) -> Subscribe:
        query = request.query_params
        names = query.getlist("view")
        said: dict[str, Any] = {key: query[key] for key in ("query", "db", "name", "integers") if key in query}
        if names:
            said |= {"view": names[0]} if len(names) == 1 else {"views": names}
        start = query.get("from")
        if last := request.headers.get("last-event-id"):
            said["db"], _, start = last.rpartition(":")
        try:
            if start is not None:
                said["from"] = None if start == "null" else int(start)
            qos: dict[str, Any] = {key: kind(query[key]) for key, kind in QOS.items() if key in query}
            if "coalesce" in qos:
                qos["coalesce"] = {"true": True, "false": False}[qos["coalesce"]]
            spec = msgspec.convert(said | ({"qos": qos} if qos else {}), Subscribe)
        except (ValueError, KeyError, msgspec.ValidationError) as reason:
            raise DataError(f"this is no subscription: {reason}", "message") from None
        if spec.query is None and all(view in db.outputs for view in names):
            bind: dict[str, Any] = {}
            bound = {key: text for key, text in query.items() if key.startswith("bind.")}
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

    def __init__(self, history: str) -> None:
        self.history = history
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=4)

    def form(self, kind: str, body: bytes, id: Id | None) -> bytes:
        event = b"event: %b\ndata: %b\n" % (kind.encode(), body)
        if kind in ("change", "progress") or (kind == "snapshot" and body.endswith(b'"last":true}')):
            tx = msgspec.json.decode(body[: body.index(b",")] + b"}" if b"," in body else body)["tx"]
            event += b"id: %b:%d\n" % (self.history.encode(), tx)
        return event + b"\n"

    def push(self, data: bytes) -> bool:
        if self.queue.full():
            return False
        self.queue.put_nowait(data)
        return True

    async def send(self, data: bytes) -> None:
        await self.queue.put(data)

    async def served(self, subscription: Subscription, hub: Hub) -> AsyncIterator[bytes]:
        hub.connections.add(self)
        self.subscription = subscription
        self.task = asyncio.create_task(self._run(subscription))
        try:
            while (data := await self.queue.get()) is not None:
                yield data
        finally:
            hub.connections.discard(self)
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def _run(self, subscription: Subscription) -> None:
        await subscription.run()
        if subscription.finishing:
            await self.send(self.form("closing", b'{"tx":%d}' % max(subscription.told, 0), None))
        await self.queue.put(None)

    async def close(self) -> None:
        """The server stops."""
        self.subscription.finish()
        await asyncio.wait([self.task])
