"""Evaluates a program on SQLite."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vigilog.core.errors import Finding, ProgramError, Stopped
from vigilog.core.extras import DUCKDB
from vigilog.core.values import Row
from vigilog.executors.embedded import bulk
from vigilog.executors.embedded.bulk import patient, worthwhile
from vigilog.executors.embedded.many import put
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.executors.evaluation import Stats, total, written
from vigilog.executors.fixpoint import facts, fixpoint, recursive_positions
from vigilog.executors.watch import Outgrown, Watch
from vigilog.files.place import Place
from vigilog.language.parts import is_fact
from vigilog.language.program import Program
from vigilog.language.strata import Component, components
from vigilog.language.syntax import Atom, Negation, Rule
from vigilog.planning.best import worse_than
from vigilog.planning.dialect import Parameters
from vigilog.planning.layout import FileLayout, Layout
from vigilog.planning.order import Search
from vigilog.planning.select import Choice, select


class EmbeddedEvaluation:
    """The tables of an evaluated program."""

    def __init__(
        self,
        program: Program,
        sources: Mapping[str, Iterable[Row]],
        watch: Watch,
        *,
        resident: bool = False,
        connection: sqlite3.Connection | None = None,
        kept: Collection[str] = (),
        functional: Mapping[str, int] | None = None,
        patience: float | None = None,
    ) -> None:
        """Evaluates a plain program (see `rewriting.passes`) over the given rows; `resident` tables are there to be changed afterwards.

        If it takes longer than `patience` seconds, beside reading, it raises Unfinished. With a `connection` the tables are in a file; those of the relations in `kept` are there already. In relations that are `functional` so many of the last columns follow from the others.
        """
        started = time.perf_counter()
        self.program, self.watch = program, watch
        layout = (FileLayout if connection else Layout)(program, functional=functional)
        self.tables = Tables(layout, watch, resident=resident, connection=connection)
        self.kept = kept
        self.stays = patience is None and (resident or connection is not None)  # whether the tables are there to be changed afterwards
        self.stats = Stats("embedded")
        try:
            self._load(sources)
            self._evaluate(patience)
        except Unfinished:
            raise
        except BaseException:
            self.close()
            raise
        self.stats.statements += self.tables.statements
        self.stats.undefined += self.tables.undefined
        self.stats.ms = (time.perf_counter() - started) * 1000

    def _evaluate(self, patience: float | None) -> None:
        machine = TableMachine(self.tables)
        left = [one for one in components(self.program) if not (self.kept and all(relation in self.kept for relation in one.relations))]
        if self.stays and DUCKDB.installed:
            if worthwhile(self.tables, left):
                if self._fill(left):
                    return
            else:
                patience = bulk.PATIENCE
        number = 0
        try:
            with patient(self.tables, patience):
                for number, component in enumerate(left):  # noqa: B007  # which is asked for below
                    self.stats.rounds += fixpoint(component, machine, self.watch, self.program.limits)
        except Outgrown:
            if not self.stays:
                raise Unfinished(self, left[number:]) from None
            machine.forget()
            if not self._fill(left[number:]):
                for component in left[number:]:
                    for relation in component.relations:
                        self.tables.execute(f"DELETE FROM {quote(self.tables.layout.tables[relation])}")
                    self.stats.rounds += fixpoint(component, machine, self.watch, self.program.limits)
        finally:
            self.stats.derived += machine.derived

    def _fill(self, left: Sequence[Component]) -> bool:
        """Has DuckDB derive what is left, if it has the memory; SQLite needs little, and takes long."""
        from vigilog.executors.duckdb.filling import fill
        from vigilog.executors.duckdb.tables import OutOfMemory

        try:
            self.stats = replace(total([fill(self.tables, left), self.stats]), engine=self.stats.engine)
        except OutOfMemory:
            return False
        return True

    def _load(self, sources: Mapping[str, Iterable[Row]]) -> None:
        for relation in self.program.relations:
            self.tables.create(relation)
            if relation in sources and relation not in self.kept:
                self.watch.begin(f"reading {relation}")
                self.tables.insert(relation, self.watch.counted(sources[relation]))

    def count(self, relation: str) -> int:
        return self.tables.count(relation)

    def rows(self, relation: str, doing: str = "reading") -> Iterator[Row]:
        if self.watch.report is None:
            return self.tables.rows(relation)
        number = self.count(relation)
        self.watch.begin(f"{doing} {relation}", number)
        return self.watch.counted(self.tables.rows(relation), number)

    def write(self, place: Place, path: Path | None) -> None:
        written(place, path, self.rows(place.relation, "writing"))

    def close(self) -> None:
        self.tables.close()


class Unfinished(Exception):
    """An evaluation that another evaluator had better go on with: its tables hold what was read, and of the components that are left some of the rows."""

    def __init__(self, begun: EmbeddedEvaluation, left: Sequence[Component]) -> None:
        super().__init__()
        self.begun, self.left = begun, left


@dataclass(frozen=True)
class _Statement:
    sql: str
    parameters: Parameters


class TableMachine:
    """The tables of one component at a time.

    A recursive relation has, beside its own table, two that take turns: one holds the recent rows, the other takes those that are new.
    In the first round the relation itself is what is recent, so nothing is copied.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables, self.layout = tables, tables.layout
        self.sizes = {relation: tables.count(relation) for relation in self.layout.program.relations}
        self.derived = 0
        self.variants: list[tuple[Rule, int]] = []
        self.turns: dict[str, tuple[str, str]] = {}  # the table of recent rows, the table that takes new ones
        self.recent: dict[str, int] = {}
        self.grown: dict[str, int] = {}  # by so many rows since the recursion began, of which statements need not know
        self.first_round = False
        self.prepared: dict[tuple[int, int, str, str], _Statement] = {}

    def start(self, component: Component) -> int:
        self.component, self.grown = component, dict.fromkeys(component.relations, 0)
        for relation, rows in facts(component).items():
            self.tables.insert(relation, rows)
        self.rules = [rule for rule in component.rules if not is_fact(rule)]
        first = [rule for rule in self.rules if not recursive_positions(rule, component)]
        for number, rule in enumerate(first):
            if number:
                self.tables.watch.part(number, len(first), "rule")
            self._insert(rule)
        for relation in component.best:
            self._settle(relation, self.layout.tables[relation])
        self._count()
        if component.recursive:
            self._prepare()
        return sum(self.sizes[relation] for relation in component.relations)

    def resume(self, component: Component) -> None:
        """Goes on with a recursion that was begun elsewhere; `take` says what is recent."""
        self.component, self.grown = component, dict.fromkeys(component.relations, 0)
        self.rules = [rule for rule in component.rules if not is_fact(rule)]
        self._count()
        self._prepare()
        self.recent, self.first_round = dict.fromkeys(component.relations, 0), False

    def take(self, relation: str, stored: Iterable[Sequence[Sequence[object]]]) -> None:
        """Takes recent rows as they are stored, many at a time, in columns."""
        into = f"INSERT INTO {quote(self.turns[relation][0])}"
        for columns in stored:
            put(self.tables.connection, into, len(columns), zip(*columns, strict=True))
            self.recent[relation] += len(columns[0])

    def advance(self) -> int:
        fresh = dict.fromkeys(self.component.relations, 0)
        for rule, position in self.variants:
            read = rule.body[position]
            assert isinstance(read, Atom)
            if self.recent[read.relation]:
                statement = self._statement(rule, position)
                fresh[rule.head.relation] += self._run(rule, statement)
        passing, self.tables.passing = self.tables.passing, False  # what follows is done as a whole
        for relation, count in fresh.items():
            recent, new = self.turns[relation]
            if count and relation in self.component.best:
                fresh[relation] = count = count - self._settle(relation, new)
            if self.recent[relation] and not self.first_round:
                self.tables.execute(f"DELETE FROM {quote(recent)}")
            if count:
                self.tables.execute(f"INSERT INTO {quote(self.layout.tables[relation])} SELECT * FROM {quote(new)}")
                self.grown[relation] += count
            self.turns[relation] = (new, recent)
        self.tables.passing = passing
        self.recent, self.first_round = fresh, False
        total = sum(fresh.values())
        self.derived += total
        return total

    def size(self, relation: str) -> int:
        return self.sizes[relation] + self.grown[relation]

    def finish(self) -> None:
        if self.component.recursive:
            for tables in self.turns.values():
                for table in tables:
                    self.tables.execute(f"DROP TABLE {quote(table)}")
            for relation in self.component.best:
                self._settle(relation, self.layout.tables[relation])
            self._count()

    def forget(self) -> None:
        """Gives up the recursion that is under way, if one is."""
        for table in (table for tables in self.turns.values() for table in tables):
            self.tables.execute(f"DROP TABLE IF EXISTS {quote(table)}")
        self.turns = {}

    def _settle(self, relation: str, table: str) -> int:
        """Deletes rows of a table for rows of a relation that are not better than others there, or in the relation; gives their number."""
        own, best = self.layout.tables[relation], self.component.best[relation]
        deleted, columns = 0, [*map(quote, self.layout.columns[relation])]
        for other in dict.fromkeys((own, table)):
            worse = worse_than(best, columns, quote(table), quote(other), equal=other != table)
            deleted += self.tables.execute(f"DELETE FROM {quote(table)} WHERE {worse}").rowcount
        return deleted

    def _count(self) -> None:
        for relation in self.component.relations:
            self.sizes[relation] = self.tables.count(relation)

    # -- statements

    def _insert(self, rule: Rule) -> None:
        chosen = select(rule, self.layout, self.tables.dialect, Choice(rows=self.sizes))
        self.tables.serve(chosen.searches)
        target = quote(self.layout.tables[rule.head.relation])
        sql = chosen.text
        self.derived += self._run(rule, _Statement(f"INSERT OR IGNORE INTO {target} {sql}", chosen.parameters))

    def _run(self, rule: Rule, statement: _Statement) -> int:
        """Runs a rule's statement; gives the number of rows it added. A rule that SQLite cannot take is refused with its place."""
        try:
            return self.tables.execute(statement.sql, statement.parameters).rowcount
        except Stopped as reason:
            if reason.code != "limit":
                raise
            raise ProgramError([Finding("limit", reason.message, rule.source.span)], self.layout.program.texts) from None

    def _prepare(self) -> None:
        """Makes the tables that take turns, and the indexes for every way to read recent rows."""
        self.turns = {}
        taken = set(self.layout.taken)
        for relation in self.component.relations:
            names = []
            for turn in ("recent", "new"):
                name = f"{self.layout.tables[relation]}_{turn}"
                while name.lower() in taken:
                    name += "_"
                taken.add(name.lower())
                self.tables.create(relation, name)
                names.append(name)
            self.turns[relation] = (names[0], names[1])
        for relation, best in self.component.best.items():
            self.tables.serve([Search(relation, frozenset(best.keys(len(self.layout.columns[relation]))))])
        self.recent = {relation: self.sizes[relation] for relation in self.component.relations}
        self.first_round = True
        self.variants = [(rule, position) for rule in self.rules for position in recursive_positions(rule, self.component)]
        self.prepared = {}

    def _statement(self, rule: Rule, position: int) -> _Statement:
        """Derives what a rule gives from the recent rows at one place of its body and is not known yet."""
        read = rule.body[position]
        assert isinstance(read, Atom)
        recent = self.layout.tables[read.relation] if self.first_round else self.turns[read.relation][0]
        target = self.turns[rule.head.relation][1]
        key = (id(rule), position, recent, target)
        if key not in self.prepared:
            unknown = rule.derive(rule.head, body=(*rule.body, Negation(rule.head)))
            tables = self.layout.tables

            def table(index: int, atom: Atom) -> str:
                return recent if index == position else tables[atom.relation]

            chosen = select(unknown, self.layout, self.tables.dialect, Choice(first=position, table=table, rows=self.sizes))
            self.tables.serve(chosen.searches)
            sql = chosen.text
            self.prepared[key] = _Statement(f"INSERT OR IGNORE INTO {quote(target)} {sql}", chosen.parameters)
        return self.prepared[key]
