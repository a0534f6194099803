"""Finds what a transaction changes in the views, on SQLite, with work in proportion to the change.

Changes of base tables come first. Then come the components that are stored, from what is below to what is above, each by its keeper (`keepers.py`): its net change is what the next ones read. Components that read nothing
that changed are not touched. What is not stored comes last, all together (`demand.py`). Until then, tables hold the rows of both states (`statements.py`); in the end what is lost is deleted.

All statements, tables and indexes are made when a database is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.executors.embedded.counted import Counter
from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.keepers import KEEPERS
from vigilog.executors.embedded.statements import Work, in_both_states
from vigilog.executors.embedded.tables import FEW, Tables, among, quote
from vigilog.executors.fixpoint import fixpoint
from vigilog.executors.views import Settle
from vigilog.language.strata import components
from vigilog.rewriting.maintenance.external import External
from vigilog.rewriting.maintenance.plan import Plan
from vigilog.rewriting.maintenance.states import Change

CHANGE = ("minus", "plus")


@dataclass(frozen=True)
class _Statements:
    """How rows come into a relation's tables of changes, into the relation and out of it, one by one or from there; and how the tables of changes are emptied."""

    minus: str
    plus: str
    delete: str
    insert: str
    delete_all: str
    insert_all: str
    clear: tuple[str, str]


