"""What is told to views, as changes of the relations that remember it.

`{"insert": {"p": …}}` and `{"delete": {"p": …}}`, for a relation that rules derive and that may be told to, add updates to its list; `{"withdraw": [id]}` takes some back. For each row of a ground relation, `p_in` or `p_out` follows the
latest update that is left; for constrained ones the mediation does (`mediation.py`). Deletions come before insertions, and have smaller numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.rows import json_rows
from vigilog.core.runs import axis
from vigilog.core.values import Row
from vigilog.engine.extension import Extension
from vigilog.engine.sources import Sources
from vigilog.engine.transaction import Lookup, Transaction, told_rows
from vigilog.language.program import Program
from vigilog.mediators.conjunction import Conjunction, with_names
from vigilog.mediators.facts import parsed_where, where
from vigilog.rewriting.program.updatable import UPDATE_COLUMNS


class Updated(Protocol):
    """A database, as this module sees it."""

    program: Program
    base: Mapping[str, Lookup]
    sources: Sources | None

    @property
    def extension(self) -> Extension: ...

    @property
    def tx(self) -> int: ...

    def rows(self, name: str) -> set[Row]: ...

    def next_update(self) -> Iterator[int]:
        """Numbers for updates, each larger than all before."""


def translated(db: Updated, transaction: Transaction) -> Transaction:
    """The transaction, in which updates of views are changes of the relations that remember them."""
    extension = db.extension
    if not extension.hidden:
        return transaction
    rest: dict[str, Any] = {}
    wishes: dict[str, list[tuple[bool, Any]]] = {}
    for operation, by_relation in transaction.items():
        if operation in ("withdraw", "refresh") or not isinstance(by_relation, Mapping):
            rest[operation] = by_relation
            continue
        for relation, given in by_relation.items():
            if relation in extension.hidden:
                hint = did_you_mean(relation, extension.updates)
                raise DataError(
                    f"{relation} remembers what was told; tell it to the relation itself{f' ({hint})' if hint else ''}", "derived"
                )
            if relation in extension.updates:
                wishes.setdefault(relation, []).extend(_wishes(operation, relation, given))
            else:
                rest.setdefault(operation, {})[relation] = given
    made = _Made(db)
    fresh = db.sources.refreshed(rest.pop("refresh")) if "refresh" in rest and db.sources is not None else {}
    if "withdraw" in rest:
        made.withdraw(rest.pop("withdraw"))
    for insert in (False, True):
        for relation, wanted in wishes.items():
            made.tell(relation, insert, [fact for way, fact in wanted if way == insert])
    for changes in (made.transaction(), fresh):
        for operation, told in changes.items():
            rest[operation] = {**rest.get(operation, {}), **told}
    return rest


def _wishes(operation: str, relation: str, given: Any) -> Iterator[tuple[bool, Any]]:
    if operation not in ("insert", "delete"):
        raise DataError(f"{relation} is a view: what is told to it is inserted or deleted", "operation")
    if not isinstance(given, list):
        raise DataError(f"{operation} of {relation} takes a list", "json")
    return ((operation == "insert", fact) for fact in given)


class _Made:
    """The changes of the relations beside, as they are collected."""

    def __init__(self, db: Updated) -> None:
        self.db, self.numbers, self.tx = db, db.next_update(), db.tx + 1
        self.listed: dict[str, list[Row]] = {}
        self.gone: dict[str, set[Row]] = {}
        self.decided: dict[str, dict[Row, bool | None]] = {}

    def tell(self, relation: str, insert: bool, facts: list[Any]) -> None:
        extension = self.db.extension
        if relation in extension.told:
            for row in told_rows(self.db.program, relation, facts):
                self.listed.setdefault(relation, []).append((next(self.numbers), self.tx, insert, *row))
                self.decided.setdefault(relation, {})[row] = insert
            return
        for fact in facts:
            self.listed.setdefault(relation, []).append((next(self.numbers), self.tx, insert, self._where(relation, fact)))

    def _where(self, relation: str, fact: Any) -> str:
        """The text of what is told to a constrained relation: a fact, or a row."""
        assert self.db.extension.mediated is not None, "it is constrained"
        columns = self.db.extension.mediated.columns(relation)
        if isinstance(fact, Mapping) and fact.keys() == {"args", "where"}:
            args, text = fact["args"], fact["where"]
            if (
                not isinstance(args, list)
                or len(args) != len(columns)
                or not all(isinstance(one, str) for one in args)
                or len({*args}) != len(args)
            ):
                raise DataError(f"args of a fact of {relation} are {len(columns)} different variables", "where")
            if not isinstance(text, str):
                raise DataError("where is a text", "where")
            types = dict(zip(args, columns.values(), strict=True))
            named = [with_names(part, dict(zip(args, columns, strict=True))) for part in parsed_where(text, types)]
            parts = [where(part) for part in named if part is not None]
            return parts[0] if len(parts) == 1 else f"!({', '.join(f'!({part})' for part in parts) or 'true'})"
        if isinstance(fact, Mapping) and not fact.keys() <= columns.keys():
            raise DataError(
                f'what is told to {relation} is a row, or a fact: {{"args": {json.dumps(list(columns))}, "where": "…"}}', "where"
            )
        (row,) = told_rows(self.db.extension.mediated.program, relation, [fact])
        cells = zip(columns.items(), row, strict=True)
        return where(Conjunction({column: axis(type_).only(cell) for (column, type_), cell in cells}))

    def withdraw(self, numbers: Any) -> None:
        if not isinstance(numbers, list) or not all(isinstance(one, int) and not isinstance(one, bool) for one in numbers):
            raise DataError("withdraw takes a list of numbers, those that `overrides` shows", "json")
        wanted = {(one,) for one in numbers}
        for relation, listed in self.db.extension.updates.items():
            rows = self.db.base[listed].having((0,), wanted)
            wanted -= {row[:1] for row in rows}
            if rows:
                self.gone.setdefault(relation, set()).update(rows)
            if relation in self.db.extension.told and rows:
                self._reconsider(relation, listed, rows)
        if wanted:
            raise DataError(f"there is no update {min(wanted)[0]} to withdraw", "absent")

    def _reconsider(self, relation: str, listed: str, gone: set[Row]) -> None:
        """The rows of withdrawn updates are decided by the latest of those that are left."""
        rows = {row[UPDATE_COLUMNS:] for row in gone}
        columns = tuple(range(UPDATE_COLUMNS, UPDATE_COLUMNS + self.db.program.relations[relation].arity))
        left = (self.db.base[listed].having(columns, rows) if columns else self.db.rows(listed)) - gone
        latest: dict[Row, Row] = {}
        for update in sorted(left):
            latest[update[UPDATE_COLUMNS:]] = update
        for row in rows:
            self.decided.setdefault(relation, {})[row] = bool(latest[row][2]) if row in latest else None

    def transaction(self) -> dict[str, dict[str, list[Any]]]:
        extension = self.db.extension
        changes: dict[str, dict[str, list[Any]]] = {"insert": {}, "delete": {}}
        for relation, rows in self.listed.items():
            self._add(changes["insert"], extension.updates[relation], rows)
        for relation, gone in self.gone.items():
            self._add(changes["delete"], extension.updates[relation], gone)
        for relation, decided in self.decided.items():
            beside = extension.told[relation]
            for row, insert in decided.items():
                self._add(changes["insert" if insert else "delete"], beside.inside, [row])
                self._add(changes["delete" if insert is None or insert else "insert"], beside.outside, [row])
        return {operation: told for operation, told in changes.items() if told}

    def _add(self, target: dict[str, list[Any]], name: str, rows: Iterable[Row]) -> None:
        target.setdefault(name, []).extend(list(row) for row in json_rows(self.db.program.relations[name].types, list(rows)))


def overrides(db: Updated) -> list[dict[str, Any]]:
    """All updates of views that were not withdrawn, in their order: number, transaction, relation, whether it inserts, and its row or fact."""
    updates = []
    for relation, listed in db.extension.updates.items():
        for number, tx, insert, *rest in db.rows(listed):
            shown: Any = list(next(iter(json_rows(db.program.relations[listed].types[UPDATE_COLUMNS:], [tuple(rest)]))))
            if relation not in db.extension.told:
                shown = {"args": list(db.program.relations[relation].args), "where": rest[0]}
            updates.append({"id": number, "tx": tx, "relation": relation, "insert" if insert else "delete": shown})
    return sorted(updates, key=lambda one: json.dumps(one["id"]).rjust(20))
