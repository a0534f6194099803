"""Keeps a stored relation true by counting: a row is there as long as it has a proof.

What the bindings of its rules gain and lose (`rewriting/maintenance/counting.py`) is found without asking for other proofs, and nothing of them is kept. What is kept, in a relation beside this one, is how many bindings
of all rules give each row. A row whose number comes to nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.statements import WorkTables, in_both_states
from vigilog.executors.embedded.tables import Tables, among, quote
from vigilog.language.program import Program
from vigilog.language.syntax import Atom
from vigilog.planning.dialect import Parameters
from vigilog.planning.select import Choice, select
from vigilog.rewriting.maintenance.counting import bindings
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.plan import ComponentPlan
from vigilog.rewriting.maintenance.states import Direction
from vigilog.rewriting.naming import Naming

TURN = quote("turn of proofs")  # by how much the number of proofs of a row changes; no column of a program is called that


class Counter:
    """The numbers of proofs of one relation that is not recursive; everything it reads is a table. They are the last column of the relation beside it."""

    def __init__(
        self, plan: ComponentPlan, program: Program, tables: Tables, rows: Mapping[str, int], work: WorkTables, filled: set[str]
    ) -> None:
        (self.relation,) = plan.component.relations
        self.tables, self.layout, self.rows, self.work, self.filled = tables, tables.layout, rows, work, filled
        parts = list(bindings(plan.component.rules, Naming(program.relations)))
        declarations = (*program.declarations, *(part.declaration for part in parts))
        self.split = replace(program, declarations=declarations, rules=tuple(part.rule for part in parts))
        self.heads = [part.head for part in parts]
        self.external = external(self.split)
        self.states = {name: self.external.states[name] for name in plan.reads}
        self.inputs = [name for state in self.states.values() for name in (state.lost, state.gained)]
        sources = in_both_states(self.states, tables, work)
        self.machine = DemandMachine(self.external.program, self.external.levels, tables, sources, self.inputs)
        self.plan = self.machine.plan(self.inputs, rows)
        for kind in ("minus", "plus"):
            tables.create(self.relation, work(self.relation, kind))
        self.columns = [*map(quote, self.layout.columns[self.relation])]
        tables.create_work(work(self.relation, "touched"), f"({', '.join(self.columns)}, {TURN} INTEGER NOT NULL)")
        self.own, self.touched = quote(self.layout.tables[self.relation]), quote(work(self.relation, "touched"))
        self.given, self.beside = list(self._given()), plan.beside
        self._prepare()
        self.derived = self.rounds = 0

    def _given(self) -> Iterator[tuple[str, str, Parameters]]:
        """For the changes of each rule's bindings the statement that says by how much the number of proofs of a row changes."""
        for head in self.heads:
            atom = head.body[0]
            assert isinstance(atom, Atom), "a relation of bindings"
            state = self.external.states[atom.relation]
            for name, turn in ((state.gained, 1), (state.lost, -1)):
                if name in self.machine.made:  # others never change
                    rule = head.derive(head.head, body=(replace(atom, relation=name),))
                    chosen = select(rule, self.machine.layout, self.tables.dialect, Choice(first=0))
                    yield name, f"INSERT INTO {self.touched} SELECT *, {turn} FROM ({chosen.text})", chosen.parameters

    def _prepare(self) -> None:
        """The statements that count."""
        *theirs, number = map(quote, self.layout.columns[self.beside])
        counts, minus, plus = quote(self.layout.tables[self.beside]), *(quote(self.work(self.relation, kind)) for kind in ("minus", "plus"))
        same = " AND ".join(f"o.{column} = t.{mine}" for column, mine in zip(theirs, self.columns, strict=True))
        rows = f"SELECT * FROM (SELECT DISTINCT {', '.join(self.columns)} FROM {self.touched}) AS t"
        there = f"EXISTS (SELECT 1 FROM {self.own} AS o WHERE {' AND '.join(f'o.{column} = t.{column}' for column in self.columns)})"
        proved = f"EXISTS (SELECT 1 FROM {counts} AS o WHERE {same} AND {number} > 0)"
        renamed = ", ".join(f"{mine} AS {column}" for column, mine in zip(theirs, self.columns, strict=True))
        grouped = ", ".join(self.columns)
        self.add_up = (
            f"INSERT INTO {counts} SELECT {grouped}, sum({TURN}) FROM {self.touched} WHERE true GROUP BY {grouped} "
            f"ON CONFLICT DO UPDATE SET {number} = {number} + excluded.{number}"
        )
        self.lose = f"INSERT INTO {minus} {rows} WHERE NOT {proved} AND {there}"
        self.gain = f"INSERT INTO {plus} {rows} WHERE {proved} AND NOT {there}"
        self.drop = f"DELETE FROM {counts} WHERE {number} = 0 AND {among(theirs, f'(SELECT {renamed} FROM {self.touched})')}"
        self.put_in, self.clear = f"INSERT INTO {self.own} SELECT * FROM {plus}", f"DELETE FROM {self.touched}"

    def count_all(self) -> None:
        """Counts the proofs of all rows there are."""
        layout = type(self.layout)(self.split)
        for rule, head in zip(self.split.rules, self.heads, strict=True):
            chosen = select(rule, layout, self.tables.dialect, Choice(rows=self.rows))
            self.tables.serve(chosen.searches)
            table, columns = quote(layout.tables[rule.head.relation]), ", ".join(map(quote, layout.columns[rule.head.relation]))
            self.tables.execute(f"CREATE TEMP TABLE {table} AS SELECT DISTINCT {columns} FROM ({chosen.text})", chosen.parameters)
            given = select(head, layout, self.tables.dialect, Choice(first=0))
            self.tables.execute(f"INSERT INTO {self.touched} SELECT *, 1 FROM ({given.text})", given.parameters)
            self.tables.execute(f"DROP TABLE {table}")
        self.tables.execute(self.add_up)
        self.tables.execute(self.clear)

    def maintain(self) -> dict[str, Direction]:
        """Brings the relation and its numbers up to date; gives its change."""
        self.machine.run(self.plan, [name for name in self.inputs if self.machine.sources[name].table in self.filled], self.filled)
        change = self._count()
        self.derived, self.rounds = self.machine.derived, self.machine.rounds
        self.machine.clear()
        for kind, changed in (("minus", change.lost), ("plus", change.gained)):
            if changed:
                self.filled.add(self.work(self.relation, kind))
        return {self.relation: change} if change.lost or change.gained else {}

    def forget(self) -> None:
        """A transaction was taken back."""
        self.machine.forget()

    def warm(self) -> None:
        """Lets SQLite compile the statements, by running them over nothing."""
        self.machine.warm(self.plan)
        for _, sql, parameters in self.given:
            self.tables.execute(sql, parameters)
        for sql in (self.add_up, self.lose, self.gain, self.drop, self.put_in, self.clear):
            self.tables.execute(sql)

    def _count(self) -> Direction:
        """Counts what came and what went; the net change of the relation is in its tables of changes."""
        execute = self.tables.execute
        touched = sum(execute(sql, parameters).rowcount for name, sql, parameters in self.given if self.machine.sizes.get(name))
        if not touched:
            return Direction(lost=False, gained=False)
        execute(self.add_up)
        lost, gained = execute(self.lose).rowcount, execute(self.gain).rowcount
        execute(self.drop)
        if gained:
            execute(self.put_in)
        execute(self.clear)
        return Direction(lost > 0, gained > 0)
