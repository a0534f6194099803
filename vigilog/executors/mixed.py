"""Views over a mix: relations that are resident in SQLite, and ones that are too large for that and live on Spark.

A view all of whose relations are resident is maintained on SQLite; Spark does not even start for it. A view that reads a large relation is maintained on Spark, which also gets the resident relations that
it reads. A change goes to whichever reads it, and is kept by both or by none: Spark's part is taken back if SQLite's fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.allowance import Allowance
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.views import Settle, nothing
from vigilog.language.goal import Goal
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.strategies.choose import depends_on
from vigilog.spark import session

if TYPE_CHECKING:
    from vigilog.executors.spark.stored import Snapshot
    from vigilog.executors.spark.views import SparkViews


class Beginning:
    """Spark's part of the views while it is made, beside transactions: from what there was when it began, to which `since` adds what has changed.

    It is made by whoever comes first; others wait for it.
    """

    def __init__(self, make: Callable[[], SparkViews], since: Callable[[], Mapping[str, Delta]]) -> None:
        self.make, self.since = make, since
        self.turn, self.losses = Lock(), session.losses()
        self.made: Future[SparkViews] = Future()

    def run(self) -> None:
        with self.turn:
            if self.made.done():
                return
            try:
                self.made.set_result(self.make())
            except Exception as reason:
                self.made.set_exception(reason)

    def taken(self) -> SparkViews:
        """Spark's part as of now, while nobody else writes."""
        self.run()
        views = self.made.result()
        if changes := {name: delta for name, delta in self.since().items() if name in views.snapshots}:
            views.apply(changes)
        return views

    @property
    def lost(self) -> bool:
        """Whether it could not be made, or something of it has gone since, or all with its session."""
        if not self.made.done():
            return False
        failed = self.made.exception() is not None or self.losses != session.losses()
        return failed or not session.is_current(self.made.result().frames.session)

    def abandon(self) -> None:
        """Nobody will take it."""
        self.made.add_done_callback(_close)


def _close(made: Future[SparkViews]) -> None:
    if made.exception() is None:
        with suppress(Exception):  # a session that has died keeps nothing
            made.result().close()


