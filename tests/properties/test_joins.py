"""Modifications through joins (Harrison & Dietrich 1992, IV): what watching a join says is what the paper's IncrJoin says, written out naively, literal after literal as its ICES does, for up to five.

Nothing is clever here: a Δrelation is a list of all tuples of a relation with what each was and is, whether it changed or not, and each pair of tuples is one of the paper's cases.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.treatments import SIZE
from vigilog.core.delta import Keyed
from vigilog.folder.opening import open_program

EXAMPLES = {"quick": 30, "long": 500}.get(SIZE, 120)
RELATIONS = ("r", "s", "t")
VARIABLES = ("a", "b", "c")
TESTS = {"<": lambda x, y: x < y, "!=": lambda x, y: x != y, "=": lambda x, y: x == y}

Binding = dict[str, int]
State = dict[str, dict[int, tuple[int, int]]]  # by relation and key


@dataclass(frozen=True)
class Kept:
    now: Binding


@dataclass(frozen=True)
class Inserted:
    new: Binding


@dataclass(frozen=True)
class Deleted:
    old: Binding


@dataclass(frozen=True)
class Modified:
    old: Binding
    new: Binding


Tuple = Kept | Inserted | Deleted | Modified
Relation = list[tuple[tuple[int, ...], Tuple]]  # tuple ids, one of each literal


def entry(old: Binding | None, new: Binding | None) -> Tuple | None:
    """What a tuple is, of which there was this and is that."""
    if old is not None and new is not None:
        return Kept(new) if old == new else Modified(old, new)
    return Inserted(new) if new is not None else Deleted(old) if old is not None else None


def joined(one: Binding, other: Binding) -> Binding | None:
    """Two tuples as one, if they agree."""
    return {**one, **other} if all(one.get(name, value) == value for name, value in other.items()) else None


def incr_join(one: Tuple, other: Tuple) -> Tuple | None:
    """All pairs of cases."""
    match one, other:
        case Kept(x), Kept(y):
            return Kept(found) if (found := joined(x, y)) is not None else None
        case (Inserted(), Deleted()) | (Deleted(), Inserted()):
            return None
        case Inserted(x), (Kept(y) | Inserted(y) | Modified(_, y)):
            return entry(None, joined(x, y))
        case ((Kept(x) | Modified(_, x)), Inserted(y)):
            return entry(None, joined(x, y))
        case Deleted(x), (Kept(y) | Deleted(y) | Modified(y, _)):
            return entry(joined(x, y), None)
        case ((Kept(x) | Modified(x, _)), Deleted(y)):
            return entry(joined(x, y), None)
        case Kept(x), Modified(old, new):
            return entry(joined(x, old), joined(x, new))
        case Modified(old, new), Kept(y):
            return entry(joined(old, y), joined(new, y))
        case Modified(old, new), Modified(other_old, other_new):
            return entry(joined(old, other_old), joined(new, other_new))
        case _:
            raise AssertionError("there are no other cases")


def selected(terms: tuple[str | int, ...], row: tuple[int, ...] | None) -> Binding | None:
    """ΔLIT is selected by the literal's constants and repeated variables first."""
    found: Binding = {}
    for term, cell in zip(terms, row or (), strict=row is not None):
        if isinstance(term, int) and term != cell:
            return None
        if isinstance(term, str) and term != "_" and found.setdefault(term, cell) != cell:
            return None
    return found if row is not None else None


def filtered(test: tuple[str, str, str | int], what: Tuple) -> Tuple | None:
    """A test only filters: what is modified may become an insertion or a deletion."""
    left, sign, right = test

    def passes(binding: Binding) -> Binding | None:
        return binding if TESTS[sign](binding[left], binding[right] if isinstance(right, str) else right) else None

    match what:
        case Kept(now):
            return what if passes(now) is not None else None
        case Inserted(new):
            return entry(None, passes(new))
        case Deleted(old):
            return entry(passes(old), None)
        case Modified(old, new):
            return entry(passes(old), passes(new))


