"""Keeps the stored relations of one component true: delete and rederive, with work in proportion to the change.

1. Rows that may have lost a proof are found (`losing`), for a recursive component to a fixpoint. When they are many, another proof is looked for first (`prove.py`).
2. They are taken out, and those that still have a proof (`proving`) put back.
3. Rows with a new proof are found (`gaining`), to a fixpoint, and put in.

What was found is in work tables whose rows are numbered as they come, so that a round reads what the last one found, and nothing is copied. `minus` and `plus` hold the net change in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from vigilog.executors.embedded.prove import Prover
from vigilog.executors.embedded.tables import Tables, among, quote
from vigilog.executors.fixpoint import recursive_positions
from vigilog.language.strata import Component
from vigilog.language.syntax import Atom, Program, Rule, atoms
from vigilog.planning.select import Choice, select
from vigilog.rewriting.maintenance.states import Change
from vigilog.rewriting.maintenance.variants import CANDIDATE, GAINED, LOST, NEW, RECENT, Variant, gaining, losing, proving

DOUBTFUL, MOST_DOUBTFUL = 64, 100_000  # from so many rows in a round, another proof is looked for before they are deleted
Runs = list[tuple[str, dict[str, Any], str]]  # a statement, its parameters, the relation it finds rows of


@dataclass
class _Search:
    """Statements to begin with, and for each relation those that follow its recent rows."""

    first: Runs = field(default_factory=list)
    then: dict[str, Runs] = field(default_factory=dict)


class StoredComponent:
    """The relations of a component. `work(relation, kind)` names the tables for what comes and goes."""

    def __init__(
        self, program: Program, component: Component, tables: Tables, sizes: Mapping[str, int], work: Callable[[str, str], str]
    ) -> None:
        self.component, self.tables, self.sizes, self.work = component, tables, sizes, work
        self.own = {relation: quote(tables.layout.tables[relation]) for relation in component.relations}
        self.columns = {relation: ", ".join(map(quote, tables.layout.columns[relation])) for relation in component.relations}
        self.prover = Prover(program, component, tables, sizes) if component.recursive else None
        self.plans: dict[object, tuple[_Search, _Search]] = {}
        self.proofs: _Search | None = None
        self.linear = all(len(recursive_positions(rule, component)) <= 1 for rule in component.rules)
        self.put_in = {
            (relation, kind): f"INSERT INTO {self.own[relation]} SELECT {self.columns[relation]} FROM {self._table(relation, kind)} "
            f"WHERE {tables.numbering(relation)} > ?"
            for relation in component.relations
            for kind in ("back", "plus")
        }
        self.doubtful = DOUBTFUL
        self.derived = self.rounds = 0
        for relation in component.relations:
            for kind in ("minus", "plus", "back"):
                tables.create_numbered(relation, work(relation, kind))

    def maintain(self, changes: Mapping[str, Change]) -> dict[str, Change]:
        """Brings the relations up to date with changes of what they read; gives their own."""
        self.derived = self.rounds = 0
        lose, gain = self._plan(changes)
        gone = self._run(lose, "minus", self._doubt) if lose.first else {}
        if self.prover:
            self.prover.clear()
        for relation in gone:
            self._delete(self.own[relation], relation, "minus")
        back = self._derive(self._proofs(gone.keys()), "back") if gone else {}
        for relation, number in back.items():
            gone[relation] -= number
            self._delete(self._table(relation, "minus"), relation, "back")
            self._clear(relation, "back")
        came = self._derive(gain, "plus") if gain.first else {}
        for relation in gone.keys() & came.keys():
            self._cancel(relation, gone, came)
        found = {relation: Change(gone.get(relation, 0) > 0, came.get(relation, 0) > 0) for relation in gone.keys() | came.keys()}
        return {relation: change for relation, change in found.items() if change.lost or change.gained}

    def prepare(self, changes: Mapping[str, Change]) -> None:
        """Nothing needs to be made before a transaction."""

    def forget(self) -> None:
        """A transaction was taken back."""
        if self.prover:
            self.prover.machine.forget()
            self.prover.used = False

    # -- rounds

    def _run(self, search: _Search, kind: str, settle: Callable[[str, int, int], int]) -> dict[str, int]:
        """Finds rows to a fixpoint, in the tables of a kind; gives their numbers. `settle` is told each window of new rows, and gives how many of them stay."""
        total: dict[str, int] = {}
        windows = self._round(search.first, {}, total, settle)
        while windows and search.then:
            runs = [(run, window) for relation, window in windows.items() for run in search.then.get(relation, ())]
            windows = self._round([run for run, _ in runs], {id(run): window for run, window in runs}, total, settle)
        return {relation: number for relation, number in total.items() if number}

    def _round(
        self, runs: Runs, windows: Mapping[int, tuple[int, int]], total: dict[str, int], settle: Callable[[str, int, int], int]
    ) -> dict[str, tuple[int, int]]:
        """Runs statements, each over its window; gives the windows of what they found."""
        fresh: dict[str, int] = {}
        execute = self.tables.execute
        for run in runs:
            sql, parameters, target = run
            if windows:
                parameters["since"], parameters["until"] = windows[id(run)]
            number = execute(sql, parameters).rowcount
            if number:
                fresh[target] = fresh.get(target, 0) + number
        self.rounds += 1
        found = {}
        for relation, number in fresh.items():
            self.derived += number
            since = total.get(relation, 0)
            kept = settle(relation, since, number)
            total[relation] = since + kept
            if kept:
                found[relation] = (since, since + kept)
        return found

    def _derive(self, search: _Search, kind: str) -> dict[str, int]:
        """Finds rows to a fixpoint, and puts them into the relations: at the end, unless a rule reads them beside the recent ones."""

        def settle(relation: str, since: int, number: int) -> int:
            if not self.linear:
                self.tables.execute(self.put_in[relation, kind], (since,))
            return number

        found = self._run(search, kind, settle)
        for relation in found if self.linear else ():
            self.tables.execute(self.put_in[relation, kind], (0,))
        return found

    def _doubt(self, relation: str, since: int, number: int) -> int:
        """Rows that have another proof are not lost; looked for only when there are many."""
        if self.prover is None or not (number >= self.doubtful or self.prover.used):
            return number
        table, place = self._table(relation, "minus"), self.tables.numbering(relation)
        recent = f"(SELECT {self.columns[relation]} FROM {table} WHERE {place} > {since})"
        if number >= self.doubtful:
            before = self.prover.machine.derived
            self.prover.prove(relation, recent, number)
            self.derived += self.prover.machine.derived - before
        same = " AND ".join(f"k.c{i} = {table}.{quote(column)}" for i, column in enumerate(self.tables.layout.columns[relation]))
        proved = f"{place} > {since} AND EXISTS (SELECT 1 FROM {self.prover.proved(relation)} AS k WHERE {same})"
        kept = number - self.tables.execute(f"DELETE FROM {table} WHERE {proved}").rowcount
        if number >= self.doubtful:  # where other proofs are rare, they are looked for less often
            self.doubtful = (
                min(2 * self.doubtful, MOST_DOUBTFUL) if kept > 0.9 * number else max(self.doubtful // 2, min(self.doubtful, DOUBTFUL))
            )
        if 0 < kept < number:  # the rows that stay are numbered anew, without gaps
            listed = self.columns[relation]
            rows = self.tables.execute(f"SELECT {listed} FROM {table} WHERE {place} > {since}").fetchall()
            self.tables.execute(f"DELETE FROM {table} WHERE {place} > {since}")
            self.tables.connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in rows[0])})", rows)
        return kept

    # -- net changes

    def _cancel(self, relation: str, gone: dict[str, int], came: dict[str, int]) -> None:
        """What went and came again has not changed."""
        minus, plus, back = (self._table(relation, kind) for kind in ("minus", "plus", "back"))
        listed = self.columns[relation]
        number = self.tables.execute(f"INSERT INTO {back} SELECT {listed} FROM {plus} INTERSECT SELECT {listed} FROM {minus}").rowcount
        if number:
            self._delete(minus, relation, "back")
            self._delete(plus, relation, "back")
            self._clear(relation, "back")
            gone[relation] -= number
            came[relation] -= number

    def _delete(self, table: str, relation: str, kind: str) -> None:
        """Deletes from a table the rows of a work table."""
        columns = [*map(quote, self.tables.layout.columns[relation])]
        self.tables.execute(f"DELETE FROM {table} WHERE {among(columns, self._table(relation, kind))}")

    def _clear(self, relation: str, kind: str) -> None:
        self.tables.execute(f"DELETE FROM {self._table(relation, kind)}")

    def _table(self, relation: str, kind: str) -> str:
        return quote(self.work(relation, kind))

    # -- statements

    def _plan(self, changes: Mapping[str, Change]) -> tuple[_Search, _Search]:
        """How to find what is lost and what is gained, for relations that changed in certain ways; made once for each such combination."""
        key = tuple(sorted((name, change.lost, change.gained) for name, change in changes.items()))
        if key not in self.plans:
            lose, gain = _Search(), _Search()
            for rule in self.component.rules:
                for search, find, kind in ((lose, losing, "minus"), (gain, gaining, "plus")):
                    search.first += [self._statement(rule, variant, kind) for variant in find(rule, changes)]
                    for place in recursive_positions(rule, self.component):
                        read = rule.body[place]
                        assert isinstance(read, Atom), "a place of an atom"
                        search.then.setdefault(read.relation, []).extend(self._statement(rule, v, kind) for v in find(rule, changes, place))
            self.plans[key] = lose, gain
        return self.plans[key]

    def _proofs(self, relations: Collection[str]) -> _Search:
        """How to find rows among those gone that still have a proof."""
        if self.proofs is None:
            self.proofs = _Search()
            for rule in self.component.rules:
                self.proofs.first.append(self._statement(rule, proving(rule), "back"))
                for place in recursive_positions(rule, self.component):
                    read = rule.body[place]
                    assert isinstance(read, Atom), "a place of an atom"
                    self.proofs.then.setdefault(read.relation, []).append(self._statement(rule, proving(rule, place), "back"))
        return _Search([run for run in self.proofs.first if run[2] in relations], self.proofs.then)

    def _statement(self, rule: Rule, variant: Variant, kind: str) -> tuple[str, dict[str, Any], str]:
        tables = {LOST: "minus", GAINED: "plus", RECENT: kind, CANDIDATE: "minus"}

        def table(index: int, atom: Atom) -> str:
            source = variant.sources[index]
            return self.tables.layout.tables[atom.relation] if source == NEW else self.work(atom.relation, tables[source])

        read = variant.rule.body[variant.first]
        recent = variant.sources[variant.first] == RECENT and isinstance(read, Atom)
        window = self.tables.numbering(read.relation) if recent and isinstance(read, Atom) else ""
        distinct = {atom.relation: self.tables.distinct(atom.relation) for atom, _ in atoms(variant.rule.body)}
        choice = Choice(variant.first, table, self.sizes, distinct, window=window)
        chosen = select(variant.rule, self.tables.layout, self.tables.dialect, choice)
        self.tables.serve(chosen.searches)
        sql = chosen.text
        return f"INSERT OR IGNORE INTO {quote(self.work(rule.head.relation, kind))} {sql}", dict(chosen.parameters), rule.head.relation