class MixedViews:
    """See `Views`. Base relations in `large` are on Spark; `distant` starts it, with the views and the queries that it is to maintain, when it is first needed."""

    def __init__(
        self,
        program: Program,
        views: Iterable[str],
        queries: Iterable[str],
        large: Collection[str],
        resident: Callable[[], EmbeddedViews],
        distant: Callable[[Sequence[str], Sequence[str]], Beginning],
    ) -> None:
        self.program, self.large = program, frozenset(large)
        self.reads = {name: depends_on(program, name) for name in program.relations}
        self.far, self.asked = ([name for name in names if self.is_far(name)] for names in (views, queries))
        self.resident = resident()
        self._distant: SparkViews | None = None
        self._losses = 0  # of Spark's workers, before that began
        self._beginning: Beginning | None = None
        self._within = False  # whether a transaction is under way,
        self._before: tuple[SparkViews, dict[str, Snapshot]] | None = None  # and what Spark's part held before it
        self.start = distant
        self.stats = self.resident.stats

    def is_far(self, relation: str) -> bool:
        """Whether something of a relation is on Spark."""
        return not self.large.isdisjoint(self.reads[relation])

    @property
    def distant(self) -> SparkViews:
        if (beginning := self.begin()) is not None:
            try:
                self._distant, self._losses = beginning.taken(), beginning.losses
            finally:
                self._beginning = None
        assert self._distant is not None, "it has begun"
        return self._distant

    def begin(self) -> Beginning | None:
        """Spark's part as it begins; None if it is there. After the end of its process, or of a worker that it kept something on, it begins anew."""
        over = self._distant is not None and not (session.is_current(self._distant.frames.session) and self._losses == session.losses())
        if over or (self._beginning is not None and self._beginning.lost):
            self.renew()
        if self._distant is None and self._beginning is None:
            self._beginning = self.start(self.far, self.asked)
        return self._beginning

    def renew(self) -> None:
        """Spark's part begins anew, from what is stored, when it is needed next."""
        if self._beginning is not None:
            self._beginning.abandon()
        if self._distant is not None:
            with suppress(Exception):  # a session that has died keeps nothing
                self._distant.close()
        self._distant = self._beginning = None

    def held(self) -> SparkViews:
        """Spark's part, as of now."""
        with self._at_spark() as distant:
            return distant

    @contextmanager
    def _at_spark(self) -> Iterator[SparkViews]:
        """Spark's part."""
        with session.surviving():
            yield self.distant

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        if relation not in self.large:
            return self.resident.among(relation, rows)
        with self._at_spark() as distant:
            return distant.among(relation, rows)

    def having(self, relation: str, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        if relation not in self.large:
            return self.resident.having(relation, columns, values)
        with self._at_spark() as distant:
            return distant.having(relation, columns, values)

    def twice(self, relation: str, columns: tuple[int, ...]) -> Row | None:
        if relation not in self.large:
            return self.resident.twice(relation, columns)
        with self._at_spark() as distant:
            return distant.twice(relation, columns)

    def apply(self, changes: Mapping[str, Delta], settle: Settle = nothing, *, keep: bool = True) -> dict[str, Delta]:
        if self._within:  # something follows from a change, in its transaction
            return self._apply(changes, settle, keep=keep)
        self._within, kept = True, False
        try:
            deltas = self._apply(changes, settle, keep=keep)
            kept = keep
        finally:
            before, self._within, self._before = self._before, False, None
            if before is not None and not kept and before[0] is self._distant:
                self._distant.snapshots = before[1]  # whatever followed; the tables are taken back by their transaction
        return deltas

    def _apply(self, changes: Mapping[str, Delta], settle: Settle, *, keep: bool) -> dict[str, Delta]:
        near = {name: delta for name, delta in changes.items() if name not in self.large}
        read = {name for view in (*self.far, *self.asked) for name in self.reads[view]} | self.large
        far = {name: delta for name, delta in changes.items() if name in read}
        if not far:
            net = self.resident.apply(near, settle, keep=keep)
            self.stats = self.resident.stats
            return net
        together: dict[str, Delta] = {}

        def settle_both(others: Mapping[str, Delta]) -> None:
            together.update(others)
            settle(together)

        def settle_near(deltas: Mapping[str, Delta]) -> None:
            together.update(deltas)
            self.resident.apply(near, settle_both, keep=keep)

        with self._at_spark() as distant:
            self._before = self._before or (distant, distant.snapshots)
            distant.apply(far, settle_near, keep=keep)
        own, other = distant.stats, self.resident.stats
        self.stats = replace(
            own,
            derived=own.derived + other.derived,
            rounds=own.rounds + other.rounds,
            statements=own.statements + other.statements,
            undefined=own.undefined + other.undefined,
            recomputed=own.recomputed or other.recomputed,
        )
        return together

    def rows(self, relation: str) -> Iterable[Row]:
        if not self.is_far(relation):
            return self.resident.rows(relation)
        with self._at_spark() as distant:
            return distant.rows(relation)

    def prepare(self, goal: Goal) -> None:
        if not self._reads_far(goal):
            self.resident.prepare(goal)

    def _reads_far(self, goal: Goal) -> bool:
        return any(self.is_far(atom.relation) for atom, _ in atoms(goal.rule.body))

    def answers(self, goal: Goal) -> Iterable[Row]:
        if not self._reads_far(goal):
            answers = self.resident.answers(goal)
            self.stats = self.resident.stats
            return answers
        with self._at_spark() as distant:
            rows = distant.answers(goal)
            self.stats = distant.stats
            return rows

    @contextmanager
    def within(self, allowance: Allowance | None) -> Iterator[None]:
        with ExitStack() as bounds:
            bounds.enter_context(self.resident.within(allowance))
            if self._distant is not None:
                bounds.enter_context(self._distant.within(allowance))
            yield

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        if not self.is_far(relation):
            return self.resident.proofs(relation, rows)
        with self._at_spark() as distant:
            return distant.proofs(relation, rows)

    def some(self, goal: Goal, budget: int) -> Collection[Row]:
        if not self._reads_far(goal):
            return self.resident.some(goal, budget)
        with self._at_spark() as distant:
            return distant.some(goal, budget)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> Collection[Row]:
        if not self.is_far(relation):
            return self.resident.nearest(relation, bound, most)
        with self._at_spark() as distant:
            return distant.nearest(relation, bound, most)

    def attach(self) -> None:
        self.resident.attach()

    def close(self) -> None:
        self.renew()
        self.resident.close()
