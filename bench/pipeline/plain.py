"""Plain Spark, as people write it: the views as queries, computed anew after a change, and compared with the last answer by EXCEPT ALL, both ways.

`cached` keeps tables and last answers in memory; otherwise both are Parquet, read and written each time.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.pipeline.data import Shop
from bench.pipeline.operations import Bulk, Change, Look
from bench.pipeline.told import Told, told
from vigilog.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TABLES = ("orders", "customers", "products", "blocked", "employees")
KEYED = ("orders", "customers", "products", "employees")
QUERIES = {
    "shippable": """
        SELECT o.id, c.name AS customer, o.product FROM orders o JOIN customers c ON c.id = o.customer JOIN products p ON p.id = o.product
        WHERE o.quantity > 9 AND NOT EXISTS (SELECT 1 FROM blocked b WHERE b.customer = o.customer)""",
    "above": """
        WITH RECURSIVE above(employee, boss) AS (
            SELECT id, boss FROM employees WHERE boss >= 0
            UNION ALL SELECT e.id, a.boss FROM employees e JOIN above a ON e.boss = a.employee)
        SELECT employee, boss FROM above""",
    "waiting": """
        SELECT b.customer, count(o.id) AS orders FROM blocked b LEFT JOIN orders o ON o.customer = b.customer GROUP BY b.customer""",
    "team": "SELECT boss, count(*) AS size FROM above GROUP BY boss",
    "revenue": """
        SELECT c.region, p.category, sum(p.price * o.quantity) AS total
        FROM orders o JOIN customers c ON c.id = o.customer JOIN products p ON p.id = o.product GROUP BY c.region, p.category""",
}


class Plain:
    """See `Contender`."""

    def __init__(self, shop: Shop, facts: Path, own: Path, *, cached: bool) -> None:
        self.shop, self.facts, self.own, self.cached = shop, facts, own, cached
        self.spark = session()
        self.spark.conf.set("spark.sql.cteRecursionLevelLimit", "1000")
        self.spark.conf.set("spark.sql.cteRecursionRowLimit", "-1")
        self.number = 0
        self.tables = {name: self.spark.read.parquet(str(facts / f"{name}.parquet")) for name in TABLES}
        self.tables = {name: self._kept(frame) if cached else frame for name, frame in self.tables.items()}
        self._show()
        self.answers = {name: self._kept(self.spark.sql(query)) for name, query in QUERIES.items() if name != "team"}
        self.answers["team"] = self._kept(self._computed("team"))

    def _show(self) -> None:
        for name, frame in self.tables.items():
            frame.createOrReplaceTempView(name)

    def _computed(self, view: str) -> DataFrame:
        if view == "team":
            self.answers["above"].createOrReplaceTempView("above")
        return self.spark.sql(QUERIES[view])

    def _kept(self, frame: DataFrame) -> DataFrame:
        if self.cached:
            return frame.localCheckpoint()
        self.number += 1
        place = str(self.own / f"kept-{self.number}")
        frame.write.parquet(place)
        return self.spark.read.parquet(place)

    def init(self) -> None:
        """Reads and writes all tables."""
        shutil.rmtree(self.own / "copy", ignore_errors=True)
        for name in TABLES:
            self.spark.read.parquet(str(self.facts / f"{name}.parquet")).write.parquet(str(self.own / "copy" / name), compression="zstd")

    def change(self, change: Change, turn: int) -> Mapping[str, Told]:
        ((way, by_relation),) = change.wish(self.shop, turn).items()
        ((relation, rows),) = by_relation.items()
        before = self.tables[relation]
        told_rows = self.spark.createDataFrame([tuple(row) for row in rows], before.schema)
        left = before if way == "insert" else before.join(told_rows, ["id"] if relation in KEYED else before.columns, "left_anti")
        return self._compare(relation, left if way == "delete" else left.unionByName(told_rows), change.reads)

    def bulk(self, bulk: Bulk, place: Path) -> Mapping[str, Told]:
        given, before = self.spark.read.parquet(str(place)), self.tables["orders"]
        if bulk.versions:  # what has changed in the table itself is told, too
            given.exceptAll(before).collect(), before.exceptAll(given).collect()
        return self._compare("orders", self.tables["orders"].unionByName(given) if bulk.new else given, bulk.reads)

    def _compare(self, relation: str, after: DataFrame, views: tuple[str, ...]) -> dict[str, Told]:
        self.tables[relation] = self._kept(after)
        self._show()
        found = {}
        for view in views:
            old, new = self.answers[view], self._kept(self._computed(view))
            came, gone = new.exceptAll(old).collect(), old.exceptAll(new).collect()
            self.answers[view] = new
            if came or gone:
                found[view] = told(came, gone)
        return found

    def look(self, look: Look) -> int:
        return int(self._computed(look.view).toArrow().num_rows)

    def verify(self) -> None:
        """Computes all views anew, and compares them with the last answers."""
        for view in QUERIES:
            new, old = self._computed(view), self.answers[view]
            assert not new.exceptAll(old).limit(1).count() and not old.exceptAll(new).limit(1).count(), view

    def why(self) -> str:
        return ""
