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
from itertools import groupby, islice
from operator import itemgetter
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
ALL = "*"  # in the place of an alert's name
LAST_BYTES = 1 << 16  # of a file, in which the last line that was written is
LASTS = timedelta(days=366)  # what is said to hold does so until it is said to have ended

JsonReport = Mapping[str, Any]  # a report, as JSON has it


class AlertSource(SinkSource):
    """What a sink needs of the database: the reports of one alert, or of all that there are."""

    def __init__(self, db: Home, alert: Alert | None, name: str) -> None:
        self.db, self.view, self.name, self.alert = db, ALERT + (alert.name if alert else ALL), name, alert
        self.declared = alert and db.program.relations[alert.relation]

    def rows(self) -> Rows:
        """Nothing: what holds already counts as reported."""
        return []

    @property
    def is_far(self) -> bool:
        return False

    def pending(self, since: Position) -> tuple[list[Changeset], Position]:
        db, alert = self.db, self.alert
        with db.lock, damage(db.file.path):
            if alert and (db.program.relations.get(alert.relation) != self.declared or alert.name not in db.conditions.named):
                raise DataError(f"the alert {alert.name} was declared anew or dropped; the sink {self.name} ends here", "columns")
            until, views = db.tx, [self.view] if alert else {ALERT + name for name in db.conditions.named}
            by_tx = groupby(db.book.log.changes(since.tx, until, views), key=itemgetter(0))
            own = (Changeset(tx, {"plus": [entry for _, _, change in some for entry in change["plus"]]}) for tx, some in by_tx)
            changes = list(islice(own, MOST_CHANGES))
        last = changes[-1].tx if len(changes) == MOST_CHANGES else until
        return changes, Position(since.history, last)

    def reports(self, change: Changeset) -> list[JsonReport]:
        return [json.loads(entry[-1]) for entry in change.entry["plus"]]

    def known(self, name: str) -> Alert | None:
        """The alert of a report, unless it was dropped."""
        return self.alert or self.db.conditions.named.get(name)

    def labelled(self, report: JsonReport) -> dict[str, Any]:
        """The cells of a report's row that its alert goes by, with their columns."""
        alert, row = self.known(report["alert"]), report["row"]
        columns = self.db.program.relations[alert.relation].columns if alert else ()
        return {columns[place]: row[place] for place in alert.key if place < len(row)} if alert else {}


class Silence:
    """Which reports are held back: when each key was told last, and whether it has not been told to have ended."""

    def __init__(self, source: AlertSource, told: Mapping[str, Sequence[Any]] | None = None) -> None:
        self.source, self.told = source, {key: (float(at), bool(open_)) for key, (at, open_) in (told or {}).items()}

    def lets(self, report: JsonReport) -> bool:
        """Whether a report is to be delivered now; from then on it was."""
        now = report["at"]
        key = json.dumps([report["alert"], *self.source.labelled(report).values()], ensure_ascii=False)
        before = self.told.get(key)
        if report["state"] == CEASED:
            if before is not None:
                self.told[key] = before[0], False
            return before is None or before[1]
        if report.get("seen") or (before is not None and now - before[0] < self._every(report["alert"])):
            return False
        self.told[key] = now, True
        return True

    def noted(self) -> dict[str, Any]:
        """What must be known of it after a restart: keys of which nothing can be held back any more are forgotten."""
        now = self.source.db.clock()
        self.told = {key: told for key, told in self.told.items() if told[1] or now - told[0] < self._every(json.loads(key)[0])}
        return {key: list(told) for key, told in self.told.items()}

    def _every(self, name: str) -> int:
        alert = self.source.known(name)
        return alert.every if alert else 0


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
            for number, report in enumerate(self.source.reports(change)):
                if number < done:
                    continue
                told = dict(self.silence.told)
                try:
                    if self.silence.lets(report):
                        self.deliver(at, number, report)
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

    def deliver(at: Position, number: int, report: JsonReport) -> None:
        rows = {name: address.named([report[name]])[0] for name in ("row", "old") if name in report}
        address.post({"alert": {"db": at.history, "tx": at.tx, **report, **rows}}, at, f"{at.history}-{source.view}-{at.tx}-{number}")

    return AlertDelivery(source, deliver)


