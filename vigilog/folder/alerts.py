"""What a data folder knows of alerts beside their reports: what waits to be reported, and what somebody has seen."""

from __future__ import annotations

import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vigilog.conditions.timing import Key, Waiting, next_due
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.reports import CEASED, Report
from vigilog.core.rows import rows_from_json
from vigilog.core.values import Row, Type
from vigilog.language.conditions import Alert
from vigilog.language.program import Program

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable

WAITING, SEEN = "waiting", "seen"
LOOK = 0.2  # seconds between two looks at the clock, at most, while something waits


class AlertNotes:
    """Notes in the file of a database, written in the transactions that they belong to."""

    def __init__(self, connection: sqlite3.Connection, program: Program, alerts: Sequence[Alert]) -> None:
        self.connection, self.program, self.alerts = connection, program, {alert.name: alert for alert in alerts}

    def write(self, changed: Mapping[Key, Waiting | None], reports: Sequence[Report]) -> None:
        """What waits from now on, or no more; what has ceased need not be looked at any more."""
        for (name, key), held in changed.items():
            if held is None:
                self._forget(WAITING, name, self._key(name, key))
            else:
                self._note(WAITING, name, self._key(name, key), held.since, held.report.json(self._types(name)))
        for report in reports:
            if report.state == CEASED:
                self._forget(SEEN, report.alert, self._key(report.alert, self.key_of(report.alert, report.row)))

    def waiting(self) -> dict[Key, Waiting]:
        """What waits, as it was written; what belongs to another program is left out."""
        waiting: dict[Key, Waiting] = {}
        self.check()
        for name, since, text in self.connection.execute("SELECT alert, at, said FROM vigilog_alerts WHERE kind = ?", (WAITING,)):
            if name in self.alerts:
                report = self._report(name, json.loads(text))
                waiting[name, self.key_of(name, report.row)] = Waiting(report, since)
        return waiting

    def redefine(self, program: Program, alerts: Iterable[Alert]) -> None:
        """Another program comes: what is noted of alerts that it has not, or on other columns or by another key, is forgotten."""
        defined = {(alert.name, alert.relation, alert.key, program.relations[alert.relation].types) for alert in alerts}
        for alert in self.alerts.values():
            if (alert.name, alert.relation, alert.key, self._types(alert.name)) not in defined:
                self.connection.execute("DELETE FROM vigilog_alerts WHERE alert = ?", (alert.name,))

    def check(self) -> None:
        """Raises DataError if what is noted is not what was written."""
        for *values, checksum in self.connection.execute("SELECT kind, alert, key, at, said, sum FROM vigilog_alerts"):
            if _sum(*values) != checksum:
                raise DataError(f"what is noted of the alert {values[1]} is damaged; restore a backup (vigilog restore)", "damaged")

    def ack(self, name: str, row: Sequence[Any], at: float, reported: Callable[[Alert, Row], bool]) -> Row:
        """Notes that somebody has seen a key, given by a row or by its own values. Raises DataError if there is no such alert or row, or if it is not `reported` that it holds."""
        if name not in self.alerts:
            hint = did_you_mean(name, self.alerts) or f"there are {', '.join(self.alerts) or 'none'}"
            raise DataError(f"there is no alert {name}; {hint}", "unknown-relation")
        alert, types = self.alerts[name], self._types(name)
        columns = range(len(types)) if len(row) == len(types) else alert.key
        if len(row) != len(columns):
            raise DataError(f"a row of {alert.relation} has {len(types)} cells, and the key of {name} has {len(alert.key)}", "columns")
        try:
            (values,) = rows_from_json([types[column] for column in columns], [row]) if columns else [()]
        except ValueError as reason:
            raise DataError(f"{alert.relation}: {reason}", "value") from None
        key = self.key_of(name, values) if len(row) == len(types) else values
        if not reported(alert, key):
            raise DataError(f"{name} does not hold for {self._key(name, key)}, so there is nothing to be seen", "absent")
        self._note(SEEN, name, self._key(name, key), at, {})
        return key

    def stamped(self, reports: Sequence[Report], at: float) -> list[Report]:
        """Reports with the time, and whether somebody has seen their keys."""
        rows = self.connection.execute("SELECT alert, key FROM vigilog_alerts WHERE kind = ?", (SEEN,)).fetchall()
        seen = {(name, key) for name, key in rows}
        keys = [(one.alert, self._key(one.alert, self.key_of(one.alert, one.row))) if seen else None for one in reports]
        return [replace(one, at=at, seen=key in seen) for one, key in zip(reports, keys, strict=True)]

    def key_of(self, name: str, row: Row) -> Row:
        return tuple([row[place] for place in self.alerts[name].key])

    def _types(self, name: str) -> tuple[Type, ...]:
        return self.program.relations[self.alerts[name].relation].types

    def _key(self, name: str, key: Row) -> str:
        types = self._types(name)
        cells = [types[place].to_json(cell) for place, cell in zip(self.alerts[name].key, key, strict=True)] if name in self.alerts else []
        return json.dumps(cells, ensure_ascii=False)

    def _note(self, kind: str, name: str, key: str, at: float, content: Mapping[str, Any]) -> None:
        values = (kind, name, key, at, json.dumps(content, ensure_ascii=False))
        self.connection.execute("INSERT OR REPLACE INTO vigilog_alerts VALUES (?, ?, ?, ?, ?, ?)", (*values, _sum(*values)))

    def _forget(self, kind: str, name: str, key: str) -> None:
        self.connection.execute("DELETE FROM vigilog_alerts WHERE kind = ? AND alert = ? AND key = ?", (kind, name, key))

    def _report(self, name: str, fields: Mapping[str, Any]) -> Report:
        types = self._types(name)

        def row(cells: Sequence[Any]) -> Row:
            return rows_from_json(types, [cells])[0] if types else ()

        rows = {part: row(fields[part]) for part in ("row", "old") if part in fields}
        return Report(**{**fields, **rows})


def _sum(*values: Any) -> int:
    return zlib.crc32(repr(values).encode())


class Clock:
    """Reports what falls due, in the background, while something waits."""

    def __init__(self, db: Durable) -> None:
        self.db = db
        self.stopping = threading.Event()
        self.thread: threading.Thread | None = None

    def start(self) -> None:
        """Goes on, if something waits and nobody looks at the clock yet."""
        if self.db.waiting and not self.stopping.is_set() and (self.thread is None or not self.thread.is_alive()):
            self.thread = threading.Thread(target=self._run, name="alerts that wait", daemon=True)
            self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread is not None and self.thread is not threading.current_thread():
            self.thread.join()

    def _run(self) -> None:
        when = 0.0
        while not self.stopping.is_set():
            try:
                with self.db.lock:
                    if not self.db.waiting:
                        self.thread = None
                        return
                    when = next_due(self.db.conditions.named, self.db.waiting) or 0.0
                    if when <= self.db.clock() and not self.db.file.closed:
                        self.db.due()
            except Exception as reason:  # the disk is full, say: it is tried again
                self.db.troubles.append(f"an alert that is due could not be reported: {reason}")
                self.stopping.wait(5 * LOOK)
            self.stopping.wait(min(LOOK, max(0.01, when - self.db.clock())))
