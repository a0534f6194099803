"""Finds what a transaction changes in the views, on SQLite, with work in proportion to the change.

The base tables are changed first. Then come the components that are stored, from what is below to what is above, each by its own way (`stored.py`, `counted.py`): its net change is
what the next ones read. Components that read nothing that changed are not touched. What is not stored comes last, all together (`demand.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.executors.embedded.counted import Counter
from vigilog.executors.embedded.demand import DemandMachine, Plan
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.stored import StoredComponent
from vigilog.executors.embedded.tables import FEW, Tables, among, quote
from vigilog.executors.fixpoint import fixpoint
from vigilog.executors.views import Settle
from vigilog.language.strata import Component, components
from vigilog.language.syntax import Program, is_fact
from vigilog.rewriting.maintenance.external import External
from vigilog.rewriting.maintenance.states import Change
from vigilog.rewriting.maintenance.variants import reads

CHANGE = ("minus", "plus")


@dataclass(frozen=True)
class _BaseStatements:
    """How rows come into the tables of changes, and from there, or one by one, into the base table or out of it."""

    minus: str
    plus: str
    delete: str
    insert: str
    delete_all: str
    insert_all: str


class Maintainer:
    """The tables of an evaluated program, kept true under changes of its base relations."""

    def __init__(self, program: Program, tables: Tables, views: External | None = None, counted: Collection[str] = ()) -> None:
        """Maintains the derived relations of `program`, which are stored, and finds the changes of `views`, which are not."""
        self.program, self.tables, self.layout = program, tables, tables.layout
        self.components = [_without_facts(component) for component in components(program)]
        self.components = [component for component in self.components if component.rules]
        self.reads = [set().union(*(reads(rule) for rule in component.rules)) for component in self.components]
        self.changed: dict[str, Change] = {}
        self.label = tables.label()
        self.base: dict[str, _BaseStatements] = {}
        self.clearing: dict[str, tuple[str, str]] = {}
        self.prepared: dict[
            object, tuple[dict[str, Change], Plan | None]
        ] = {}  # what each kind of change can reach, and how it is followed
        self.derived = self.rounds = 0
        if not tables.durable:
            tables.execute("PRAGMA journal_mode=MEMORY")  # a refused or hypothetical transaction is rolled back
        self.sizes = {relation: tables.count(relation) for relation in program.relations}
        self.keepers: list[StoredComponent | Counter] = [
            Counter(program, component, tables, self.sizes, self._name)
            if component.relations[0] in counted and not component.recursive
            else StoredComponent(program, component, tables, self.sizes, self._name)
            for component in self.components
        ]
        derived = {rule.head.relation for rule in program.rules}
        for relation in program.relations.keys() - derived:
            for kind in CHANGE:
                tables.create(relation, self._name(relation, kind))
        self.views = None if views is None else ExternalViews(views, tables, self._name)

    def apply(
        self, changes: Mapping[str, Delta], wanted: Iterable[str], settle: Settle, *, keep: bool = True, budget: int | None = None
    ) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the wanted relations that changed, after `settle` has been told them in the same transaction.

        Without `keep` everything is as before afterwards. More rows than the budget are not derived on demand: then it raises OverBudget, and nothing has changed.
        """
        kind = tuple((name, bool(delta.minus), bool(delta.plus)) for name, delta in changes.items())
        if kind not in self.prepared:
            reachable = self._reachable(changes)
            self.prepared[kind] = reachable, self.views.plan(reachable, self.sizes) if self.views else None
        reachable, plan = self.prepared[kind]
        for keeper in self.keepers:
            keeper.prepare(reachable)
        try:
            with self.tables.transaction(keep=keep):
                self._change(changes)
                found = {name: self._delta(name) for name in wanted if name in self.changed}
                if self.views and plan is not None:
                    found |= self.views.changes(plan, self.changed, wanted, budget)
                    self.derived, self.rounds = self.derived + self.views.machine.derived, self.rounds + self.views.machine.rounds
                    self.views.machine.clear()
                self._clear_changes()
                settle(found)
        except BaseException:
            if self.views:
                self.views.machine.forget()
            for keeper in self.keepers:
                keeper.forget()
            raise
        return found

    def recompute(
        self, changes: Mapping[str, Delta], wanted: Sequence[str], views: Program, settle: Settle, *, keep: bool = True
    ) -> dict[str, Delta]:
        """Does what `apply` does, but evaluates views that are not stored anew, before and after, and compares."""
        machine = TableMachine(self.tables)
        before = self._whole(views, wanted, machine)
        with self.tables.transaction(keep=keep):
            self._change(changes)
            found = {name: self._delta(name) for name in wanted if name in self.changed}
            after = self._whole(views, wanted, machine)
            self._clear_changes()
            found |= {name: delta for name in before if (delta := between(before[name], after[name]))}
            settle(found)
        self.derived += machine.derived
        return found

    def _whole(self, views: Program, wanted: Sequence[str], machine: TableMachine) -> dict[str, set[Row]]:
        """All rows of views that are not stored."""
        made = components(views)
        for component in made:
            self.rounds += fixpoint(component, machine, self.tables.watch)
        found = {name: set(self.tables.rows(name)) for name in wanted if any(name in component.relations for component in made)}
        for component in made:
            for relation in component.relations:
                self.tables.execute(f"DELETE FROM {quote(self.layout.tables[relation])}")
        return found

    def _change(self, changes: Mapping[str, Delta]) -> None:
        """Changes the base relations and all that is stored; the net changes are in the tables of changes."""
        self.derived, self.rounds, self.changed = 0, 0, {}
        for relation, delta in changes.items():
            self._apply_base(relation, delta)
        for keeper, read in zip(self.keepers, self.reads, strict=True):
            if not read.isdisjoint(self.changed):
                self.changed |= keeper.maintain({name: change for name, change in self.changed.items() if name in read})
                self.derived, self.rounds = self.derived + keeper.derived, self.rounds + keeper.rounds

    def _clear_changes(self) -> None:
        for relation, change in self.changed.items():
            minus, plus = self._clearing(relation)
            if change.lost:
                self.tables.execute(minus)
            if change.gained:
                self.tables.execute(plus)

    def _clearing(self, relation: str) -> tuple[str, str]:
        """The statements that empty a relation's tables of changes."""
        if relation not in self.clearing:
            minus, plus = (f"DELETE FROM {quote(self._name(relation, kind))}" for kind in CHANGE)
            self.clearing[relation] = minus, plus
        return self.clearing[relation]

    def _reachable(self, changes: Mapping[str, Delta]) -> dict[str, Change]:
        """What can change, at most, when base relations change in this way."""
        found = {name: Change(bool(delta.minus), bool(delta.plus)) for name, delta in changes.items()}
        for component, read in zip(self.components, self.reads, strict=True):
            if not read.isdisjoint(found):
                found |= dict.fromkeys(component.relations, Change(True, True))
        return found

    def _apply_base(self, relation: str, delta: Delta) -> None:
        """Changes a base table, and puts the change into its tables of changes; sorted, because rows that lie side by side change faster."""
        if relation not in self.base:
            self.base[relation] = self._base_statements(relation)
        statements, many = self.base[relation], self.tables.connection.executemany
        for rows, changed, one, all_ in (
            (delta.minus, statements.minus, statements.delete, statements.delete_all),
            (delta.plus, statements.plus, statements.insert, statements.insert_all),
        ):
            if rows:
                stored = sorted(self.tables.encoded(relation, rows))
                many(changed, stored)
                if len(rows) <= FEW:
                    many(one, stored)
                else:
                    self.tables.execute(all_)
        self.changed[relation] = Change(bool(delta.minus), bool(delta.plus))

    def _base_statements(self, relation: str) -> _BaseStatements:
        marks = ", ".join("?" for _ in self.layout.columns[relation])
        table, names = quote(self.layout.tables[relation]), [*map(quote, self.layout.columns[relation])]
        columns = ", ".join(names)
        minus, plus = (quote(self._name(relation, kind)) for kind in CHANGE)
        return _BaseStatements(
            minus=f"INSERT INTO {minus} VALUES ({marks})",
            plus=f"INSERT INTO {plus} VALUES ({marks})",
            delete=f"DELETE FROM {table} WHERE ({columns}) = ({marks})",
            insert=f"INSERT INTO {table} VALUES ({marks})",
            delete_all=f"DELETE FROM {table} WHERE {among(names, minus)}",
            insert_all=f"INSERT INTO {table} SELECT {columns} FROM {plus}",
        )

    def _delta(self, relation: str) -> Delta:
        change = self.changed[relation]
        plus = self.tables.rows_of(relation, self._name(relation, "plus")) if change.gained else ()
        minus = self.tables.rows_of(relation, self._name(relation, "minus")) if change.lost else ()
        return Delta(frozenset(plus), frozenset(minus))

    def _name(self, relation: str, kind: str) -> str:
        return f"{self.layout.tables[relation]} {kind}" + ("" if kind == "counts" else f" {self.label}")


