"""The calls of docs/protocol.md as types: what each takes, and what it answers. The service writes them, the client reads them, and the OpenAPI document is drawn from them.

>>> from vigilog.protocol.messages import read, write
>>> write(Receipt(7, {"closure": Counts(3, 0)}))
b'{"tx":7,"views":{"closure":{"plus":3,"minus":0}}}'
>>> read(b'{"goal": "p(x)", "at": -1}', Question, "question")
Traceback (most recent call last):
...
vigilog.core.errors.DataError: this is no question: Expected `int` >= 0 - at `$.at`
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from vigilog.protocol.messages import Column, ErrorBody, Position, Row, Rows, Sides

ARROW = "application/vnd.apache.arrow.stream"
NOT_NOW = (429, 503)  # statuses of calls that may go well a little later


class Refused(Struct, frozen=True):
    error: ErrorBody


# -- transactions


RowWritten = Row | dict[str, Any]  # a row in the order of its columns, or by their names


class Update(Struct, frozen=True, forbid_unknown_fields=True):
    old: RowWritten
    new: RowWritten


class Transaction(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to base relations, each with its rows."""

    insert: dict[str, list[RowWritten]] | UnsetType = UNSET
    delete: dict[str, list[RowWritten]] | UnsetType = UNSET
    upsert: dict[str, list[RowWritten]] | UnsetType = UNSET
    delete_key: dict[str, list[RowWritten]] | UnsetType = UNSET
    update: dict[str, list[Update]] | UnsetType = UNSET
    refresh: list[str] | UnsetType = UNSET  # domains that are asked anew
    withdraw: list[int] | UnsetType = UNSET  # updates of views that are taken back


class Counts(Struct, frozen=True):
    """How many rows a view gained and lost."""

    plus: int
    minus: int


class Triggered(Struct, frozen=True):
    """What triggers did to a base relation."""

    insert: Rows
    delete: Rows


class Receipt(Struct, frozen=True, omit_defaults=True):
    """A transaction: how many rows views gained and lost; what alerts say of it, and what triggers did; of a definition, what is doubtful."""

    tx: Position
    views: dict[str, Counts]
    alerts: list[dict[str, Any]] = []
    triggered: dict[str, Triggered] = {}
    warnings: list[str] = []


class NamedModified(Struct, frozen=True):
    old: dict[str, Any]
    new: dict[str, Any]


class NamedSides(Struct, frozen=True):
    """What a view gained and lost, with `rows=objects`."""

    plus: list[dict[str, Any]]
    minus: list[dict[str, Any]]
    modified: list[NamedModified] | UnsetType = UNSET


class Addressee(Struct, frozen=True):
    """A subscription, and what it would be sent."""

    id: int
    name: str | None
    views: dict[str, Sides]


class NamedAddressee(Struct, frozen=True):
    id: int
    name: str | None
    views: dict[str, NamedSides]


class Preview(Struct, frozen=True, omit_defaults=True):
    """What a dry run answers."""

    tx: Position
    views: dict[str, Sides]
    subscriptions: list[Addressee]
    alerts: list[dict[str, Any]] = []
    triggered: dict[str, Triggered] = {}


class NamedPreview(Struct, frozen=True, omit_defaults=True):
    """What a dry run answers with `rows=objects`; what alerts and triggers say has arrays."""

    tx: Position
    views: dict[str, NamedSides]
    subscriptions: list[NamedAddressee]
    alerts: list[dict[str, Any]] = []
    triggered: dict[str, Triggered] = {}


class Acknowledged(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of an alert's relation, or the values of the alert's key, that somebody has seen."""

    row: Row


class Violations(Struct, frozen=True):
    """The present violations of all constraints that the caller may read, with why."""

    db: str
    tx: Position
    violations: list[dict[str, Any]]


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


class Refresh(Struct, frozen=True, forbid_unknown_fields=True):
    """Domains that are to be asked anew."""

    domains: list[str]


class Overrides(Struct, frozen=True):
    """The updates of views that were not withdrawn: `id`, `tx`, `relation`, and what it inserts or deletes."""

    tx: int
    overrides: list[dict[str, Any]]


# -- views and questions


class View(Struct, frozen=True):
    view: str
    columns: list[Column]
    key: list[str]
    strategy: str | None = None
    constrained: bool | UnsetType = UNSET


class ViewList(Struct, frozen=True):
    db: str
    tx: Position
    views: list[View]


class Objects(Struct, frozen=True):
    """The objects of a view frame, nested as it says."""

    db: str
    tx: Position
    objects: list[dict[str, Any]]


class Rowset(Struct, frozen=True):
    """Rows; of a constrained relation facts, unless the question binds all columns."""

    db: str
    tx: Position
    columns: list[Column]
    rows: Rows
    constrained: bool | UnsetType = UNSET


class NamedRowset(Struct, frozen=True):
    """The same with `rows=objects`."""

    db: str
    tx: Position
    columns: list[Column]
    rows: list[dict[str, Any]]


class LoggedChange(Struct, frozen=True):
    """What one transaction changed in a view."""

    tx: Position
    plus: Rows
    minus: Rows


class NamedChange(Struct, frozen=True):
    """The same with `rows=objects`."""

    tx: Position
    plus: list[dict[str, Any]]
    minus: list[dict[str, Any]]


class Question(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A goal. Of an atom of a constrained relation `enumerate` wants the rows, if they have an end."""

    goal: Annotated[str, Meta(max_length=100_000, examples=['closure("a", y)'])]
    at: Position | None = None
    enumerate: bool = False


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
