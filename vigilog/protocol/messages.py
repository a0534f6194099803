"""The messages of docs/protocol.md, version 1, as types; msgspec reads and writes them.

>>> read_client('{"subscribe": {"view": "closure", "from": 41, "bind": {"x": "a"}}}').subscribe.resumes
True
>>> read_client('{"subscribe": {"view": 7}}')
Traceback (most recent call last):
...
vigilog.core.errors.DataError: this is no message of a client: Expected `str | null`, got `int` - at `$.subscribe.view`
>>> write(ServerMessage(progress=Progress(57)))
b'{"progress":{"tx":57}}'

A client ignores members and messages that it does not know, so a server may add some; a server refuses them, so that no wish is silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from vigilog.core.errors import DataError, Refused, VigilogError
from vigilog.core.values import Type

S = TypeVar("S")
MOST = 2**63 - 1
Position = Annotated[int, Meta(ge=0, le=MOST)]  # a transaction number
Row = tuple[Any, ...]  # as JSON has it
Fact = dict[str, Any]  # a fact with conditions in the place of a row, `{"args": ["x"], "where": "x >= 5"}`
Rows = Sequence[Row | Fact]
Id = int | str
TOOL = "Vigilog-Tool"  # the header in which a client says which tool it is


def is_name(text: str) -> bool:
    """Whether a text can be the name of a subscription or of a tool: 1 to 200 printable characters."""
    return 0 < len(text) <= 200 and text.isprintable()


class Column(Struct, frozen=True):
    name: str
    type: str


def columns_of(names: Iterable[str], types: Iterable[Type]) -> list[Column]:
    return [Column(name, str(type_)) for name, type_ in zip(names, types, strict=True)]


class Described(Struct, frozen=True):
    """A view's columns, and those of them that are its key. The rows of one that is `constrained` are facts with conditions, and what changes are regions."""

    columns: list[Column]
    key: list[str] = []
    constrained: bool | UnsetType = UNSET


# -- from the client


