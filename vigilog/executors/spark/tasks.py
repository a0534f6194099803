"""How many tasks of an action are done, asked of Spark while it runs: its status tracker, or, through Spark Connect, what the server tells.

Spark knows a job's tasks when the job begins; a plan that adapts is several jobs, one after the other, so the total may grow.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vigilog.executors.watch import Watch

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

SECONDS = 0.5  # between two looks; an action that is over sooner is not looked at


@contextmanager
def told(session: SparkSession, group: str, watch: Watch, *, connect: bool) -> Iterator[None]:
    """The watch is told of the tasks of what runs inside, in a group of jobs, if it shows them to somebody."""
    if watch.report is None:
        yield
        return
    with _heard(session, watch) if connect else _looked_at(session, group, watch):
        yield


@contextmanager
def _looked_at(session: SparkSession, group: str, watch: Watch) -> Iterator[None]:
    over, jobs = threading.Event(), set[int]()

    def look() -> None:
        while not over.wait(SECONDS):
            with suppress(Exception):  # Spark's process may have ended, which whoever waits for it will hear
                done, total = _tasks(session.sparkContext.statusTracker(), group, jobs)
                if total and not over.is_set():
                    watch.part(done, total, "task")

    looker = threading.Thread(target=look, name="tasks", daemon=True)
    looker.start()
    try:
        yield
    finally:
        over.set()


def _tasks(tracker: StatusTracker, group: str, jobs: set[int]) -> tuple[int, int]:
    """Tasks done, and all, of the jobs that were seen running; those that run now are added to these."""
    jobs |= {*tracker.getActiveJobsIds()} & {*tracker.getJobIdsForGroup(group)}
    done = total = 0
    for job in jobs:
        if (info := tracker.getJobInfo(job)) is None:
            continue
        for number in info.stageIds:
            if (stage := tracker.getStageInfo(number)) is not None:
                total += stage.numTasks
                done += stage.numCompletedTasks if info.status == "RUNNING" else stage.numTasks
    return done, total


@contextmanager
def _heard(session: SparkSession, watch: Watch) -> Iterator[None]:
    def hear(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        infos = list(stages or ())
        if total := sum(stage.num_tasks for stage in infos):
            watch.part(sum(stage.num_completed_tasks for stage in infos), total, "task")

    session.registerProgressHandler(hear)  # type: ignore[arg-type]  # what is called is enough
    try:
        yield
    finally:
        session.removeProgressHandler(hear)  # type: ignore[arg-type]
