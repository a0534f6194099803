"""The calls of docs/protocol.md as types: what each takes, and what it answers. The service writes them, the client reads them, and the OpenAPI document is drawn from them.

>>> from vigilog.protocol.messages import read, write
>>> write(Told(7, {"closure": Counts(3, 0)}))
b'{"tx":7,"views":{"closure":{"plus":3,"minus":0}}}'
>>> read(b'{"goal": "p(x)", "at": -1}', Question, "question")
Traceback (most recent call last):
...
vigilog.core.errors.DataError: this is no question: Expected `int` >= 0 - at `$.at`
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from vigilog.protocol.messages import Column, Position, Row, Rows, Said, Sides

ARROW = "application/vnd.apache.arrow.stream"
NOT_NOW = (429, 503)  # statuses of calls that may go well a little later


class Refused(Struct, frozen=True):
    error: Said


# -- transactions


class Update(Struct, frozen=True, forbid_unknown_fields=True):
    old: Row
    new: Row


class Transaction(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to base relations, each with its rows."""

    insert: dict[str, list[Row]] | UnsetType = UNSET
    delete: dict[str, list[Row]] | UnsetType = UNSET
    upsert: dict[str, list[Row]] | UnsetType = UNSET
    delete_key: dict[str, list[Row]] | UnsetType = UNSET
    update: dict[str, list[Update]] | UnsetType = UNSET


class Counts(Struct, frozen=True):
    """How many rows a view gained and lost."""

    plus: int
    minus: int


class Told(Struct, frozen=True):
    tx: Position
    views: dict[str, Counts]


class Addressee(Struct, frozen=True):
    """A subscription, and what it would be sent."""

    id: int
    name: str | None
    views: dict[str, Sides]


class Preview(Struct, frozen=True):
    """What a dry run answers."""

    tx: Position
    views: dict[str, Sides]
    subscriptions: list[Addressee]


class Definition(Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=10_000_000, examples=["p(x) :- q(x), x > 2."])]
    name: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,200}$", examples=["more.dl"])] = "definition"  # what places call the text


class Load(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A source that Spark, or this server, reads; it is a place as the server sees it."""

    relation: str
    source: str
    sync: bool = False
    upsert: bool = False
    delete_key: bool = False
    op: str | None = None
    options: dict[str, str] = {}


# -- views and questions


class View(Struct, frozen=True):
    view: str
    columns: list[Column]
    key: list[str]
    strategy: str | None = None


class Views(Struct, frozen=True):
    db: str
    tx: Position
    views: list[View]


class Rowset(Struct, frozen=True):
    db: str
    tx: Position
    columns: list[Column]
    rows: Rows


class Change(Struct, frozen=True):
    """What one transaction changed in a view."""

    tx: Position
    plus: Rows
    minus: Rows


class Question(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    goal: Annotated[str, Meta(max_length=100_000, examples=['closure("a", y)'])]
    at: Position | None = None


class Reason(Struct, frozen=True):
    tx: Position
    proof: dict[str, Any] | None
    why_not: dict[str, Any] | None = None  # if there is no proof


class Text(Struct, frozen=True):
    tx: Position
    text: str


# -- subscriptions and the server


class Named(Struct, frozen=True):
    name: str
    spec: dict[str, Any]
    tx: Position | None
    connected: bool


class Subscriptions(Struct, frozen=True):
    subscriptions: list[Named]


class Cancelled(Struct, frozen=True):
    cancelled: str


class Welcome(Struct, frozen=True, kw_only=True):
    """Where things are; `message` is what to say on the WebSocket."""

    about: str
    version: str
    api: str = "/openapi.json"
    views: dict[str, str]
    websocket: str = "/v1/subscribe"
    message: dict[str, Any]
    events: str
    client: str = "/client.js"
    health: str = "/health"
    metrics: str = "/metrics"


class Health(Struct, frozen=True):
    status: str
    db: str
    tx: Position
    problems: list[str] = []
