"""Sinks for alerts: what they report, delivered in order, once each, to a webhook, to Alertmanager, into a file, or to a callable.

A sink begins with what is reported after it was made, and goes on where it was left. `every` and what somebody has acknowledged hold a key back here, and only here: the outbox has every report. That a key has ceased
is delivered if what it ends was.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from vigilog.core.errors import DataError, UsageError, did_you_mean
from vigilog.core.reports import ALERT, CEASED
from vigilog.flows.deliveries import Webhook, check_options
from vigilog.flows.home import Home
from vigilog.flows.sinks import MOST_CHANGES, Changeset, Delivery, Position, Rows, Sink, SinkSource
from vigilog.language.conditions import Alert
from vigilog.store.file import damage

log = logging.getLogger("vigilog.alerts")
LASTS = timedelta(days=366)  # what is said to hold does so until it is said to have ended

JsonReport = Mapping[str, Any]  # a report, as JSON has it


class AlertSource(SinkSource):
    """What a sink needs of the database: the reports of one alert."""

    def __init__(self, db: Home, alert: Alert, name: str) -> None:
        self.db, self.view, self.name, self.alert = db, ALERT + alert.name, name, alert
        self.declaration = db.program.relations[alert.relation]

    def rows(self) -> Rows:
        """Nothing: what holds already counts as reported."""
        return []

    @property
    def is_far(self) -> bool:
        return False

    def pending(self, since: Position) -> tuple[list[Changeset], Position]:
        db = self.db
        with db.lock, damage(db.file.path):
            if db.program.relations.get(self.alert.relation) != self.declaration or self.alert.name not in db.conditions.named:
                raise DataError(f"the alert {self.alert.name} was declared anew or dropped; the sink {self.name} ends here", "columns")
            until = db.tx
            own = (Changeset(tx, said) for tx, _, said in db.book.log.changes(since.tx, until, [self.view]))
            found = list(islice(own, MOST_CHANGES))
        last = found[-1].tx if len(found) == MOST_CHANGES else until
        return found, Position(since.history, last)

    def reports(self, change: Changeset) -> list[JsonReport]:
        return [json.loads(entry[-1]) for entry in change.entry["plus"]]


class Silence:
    """Which reports are held back: when each key was told last, and whether it has not been told to have ended."""

    def __init__(self, source: AlertSource, told: Mapping[str, Sequence[Any]] | None = None) -> None:
        self.source, self.told = source, {key: (float(at), bool(open_)) for key, (at, open_) in (told or {}).items()}

    def lets(self, said: JsonReport) -> bool:
        """Whether a report is to be delivered now; from then on it was."""
        alert, now = self.source.alert, said["at"]
        key = json.dumps([said["row"][place] for place in alert.key], ensure_ascii=False)
        before = self.told.get(key)
        if said["state"] == CEASED:
            if before is not None:
                self.told[key] = before[0], False
            return before is None or before[1]
        if said.get("seen") or (before is not None and now - before[0] < alert.every):
            return False
        self.told[key] = now, True
        return True

    def noted(self) -> dict[str, Any]:
        """What must be known of it after a restart: keys of which nothing can be held back any more are forgotten."""
        now, every = self.source.db.clock(), self.source.alert.every
        self.told = {key: told for key, told in self.told.items() if told[1] or now - told[0] < every}
        return {key: list(told) for key, told in self.told.items()}


class AlertDelivery:
    """Delivers reports one after the other; after each, the position and what is held back are noted together."""

    begins_anew = True

    def __init__(self, source: AlertSource, deliver: Callable[[Position, int, JsonReport], None]) -> None:
        self.source, self.deliver = source, deliver
        self.silence = Silence(source, (source.noted() or {}).get("told"))

    def position(self) -> Position | None:
        noted = self.source.noted()
        return noted and Position(noted["history"], noted["tx"])

    def whole(self, at: Position, rows: Rows) -> None:
        self.note(at)

    def changes(self, since: Position, until: Position, changes: Sequence[Changeset]) -> Position:
        for change in changes:
            at, done = Position(since.history, change.tx), self._done(change.tx)
            for number, said in enumerate(self.source.reports(change)):
                if number < done:
                    continue
                told = dict(self.silence.told)
                try:
                    if self.silence.lets(said):
                        self.deliver(at, number, said)
                except BaseException:
                    self.silence.told = told
                    raise
                self.note(Position(since.history, change.tx - 1), number + 1)
            self.note(at)
        return self.note(until) if not changes else until

    def _done(self, tx: int) -> int:
        """How many reports of a transaction were delivered already."""
        noted = self.source.noted() or {}
        return int(noted.get("done", 0)) if noted.get("tx") == tx - 1 else 0

    def note(self, position: Position, done: int = 0) -> Position:
        told = self.silence.noted()
        more = ({"done": done} if done else {}) | ({"told": told} if told else {})
        self.source.note({"history": position.history, "tx": position.tx, **more})
        return position


def webhook(source: AlertSource, target: str, options: Mapping[str, Any]) -> Delivery:
    """Each report as JSON by HTTP POST; its `Idempotency-Key` is the same if it comes twice."""
    address = Webhook(source, target, options)

    def deliver(at: Position, number: int, said: JsonReport) -> None:
        address.post({"alert": {"db": at.history, "tx": at.tx, **said}}, at, f"{at.history}-{source.view}-{at.tx}-{number}")

    return AlertDelivery(source, deliver)


def alertmanager(source: AlertSource, target: str, options: Mapping[str, Any]) -> Delivery:
    """Each report to Alertmanager, which groups, inhibits, silences and routes: labels from the key's columns, annotations from the message."""
    address = Webhook(source, target.rstrip("/") + "/api/v2/alerts", options)
    alert, columns = source.alert, source.declaration.columns

    def deliver(at: Position, number: int, said: JsonReport) -> None:
        now = datetime.fromtimestamp(said["at"], UTC)
        labels = {"alertname": alert.name} | ({"severity": said["severity"]} if "severity" in said else {})
        labels |= {columns[place]: _text(said["row"][place]) for place in alert.key}
        ended = said["state"] == CEASED
        post = {
            "labels": labels,
            "annotations": {"summary": said["message"]} if "message" in said else {},
            **({} if ended else {"startsAt": now.isoformat()}),
            "endsAt": (now if ended else now + LASTS).isoformat(),
        }
        address.post([post], at, f"{at.history}-{source.view}-{at.tx}-{number}")

    return AlertDelivery(source, deliver)


