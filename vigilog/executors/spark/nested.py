"""First extraction on Spark: the relations of a view frame as one frame with arrays of structs, innermost first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from vigilog.core.errors import DataError
from vigilog.protocol.shapes import Part, Shape

if TYPE_CHECKING:
    from vigilog.spark.types import DataFrame


def nested_frame(shape: Shape, frame: Callable[[str], DataFrame]) -> DataFrame:
    """The objects of a view frame: `id`, `params` if it has some, and its attributes in their order; arrays are sorted. Raises DataError for a recursive structure."""
    if shape.order is None:
        raise DataError(
            f"{shape.name} is recursive in structure, which a frame of fixed depth cannot hold; ask for its relations", "recursive"
        )
    made: dict[str, DataFrame] = {}
    for part in shape.order:
        made[part.relation] = _nested(shape, part, frame, made)
    return made[shape.name].select("object.*").orderBy("id")


def _nested(shape: Shape, part: Part, frame: Callable[[str], DataFrame], made: dict[str, DataFrame]) -> DataFrame:
    """A part outer-joined with its attributes: its keys (k0, k1 …), and its objects as structs."""
    width = part.parameters + 1
    keys = [f"k{number}" for number in range(width)]
    rows = frame(part.relation).toDF(*keys)
    columns = [F.col(keys[-1]).alias("id")]
    if part.parameters:
        columns.append(F.struct(*(F.col(key).alias(name) for key, (name, _) in zip(keys, shape.parameters, strict=False))).alias("params"))
    for number, slot in enumerate(part.slots):
        links = frame(slot.relation).toDF(*keys, "end")
        inner = shape.parts.get(slot.part)
        if inner is not None:
            inside = [*(f"k{place}" for place in range(inner.parameters)), "end"]
            links = links.join(made[slot.part].toDF(*inside, "inside"), inside).drop("end").withColumnRenamed("inside", "end")
        several = F.sort_array(F.collect_list("end"))
        ends = links.groupBy(*keys).agg((several[0] if slot.single else several).alias(f"a{number}"))
        rows = rows.join(ends, keys, "left")
        whole = F.col(f"a{number}")
        columns.append((whole if slot.single else F.coalesce(whole, F.array().cast(rows.schema[f"a{number}"].dataType))).alias(slot.label))
    return rows.select(*keys, F.struct(*columns).alias("object"))
