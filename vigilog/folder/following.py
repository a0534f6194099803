"""Following views of a database that this process has opened: what there is, and then what its streams bring."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from queue import Empty, SimpleQueue
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, UsageError, did_you_mean
from vigilog.core.values import Row
from vigilog.engine.database import Database
from vigilog.engine.outcome import Outcome
from vigilog.engine.places import streams
from vigilog.engine.watch import delta_json
from vigilog.folder.durable import Durable
from vigilog.language.program import Program

LOOK = 0.5  # seconds between two looks whether streams are still there


def subscribed(
    db: Database, views: Sequence[str], bind: Mapping[str, str], since: int | None = None, *, once: bool = False
) -> Iterator[dict[str, Any]]:
    """The views, or what came after a transaction; then, until they end, what the streams of a data folder bring. One answer a transaction, as `watch` gives them."""
    kept = Selection(db.program, views, bind)
    news: SimpleQueue[Outcome] = SimpleQueue()
    db.step.listeners.append(news.put)
    with db.lock:
        if since is None:
            first = [(db.tx, {view: Delta(frozenset(db.view(view))) for view in views})]
        else:
            first = list(_past(db, since))
    for tx, deltas in first:
        if (answer := kept.answer(tx, deltas, whole=since is None)) is not None:
            yield answer
    if once or not isinstance(db, Durable):
        return
    followed = [db.stream(relation) for relation in streams(db.program)]
    while any(stream.active for stream in followed) or not news.empty():
        try:
            outcome = news.get(timeout=LOOK)
        except Empty:
            continue
        if (answer := kept.answer(outcome.tx, outcome.deltas)) is not None:
            yield answer
    for stream in followed:
        if stream.error:
            raise stream.error


def _past(db: Database, since: int) -> Iterable[tuple[int, dict[str, Delta]]]:
    if not isinstance(db, Durable):
        raise UsageError("--from needs a data folder or a server: a program alone has no past")
    for tx, group in groupby(db.changes(since), key=lambda change: change[0]):
        yield tx, {view: delta for _, view, delta in group}


class Selection:
    """What of all changes is wanted: some views, and of them the rows with some values."""

    def __init__(self, program: Program, views: Sequence[str], bind: Mapping[str, str]) -> None:
        self.program, self.views = program, views
        for view in views:
            if view not in program.outputs:
                hint = did_you_mean(view, program.outputs) or "an .output relation can be followed"
                raise DataError(f"there is no view {view} ({hint})", "unknown-relation")
        self.bound = {view: self._bound(view, bind) for view in views}
        absent = [column for column in bind if not any(column in program.relations[view].columns for view in views)]
        if absent:
            raise UsageError(f"--bind {absent[0]}: there is no such column")

    def _bound(self, view: str, bind: Mapping[str, str]) -> dict[int, Any]:
        declaration = self.program.relations[view]
        try:
            return {
                number: declaration.types[number].parse(bind[column]) for number, column in enumerate(declaration.columns) if column in bind
            }
        except ValueError as reason:
            raise UsageError(f"--bind: {reason}") from None

    def answer(self, tx: int, deltas: Mapping[str, Delta], *, whole: bool = False) -> dict[str, Any] | None:
        """What a transaction changed of it, if anything; a first answer also tells what is empty."""
        wanted = {view: self._own(view, deltas[view]) for view in self.views if view in deltas}
        views = {view: delta_json(self.program, view, delta) for view, delta in wanted.items() if delta or whole}
        return {"tx": tx, "views": views} if views else None

    def _own(self, view: str, delta: Delta) -> Delta:
        bound = self.bound[view]

        def own(rows: frozenset[Row]) -> frozenset[Row]:
            return frozenset(row for row in rows if all(row[column] == value for column, value in bound.items())) if bound else rows

        return Delta(own(delta.plus), own(delta.minus))
