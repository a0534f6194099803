"""A transaction as it comes from outside: JSON, checked against the program, and made net."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from vigilog.core.delta import Delta, net
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.values import Row
from vigilog.engine.evaluate import checked_rows
from vigilog.language.syntax import Program

OPERATIONS = ("delete", "insert", "update")

Transaction = Mapping[str, Mapping[str, Any]]


class Known(Protocol):
    """A base relation, of which one can ask which rows it has."""

    def among(self, rows: Collection[Row]) -> set[Row]: ...


def parse_transaction(line: str) -> dict[str, Any]:
    """A line of `watch` as a dictionary. Raises DataError if it is none."""
    try:
        transaction = json.loads(line)
    except (ValueError, RecursionError) as reason:
        raise DataError(f"this is not JSON: {reason}", "json") from None
    if not isinstance(transaction, dict):
        raise DataError('a transaction is an object like {"insert": {"edge": [["a", "b"]]}}', "json")
    return transaction


def net_changes(program: Program, base: Mapping[str, Known], transaction: Transaction) -> dict[str, Delta]:
    """What a transaction really changes in the base relations; relations it leaves as they are do not occur."""
    unknown = [key for key in transaction if key not in OPERATIONS]
    if unknown:
        hint = did_you_mean(unknown[0], OPERATIONS) or f"there are {', '.join(OPERATIONS)}"
        raise DataError(f"there is no operation {unknown[0]} ({hint})", "operation")
    deletions: dict[str, list[Row]] = {}
    insertions: dict[str, list[Row]] = {}
    for operation, by_relation in transaction.items():
        if not isinstance(by_relation, Mapping):
            raise DataError(f"{operation} takes an object with relations as keys", "json")
        for relation, given in by_relation.items():
            _check_base(program, base, relation)
            if operation == "update":
                old, new = _update(program, relation, given)
                there = base[relation].among(old)
                missing = [row for row in old if row not in there]
                if missing:
                    raise DataError(f"{relation} has no row {list(missing[0])} to update", "absent")
                deletions.setdefault(relation, []).extend(old)
                insertions.setdefault(relation, []).extend(new)
            else:
                target = deletions if operation == "delete" else insertions
                target.setdefault(relation, []).extend(_rows(program, relation, given))
    touched = dict.fromkeys([*deletions, *insertions])
    changes = {}
    for name in touched:
        going, coming = deletions.get(name, []), insertions.get(name, [])
        changes[name] = net(base[name].among([*going, *coming]), going, coming)
    return {name: change for name, change in changes.items() if change}


def _check_base(program: Program, base: Mapping[str, Known], relation: str) -> None:
    if relation not in program.relations:
        hint = did_you_mean(relation, program.relations)
        raise DataError(f"there is no relation {relation}" + (f"; {hint}" if hint else ""), "unknown-relation")
    if relation not in base:
        raise DataError(f"{relation} is derived by rules; change the relations it is derived from", "derived")


def _rows(program: Program, relation: str, given: Any) -> Iterable[Row]:
    if not isinstance(given, list | tuple | set | frozenset) or any(not isinstance(row, list | tuple) for row in given):
        raise DataError(f"the rows of {relation} are a list of lists", "json")
    return checked_rows(program, relation, given)


def _update(program: Program, relation: str, given: Any) -> tuple[list[Row], list[Row]]:
    if not isinstance(given, list) or any(not isinstance(pair, Mapping) or pair.keys() != {"old", "new"} for pair in given):
        raise DataError(f'an update of {relation} is a list of {{"old": […], "new": […]}}', "json")
    old = list(_rows(program, relation, [pair["old"] for pair in given]))
    return old, list(_rows(program, relation, [pair["new"] for pair in given]))
