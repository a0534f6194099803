"""`watch`: a filter from transactions to changes, one JSON line each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from vigilog.core.delta import Delta, modified
from vigilog.core.errors import Refused, VigilogError
from vigilog.core.proofs import Proof
from vigilog.core.reports import CEASED, Report
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, sorted_rows
from vigilog.engine.database import Database
from vigilog.engine.nested import Nested
from vigilog.engine.outcome import Outcome
from vigilog.engine.reasons import alert_proof, conditions_reasons, refusal_cause
from vigilog.engine.ticking import refreshed, ticking
from vigilog.engine.transaction import Transaction, parse_transaction
from vigilog.language.conditions import alerts
from vigilog.language.frames.translate import shapes
from vigilog.language.program import Program


def watch(
    database: Database,
    lines: Iterable[str | bytes],
    *,
    snapshot: bool = False,
    stats: bool = False,
    why: bool = False,
    nested: bool = False,
) -> Iterator[dict[str, Any]]:
    """One answer for each line that is not blank: the views' changes, or the error that left everything as it was. Domains with `refresh=10s` are asked in between; what that changes is an answer of its own, with `refresh`, and the number of the last line."""
    frames = NestedFrames(database) if nested else None
    if snapshot:
        whole = {name: Delta(plus=frozenset(database.view(name))) for name in database.program.outputs}
        first: dict[str, Any] = {"tx": 0, "views": {name: delta_json(database.program, name, delta) for name, delta in whole.items()}}
        yield {**first, "nested": dict(frames.answers)} if frames else first
    number = 0
    for line in ticking(database, lines):
        if isinstance(line, list):  # no line: sources that are due
            for name in line:
                outcome, stale = refreshed(database, name)
                told = outcome_json(database.program, outcome) if outcome else {"views": {}}
                if told["views"] or stale or told.keys() > {"views"}:
                    yield {"tx": number, "refresh": [name], **told, **stale, **(_nested(frames, told["views"]))}
            continue
        if not line.strip():
            continue
        number += 1
        due = database.due()  # what has fallen due since the last line is told with this one, whatever becomes of it
        late = alerts_json(database.program, due.alerts) if due else []
        try:
            answer = {"tx": number, **_applied(database, parse_transaction(line), why=why)}
            if late:
                answer["alerts"] = late + answer.get("alerts", [])
        except VigilogError as error:
            reason = {"cause": refusal_cause(database, error)} if why and isinstance(error, Refused) else {}
            yield {"tx": number, "error": {**error.json(), **reason}, **({"alerts": late} if late else {})}
            continue
        answer |= _nested(frames, answer["views"])
        if stats:
            strategy = {name: chosen.name for name, chosen in database.strategies.items() if name in database.program.relations}
            if database.mediation is not None:
                strategy |= dict.fromkeys(database.mediation.parts.updates, "supported")
            answer["stats"] = {**database.stats.as_dict(), **_beside(database), "ms": round(database.stats.ms, 3), "strategy": strategy}
        yield answer


class NestedFrames:
    """The nested answers of view frames as they were last told."""

    def __init__(self, database: Database) -> None:
        self.database, self.shapes = database, shapes(database.program)
        self.answers = {name: database.nested(name) for name in self.shapes}

    def changed(self, views: Collection[str]) -> dict[str, list[Nested]]:
        """Those that a change of views has changed, through a view inside them, too."""
        changes = {}
        for name, shape in self.shapes.items():
            if not set(views).isdisjoint(shape.relations) and (now := self.database.nested(name)) != self.answers[name]:
                changes[name] = self.answers[name] = now
        return changes


def _nested(frames: NestedFrames | None, views: Collection[str]) -> dict[str, Any]:
    return {"nested": frames.changed(views)} if frames else {}


def _beside(database: Database) -> dict[str, Any]:
    """What constrained relations and sources have cost."""
    costs: dict[str, Any] = {}
    if (mediation := database.mediation) is not None:
        work = mediation.work
        costs["deletion"] = {"algorithm": mediation.algorithm.name, "touched": work.touched, "rederived": work.rederived}
        if len(kinds := {name: mediation.of(name).name for name in mediation.parts.updates}) > 1 and len({*kinds.values()}) > 1:
            costs["deletion"]["of"] = kinds
        costs["solved"] = mediation.solved
    if database.sources is not None:
        costs |= {"calls": database.sources.made, "stale": sorted(database.sources.stale)}
    return costs


def _applied(database: Database, transaction: Transaction, *, why: bool) -> dict[str, Any]:
    """What a transaction changed; with reasons, a proof for each row that came, and a broken one for each that went."""
    broken: dict[str, list[Proof | None]] = {}
    ended: list[Proof | None] = []
    if why:
        would = database.take(transaction, keep=False)
        losses = {name: sorted_rows(delta.minus) for name, delta in would.deltas.items()}
        broken = {name: database.proofs(name, rows) for name, rows in losses.items()}
        ended = [alert_proof(database, report) if report.state == CEASED else None for report in would.alerts]
    outcome = database.take(transaction, why=why)
    changes = outcome.deltas
    views: dict[str, Any] = {name: delta_json(database.program, name, delta) for name, delta in changes.items()}
    for name, delta in changes.items() if why else ():
        plus = [proof.json() for proof in database.proofs(name, sorted_rows(delta.plus)) if proof]
        minus = [database.broken(proof).json() for proof in broken[name] if proof]
        views[name]["why"] = {"plus": plus, "minus": minus}
    answer = {"views": views, **conditions_json(database.program, outcome)}
    return {**answer, **conditions_reasons(database, outcome, ended, answer)} if why else answer


def outcome_json(program: Program, outcome: Outcome) -> dict[str, Any]:
    """What became of a transaction: the views' changes, what alerts say, what triggers did."""
    views = {name: delta_json(program, name, delta) for name, delta in outcome.deltas.items()}
    return {"views": views, **conditions_json(program, outcome)}


def conditions_json(program: Program, outcome: Outcome) -> dict[str, Any]:
    """What conditions made of a transaction, as JSON: what alerts say, and what triggers did."""
    members: dict[str, Any] = {}
    if outcome.alerts:
        members["alerts"] = alerts_json(program, outcome.alerts)
    if outcome.triggered:
        told = {name: delta_json(program, name, outcome.triggered[name]) for name in sorted(outcome.triggered)}
        members["triggered"] = {name: {"insert": change["plus"], "delete": change["minus"]} for name, change in told.items()}
    return members


def alerts_json(program: Program, reports: Sequence[Report]) -> list[dict[str, Any]]:
    relations = {alert.name: alert.relation for alert in alerts(program)}
    return [report.json(program.relations[relations[report.alert]].types) for report in reports]


def delta_json(program: Program, relation: str, delta: Delta) -> dict[str, list[Any]]:
    """A view's change as JSON; rows with a key that replace each other are also told in pairs."""
    declaration = program.relations[relation]
    types = declaration.types

    def rows(some: Sequence[Row]) -> list[Any]:
        if relation in program.constrained:
            return [{"args": list(declaration.args), "where": text} for (text,) in some]
        return [list(row) for row in json_rows(types, some)]

    plus, minus = map(rows, delta.ordered)
    change: dict[str, Any] = {"plus": plus, "minus": minus}
    if relation in program.keys and (pairs := modified(delta, program.keys[relation])):
        change["modified"] = [dict(zip(("old", "new"), rows(pair), strict=True)) for pair in pairs]
    return change
