"""What calls work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from vigilog.core.errors import DataError, VigilogError, did_you_mean
from vigilog.folder.durable import Durable
from vigilog.protocol.calls import Refused
from vigilog.protocol.messages import Column, ErrorBody, columns_of, read, write
from vigilog.service.gate import Gate
from vigilog.service.hub import Hub
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics

S = TypeVar("S")
STATUS = {
    "token": 401,
    "forbidden": 403,
    "unknown-path": 404,
    "unknown-relation": 404,
    "unknown-subscription": 404,
    "history": 409,
    "has-rows": 409,
    "needed": 409,
    "gap": 410,
    "method": 405,
    "size": 413,
    "large": 413,
    "key": 422,
    "constraint": 422,
    "conflict": 422,
    "cascade": 422,
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
    "domain": 503,
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

    async def taken(self, request: Request, kind: type[S]) -> S:
        """The body of a request as what the call takes."""
        return read(await self.body(request), kind, f"body of this call ({kind.__name__})")

    def view(self, name: str) -> str:
        """A view that there is: one of the program, or that of a query that somebody follows."""
        if name not in self.db.program.outputs:
            hint = did_you_mean(name, self.db.outputs)
            raise DataError(f"there is no view {name}" + (f"; {hint}" if hint else ""), "unknown-relation")
        return name

    def bind(self, view: str, query: Mapping[str, str]) -> dict[str, Any]:
        """The values that columns are bound to by parameters like `bind.x=a`, as JSON has them."""
        declaration, values = self.db.program.relations[view], {}
        for key, text in query.items():
            if not key.startswith("bind."):
                continue
            name = key.removeprefix("bind.")
            if name not in declaration.columns:
                raise DataError(f"{view} has no column {name}; it has {', '.join(declaration.columns)}", "column")
            type_ = declaration.types[declaration.columns.index(name)]
            try:
                values[name] = type_.to_json(type_.parse(text))
            except ValueError as reason:
                raise DataError(f"{view}.{name}: {reason}", "type") from None
        return values

    def columns(self, view: str) -> list[Column]:
        declaration = self.db.program.relations[view]
        if view in self.db.program.constrained:
            return columns_of(declaration.args, declaration.of)
        return columns_of(declaration.columns, declaration.types)


def answered(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(write(content), status, headers, "application/json")


def refusal(reason: VigilogError, headers: Mapping[str, str] | None = None) -> Response:
    """An error as an answer."""
    fields = dict(headers or {})
    if hasattr(reason, "seconds"):
        fields["Retry-After"] = str(max(1, round(reason.seconds)))
    if reason.code == "token":
        fields["WWW-Authenticate"] = "Bearer"
    return answered(Refused(ErrorBody.of(reason)), STATUS.get(reason.code, 400), fields)
