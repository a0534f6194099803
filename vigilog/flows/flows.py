"""The streams that a database reads and the sinks that it serves, while it is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from vigilog.core.reports import ALERT
from vigilog.engine.places import streams as stated
from vigilog.flows import alerts, sinks, streams
from vigilog.flows.home import Home

if TYPE_CHECKING:
    from vigilog.flows.sinks import Sink
    from vigilog.flows.streams import Stream


class Flows:
    """One stream for each relation, one sink for each name; each goes on until it is stopped, fails, or the database is closed."""

    def __init__(self, db: Home) -> None:
        self.db = db
        self.streams: dict[str, Stream] = {}
        self.sinks: dict[str, Sink] = {}
        self.numbers = count(1)

    def stream(self, relation: str, *, once: bool, anew: bool) -> Stream:
        stream = streams.made(self.db, relation, stated(self.db.program).get(relation))
        if relation in self.streams:
            self.streams[relation].stop()
        stream.start(once=once, anew=anew)
        self.streams[relation] = stream
        return stream

    def sink(self, view: str, kind: str, target: str, name: str | None, since: int | None, options: Mapping[str, Any]) -> Sink:
        reporting = view.startswith(ALERT) or (view not in self.db.program.outputs and view in self.db.conditions.named)
        made = alerts.made if reporting else sinks.made
        return self._started(made(self.db, view, kind, target, name or f"{kind} of {view}", since, options))

    def on_alert(self, alert: str, call: Callable[[dict[str, Any]], object]) -> Sink:
        return self._started(alerts.called(self.db, alert, call, f"callable {next(self.numbers)} of {alert}"))

    def _started(self, sink: Sink) -> Sink:
        if sink.name in self.sinks:
            self.sinks[sink.name].stop()
        sink.start()
        self.sinks[sink.name] = sink
        return sink

    def stop(self) -> None:
        for stream in self.streams.values():
            stream.stop()
        for sink in self.sinks.values():
            sink.stop()