def file(source: AlertSource, target: str, options: Mapping[str, Any]) -> Delivery:
    """Each report as a line of JSON at the end of a file."""
    check_options("file", options, ())
    path = Path(target)

    def deliver(at: Position, number: int, said: JsonReport) -> None:
        line = json.dumps({"tx": at.tx, **said}, ensure_ascii=False) + "\n"
        try:
            written = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(written, line.encode())
            finally:
                os.close(written)
        except OSError as reason:
            raise DataError(
                f"{path}: transaction {at.tx} of {source.alert.name} was not written: {reason.strerror}", "unwritable"
            ) from None

    return AlertDelivery(source, deliver)


class CallableDelivery(AlertDelivery):
    """Calls somebody in this process for each report after now. One that raises is told in the log, and tried again."""

    def __init__(self, source: AlertSource, call: Callable[[dict[str, Any]], object]) -> None:
        self.at: Position | None = None
        self.finished = (-1, 0)

        def deliver(at: Position, number: int, said: JsonReport) -> None:
            try:
                call({"tx": at.tx, **said})
            except Exception as reason:
                log.warning(
                    "%s of the alert %s raised %s: %s", getattr(call, "__name__", call), source.alert.name, type(reason).__name__, reason
                )
                raise DataError(f"a callable for {source.alert.name} raised {type(reason).__name__}: {reason}", "unwritable") from None

        self.source, self.deliver, self.silence = source, deliver, Silence(source)

    def position(self) -> Position | None:
        return self.at

    def _done(self, tx: int) -> int:
        return self.finished[1] if self.finished[0] == tx - 1 else 0

    def note(self, position: Position, done: int = 0) -> Position:
        self.at, self.finished = position, (position.tx, done)
        return position


KINDS: dict[str, Callable[[AlertSource, str, Mapping[str, Any]], Delivery]] = {
    "webhook": webhook,
    "alertmanager": alertmanager,
    "file": file,
}


def made(db: Home, alert: str, kind: str, target: str, name: str, since: int | None, options: Mapping[str, Any]) -> Sink:
    """A sink for the reports of an alert."""
    if kind not in KINDS:
        raise UsageError(f"there is no sink {kind} for alerts; there are {', '.join(KINDS)}")
    source = AlertSource(db, known(db, alert), name)
    return Sink(source, kind, KINDS[kind](source, target, options), since)


def called(db: Home, alert: str, call: Callable[[dict[str, Any]], object], name: str) -> Sink:
    """Calls somebody for each report of an alert from now on."""
    source = AlertSource(db, known(db, alert), name)
    delivery = CallableDelivery(source, call)
    delivery.at = Position(db.file.history, db.tx)
    return Sink(source, "callable", delivery, None)


def known(db: Home, alert: str) -> Alert:
    name = alert.removeprefix(ALERT)
    if name not in db.conditions.named:
        hint = did_you_mean(name, db.conditions.named)
        raise DataError(f"there is no alert {name}" + (f" ({hint})" if hint else ""), "unknown-relation")
    return db.conditions.named[name]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
