"""Relations as Spark frames under temporary view names, and the actions that settle them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vigilog.core.arrow import to_arrow
from vigilog.core.errors import VigilogError
from vigilog.core.values import Row
from vigilog.executors.spark.functions import register, ship
from vigilog.executors.spark.tasks import told
from vigilog.executors.watch import Watch
from vigilog.language.program import Program
from vigilog.planning.dialect import Parameters
from vigilog.planning.layout import Layout
from vigilog.planning.sparksql import SparkDialect
from vigilog.spark.session import failure, is_remote
from vigilog.spark.values import to_frame

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import Column, DataFrame, SparkSession

BROADCAST_ROWS = 50_000
ROWS_A_PARTITION = 200_000


class TemporaryViews:
    """A session's temporary views for one evaluation. Views have a prefix of their own, and are gone after `close`."""

    def __init__(self, session: SparkSession, program: Program, watch: Watch) -> None:
        self.session, self.watch = session, watch
        self.tag = new_tag()
        self.layout = Layout(program, f"{self.tag}_")
        self.dialect = SparkDialect()
        self.connect = is_remote(session)
        self.registered: set[str] = set()
        self.views: set[str] = set()
        self.actions, self.counted = 0, (0, 0)
        self.on_this_machine = not self.connect and str(session.sparkContext.master).startswith("local[")
        self.saved = {key: session.conf.get(key) for key in ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")}
        self.partitions = self.width = int(self.saved["spark.sql.shuffle.partitions"] or 2)
        self._tag_jobs()

    def begin(self) -> None:
        """Counts anew: what follows is a new piece of work, for which others may have used the session meanwhile."""
        self.session.removeTag(self.tag)
        self.tag, self.actions, self.counted = new_tag(), 0, (0, 0)
        self._tag_jobs()

    def resume(self) -> None:
        """Goes on after others have used the session."""
        self._tag_jobs()

    def _tag_jobs(self) -> None:
        self.session.addTag(self.tag)
        if not self.connect:
            self.session.sparkContext.setJobGroup(self.tag, "vigilog")

    def sql(self, text: str, parameters: Parameters) -> DataFrame:
        if self.dialect.functions.keys() - self.registered:
            if not self.on_this_machine:
                ship(self.session)
            register(self.session, self.dialect.functions, self.registered)
        try:
            return self.session.sql(text, args=dict(parameters) or None)
        except Exception as reason:
            raise translated(reason, self.watch.doing) from None

    def local(self, relation: str, rows: Sequence[Row]) -> DataFrame:
        """Rows that are in this process as a frame."""
        return self.frame(relation, self.table(relation, rows))

    def table(self, relation: str, rows: Sequence[Row]) -> pa.Table:
        given: Sequence[Row] = rows if self.layout.program.relations[relation].attributes else [(True,) for _ in rows]
        return to_arrow(self.layout.columns[relation], self.layout.types[relation], given)

    def frame(self, relation: str, table: pa.Table) -> DataFrame:
        return to_frame(self.session, self.layout.types[relation], table)

    def show(self, name: str, frame: DataFrame, rows: int | None = None) -> str:
        """Makes a frame visible to SQL; a small one is sent whole to wherever it is joined."""
        from pyspark.sql.functions import broadcast

        small = rows is not None and rows <= BROADCAST_ROWS
        (broadcast(frame) if small else frame).createOrReplaceTempView(name)
        self.views.add(name)
        return name

    def prepare(self, recursive: bool, rows: int) -> None:
        """Sets up shuffles for a component that starts from so many rows.

        Plans that adapt cost an extra job for each shuffle and lose their partitioning, so a recursion does without.
        """
        self.width = max(1, min(self.partitions, rows // ROWS_A_PARTITION + 1))
        self.configure(partitions=self.width, adaptive=not recursive and self.width > 1)

    def configure(self, *, partitions: int, adaptive: bool) -> None:
        """Sets up the shuffles of what follows."""
        self.session.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self.session.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())

    def forget(self, view: str) -> None:
        self.session.catalog.dropTempView(view)
        self.views.discard(view)

    def settle(self, frame: DataFrame, counts: Mapping[str, Column], level: StorageLevel | None = None) -> tuple[DataFrame, dict[str, int]]:
        """Computes a frame, cuts its lineage, and gives the named counts of it: one action, two through Spark Connect."""
        from pyspark.sql import Observation

        if self.connect:
            done = self._checkpoint(frame, level)
            row = self.act(lambda: done.agg(*(column.alias(name) for name, column in counts.items())).collect())[0]
            return done, {name: int(row[name] or 0) for name in counts}
        observation = Observation()
        observed = frame.observe(observation, *(column.alias(name) for name, column in counts.items()))
        done = self.act(lambda: observed.localCheckpoint(eager=True, storageLevel=level))
        totals = observation.get
        return done, {name: int(totals.get(name) or 0) for name in counts}

    def lasting(self, frame: DataFrame) -> DataFrame:
        """A frame that can be read when the views that it names are gone; only Spark Connect looks for them so late."""
        return self._checkpoint(frame) if self.connect else frame

    def _checkpoint(self, frame: DataFrame, level: StorageLevel | None = None) -> DataFrame:
        """Through Spark Connect: it belongs to the session that makes it, though pyspark takes it for one of the first session there was."""
        done = self.act(lambda: frame.localCheckpoint(eager=True, storageLevel=level))
        done._session = done._plan._spark_session = self.session
        checkpointed: DataFrame = done
        return checkpointed

    def act(self, action: Callable[[], Any]) -> Any:
        """Runs a Spark action within the bounds of the watch; what goes wrong becomes a VigilogError."""
        self.actions += 1
        with self._timed(), told(self.session, self.tag, self.watch, connect=self.connect):
            try:
                return action()
            except Exception as reason:
                if self.watch.expired:
                    raise self.watch.timed_out() from None
                raise translated(reason, self.watch.doing) from None

    @contextmanager
    def _timed(self) -> Iterator[None]:
        remaining = self.watch.remaining
        if remaining is None:
            yield
            return
        self.watch.tick()
        timer = threading.Timer(remaining, self._cancel)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _cancel(self) -> None:
        if self.connect:
            self.session.interruptTag(self.tag)
        else:
            self.session.sparkContext.cancelJobGroup(self.tag)

    def jobs(self) -> int:
        """How many Spark jobs this evaluation ran; through Spark Connect, how many actions."""
        if self.connect:
            return self.actions
        return len(self.session.sparkContext.statusTracker().getJobIdsForGroup(self.tag))

    def spent(self) -> tuple[int, int]:
        """How many actions and jobs there were since this was last asked."""
        before, self.counted = self.counted, (self.actions, self.jobs())
        return self.counted[0] - before[0], self.counted[1] - before[1]

    def close(self) -> None:
        with suppress(Exception):  # a session that has died keeps nothing
            for view in self.views:
                self.session.catalog.dropTempView(view)
            self.restore()
            self.session.removeTag(self.tag)

    def restore(self) -> None:
        """The session's settings are again as they were found."""
        for key, value in self.saved.items():
            if value is not None:
                self.session.conf.set(key, value)


def new_tag() -> str:
    return f"vigilog_{uuid.uuid4().hex[:12]}"


def translated(reason: Exception, doing: str) -> VigilogError:
    """A Spark failure as one sentence."""
    return reason if isinstance(reason, VigilogError) else failure(reason, doing)
