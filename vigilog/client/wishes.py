"""What a caller may wish for, and the subscription that it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict

from msgspec import UNSET

from vigilog.client.copies import Copy, OfChange, OfError, OfRow
from vigilog.client.events import Snapshot
from vigilog.client.subscription import Subscription
from vigilog.core.errors import UsageError
from vigilog.core.values import Value
from vigilog.protocol.messages import Mark, Qos, Subscribe

DEFAULT = Subscribe(view="any").qos  # which need not be said
Subject = str | Sequence[str]


class Quality(TypedDict, total=False):
    """How changes are wanted; by default every one, at once, with its rows (docs/protocol.md, Quality of service)."""

    every: float | None
    changes: int | None
    within: float | None
    coalesce: bool
    precision: Literal["rows", "counts", "signal"]
    max_staleness: float | None


class Following(Quality, total=False):
    """How `subscribe` follows views."""

    bind: Mapping[str, Value] | None  # only rows with these values in their columns
    since: int | Mark | Snapshot | None  # what came after a position, and no snapshot
    db: str | None  # the history that the position belongs to
    name: str | None  # what came after the position that was acknowledged last under this name
    anew: bool  # a snapshot, although the name is known
    acknowledge: bool  # False: only by `ack`
    fetch: bool  # the first answer as Arrow
    named: bool  # each row a NamedTuple


class Framing(Quality, total=False):
    """How `enroll_frame` keeps objects."""

    bind: Mapping[str, Value] | None  # only objects of a view with these parameters
    name: str | None  # the server remembers how far it came


class Holding(Quality, total=False):
    """How `enroll` keeps views."""

    bind: Mapping[str, Value] | None  # only rows with these values in their columns
    since: Snapshot | None  # a copy from before, which is brought up to date
    name: str | None  # the server remembers how far it came
    first: bool  # callbacks are told the first answer, too
    fetch: bool  # the first answer as Arrow, which is faster if it is large
    named: bool  # each row a NamedTuple
    on_plus: OfRow | None
    on_minus: OfRow | None
    on_change: OfChange | None
    on_error: OfError | None


def followed(what: Subject, wishes: Following) -> Subscription:
    acknowledge, named = wishes.pop("acknowledge", True), wishes.pop("named", False)
    return Subscription(wish(what, **wishes), acknowledges=acknowledge, named=named)


def alerted(alert: str, wishes: Following) -> Subscription:
    acknowledge, named = wishes.pop("acknowledge", True), wishes.pop("named", False)
    return Subscription(wish(alert, alert=True, **wishes), acknowledges=acknowledge, named=named)


def held(what: Subject, wishes: Holding) -> tuple[Subscription, Copy]:
    """A subscription, and the copy that it is to keep, with callbacks that are there before the first event comes."""
    if wishes.get("precision", "rows") != "rows":
        raise UsageError("a copy needs rows; less precision is for subscribe")
    since, named = wishes.pop("since", None), wishes.pop("named", False)
    copy = Copy(since, first=wishes.pop("first", False))
    on_plus, on_minus = wishes.pop("on_plus", None), wishes.pop("on_minus", None)
    if (on_plus or on_minus) and not isinstance(what, str):
        raise UsageError("rows of several views are told by on_change, or by the callbacks of each view")
    copy.plus = {view: [on_plus] for view in names(what) if on_plus}
    copy.minus = {view: [on_minus] for view in names(what) if on_minus}
    on_change, on_error = wishes.pop("on_change", None), wishes.pop("on_error", None)
    copy.change, copy.failed = [on_change] if on_change else [], [on_error] if on_error else []
    return Subscription(wish(what, since=since, anew=since is None, **wishes), renews=True, named=named), copy  # type: ignore[misc]  # what is not for `wish` was taken out


def names(what: Subject) -> list[str]:
    """The names of the views that are meant; a goal's is `query`."""
    return [("query" if "(" in what else what)] if isinstance(what, str) else list(what)


def wish(
    what: Subject,
    *,
    bind: Mapping[str, Value] | None = None,
    since: int | Mark | Snapshot | None = None,
    db: str | None = None,
    name: str | None = None,
    anew: bool = False,
    fetch: bool = False,
    alert: bool = False,
    frame: bool = False,
    **quality: object,
) -> Subscribe:
    """A view's name, several of them, a goal (which has parentheses), or an alert's name; from a position, from where a name was left, or from a first answer.

    >>> wish("closure").view, wish(["closure", "degree"]).views, wish('closure("a", y)').query
    ('closure', ['closure', 'degree'], 'closure("a", y)')
    """
    if isinstance(since, Snapshot):
        db, since = since.db, Mark(since.tx, since.digest) if since.digest else since.tx
    if since is not None and anew:
        raise UsageError("a subscription goes on from a position, or begins anew; not both")
    one = what if isinstance(what, str) else None
    goal = one is not None and "(" in one
    try:
        return Subscribe(
            view=None if goal or alert or frame else one,
            frame=one if frame else None,
            alert=one if alert else None,
            views=None if isinstance(what, str) else list(what),
            query=one if goal else None,
            bind=dict(bind or {}),
            start=since if since is not None else None if anew or name is None else UNSET,
            db=db if since is not None else None,
            name=name,
            qos=Qos(**quality) if quality else DEFAULT,  # type: ignore[arg-type]  # the members of Quality
            snapshot="fetch" if fetch else "json",
        )
    except ValueError as reason:
        raise UsageError(str(reason)) from None