class ExternalViews:
    """Views that are not stored: their changes are found on demand."""

    def __init__(self, external: External, tables: Tables, work: Callable[[str, str], str]) -> None:
        self.external = external
        states = {name: external.states[name] for name in external.tables}
        physical: dict[str, tuple[str, str]] = {}
        for name, state in states.items():
            physical |= {
                state.new: (name, tables.layout.tables[name]),
                state.lost: (name, work(name, "minus")),
                state.gained: (name, work(name, "plus")),
            }
        inputs = [name for state in states.values() for name in (state.lost, state.gained)]
        told = [name for state in external.states.values() for name in (state.lost, state.gained)]
        self.machine = DemandMachine(external.program, external.levels, tables, physical, inputs, states, told)

    def plan(self, changes: Mapping[str, Change], rows: Mapping[str, int]) -> Plan:
        return self.machine.plan(self._filled(changes), changes, rows)

    def changes(self, plan: Plan, changes: Mapping[str, Change], wanted: Iterable[str], budget: int | None) -> dict[str, Delta]:
        """The net changes of the views that changed."""
        self.machine.budget = budget
        self.machine.run(plan, self._filled(changes))
        found, sizes, rows = {}, self.machine.sizes, self.machine.rows
        for name in wanted:
            state = self.external.states[name]
            if (state.gained in sizes or state.lost in sizes) and name not in self.external.tables:
                found[name] = Delta(frozenset(rows(state.gained)), frozenset(rows(state.lost)))
        return found

    def _filled(self, changes: Mapping[str, Change]) -> list[str]:
        states = self.external.states
        lost = [states[name].lost for name, change in changes.items() if change.lost and name in states]
        return lost + [states[name].gained for name, change in changes.items() if change.gained and name in states]


def _without_facts(component: Component) -> Component:
    return Component(component.relations, tuple(rule for rule in component.rules if not is_fact(rule)), component.recursive)
