"""`watch`: a filter from transactions to changes, one JSON line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vigilog.core.delta import Delta, modified
from vigilog.core.errors import VigilogError
from vigilog.core.proofs import Proof
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, sorted_rows
from vigilog.engine.database import Database
from vigilog.engine.transaction import Transaction, parse_transaction
from vigilog.language.syntax import Program


def watch(
    database: Database, lines: Iterable[str | bytes], *, snapshot: bool = False, stats: bool = False, why: bool = False
) -> Iterator[dict[str, Any]]:
    """One answer for each line that is not blank: the views' changes, or the error that left everything as it was."""
    if snapshot:
        whole = {name: Delta(plus=frozenset(database.view(name))) for name in database.program.outputs}
        yield {"tx": 0, "views": {name: delta_json(database.program, name, delta) for name, delta in whole.items()}}
    number = 0
    for line in lines:
        if not line.strip():
            continue
        number += 1
        try:
            answer = {"tx": number, **_applied(database, parse_transaction(line), why=why)}
        except VigilogError as error:
            yield {"tx": number, "error": {"code": error.code, "message": error.message}}
            continue
        if stats:
            strategy = {name: chosen.name for name, chosen in database.strategies.items()}
            answer["stats"] = {**database.stats.as_dict(), "ms": round(database.stats.ms, 3), "strategy": strategy}
        yield answer


def _applied(database: Database, transaction: Transaction, *, why: bool) -> dict[str, Any]:
    """What a transaction changed; with reasons, a proof for each row that came, and a broken one for each that went."""
    broken: dict[str, list[Proof | None]] = {}
    if why:
        losses = {name: sorted_rows(delta.minus) for name, delta in database.apply(transaction, dry_run=True).items()}
        broken = {name: database.proofs(name, rows) for name, rows in losses.items()}
    changes = database.apply(transaction)
    views: dict[str, Any] = {name: delta_json(database.program, name, delta) for name, delta in changes.items()}
    for name, delta in changes.items() if why else ():
        plus = [proof.json() for proof in database.proofs(name, sorted_rows(delta.plus)) if proof]
        minus = [database.broken(proof).json() for proof in broken[name] if proof]
        views[name]["why"] = {"plus": plus, "minus": minus}
    return {"views": views}


def delta_json(program: Program, relation: str, delta: Delta) -> dict[str, list[Any]]:
    """A view's change as JSON; rows with a key that replace each other are also told in pairs."""
    types = program.relations[relation].types

    def rows(some: Sequence[Row]) -> list[list[Any]]:
        return [list(row) for row in json_rows(types, some)]

    plus, minus = map(rows, delta.ordered)
    found: dict[str, Any] = {"plus": plus, "minus": minus}
    if relation in program.keys and (pairs := modified(delta, program.keys[relation])):
        found["modified"] = [dict(zip(("old", "new"), rows(pair), strict=True)) for pair in pairs]
    return found
