"""What an evaluation gives, whichever executor ran it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from vigilog.core.extras import SPARK
from vigilog.core.values import Row
from vigilog.files.place import Place
from vigilog.files.writer import write_file


@dataclass
class Stats:
    """What an evaluation cost."""

    engine: str
    ms: float = 0.0
    rounds: int = 0
    derived: int = 0
    statements: int = 0
    spark_jobs: int = 0
    undefined: int = 0
    recomputed: str = ""  # why a transaction was answered by recomputing, if it was

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "recomputed" or value}


def total(costs: Sequence[Stats]) -> Stats:
    """What several pieces of work have cost together."""
    if len(costs) == 1:
        return costs[0]
    numbers = ("ms", "rounds", "derived", "statements", "spark_jobs", "undefined")
    whole = replace(costs[0], **{name: sum(getattr(cost, name) for cost in costs) for name in numbers})
    whole.recomputed = next((cost.recomputed for cost in costs if cost.recomputed), "")
    return whole


class Evaluation(Protocol):
    """The relations of an evaluated program. It holds resources: close it, or use it in a `with`."""

    stats: Stats

    def count(self, relation: str) -> int: ...

    def rows(self, relation: str) -> Iterator[Row]:
        """All rows, sorted."""

    def write(self, place: Place, path: Path | None) -> None:
        """Writes a relation, sorted, as the place says, to a path, or, if that is None, to the place's own location."""

    def close(self) -> None: ...


def written(place: Place, path: Path | None, rows: Iterable[Row]) -> None:
    """Writes rows that are in this process, sorted: text by itself, all else through Spark."""
    if path is not None and place.text:
        write_file(place, rows, path)
        return
    SPARK.need(f"{place.relation} is written as {place.format}")
    from vigilog.core.arrow import to_arrow
    from vigilog.spark import session, sinks

    spark = session.session()
    sinks.write(spark, spark.createDataFrame(to_arrow(place.columns, place.types, rows)), place, path)
