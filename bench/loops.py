"""Recursion on Spark as people write it by hand: `join`, `union`, `distinct`, and a `count` per round to see whether anything came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TemporaryViews = Mapping[str, "DataFrame"]
Rounds = Callable[[int, int], None]


def closure(given: TemporaryViews, each: Rounds) -> int:
    edge = given["edge"].toDF("z", "y")

    def step(known: DataFrame) -> DataFrame:
        return known.union(known.toDF("x", "z").join(edge, "z").select("x", "y")).distinct()

    return _until_nothing_comes(given["edge"], step, each)


def same_generation(given: TemporaryViews, each: Rounds) -> int:
    left, right = given["edge"].toDF("p", "x"), given["edge"].toDF("q", "y")
    siblings = left.join(right.withColumnRenamed("q", "p"), "p").where("x != y").select("x", "y")

    def step(known: DataFrame) -> DataFrame:
        return known.union(known.toDF("p", "q").join(left, "p").join(right, "q").select("x", "y")).distinct()

    return _until_nothing_comes(siblings, step, each)


def points_to(given: TemporaryViews, each: Rounds) -> int:
    assign, load, store = given["assign"], given["load"], given["store"]

    def step(points: DataFrame) -> DataFrame:
        heap = store.join(points.toDF("b", "h"), "b").join(points.toDF("v", "o"), "v").select("h", "f", "o")
        assigned = assign.join(points.toDF("u", "h"), "u").select("v", "h")
        loaded = load.join(points.toDF("b", "h"), "b").join(heap, ["h", "f"]).select("v", "o")
        return points.union(assigned).union(loaded).distinct()

    return _until_nothing_comes(given["new"], step, each)


def _until_nothing_comes(known: DataFrame, step: Callable[[DataFrame], DataFrame], each: Rounds) -> int:
    rows, before, rounds = known.count(), -1, 0
    while rows != before:
        known, before, rounds = step(known), rows, rounds + 1
        rows = known.count()
        each(rounds, rows)
    return rows


LOOPS = {"closure": closure, "same_generation": same_generation, "points_to": points_to}