@dataclass(frozen=True)
class Condition:
    literals: tuple[tuple[str, tuple[str | int, ...]], ...]  # relation and terms beside the key
    tests: tuple[tuple[str, str, str | int], ...]

    @property
    def variables(self) -> list[str]:
        return sorted({term for _, terms in self.literals for term in terms if isinstance(term, str) and term[0] in "abc"})

    @property
    def text(self) -> str:
        keys = [f"k{number}" for number in range(len(self.literals))]
        columns = [*keys, *self.variables]
        body = [f"{name}({key}, {', '.join(map(_shown, terms))})" for key, (name, terms) in zip(keys, self.literals, strict=True)]
        body += [f"{left} {sign} {right}" for left, sign, right in self.tests]
        declared = ", ".join(f"{column}: number" for column in columns)
        return f".decl v({declared})\n.output v\n.key v({', '.join(keys)})\nv({', '.join(columns)}) :- {', '.join(body)}.\n"

    def changes(self, old: State, new: State) -> Relation:
        """The loop of ICES, from the first literal to the last."""
        partial: Relation = [((), Kept({}))]
        for name, terms in self.literals:
            found: Relation = []
            for key in old[name].keys() | new[name].keys():
                literal = entry(selected(terms, old[name].get(key)), selected(terms, new[name].get(key)))
                for ids, left in partial if literal is not None else ():
                    if (pair := incr_join(left, literal)) is not None:  # type: ignore[arg-type]  # it is there
                        found.append(((*ids, key), pair))
            partial = found
        for test in self.tests:
            partial = [(ids, passed) for ids, what in partial if (passed := filtered(test, what)) is not None]
        return partial


def _shown(term: str | int) -> str:
    return str(term)


def condition(chance: random.Random, literals: int) -> Condition:
    terms: list[Any] = [*VARIABLES, *VARIABLES, 0, 1, "_"]
    chosen = tuple((chance.choice(RELATIONS), (chance.choice(terms), chance.choice(terms))) for _ in range(literals))
    bound = Condition(chosen, ()).variables
    tests: list[tuple[str, str, str | int]] = []
    for _ in range(chance.randint(0, 2) if bound else 0):
        right: str | int = chance.choice(bound) if chance.random() < 0.7 else 1
        tests.append((chance.choice(bound), chance.choice(sorted(TESTS)), right))
    return Condition(chosen, tuple(tests))


def changed(chance: random.Random, state: State) -> State:
    """Rows come, go, change, and change their keys; some come back as they were."""
    new = {name: dict(rows) for name, rows in state.items()}
    for rows in new.values():
        for key in range(4):
            if chance.random() < 0.4:
                rows.pop(key, None)
                if chance.random() < 0.7:
                    rows[key] = (chance.randint(0, 2), chance.randint(0, 2))
    return new


def told(old: State, new: State) -> Iterator[tuple[str, str, Any]]:
    for name in RELATIONS:
        for key in old[name].keys() - new[name].keys():
            yield "delete_key", name, [key]
        for key, row in new[name].items():
            if old[name].get(key) != row:
                yield "upsert", name, [key, *row]


def agree(seed: int, literals: int, strategy: str, engine: str = "embedded", steps: int = 4) -> None:
    chance = random.Random(seed)
    wanted = condition(chance, literals)
    text = "".join(f".decl {name}(k: number, x: number, y: number)\n.key {name}(k)\n" for name in RELATIONS) + wanted.text
    state = changed(chance, changed(chance, {name: {} for name in RELATIONS}))
    facts = {name: {(key, *row) for key, row in rows.items()} for name, rows in state.items()}
    with open_program(text, facts, strategy=strategy, engine=engine) as db:
        for _ in range(steps):
            new = changed(chance, state)
            transaction: dict[str, dict[str, list[Any]]] = {}
            for operation, name, row in told(state, new):
                transaction.setdefault(operation, {}).setdefault(name, []).append(row)
            delta = db.take(transaction).deltas.get("v")
            found = Keyed(delta.plus, delta.minus, db.program.keys["v"]) if delta else Keyed()

            def row(ids: tuple[int, ...], binding: Binding) -> tuple[int, ...]:
                return (*ids, *(binding[name] for name in wanted.variables))

            by_kind: dict[type, Any] = {Inserted: set(), Deleted: set(), Modified: set()}
            for ids, what in wanted.changes(state, new):
                match what:
                    case Inserted(now):
                        by_kind[Inserted].add(row(ids, now))
                    case Deleted(then):
                        by_kind[Deleted].add(row(ids, then))
                    case Modified(then, now):
                        by_kind[Modified].add((row(ids, then), row(ids, now)))
                    case Kept():
                        pass
            assert found.inserted == by_kind[Inserted], (text, state, new)
            assert found.deleted == by_kind[Deleted], (text, state, new)
            assert set(found.modified) == by_kind[Modified], (text, state, new)
            state = new


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(["auto", "external", "materialized", "counted", "auxiliary"]))
def test_modifications_go_through_joins(seed: int, literals: int, strategy: str) -> None:
    agree(seed, literals, strategy)


@pytest.mark.parametrize("seed", range(2 if SIZE == "quick" else 4))
def test_modifications_go_through_joins_on_spark(seed: int) -> None:
    agree(seed, seed + 2, ["external", "counted"][seed % 2], engine="spark", steps=2)
