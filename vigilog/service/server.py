"""Serves a database over HTTP and WebSockets, until it is told to stop."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket

import uvicorn

from vigilog.core.errors import UsageError
from vigilog.folder.durable import Durable
from vigilog.service.access import Tokens
from vigilog.service.app import application
from vigilog.service.gate import JsonLines, is_loopback
from vigilog.service.hub import LONGEST_STOP, Hub
from vigilog.service.limits import Limits
from vigilog.service.streaming import SparkWork
from vigilog.service.wire import FramesProtocol

log = logging.getLogger("vigilog.service")


@dataclass(frozen=True)
class Settings:
    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    origins: frozenset[str] = frozenset()
    spark: bool = True  # whether Spark is started in the background
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and self.tokens is None:
            raise UsageError(
                f"{self.host} can be reached from other machines, so tokens are needed: make some with `vigilog token`, then --tokens FILE"
            )
        if (self.certificate is None) != (self.key is None):
            raise UsageError("a certificate and its key go together")


class Server(uvicorn.Server):
    """Tells where it listens, and lets clients take what there is for them before it ends."""

    def __init__(self, config: uvicorn.Config, hub: Hub, ready: Callable[[str], None]) -> None:
        super().__init__(config)
        self.hub, self.ready = hub, ready

    async def startup(self, sockets: list[socket] | None = None) -> None:
        self.hub.start()
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.ready(f"{'https' if self.config.is_ssl else 'http'}://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        log.info("stopping", extra={"tx": self.hub.tx})
        await self.hub.stop()
        await super().shutdown(sockets)
        self._captured_signals.clear()  # they were heard: uvicorn would raise them again, and the database could not be closed


def serve(db: Durable, settings: Settings, ready: Callable[[str], None]) -> None:
    """Serves an open database; `ready` is told the address. Returns after SIGINT or SIGTERM, when all was ended in good order."""
    _log()
    tokens = None if settings.tokens is None else Tokens(settings.tokens)
    if not is_loopback(settings.host) and settings.certificate is None:
        log.warning("without TLS, tokens and data can be read on the way (--certificate, --key, or a proxy that has them)")
    app, hub = application(db, settings.limits, tokens, settings.origins, settings.host)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ws=FramesProtocol,
        ws_ping_interval=settings.limits.ping,
        ws_ping_timeout=settings.limits.ping,
        ws_max_size=2 * settings.limits.message,
        ws_per_message_deflate=False,  # frames are shared between connections
        timeout_graceful_shutdown=5,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.key,
        log_config=None,
        access_log=False,
        server_header=False,
    )
    spark = SparkWork(db, hub.background, wanted=settings.spark)
    spark.start()
    try:
        Server(config, hub, ready).run()
    finally:
        spark.stopping.set()


def leave() -> None:
    """Ends the process if something is still being read that cannot be stopped: all else has ended, and the database is closed."""
    deadline = time.monotonic() + LONGEST_STOP
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    if left := [thread.name for thread in others if thread.is_alive()]:
        log.warning("what is still read is given up", extra={"threads": left})
        atexit._run_exitfuncs()
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def _log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("vigilog", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "vigilog" else logging.WARNING)
