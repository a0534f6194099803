"""The OpenAPI document, drawn from the types of the protocol (docs/protocol.md says the same in words)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import FastAPI, Query
from msgspec import Struct

from vigilog.protocol import calls

REFERENCE = "#/components/schemas/{name}"
Answers = dict[int | str, dict[str, Any]]
Integers = Annotated[
    str, Query(pattern="^(number|text)$", description="Whether integers come as numbers or as text; as text they may also be told.")
]

Form = Annotated[
    str, Query(pattern="^(arrays|objects)$", description="Whether a row comes as an array or as an object with its columns' names.")
]


class Application(FastAPI):
    """Its document has the types of all calls."""

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            kinds = [kind for kind in Struct.__subclasses__() if kind.__module__ == calls.__name__]
            _, schemas = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
            super().openapi().setdefault("components", {}).setdefault("schemas", {}).update(schemas)
        return super().openapi()


def answers(*kinds: type[Struct], status: int = 200, description: str = "Successful Response", also: str = "") -> Answers:
    """JSON of one of some types, or `also` something of another media type."""
    schemas = [_reference(kind) for kind in kinds]
    content: dict[str, Any] = {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}
    if also:
        content[also] = {"schema": {"type": "string"} | ({"format": "binary"} if also == calls.ARROW else {})}
    return {status: {"description": description, "content": content}}


def takes(kind: type[Struct], example: Any = None) -> dict[str, Any]:
    content = {"schema": _reference(kind)} | ({"example": example} if example else {})
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _reference(kind: type[Struct]) -> dict[str, str]:
    return {"$ref": REFERENCE.format(name=kind.__name__)}


REFUSALS: Answers = {}
for _status, _text in {
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
    503: "The server is stopping, its disk is broken, or a source is down.",
}.items():
    REFUSALS |= answers(calls.Refused, status=_status, description=_text)


def _parameter(name: str, schema: dict[str, Any], description: str, place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "required": False, "schema": schema, "description": description}


_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400 * 366}
CHANGES: dict[str, list[dict[str, Any]]] = {
    "parameters": [
        _parameter("view", {"type": "array", "items": {"type": "string"}}, "A view; several change together."),
        _parameter("query", {"type": "string"}, "A goal whose answers are followed, in place of views."),
        _parameter("alert", {"type": "string"}, "An alert whose reports are followed, in place of views."),
        _parameter("frame", {"type": "string"}, "A view frame whose relations are followed, in place of views."),
        _parameter("from", {"type": "string"}, 'What came after this position, N or {"tx": N, "digest": D}; `null`: a first answer.'),
        _parameter("db", {"type": "string"}, "The history that `from` belongs to."),
        _parameter("name", {"type": "string"}, "Makes it durable."),
        _parameter("integers", {"type": "string", "enum": ["number", "text"]}, "How values of the types number and unsigned are written."),
        _parameter("rows", {"type": "string", "enum": ["arrays", "objects"]}, "Rows in the order of the columns, or by their names."),
        _parameter("token", {"type": "string"}, "For those who cannot say it in a header."),
        _parameter("tool", {"type": "string"}, "What the client is called in log and status, for those who cannot say it in a header."),
        _parameter("every", _SECONDS, "Messages come at most so often."),
        _parameter("changes", {"type": "integer", "minimum": 1}, "A message waits for so many transactions, or until `within`."),
        _parameter("within", _SECONDS, "So long does a message wait at most."),
        _parameter("coalesce", {"type": "string", "enum": ["true", "false"]}, "One message for the whole interval, with the net effect."),
        _parameter("precision", {"type": "string", "enum": ["rows", "counts", "signal"]}, "How much a change tells."),
        _parameter("max_staleness", _SECONDS, "If a change cannot be sent so soon, `stale` says so."),
        _parameter("Last-Event-ID", {"type": "string", "pattern": "^.*:[0-9]+$"}, "`DB.DIGEST:TX`, the position to go on from.", "header"),
    ]
}
