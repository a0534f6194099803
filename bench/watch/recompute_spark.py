"""Recomputing and comparing on Spark. Tables and views are settled after each step, so that no plan grows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.graphs import Facts, arrow
from bench.watch.recompute import answer, answers
from bench.watch.session import Answer, Cost
from bench.watch.workloads import Change, Row, Workload
from vigilog.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkRecomputed:
    """In the session that the Spark executor has, so with as many shuffle partitions as cores."""

    def __init__(self, workload: Workload, facts: Facts | Path) -> None:
        self.spark = session()
        self.base, self.views = workload.program.base, workload.program.views
        self.loop = next(iter(self.views.values())).loop
        self.columns, self.query = answer(workload)
        self.tables = {name: self._load(name, facts).localCheckpoint() for name in self.base}
        self.answer = self._computed()
        self.first: Mapping[str, Answer] | None = None

    def _load(self, name: str, facts: Facts | Path) -> DataFrame:
        if isinstance(facts, Path):
            return self.spark.read.parquet(str(facts / f"{name}.parquet"))
        return self.spark.createDataFrame(arrow(self.base[name], facts[name]))

    def _computed(self) -> DataFrame:
        if self.loop:
            return LOOPS[self.loop](self.tables)
        for name, table in self.tables.items():
            table.createOrReplaceTempView(name)
        return self.spark.sql(self.query).localCheckpoint()

    def apply(self, change: Change) -> Mapping[str, Answer]:
        changed = dict.fromkeys(name for by_relation in change.values() for name in by_relation)
        for name in changed:
            table, columns = self.tables[name], list(self.base[name])
            gone, new = (change.get(operation, {}).get(name, ()) for operation in ("delete", "insert"))
            if gone:
                table = table.join(self._frame(name, gone), columns, "left_anti")
            if new:
                table = table.unionByName(self._frame(name, new))
            self.tables[name] = table.localCheckpoint()
        before, self.answer = self.answer, self._computed()
        came, went = self.answer.subtract(before), before.subtract(self.answer)
        marked = came.selectExpr("1", "*").union(went.selectExpr("0", "*"))
        return answers(list(self.views), map(tuple, marked.collect()))

    def _frame(self, name: str, rows: Sequence[Row]) -> DataFrame:
        return self.spark.createDataFrame(arrow(self.base[name], list(rows)))

    def view(self, name: str) -> Iterable[Row]:
        if len(self.views) == 1:
            return (tuple(row) for row in self.answer.toLocalIterator())
        if self.first is None:  # many views are asked for one after the other, before anything changes
            self.first = answers(list(self.views), ((1, *row) for row in self.answer.collect()))
        return self.first[name].plus if name in self.first else ()

    def cost(self) -> Cost:
        return Cost()

    def close(self) -> None:
        self.spark.stop()


def _closure(tables: Mapping[str, DataFrame]) -> DataFrame:
    edge = tables["edge"].toDF("z", "y")
    return _fixpoint(tables["edge"], lambda recent: recent.toDF("x", "z").join(edge, "z").select("x", "y"))


def _same_generation(tables: Mapping[str, DataFrame]) -> DataFrame:
    left, right = tables["edge"].toDF("p", "x"), tables["edge"].toDF("q", "y")
    siblings = left.join(right.withColumnRenamed("q", "p"), "p").where("x != y").select("x", "y")
    return _fixpoint(siblings, lambda recent: recent.toDF("p", "q").join(left, "p").join(right, "q").select("x", "y"))


def _fixpoint(first: DataFrame, step: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Semi-naive: each round joins what the last one found, and settles what is new."""
    known = recent = first.distinct().localCheckpoint()
    while not recent.isEmpty():
        recent = step(recent).distinct().join(known, ["x", "y"], "left_anti").localCheckpoint()
        known = known.union(recent)
    return known.localCheckpoint()


LOOPS = {"closure": _closure, "same_generation": _same_generation}