class Qos(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a subscription wants its changes: by default every one, at once, with its rows."""

    every: float | None = None
    changes: int | None = None
    within: float | None = None
    coalesce: bool = False
    precision: Literal["rows", "counts", "signal"] = "rows"
    max_staleness: float | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for what cannot be meant; msgspec tells it with its place."""
        for name in ("every", "within", "max_staleness"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 86_400 * 366:
                raise ValueError(f"{name} is a number of seconds above 0")
        if self.changes is not None and not 0 < self.changes <= MOST:
            raise ValueError("changes is a number above 0")
        if self.changes is not None and self.within is None:
            raise ValueError("changes needs within: how long to wait for them at most")

    @property
    def immediate(self) -> bool:
        """Whether changes are sent as they come, with their rows."""
        return self.every is None and self.within is None and self.precision == "rows" and not self.coalesce


class Mark(Struct, frozen=True, forbid_unknown_fields=True):
    """A position with the digest that a server told for it: no other history has it there, not even one that went another way after the folder was copied."""

    tx: Position
    digest: str


class Subscribe(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    view: str | None = None
    views: list[str] | None = None
    query: str | None = None
    alert: str | None = None
    frame: str | None = None
    bind: dict[str, Any] = {}
    start: Position | Mark | UnsetType | None = field(default=UNSET, name="from")
    db: str | None = None
    name: str | None = None
    qos: Qos = Qos()
    token: str | None = None
    tool: str | None = None
    integers: Literal["number", "text"] = "number"
    rows: Literal["arrays", "objects"] = "arrays"
    snapshot: Literal["json", "fetch"] = "json"

    def __post_init__(self) -> None:
        if sum(part is not None for part in (self.view, self.views, self.query, self.alert, self.frame)) != 1:
            raise ValueError("a subscription has one of view, views, query, alert and frame")
        if self.frame is not None and (self.qos.precision != "rows" or self.snapshot != "json"):
            raise ValueError("objects are patched by rows; precision and snapshot go with views")
        if self.alert is not None and (self.qos.coalesce or self.qos.precision != "rows" or self.snapshot != "json"):
            raise ValueError("an alert tells each of its reports; coalesce, precision and snapshot go with views")
        if self.views is not None and (not self.views or len(set(self.views)) < len(self.views)):
            raise ValueError("views are one or more different views")
        if isinstance(self.start, int) and not 0 <= self.start <= MOST:
            raise ValueError('from is a transaction number, {"tx": number, "digest": text}, or null')
        for what in ("name", "tool"):
            if (name := getattr(self, what)) is not None and not is_name(name):
                raise ValueError(f"a {what} has 1 to 200 printable characters")

    @property
    def resumes(self) -> bool:
        return self.position is not None

    @property
    def position(self) -> int | None:
        """The transaction after which changes are wanted, if one is stated."""
        return self.start.tx if isinstance(self.start, Mark) else self.start if isinstance(self.start, int) else None

    @property
    def digest(self) -> str:
        """The digest of that position, if it was said."""
        return self.start.digest if isinstance(self.start, Mark) else ""


class ClientMessage(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    id: Id | None = None
    subscribe: Subscribe | None = None
    ack: Position | None = None
    cancel: dict[str, Any] | None = None
    progress: Position | None = None
    ping: Any = None


# -- from the server


class Fetch(Struct, frozen=True):
    """Rows that are too many to send: where they are, and how many."""

    fetch: str
    rows: int


Side = Rows | Fetch | int


class Modified(Struct, frozen=True):
    old: Row
    new: Row


class Sides(Struct, frozen=True):
    """What a view gained and lost, and, if it has a key, which rows replace each other."""

    plus: Rows
    minus: Rows
    modified: list[Modified] | UnsetType = UNSET


class ViewChange(Struct, frozen=True, omit_defaults=True):
    plus: Side | UnsetType = UNSET
    minus: Side | UnsetType = UNSET
    modified: list[Modified] | UnsetType = UNSET


class Subscribed(Struct, frozen=True, omit_defaults=True):
    db: str
    tx: Position
    digest: str = ""
    views: dict[str, Described] = {}
    frame: dict[str, Any] = {}  # of a view frame its structure, as `protocol/shapes.py` reads it


class Snapshot(Struct, frozen=True, omit_defaults=True, kw_only=True):
    tx: Position
    digest: str = ""
    rows: Rows | UnsetType = UNSET
    views: dict[str, Rows] | UnsetType = UNSET
    part: int = 1
    of: int = 1
    fetch: str | UnsetType = UNSET
    last: bool


class Change(Struct, frozen=True, omit_defaults=True, kw_only=True):
    tx: Position
    digest: str = ""
    since: Position | UnsetType = UNSET
    plus: Side | UnsetType = UNSET
    minus: Side | UnsetType = UNSET
    modified: list[Modified] | UnsetType = UNSET
    views: dict[str, ViewChange] | UnsetType = UNSET


class Progress(Struct, frozen=True, omit_defaults=True):
    tx: Position
    digest: str = ""


class Stale(Struct, frozen=True):
    tx: Position
    behind: float
    since: Position


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """An error as it is told. Of a transaction that conditions refuse, what they say of it: a constraint with its rows and why they hold, or triggers that disagree, or have no end."""

    code: str
    message: str
    constraint: str | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    more: int | UnsetType = UNSET
    place: str | UnsetType = UNSET
    why: list[dict[str, Any]] | UnsetType = UNSET
    others: dict[str, Rows] | UnsetType = UNSET
    triggers: list[str] | UnsetType = UNSET
    relation: str | UnsetType = UNSET
    row: Row | UnsetType = UNSET
    key: Row | UnsetType = UNSET
    chain: list[list[str]] | UnsetType = UNSET

    @classmethod
    def of(cls, error: VigilogError) -> ErrorBody:
        members = error.members if isinstance(error, Refused) else {}
        return cls(error.code, error.message.encode("utf-8", "replace").decode(), **members)  # it may quote what is no text

    def error(self) -> DataError:
        """The exception that it is."""
        fields = {name: value for name in self.__struct_fields__[2:] if (value := getattr(self, name)) is not UNSET}
        return Refused(self.message, self.code, plain(fields)) if fields else DataError(self.message, self.code)


class ServerMessage(Struct, frozen=True, omit_defaults=True):
    id: Id | None = None
    subscribed: Subscribed | None = None
    snapshot: Snapshot | None = None
    change: Change | None = None
    progress: Progress | None = None
    stale: Stale | None = None
    error: ErrorBody | None = None
    cancelled: dict[str, Any] | None = None
    closing: Progress | None = None
    alert: dict[str, Any] | None = None
    pong: Any = None


class _Addressed(Struct, frozen=True):
    id: Id | None = None


_client = msgspec.json.Decoder(ClientMessage)
_addressed = msgspec.json.Decoder(_Addressed)
_encoder = msgspec.json.Encoder()


def read_client(text: str | bytes) -> ClientMessage:
    """A message of a client. Raises DataError if it is none."""
    try:
        message = _client.decode(text)
    except msgspec.ValidationError as reason:
        raise DataError(f"this is no message of a client: {reason}", "message") from None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as reason:
        raise DataError(f"this is not JSON: {reason}", "json") from None
    kinds = [name for name in ("subscribe", "ack", "cancel", "progress", "ping") if getattr(message, name) is not None]
    if len(kinds) != 1:
        raise DataError("this is no message of a client: it has one of subscribe, ack, cancel, progress and ping", "message")
    return message


def id_of(text: str | bytes) -> Id | None:
    """Of a message that is none of a client: what subscription it was about, so that the error can say so.

    >>> id_of('{"id": 7, "subscribe": {"view": 7}}')
    7
    """
    try:
        return _addressed.decode(text).id
    except (msgspec.MsgspecError, RecursionError):
        return None


def read(text: str | bytes, kind: type[S], what: str) -> S:
    """What the other side has sent. Raises DataError, which says what it should have been, if it is none."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as reason:
        raise DataError(f"this is no {what}: {reason}", "message") from None


def plain(value: Any) -> Any:
    """What is said as JSON has it: lists and dictionaries."""
    return msgspec.json.decode(write(value))


def write(value: Any) -> bytes:
    return _encoder.encode(value)
