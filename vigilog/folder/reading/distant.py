"""States of which a part is on Spark: read in a session of its own, beside a connection that stands at the same transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value, sorted_rows
from vigilog.core.whynot import WhyNot
from vigilog.executors.mixed import MixedViews
from vigilog.executors.watch import Watch
from vigilog.executors.whynot import why_not
from vigilog.language.goal import Goal, goal_of, of_one_atom
from vigilog.language.parts import atoms
from vigilog.spark import session

if TYPE_CHECKING:
    from vigilog.executors.spark.reader import SparkReader
    from vigilog.executors.spark.stored import Snapshot
    from vigilog.executors.spark.views import SparkViews
    from vigilog.folder.durable import Durable
    from vigilog.folder.reading.states import Reader


class SparkState:
    """One state: what is resident is read by a reader, the rest by Spark."""

    def __init__(self, reader: Reader, spark: SparkReader, views: MixedViews) -> None:
        self.reader, self.spark, self.views = reader, spark, views
        self.tx, self.log = reader.tx, reader.log

    def rows(self, relation: str, bound: Mapping[int, Value] | None = None) -> Iterable[Row]:
        if not self.views.is_far(relation):
            return self.reader.rows(relation, bound)
        if bound:
            return sorted_rows(self.spark.answers(goal_of(self.reader.compiled.program, relation, bound)))
        return sorted_rows(self.spark.rows(relation))

    def answers(self, goal: Goal) -> list[Row]:
        named = [atom.relation for atom, _ in atoms(goal.rule.body)]
        if not any(map(self.views.is_far, named)):
            return self.reader.answers(goal)
        for name in named:
            if name not in self.spark.program.relations:
                self.spark.state(name, self.reader.rows(name))
        return list(self.spark.answers(goal))

    def why(self, goal: Goal) -> Proof | None:
        if not self.views.is_far(of_one_atom(goal).of_atom):
            return self.reader.why(goal)
        answers = sorted_rows(self.answers(goal))
        proof = self.spark.proofs(goal.of_atom, answers[:1])[0] if answers else None
        return proof and proof.rebuilt(self.reader.db.stated_step)

    def why_not(self, goal: Goal, depth: int = 1) -> WhyNot:
        compiled = self.reader.compiled
        return why_not(compiled.plain, compiled.homes, self, of_one_atom(goal), depth)

    def some(self, goal: Goal, budget: int) -> Collection[Row]:
        far = any(self.views.is_far(atom.relation) for atom, _ in atoms(goal.rule.body))
        return self.spark.some(goal, budget) if far else self.reader.embedded.some(goal, budget)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> Collection[Row]:
        far = self.views.is_far(relation)
        return self.spark.nearest(relation, bound, most) if far else self.reader.embedded.nearest(relation, bound, most)


def begin(db: Durable) -> None:
    """Makes sure that Spark's part of the views is there, or almost: nobody waits for it but the one who asks."""
    with db.lock:
        beginning = db.views.begin() if isinstance(db.views, MixedViews) else None
    if beginning is not None:
        beginning.run()


def held(db: Durable, reader: Reader, watch: Watch) -> AbstractContextManager[SparkState]:
    """The state of now, to be read later; called while nobody writes."""
    views = db.views
    assert isinstance(views, MixedViews), "something is on Spark"
    distant, token = views.held(), object()
    db.store.looking.add(token)
    return _reading(db, reader, views, distant, dict(distant.snapshots), watch, token)


@contextmanager
def _reading(
    db: Durable, reader: Reader, views: MixedViews, distant: SparkViews, snapshots: Mapping[str, Snapshot], watch: Watch, token: object
) -> Iterator[SparkState]:
    from vigilog.executors.spark.reader import SparkReader

    try:
        with (
            session.surviving(),
            session.aside() as own,
            closing(SparkReader(own, views.program, distant.program, distant.at_hand, snapshots, watch)) as spark,
        ):
            reader.spark = spark
            if db.readers.closed:
                reader.stop(DataError("the database is closed", "closed"))
            yield SparkState(reader, spark, views)
    finally:
        reader.spark = None
        db.store.looking.discard(token)
