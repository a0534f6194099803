"""Where every call comes in: it is admitted, or refused, before anything of it is read, and only so much of it is read."""

from __future__ import annotations

from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vigilog.core.errors import DataError, VigilogError
from vigilog.service.access import Rights
from vigilog.service.context import refusal
from vigilog.service.gate import Gate

OPEN = ("/", "/health", "/openapi.json", "/client.js", "/client/vigilog.js", "/client/objects.js")  # for everybody


class Entrance:
    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app, self.gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        connection, taken, most = HTTPConnection(scope), 0, self.gate.limits.body

        async def bounded() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise DataError(f"a body has at most {most} bytes", "size")
            return message

        try:
            if scope["path"] not in OPEN:
                connection.state.rights = self.gate.admit(connection)
            await self.app(scope, bounded, send)
        except VigilogError as reason:
            self.gate.refused(reason, connection)
            await refusal(reason)(scope, receive, send)


def rights_of(request: Request) -> Rights:
    """What the caller may do."""
    rights: Rights = request.state.rights
    return rights
