"""A program with its data: apply a transaction, get the exact changes of every view."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Type, sorted_rows
from vigilog.engine.evaluate import checked_rows, read
from vigilog.engine.places import inputs
from vigilog.engine.transaction import Transaction, net_changes
from vigilog.executors.choose import choose
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.evaluation import Stats
from vigilog.executors.views import Views
from vigilog.files import reader
from vigilog.files.place import Place
from vigilog.language.check import check
from vigilog.language.goal import parse_goal
from vigilog.language.parser import read_program
from vigilog.language.syntax import Constant, Program, Rule
from vigilog.planning.strategy import EXTERNAL, MATERIALIZED, choose_strategies, counted_relations, stored_relations
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.relevant import relevant
from vigilog.rewriting.separate import separate

MOST_OVERRUNS = 3  # so often a view under `auto` may cost more on demand than to recompute, before it is stored

Facts = Mapping[str, Iterable[Iterable[Any]]]


def open_program(
    program: str | Path | Program,
    facts: Facts | str | Path | None = None,
    *,
    strategy: str = "auto",
    engine: str = "embedded",
    budget: int | None = None,
    strict: bool = False,
) -> Database:
    """Opens a program, given as text, file or tree, in memory, with its facts as rows or as a folder of files.

    >>> db = open_program('''
    ... .decl edge(x: symbol, y: symbol)
    ... .decl closure(x: symbol, y: symbol)
    ... .output closure
    ... closure(x, y) :- edge(x, y).
    ... closure(x, y) :- edge(x, z), closure(z, y).
    ... ''', {"edge": [("a", "b")]})
    >>> with db.transaction() as tx:
    ...     tx.insert("edge", [("b", "c")])
    >>> sorted(tx.changes["closure"].plus)
    [('a', 'c'), ('b', 'c')]
    >>> db.close()

    `strategy` is `external`, `materialized`, `counted` or `auto`. A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict`, refused.
    """
    if isinstance(program, str) and "\n" not in program:
        program = Path(program)
    checked = check(read_program(program) if isinstance(program, Path) else program).program
    if facts is None or isinstance(facts, Mapping):
        rows = {name: checked_rows(checked, name, given) for name, given in (facts or {}).items()}
        return Database(checked, rows, strategy, "embedded" if engine == "auto" else engine, budget, strict)
    places = inputs(checked, facts)
    for place in places.values():
        if place.local:
            reader.files(place)  # a source that is not there is an error, needed or not
    return Database(checked, places, strategy, choose(engine, places.values(), []).engine, budget, strict)


class Database:
    """The relations of a program as of the last transaction. It holds tables: close it, or use it in a `with`."""

    def __init__(
        self,
        program: Program,
        facts: Mapping[str, Iterable[Row] | Place],
        strategy: str = "auto",
        engine: str = "embedded",
        budget: int | None = None,
        strict: bool = False,
    ) -> None:
        stated = _stated(program)
        rules = tuple(rule for rule in program.rules if not _is_fact(rule))
        derived = {head.relation for rule in rules for head in rule.heads}
        given = {directive.relation for directive in program.directed("input")} | stated.keys() | facts.keys()
        self.program = replace(program, rules=rules)
        split, self.homes = separate(self.program, [name for name in program.relations if name in given or name not in derived])
        self.plain = rewrite(split)
        self.strategies = choose_strategies(self.plain, self.program.outputs, strategy)
        self.stored = stored_relations(self.plain, self.strategies)
        counted = counted_relations(self.plain, self.strategies)
        self.views: Views
        if engine == "spark":
            from vigilog.executors.spark.views import SparkViews

            sources = {self.homes[name]: source for name, source in facts.items()}
            told = {self.homes[name]: rows for name, rows in stated.items()}
            needed = relevant(self.plain, [*self.program.outputs, *self.homes.values()])
            self.views = SparkViews(needed, self.program.outputs, sources, self.stored, stated=told)
        else:
            rows = {home: _together(read(facts.get(name, ())), stated.get(name, ())) for name, home in self.homes.items()}
            self.views = EmbeddedViews(self.plain, self.program.outputs, rows, self.stored, counted, budget, strict)
        self.overruns = (
            0 if strategy == "auto" and engine != "spark" else None
        )  # how often deriving on demand cost too much, where that matters
        self.base = {name: Known(self.views, home) for name, home in self.homes.items()}
        self.stats = self.views.stats

    def apply(self, transaction: Transaction, *, dry_run: bool = False) -> dict[str, Delta]:
        """Applies a transaction; gives the changes of the views that changed. Raises DataError, and changes nothing, if it is refused.

        With `dry_run` the changes are told and nothing is applied.
        """
        began = time.perf_counter()
        changes = net_changes(self.program, self.base, transaction)
        deltas = self.views.apply({self.homes[name]: delta for name, delta in changes.items()}, keep=not dry_run) if changes else {}
        self.stats = self.views.stats if changes else Stats(self.views.stats.engine)
        self.stats.ms = (time.perf_counter() - began) * 1000
        if self.stats.recomputed and self.overruns is not None and not dry_run:
            self.overruns += 1
            if self.overruns == MOST_OVERRUNS:
                self._store_views()
        return deltas

    def _store_views(self) -> None:
        """Stores what was derived on demand until now, since that has turned out to cost too much."""
        reason = f"deriving it on demand went over its budget {MOST_OVERRUNS} times ({self.stats.recomputed})"
        stored = choose_strategies(self.plain, self.program.outputs, MATERIALIZED)
        changed = {name: replace(stored[name], reason=reason) for name, chosen in self.strategies.items() if chosen.name == EXTERNAL}
        self.strategies |= changed
        self.stored = stored_relations(self.plain, self.strategies)
        rows = {home: set(self.views.rows(home)) for home in self.homes.values()}
        before, self.views = self.views, EmbeddedViews(self.plain, self.program.outputs, rows, self.stored)
        before.close()
        self.base = {name: Known(self.views, home) for name, home in self.homes.items()}

    def what_if(self, insert: Facts | None = None, delete: Facts | None = None) -> dict[str, Delta]:
        """The changes that a transaction would cause; nothing is applied."""
        return self.apply({"delete": _lists(delete), "insert": _lists(insert)}, dry_run=True)

    @contextmanager
    def transaction(self) -> Iterator[Pending]:
        """Collects changes and applies them at the end of the block, unless it ends in an error."""
        pending = Pending()
        yield pending
        pending.changes = self.apply(pending.collected)

    def view(self, name: str) -> set[Row]:
        """All rows of an output relation."""
        if name in self.stored or self.homes.get(name) == name:
            return set(self.views.rows(name))
        return set(self.ask(f"{name}({', '.join('_' for _ in self.program.relations[name].attributes)})"))

    def rows(self, name: str) -> set[Row]:
        """All rows that are stated for a base relation."""
        return set(self.views.rows(self.homes[name]))

    def ask(self, goal: str) -> list[Row]:
        """The answers to a goal like `closure("a", y)`, sorted: the rows of an atom, or the values of the variables of several literals."""
        return self.ask_typed(goal)[1]

    def ask_typed(self, goal: str) -> tuple[tuple[Type, ...], list[Row]]:
        """The types of a goal's answers, and the answers."""
        asked = parse_goal(self.program, goal)
        answers = sorted_rows(self.views.answers(asked))
        self.stats = self.views.stats
        return asked.declaration.types, answers

    def why(self, goal: str) -> Proof | None:
        """A proof of an atom from base facts; None if it does not hold. If it has variables, their first values that hold are taken."""
        asked = parse_goal(self.program, goal)
        if not asked.of_atom:
            raise DataError('why takes one atom, like closure("a", "b")', "goal")
        answers = sorted_rows(self.views.answers(asked))
        return self.proofs(asked.of_atom, answers[:1])[0] if answers else None

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it; None if it has none."""
        return [proof and proof.rebuilt(self._stated) for proof in self.views.proofs(relation, rows)]

    def _stated(self, step: Proof) -> Proof:
        """A step from a row to the same row where it is stated is none."""
        stated = step.relation in self.homes and any(part.relation == self.homes[step.relation] != step.relation for part in step.because)
        return replace(step, rule="", place="", because=()) if stated else step

    def broken(self, proof: Proof) -> Proof:
        """A proof that once held, with marks on what it rests on that does not hold any more."""
        return proof.rebuilt(lambda step: replace(step, broken=not step.rule and not self._holds(step)))

    def _holds(self, leaf: Proof) -> bool:
        if leaf.row is not None:
            return bool(self.base[leaf.relation].among([leaf.row]))
        return not leaf.reads or bool(self.views.answers(parse_goal(self.program, leaf.literal)))

    def close(self) -> None:
        self.views.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class Known:
    """A base relation, of which one can ask which rows it has."""

    views: Views
    home: str

    def among(self, rows: Collection[Row]) -> set[Row]:
        return self.views.among(self.home, rows)


class Pending:
    """The changes of one transaction. After its block, `changes` holds what they did to the views."""

    def __init__(self) -> None:
        self.collected: dict[str, dict[str, list[Any]]] = {}
        self.changes: dict[str, Delta] = {}

    def insert(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("insert", {}).setdefault(relation, []).extend(map(tuple, rows))

    def delete(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("delete", {}).setdefault(relation, []).extend(map(tuple, rows))


def _lists(facts: Facts | None) -> dict[str, list[list[Any]]]:
    return {name: [list(row) for row in rows] for name, rows in (facts or {}).items()}


def _is_fact(rule: Rule) -> bool:
    return not rule.body and all(isinstance(arg, Constant) for head in rule.heads for arg in head.args)


def _stated(program: Program) -> dict[str, set[Row]]:
    """The rows that the program itself states."""
    found: dict[str, set[Row]] = {}
    for rule in program.rules:
        for head in rule.heads if _is_fact(rule) else ():
            found.setdefault(head.relation, set()).add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
    return found


def _together(first: Iterable[Row], second: Iterable[Row]) -> Iterator[Row]:
    yield from first
    yield from second
