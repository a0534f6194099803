"""What a client hears, as JSON in the form of `watch`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from vigilog.client.answers import Preview, Receipt
from vigilog.client.columns import Columns
from vigilog.client.events import Alert, Change, Disconnected, Event, Gap, Progress, Snapshot, Stale, Subscribed
from vigilog.client.synchronous import Client
from vigilog.core.delta import Delta, modified
from vigilog.core.errors import DataError


def line(event: Event, columns: Mapping[str, Columns]) -> dict[str, Any] | None:
    """An event as one answer of `watch`: a snapshot has the whole view as plus. Nothing of what does not concern rows.

    >>> from vigilog.core.values import SYMBOL
    >>> line(Snapshot("h", 7, {"v": frozenset({("a",)})}), {"v": Columns(("x",), (SYMBOL,))})
    {'tx': 7, 'views': {'v': {'plus': [['a']], 'minus': []}}}
    """
    match event:
        case Snapshot():
            return {"tx": event.tx, "views": views_json(columns, {view: Delta(rows) for view, rows in event.views.items()})}
        case Change():
            since = {} if event.since is None else {"since": event.since}
            counts = {view: {"plus": plus, "minus": minus} for view, (plus, minus) in event.counts.items()}
            views = views_json(columns, event.views) | counts
            return {"tx": event.tx, **since, **({"views": views} if views else {})}
        case Alert():
            own = columns[event.alert]
            report: dict[str, Any] = {"tx": event.tx, "alert": event.alert, "state": event.state, "row": own.json([event.row])[0]}
            report |= {"old": own.json([event.old])[0]} if event.old is not None else {}
            report |= {"proofs": event.proofs} if event.proofs is not None else {}
            return {"alert": report | {name: text for name in ("message", "severity") if (text := getattr(event, name))}}
        case Stale():
            return {"stale": {"tx": event.tx, "behind": event.behind, "since": event.since}}
        case Gap():
            return {"error": {"code": event.code, "message": event.message}}
        case Subscribed() | Progress() | Disconnected():
            return None
        case _:
            assert_never(event)


def views_json(columns: Mapping[str, Columns], views: Mapping[str, Delta]) -> dict[str, Any]:
    return {view: delta_json(columns[view], delta) for view, delta in views.items()}


def delta_json(columns: Columns, delta: Delta) -> dict[str, Any]:
    """A view's change; rows with a key that replace each other are also told in pairs."""
    sides: dict[str, Any] = {"plus": columns.json(delta.plus), "minus": columns.json(delta.minus)}
    key = tuple(columns.names.index(name) for name in columns.key)
    if key and (pairs := modified(delta, key)):
        sides["modified"] = [{"old": columns.json([old])[0], "new": columns.json([new])[0]} for old, new in pairs]
    return sides


def text_lines(event: Event, columns: Mapping[str, Columns]) -> Iterator[str]:
    """An event as lines for people, a row each: position, sign, view, cells."""
    answer = line(event, columns)
    for view, sides in (answer or {}).get("views", {}).items():
        for sign, side in (("-", "minus"), ("+", "plus")):
            rows = sides[side] if isinstance(sides[side], list) else [[f"{sides[side]} rows"]] if sides[side] else []
            for row in rows:
                yield "\t".join([str(getattr(event, "tx", "")), sign, view, *map(_cell, row)])
    if answer and "views" not in answer:
        yield "\t".join(f"{key}={value}" for key, value in answer.items())


def _cell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def told(client: Client, lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Sends one transaction a line; gives the number of each and how many rows views gained and lost, or the error that left everything as it was."""
    number = 0
    for given in lines:
        if not given.strip():
            continue
        number += 1
        try:
            answer = client.tell(given if isinstance(given, bytes) else given.encode())
        except DataError as error:
            yield {"line": number, "error": error.json()}
        else:
            views = {view: {"plus": plus, "minus": minus} for view, (plus, minus) in answer.views.items()}
            yield {"tx": answer.tx, "views": views, **conditions_json(answer)}


def conditions_json(answer: Receipt | Preview) -> dict[str, Any]:
    """What alerts say, and what triggers did, if anything."""
    alerts, triggered = list(answer.alerts), dict(answer.triggered)
    return ({"alerts": alerts} if alerts else {}) | ({"triggered": triggered} if triggered else {})
