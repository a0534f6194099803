"""What calls work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vigilog.core.errors import DataError, VigilogError, did_you_mean
from vigilog.folder.durable import Durable
from vigilog.protocol.messages import write
from vigilog.service.gate import Gate
from vigilog.service.hub import Hub
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics
from vigilog.service.models import Refused

ARROW = "application/vnd.apache.arrow.stream"
STATUS = {
    "token": 401,
    "forbidden": 403,
    "unknown-relation": 404,
    "unknown-subscription": 404,
    "history": 409,
    "has-rows": 409,
    "needed": 409,
    "gap": 410,
    "method": 405,
    "size": 413,
    "key": 422,
    "constraint": 422,
    "absent": 422,
    "rate": 429,
    "limit": 429,
    "spark": 503,
    "not-installed": 501,
    "stopping": 503,
    "closed": 503,
    "internal": 500,
    "disk": 503,
    "read-only": 503,
    "damaged": 503,
}
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refused, "description": text}
    for status, text in {
        400: "The input is refused.",
        401: "No token, or an unknown one.",
        403: "Not a right of this token.",
        404: "There is no such thing.",
        409: "It does not fit what there is.",
        410: "It is no longer retained.",
        413: "Too large.",
        422: "A rule of the data refuses it.",
        429: "Too many requests.",
        500: "The server has made a mistake, which is in its log.",
        501: "The server's installation lacks what is needed.",
        503: "The server is stopping, or its disk is broken.",
    }.items()
}


@dataclass(frozen=True)
class Context:
    db: Durable
    hub: Hub
    gate: Gate
    limits: Limits
    metrics: Metrics

    async def body(self, request: Request) -> bytes:
        """The body of a request, which is JSON. A web page must say so, which a form cannot; others, like curl, need not."""
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and "origin" in request.headers:
            raise DataError(f"the body is {kind}; it must be application/json", "json")
        return await request.body()

    def view(self, name: str) -> str:
        """A view that there is: one of the program, or that of a query that somebody follows."""
        if name not in self.db.program.outputs:
            hint = did_you_mean(name, self.db.outputs)
            raise DataError(f"there is no view {name}" + (f"; {hint}" if hint else ""), "unknown-relation")
        return name

    def bind(self, view: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The values that columns are bound to by parameters like `bind.x=a`, as JSON has them."""
        declaration, found = self.db.program.relations[view], {}
        for key, text in query.items():
            if not key.startswith("bind."):
                continue
            name = key.removeprefix("bind.")
            if name not in declaration.columns:
                raise DataError(f"{view} has no column {name}; it has {', '.join(declaration.columns)}", "column")
            type_ = declaration.types[declaration.columns.index(name)]
            try:
                found[name] = type_.to_json(type_.parse(text))
            except ValueError as reason:
                raise DataError(f"{view}.{name}: {reason}", "type") from None
        return found

    def columns(self, view: str) -> list[dict[str, str]]:
        declaration = self.db.program.relations[view]
        return [{"name": name, "type": str(type_)} for name, type_ in zip(declaration.columns, declaration.types, strict=True)]


def answered(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(write(content), status, headers, "application/json")


def refusal(reason: VigilogError, headers: Mapping[str, str] | None = None) -> Response:
    """An error as an answer."""
    said = dict(headers or {})
    if hasattr(reason, "seconds"):
        said["Retry-After"] = str(max(1, round(reason.seconds)))
    if reason.code == "token":
        said["WWW-Authenticate"] = "Bearer"
    message = reason.message.encode("utf-8", "replace").decode()  # it may quote what is no text
    return answered({"error": {"code": reason.code, "message": message}}, STATUS.get(reason.code, 400), said)
