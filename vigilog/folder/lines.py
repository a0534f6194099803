"""What the commands on a data folder say, as JSON: each transaction with the number it got, and the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, VigilogError
from vigilog.engine.outcome import Outcome
from vigilog.engine.transaction import parse_transaction
from vigilog.engine.watch import conditions_json, delta_json
from vigilog.folder.durable import Durable


def tell(db: Durable, lines: Iterable[str | bytes]) -> Iterator[dict[str, Any]]:
    """Applies one transaction a line; gives what each changed, under the number it has in the log, or the error that left everything as it was."""
    number = 0
    for line in lines:
        if not line.strip():
            continue
        number += 1
        try:
            yield outcome_json(db, db.take(parse_transaction(line)))
        except VigilogError as error:
            yield {"line": number, "error": error.json()}


def outcome_json(db: Durable, outcome: Outcome) -> dict[str, Any]:
    return {"tx": outcome.tx, "views": views_json(db, outcome.deltas), **conditions_json(db.program, outcome)}


def views_json(db: Durable, deltas: dict[str, Delta]) -> dict[str, Any]:
    return {name: delta_json(db.program, name, delta) for name, delta in deltas.items() if name in db.outputs}


def definition_json(db: Durable, deltas: dict[str, Delta]) -> dict[str, Any]:
    """What the last transaction, a change of definitions, did to views; of what stayed on Spark, where it is, as the log has it."""
    far = {view: dict(change) for _, view, change in db.book.log.changes(db.tx - 1, db.tx) if view in db.outputs and view not in deltas}
    return {"tx": db.tx, "views": views_json(db, deltas) | far}


def logged(db: Durable, since: int | None = None) -> Iterator[dict[str, Any]]:
    """The transactions after one, by default all that are retained: what each changed in base relations and in views, as it is written down."""
    since = db.book.log.first if since is None else since
    if since < db.book.log.first:
        raise DataError(f"transactions after {since} are not all retained: the oldest are after {db.book.log.first}", "gap")
    if since > db.tx:
        raise DataError(f"there is no transaction {since} yet: the last is {db.tx}", "future")
    for entry in db.book.log.entries(since):
        views = {view: change for _, view, change in db.book.log.changes(entry.tx - 1, entry.tx)}
        alerts = db.reports(entry.tx - 1, entry.tx)
        at = datetime.fromtimestamp(entry.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        yield {"tx": entry.tx, "at": at, "kind": entry.kind, "base": dict(entry.changes), "views": views} | (
            {"alerts": [report for _, report in alerts]} if alerts else {}
        )
