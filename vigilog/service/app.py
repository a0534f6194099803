"""The application: calls, subscriptions, health, metrics, and the JavaScript client for pages that want it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from vigilog import __version__
from vigilog.core.errors import DataError, VigilogError
from vigilog.folder.durable import Durable
from vigilog.protocol.calls import Health
from vigilog.protocol.messages import TOOL
from vigilog.service.access import Tokens
from vigilog.service.background import Mistake
from vigilog.service.calls import calls
from vigilog.service.connection import Connection
from vigilog.service.context import Context, answered, refusal
from vigilog.service.entrance import Entrance
from vigilog.service.gate import Gate
from vigilog.service.hub import Hub
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics
from vigilog.service.openapi import REFUSALS, Application, answers
from vigilog.service.views import views
from vigilog.service.welcome import welcome

log = logging.getLogger("vigilog.service")
CLIENT = Path(__file__).parents[1] / "client" / "javascript"
MODULES = ("vigilog.js", "objects.js")
ENTRY = 'export * from "./client/vigilog.js";\n'  # which finds objects.js beside it
METHODS, HEADERS = (
    ("GET", "POST", "DELETE"),
    ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", TOOL),
)  # of pages elsewhere
SIZED_FOR = 10.0  # seconds that the size of the outbox is taken to be what it was


def application(
    db: Durable, limits: Limits | None = None, tokens: Tokens | None = None, origins: frozenset[str] = frozenset(), host: str = "127.0.0.1"
) -> tuple[FastAPI, Hub]:
    """The application that serves a database, and its hub, to be started in the loop that runs it."""
    limits, metrics = limits or Limits(), Metrics()
    hub, gate = Hub(db, limits, metrics, tokens), Gate(tokens, limits, metrics, origins, host)
    context = Context(db, hub, gate, limits, metrics)
    app = Application(
        title="Vigilog",
        version=__version__,
        description="Views that tell every holder of a copy exactly what changed.",
        docs_url=None,  # pages that would fetch scripts from elsewhere
        redoc_url=None,
    )
    app.add_middleware(Entrance, gate=gate)
    if origins:  # outermost: a browser asks without a token whether it may ask
        app.add_middleware(CORSMiddleware, allow_origins=sorted(origins), allow_methods=METHODS, allow_headers=HEADERS)
    app.include_router(welcome(context))
    app.include_router(calls(context))
    app.include_router(views(context))
    app.router.routes.append(WebSocketRoute("/v1/subscribe", _subscribe(hub, gate)))
    _about(app, context)
    _errors(app, context)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=sorted(origins), allow_methods=["*"], allow_headers=["*"], expose_headers=["Retry-After"]
        )
    return app, hub


def _subscribe(hub: Hub, gate: Gate) -> Callable[[WebSocket], Awaitable[None]]:
    async def subscribe(socket: WebSocket) -> None:
        await Connection(hub, gate, socket).serve()

    return subscribe


def _about(app: FastAPI, context: Context) -> None:
    db, hub = context.db, context.hub
    sized = 0.0

    @app.get("/health", responses=answers(Health) | answers(Health, status=503, description="Service Unavailable"))
    async def health() -> Response:
        """Whether transactions can be committed and passed on: 503, with what is wrong, if they cannot."""
        problems = await asyncio.to_thread(_problems, db)  # not behind those who read
        problems += hub.background.problems.values()
        if hub.stopping:
            problems.append("the server is stopping")
        return answered(Health("broken" if problems else "ok", hub.history, hub.tx, problems), 503 if problems else 200)

    @app.get("/metrics", response_class=Response, responses=REFUSALS | {200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Counters, for Prometheus."""
        return Response(await hub.read(context.metrics.text, look), media_type="text/plain; version=0.0.4; charset=utf-8")

    def look() -> None:
        nonlocal sized
        gauges, all_ = context.metrics, list(hub.subscriptions.values())
        gauges.tx.set(hub.tx)
        gauges.behind.set(sum(one.behind for one in all_))
        gauges.lag.set(max((hub.tx - one.position for one in all_ if one.pending or one.behind), default=0))
        if time.monotonic() - sized > SIZED_FOR:
            sized = time.monotonic()
            with db.reading() as state:
                changes, size = state.log.size()
            gauges.outbox_changes.set(changes)
            gauges.outbox_bytes.set(size)

    @app.get("/client.js", response_class=Response, responses={200: {"content": {"text/javascript": {}}}, 404: REFUSALS[404]})
    async def client() -> Response:
        """The JavaScript client, for pages."""
        return Response(ENTRY, media_type="text/javascript")

    @app.get("/client/{name}", response_class=FileResponse, responses={200: {"content": {"text/javascript": {}}}, 404: REFUSALS[404]})
    async def module(name: str) -> Response:
        """A module of the JavaScript client."""
        if name not in MODULES or not (path := CLIENT / name).is_file():
            raise DataError(f"this server has no module {name} for pages", "unknown-path")
        return FileResponse(path, media_type="text/javascript")


def _problems(db: Durable) -> list[str]:
    """What keeps the database from being written. The disk is tried, not asked."""
    problems = []
    probe = db.folder / f".probe-{os.getpid()}"
    try:
        with probe.open("wb") as file:
            file.write(b"vigilog" * 1024)
            file.flush()
            os.fsync(file.fileno())
        if not db.file.path.exists():
            problems.append(f"{db.file.path} is gone")
    except OSError as reason:
        problems.append(f"{db.folder} cannot be written: {reason.strerror}")
    finally:
        try:
            probe.unlink(missing_ok=True)
        except OSError as reason:
            problems.append(f"{db.folder} cannot be written: {reason.strerror}")
    return list(dict.fromkeys(problems))


def _errors(app: FastAPI, context: Context) -> None:
    @app.exception_handler(VigilogError)
    async def refused(request: Request, reason: VigilogError) -> Response:
        context.gate.refused(reason, request)
        return refusal(reason)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, reason: RequestValidationError) -> Response:
        first = reason.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        error = DataError(f"{where}: {first['msg']}", "message")
        context.gate.refused(error, request)
        return refusal(error)

    @app.exception_handler(HTTPException)
    async def strange(request: Request, reason: HTTPException) -> Response:
        """What the layers below refuse: paths, methods, bodies."""
        if isinstance(reason.__cause__, VigilogError):
            error: VigilogError = reason.__cause__
        elif reason.status_code == 404:
            error = DataError(f"there is no {request.url.path}: / says what there is, /openapi.json all of it", "unknown-path")
        else:
            error = DataError(str(reason.detail), "method" if reason.status_code == 405 else "json")
        context.gate.refused(error, request)
        return refusal(error, reason.headers)

    @app.exception_handler(ClientDisconnect)
    async def gone(request: Request, reason: ClientDisconnect) -> Response:
        """The client went while it spoke: nobody hears this."""
        return Response(status_code=400)

    @app.exception_handler(Exception)
    async def mistake(request: Request, reason: Exception) -> Response:
        return refusal(Mistake())
