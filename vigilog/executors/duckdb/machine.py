"""Semi-naive evaluation on DuckDB: one statement for all rules of a relation in each round.

A relation is a table; its recent rows are another, made anew in each round of what the rules give for the recent rows of the round before and the relation does not have yet. A recursion
through one atom at a time of one relation is a single recursive query (`recursion.py`), whose rounds cost microseconds. Rounds of any other recursion cost DuckDB milliseconds, however few rows
they have: while they have few, SQLite takes them (`tail.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from vigilog.core.errors import Finding, ProgramError, Stopped
from vigilog.executors.duckdb.recursion import linear, recursive_query
from vigilog.executors.duckdb.tables import DuckTables, OutOfMemory, Statement, fresh, quote
from vigilog.executors.duckdb.tail import A_CELL, Pace, Tail, needed_by
from vigilog.executors.fixpoint import facts, recursive_positions
from vigilog.executors.watch import TooManyRows
from vigilog.language.parts import is_fact
from vigilog.language.strata import Component
from vigilog.language.syntax import Atom, Rule
from vigilog.planning.best import best_rows, worse_than
from vigilog.planning.select import Choice, Selection, select

PARTS = (5, 17, 67)  # into which a statement is divided whose rows do not fit into memory

Part = Callable[[str], str]  # from columns, as a list, to the condition that a row is in it, with WHERE


class DuckMachine:
    """The tables of one component at a time. See `Machine`."""

    def __init__(self, tables: DuckTables) -> None:
        self.tables, self.layout, self.sizes = tables, tables.layout, tables.sizes
        self.derived = self.undefined = 0
        self.recent: dict[str, int] = {}
        self.tail: Tail | None = None
        self.parameters: dict[str, str | float] = {}
        self.doubtful: set[int] = set()  # rules with functors that may be undefined
        self.parts = 1

    def start(self, component: Component) -> int:
        self.component, self.parameters, self.doubtful, self.parts = component, {}, set(), 1
        for relation, rows in facts(component).items():
            self.tables.insert(relation, rows)
        self.rules = [rule for rule in component.rules if not is_fact(rule)]
        first = [rule for rule in self.rules if not recursive_positions(rule, component)]
        for relation in component.relations:
            self._add(relation, [self._select(rule).text for rule in first if rule.head.relation == relation])
        self.variants = [(rule, position) for rule in self.rules for position in recursive_positions(rule, component)]
        if component.recursive:
            self._begin()
            if not component.best and linear(component, self.layout.program, self.tables.watch) and self._at_once():
                return 0
        return sum(self.sizes[relation] for relation in component.relations)

    def _begin(self) -> None:
        """Before the first round the relation itself is what is recent."""
        self.recent = {relation: self.sizes[relation] for relation in self.component.relations}
        self.turns = {relation: self.layout.tables[relation] for relation in self.component.relations}
        self.names: dict[str, tuple[str, str]] = {}
        taken = set(self.layout.taken)
        for relation in self.component.relations:
            self.names[relation] = (
                fresh(f"{self.layout.tables[relation]} recent", taken),
                fresh(f"{self.layout.tables[relation]} new", taken),
            )
        self.texts: dict[tuple[int, int, str], str] = {}
        self.needed, self.pace = needed_by(self.component), Pace()

    def _at_once(self) -> bool:
        """Runs a linear recursion as one query. If that takes more memory than there is, nothing is done: round after round the rest goes to the disk."""
        (relation,) = self.component.relations
        before = self.sizes[relation]
        target, name = self.layout.tables[relation], self.names[relation][0]
        self.turns[relation] = name
        texts = [self._variant(rule, position) for rule, position in self.variants]
        most = self.tables.watch.max_rows
        try:
            self._run(recursive_query(quote(target), quote(name), [*map(quote, self.layout.columns[relation])], texts, most))
        except OutOfMemory:
            self.turns[relation] = target
            return False
        self.derived += self.tables.count(relation) - before
        if most is not None and self.sizes[relation] > most:
            raise TooManyRows(str(self.component), most)
        return True

    def advance(self) -> int:
        """One round, where it is cheaper."""
        if self.tail is not None and (added := self.tail.advance()) is not None:
            self.derived += added
            for relation in self.component.relations:
                self.sizes[relation] = self.tail.machine.size(relation)
            if self.pace.up(added):
                self._back()
            return added
        if self.tail is not None:
            self._back()
        started = time.perf_counter()
        recent = self._round()
        cells = sum(self.sizes[name] * len(self.layout.columns[name]) for name in self.needed)
        fits = cells * A_CELL <= self.tables.settings.memory
        if fits and self.pace.down(recent, time.perf_counter() - started, sum(self.sizes[name] for name in self.needed)):
            self.tail = Tail(self.tables, self.component, {name: self.turns[name] for name, count in self.recent.items() if count})
            self.doubtful |= {id(rule) for rule in self.rules}  # SQLite does not say which
        return recent

    def _back(self) -> None:
        assert self.tail is not None, "what comes back went away"
        self.recent = self.tail.back({name: names[0] for name, names in self.names.items()})
        self.turns = {name: names[0] for name, names in self.names.items()}
        self.tail = None

    def _round(self) -> int:
        gained: dict[str, tuple[str, int]] = {}
        for relation in self.component.relations:
            texts = [
                self._variant(rule, position)
                for rule, position in self.variants
                if rule.head.relation == relation and self.recent[self._read(rule, position)]
            ]
            if texts:
                target = next(name for name in self.names[relation] if name != self.turns[relation])
                gained[relation] = target, self._unknown(relation, texts, target)
        for relation in self.component.relations:
            target, count = gained.get(relation, ("", 0))
            if count:
                self._run(f"INSERT INTO {quote(self.layout.tables[relation])} SELECT * FROM {quote(target)}")
                self.sizes[relation] += count
                self.turns[relation] = target
            self.recent[relation] = count
        total = sum(count for _, count in gained.values())
        self.derived += total
        return total

    def size(self, relation: str) -> int:
        return self.sizes[relation]

    def finish(self) -> None:
        if self.tail is not None:
            self._back()
        for relation, best in self.component.best.items():
            table, columns = quote(self.layout.tables[relation]), [*map(quote, self.layout.columns[relation])]
            self.sizes[relation] -= self._run(f"DELETE FROM {table} WHERE {worse_than(best, columns, table, table, equal=False)}")
        if self.component.recursive:
            for names in self.names.values():
                for name in names:
                    self.tables.execute(f"DROP TABLE IF EXISTS {quote(name)}")
        for rule in self.rules:
            if id(rule) in self.doubtful:
                chosen = select(rule, self.layout, self.tables.dialect, Choice(rows=self.sizes))
                for text in chosen.undefined_texts:
                    self.undefined += self.tables.run(Statement(text, chosen.parameters))

    # -- statements

    def _read(self, rule: Rule, position: int) -> str:
        read = rule.body[position]
        assert isinstance(read, Atom)
        return read.relation

    def _select(self, rule: Rule, choice: Choice | None = None) -> Selection:
        """A rule as a SELECT, whose parameters no other one of the component has."""
        prefix = f"p{len(self.parameters)}_"
        chosen = select(rule, self.layout, self.tables.dialect, replace(choice or Choice(rows=self.sizes), prefix=prefix))
        self.parameters |= chosen.parameters
        if chosen.undefined:
            self.doubtful.add(id(rule))
        return chosen

    def _variant(self, rule: Rule, position: int) -> str:
        """What a rule gives from the recent rows at one place of its body."""
        read = self._read(rule, position)
        recent, tables = self.turns[read], self.layout.tables
        key = (id(rule), position, recent)
        if key not in self.texts:
            choice = Choice(first=position, table=lambda i, atom: recent if i == position else tables[atom.relation], rows=self.sizes)
            self.texts[key] = self._select(rule, choice).text
        return self.texts[key]

    def _add(self, relation: str, texts: list[str]) -> None:
        """Adds what rules give to a relation that has at most what the program states outright."""
        if not texts:
            return
        before, table, names = self.sizes[relation], quote(self.layout.tables[relation]), self.tables.columns(relation)

        def rows(part: Part) -> str:
            without = f" EXCEPT SELECT * FROM {table}{part(names)}" if before or self.parts > 1 else ""
            return f"SELECT DISTINCT * FROM ({_together(texts)}) AS candidates({names}){part(names)}{without}"

        self._attempt(lambda parts: sum(self._run(f"INSERT INTO {table} {rows(part)}") for part in parts))
        self.derived += self.tables.count(relation) - before

    def _unknown(self, relation: str, texts: list[str], target: str) -> int:
        """Makes a table of what is among the candidates and not in the relation; gives the number of its rows."""
        columns, own, best = (
            [*map(quote, self.layout.columns[relation])],
            quote(self.layout.tables[relation]),
            self.component.best.get(relation),
        )
        names = [f"n{number}" for number in range(len(columns))]
        keys = range(len(columns)) if best is None else best.keys(len(columns))
        given = ", ".join(f"fresh.{name} AS {column}" for name, column in zip(names, columns, strict=True))
        same = [f"known.{columns[place]} = fresh.{names[place]}" for place in keys]
        if best is not None:
            same.append(f"known.{columns[best.column]} {'<=' if best.op == 'min' else '>='} fresh.{names[best.column]}")

        def rows(part: Part) -> str:
            shown = ", ".join(names)
            candidates = f"SELECT {shown} FROM ({_together(texts)}) AS candidates({shown}){part(', '.join(names[place] for place in keys))}"
            distinct = candidates.replace("SELECT", "SELECT DISTINCT", 1) if best is None else best_rows(candidates, best, len(columns))
            held = f"(SELECT * FROM {own}{part(', '.join(columns[place] for place in keys))})" if self.parts > 1 else own
            return f"SELECT {given} FROM ({distinct}) AS fresh WHERE NOT EXISTS (SELECT 1 FROM {held} AS known WHERE {' AND '.join(same)})"

        def made(parts: Sequence[Part]) -> int:
            if len(parts) == 1:
                return self._run(f"CREATE OR REPLACE TABLE {quote(target)} AS {rows(parts[0])}")
            self.tables.execute(f"CREATE OR REPLACE TABLE {quote(target)} ({self.tables.columns(relation, typed=True)})")
            return sum(self._run(f"INSERT INTO {quote(target)} {rows(part)}") for part in parts)

        return self._attempt(made)

    def _attempt(self, made: Callable[[Sequence[Part]], int]) -> int:
        """Makes rows; what needs more memory than there is, in parts, by the hash of the columns that tell rows apart. The joins are made anew for each part."""
        while True:
            try:
                return made([_part(number, self.parts) for number in range(self.parts)])
            except OutOfMemory:
                more = [number for number in PARTS if number > self.parts]
                if not more:
                    raise
                self.parts = more[0]
                self.tables.execute("SET threads = 1")  # each has tables of its own

    def _run(self, sql: str) -> int:
        """Runs a statement over rules. One that DuckDB cannot take is refused with the place of the first rule."""
        try:
            return self.tables.run(Statement(sql, self.parameters))
        except OutOfMemory:
            raise
        except Stopped as reason:
            if reason.code != "limit":
                raise
            raise ProgramError([Finding("limit", reason.message, self.rules[0].source.span)], self.layout.program.texts) from None


def _together(texts: Sequence[str]) -> str:
    return " UNION ALL ".join(f"SELECT * FROM ({text})" for text in texts)


def _part(number: int, parts: int) -> Part:
    return lambda columns: f" WHERE hash({columns or 0}) % {parts} = {number}" if parts > 1 else ""
