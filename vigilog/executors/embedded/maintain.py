"""Keeps stored views true: delete-and-rederive on SQLite, with work in proportion to the change.

A transaction changes the base tables first. Then, component after component, from what is below it to what is above:

1. rows that may have lost a proof are found (`losing`), for a recursive component to a fixpoint;
2. they are taken out, and those that still have a proof (`proving`) put back;
3. rows with a new proof are found (`gaining`), to a fixpoint, and put in;
4. what is gone in the end, and what is there that was not, is the component's net change, which the next components read.

Components that read nothing that changed are not touched; statements for empty changes are not run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.executors.embedded.counted import Counter
from vigilog.executors.embedded.demand import DemandMachine, Plan
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.prove import Prover
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.executors.fixpoint import fixpoint, is_fact, recursive_positions
from vigilog.language.strata import Component, components
from vigilog.language.syntax import Atom, Program, Rule
from vigilog.planning.select import Choice, select
from vigilog.planning.sqlite import decoder
from vigilog.rewriting.deltas import CANDIDATE, GAINED, LOST, NEW, RECENT, Variant, gaining, losing, proving, reads
from vigilog.rewriting.external import External
from vigilog.rewriting.states import Change

CHANGE = ("minus", "plus")
DOUBTFUL = 64  # from so many rows in a round, another proof is looked for before they are deleted
WORK = (*CHANGE, "recent", "next", "gone")


@dataclass(frozen=True)
class _Statement:
    sql: str
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class _BaseStatements:
    delete: str
    insert: str
    minus: str
    plus: str


class Maintainer:
    """The tables of an evaluated program, kept true under changes of its base relations."""

    def __init__(self, program: Program, tables: Tables, views: External | None = None, counted: Collection[str] = ()) -> None:
        """Maintains the derived relations of `program`, which are stored, and finds the changes of `views`, which are not."""
        self.program, self.tables, self.layout = program, tables, tables.layout
        self.components = [_without_facts(component) for component in components(program)]
        self.components = [component for component in self.components if component.rules]
        self.reads = [set().union(*(reads(rule) for rule in component.rules)) for component in self.components]
        self.changed: dict[str, Change] = {}
        self.doubtful = DOUBTFUL
        self.prepared: dict[object, _Statement] = {}
        self.base: dict[str, _BaseStatements] = {}
        self.plans: dict[object, list[tuple[Rule, Variant]]] = {}
        self.derived = self.rounds = 0
        tables.execute("PRAGMA journal_mode=MEMORY")  # a refused or hypothetical transaction is rolled back
        self.sizes = {relation: tables.count(relation) for relation in program.relations}
        derived = {rule.head.relation for rule in program.rules}
        self.names = {
            (relation, kind): self._make(relation, kind)
            for relation in program.relations
            for kind in (WORK if relation in derived else CHANGE)
        }
        self.counters = {
            component.relations[0]: Counter(program, component, tables, self.sizes, self._name)
            for component in self.components
            if component.relations[0] in counted and not component.recursive
        }
        self.provers = {
            component.relations: Prover(program, component, tables, self.sizes) for component in self.components if component.recursive
        }
        self.views = None if views is None else ExternalViews(views, tables, self._name)

    def apply(
        self, changes: Mapping[str, Delta], wanted: Iterable[str], *, keep: bool = True, budget: int | None = None
    ) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the wanted relations that changed.

        Without `keep` everything is as before afterwards. More rows than the budget are not derived on demand: then it raises OverBudget, and nothing has changed.
        """
        reachable = self._reachable(changes)
        plan = self.views.plan(reachable, self.sizes) if self.views else None
        for counter in self.counters.values():
            counter.prepare(reachable)
        try:
            with self.tables.transaction(keep=keep):
                self._change(changes)
                found = {name: self._delta(name) for name in wanted if name in self.changed}
                if self.views and plan is not None:
                    found |= self.views.changes(plan, self.changed, wanted, budget)
                    self.derived, self.rounds = self.derived + self.views.machine.derived, self.rounds + self.views.machine.rounds
                    self.views.machine.clear()
                self._clear_changes()
        except BaseException:
            if self.views:
                self.views.machine.forget()
            for counter in self.counters.values():
                counter.machine.forget()
            raise
        return found

    def recompute(self, changes: Mapping[str, Delta], wanted: Sequence[str], views: Program, *, keep: bool = True) -> dict[str, Delta]:
        """Does what `apply` does, but evaluates views that are not stored anew, before and after, and compares."""
        machine = TableMachine(self.tables)
        before = self._whole(views, wanted, machine)
        with self.tables.transaction(keep=keep):
            self._change(changes)
            found = {name: self._delta(name) for name in wanted if name in self.changed}
            after = self._whole(views, wanted, machine)
            self._clear_changes()
        self.derived += machine.derived
        return found | {name: delta for name in before if (delta := between(before[name], after[name]))}

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
        for component, read in zip(self.components, self.reads, strict=True):
            if not read.isdisjoint(self.changed):
                changed = {name: change for name, change in self.changed.items() if name in read}
                counter = self.counters.get(component.relations[0])
                if counter is None:
                    self._maintain(component, changed)
                else:
                    self._count(component.relations[0], counter, changed)

    def _clear_changes(self) -> None:
        for relation, change in self.changed.items():
            for kind, there in (("minus", change.lost), ("plus", change.gained)):
                if there:
                    self.tables.execute(f"DELETE FROM {self.names[relation, kind]}")

    def _reachable(self, changes: Mapping[str, Delta]) -> dict[str, Change]:
        """What can change, at most, when base relations change in this way."""
        found = {name: Change(bool(delta.minus), bool(delta.plus)) for name, delta in changes.items()}
        for component, read in zip(self.components, self.reads, strict=True):
            if not read.isdisjoint(found):
                found |= dict.fromkeys(component.relations, Change(True, True))
        return found

    # -- one component

    def _maintain(self, component: Component, changes: Mapping[str, Change]) -> None:
        deleted = self._lose(component, changes)
        restored = self._prove(component, deleted) if deleted else {}
        gained = self._gain(component, changes)
        for relation in component.relations:
            gone = deleted.get(relation, 0)
            if gone:
                self._settle_gone(relation, came_back=bool(restored.get(relation) or gained.get(relation)))
            lost = bool(gone) and self._any(relation, "minus")
            more = bool(gained.get(relation)) and self._any(relation, "plus")
            if lost or more:
                self.changed[relation] = Change(lost, more)

    def _count(self, relation: str, counter: Counter, changes: Mapping[str, Change]) -> None:
        change = counter.maintain(changes, self.names[relation, "minus"], self.names[relation, "plus"])
        self.derived, self.rounds = self.derived + counter.machine.derived, self.rounds + counter.machine.rounds
        counter.machine.clear()
        if change.lost or change.gained:
            self.changed[relation] = change

    def _lose(self, component: Component, changes: Mapping[str, Change]) -> dict[str, int]:
        """Takes out every row that may have lost a proof; gives how many of each relation. They are in `gone`."""
        counts: dict[str, int] = {}
        for rule, variant in self._plan(component, changes, "losing"):
            self._collect(rule, variant, "next", counts)
        self._keep_proved(component, counts)
        total = self._advance(component, counts, "gone")
        while component.recursive and counts:
            counts = {}
            for rule, variant in self._plan(component, changes, "losing recent"):
                self._collect(rule, variant, "next", counts, unless="gone")
            self._keep_proved(component, counts)
            for relation, number in self._advance(component, counts, "gone").items():
                total[relation] = total.get(relation, 0) + number
        self._clear_recent(component)
        if component.recursive:
            self.provers[component.relations].clear()
        for relation in total:
            self._remove(relation, "gone")
        return total

    def _keep_proved(self, component: Component, counts: dict[str, int]) -> None:
        """Takes rows that have another proof out of those that may be lost, when there are many."""
        prover = self.provers[component.relations] if component.recursive else None
        for relation in [*counts] if prover else ():
            assert prover is not None, "only recursion needs it"
            following = self.names[relation, "next"]
            if counts[relation] >= self.doubtful:
                before = prover.machine.derived
                prover.prove(relation, following, counts[relation])
                self.derived += prover.machine.derived - before
            if prover.used:
                proved, own = prover.proved(relation), self.layout.columns[relation]
                same = " AND ".join(f"k.c{number} = {following}.{quote(column)}" for number, column in enumerate(own))
                counts[relation] -= self.tables.execute(
                    f"DELETE FROM {following} WHERE EXISTS (SELECT 1 FROM {proved} AS k WHERE {same})"
                ).rowcount
                if not counts[relation]:
                    del counts[relation]

    def _prove(self, component: Component, deleted: Mapping[str, int]) -> dict[str, int]:
        """Puts back what still has a proof."""
        counts: dict[str, int] = {}
        for rule in component.rules:
            if rule.head.relation in deleted:
                self._collect(rule, proving(rule), "next", counts, key="proving")
        total = self._advance(component, counts, None)
        while component.recursive and counts:
            counts = {}
            for rule in component.rules:
                for position in recursive_positions(rule, component) if rule.head.relation in deleted else ():
                    self._collect(rule, proving(rule, position), "next", counts, key=("proving", position), unless="own")
            for relation, number in self._advance(component, counts, None).items():
                total[relation] = total.get(relation, 0) + number
        self._clear_recent(component)
        return total

    def _gain(self, component: Component, changes: Mapping[str, Change]) -> dict[str, int]:
        """Puts in what has a new proof; it is in `plus`."""
        counts: dict[str, int] = {}
        for rule, variant in self._plan(component, changes, "gaining"):
            self._collect(rule, variant, "next", counts)
        total = self._advance(component, counts, "plus", own=True)
        while component.recursive and counts:
            counts = {}
            for rule, variant in self._plan(component, changes, "gaining recent"):
                self._collect(rule, variant, "next", counts)
            for relation, number in self._advance(component, counts, "plus", own=True).items():
                total[relation] = total.get(relation, 0) + number
        self._clear_recent(component)
        return total

    def _settle_gone(self, relation: str, *, came_back: bool) -> None:
        """Makes net changes of `gone` and `plus`: what is there again was not lost, and what was there before is not new."""
        columns = self._columns(relation)
        gone, plus, minus = (self.names[relation, kind] for kind in ("gone", "plus", "minus"))
        execute = self.tables.execute
        if came_back:
            own = quote(self.layout.tables[relation])
            execute(f"DELETE FROM {plus} WHERE ({columns}) IN (SELECT {columns} FROM {gone})")
            same = " AND ".join(f"{own}.{column} = {gone}.{column}" for column in map(quote, self.layout.columns[relation]))
            execute(f"DELETE FROM {gone} WHERE EXISTS (SELECT 1 FROM {own} WHERE {same})")
        execute(f"INSERT INTO {minus} SELECT * FROM {gone}")
        execute(f"DELETE FROM {gone}")

    # -- rounds

    def _plan(self, component: Component, changes: Mapping[str, Change], kind: str) -> list[tuple[Rule, Variant]]:
        """The variants for relations that changed in certain ways; found once for each such combination."""
        key = (component.relations, kind, tuple(sorted((name, change.lost, change.gained) for name, change in changes.items())))
        if key not in self.plans:
            find = losing if kind.startswith("losing") else gaining
            plan: list[tuple[Rule, Variant]] = []
            for rule in component.rules:
                if kind.endswith("recent"):
                    plan += [(rule, v) for position in recursive_positions(rule, component) for v in find(rule, changes, position)]
                else:
                    plan += [(rule, variant) for variant in find(rule, changes)]
            self.plans[key] = plan
        return self.plans[key]

    def _collect(self, rule: Rule, variant: Variant, target: str, counts: dict[str, int], *, key: object = None, unless: str = "") -> None:
        statement = self._statement(rule, variant, target, key, unless)
        number = self.tables.execute(statement.sql, statement.parameters).rowcount
        if number:
            relation = rule.head.relation
            counts[relation] = counts.get(relation, 0) + number
            self.derived += number

    def _advance(self, component: Component, counts: Mapping[str, int], into: str | None, *, own: bool = False) -> dict[str, int]:
        """What was found becomes recent, and is added to a work table, to the relation itself, or (None) to the relation alone."""
        execute = self.tables.execute
        self.rounds += 1
        for relation in component.relations:
            following, recent = self.names[relation, "next"], self.names[relation, "recent"]
            if component.recursive:
                execute(f"DELETE FROM {recent}")
            if counts.get(relation):
                if into is not None:
                    execute(f"INSERT OR IGNORE INTO {self.names[relation, into]} SELECT * FROM {following}")
                if own or into is None:
                    execute(f"INSERT OR IGNORE INTO {quote(self.layout.tables[relation])} SELECT * FROM {following}")
                if component.recursive:
                    execute(f"INSERT INTO {recent} SELECT * FROM {following}")
                execute(f"DELETE FROM {following}")
        return dict(counts)

    def _clear_recent(self, component: Component) -> None:
        if component.recursive:
            for relation in component.relations:
                self.tables.execute(f"DELETE FROM {self.names[relation, 'recent']}")

    # -- statements

    def _statement(self, rule: Rule, variant: Variant, target: str, key: object, unless: str) -> _Statement:
        identity = (id(rule), variant.sources, target, key, unless, variant.rule.head, variant.rule.body)
        if identity not in self.prepared:
            kinds = {LOST: "minus", GAINED: "plus", RECENT: "recent", CANDIDATE: "gone"}

            def table(index: int, atom: Atom) -> str:
                source = variant.sources[index]
                return self.layout.tables[atom.relation] if source == NEW else self._name(atom.relation, kinds[source])

            chosen = select(variant.rule, self.layout, self.tables.dialect, Choice(first=variant.first, table=table, rows=self.sizes))
            self.tables.serve(chosen.searches)
            sql = chosen.sql.sql("sqlite", normalize_functions=False)
            relation = rule.head.relation
            if unless:
                known = quote(self.layout.tables[relation]) if unless == "own" else self.names[relation, unless]
                same = " AND ".join(f"k.{column} = f.{column}" for column in map(quote, self.layout.columns[relation]))
                sql = f"SELECT * FROM ({sql}) AS f WHERE NOT EXISTS (SELECT 1 FROM {known} AS k WHERE {same})"
            self.prepared[identity] = _Statement(f"INSERT OR IGNORE INTO {self.names[relation, target]} {sql}", chosen.parameters)
        return self.prepared[identity]

    def _apply_base(self, relation: str, delta: Delta) -> None:
        """Changes a base table; sorted, because rows that lie side by side change faster."""
        if relation not in self.base:
            marks = ", ".join("?" for _ in self.layout.columns[relation])
            table, columns = quote(self.layout.tables[relation]), self._columns(relation)
            self.base[relation] = _BaseStatements(
                f"DELETE FROM {table} WHERE ({columns}) = ({marks})",
                f"INSERT INTO {table} VALUES ({marks})",
                f"INSERT INTO {self.names[relation, 'minus']} VALUES ({marks})",
                f"INSERT INTO {self.names[relation, 'plus']} VALUES ({marks})",
            )
        statements, many = self.base[relation], self.tables.connection.executemany
        if delta.minus:
            stored = sorted(self.tables.encoded(relation, delta.minus))
            many(statements.delete, stored)
            many(statements.minus, stored)
        if delta.plus:
            stored = sorted(self.tables.encoded(relation, delta.plus))
            many(statements.insert, stored)
            many(statements.plus, stored)
        self.changed[relation] = Change(bool(delta.minus), bool(delta.plus))

    def _remove(self, relation: str, kind: str) -> None:
        columns = self._columns(relation)
        self.tables.execute(
            f"DELETE FROM {quote(self.layout.tables[relation])} WHERE ({columns}) IN (SELECT {columns} FROM {self.names[relation, kind]})"
        )

    def _any(self, relation: str, kind: str) -> bool:
        return self.tables.execute(f"SELECT 1 FROM {self.names[relation, kind]} LIMIT 1").fetchone() is not None

    def _delta(self, relation: str) -> Delta:
        decoders = [decoder(type_) for type_ in self.layout.types[relation]]
        nullary = not self.program.relations[relation].attributes

        def rows(kind: str) -> frozenset[Row]:
            cursor = self.tables.execute(f"SELECT * FROM {self.names[relation, kind]}")
            if nullary:
                return frozenset(() for _ in cursor)
            return frozenset(tuple([d(v) if d else v for d, v in zip(decoders, row, strict=True)]) for row in cursor)

        return Delta(rows("plus"), rows("minus"))

    def _columns(self, relation: str) -> str:
        return ", ".join(map(quote, self.layout.columns[relation]))

    def _name(self, relation: str, kind: str) -> str:
        return f"{self.layout.tables[relation]}__{kind}"

    def _make(self, relation: str, kind: str) -> str:
        return self.tables.create(relation, self._name(relation, kind))


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
        self.machine = DemandMachine(external.program, external.levels, tables, physical, inputs, states)

    def plan(self, changes: Mapping[str, Change], rows: Mapping[str, int]) -> Plan:
        return self.machine.plan(self._filled(changes), changes, rows)

    def changes(self, plan: Plan, changes: Mapping[str, Change], wanted: Iterable[str], budget: int | None) -> dict[str, Delta]:
        """The net changes of the views that changed."""
        self.machine.budget = budget
        self.machine.run(plan, self._filled(changes))
        found = {}
        for name in wanted:
            state = self.external.states[name]
            delta = Delta(frozenset(self.machine.rows(state.gained)), frozenset(self.machine.rows(state.lost)))
            if name not in self.external.tables and delta:
                found[name] = delta
        return found

    def _filled(self, changes: Mapping[str, Change]) -> list[str]:
        states = self.external.states
        lost = [states[name].lost for name, change in changes.items() if change.lost and name in states]
        return lost + [states[name].gained for name, change in changes.items() if change.gained and name in states]


def _without_facts(component: Component) -> Component:
    return Component(component.relations, tuple(rule for rule in component.rules if not is_fact(rule)), component.recursive)
