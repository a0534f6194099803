"""Runs rules on demand on SQLite, with work in proportion to what they derive.

Each relation of the rules that is not a table of the database is a work table, whose rows are numbered as they come. A rule has read a work table up to some number;
what came since is what it reads next. Rules of the lowest rank that have something to read go first (`rewriting/demand/` says why). A rule is one prepared statement
for each place of its body that rows can come from; nothing is run for what is empty, and only what was filled is cleared. What no rule reads needs no table: its rows are fetched as
they are found, and what one such relation has and another has not is told apart in Python.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from vigilog.core.errors import Stopped
from vigilog.core.rows import converted
from vigilog.core.values import Row, Type
from vigilog.executors.embedded.statements import Source, Statement, WorkLayout, compiled, serve
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.language.syntax import Atom, Program, Rule, atoms
from vigilog.planning.order import Search
from vigilog.planning.sqlite import AFFINITY, decoder, encoder
from vigilog.rewriting.demand.demand import ranks
from vigilog.rewriting.demand.transient import transient


class OverBudget(Stopped):
    """More rows were derived than allowed."""


Plan = list[
    dict[str, list[tuple[Statement, bool]]]
]  # by rank and by relation: what is to be done when rows come there, and whether only with those


class DemandMachine:
    """The work tables of some rules on demand.

    `sources` says which relations are tables of the database. Of these, `inputs` are what rules start from. Of the rows of `told` nothing is wanted but to know them.
    """

    def __init__(
        self,
        program: Program,
        levels: Mapping[str, int],
        tables: Tables,
        sources: Mapping[str, Source],
        inputs: Iterable[str] = (),
        told: Iterable[str] = (),
    ) -> None:
        self.tables, self.sources, self.inputs = tables, sources, set(inputs)
        self.layout = WorkLayout(program, tables, sources, tables.label())
        self.transient = transient(program.rules, told)
        self.rules = list(zip(self.transient.rules, ranks(self.transient.rules, levels), strict=True))
        self.fetched: dict[str, set[tuple[Any, ...]]] = {}  # what came to relations without a table
        self.made: set[str] = set()  # relations with a work table
        self.sizes: dict[str, int] = {}
        self.seen: dict[int, list[dict[str, int]]] = {}  # for each plan and rank, how much of each relation has been read
        self.derived = self.rounds = 0
        self.budget: int | None = None
        self.trace: list[tuple[str, int]] | None = None  # how far each relation had come, step after step, if wanted
        self.reading: dict[str, tuple[str, list[Any] | None]] = {}
        self.clearing: dict[str, str] = {}

    def plan(self, start: Iterable[str], rows: Mapping[str, int]) -> Plan:
        """What is to be done for rows of each relation, by rank, when rows come to the relations in `start`. It makes tables and indexes, so it is no part of a transaction."""
        reached = set(start)
        live: list[tuple[Rule, int]] = []
        waiting = list(self.rules)
        while ready := [entry for entry in waiting if all(atom.relation in reached for _, atom in self._places(entry[0]))]:
            waiting = [entry for entry in waiting if all(entry is not other for other in ready)]
            live += ready
            reached |= {rule.head.relation for rule, _ in ready}
        for relation in reached.union(atom.relation for rule, _ in live for atom, _ in atoms(rule.body)):
            if relation not in self.transient.relations:
                self._create(relation)
        found: Plan = [{} for _ in range(max((rank for _, rank in live), default=0) + 1)]
        for rule, rank in live:
            for place, atom in self._places(rule):
                found[rank].setdefault(atom.relation, []).append(
                    (self._statement(rule, place, atom, rows), atom.relation not in self.inputs)
                )
        self.tables.register()
        return found

    def warm(self, plan: Plan) -> None:
        """Lets SQLite compile the statements of a plan, by running them over nothing."""
        for relations in plan:
            for statements in relations.values():
                for statement, window in statements:
                    for text in {statement.text, statement.whole}:
                        self.tables.execute(text, statement.parameters | ({"since": 0, "until": 0} if window else {}))

    def seed(self, relation: str, rows: Iterable[Row]) -> None:
        """Puts rows into a work table."""
        types = self.layout.types[relation]
        encoders = [encoder(type_) for type_ in types]
        stored = [tuple([e(v) if e else v for e, v in zip(encoders, row, strict=True)]) if row else (1,) for row in rows]
        marks = ", ".join("?" for _ in types)
        before = self.tables.connection.total_changes
        self.tables.connection.executemany(f"INSERT OR IGNORE INTO {quote(self.layout.tables[relation])} VALUES ({marks})", stored)
        self.sizes[relation] = self.sizes.get(relation, 0) + self.tables.connection.total_changes - before

    def run(self, plan: Plan, filled: Iterable[str] = (), changed: Collection[str] = ()) -> None:
        """Derives all that follows from the seeds and the filled inputs, and has not been derived since the last `clear`; the tables `changed` have rows."""
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
                    for statement, window in plan[rank][relation]:
                        if statement.needs and not all(map(sizes.get, statement.needs)):
                            continue
                        if window:
                            statement.parameters["since"], statement.parameters["until"] = since, until
                        cursor.execute(statement.whole if statement.without.isdisjoint(changed) else statement.text, statement.parameters)
                        statements += 1
                        target = statement.target
                        found = self._fetch(target, cursor) if target in self.transient.relations else cursor.rowcount
                        if found:
                            self._found(plan, target, found, open_)
                self.tables.watch.reached(self.rounds, self.derived)
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
        for difference in self.transient.differences:
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
            if relation in self.transient.relations:  # a table would have made a float of any number
                decoders = [
                    (0.0).__add__ if type_.kind == "float" else d for type_, d in zip(self.layout.types[relation], decoders, strict=True)
                ]
            plain = not any(decoders) and bool(self.layout.program.relations[relation].attributes)
            self.reading[relation] = f"SELECT * FROM {quote(self.layout.tables[relation])} ", None if plain else decoders
        sql, found = self.reading[relation]
        rows = (
            self.fetched[relation]
            if relation in self.transient.relations
            else self.tables.execute(sql + where if where else sql, parameters)
        )
        if found is None:
            return rows if isinstance(rows, set) else rows.fetchall()
        if not self.layout.program.relations[relation].attributes:
            return [() for _ in rows]
        return list(converted(found, rows))

    def clear(self) -> None:
        """Empties what was filled."""
        for relation, size in self.sizes.items():
            if size and relation not in self.inputs and relation not in self.transient.relations:
                if relation not in self.clearing:
                    self.clearing[relation] = f"DELETE FROM {quote(self.layout.tables[relation])}"
                self.tables.execute(self.clearing[relation])
        self.forget()

    def forget(self) -> None:
        """Everything was emptied in another way."""
        self.sizes, self.seen, self.fetched = {}, {}, {}
        self.derived = self.rounds = 0

    # -- statements

    def _places(self, rule: Rule) -> list[tuple[int, Atom]]:
        """Where rows can come from: atoms of work tables and of inputs."""
        tables = self.sources.keys() - self.inputs
        return [(place, part) for place, part in enumerate(rule.body) if isinstance(part, Atom) and part.relation not in tables]

    def _statement(self, rule: Rule, place: int, first: Atom, rows: Mapping[str, int]) -> Statement:
        ordered = rule.derive(rule.head, body=(first, *(literal for index, literal in enumerate(rule.body) if index != place)))
        window = "" if first.relation in self.inputs else "rowid"
        target = rule.head.relation
        into = None if target in self.transient.relations else quote(self.layout.tables[target])
        statement = compiled(ordered, self.layout, self.tables, rows, self.serve, window=window, into=into)
        needs = (atom.relation for number, atom in self._places(rule) if number != place)
        statement.needs = tuple(dict.fromkeys(needs))
        return statement

    def _create(self, relation: str) -> None:
        if relation in self.made or relation in self.sources:
            return
        columns = self.layout.columns[relation]
        types: tuple[Type, ...] = self.layout.types[relation]
        defined = ", ".join(f"{quote(name)} {AFFINITY[type_.kind]} NOT NULL" for name, type_ in zip(columns, types, strict=True))
        self.tables.create_work(self.layout.tables[relation], f"({defined}, UNIQUE ({', '.join(map(quote, columns))}))")
        self.made.add(relation)

    def serve(self, searches: Iterable[Search]) -> None:
        """Makes the indexes that these searches need and that are not there yet."""
        for search in searches:
            self._create(search.relation)
            serve(self.tables, self.layout, search)
