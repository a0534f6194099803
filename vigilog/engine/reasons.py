"""Why alerts say what they say, and triggers did what they did: the base change that caused it, and a proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import Refused
from vigilog.core.proofs import Proof
from vigilog.core.reports import CEASED, Report
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, sorted_rows
from vigilog.engine.database import Database
from vigilog.engine.outcome import Outcome
from vigilog.rewriting.maintenance.strategies.choose import depends_on


def alert_proof(database: Database, report: Report) -> Proof | None:
    """A proof of the row that an alert reports, as of now: a new one, if it reports that."""
    relation = database.conditions.named[report.alert].relation
    view, binding = report.proof or (relation, report.row)
    proof = database.proofs(view, [binding])[0]
    if view == relation or proof is None:
        return proof
    (of_row,) = database.proofs(relation, [report.row])
    return replace(proof, literal=of_row.literal, relation=relation, row=report.row) if of_row else proof


def conditions_reasons(database: Database, outcome: Outcome, ended: Sequence[Proof | None], told: Mapping[str, Any]) -> dict[str, Any]:
    """What conditions made of a transaction that was applied, with reasons; `ended` has, for what has ceased, a proof of before."""
    reasons: dict[str, Any] = {}
    if outcome.alerts:
        reasons["alerts"] = []
        for report, members, before in zip(outcome.alerts, told["alerts"], ended, strict=True):
            proof = (before and database.broken(before)) if report.state == CEASED else alert_proof(database, report)
            relation = database.conditions.named[report.alert].relation
            reason = _cause(database, [relation], [proof] if proof else [], outcome.changes)
            reasons["alerts"].append({**members, "cause": reason, "why": proof.json() if proof else None})
    if outcome.triggered:
        reasons["triggered"] = {name: {**change, "why": [*_fired(database, outcome, name)]} for name, change in told["triggered"].items()}
    return reasons


def _fired(database: Database, outcome: Outcome, target: str) -> Iterator[dict[str, Any]]:
    """The triggers that changed a relation, each with rows that it fired for, and why its condition had them then."""
    delta, key = outcome.triggered[target], database.program.keys.get(target, ())

    def keys(rows: Iterable[Row]) -> set[Row]:
        return {tuple([row[place] for place in key]) for row in rows}

    did = {"insert": delta.plus, "upsert": delta.plus, "delete": delta.minus, "delete_key": keys(delta.minus)}
    for fired in outcome.fired:
        operation, relation = fired.trigger.operation, fired.trigger.relation
        for row, proof in fired.proofs.items() if fired.trigger.target == target else ():
            if proof is not None and (row in did[operation] or (operation == "upsert" and keys([row]) & keys(delta.minus))):
                reason = {"cause": _cause(database, [relation], [proof], fired.changes), "why": proof.json()}
                yield {"trigger": fired.trigger.name, "row": _row(database, relation, row), **reason}


def refusal_cause(database: Database, refused: Refused) -> dict[str, Any]:
    """The part of a transaction because of which it was refused."""
    return _cause(database, refused.conditions, refused.proofs, refused.changes)


def _cause(database: Database, relations: Sequence[str], proofs: Sequence[Proof], changes: Mapping[str, Delta]) -> dict[str, Any]:
    """The part of a change that proofs rest on, or that broke them; if that says nothing, as where a row is absent, all that the relations are derived from."""
    leaves = {(step.relation, step.row) for proof in proofs for step in proof.steps() if not step.rule and step.row is not None}
    part: dict[str, Any] = {}
    for operation, side in (("insert", "plus"), ("delete", "minus")):
        for name, delta in changes.items():
            if rows := [row for row in sorted_rows(getattr(delta, side)) if (name, row) in leaves]:
                part.setdefault(operation, {})[name] = [_row(database, name, row) for row in rows]
    if part:
        return part
    below = {name for relation in relations for name in depends_on(database.plain, relation)}
    for operation, side in (("insert", "plus"), ("delete", "minus")):
        for name, delta in changes.items():
            if database.homes[name] in below and (rows := sorted_rows(getattr(delta, side))):
                part.setdefault(operation, {})[name] = [_row(database, name, row) for row in rows]
    return part


def _row(database: Database, relation: str, row: Row) -> list[Any]:
    types = database.program.relations[relation].types
    return list(json_rows(types, [row])[0]) if len(types) == len(row) and row else list(row)
