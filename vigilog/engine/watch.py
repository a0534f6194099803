"""`watch`: a filter from transactions to changes, one JSON line each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import VigilogError
from vigilog.core.values import sorted_rows
from vigilog.engine.database import Database
from vigilog.engine.transaction import parse_transaction
from vigilog.language.syntax import Program

MATERIALIZED = "materialized"


def watch(database: Database, lines: Iterable[str], *, snapshot: bool = False, stats: bool = False) -> Iterator[dict[str, Any]]:
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
            changes = database.apply(parse_transaction(line))
        except VigilogError as error:
            yield {"tx": number, "error": {"code": error.code, "message": error.message}}
            continue
        answer: dict[str, Any] = {
            "tx": number,
            "views": {name: delta_json(database.program, name, delta) for name, delta in changes.items()},
        }
        if stats:
            strategy = dict.fromkeys(database.program.outputs, MATERIALIZED)
            answer["stats"] = {**database.stats.as_dict(), "ms": round(database.stats.ms, 3), "strategy": strategy}
        yield answer


def delta_json(program: Program, relation: str, delta: Delta) -> dict[str, list[list[Any]]]:
    types = program.relations[relation].types

    def rows(part: frozenset[Any]) -> list[list[Any]]:
        return [[type_.to_json(cell) for type_, cell in zip(types, row, strict=True)] for row in sorted_rows(part)]

    return {"plus": rows(delta.plus), "minus": rows(delta.minus)}


def to_line(answer: dict[str, Any]) -> str:
    return json.dumps(answer, ensure_ascii=False)
