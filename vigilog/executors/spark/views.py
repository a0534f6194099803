"""Views on Spark: the exact changes of views for each transaction, whether they are stored or not.

The rules are those of `rewriting/maintenance/external.py`: they find what a view gains and loses from what the base relations gain and lose, reading these before and after. A view that is stored is read, before the
transaction, where others are derived on demand; what it gains and loses is found in the same way, and then amended to it. Of a view that is counted, the numbers of proofs are stored beside it
(`rewriting/maintenance/counting.py`), as if they were another view. Where all that grows past a budget of rows, or of time (`guard.py`), the views are evaluated before and after instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.domains.modules import Module
from vigilog.executors.allowance import Allowance
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark import demand
from vigilog.executors.spark import reader as reading
from vigilog.executors.spark import stored as keeping
from vigilog.executors.spark.asked import SparkQueries
from vigilog.executors.spark.demand import DemandMachine
from vigilog.executors.spark.grouped import GroupKeeper, keepers
from vigilog.executors.spark.guard import Guard
from vigilog.executors.spark.improved import ImprovedKeeper
from vigilog.executors.spark.stored import Snapshot, TailedSnapshot
from vigilog.executors.spark.together import differences, differing
from vigilog.executors.views import Settle, nothing
from vigilog.executors.watch import TooManyRows, Watch
from vigilog.files.place import Place
from vigilog.language.goal import Goal
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.columns import Reading
from vigilog.rewriting.maintenance.on_demand import on_demand
from vigilog.rewriting.maintenance.plan import Plan
from vigilog.rewriting.maintenance.strategies.choose import depends_on
from vigilog.rewriting.passes import with_goal
from vigilog.rewriting.program.relevant import relevant
from vigilog.spark.session import session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ENOUGH = 1_000_000  # rows derived on demand for one transaction, if the base relations have fewer, until it is known what recomputing costs

Sources = Mapping[str, Iterable[Row] | Place | TailedSnapshot]


class SparkViews:
    """See `Views`. The plan says whose changes are told, and what is kept. A base relation comes from a source, and from what the program itself states.

    A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict` and some view is not stored, refused. The changes of `queries`, of which the plan says nothing, are told, too; each has its allowance.
    """

    def __init__(
        self,
        plan: Plan,
        sources: Sources,
        watch: Watch | None = None,
        stated: Mapping[str, Collection[Row]] | None = None,
        budget: int | None = None,
        strict: bool = False,
        queries: Sequence[str] = (),
        allowance: Callable[[], Allowance] = Allowance,
    ) -> None:
        self.watch, self.allowance = watch or Watch(), allowance
        self.budget, self.strict, self.enough, self.guard = budget, strict, ENOUGH, Guard(strict)
        self.watch.begin("starting Spark")
        self._use(plan)
        self.queries = SparkQueries(plan, queries, self.watch)
        self.snapshots, self.stats = dict[str, Snapshot](), Stats("spark")
        self.goals = 0  # that were asked
        self.looked_up = (0, 0)  # actions and jobs since the last transaction
        try:
            with self._working("reading"):
                for relation in sorted(self.external.tables - self.grouped):
                    self.snapshots[relation] = self._load(relation, sources.get(relation), (stated or {}).get(relation, ()))
            if self.stored:
                self._store(self.stored)
            with self._working("computing what is best"):
                self._need(self.plan.improved)
        except BaseException:
            self.close()
            raise

    def _use(self, plan: Plan, machine: DemandMachine | None = None, groups: list[GroupKeeper | ImprovedKeeper] | None = None) -> None:
        rules = on_demand(plan)
        self.plan, self.program, self.views = plan, plan.program, plan.told
        self.rules, self.external, self.stored = rules, rules.external, rules.stored
        self.reading, self.needed = Reading(plan.whole), dict[frozenset[str], frozenset[str]]()
        self.machine = machine or DemandMachine(session(), rules.changes, rules.levels, rules.tables, self.watch)
        self.frames = self.machine.frames
        self.groups = keepers(plan, session(), self.frames, self.watch) if groups is None else groups
        self.grouped = frozenset(name for keeper in self.groups for name in keeper.kept)  # what has changed before views do

    def asked_by_workers(self, domain: Module, function: str, wanted: Sequence[Row]) -> list[set[Row]]:
        """What a function of a Python domain gives for many arguments."""
        from vigilog.executors.spark.asking import asked

        return asked(self.frames, domain, function, wanted)

    def renew(self, plan: Plan, most: int) -> None:
        """Goes on with another plan over the same base. Raises TooManyRows, and goes on as before, if a view that is to be stored has more rows than `most`, and than the base relations."""
        before, stored, machine, snapshots, stats = self.plan, self.stored, self.machine, self.snapshots, self.stats
        groups = self.groups
        most = max(most, sum(snapshots[name].rows for name in self.external.tables))
        self._use(plan)
        self.snapshots = {name: snapshot.on(self.frames) for name, snapshot in snapshots.items()}
        try:
            self._store(self.stored - stored, most)
            self._need(self.plan.improved)
            self.guard = Guard(self.strict)  # what another plan took says nothing of this one
        except BaseException:
            self._close_machines()
            self._use(before, machine, groups)
            self.snapshots = snapshots
            raise
        finally:
            self.stats = stats  # of the transaction before
        machine.close()
        for keeper in groups:
            keeper.close()

    # -- transactions

    def apply(self, changes: Mapping[str, Delta], settle: Settle = nothing, *, keep: bool = True) -> dict[str, Delta]:
        states = self.external.states
        with self._working("maintaining"):
            (self.stats.statements, self.stats.spark_jobs), self.looked_up = self.looked_up, (0, 0)
            self._fold()
            changes = {name: delta for name, delta in changes.items() if delta}
            views = self.reading.touched(self.rules.derived, self.reading.concerned(changes))
            self._need(views)
            after = {name: self.snapshots[name].after(delta) for name, delta in changes.items()}
            base = self._rows
            try:
                with self.guard.watching(self.watch, changes, base):
                    turned = self._turn_groups(changes, after)
                    after |= {name: self.snapshots[name].after(delta) for name, delta in turned.items()}
                    moved = {**changes, **turned}
                    given = {states[name].lost: delta.minus for name, delta in moved.items() if name in states}
                    given |= {states[name].gained: delta.plus for name, delta in moved.items() if name in states}
                    deltas, kept, stored = self._derive(changes, moved, after, given)
            except OverBudget as reason:
                if self.strict and not self.stored.issuperset(self.rules.derived):
                    raise DataError(f"{reason.message}, and recomputing is refused (strict)", "budget") from None
                began = time.perf_counter()
                self.frames.restore()
                after |= self._groups_anew(changes, {name: after.get(name, snapshot) for name, snapshot in self.snapshots.items()})
                moved = {**changes, **self._improved(after)}
                deltas, kept, stored = self._recompute(views, moved, after)
                self.guard.anew[frozenset(changes)] = time.perf_counter() - began
                self.stats.recomputed = reason.message
            if settle is not nothing and self.queries.queries:  # somebody is told
                moved |= {name: delta for name, delta in stored.items() if delta}
                deltas |= self.queries.changes(moved, self.snapshots, {**after, **kept}, self.allowance(), self.stats)
            before, self.snapshots = (
                self.snapshots,
                self.snapshots | after | kept,
            )  # even if it is not to be kept: `settle` may look at the new state
            self._count()
            try:
                settle(deltas)
            except BaseException:
                self.snapshots = before
                raise
            if not keep:
                self.snapshots = before
        return deltas

    def _turn_groups(self, changes: Mapping[str, Delta], after: Mapping[str, Snapshot]) -> dict[str, Delta]:
        """What is lost and gained of what is kept of groups, each after what its bindings are derived from."""
        turned: dict[str, Delta] = {}
        for keeper in self._filled:
            now = {**self.snapshots, **after} | {name: self.snapshots[name].after(delta) for name, delta in turned.items()}
            deltas = keeper.changes(self.snapshots, now, {**changes, **turned}, self.stats)
            turned |= {name: delta for name, delta in deltas.items() if delta}
        return turned

    def _groups_anew(self, changes: Mapping[str, Delta], given: dict[str, Snapshot]) -> dict[str, Snapshot]:
        """What is kept of the groups that changes concern, from base relations as they are given."""
        concerned = self.reading.concerned(changes)
        base = {name: snapshot for name, snapshot in given.items() if name not in self.stored}
        snapshots: dict[str, Snapshot] = {}
        for keeper in self._filled:
            if self.reading.touched(keeper.counts, concerned):
                snapshots |= keeper.fill(base | snapshots, self.stats)
        return snapshots

    @property
    def _filled(self) -> list[GroupKeeper | ImprovedKeeper]:
        """Those of whose groups the state is known."""
        return [keeper for keeper in self.groups if keeper.kept[0] in self.snapshots]

    def _improved(self, after: Mapping[str, Snapshot]) -> dict[str, Delta]:
        """What is lost and gained of what is recursive through `min` or `max`, and was computed anew."""
        compared: dict[str, tuple[DataFrame, DataFrame]] = {}
        for name in self.plan.improved & after.keys():
            compared[name] = (self.snapshots[name].exact, after[name].exact)
        return {name: delta for name, delta in differences(self.frames, compared).items() if delta}

    def _derive(
        self,
        changes: Mapping[str, Delta],
        moved: Mapping[str, Delta],
        after: Mapping[str, Snapshot],
        given: Mapping[str, Iterable[Row]],
    ) -> tuple[dict[str, Delta], dict[str, Snapshot], dict[str, Delta]]:
        """The views' changes, what is stored after them, and the changes of that which queries read, on demand."""
        states = self.external.states
        names = self.external.tables & self.snapshots.keys()  # of groups that are not concerned nothing is known
        tables = self.snapshots | {states[name].new: after.get(name, self.snapshots[name]) for name in names}
        base = self._rows
        self.machine.budget = max(self.enough, base) if self.budget is None else self.budget
        try:
            self.machine.run(tables, given, self._concerned(changes))
            deltas = {name: delta for name in self.views if (delta := moved.get(name) or self._delta(name))}
            kept = {name: self._amended(name, deltas.get(name)) for name in self.stored}
            return deltas, kept, {name: deltas.get(name) or self._delta(name) for name in self.stored & self.queries.reads}
        finally:
            reading.count(self.stats, self.machine)
            self.machine.clear()

    def _concerned(self, changes: Mapping[str, Delta]) -> frozenset[str] | None:
        """The relations of the rules on demand that are needed for the views that changes of base relations concern; None if that are all."""
        if not self.reading.spares(changes):
            return None
        views = self.reading.touched(self.rules.derived, self.reading.concerned(changes))
        if views not in self.needed:
            told = [name for view in views for name in (self.external.states[view].lost, self.external.states[view].gained)]
            self.needed[views] = frozenset(rule.head.relation for rule in relevant(self.rules.changes, told).rules)
        return self.needed[views]

    @property
    def _rows(self) -> int:
        """How many rows there are from which all else is derived."""
        return sum(self.snapshots[name].rows for name in self.external.tables & self.snapshots.keys())

    def _recompute(
        self, views: Collection[str], changes: Mapping[str, Delta], after: Mapping[str, Snapshot]
    ) -> tuple[dict[str, Delta], dict[str, Snapshot], dict[str, Delta]]:
        """The same by evaluating what is concerned before and after, and comparing: by one action, beside those of recursions."""
        hidden = [name for name in views if name not in self.stored]
        base = {name: after.get(name, self.snapshots[name]) for name in self.external.tables & self.snapshots.keys()}
        with self._evaluated(hidden, self.snapshots) as frames, self._evaluated(sorted(views), base) as new:
            old = frames | {name: self.snapshots[name].exact for name in views if name in self.stored}
            self.frames.resume()
            self.frames.prepare(recursive=False, rows=self._rows)
            deltas = differences(self.frames, {name: (old[name], new[name]) for name in new})
        self.enough = max(self.enough, self.stats.derived)  # so much may be derived on demand before recomputing is cheaper
        told = {name: delta for name in self.views if (delta := changes.get(name) or deltas.get(name))}
        kept = {name: self.snapshots[name].after(deltas.get(name, Delta())) for name in self.stored}
        return told, kept, {name: deltas.get(name, Delta()) for name in self.stored & self.queries.reads}

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        """Those of some rows that a base relation or a stored view has. What it costs counts as a part of the transaction that follows."""
        before = self.looked_up
        with self._working("looking up"):
            present = self.machine.lookup.among(self.snapshots[relation], rows, demand.COLLECTED_ROWS)
        self.looked_up = before[0] + self.stats.statements, before[1] + self.stats.spark_jobs
        return present

    def having(self, relation: str, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        """The rows of a base relation that have one of some values in their columns. What it costs counts as a part of the transaction that follows."""
        before = self.looked_up
        with self._working("looking up"):
            rows = self.machine.lookup.having(self.snapshots[relation], columns, values, demand.COLLECTED_ROWS)
        self.looked_up = before[0] + self.stats.statements, before[1] + self.stats.spark_jobs
        return rows

    def twice(self, relation: str, columns: tuple[int, ...]) -> Row | None:
        with self._working("looking up"):
            return keeping.twice(self.snapshots[relation], columns)

    # -- answers

    @property
    def at_hand(self) -> frozenset[str]:
        """The derived relations that are among the snapshots."""
        return self.stored | self.grouped

    def rows(self, relation: str) -> set[Row]:
        """All rows of a base relation or a view."""
        if relation in self.snapshots and self.snapshots[relation].settled is None:
            return self.snapshots[relation].collect()
        return set(keeping.rows_of(self.frames, relation, self.table(relation)))

    def table(self, relation: str) -> pa.Table:
        """All rows of a base relation or a view as an Arrow table. Nothing of a view is kept on the way, unless others are derived from it."""
        with self._working(f"reading {relation}"):
            self._need([relation])
            if relation in self.snapshots:
                return self.frames.act(self.snapshots[relation].exact.toArrow)
            rules = self.rules.program
            with reading.evaluated(self.frames.session, rules, [relation], self.snapshots, self.watch, self.stats, [relation]) as machine:
                return self.frames.act(machine.asked(relation).toArrow)

    def frame(self, relation: str) -> DataFrame:
        """All rows of a base relation or a view as a frame, which stays as it is."""
        with self._working(f"reading {relation}"):
            self._need([relation])
            if relation in self.snapshots:
                return self.snapshots[relation].exact
            with self._evaluated([relation], self.snapshots, later=False) as frames:
                return frames[relation]

    def differing(self, other: SparkViews, views: Sequence[str]) -> dict[str, int]:
        """In how many rows views differ from what others that have the same rules say of them."""
        with self._working("comparing views"), self._whole(views) as own, other._whole(views) as theirs:
            self.frames.resume()
            self.frames.prepare(recursive=False, rows=self._rows)
            return differing(self.frames, {name: (own[name], theirs[name]) for name in views})

    @contextmanager
    def _whole(self, relations: Sequence[str]) -> Iterator[dict[str, DataFrame]]:
        """All rows of some relations."""
        self._need(relations)
        here = {name: self.snapshots[name].exact for name in relations if name in self.snapshots}
        with self._evaluated([name for name in relations if name not in here], self.snapshots) as frames:
            yield here | frames

    def prepare(self, goal: Goal) -> None:
        """TemporaryViews are made as they are needed."""

    def answers(self, goal: Goal) -> set[Row]:
        """The answers to a goal; only what it needs is derived."""
        with self._working("asking"):
            self.goals += 1
            plain = self.goals == 1 and not self._filled  # the first may ask for few groups, and be the last: none are filled for it
            asking, stored = with_goal(self.program if plain else self.plan.asked, goal.declaration, goal.rule), self.at_hand
            if not plain:
                self._need(relevant(asking, [goal.declaration.relation]).relations)
            return reading.answers(self.frames.session, asking, goal.declaration, stored, self.snapshots, self.watch, self.stats)

    @contextmanager
    def within(self, allowance: Allowance | None) -> Iterator[None]:
        with self.watch.within(allowance.seconds, allowance.rows) if allowance else nullcontext():
            yield

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it."""
        with self._working("proving"):
            return reading.proofs(self.frames.session, self.program, relation, rows, self.snapshots, self.watch, self.stats)

    def some(self, goal: Goal, budget: int) -> set[Row]:
        """See `Answerer`."""
        with self._working("asking"):
            asking, own = with_goal(self.program, goal.declaration, goal.rule), goal.declaration
            return reading.answers(self.frames.session, asking, own, self.at_hand, self.snapshots, self.watch, self.stats, budget)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """See `Answerer`. Nothing is derived for it."""
        with self._working(f"looking for rows of {relation}"):
            return keeping.nearest(self.snapshots[relation], bound, most) if relation in self.snapshots else set()

    def attach(self) -> None:
        """Nobody else works on frames."""

    def close(self) -> None:
        for snapshot in self.snapshots.values():
            snapshot.forget()
        self.queries.close()
        self._close_machines()

    def _close_machines(self) -> None:
        self.machine.close()
        for keeper in self.groups:
            keeper.close()

    # -- what is kept

    def _load(self, relation: str, source: Iterable[Row] | Place | TailedSnapshot | None, stated: Collection[Row]) -> Snapshot:
        snapshot = keeping.load(self.frames, relation, source)
        new = frozenset(stated) - keeping.among(snapshot, stated)
        return snapshot.after(Delta(plus=new)) if new else snapshot

    def _store(self, views: Collection[str], most: int | None = None) -> None:
        """Computes views, and keeps them. Raises TooManyRows, and keeps none, if one has more rows than `most`."""
        snapshots: dict[str, Snapshot] = {}
        with self._working("computing views"), self._evaluated(sorted(views), self.snapshots, self.plan.whole) as frames:
            for name, frame in frames.items():
                snapshots[name] = keeping.settled(self.frames, name, frame)
                if most is not None and snapshots[name].rows > most:
                    for snapshot in snapshots.values():
                        snapshot.forget()
                    raise TooManyRows(name, most)
        self.snapshots |= snapshots

    def _need(self, relations: Iterable[str]) -> None:
        """Computes what is kept of the groups from which some relations are derived, and is not there yet."""
        if len(self._filled) == len(self.groups):
            return
        needed = {name for relation in relations for name in {relation, *depends_on(self.rules.program, relation)}}
        for keeper in reversed(self.groups):
            if not needed.isdisjoint(keeper.kept):
                needed |= keeper.program.relations.keys()
        for keeper in self.groups:
            if keeper.kept[0] not in self.snapshots and not needed.isdisjoint(keeper.kept):
                self.watch.begin(f"computing {', '.join(keeper.counts)}")
                self.snapshots |= keeper.fill(self.snapshots, self.stats)
                self.frames.resume()

    def _fold(self) -> None:
        """Folds in tails that have grown long."""
        for name, snapshot in self.snapshots.items():
            if snapshot.overdue:
                self.snapshots[name] = snapshot.folded()
                snapshot.forget()

    def _delta(self, name: str) -> Delta:
        if name in self.external.tables:
            return Delta()
        state = self.external.states[name]
        return Delta(self.machine.rows(state.gained), self.machine.rows(state.lost))

    def _amended(self, name: str, change: Delta | None) -> Snapshot:
        """A stored view after the transaction; a large change is folded in at once, and does not come here."""
        state = self.external.states[name]
        if change is not None or not any(map(self.machine.is_elsewhere, (state.lost, state.gained))):
            return self.snapshots[name].after(change or self._delta(name))
        exact = self.snapshots[name].exact
        left = exact.join(self.machine.frame(state.lost), list(exact.columns), "left_anti")
        return keeping.settled(self.frames, name, left.unionAll(self.machine.frame(state.gained)))

    @contextmanager
    def _evaluated(
        self, wanted: Sequence[str], given: Mapping[str, Snapshot], program: Program | None = None, *, later: bool = True
    ) -> Iterator[dict[str, DataFrame]]:
        """Views, with all their rows, from some relations as they are given; what can be is derived `later`, when it is read."""
        rules = program or self.rules.program
        left = wanted if later else ()
        with reading.evaluated(self.frames.session, rules, wanted, given, self.watch, self.stats, left) as machine:
            yield {name: self.frames.lasting(machine.asked(name)) for name in wanted}

    # -- what it costs

    def _count(self) -> None:
        actions, jobs = self.frames.spent()
        self.stats.statements, self.stats.spark_jobs = self.stats.statements + actions, self.stats.spark_jobs + jobs

    @contextmanager
    def _working(self, what: str) -> Iterator[None]:
        """Counts what one call costs, and leaves the session's settings as they were."""
        began = time.perf_counter()
        self.watch.begin(what)
        self.frames.begin()
        stats = self.stats = Stats("spark")
        try:
            yield
        finally:
            self.frames.restore()
            self.stats = stats  # what follows from a transaction may have been another one within it
            self._count()
            stats.ms = (time.perf_counter() - began) * 1000
