"""Vigilog on a data folder: `orders` on Spark, or everything resident."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.pipeline.data import PROGRAM, Shop
from bench.pipeline.operations import Bulk, Change, Look
from bench.pipeline.told import Told, told

RESIDENT = 16 * 2**30


class Ours:
    """See `Contender`."""

    def __init__(self, shop: Shop, facts: Path, own: Path, *, memory: int) -> None:
        import vigilog
        from vigilog.spark.session import session

        session()  # it is started before anything is measured, as that of plain Spark is; what a start costs is seen in `ask`
        self.shop, self.facts, self.own, self.memory = shop, facts, own, memory
        self.db = vigilog.open(data=own / "data") if (own / "data" / "vigilog.db").exists() else None

    def init(self) -> None:
        import vigilog

        shutil.rmtree(self.own / "data", ignore_errors=True)
        self.db = vigilog.open(PROGRAM, self.facts, data=self.own / "data", memory=self.memory)

    def change(self, change: Change, turn: int) -> Mapping[str, Told]:
        return self._told(self._opened.take(change.wish(self.shop, turn)))

    def bulk(self, bulk: Bulk, place: Path) -> Mapping[str, Told]:
        loaded = self._opened.load if bulk.new else self._opened.sync
        return self._told(loaded("orders", place, IO="parquet"))

    def look(self, look: Look) -> int:
        return int(self._opened.arrow(look.view).num_rows)

    def verify(self) -> None:
        found = self._opened.verify()
        assert found.fine, found.problems

    def why(self) -> str:
        """Why the last transaction was answered by computing anew, if it was."""
        return str(self._opened.stats.recomputed or "")

    @property
    def _opened(self) -> Any:
        assert self.db is not None, "init comes first"
        return self.db

    @staticmethod
    def _told(outcome: Any) -> dict[str, Told]:
        return {name: told(delta.plus, delta.minus) for name, delta in outcome.deltas.items()}
