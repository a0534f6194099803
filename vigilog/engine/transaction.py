"""A transaction as it comes from outside: JSON, checked against the program, and made net."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import Any, Protocol

from vigilog.core.delta import Delta, net
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.named import SEQUENCES, in_order
from vigilog.core.values import Row
from vigilog.engine.apart import apart
from vigilog.engine.evaluate import checked_rows, ensure_known, short
from vigilog.language.program import Program

OPERATIONS = ("delete", "insert", "update", "upsert", "delete_key")
_FACT = {"args", "where"}
BOM = "\ufeff"
COLLECTIONS = (list, tuple, set, frozenset)

Transaction = Mapping[str, Mapping[str, Any]]


class KeyClash(DataError):
    """Two rows of a relation would have the same key."""

    def __init__(self, message: str, relation: str, rows: tuple[Row, Row]) -> None:
        super().__init__(message, "key")
        self.relation, self.rows = relation, rows


class Lookup(Protocol):
    """A base relation in which rows can be looked up."""

    def among(self, rows: Collection[Row]) -> set[Row]: ...

    def having(self, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        """The rows that have one of some values in their columns."""

    def twice(self, columns: tuple[int, ...]) -> Row | None:
        """Values that several rows have in their columns, if there are any."""


def parse_transaction(line: str | bytes) -> dict[str, Any]:
    """A line of `watch` as a dictionary. Raises DataError if it is none.

    >>> parse_transaction('{"insert": {"edge": [["a", "b"]]}, "insert": {}}')
    Traceback (most recent call last):
    ...
    vigilog.core.errors.DataError: this is not a transaction: the key insert occurs twice in one object
    """
    try:
        text = line.decode() if isinstance(line, bytes) else line
        transaction = json.loads(text.removeprefix(BOM), object_pairs_hook=_object, parse_constant=_no_number)
    except UnicodeDecodeError as reason:
        raise DataError(f"this is not UTF-8 text (byte {reason.object[reason.start]:#04x} at {reason.start + 1})", "encoding") from None
    except json.JSONDecodeError as reason:
        raise DataError(f"this is not JSON: {reason.msg} at character {reason.pos + 1}", "json") from None
    except ValueError:  # Python reads integers of 4300 digits, and no longer ones
        raise DataError("this is not a transaction: an integer has thousands of digits", "json") from None
    except RecursionError:
        raise DataError("this is not a transaction: it is nested too deep", "json") from None
    if not isinstance(transaction, dict):
        raise DataError('a transaction is an object like {"insert": {"edge": [["a", "b"]]}}', "json")
    return transaction


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are different: of two, JSON readers would silently take the last."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(key for key, number in Counter(key for key, _ in pairs).items() if number > 1)
        raise DataError(f"this is not a transaction: the key {short(twice)} occurs twice in one object", "json")
    return members


def _no_number(text: str) -> None:
    raise DataError(f"this is not JSON: {text} is no number", "json")


def net_changes(program: Program, base: Mapping[str, Lookup], transaction: Transaction) -> dict[str, Delta]:
    """What a transaction really changes in the base relations; relations it leaves as they are do not occur."""
    unknown = [key for key in transaction if key not in OPERATIONS]
    if unknown:
        hint = did_you_mean(unknown[0], OPERATIONS) or f"there are {', '.join(OPERATIONS)}"
        raise DataError(f"there is no operation {short(unknown[0])} ({hint})", "operation")
    wished = _Wished(program, base)
    for operation, by_relation in apart(program, transaction).items():
        if not isinstance(by_relation, Mapping):
            raise DataError(f"{operation} takes an object with relations as keys", "json")
        for relation, given in by_relation.items():
            if relation not in base:
                raise _no_base(program, relation)
            if operation == "update":
                wished.update(relation, *_update(program, relation, given))
            elif operation == "delete_key":
                wished.take(operation, relation, set(_keys(program, relation, _key(program, relation), given)))
            else:
                if operation == "upsert":
                    _key(program, relation)  # without one, that is what is told
                wished.take(operation, relation, _rows(program, relation, given))
    return wished.net()


def net_of_values(program: Program, base: Mapping[str, Lookup], told: Mapping[str, Mapping[str, Collection[Row]]]) -> dict[str, Delta]:
    """The same of operations on base relations whose rows, or keys, are values already and fit, as what triggers do."""
    wished = _Wished(program, base)
    for operation, by_relation in told.items():
        for relation, rows in by_relation.items():
            wished.take(operation, relation, rows)
    return wished.net()


class _Wished:
    """The rows that a transaction wants to come and to go, whether they are there or not, and what that changes."""

    def __init__(self, program: Program, base: Mapping[str, Lookup]) -> None:
        self.program, self.base = program, base
        self.deletions: dict[str, list[Row]] = {}
        self.insertions: dict[str, list[Row]] = {}

    def take(self, operation: str, relation: str, rows: Iterable[Row]) -> None:
        """An operation with rows, or, for `delete_key`, with keys."""
        if operation == "delete_key":
            self._free(relation, rows)
        elif operation == "delete":
            self.deletions.setdefault(relation, []).extend(rows)
        else:
            wanted = self.insertions.setdefault(relation, [])
            if operation == "upsert":
                rows = list(rows)
                self._free(relation, _values(rows, self.program.keys[relation]))
            wanted.extend(rows)

    def _free(self, relation: str, keys: Iterable[Row]) -> None:
        """Whatever has one of these keys goes."""
        gone = self.base[relation].having(self.program.keys[relation], set(keys))
        self.deletions.setdefault(relation, []).extend(gone)

    def update(self, relation: str, old: list[Row], new: list[Row]) -> None:
        there = self.base[relation].among(old)
        missing = [row for row in old if row not in there]
        if missing:
            types = self.program.relations[relation].types
            shown = [type_.to_json(cell) for type_, cell in zip(types, missing[0], strict=True)]
            raise DataError(f"{relation} has no row {json.dumps(shown, ensure_ascii=False)} to update", "absent")
        self.deletions.setdefault(relation, []).extend(old)
        self.insertions.setdefault(relation, []).extend(new)

    def net(self) -> dict[str, Delta]:
        """What really changes. Raises DataError if two rows would have the same key."""
        program, base, deletions, insertions = self.program, self.base, self.deletions, self.insertions
        changes: dict[str, Delta] = {}
        owned, touched = program.optional, list(dict.fromkeys([*deletions, *insertions]))
        if owned:  # the relations of optional columns come after those that these are columns of
            touched.sort(key=lambda name: any(name in of.values() for of in owned.values()))
        for name in touched:
            going, coming = deletions.get(name, []), insertions.get(name, [])
            if name not in program.keys:
                changes[name] = net(base[name].among([*going, *coming]), going, coming)
                continue
            near = base[name].having(program.keys[name], set(_values([*going, *coming], program.keys[name])))
            changes[name] = net(near, going, coming)
            _check_unique(program, name, near, changes[name])
            if name in owned and (lost := _lost_keys(program.keys[name], changes[name])):
                for other in owned[name].values():
                    deletions.setdefault(other, []).extend(base[other].having(program.keys[other], lost) if other in base else ())
                    touched += [] if other in touched else [other]
        return {name: change for name, change in changes.items() if change}


def told_rows(program: Program, relation: str, given: list[Any]) -> Iterable[Row]:
    """Rows as a transaction has them, checked."""
    return _rows(program, relation, given)


def _lost_keys(key: tuple[int, ...], change: Delta) -> set[Row]:
    """The keys of which no row is left: what else is known of them goes, too."""
    return {*_values(change.minus, key)} - {*_values(change.plus, key)}


def _no_base(program: Program, relation: str) -> DataError:
    ensure_known(program, relation)
    return DataError(f"{relation} is derived by rules; change the relations it is derived from", "derived")


def _rows(program: Program, relation: str, given: Any) -> Iterable[Row]:
    if type(given) in SEQUENCES and set(map(type, given)) <= SEQUENCES:  # as they come from JSON and from clients
        return checked_rows(program, relation, given)
    told = isinstance(given, COLLECTIONS) and any(isinstance(row, Mapping) and row.keys() == _FACT for row in given)
    if told and set(program.relations[relation].columns) != _FACT:
        raise DataError(f"{relation} has rows alone; facts with conditions are for relations declared constrained", "json")
    rows = in_order(relation, program.relations[relation].columns, given) if isinstance(given, COLLECTIONS) else [given]
    if not all(isinstance(row, list | tuple) for row in rows):
        columns = program.relations[relation].columns
        shown = json.dumps(dict.fromkeys(columns, "…"), ensure_ascii=False) if columns else "{}"
        raise DataError(f"the rows of {relation} are a list of lists, or of objects like {shown}", "json")
    return checked_rows(program, relation, rows)


def _key(program: Program, relation: str) -> tuple[int, ...]:
    if relation not in program.keys:
        raise DataError(
            f"{relation} has no key; declare one, like .key {relation}({program.relations[relation].columns[0] if program.relations[relation].columns else ''})",
            "key",
        )
    return program.keys[relation]


def _keys(program: Program, relation: str, key: tuple[int, ...], given: Any) -> Iterable[Row]:
    """The values of a key, as they come from outside."""
    declaration = program.relations[relation]
    types, columns = [declaration.types[column] for column in key], [declaration.columns[column] for column in key]
    rows = in_order(f"the key of {relation}", columns, given) if isinstance(given, COLLECTIONS) else [given]
    if any(not isinstance(row, list | tuple) or len(row) != len(key) for row in rows):
        raise DataError(
            f"delete_key of {relation} takes a list of lists, or of objects, with the key's columns ({', '.join(columns)})", "json"
        )
    try:
        return [tuple(type_.from_json(cell) for type_, cell in zip(types, row, strict=True)) for row in rows]
    except ValueError as reason:
        raise DataError(f"a key of {relation}: {reason}", "type") from None


def check_keys(program: Program, base: Mapping[str, Lookup], before: Mapping[str, tuple[int, ...]] | None = None) -> None:
    """Refuses data in which two rows have the same key; a key that was enforced `before` holds."""
    for relation, key in program.keys.items():
        if relation in base and (before or {}).get(relation) != key and (value := base[relation].twice(key)) is not None:
            rows = sorted(base[relation].having(key, [value]))
            raise _twice(program, relation, key, rows[0], rows[1])


def _check_unique(program: Program, relation: str, near: Collection[Row], change: Delta) -> None:
    """Refuses a change after which two rows have the same key; `near` are the rows so far with keys that it touches."""
    key, rows = program.keys[relation], change.apply(set(near))
    if len(set(_values(rows, key))) == len(rows):
        return
    ordered, seen = sorted(rows), dict[Row, Row]()
    for value, row in zip(_values(ordered, key), ordered, strict=True):
        if value in seen:
            raise _twice(program, relation, key, seen[value], row)
        seen[value] = row


def _values(rows: Collection[Row], key: tuple[int, ...]) -> Iterable[Row]:
    """The values of each row's key."""
    if len(key) > 1:
        return map(itemgetter(*key), rows)
    return zip(map(itemgetter(*key), rows)) if key else ((),) * len(rows)


def _twice(program: Program, relation: str, key: tuple[int, ...], one: Row, other: Row) -> KeyClash:
    declaration = program.relations[relation]
    shown = [
        json.dumps([type_.to_json(cell) for type_, cell in zip(declaration.types, row, strict=True)], ensure_ascii=False)
        for row in (one, other)
    ]
    columns = ", ".join(declaration.columns[column] for column in key)
    message = f"{relation} would have two rows with the same key ({columns}): {shown[0]} and {shown[1]}"
    return KeyClash(message, relation, (one, other))


def _update(program: Program, relation: str, given: Any) -> tuple[list[Row], list[Row]]:
    if not isinstance(given, list) or any(not isinstance(pair, Mapping) or pair.keys() != {"old", "new"} for pair in given):
        raise DataError(f'an update of {relation} is a list of {{"old": […], "new": […]}}', "json")
    old = list(_rows(program, relation, [pair["old"] for pair in given]))
    return old, list(_rows(program, relation, [pair["new"] for pair in given]))
