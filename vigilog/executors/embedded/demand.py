"""Runs rules on demand on SQLite, with work in proportion to what they derive.

Each relation of the rules that is not a table of the database is a work table, whose rows are numbered as they come. A rule has read a work table up to some number;
what came since is what it reads next. Rules of the lowest rank that have something to read go first (`rewriting/demand.py` says why). A rule is one prepared statement
for each place of its body that rows can come from; nothing is run for what is empty, and only what was filled is cleared. What no rule reads needs no table: its rows are fetched as
they are found, and what one such relation has and another has not is told apart in Python.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vigilog.core.errors import Stopped
from vigilog.core.rows import converted
from vigilog.core.schema import distinct
from vigilog.core.values import Row, Type
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.language.syntax import Atom, Program, Rule, atoms
from vigilog.planning.indexes import needed_indexes
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search
from vigilog.planning.select import Choice, select
from vigilog.planning.sqlite import AFFINITY, decoder, encoder
from vigilog.rewriting.demand import ranks
from vigilog.rewriting.states import Change, OldState, States
from vigilog.rewriting.told import told_apart

WORK_ROWS = 10  # what a work table is expected to hold, for the order of joins


class OverBudget(Stopped):
    """More rows were derived than allowed."""


@dataclass
class _Step:
    """What a rule does when rows come at one place of its body."""

    target: str
    statements: list[tuple[str, dict[str, Any], bool]]  # text, parameters, whether it reads only rows that have come since
    fetched: bool  # whether the rows are fetched, and not stored


Plan = list[dict[str, list[_Step]]]


class WorkLayout(Layout):
    """Work tables beside tables of the database, which `physical` gives for some relations of the rules."""

    def __init__(self, program: Program, tables: Tables, physical: Mapping[str, tuple[str, str]], label: str) -> None:
        super().__init__(program)
        self.base, self.physical = tables.layout, physical
        self.label = label

    @cached_property
    def tables(self) -> Mapping[str, str]:
        named = {name: f"{self.label}~{table}" for name, table in distinct(self.program.relations).items()}
        return named | {name: table for name, (_, table) in self.physical.items()}

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        own = {name: tuple(f"c{i}" for i in range(max(declaration.arity, 1))) for name, declaration in self.program.relations.items()}
        return own | {name: self.base.columns[relation] for name, (relation, _) in self.physical.items()}


class DemandMachine:
    """The work tables of some rules on demand.

    `physical` says which relations are tables of the database: the relation there, and the table. Of these, `inputs` are what rules start from, and
    `old` are names for the state before a change. Of the rows of `told` nothing is wanted but to know them.
    """

    def __init__(
        self,
        program: Program,
        levels: Mapping[str, int],
        tables: Tables,
        physical: Mapping[str, tuple[str, str]],
        inputs: Iterable[str] = (),
        old: Mapping[str, States] | None = None,
        told: Iterable[str] = (),
    ) -> None:
        self.tables, self.physical, self.inputs, self.old = tables, physical, set(inputs), old or {}
        self.layout = WorkLayout(program, tables, physical, tables.label())
        self.told = told_apart(program.rules, told)
        self.rules = list(zip(self.told.rules, ranks(self.told.rules, levels), strict=True))
        self.fetched: dict[str, set[tuple[Any, ...]]] = {}  # what came to relations without a table
        self.orders: dict[str, list[tuple[int, ...]]] = {}
        self.sizes: dict[str, int] = {}
        self.seen: dict[int, list[dict[str, int]]] = {}  # for each plan and rank, how much of each relation has been read
        self.derived = self.rounds = 0
        self.budget: int | None = None
        self.trace: list[tuple[str, int]] | None = None  # how far each relation had come, step after step, if wanted
        self.plans: dict[object, Plan] = {}
        self.reading: dict[str, tuple[str, list[Any] | None]] = {}
        self.clearing: dict[str, str] = {}
        self.selections: dict[object, tuple[str, Mapping[str, Any]]] = {}

    def plan(self, start: Iterable[str], changes: Mapping[str, Change], rows: Mapping[str, int]) -> Plan:
        """What is to be done for rows of each relation, by rank, when rows come to the relations in `start`. It makes tables and indexes, so it is no part of a transaction."""
        start = sorted(start)
        key = (*start, *sorted((name, change.lost, change.gained) for name, change in changes.items()))
        if key not in self.plans:
            reached = set(start)
            live: list[tuple[Rule, int]] = []
            waiting = list(self.rules)
            while ready := [entry for entry in waiting if all(atom.relation in reached for _, atom in self._places(entry[0]))]:
                waiting = [entry for entry in waiting if entry not in ready]
                live += ready
                reached |= {rule.head.relation for rule, _ in ready}
            steps: Plan = [{} for _ in range(max((rank for _, rank in live), default=0) + 1)]
            reader = OldState(self.old, changes)
            for relation in reached.union(atom.relation for rule, _ in live for atom, _ in atoms(rule.body)):
                if relation not in self.old and relation not in self.told.relations:
                    self._create(relation)
            for rule, rank in live:
                for place, atom in self._places(rule):
                    steps[rank].setdefault(atom.relation, []).append(self._step(rule, place, atom, reader, rows))
            self.plans[key] = steps
            self.tables.register()
        return self.plans[key]

    def seed(self, relation: str, rows: Iterable[Row]) -> None:
        """Puts rows into a work table."""
        types = self.layout.types[relation]
        encoders = [encoder(type_) for type_ in types]
        stored = [tuple([e(v) if e else v for e, v in zip(encoders, row, strict=True)]) if row else (1,) for row in rows]
        marks = ", ".join("?" for _ in types)
        before = self.tables.connection.total_changes
        self.tables.connection.executemany(f"INSERT OR IGNORE INTO {quote(self.layout.tables[relation])} VALUES ({marks})", stored)
        self.sizes[relation] = self.sizes.get(relation, 0) + self.tables.connection.total_changes - before

    def run(self, plan: Plan, filled: Iterable[str] = ()) -> None:
        """Derives all that follows from the seeds and the filled inputs, and has not been derived since the last `clear`."""
        sizes, cursor, statements = self.sizes, self.tables.cursor, 0
        for relation in filled:
            sizes[relation] = 1
        seen = self.seen.setdefault(id(plan), [{} for _ in plan])
        open_ = [
            {name for name in sizes.keys() & steps.keys() if sizes[name] > known.get(name, 0)}
            for steps, known in zip(plan, seen, strict=True)
        ]
        try:
            while (rank := next((number for number, relations in enumerate(open_) if relations), None)) is not None:
                self.rounds += 1
                batch = [(relation, seen[rank].get(relation, 0), sizes[relation]) for relation in open_[rank]]
                open_[rank] = set()
                for relation, since, until in batch:
                    seen[rank][relation] = until
                    for step in plan[rank][relation]:
                        found = 0
                        for sql, parameters, window in step.statements:
                            if window:
                                parameters["since"], parameters["until"] = since, until
                            cursor.execute(sql, parameters)
                            found += self._fetch(step.target, cursor) if step.fetched else cursor.rowcount
                        statements += len(step.statements)
                        if found:
                            self._found(plan, step.target, found, open_)
                if self.budget is not None and self.derived > self.budget:
                    raise OverBudget(f"more than {self.budget} rows were derived on demand", "budget")
            self._compare()
        except sqlite3.OperationalError as reason:
            raise self.tables.translated(reason) from None
        finally:
            self.tables.statements += statements

    def _fetch(self, target: str, rows: Iterable[tuple[Any, ...]]) -> int:
        """Takes rows of a relation without a table; gives how many are new."""
        known = self.fetched.setdefault(target, set())
        before = len(known)
        known.update(rows)
        return len(known) - before

    def _compare(self) -> None:
        """Tells apart what one relation without a table has and another has not."""
        for difference in self.told.differences:
            if found := self.fetched.get(difference.one, set()) - self.fetched.get(difference.other, set()):
                self.fetched[difference.told] = found
                self.sizes[difference.told] = len(found)
                self.derived += len(found)

    def _found(self, plan: Plan, target: str, number: int, open_: list[set[str]]) -> None:
        """Notes that rows have come, and who is to read them."""
        self.sizes[target] = size = self.sizes.get(target, 0) + number
        self.derived += number
        if self.trace is not None:
            self.trace.append((target, size))
        for steps, relations in zip(plan, open_, strict=True):
            if target in steps:
                relations.add(target)

    def rows(self, relation: str, where: str = "", parameters: tuple[Any, ...] = ()) -> Collection[Row]:
        """The rows of a work table, or of a relation without one, as values."""
        if not self.sizes.get(relation):
            return []
        if relation not in self.reading:
            decoders = [decoder(type_) for type_ in self.layout.types[relation]]
            if relation in self.told.relations:  # a table would have made a float of any number
                decoders = [
                    (0.0).__add__ if type_.kind == "float" else d for type_, d in zip(self.layout.types[relation], decoders, strict=True)
                ]
            plain = not any(decoders) and bool(self.layout.program.relations[relation].attributes)
            self.reading[relation] = f"SELECT * FROM {quote(self.layout.tables[relation])} ", None if plain else decoders
        sql, found = self.reading[relation]
        rows = self.fetched[relation] if relation in self.told.relations else self.tables.execute(sql + where if where else sql, parameters)
        if found is None:
            return rows if isinstance(rows, set) else rows.fetchall()
        if not self.layout.program.relations[relation].attributes:
            return [() for _ in rows]
        return list(converted(found, rows))

    def clear(self) -> None:
        """Empties what was filled."""
        for relation, size in self.sizes.items():
            if size and relation not in self.inputs and relation not in self.told.relations:
                if relation not in self.clearing:
                    self.clearing[relation] = f"DELETE FROM {quote(self.layout.tables[relation])}"
                self.tables.execute(self.clearing[relation])
        self.forget()

    def forget(self) -> None:
        """Everything was emptied in another way."""
        self.sizes, self.seen, self.fetched = {}, {}, {}
        self.derived = self.rounds = 0

    # -- statements

    def selection(self, rule: Rule) -> tuple[str, Mapping[str, Any]]:
        """The rows that a rule gives now, each as often as it gives it."""
        key = rule.head, rule.body
        if key not in self.selections:
            chosen = select(rule, self.layout, self.tables.dialect, Choice(first=0))
            self.selections[key] = chosen.text, chosen.parameters
        return self.selections[key]

    def expected(self, rows: Mapping[str, int]) -> dict[str, int]:
        """How many rows each relation of the rules is expected to have, given those of the database's tables."""
        own = {name: rows.get(relation, 0) for name, (relation, _) in self.physical.items() if name not in self.inputs}
        return dict.fromkeys(self.layout.program.relations, WORK_ROWS) | own

    def _places(self, rule: Rule) -> list[tuple[int, Atom]]:
        """Where rows can come from: atoms of work tables and of inputs."""
        tables = (self.physical.keys() - self.inputs) | self.old.keys()
        return [(place, part) for place, part in enumerate(rule.body) if isinstance(part, Atom) and part.relation not in tables]

    def _step(self, rule: Rule, place: int, first: Atom, reader: OldState, rows: Mapping[str, int]) -> _Step:
        ordered = rule.derive(rule.head, body=(first, *(literal for index, literal in enumerate(rule.body) if index != place)))
        statements = [self._statement(way, first.relation not in self.inputs, rows) for way in reader.rules(ordered)]
        return _Step(rule.head.relation, statements, rule.head.relation in self.told.relations)

    def _statement(self, rule: Rule, window: bool, rows: Mapping[str, int]) -> tuple[str, dict[str, Any], bool]:
        read = {atom.relation for atom, _ in atoms(rule.body)} & self.physical.keys()
        distinct = {name: self.tables.distinct(self.physical[name][0]) for name in read}
        choice = Choice(first=0, rows=self.expected(rows), distinct=distinct, window="rowid" if window else "")
        chosen = select(rule, self.layout, self.tables.dialect, choice)
        self.serve(chosen.searches)
        sql, target = chosen.text, rule.head.relation
        into = "" if target in self.told.relations else f"INSERT OR IGNORE INTO {quote(self.layout.tables[target])} "
        return into + sql, dict(chosen.parameters), window

    def _create(self, relation: str) -> None:
        if relation in self.orders or relation in self.physical:
            return
        columns = self.layout.columns[relation]
        listed = ", ".join(map(quote, columns))
        types: tuple[Type, ...] = self.layout.types[relation]
        defined = ", ".join(f"{quote(name)} {AFFINITY[type_.kind]} NOT NULL" for name, type_ in zip(columns, types, strict=True))
        self.tables.create_work(self.layout.tables[relation], f"({defined}, UNIQUE ({listed}))")
        self.orders[relation] = [tuple(range(len(columns)))]

    def serve(self, searches: Iterable[Search]) -> None:
        """Makes the indexes that these searches need and that are not there yet."""
        for search in searches:
            if search.relation in self.physical and search.relation not in self.inputs:
                self.tables.serve([Search(self.physical[search.relation][0], search.columns)])
                continue
            self._create(search.relation)
            columns, table = self.layout.columns[search.relation], self.layout.tables[search.relation]
            known = self.orders.setdefault(search.relation, [tuple(range(len(columns)))])
            for order in needed_indexes([search.columns], known):
                over = ", ".join(quote(columns[column]) for column in order)
                self.tables.execute(f"CREATE INDEX {quote(f'{self.layout.label}~{table} by {order}')} ON {quote(table)} ({over})")
                known.append(order)
