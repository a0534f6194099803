"""Runs rules on demand on SQLite, with work in proportion to what they derive.

Each relation of the rules that is not a table of the database is a work table, whose rows are numbered as they come. A rule has read a work table up to some number;
what came since is what it reads next. Rules of the lowest rank that have something to read go first (`rewriting/demand/` says why). A rule is one prepared statement
for each place of its body that rows can come from; nothing is run for what is empty, and only what was filled is cleared. What no rule reads needs no table: its rows are fetched as
they are found, and what one such relation has and another has not is told apart in Python.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from vigilog.core.errors import Stopped
from vigilog.core.rows import converted
from vigilog.core.values import Row, Type
from vigilog.executors.embedded.concerned import MANY, Concerned, wanted_constant
from vigilog.executors.embedded.statements import Statement, TableSource, WorkLayout, compiled, serve
from vigilog.executors.embedded.tables import Tables, TooLarge, quote
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Rule
from vigilog.planning.indexes import needed_indexes
from vigilog.planning.order import Search
from vigilog.planning.sqlite import AFFINITY, decoder, encoder
from vigilog.rewriting.demand.demand import ranks
from vigilog.rewriting.demand.transient import transient

FETCHED = 10_000  # rows that are fetched before it is looked whether they are too many
ROW_BYTES = 100  # that a row of no texts takes in this process, about


class OverBudget(Stopped):
    """More rows were derived than allowed."""


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """What is to be done when rows come to relations."""

    ranks: list[dict[str, list[tuple[Statement, bool]]]]  # of each relation: the statements, and whether each reads only the new rows
    readers: dict[str, list[int]]  # the ranks in which a relation is read
    concerned: dict[tuple[int, str], Concerned]  # by rank and relation, where statements are found by constants


class DemandMachine:
    """The work tables of some rules on demand.

    `sources` says which relations are tables of the database. Of these, `inputs` are what rules start from. Of the rows of `told` nothing is wanted but to know them.
    """

    def __init__(
        self,
        program: Program,
        levels: Mapping[str, int],
        tables: Tables,
        sources: Mapping[str, TableSource],
        inputs: Iterable[str] = (),
        told: Iterable[str] = (),
        *,
        aside: bool = False,
    ) -> None:
        self.tables, self.sources, self.inputs, self.aside = tables, sources, set(inputs), aside
        self.layout = WorkLayout(program, tables, sources, tables.label())
        self.told = frozenset(told)
        self.transient = transient(program.rules, self.told)
        self.differences: dict[str, list[int]] = {}  # by the relation of which rows are told
        for number, difference in enumerate(self.transient.differences):
            self.differences.setdefault(difference.one, []).append(number)
        self.rules = list(zip(self.transient.rules, ranks(self.transient.rules, levels), strict=True))
        self.fetched: dict[str, set[tuple[Any, ...]]] = {}  # what came to relations without a table
        self.made: set[str] = set()  # relations with a work table
        self.sizes: dict[str, int] = {}
        self.seen: dict[RoundPlan, list[dict[str, int]]] = {}  # for each rank, how much of each relation has been read
        self.derived = self.rounds = 0
        self.budget: int | None = None
        self.trace: list[tuple[str, int]] | None = None  # how far each relation had come, step after step, if wanted
        self.reading: dict[str, tuple[str, list[Any] | None]] = {}
        self.clearing: dict[str, str] = {}

    def plan(self, start: Iterable[str], rows: Mapping[str, int]) -> RoundPlan:
        """What is to be done for rows of each relation, by rank, when rows come to the relations in `start`. It makes tables and indexes, so it is no part of a transaction."""
        reached = set(start)
        live: list[tuple[Rule, int]] = []
        waiting = list(self.rules)
        while ready := [entry for entry in waiting if all(atom.relation in reached for _, atom in self._places(entry[0]))]:
            waiting = [entry for entry in waiting if all(entry is not other for other in ready)]
            live += ready
            reached |= {rule.head.relation for rule, _ in ready}
        by_rank: list[dict[str, list[tuple[Statement, bool]]]] = [{} for _ in range(max((rank for _, rank in live), default=0) + 1)]
        readers: dict[str, list[int]] = {}
        concerned: dict[tuple[int, str], Concerned] = {}
        searches: list[Search] = []
        for rule, rank in live:
            for place, atom in self._places(rule):
                statement = self._statement(rule, place, atom, rows, searches), atom.relation not in self.inputs
                if atom.relation not in by_rank[rank]:
                    by_rank[rank][atom.relation] = []
                    readers.setdefault(atom.relation, []).append(rank)
                by_rank[rank][atom.relation].append(statement)
                if atom.relation in self.inputs:
                    concerned.setdefault((rank, atom.relation), Concerned()).add(statement, self._wanted(rule, place, atom))
        for relation in reached.union(atom.relation for rule, _ in live for atom, _ in atoms(rule.body)):
            if relation not in self.transient.relations:
                self._create(relation, [search.columns for search in searches if search.relation == relation])
        self.serve(searches)
        self.tables.register()
        return RoundPlan(by_rank, readers, {place: self._asking(place[1], index) for place, index in concerned.items() if index.many})

    def _wanted(self, rule: Rule, place: int, atom: Atom) -> tuple[int, Any] | None:
        """The column of an input that must have a constant for a rule to find something, and the constant as tables have it."""
        wanted = wanted_constant(rule.derive(rule.head, body=(atom, *rule.body[:place], *rule.body[place + 1 :])))
        if wanted is None:
            return None
        encode = encoder(self.layout.types[atom.relation][wanted[0]])
        return wanted[0], encode(wanted[1].value) if encode else wanted[1].value

    def _asking(self, relation: str, index: Concerned) -> Concerned:
        table, columns = quote(self.layout.tables[relation]), self.layout.columns[relation]
        index.texts = {column: f"SELECT DISTINCT {quote(columns[column])} FROM {table}" for column in index.by_constant}
        return index

    def _for_rows(self, index: Concerned) -> list[tuple[Statement, bool]]:
        """The statements that the rows of an input concern."""
        values = ((column, [value for (value,) in self.tables.cursor.execute(text)]) for column, text in index.texts.items())
        return list(index.among(values))

    def warm(self, plan: RoundPlan) -> None:
        """Lets SQLite compile the statements of a plan, by running them over nothing; and those that empty tables, and that read what is wanted."""
        self.tables.compile(*self.clearing.values())
        for relation in self.made.intersection(self.told):
            self.tables.execute(self._reading(relation)[0])
        for by_relation in plan.ranks:
            for statements in by_relation.values():
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

    def run(
        self, plan: RoundPlan, filled: Iterable[str] = (), changed: Collection[str] = (), needed: Collection[str] | None = None
    ) -> None:
        """Derives all that follows from the seeds and the filled inputs, and has not been derived since the last `clear`; of what is not `needed` nothing. The tables `changed` have rows."""
        sizes, execute, watch, transient = self.sizes, self.tables.cursor.execute, self.tables.watch, self.transient.relations
        statements = 0
        for relation in filled:
            sizes[relation] = 1
        seen, concerned = self.seen.setdefault(plan, [{} for _ in plan.ranks]), plan.concerned
        open_ = [
            {name for name in sizes.keys() & by_relation.keys() if sizes[name] > before.get(name, 0)}
            for by_relation, before in zip(plan.ranks, seen, strict=True)
        ]
        try:
            while any(open_):
                rank = next(number for number, relations in enumerate(open_) if relations)
                self.rounds += 1
                read, batch = seen[rank], open_[rank]
                open_[rank] = set()
                for relation, since, until in [(name, read.get(name, 0), sizes[name]) for name in batch]:
                    read[relation] = until
                    index = concerned.get((rank, relation)) if concerned else None
                    for statement, window in plan.ranks[rank][relation] if index is None else self._for_rows(index):
                        if statement.needs and not all(map(sizes.get, statement.needs)):
                            continue
                        target = statement.target
                        if needed is not None and target not in needed:
                            continue
                        if window:
                            statement.parameters["since"], statement.parameters["until"] = since, until
                        rows = execute(statement.now(changed), statement.parameters)
                        statements += 1
                        number = self._fetch(target, rows) if target in transient else rows.rowcount
                        if number:
                            self._note(target, number)
                            for reader in plan.readers.get(target, ()):
                                open_[reader].add(target)
                watch.reached(self.rounds, self.derived)
                self._check(self.derived)
            self._compare()
        except BaseException as reason:
            self.tables.let_go()
            raise self.tables.translated(reason) if isinstance(reason, (sqlite3.OperationalError, sqlite3.DataError)) else reason from None
        finally:
            self.tables.statements += statements

    def _fetch(self, target: str, rows: Iterator[tuple[Any, ...]]) -> int:
        """Takes rows of a relation without a table, but not many more than the budget allows; gives how many are new."""
        fetched = self.fetched.setdefault(target, set())
        before = len(fetched)
        if self.budget is None:
            fetched.update(rows)
            return len(fetched) - before
        rows = rows if self.tables.bounded is None else _weighed(rows, self.tables.bounded)
        while some := list(islice(rows, FETCHED)):
            fetched.update(some)
            self._check(self.derived + len(fetched) - before)
        return len(fetched) - before

    def _check(self, derived: int) -> None:
        if self.budget is not None and derived > self.budget:
            raise OverBudget(f"more than {self.budget} rows were derived on demand", "budget")

    def _compare(self) -> None:
        """Tells apart what one relation without a table has and another has not."""
        if not self.fetched:
            return
        differences = self.transient.differences
        if len(differences) > MANY:
            places = {place: None for name in self.fetched for place in self.differences.get(name, ())}
            differences = [differences[place] for place in places]
        for difference in differences:
            if rows := self.fetched.get(difference.one, set()) - self.fetched.get(difference.other, set()):
                self.fetched[difference.told] = rows
                self.sizes[difference.told] = len(rows)
                self.derived += len(rows)

    def _note(self, relation: str, number: int) -> None:
        """So many rows have come."""
        self.sizes[relation] = size = self.sizes.get(relation, 0) + number
        self.derived += number
        if self.trace is not None:
            self.trace.append((relation, size))

    def rows(self, relation: str, where: str = "", parameters: tuple[Any, ...] = ()) -> Collection[Row]:
        """The rows of a work table, or of a relation without one, as values."""
        if not self.sizes.get(relation):
            return []
        sql, decoders = self._reading(relation)
        rows = (
            self.fetched[relation]
            if relation in self.transient.relations
            else self.tables.execute(sql + where if where else sql, parameters)
        )
        if decoders is None:
            return rows if isinstance(rows, set) else rows.fetchall()
        if not self.layout.program.relations[relation].attributes:
            return [() for _ in rows]
        return list(converted(decoders, rows))

    def _reading(self, relation: str) -> tuple[str, list[Any] | None]:
        """How a relation is read: a statement, and what makes values of cells, if they are not stored as they are."""
        if relation not in self.reading:
            decoders = [decoder(type_) for type_ in self.layout.types[relation]]
            if relation in self.transient.relations:  # a table would have made a float of any number
                decoders = [
                    (0.0).__add__ if type_.kind == "float" else d for type_, d in zip(self.layout.types[relation], decoders, strict=True)
                ]
            plain = not any(decoders) and bool(self.layout.program.relations[relation].attributes)
            self.reading[relation] = f"SELECT * FROM {quote(self.layout.tables[relation])} ", None if plain else decoders
        return self.reading[relation]

    def clear(self) -> None:
        """Empties what was filled."""
        for relation, size in self.sizes.items():
            if size and relation not in self.inputs and relation not in self.transient.relations:
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

    def _statement(self, rule: Rule, place: int, first: Atom, rows: Mapping[str, int], searches: list[Search]) -> Statement:
        ordered = rule.derive(rule.head, body=(first, *(literal for index, literal in enumerate(rule.body) if index != place)))
        window = "" if first.relation in self.inputs else "rowid"
        target = rule.head.relation
        into = None if target in self.transient.relations else quote(self.layout.tables[target])
        statement = compiled(ordered, self.layout, self.tables, rows, searches.extend, window=window, into=into)
        needs = (atom.relation for number, atom in self._places(rule) if number != place)
        statement.needs = tuple(dict.fromkeys(needs))
        return statement

    def _create(self, relation: str, searched: Sequence[frozenset[int]] = ()) -> None:
        """Makes a work table, unless it is there, with indexes for searches by some columns: one that is made later lets all statements be compiled anew."""
        if relation in self.made or relation in self.sources:
            return
        columns = self.layout.columns[relation]
        types: tuple[Type, ...] = self.layout.types[relation]
        defined = ", ".join(f"{quote(name)} {AFFINITY[type_.kind]} NOT NULL" for name, type_ in zip(columns, types, strict=True))
        whole, table = tuple(range(len(columns))), self.layout.tables[relation]
        orders = [whole, *needed_indexes(searched, [whole])]
        keys = [", ".join(quote(columns[column]) for column in dict.fromkeys((*order, *whole))) for order in orders]
        self.tables.create_work(table, f"({defined}, {', '.join(f'UNIQUE ({key})' for key in keys)})", aside=self.aside)
        self.tables.work_orders[table] = orders
        self.made.add(relation)
        self.clearing[relation] = f"DELETE FROM {quote(self.layout.tables[relation])}"

    def serve(self, searches: Iterable[Search]) -> None:
        """Makes the indexes that these searches need and that are not there yet."""
        for search in searches:
            self._create(search.relation)
            serve(self.tables, self.layout, search)


def _weighed(rows: Iterator[tuple[Any, ...]], most: int) -> Iterator[tuple[Any, ...]]:
    """The same rows, of which all together take no more than some bytes."""
    size = 0
    for row in rows:
        size += ROW_BYTES + sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if size > most:
            raise TooLarge(most)
        yield row
