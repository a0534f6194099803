"""Evaluates a program on Spark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.arrow import from_arrow
from vigilog.core.errors import DataError
from vigilog.core.values import Row, sorted_rows
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark.machine import FrameMachine
from vigilog.executors.spark.temporary import ROWS_A_PARTITION, TemporaryViews
from vigilog.executors.watch import Watch
from vigilog.files.place import Place
from vigilog.files.writer import write_file
from vigilog.language.program import Program
from vigilog.spark.session import session
from vigilog.spark.sinks import in_order, write
from vigilog.spark.sources import expected, read, refusal, told_by_reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkEvaluation:
    """The frames of an evaluated program."""

    def __init__(self, program: Program, sources: Mapping[str, Iterable[Row] | Place], watch: Watch) -> None:
        """Evaluates a plain program (see `rewriting.passes`) over rows, or over places that Spark reads."""
        watch.begin("starting Spark")
        spark = session()
        started = time.perf_counter()
        self.program, self.watch = program, watch
        self.frames = TemporaryViews(spark, program, watch)
        self.layout = self.frames.layout
        self.stats = Stats("spark")
        self.machine = FrameMachine(self.frames)
        try:
            for relation in program.relations:
                self._load(relation, sources.get(relation))
            self.stats.rounds = self.machine.evaluate()
            self.stats.undefined = self.machine.count_undefined()
        except BaseException:
            self.close()
            raise
        self.stats.derived = self.machine.derived
        self.stats.statements = self.frames.actions
        self.stats.spark_jobs = self.frames.jobs()
        self.stats.ms = (time.perf_counter() - started) * 1000

    def _load(self, relation: str, source: Iterable[Row] | Place | None) -> None:
        if source is None:
            return
        self.watch.begin(f"reading {relation}", expected(source) if self.watch.report and isinstance(source, Place) else 0)
        if not isinstance(source, Place):
            self.machine.state(relation, source)
            return
        try:
            refused = self.machine.load(relation, read(self.frames.session, source))
        except DataError as reason:
            raise told_by_reader(source) or reason from None
        if refused:
            raise self.frames.act(lambda: refusal(self.frames.session, source))

    def count(self, relation: str) -> int:
        return self.machine.sizes.get(relation, 0)

    def frame(self, relation: str) -> DataFrame:
        return self.machine.whole(relation)

    def rows(self, relation: str) -> Iterator[Row]:
        number, here = self.count(relation), self.machine.here(relation)
        if not self.program.relations[relation].attributes:
            return iter([()] * number)
        if here is not None:
            return iter(sorted_rows(from_arrow(self.layout.types[relation], here)))
        ordered = in_order(self.frame(relation), few=number <= ROWS_A_PARTITION)
        return from_arrow(self.layout.types[relation], self.frames.act(ordered.toArrow))

    def write(self, place: Place, path: Path | None) -> None:
        if path is not None and place.text and self.machine.here(place.relation) is not None:
            write_file(place, self.rows(place.relation), path)
            return
        self.watch.begin(f"writing {place.relation}", self.count(place.relation))
        few = self.count(place.relation) <= ROWS_A_PARTITION
        self.frames.act(lambda: write(self.frames.session, self.frame(place.relation), place, path, few=few))

    def close(self) -> None:
        self.frames.close()
