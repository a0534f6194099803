"""Reads what Spark holds at one time. Snapshots never change, so a state is a handful of them, and whoever has it may take his time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.embedded.why import provable, questions
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark.demand import DemandMachine
from vigilog.executors.spark.machine import FrameMachine
from vigilog.executors.spark.stored import Snapshot, among, apart, nearest, rows_of
from vigilog.executors.spark.temporary import TemporaryViews, new_tag
from vigilog.executors.watch import TooManyRows, Watch
from vigilog.language.goal import Goal
from vigilog.language.program import Program
from vigilog.language.strata import improved
from vigilog.language.syntax import Declaration
from vigilog.rewriting.demand.lineage import lineage
from vigilog.rewriting.demand.magic import magic
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.passes import with_goal
from vigilog.rewriting.program.relevant import relevant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW_ROWS = 100_000  # of base relations with no more rows, all come to this process for a proof;
MOST_READ = 1_000_000  # otherwise so many come at most, of those that its questions lead to,
MOST_DERIVED = 3_000_000  # and these questions, with their answers and what they read, are at most so many

Given = Mapping[str, Snapshot]


def unstored(program: Program, given: Iterable[str]) -> Program:
    """A program that reads relations as they are given, and derives the others."""
    names = frozenset(given)
    return replace(program, rules=tuple(rule for rule in program.rules if rule.head.relation not in names))


@contextmanager
def evaluated(
    session: SparkSession, program: Program, wanted: Sequence[str], given: Given, watch: Watch, stats: Stats, later: Collection[str] = ()
) -> Iterator[FrameMachine]:
    """Relations, with all their rows, from some as they are given. What it costs is added to `stats`. What is asked for `later` is derived then, where that can be."""
    plain = relevant(unstored(program, given), wanted)
    with _beside(TemporaryViews(session, plain, watch), stats) as frames:
        derived = {rule.head.relation for rule in program.rules}
        machine = FrameMachine(frames, {name: key for name, key in program.keys.items() if name in given and name not in derived})
        for name in plain.relations.keys() & given.keys():
            machine.take(name, given[name].exact, given[name].rows)
        stats.rounds += machine.evaluate(later)
        stats.derived += machine.derived
        yield machine


def answers(
    session: SparkSession,
    asking: Program,
    goal: Declaration,
    stored: frozenset[str],
    given: Given,
    watch: Watch,
    stats: Stats,
    budget: int | None = None,
) -> set[Row]:
    """The answers to a goal of a program that has its rules; only what it needs is derived."""
    pattern, given = "f" * goal.arity, {name: given[name] for name in given.keys() & asking.relations.keys()}
    question = magic(asking, [(goal.relation, pattern)], stored)
    machine = DemandMachine(session, question.program, question.levels, given, watch)
    machine.budget = budget
    with _beside(machine.frames, stats):
        machine.run(given, {question.questions[goal.relation, pattern]: [()]})
        count(stats, machine)
        return set(machine.rows(goal.relation))


def proofs(
    session: SparkSession, program: Program, relation: str, rows: Sequence[Row], given: Given, watch: Watch, stats: Stats
) -> list[Proof | None]:
    """For each row of a relation a proof of it. It is found on SQLite, over the rows that it can rest on: these are looked for here, by the same questions."""
    needed = relevant(program, [relation])
    base = {name: given[name] for name in needed.relations.keys() & given.keys() - {rule.head.relation for rule in program.rules}}
    if relation in base:
        premises: Mapping[str, Iterable[Row]] = {relation: among(base[relation], rows)}
    elif (many := sum(table.rows for table in base.values())) <= FEW_ROWS or improved(needed):
        if many > MOST_READ:  # the best of all rests on all
            raise DataError(f"a proof of {relation} is too far to seek: it may rest on more than {MOST_READ:,} rows", "why")
        premises = {name: table.collect() for name, table in base.items()}
    else:
        premises = _lineage(session, needed, relation, rows, base, watch, stats)
    with closing(EmbeddedViews(plan(needed, [relation] if improved(needed) else ()), premises)) as views:
        return views.proofs(relation, rows)


def _lineage(
    session: SparkSession, program: Program, relation: str, rows: Sequence[Row], base: Given, watch: Watch, stats: Stats
) -> dict[str, Iterable[Row]]:
    """The rows of tables that rows of a relation can rest on."""
    asked, question = questions(provable(program), relation)
    reading, read = lineage(asked.program, base)
    machine = DemandMachine(session, reading, asked.levels, base, watch)
    machine.budget = MOST_DERIVED
    with _beside(machine.frames, stats):
        try:
            machine.run(base, {question: rows})
            count(stats, machine)
            if sum(machine.size(own) for own in read.values()) > MOST_READ:
                raise OverBudget(f"it may rest on more than {MOST_READ:,} rows")
        except OverBudget as reason:
            hint = "ask why a row holds that it is derived from, nearer to the facts"
            raise DataError(f"a proof of {relation} is too far to seek: {reason.message}; {hint}", "why") from None
        return {name: machine.rows(own) for name, own in read.items()}


def count(stats: Stats, machine: DemandMachine) -> None:
    stats.rounds, stats.derived, stats.undefined = machine.rounds, machine.derived, machine.undefined


@contextmanager
def _beside(frames: TemporaryViews, stats: Stats) -> Iterator[TemporaryViews]:
    """Counts and closes frames that others of the same session do not know."""
    try:
        yield frames
    finally:
        stats.statements += frames.actions
        stats.spark_jobs += frames.jobs()
        frames.close()


class SparkReader:
    """A state of some relations, in a session of its own: neither its settings nor its views are those of whoever goes on to change them.

    `program` is that part of the `whole` whose relations can be read; `stored` are those of them whose rows are among the snapshots though there are rules for them. An answer comes within the
    bounds of the watch, and rests on no more derived rows than its `max_rows`.
    """

    def __init__(
        self, session: SparkSession, whole: Program, program: Program, stored: frozenset[str], snapshots: Given, watch: Watch
    ) -> None:
        self.session, self.program, self.stored, self.snapshots, self.watch = session, program, stored, snapshots, watch
        self.frames, self.tag = TemporaryViews(session, whole, watch), new_tag()
        self.moved: dict[str, Snapshot] = {}
        self.views: list[str] = []
        self.stopped: Exception | None = None
        session.addTag(self.tag)

    def state(self, relation: str, rows: Iterable[Row]) -> None:
        """Tells the rows of a relation of the whole program that Spark does not hold."""
        declaration = self.frames.layout.program.relations[relation]
        self.program = replace(self.program, declarations=(*self.program.declarations, declaration))
        self.moved[relation] = Snapshot(self.frames, relation, Delta(plus=frozenset(rows)))

    def rows(self, relation: str) -> Iterable[Row]:
        """All rows of a relation."""
        with self._bounded():
            if relation in self.snapshots:
                self._ensure_affordable(self.snapshots[relation].rows)
                return self._given([relation])[relation].collect()
            plain = relevant(unstored(self.program, self.snapshots), [relation])
            with evaluated(self.session, plain, [relation], self._given(plain.relations), self.watch, Stats("spark")) as machine:
                self._ensure_affordable(machine.sizes[relation])
                return list(rows_of(machine.frames, relation, machine.frames.act(machine.whole(relation).toArrow)))

    def answers(self, goal: Goal) -> set[Row]:
        with self._bounded():
            return self._answers(goal, self.watch.max_rows)

    def _answers(self, goal: Goal, budget: int | None) -> set[Row]:
        asking = with_goal(self.program, goal.declaration, goal.rule)
        asking = relevant(asking, [goal.declaration.relation])
        given = self._given(relevant(unstored(asking, self.snapshots), [goal.declaration.relation]).relations)
        return answers(self.session, asking, goal.declaration, self.stored, given, self.watch, Stats("spark"), budget)

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        with self._bounded():
            needed = relevant(self.program, [relation])
            return proofs(self.session, needed, relation, rows, self._given(needed.relations), self.watch, Stats("spark"))

    def some(self, goal: Goal, budget: int) -> set[Row]:
        """See `Answerer`."""
        with self._bounded():
            return self._answers(goal, budget if self.watch.max_rows is None else min(budget, self.watch.max_rows))

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """See `Answerer`. Nothing is derived for it."""
        with self._bounded():
            return nearest(self._given([relation])[relation], bound, most) if relation in self.snapshots else set()

    def stop(self, reason: Exception) -> None:
        """Ends what another thread reads; there it raises this."""
        self.stopped, self.watch.timeout = reason, 0.0
        with suppress(Exception):  # a session that has died does nothing any more
            self.session.interruptTag(self.tag)

    def close(self) -> None:
        self.frames.close()
        with suppress(Exception):
            self.session.removeTag(self.tag)
            for view in self.views:
                self.session.catalog.dropGlobalTempView(view)

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        try:
            yield
        except (OverBudget, TooManyRows) as reason:
            raise DataError(f"the answer costs too much: {reason.message}; ask for less of it", "budget") from None
        except Exception:
            if self.stopped is not None:
                raise self.stopped from None
            raise

    def _ensure_affordable(self, rows: int) -> None:
        if self.watch.max_rows is not None and rows > self.watch.max_rows:
            raise TooManyRows(self.watch.doing, self.watch.max_rows)

    def _given(self, relations: Iterable[str]) -> dict[str, Snapshot]:
        """Relations as they are in this session."""
        for name in self.snapshots.keys() & set(relations) - self.moved.keys():
            held = self.snapshots[name]
            settled = None if held.settled is None else self._here(held.settled)
            self.moved[name] = Snapshot(self.frames, name, held.tail, settled, held.settled_rows, held.near, held.spooled)
        return {name: self.moved[name] for name in relations if name in self.moved}

    def _here(self, frame: DataFrame) -> DataFrame:
        """A frame of another session as one of this. What is cached of it is read here, too."""
        name = new_tag()
        apart(frame).createGlobalTempView(name)
        self.views.append(name)
        return self.session.table(f"global_temp.{name}")
