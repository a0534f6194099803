"""Keeps a stored relation true by counting: a row is there as long as it has a proof.

What the bindings of its rules gain and lose (`rewriting/maintenance/counting.py`) is found without asking for other proofs, and nothing of them is kept. What is kept, beside each row, is how many bindings of all rules
give it. A row whose number comes to nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from vigilog.executors.embedded.demand import DemandMachine, Plan
from vigilog.executors.embedded.tables import Tables, among, quote
from vigilog.language.strata import Component
from vigilog.language.syntax import Atom, Program, Rule, atoms
from vigilog.planning.select import Choice, select
from vigilog.rewriting.maintenance.counting import bindings
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.maintenance.states import Change
from vigilog.rewriting.naming import Naming

NUMBER = quote("number of proofs")  # no column of a program is called that


class Counter:
    """The numbers of proofs of one relation that is not recursive; everything it reads is a table."""

    def __init__(
        self, program: Program, component: Component, tables: Tables, rows: Mapping[str, int], work: Callable[[str, str], str]
    ) -> None:
        (self.relation,) = component.relations
        self.tables, self.layout = tables, tables.layout
        parts = list(bindings(component.rules, Naming(program.relations)))
        declarations = (*program.declarations, *(part.declaration for part in parts))
        split = replace(program, declarations=declarations, rules=tuple(part.rule for part in parts))
        self.heads = [part.head for part in parts]
        self.external: External = external(split)
        self.states = {name: self.external.states[name] for name in self.external.tables}
        physical: dict[str, tuple[str, str]] = {}
        for name, state in self.states.items():
            physical |= {
                state.new: (name, self.layout.tables[name]),
                state.lost: (name, work(name, "minus")),
                state.gained: (name, work(name, "plus")),
            }
        inputs = [name for state in self.states.values() for name in (state.lost, state.gained)]
        self.machine = DemandMachine(self.external.program, self.external.levels, tables, physical, inputs, self.states)
        self.rows = rows
        self.reads = {atom.relation for rule in component.rules for atom, _ in atoms(rule.body)}
        self.current: Plan = []
        self.given: dict[Rule, tuple[str, int]] = {}  # rules from changed bindings to rows, and what each counts
        for head in self.heads:
            atom = head.body[0]
            assert isinstance(atom, Atom), "a relation of bindings"
            state = self.external.states[atom.relation]
            for name, number in ((state.gained, 1), (state.lost, -1)):
                self.given[head.derive(head.head, body=(replace(atom, relation=name),))] = name, number
        self.columns = ", ".join(map(quote, self.layout.columns[self.relation]))
        self.derived = self.rounds = 0
        self.minus, self.plus, self.counts, self.touched = (
            quote(work(self.relation, kind)) for kind in ("minus", "plus", "counts", "touched")
        )
        for kind in ("minus", "plus"):
            tables.create(self.relation, work(self.relation, kind))
        self.own = quote(self.layout.tables[self.relation])
        tables.create_work(work(self.relation, "touched"), f"({self.columns}, {NUMBER} INTEGER NOT NULL)")
        if not tables.has(work(self.relation, "counts")):
            tables.execute(
                f"CREATE TABLE {self.counts} ({self.columns}, {NUMBER} INTEGER NOT NULL, PRIMARY KEY ({self.columns})) WITHOUT ROWID"
            )
            self._count_all(split)
            tables.execute(f"DELETE FROM {self.touched}")

    def _count_all(self, split: Program) -> None:
        """Counts the proofs of all rows there are."""
        layout = type(self.layout)(split)
        for rule, head in zip(split.rules, self.heads, strict=True):
            chosen = select(rule, layout, self.tables.dialect, Choice(rows=self.rows))
            self.tables.serve(search for search in chosen.searches)
            inner = chosen.text
            table = quote(layout.tables[rule.head.relation])
            names = ", ".join(map(quote, layout.columns[rule.head.relation]))
            self.tables.execute(f"CREATE TEMP TABLE {table} AS SELECT DISTINCT {names} FROM ({inner})", chosen.parameters)
            given = select(head, layout, self.tables.dialect, Choice(first=0))
            sql = given.text
            self.tables.execute(f"INSERT INTO {self.touched} SELECT *, 1 FROM ({sql})", given.parameters)
            self.tables.execute(f"DROP TABLE {table}")
        self._add_up()

    def prepare(self, changes: Mapping[str, Change]) -> None:
        """Makes the statements for changes that are to come, with tables and indexes, so it is no part of a transaction."""
        read = {name: change for name, change in changes.items() if name in self.reads}
        if read:
            self.current = self.machine.plan(self._filled(read), read, self.rows)
            for given in self.given:
                self.machine.selection(given)

    def maintain(self, changes: Mapping[str, Change]) -> dict[str, Change]:
        """Brings the relation and its numbers up to date; gives its change."""
        self.machine.run(self.current, self._filled(changes))
        change = self._count()
        self.derived, self.rounds = self.machine.derived, self.machine.rounds
        self.machine.clear()
        return {self.relation: change} if change.lost or change.gained else {}

    def forget(self) -> None:
        """A transaction was taken back."""
        self.machine.forget()

    def _count(self) -> Change:
        """Counts what came and what went; the net change of the relation is in its tables of changes."""
        execute, minus, plus = self.tables.execute, self.minus, self.plus
        touched = 0
        for given, (name, number) in self.given.items():
            if self.machine.sizes.get(name):
                sql, parameters = self.machine.selection(given)
                touched += execute(f"INSERT INTO {self.touched} SELECT *, {number} FROM ({sql})", parameters).rowcount
        if not touched:
            return Change(lost=False, gained=False)
        self._add_up()
        columns = [quote(column) for column in self.layout.columns[self.relation]]
        same = " AND ".join(f"o.{column} = t.{column}" for column in columns)
        rows = f"SELECT * FROM (SELECT DISTINCT {self.columns} FROM {self.touched}) AS t"
        there = f"EXISTS (SELECT 1 FROM {self.own} AS o WHERE {same})"
        proved = f"EXISTS (SELECT 1 FROM {self.counts} AS o WHERE {same} AND {NUMBER} > 0)"
        lost = execute(f"INSERT INTO {minus} {rows} WHERE NOT {proved} AND {there}").rowcount
        gained = execute(f"INSERT INTO {plus} {rows} WHERE {proved} AND NOT {there}").rowcount
        execute(f"DELETE FROM {self.counts} WHERE {NUMBER} = 0 AND {among(columns, self.touched)}")
        if lost:
            execute(f"DELETE FROM {self.own} WHERE {among(columns, minus)}")
        if gained:
            execute(f"INSERT INTO {self.own} SELECT * FROM {plus}")
        execute(f"DELETE FROM {self.touched}")
        return Change(lost > 0, gained > 0)

    def _add_up(self) -> None:
        self.tables.execute(
            f"INSERT INTO {self.counts} SELECT {self.columns}, sum({NUMBER}) FROM {self.touched} WHERE true GROUP BY {self.columns} "
            f"ON CONFLICT DO UPDATE SET {NUMBER} = {NUMBER} + excluded.{NUMBER}"
        )

    def _filled(self, changes: Mapping[str, Change]) -> list[str]:
        known = {name: change for name, change in changes.items() if name in self.states}
        lost = [self.states[name].lost for name, change in known.items() if change.lost]
        return lost + [self.states[name].gained for name, change in known.items() if change.gained]