class Maintainer:
    """The tables of an evaluated program, kept true under changes of its base relations."""

    def __init__(self, plan: Plan, tables: Tables, kept: Iterable[str] = ()) -> None:
        """Maintains what the plan keeps, and finds the changes of what it does not. Of what is kept beside relations, `kept` is there already."""
        self.plan, self.tables, self.layout = plan, tables, tables.layout
        self.label = tables.label()
        self.changed: dict[str, Change] = {}
        self.filled: set[str] = set()  # the tables of changes that have rows
        self.few: dict[str, list[tuple[Any, ...]]] = {}  # rows to be deleted one by one
        self.derived = self.rounds = 0
        if not tables.durable:
            tables.execute("PRAGMA journal_mode=MEMORY")  # a refused or hypothetical transaction is rolled back
        self.sizes = {relation: tables.count(relation) for relation in plan.needed.relations}
        for relation in plan.needed.relations.keys() - plan.kept.keys():
            for kind in CHANGE:
                tables.create(relation, self._name(relation, kind))
        self.keepers = [
            KEEPERS[part.strategy.keeper](part, plan.stored, tables, self.sizes, self._name, self.filled) for part in plan.components
        ]
        self.reads = [part.reads for part in plan.components]
        self.views = None if plan.external is None else ExternalViews(plan.external, tables, self._name, self.sizes)
        self.statements = {relation: self._statements(relation) for relation in plan.needed.relations}
        for keeper in self.keepers:
            if isinstance(keeper, Counter) and keeper.beside not in kept:
                keeper.count_all()
        self._warm()

    def _warm(self) -> None:
        """Lets SQLite compile all statements, so that no transaction waits for that."""
        for keeper in self.keepers:
            keeper.warm()
        if self.views:
            self.views.machine.warm(self.views.plan)
        for statements in self.statements.values():
            for sql in (statements.minus, statements.plus, statements.delete, statements.insert):
                self.tables.connection.executemany(sql, ())
            for sql in (statements.delete_all, statements.insert_all, *statements.clear):
                self.tables.execute(sql)

    def apply(
        self, changes: Mapping[str, Delta], wanted: Iterable[str], settle: Settle, *, keep: bool = True, budget: int | None = None
    ) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the wanted relations that changed, after `settle` has been told them in the same transaction.

        Without `keep` everything is as before afterwards. More rows than the budget are not derived on demand: then it raises OverBudget, and nothing has changed.
        """
        try:
            with self.tables.transaction(keep=keep):
                self._change(changes)
                found = {name: self._delta(name) for name in wanted if name in self.changed}
                if self.views:
                    found |= self.views.changes(self.filled, wanted, budget)
                    self.derived, self.rounds = self.derived + self.views.machine.derived, self.rounds + self.views.machine.rounds
                    self.views.machine.clear()
                self._end()
                settle(found)
        except BaseException:
            self.filled.clear()
            self.few.clear()
            if self.views:
                self.views.machine.forget()
            for keeper in self.keepers:
                keeper.forget()
            raise
        return found

    def recompute(self, changes: Mapping[str, Delta], wanted: Sequence[str], settle: Settle, *, keep: bool = True) -> dict[str, Delta]:
        """Does what `apply` does, but evaluates views that are not stored anew, before and after, and compares."""
        machine = TableMachine(self.tables)
        before = self._whole(wanted, machine)
        with self.tables.transaction(keep=keep):
            self._change(changes)
            found = {name: self._delta(name) for name in wanted if name in self.changed}
            self._end()
            after = self._whole(wanted, machine)
            found |= {name: delta for name in before if (delta := between(before[name], after[name]))}
            self.derived += machine.derived
            settle(found)
        return found

    def _whole(self, wanted: Sequence[str], machine: TableMachine) -> dict[str, set[Row]]:
        """All rows of views that are not stored."""
        made = components(self.plan.derived)
        for component in made:
            self.rounds += fixpoint(component, machine, self.tables.watch)
        found = {name: set(self.tables.rows(name)) for name in wanted if any(name in component.relations for component in made)}
        for component in made:
            for relation in component.relations:
                self.tables.execute(f"DELETE FROM {quote(self.layout.tables[relation])}")
        return found

    def _change(self, changes: Mapping[str, Delta]) -> None:
        """Changes the base relations and all that is stored; the net changes are in the tables of changes, and what is lost still in its relation."""
        self.derived, self.rounds, self.changed = 0, 0, {}
        for relation, delta in changes.items():
            self._apply_base(relation, delta)
        for keeper, read in zip(self.keepers, self.reads, strict=True):
            if not read.isdisjoint(self.changed):
                self.changed |= keeper.maintain()
                self.derived, self.rounds = self.derived + keeper.derived, self.rounds + keeper.rounds

    def _end(self) -> None:
        """Deletes what is lost, and empties the tables of changes."""
        for relation, change in self.changed.items():
            statements = self.statements[relation]
            if change.lost:
                if relation in self.few:
                    self.tables.connection.executemany(statements.delete, self.few.pop(relation))
                else:
                    self.tables.execute(statements.delete_all)
                self.tables.execute(statements.clear[0])
            if change.gained:
                self.tables.execute(statements.clear[1])
        self.filled.clear()

    def _apply_base(self, relation: str, delta: Delta) -> None:
        """Puts a change into the tables of changes, and what comes into the relation; sorted, because rows that lie side by side change faster."""
        statements, many = self.statements[relation], self.tables.connection.executemany
        if delta.minus:
            stored = sorted(self.tables.encoded(relation, delta.minus))
            many(statements.minus, stored)
            if len(stored) <= FEW:
                self.few[relation] = stored
            self.filled.add(self._name(relation, "minus"))
        if delta.plus:
            stored = sorted(self.tables.encoded(relation, delta.plus))
            many(statements.plus, stored)
            if len(stored) <= FEW:
                many(statements.insert, stored)
            else:
                self.tables.execute(statements.insert_all)
            self.filled.add(self._name(relation, "plus"))
        self.changed[relation] = Change(bool(delta.minus), bool(delta.plus))

    def _statements(self, relation: str) -> _Statements:
        marks = ", ".join("?" for _ in self.layout.columns[relation])
        table, names = quote(self.layout.tables[relation]), [*map(quote, self.layout.columns[relation])]
        columns = ", ".join(names)
        minus, plus = (quote(self._name(relation, kind)) for kind in CHANGE)
        return _Statements(
            minus=f"INSERT INTO {minus} VALUES ({marks})",
            plus=f"INSERT INTO {plus} VALUES ({marks})",
            delete=f"DELETE FROM {table} WHERE ({columns}) = ({marks})",
            insert=f"INSERT INTO {table} VALUES ({marks})",
            delete_all=f"DELETE FROM {table} WHERE {among(names, minus)}",
            insert_all=f"INSERT INTO {table} SELECT {columns} FROM {plus}",
            clear=(f"DELETE FROM {minus}", f"DELETE FROM {plus}"),
        )

    def _delta(self, relation: str) -> Delta:
        change = self.changed[relation]
        plus = self.tables.rows_of(relation, self._name(relation, "plus")) if change.gained else ()
        minus = self.tables.rows_of(relation, self._name(relation, "minus")) if change.lost else ()
        return Delta(frozenset(plus), frozenset(minus))

    def _name(self, relation: str, kind: str) -> str:
        return f"{self.layout.tables[relation]} {kind} {self.label}"


class ExternalViews:
    """Views that are not stored: their changes are found on demand."""

    def __init__(self, external: External, tables: Tables, work: Work, rows: Mapping[str, int]) -> None:
        self.external = external
        states = {name: external.states[name] for name in external.tables}
        self.inputs = {
            name: work(relation, kind)
            for relation, state in states.items()
            for name, kind in ((state.lost, "minus"), (state.gained, "plus"))
        }
        told = [name for state in external.states.values() for name in (state.lost, state.gained)]
        sources = in_both_states(states, tables, work)
        self.machine = DemandMachine(external.program, external.levels, tables, sources, self.inputs, told)
        self.plan = self.machine.plan(self.inputs, rows)

    def changes(self, filled: set[str], wanted: Iterable[str], budget: int | None) -> dict[str, Delta]:
        """The net changes of the views that changed."""
        self.machine.budget = budget
        self.machine.run(self.plan, [name for name, table in self.inputs.items() if table in filled], filled)
        found, sizes, rows = {}, self.machine.sizes, self.machine.rows
        for name in wanted:
            state = self.external.states[name]
            if (state.gained in sizes or state.lost in sizes) and name not in self.external.tables:
                found[name] = Delta(frozenset(rows(state.gained)), frozenset(rows(state.lost)))
        return found
