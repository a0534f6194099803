"""What calls take and answer, as the OpenAPI document describes it (docs/protocol.md says the same in words)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Rows = list[list[Any]]


class Said(BaseModel):
    code: str
    message: str


class Refused(BaseModel):
    error: Said


class Sides(BaseModel):
    """Numbers of rows, or, in a dry run, the rows."""

    plus: int | Rows
    minus: int | Rows


class Preview(BaseModel):
    """What a subscription would be sent."""

    id: int
    name: str | None = None
    views: dict[str, Sides]


class Told(BaseModel):
    tx: int
    views: dict[str, Sides]
    subscriptions: list[Preview] | None = None


class Column(BaseModel):
    name: str
    type: str


class View(BaseModel):
    view: str
    columns: list[Column]
    key: list[str]
    strategy: str | None = None


class Views(BaseModel):
    db: str
    tx: int
    views: list[View]


class Rowset(BaseModel):
    db: str
    tx: int
    columns: list[Column]
    rows: Rows


class Change(BaseModel):
    tx: int
    plus: Rows
    minus: Rows


class Question(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    goal: str = Field(examples=['closure("a", y)'], max_length=100_000)
    at: int | None = Field(default=None, ge=0, le=2**63 - 1)


class Reason(BaseModel):
    tx: int
    proof: dict[str, Any] | None
    why_not: dict[str, Any] | None


class Definition(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(examples=["p(x) :- q(x), x > 2."], max_length=10_000_000)
    name: str = Field(default="definition", examples=["more.dl"], pattern=r"^[^\x00-\x1f\x7f]{1,200}$")  # what places call the text


class Load(BaseModel):
    """A source that Spark, or this server, reads; it is a place as the server sees it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    relation: str
    source: str
    sync: bool = False
    upsert: bool = False
    delete_key: bool = False
    op: str | None = None
    options: dict[str, str] = {}


class Text(BaseModel):
    tx: int
    text: str


class Named(BaseModel):
    name: str
    spec: dict[str, Any]
    tx: int | None
    connected: bool


class Subscriptions(BaseModel):
    subscriptions: list[Named]


class Cancelled(BaseModel):
    cancelled: str


class Health(BaseModel):
    status: str
    db: str
    tx: int
    problems: list[str] = []


TRANSACTION = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "properties": {
                        operation: {"type": "object", "additionalProperties": {"type": "array", "items": rows}}
                        for operation, rows in {
                            "insert": {"type": "array"},
                            "delete": {"type": "array"},
                            "upsert": {"type": "array"},
                            "delete_key": {"type": "array"},
                            "update": {
                                "type": "object",
                                "required": ["old", "new"],
                                "additionalProperties": False,
                                "properties": {"old": {"type": "array"}, "new": {"type": "array"}},
                            },
                        }.items()
                    },
                    "additionalProperties": False,
                },
                "example": {"delete": {"edge": [["b", "c"]]}, "insert": {"edge": [["h", "d"]]}},
            }
        },
    }
}


def _parameter(name: str, schema: dict[str, Any], description: str, place: str = "query") -> dict[str, Any]:
    return {"name": name, "in": place, "required": False, "schema": schema, "description": description}


_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400 * 366}
CHANGES: dict[str, list[dict[str, Any]]] = {
    "parameters": [
        _parameter("view", {"type": "array", "items": {"type": "string"}}, "A view; several change together."),
        _parameter("query", {"type": "string"}, "A goal whose answers are followed, in place of views."),
        _parameter("from", {"type": "string", "pattern": "^([0-9]+|null)$"}, "What came after this position; `null`: a first answer."),
        _parameter("db", {"type": "string"}, "The history that `from` belongs to."),
        _parameter("name", {"type": "string"}, "Makes it durable."),
        _parameter("integers", {"type": "string", "enum": ["number", "text"]}, "How values of the types number and unsigned are written."),
        _parameter("token", {"type": "string"}, "For those who cannot say it in a header."),
        _parameter("every", _SECONDS, "Messages come at most so often."),
        _parameter("changes", {"type": "integer", "minimum": 1}, "A message waits for so many transactions, or until `within`."),
        _parameter("within", _SECONDS, "So long does a message wait at most."),
        _parameter("coalesce", {"type": "string", "enum": ["true", "false"]}, "One message for the whole interval, with the net effect."),
        _parameter("precision", {"type": "string", "enum": ["rows", "counts", "signal"]}, "How much a change tells."),
        _parameter("max_staleness", _SECONDS, "If a change cannot be sent so soon, `stale` says so."),
        _parameter("Last-Event-ID", {"type": "string", "pattern": "^.*:[0-9]+$"}, "`DB:TX`, the position to go on from.", "header"),
    ]
}
