"""The kinds of sinks: a Parquet change feed, a table of a database kept equal to the view, a webhook."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from vigilog.core.delta import Delta, modified
from vigilog.core.errors import DataError, UsageError
from vigilog.core.extras import SPARK
from vigilog.core.named import objects
from vigilog.core.rows import json_rows
from vigilog.core.secrets import without_secrets
from vigilog.engine.places import from_environment
from vigilog.flows.sinks import Changeset, Delivery, Position, Rows, SinkSource
from vigilog.spark.feeds import Feed, Part


class ParquetFeed:
    """Files beside each other in a folder, one for each delivery, which never change.

    What is to be delivered next is noted first, so that a delivery that was interrupted is made again, the same, under the same name.
    """

    begins_anew = False

    def __init__(self, source: SinkSource, target: str, options: Mapping[str, Any]) -> None:
        check_options("parquet", options, ())
        self.source = source
        self.feed = Feed(target, source.declaration.columns, source.declaration.types)

    def position(self) -> Position | None:
        noted = self.source.noted()
        if noted is None:
            return None
        if noted["tx"] is None:  # the first delivery was begun: made to its end, or to be made anew
            return Position(noted["history"], noted["until"]) if self.feed.has(_whole(noted["history"])) else None
        return Position(noted["history"], noted["tx"])

    def whole(self, at: Position, rows: Rows) -> None:
        self.source.note({"history": at.history, "tx": None, "until": at.tx})
        self.feed.write(_whole(at.history), [Part(at.tx, "insert", rows)])
        self._note(at)

    def changes(self, since: Position, until: Position, changes: Sequence[Changeset]) -> Position:
        begun = (self.source.noted() or {}).get("until")
        if begun is not None and begun > since.tx:  # a delivery was interrupted: the same again
            until = Position(since.history, begun)
        elif changes:
            self.source.note({"history": since.history, "tx": since.tx, "until": until.tx})
        parts = [part for change in changes if change.tx <= until.tx for part in self._parts(change)]
        if parts:
            self.feed.write(f"{since.history}-{since.tx + 1:012d}-{until.tx:012d}", parts)
        return self._note(until)

    def _parts(self, change: Changeset) -> list[Part]:
        if change.large:
            located = self.source.db.store.located
            kinds = {"minus": "delete", "plus": "insert"}
            return [Part(change.tx, kinds[kind], located(part["location"])) for kind, part in sorted(change.entry.items())]
        plus, minus = self.source.delta(change).ordered
        return [Part(change.tx, "delete", minus), Part(change.tx, "insert", plus)]

    def _note(self, position: Position) -> Position:
        self.source.note({"history": position.history, "tx": position.tx})
        return position


def _whole(history: str) -> str:
    return f"{history}-{0:012d}-whole"


class Table:
    """A table of a database, kept equal to the view; the position is in that database, and moves in the same transaction."""

    begins_anew = True

    def __init__(self, source: SinkSource, target: str, options: Mapping[str, Any]) -> None:
        SPARK.need("a table of a database is written by Spark")
        from vigilog.spark.tables import KeptTable

        check_options("jdbc", options, ("dbtable", "user", "password", "driver"))
        spoken = {key: from_environment(str(value)) for key, value in options.items() if key != "dbtable"} | {
            "url": from_environment(target)
        }
        table = str(options.get("dbtable", source.view))
        self.source = source
        self.table = KeptTable(spoken, table, source.name, source.declaration.columns, source.declaration.types)

    def position(self) -> Position | None:
        noted = self.table.position()
        return noted and Position(*noted)

    def whole(self, at: Position, rows: Rows) -> None:
        self.table.replace(rows, (at.history, at.tx))

    def changes(self, since: Position, until: Position, changes: Sequence[Changeset]) -> Position:
        if any(change.large for change in changes):
            with self.source.db.lock:
                now = Position(since.history, self.source.db.tx)
                self.whole(now, self.source.rows())
            return now
        net = Delta()
        for change in changes:
            net = net.then(self.source.delta(change))
        plus, minus = net.ordered
        self.table.change(minus, plus, (since.history, since.tx), until.tx)
        return until


class Webhook:
    """An address that gets each change as JSON by HTTP POST, one after the other; the next is sent when the one before was answered with 2xx.

    A change may come twice if the answer, or this process, was lost; its `Idempotency-Key` is the same then. With `rows="objects"` rows have the names of their columns.
    """

    begins_anew = False

    def __init__(self, source: SinkSource, target: str, options: Mapping[str, Any]) -> None:
        check_options("webhook", options, ("headers", "timeout", "rows"))
        self.form = options.get("rows", "arrays")
        if self.form not in ("arrays", "objects"):
            raise UsageError(f'a webhook takes rows="objects", or rows="arrays", and not {self.form}')
        self.source = source
        self.address = urlsplit(from_environment(target))
        if self.address.scheme not in ("http", "https") or not self.address.hostname:
            raise UsageError("a webhook has an address like https://host/path")
        self.shown = f"{self.address.scheme}://{self.address.netloc.rpartition('@')[2]}{self.address.path}"
        self.headers = {name: from_environment(value) for name, value in dict(options.get("headers", {})).items()}
        self.timeout = float(options.get("timeout", 10))

    def position(self) -> Position | None:
        noted = self.source.noted()
        return noted and Position(noted["history"], noted["tx"])

    def whole(self, at: Position, rows: Rows) -> None:
        if self.source.is_far:
            raise DataError(f"{self.source.view} is too large for a webhook to begin with; begin with since={at.tx}", "large")
        self._post("snapshot", at, {"rows": self._rows(rows)})
        self._note(at)

    def changes(self, since: Position, until: Position, changes: Sequence[Changeset]) -> Position:
        for change in changes:
            at = Position(since.history, change.tx)
            self._post("change", at, self._content(change))
            self._note(at)
        return self._note(until) if not changes else until

    def _content(self, change: Changeset) -> dict[str, Any]:
        if change.large:
            return {"large": {kind: part["rows"] for kind, part in change.entry.items()}}
        delta = self.source.delta(change)
        content: dict[str, Any] = {name: self._rows(rows) for name, rows in zip(("plus", "minus"), delta.ordered, strict=True)}
        if key := self.source.db.program.keys.get(self.source.view):
            content["modified"] = [dict(zip(("old", "new"), self._rows(pair), strict=True)) for pair in modified(delta, key)]
        return content

    def _rows(self, rows: Any) -> list[Any]:
        return self.named(json_rows(self.source.declaration.types, rows))

    def named(self, rows: Sequence[Any]) -> list[Any]:
        """Rows, as JSON has them, in the form that is wanted."""
        return objects(self.source.declaration.columns, rows) if self.form == "objects" else list(rows)

    def _post(self, kind: str, at: Position, content: Mapping[str, Any]) -> None:
        message = {kind: {"db": at.history, "view": self.source.view, "tx": at.tx, **content}}
        self.post(message, at, f"{at.history}-{self.source.view}-{at.tx}")

    def post(self, message: Any, at: Position, key: str) -> None:
        """Sends something by HTTP POST. Raises DataError if it is not taken."""
        body = json.dumps(message, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key, **self.headers}
        path = (self.address.path or "/") + (f"?{self.address.query}" if self.address.query else "")
        connection = self._connection()
        try:
            connection.request("POST", path, body, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as reason:
            raise self._unwritable(at, str(reason) or type(reason).__name__) from None
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise self._unwritable(at, f"it answered {status}")

    def _connection(self) -> http.client.HTTPConnection:
        host = self.address.hostname
        assert host, "checked above"
        if self.address.scheme == "http":
            return http.client.HTTPConnection(host, self.address.port, timeout=self.timeout)
        return http.client.HTTPSConnection(host, self.address.port, timeout=self.timeout, context=ssl.create_default_context())

    def _unwritable(self, at: Position, why: str) -> DataError:
        told = without_secrets(why, self.headers.values())
        return DataError(f"{self.shown}: transaction {at.tx} of {self.source.view} was not taken: {told}", "unwritable")

    def _note(self, position: Position) -> Position:
        self.source.note({"history": position.history, "tx": position.tx})
        return position


def check_options(kind: str, options: Mapping[str, Any], allowed: Sequence[str]) -> None:
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise UsageError(f"a {kind} sink has no option {unknown[0]}" + (f"; options are {', '.join(allowed)}" if allowed else ""))


KINDS: dict[str, Callable[[SinkSource, str, Mapping[str, Any]], Delivery]] = {"parquet": ParquetFeed, "jdbc": Table, "webhook": Webhook}
