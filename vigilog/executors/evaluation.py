"""What an evaluation gives, whichever executor ran it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from vigilog.core.values import Row
from vigilog.files.place import Place


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
