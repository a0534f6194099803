"""Finds what a transaction changes in the views, on SQLite, with work in proportion to the change.

Changes of base tables come first. Then come the components that are stored, from what is below to what is above, each by its keeper (`keepers.py`): its net change is what the next ones read. Components that read nothing
that changed are not touched. What is not stored comes last, all together (`demand.py`). Until then, tables hold the rows of both states (`statements.py`); in the end what is lost is deleted.

All statements, tables and indexes are made when a database is opened.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.extras import DUCKDB
from vigilog.executors.allowance import Allowance, Spent
from vigilog.executors.embedded import bulk
from vigilog.executors.embedded.anew import Anew, Compared
from vigilog.executors.embedded.bulk import patient, worthwhile
from vigilog.executors.embedded.counted import Counter
from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.grouped import AtHand, GroupKeeper
from vigilog.executors.embedded.keepers import KEEPERS, Keeper
from vigilog.executors.embedded.many import put
from vigilog.executors.embedded.statements import WorkTables, in_both_states
from vigilog.executors.embedded.tables import FEW, Tables, among, quote
from vigilog.executors.evaluation import Stats
from vigilog.executors.fixpoint import fixpoint
from vigilog.executors.views import Settle
from vigilog.executors.watch import Outgrown
from vigilog.language.strata import components
from vigilog.rewriting.maintenance.columns import Reading
from vigilog.rewriting.maintenance.external import External
from vigilog.rewriting.maintenance.plan import ComponentPlan, GroupPlan, Plan
from vigilog.rewriting.maintenance.states import Direction
from vigilog.rewriting.program.relevant import relevant

CHANGE = ("minus", "plus")


@dataclass(frozen=True)
class _Statements:
    """How rows come into a relation's tables of changes, into the relation and out of it, one by one or from there; and how the tables of changes are emptied and read."""

    minus: str
    plus: str
    delete: str
    insert: str
    delete_all: str
    insert_all: str
    clear: tuple[str, str]
    read: tuple[str, str]
    changes: tuple[str, str]  # the tables of changes


