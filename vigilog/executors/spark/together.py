"""Frames of several relations that are one action, and what makes the frames of relations differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.delta import Delta
from vigilog.core.values import Row
from vigilog.executors.spark.stored import rows_of
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TAG, SIDE = "__part", "__side"


@dataclass(frozen=True)
class Part:
    """Rows of a relation, in the columns at some places; with `sides`, one more column says on which side each is."""

    relation: str
    places: Sequence[int]
    frame: DataFrame
    sides: bool = False


def together(frames: TemporaryViews, parts: Sequence[Part]) -> DataFrame:
    """The rows of all parts, each among the columns of all."""
    from pyspark.sql import functions as F

    types = [[frames.layout.types[part.relation][place] for place in part.places] for part in parts]

    def wide(number: int) -> DataFrame:
        own = [F.col(f"`{column}`") for column in parts[number].frame.columns]
        cells = [
            (own[index] if other == number else F.lit(None).cast(spark_type(type_))).alias(f"c{other}_{index}")
            for other in range(len(parts))
            for index, type_ in enumerate(types[other])
        ]
        return parts[number].frame.select(F.lit(number).alias(TAG), (F.col(SIDE) if parts[number].sides else F.lit(0)).alias(SIDE), *cells)

    return reduce(lambda left, right: left.unionAll(right), map(wide, range(len(parts))))


def part_of(table: pa.Table, parts: Sequence[Part], number: int, side: int = 0) -> pa.Table:
    """The rows of one part, on one side, of all."""
    return table.filter(pc.and_(pc.equal(table[TAG], number), pc.equal(table[SIDE], side))).select(
        [f"c{number}_{index}" for index in range(len(parts[number].places))]
    )


def _differing(before: DataFrame, after: DataFrame) -> DataFrame:
    """The rows that only one of two frames has, with their side: before or after."""
    from pyspark.sql import functions as F

    columns = [F.col(f"`{column}`") for column in after.columns]
    sides = [frame.toDF(*after.columns).select(*columns, F.lit(side).alias(SIDE)) for frame, side in ((before, -1), (after, 1))]
    return sides[0].unionAll(sides[1]).groupBy(*columns).agg(F.sum(SIDE).cast("int").alias(SIDE)).where(F.col(SIDE) != 0)


def differing(frames: TemporaryViews, compared: Mapping[str, tuple[DataFrame, DataFrame]]) -> dict[str, int]:
    """In how many rows two frames of each relation differ, by one action."""
    from pyspark.sql import functions as F

    counts = [
        _differing(*sides).agg(F.count(F.lit(1)).alias("rows")).select(F.lit(name).alias(TAG), "rows") for name, sides in compared.items()
    ]
    rows = frames.act(reduce(lambda left, right: left.unionAll(right), counts).collect) if counts else []
    return {row[TAG]: row["rows"] for row in rows}


def differences(frames: TemporaryViews, compared: Mapping[str, tuple[DataFrame, DataFrame]]) -> dict[str, Delta]:
    """What relations gain and lose, from a frame of each before to one after, by one action."""
    parts = [Part(name, range(len(after.columns)), _differing(before, after), sides=True) for name, (before, after) in compared.items()]
    if not parts:
        return {}
    table = frames.act(together(frames, parts).toArrow)

    def side(number: int, which: int) -> frozenset[Row]:
        return frozenset(rows_of(frames, parts[number].relation, part_of(table, parts, number, which)))

    return {name: Delta(side(number, 1), side(number, -1)) for number, name in enumerate(compared)}
