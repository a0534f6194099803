"""Why alerts say what they say, and triggers did what they did: the base change that caused it, and a proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vigilog.core.proofs import Proof
from vigilog.core.reports import CEASED, Report
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, sorted_rows
from vigilog.engine.database import Database
from vigilog.engine.outcome import Outcome
from vigilog.rewriting.maintenance.strategies.choose import depends_on


def alert_proof(database: Database, report: Report) -> Proof | None:
    """A proof of the row that an alert reports, as of now."""
    return database.proofs(database.conditions.named[report.alert].relation, [report.row])[0]


def conditions_reasons(database: Database, outcome: Outcome, ended: Sequence[Proof | None], told: Mapping[str, Any]) -> dict[str, Any]:
    """What conditions made of a transaction that was applied, with reasons; `ended` has, for what has ceased, a proof of before."""
    found: dict[str, Any] = {}
    if outcome.alerts:
        found["alerts"] = []
        for report, said, before in zip(outcome.alerts, told["alerts"], ended, strict=True):
            proof = (before and database.broken(before)) if report.state == CEASED else alert_proof(database, report)
            relation = database.conditions.named[report.alert].relation
            found["alerts"].append({**said, "cause": cause(database, relation, proof, outcome), "why": proof.json() if proof else None})
    if outcome.triggered:
        found["triggered"] = {name: {**said, "why": [*_fired(database, outcome, name)]} for name, said in told["triggered"].items()}
    return found


def _fired(database: Database, outcome: Outcome, target: str) -> Iterator[dict[str, Any]]:
    """The triggers that changed a relation, each with the rows of its condition that still hold, and why they do."""
    delta, key = outcome.triggered[target], database.program.keys.get(target, ())
    for trigger in database.conditions.triggers:
        if trigger.target == target:
            rows = delta.plus if trigger.operation in ("insert", "upsert") else delta.minus
            asked = sorted_rows({tuple([row[place] for place in key]) for row in rows} if trigger.operation == "delete_key" else rows)
            for row, proof in zip(asked, database.proofs(trigger.relation, asked), strict=True):
                if proof is not None:
                    shown = _row(database, trigger.relation, row)
                    reason = {"cause": cause(database, trigger.relation, proof, outcome), "why": proof.json()}
                    yield {"trigger": trigger.name, "row": shown, **reason}


def cause(database: Database, relation: str, proof: Proof | None, outcome: Outcome) -> dict[str, Any]:
    """The part of a transaction that a proof rests on, or that broke it; if that says nothing, as where a row is absent, all that the relation is derived from."""
    leaves = {(step.relation, step.row) for step in proof.steps() if not step.rule and step.row is not None} if proof else set()
    found: dict[str, Any] = {}
    for operation, side in (("insert", "plus"), ("delete", "minus")):
        for name, delta in outcome.changes.items():
            if rows := [row for row in sorted_rows(getattr(delta, side)) if (name, row) in leaves]:
                found.setdefault(operation, {})[name] = [_row(database, name, row) for row in rows]
    if found:
        return found
    below = depends_on(database.plain, relation)
    for operation, side in (("insert", "plus"), ("delete", "minus")):
        for name, delta in outcome.changes.items():
            if database.homes[name] in below and (rows := sorted_rows(getattr(delta, side))):
                found.setdefault(operation, {})[name] = [_row(database, name, row) for row in rows]
    return found


def _row(database: Database, relation: str, row: Row) -> list[Any]:
    types = database.program.relations[relation].types
    return list(json_rows(types, [row])[0]) if len(types) == len(row) and row else list(row)