def alertmanager(source: AlertSource, target: str, options: Mapping[str, Any]) -> Delivery:
    """Each report to Alertmanager, which groups, inhibits, silences and routes: labels from the key's columns, annotations from the message."""
    address = Webhook(source, target.rstrip("/") + "/api/v2/alerts", options)

    def deliver(at: Position, number: int, report: JsonReport) -> None:
        now = datetime.fromtimestamp(report["at"], UTC)
        labels = {column: _text(cell) for column, cell in source.labelled(report).items()}
        labels |= ({"severity": report["severity"]} if "severity" in report else {}) | {"alertname": report["alert"]}
        ended = report["state"] == CEASED
        post = {
            "labels": labels,
            "annotations": {"summary": report["message"]} if "message" in report else {},
            **({} if ended else {"startsAt": now.isoformat()}),
            "endsAt": (now if ended else now + LASTS).isoformat(),
        }
        address.post([post], at, f"{at.history}-{source.view}-{at.tx}-{number}")

    return AlertDelivery(source, deliver)


def file(source: AlertSource, target: str, options: Mapping[str, Any]) -> Delivery:
    """Each report as a line of JSON at the end of a file. The first line after a restart is not written again, if it is there."""
    check_options("file", options, ())
    path, unsure = Path(target), [True]

    def deliver(at: Position, number: int, report: JsonReport) -> None:
        line = json.dumps({"tx": at.tx, **report}, ensure_ascii=False).encode() + b"\n"
        try:
            end = _end(path) if unsure else b""
            if end and not end.endswith(b"\n"):
                _append(path, b"\n")
            if line not in end.splitlines(keepends=True):
                _append(path, line)
            unsure.clear()
        except OSError as reason:
            unsure[:] = [True]
            raise DataError(f"{path}: transaction {at.tx} of {report['alert']} was not written: {reason.strerror}", "unwritable") from None

    return AlertDelivery(source, deliver)


def _end(path: Path) -> bytes:
    """The last lines of a file."""
    try:
        with path.open("rb") as reader:
            reader.seek(max(0, reader.seek(0, os.SEEK_END) - LAST_BYTES))
            return reader.read()
    except FileNotFoundError:
        return b""


def _append(path: Path, line: bytes) -> None:
    written = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        while line:
            line = line[os.write(written, line) :]
        os.fsync(written)
    finally:
        os.close(written)


class CallableDelivery(AlertDelivery):
    """Calls somebody in this process for each report after now. One that raises is told in the log, and tried again."""

    def __init__(self, source: AlertSource, call: Callable[[dict[str, Any]], object]) -> None:
        self.at: Position | None = None
        self.finished = (-1, 0)

        def deliver(at: Position, number: int, report: JsonReport) -> None:
            try:
                call({"tx": at.tx, **report})
            except Exception as reason:
                log.warning(
                    "%s of the alert %s raised %s: %s", getattr(call, "__name__", call), report["alert"], type(reason).__name__, reason
                )
                raise DataError(f"a callable for {report['alert']} raised {type(reason).__name__}: {reason}", "unwritable") from None

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
    """A sink for the reports of an alert; a new one begins with what is reported from now on."""
    if kind not in KINDS:
        raise UsageError(f"there is no sink {kind} for alerts; there are {', '.join(KINDS)}")
    source = AlertSource(db, known(db, alert), name)
    return Sink(source, kind, KINDS[kind](source, target, options), db.tx if since is None else since)


def called(db: Home, alert: str, call: Callable[[dict[str, Any]], object], name: str) -> Sink:
    """Calls somebody for each report of an alert from now on."""
    source = AlertSource(db, known(db, alert), name)
    delivery = CallableDelivery(source, call)
    delivery.at = Position(db.file.history, db.tx)
    return Sink(source, "callable", delivery, None)


def known(db: Home, alert: str) -> Alert | None:
    """The alert of a name; None stands for all."""
    name = alert.removeprefix(ALERT)
    if name == ALL:
        return None
    if name not in db.conditions.named:
        hint = did_you_mean(name, db.conditions.named)
        raise DataError(f"there is no alert {name}" + (f" ({hint})" if hint else ""), "unknown-relation")
    return db.conditions.named[name]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