class Maintainer:
    """The tables of an evaluated program, kept true under changes of its base relations."""

    def __init__(self, plan: Plan, tables: Tables, kept: Iterable[str] = (), queries: Iterable[str] = ()) -> None:
        """Maintains what the plan keeps, and finds the changes of what it does not, and of `queries`. Of what is kept beside relations, `kept` is there already."""
        self.plan, self.tables, self.layout = plan, tables, tables.layout
        self.label = tables.label()
        self.places = {name: place for place, name in enumerate(plan.told)}
        self.changed: dict[str, Direction] = {}
        self.filled: set[str] = set()  # the tables of changes that have rows
        self.few: dict[str, list[tuple[Any, ...]]] = {}  # rows to be deleted one by one
        self.derived = self.rounds = 0
        self.much = False  # whether views that are recomputed take SQLite long
        self.anew: Anew | None = None  # the views that are not stored as they are now, if the last transaction recomputed them
        self.applied = 0  # changes, also such as were taken back
        if not tables.durable:
            tables.execute("PRAGMA journal_mode=MEMORY")  # a refused or hypothetical transaction is rolled back
            tables.put_aside()
        self.sizes = {relation: tables.count(relation) for relation in plan.needed.relations}
        self.at_hand: AtHand = {}
        self.unread = plan.unread(queries)
        for relation in plan.needed.relations.keys() - plan.kept.keys() - self.unread:
            for kind in CHANGE:
                tables.create(relation, self._name(relation, kind))
        self.keepers = [self._keeper(part) for part in plan.components]
        self.reads = [part.reads for part in plan.components]
        states = {keeper.group.state.relation for keeper in self.keepers if isinstance(keeper, GroupKeeper)}
        self.told_of = plan.needed.relations.keys() - states  # of states it is told only which groups have one
        self.reading = Reading(plan.whole)
        followed = plan.followed
        self.views = None if followed is None else ExternalViews(followed, tables, self._name, self.sizes, plan.told)
        asked = {name: plan.only(name).external for name in queries}
        self.queries = {
            name: ExternalViews(part, tables, self._name, self.sizes, [name]) for name, part in asked.items() if part is not None
        }
        self.statements = {relation: self._statements(relation) for relation in plan.needed.relations}
        self._fill(kept)
        for keeper in self.keepers:
            if isinstance(keeper, Counter) and keeper.beside not in kept:
                keeper.count_all()

    def _keeper(self, part: ComponentPlan | GroupPlan) -> Keeper:
        if isinstance(part, GroupPlan):
            return GroupKeeper(part, self.tables, self.sizes, self._name, self.filled, self.unread, self.at_hand)
        return KEEPERS[part.keeper](part, self.plan.stored, self.tables, self.sizes, self._name, self.filled)

    def _fill(self, kept: Iterable[str]) -> None:
        """Computes what is kept of groups and is not there already; what they are derived from and is not kept is evaluated for that."""
        present = set(kept)
        empty = {
            k.group.aux.relation: k
            for k in self.keepers
            if isinstance(k, GroupKeeper) and not present.issuperset(declaration.relation for declaration in k.group.kept)
        }
        if not empty:
            return
        below = {rule.head.relation for keeper in empty.values() for rule in keeper.program.rules} - {
            k.group.rows.relation for k in empty.values()
        }
        machine, made = TableMachine(self.tables), list[str]()
        for component in components(self.plan.grouping.order):
            if component.relations[0] in empty:
                empty[component.relations[0]].fill()
            elif below.issuperset(component.relations):
                fixpoint(component, machine, self.tables.watch)
                made += component.relations
        for relation in made:
            self.tables.execute(f"DELETE FROM {quote(self.layout.tables[relation])}")

    @property
    def derived_views(self) -> list[ExternalViews]:
        return [*([self.views] if self.views else []), *self.queries.values()]

    def warm(self) -> None:
        """Lets SQLite compile all statements. After a table or an index is made, it does so anew."""
        for keeper in self.keepers:
            keeper.warm()
        for views in self.derived_views:
            views.machine.warm(views.plan)
        for relation, statements in self.statements.items():
            self.tables.compile(statements.delete, statements.insert)
            if relation not in self.unread:
                self.tables.compile(statements.minus, statements.plus, statements.delete_all, statements.insert_all, *statements.clear)
                for sql in statements.read:
                    self.tables.execute(sql)

    def apply(
        self,
        changes: Mapping[str, Delta],
        wanted: Collection[str],
        settle: Settle,
        *,
        keep: bool = True,
        budget: int | None = None,
        allowance: Allowance | None = None,
    ) -> dict[str, Delta]:
        """Applies net changes of base relations; gives the net changes of the wanted relations that changed, after `settle` has been told them in the same transaction.

        Without `keep` everything is as before afterwards. More rows than the budget are not derived on demand: then it raises OverBudget, and nothing has changed.
        Nor has it if a query goes beyond its allowance: then it raises TooDear.
        """
        try:
            with self.tables.transaction(keep=keep):
                concerned = self._change(changes)
                deltas = self._deltas(wanted, changes)
                if self.plan.passed:
                    deltas |= self._passed(deltas, changes)
                if self.views:
                    deltas |= self.views.changes(self.filled, budget, concerned)
                    self.derived, self.rounds = self.derived + self.views.machine.derived, self.rounds + self.views.machine.rounds
                    self.views.machine.clear()
                if self.queries:
                    deltas |= self._followed(allowance or Allowance())
                self._end()
                settle(deltas)
        except BaseException:
            self._forget()
            raise
        if keep:
            self.leave()
        return deltas

    def recompute(
        self, changes: Mapping[str, Delta], wanted: Sequence[str], settle: Settle, *, keep: bool = True, allowance: Allowance | None = None
    ) -> dict[str, Delta]:
        """Does what `apply` does, but evaluates views that are not stored anew, before and after, and compares. Queries have the changes that they have."""
        if within := self.tables.connection.in_transaction:
            self.leave()
        anew, stays = self._anew(wanted), False
        try:
            with self.tables.transaction(keep=keep):
                self._change(changes)
                number = self.applied
                deltas = self._deltas(wanted, changes)
                read = {name: changes.get(name) or self._delta(name) for name in self.changed.keys() & anew.read}
                deltas |= self._followed(allowance or Allowance())
                self._end()
                began = time.thread_time()
                deltas |= anew.after(read)
                long = time.thread_time() - began > bulk.A_MOMENT
                self.derived, self.rounds = self.derived + anew.stats.derived, self.rounds + anew.stats.rounds
                settle(deltas)
            stays = keep and not within and number == self.applied and anew.light and self.told_of.issuperset(anew.read)
            stays = stays and not (long and isinstance(anew, Compared))
        except BaseException:
            self._forget()
            raise
        finally:
            if stays:
                self.anew = anew
            else:
                anew.close()
        return deltas

    def leave(self) -> None:
        """What was recomputed is not as things are any more."""
        if self.anew is not None:
            self.anew.close()
            self.anew = None

    def _anew(self, wanted: Sequence[str]) -> Anew:
        """The views that are not stored, evaluated on DuckDB if they read much, or took SQLite long."""
        if self.anew is not None:
            anew, self.anew = self.anew, None
            anew.stats = Stats(anew.stats.engine)
            return anew
        left = components(self.plan.derived)
        self.much = self.much or worthwhile(self.tables, left)
        if not self.much:
            try:
                with patient(self.tables, bulk.A_MOMENT if DUCKDB.installed else None):
                    return Compared(self.tables, left, wanted)
            except Outgrown:
                self.much = True
        from vigilog.executors.duckdb.filling import Recomputation
        from vigilog.executors.duckdb.tables import OutOfMemory

        try:
            return Recomputation(self.tables, left, wanted)
        except OutOfMemory:
            return Compared(self.tables, left, wanted)

    def _forget(self) -> None:
        """A transaction was taken back."""
        self.filled.clear()
        self.few.clear()
        self.at_hand.clear()
        for views in self.derived_views:
            views.machine.forget()
        for keeper in self.keepers:
            keeper.forget()

    def _followed(self, allowance: Allowance) -> dict[str, Delta]:
        """The net changes of queries. Raises TooDear if one costs more than it may, or all together do."""
        deltas: dict[str, Delta] = {}
        wanted = {name: views for name, views in self.queries.items() if name not in allowance.without}
        touched = {name: views for name, views in wanted.items() if not self.filled.isdisjoint(views.inputs)}
        if not touched:
            return deltas
        spent = Spent(allowance, touched, lambda: self.tables.connection.in_transaction)
        with self.tables.no_larger(allowance.size):
            for name, views in touched.items():
                machine = views.machine
                with spent.by(name, machine), self.tables.within(allowance.seconds), self.tables.no_longer(allowance.text):
                    deltas |= views.changes(self.filled, allowance.rows)
                self.derived, self.rounds = self.derived + machine.derived, self.rounds + machine.rounds
                machine.clear()
            spent.settle()
        return deltas

    def _change(self, changes: Mapping[str, Delta]) -> frozenset[str] | None:
        """Changes the base relations and all that is stored; the net changes are in the tables of changes, and what is lost still in its relation.

        Gives the derived relations that the changes concern; None if that may be all that read them.
        """
        self.derived, self.rounds, self.changed = 0, 0, {}
        self.applied += 1
        for relation, delta in changes.items():
            self._apply_base(relation, delta)
        concerned = self.reading.concerned(changes) if self.reading.spares(changes) else None
        for keeper, part, read in zip(self.keepers, self.plan.components, self.reads, strict=True):
            spared = (
                concerned is not None and isinstance(part, ComponentPlan) and not self.reading.touched(part.component.relations, concerned)
            )
            if not spared and not read.isdisjoint(self.changed):
                self.changed |= keeper.maintain()
                self.derived, self.rounds = self.derived + keeper.derived, self.rounds + keeper.rounds
        return concerned

    def _end(self) -> None:
        """Deletes what is lost, and empties the tables of changes."""
        for relation, change in self.changed.items():
            if relation in self.unread:
                continue
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
        self.at_hand.clear()

    def _apply_base(self, relation: str, delta: Delta) -> None:
        """Puts a change into the tables of changes, and what comes into the relation; sorted, because rows that lie side by side change faster. What no rule reads in both states is changed at once."""
        statements, many = self.statements[relation], self.tables.connection.executemany
        self.changed[relation] = Direction(bool(delta.minus), bool(delta.plus))
        if relation in self.unread:
            minus, plus = (sorted(self.tables.encoded(relation, rows)) for rows in (delta.minus, delta.plus))
            if minus:
                many(statements.delete, minus)
            self._insert(self.layout.tables[relation], statements.insert, plus)
            self.at_hand[relation] = minus, plus
            return
        if delta.minus:
            stored = sorted(self.tables.encoded(relation, delta.minus))
            self._insert(statements.changes[0], statements.minus, stored)
            if len(stored) <= FEW:
                self.few[relation] = stored
            self.filled.add(statements.changes[0])
        if delta.plus:
            stored = sorted(self.tables.encoded(relation, delta.plus))
            self._insert(statements.changes[1], statements.plus, stored)
            if len(stored) <= FEW:
                many(statements.insert, stored)
            else:
                self.tables.execute(statements.insert_all)
            self.filled.add(statements.changes[1])

    def _insert(self, table: str, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows into a table: a few by the statement for one."""
        if len(rows) <= FEW:
            self.tables.connection.executemany(statement, rows)
        else:
            put(self.tables.connection, f"INSERT INTO {quote(table)}", len(rows[0]), rows)

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
            insert_all=f"INSERT OR FAIL INTO {table} SELECT {columns} FROM {plus}",
            clear=(f"DELETE FROM {minus}", f"DELETE FROM {plus}"),
            read=(f"SELECT {columns} FROM {minus}", f"SELECT {columns} FROM {plus}"),
            changes=(self._name(relation, "minus"), self._name(relation, "plus")),
        )

    def _deltas(self, wanted: Collection[str], given: Mapping[str, Delta]) -> dict[str, Delta]:
        """The net changes of wanted tables that changed, in the order of those that are wanted; those of base relations are `given`."""
        if len(wanted) > 4 * len(self.changed):
            wanted = sorted(self.changed.keys() & self.places.keys(), key=self.places.__getitem__)
        return {name: given[name] if name in given else self._delta(name) for name in wanted if name in self.changed}

    def _passed(self, deltas: Mapping[str, Delta], given: Mapping[str, Delta]) -> dict[str, Delta]:
        """The net changes of views that have the rows of another relation, whose changes may be known."""
        passed = {}
        for view, (relation, places) in self.plan.passed.items():
            if relation in self.changed:
                delta = deltas.get(relation) or given.get(relation) or self._delta(relation)
                passed[view] = delta if places == tuple(range(len(places))) else _moved(delta, places)
                self.derived += len(delta.plus) + len(delta.minus)
        self.rounds += bool(passed)
        return passed

    def _delta(self, relation: str) -> Delta:
        decoded, execute = self.tables.decoded, self.tables.execute
        if relation in self.at_hand:
            lost, gained = (frozenset(decoded(relation, rows)) for rows in self.at_hand[relation])
            return Delta(gained, lost)
        change, (minus, plus) = self.changed[relation], self.statements[relation].read
        return Delta(
            frozenset(decoded(relation, execute(plus)) if change.gained else ()),
            frozenset(decoded(relation, execute(minus)) if change.lost else ()),
        )

    def _name(self, relation: str, kind: str) -> str:
        return f"{self.layout.tables[relation]} {kind} {self.label}"


def _moved(delta: Delta, places: tuple[int, ...]) -> Delta:
    """The change of a view that has the columns of a relation in some places."""
    plus, minus = (frozenset(tuple([row[place] for place in places]) for row in rows) for rows in (delta.plus, delta.minus))
    return Delta(plus, minus)


class ExternalViews:
    """Views that are not stored: their changes are found on demand."""

    def __init__(self, external: External, tables: Tables, work: WorkTables, rows: Mapping[str, int], wanted: Iterable[str]) -> None:
        self.external = external
        states = {name: external.states[name] for name in external.tables}
        self.inputs = {
            work(name, kind): changed for name, state in states.items() for kind, changed in (("minus", state.lost), ("plus", state.gained))
        }
        told = [name for state in external.states.values() for name in (state.lost, state.gained)]
        own = [(name, external.states[name]) for name in wanted if name not in external.tables]
        self.wanted = [
            (place, name, state.lost, state.gained) for place, (name, state) in enumerate(own)
        ]  # in the order in which they are told
        self.told = {change: entry for entry in self.wanted for change in entry[2:]}
        sources = in_both_states(states, tables, work)
        self.machine = DemandMachine(external.program, external.levels, tables, sources, self.inputs.values(), told)
        self.plan = self.machine.plan(self.inputs.values(), rows)
        self.needed: dict[frozenset[str], frozenset[str]] = {}

    def changes(self, filled: set[str], budget: int | None, concerned: frozenset[str] | None = None) -> dict[str, Delta]:
        """The net changes of the wanted views that changed; only of those that are `concerned`, if that is known."""
        self.machine.budget = budget
        needed = None if concerned is None else self._needed(concerned)
        self.machine.run(self.plan, [self.inputs[table] for table in filled if table in self.inputs], filled, needed)
        deltas, sizes, rows = {}, self.machine.sizes, self.machine.rows
        wanted = self.wanted
        if len(wanted) > len(sizes):  # of many, few have changed
            wanted = sorted({self.told[name] for name in sizes if name in self.told})
        for _, name, lost, gained in wanted:
            if gained in sizes or lost in sizes:
                deltas[name] = Delta(frozenset(rows(gained)), frozenset(rows(lost)))
        return deltas

    def _needed(self, concerned: frozenset[str]) -> frozenset[str]:
        """The relations of the rules that are needed for the changes of some views."""
        if concerned not in self.needed:
            states = (self.external.states[name] for name in concerned if name in self.external.states)
            told = [name for state in states for name in (state.lost, state.gained)]
            self.needed[concerned] = frozenset(relevant(self.external.program, told).relations)
        return self.needed[concerned]
