"""The same views, maintained by programs written for them in SQL on SQLite: what a careful programmer would get without Vigilog.

Each serves one program only. They take changes that are net, give exact changes of the view, and run no statement for an empty table they know to be empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import ClassVar

from bench.graphs import Facts
from bench.watch.recompute import create, fill, in_memory, remove, transaction
from bench.watch.session import Answer, Cost
from bench.watch.workloads import Change, Row, Workload


class ByHand:
    """Base tables with their facts, the view where it is stored, and work tables."""

    STORED: ClassVar[bool] = True
    WORK: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    INDEXES: ClassVar[Sequence[str]] = ()

    def __init__(self, workload: Workload, facts: Facts) -> None:
        self.base, self.views = workload.program.base, workload.program.views
        self.connection = in_memory()
        self.execute = self.connection.execute
        for name, columns in self.base.items():
            create(self.connection, name, columns)
            fill(self.connection, name, columns, facts[name])
        for name, view in self.views.items() if self.STORED else ():
            create(self.connection, name, view.columns)
            self.execute(f"INSERT INTO {name} {view.sql}")
        for name, columns in self.WORK.items():
            create(self.connection, name, columns)
        for index in self.INDEXES:
            self.execute(f"CREATE INDEX {index}")

    def apply(self, change: Change) -> Mapping[str, Answer]:
        with transaction(self.connection):
            return self.change(change.get("delete", {}), change.get("insert", {}))

    def change(self, gone: Mapping[str, Sequence[Row]], new: Mapping[str, Sequence[Row]]) -> Mapping[str, Answer]:
        raise NotImplementedError

    def rows(self, table: str) -> list[Row]:
        """What is in a work table, which is empty afterwards."""
        found: list[Row] = self.execute(f"SELECT * FROM {table}").fetchall()
        if found:
            self.execute(f"DELETE FROM {table}")
        return found

    def fill(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        fill(self.connection, table, columns, rows)

    def remove(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        remove(self.connection, table, columns, rows)

    def view(self, name: str) -> Iterable[Row]:
        return iter(self.execute(f"SELECT * FROM {name}" if self.STORED else self.views[name].sql))

    def cost(self) -> Cost:
        return Cost()

    def close(self) -> None:
        self.connection.close()


class ClosureByHand(ByHand):
    """Delete and rederive (Gupta, Mumick, Subrahmanian 1993), semi-naive, with two tables of recent rows that take turns."""

    WORK: ClassVar = dict.fromkeys(("gone", "come", "recent_0", "recent_1"), ("x", "y"))
    INDEXES = ("edge_y ON edge (y, x)",)

    def change(self, gone: Mapping[str, Sequence[Row]], new: Mapping[str, Sequence[Row]]) -> Mapping[str, Answer]:
        lost = self._delete(gone["edge"]) if gone else []
        come = self._insert(new["edge"]) if new else []
        again = set(lost) & set(come) if lost and come else set()
        return {"closure": Answer([row for row in come if row not in again], [row for row in lost if row not in again])}

    def _delete(self, edges: Sequence[Row]) -> list[Row]:
        many, execute = self.connection.executemany, self.execute
        many("INSERT OR IGNORE INTO recent_0 VALUES (?, ?)", edges)
        many("INSERT OR IGNORE INTO recent_0 SELECT ?, y FROM closure WHERE x = ?", edges)
        execute("INSERT INTO gone SELECT * FROM recent_0")
        self._rounds(
            "INSERT OR IGNORE INTO {next} SELECT e.x, d.y FROM {recent} d CROSS JOIN edge e ON e.y = d.x "
            "WHERE NOT EXISTS (SELECT 1 FROM gone k WHERE k.x = e.x AND k.y = d.y)",
            "INSERT INTO gone SELECT * FROM {recent}",
        )
        self.remove("edge", ("x", "y"), edges)
        execute("DELETE FROM closure WHERE (x, y) IN (SELECT x, y FROM gone)")
        back = execute(
            "INSERT INTO recent_0 SELECT x, y FROM gone d WHERE EXISTS (SELECT 1 FROM edge e WHERE e.x = d.x AND e.y = d.y) "
            "OR EXISTS (SELECT 1 FROM edge e CROSS JOIN closure c ON c.x = e.y AND c.y = d.y WHERE e.x = d.x)"
        ).rowcount
        if back:
            execute("INSERT INTO closure SELECT * FROM recent_0")
            self._rounds(
                "INSERT OR IGNORE INTO {next} SELECT g.x, g.y FROM {recent} d CROSS JOIN edge e ON e.y = d.x CROSS JOIN gone g ON g.x = e.x AND g.y = d.y "
                "WHERE NOT EXISTS (SELECT 1 FROM closure k WHERE k.x = g.x AND k.y = g.y)",
                "INSERT INTO closure SELECT * FROM {recent}",
            )
            execute("DELETE FROM gone WHERE EXISTS (SELECT 1 FROM closure k WHERE k.x = gone.x AND k.y = gone.y)")
        return self.rows("gone")

    def _insert(self, edges: Sequence[Row]) -> list[Row]:
        self.fill("edge", ("x", "y"), edges)
        many, execute = self.connection.executemany, self.execute
        unknown = "NOT EXISTS (SELECT 1 FROM closure k WHERE k.x = n.x AND k.y = n.y)"
        many(f"INSERT OR IGNORE INTO recent_0 SELECT * FROM (SELECT ? AS x, ? AS y) n WHERE {unknown}", edges)
        many(f"INSERT OR IGNORE INTO recent_0 SELECT * FROM (SELECT ? AS x, c.y FROM closure c WHERE c.x = ?) n WHERE {unknown}", edges)
        if not execute("INSERT INTO closure SELECT * FROM recent_0").rowcount:
            return []
        execute("INSERT INTO come SELECT * FROM recent_0")
        self._rounds(
            "INSERT OR IGNORE INTO {next} SELECT e.x, d.y FROM {recent} d CROSS JOIN edge e ON e.y = d.x "
            "WHERE NOT EXISTS (SELECT 1 FROM closure k WHERE k.x = e.x AND k.y = d.y)",
            "INSERT INTO closure SELECT * FROM {recent}",
            "INSERT INTO come SELECT * FROM {recent}",
        )
        return self.rows("come")

    def _rounds(self, step: str, *keep: str) -> None:
        """From what is in recent_0, until nothing new is found."""
        for recent, following in cycle((("recent_0", "recent_1"), ("recent_1", "recent_0"))):
            found = self.execute(step.format(recent=recent, next=following)).rowcount
            self.execute(f"DELETE FROM {recent}")
            if not found:
                return
            for statement in keep:
                self.execute(statement.format(recent=following))


class JoinByHand(ByHand):
    """The join with negation, which is not stored. Between the old and the new state lies one that has only what is in both; a row that holds there did not change."""

    STORED: ClassVar = False
    WORK: ClassVar = {
        "orders_gone": ("o", "c", "a"),
        "orders_new": ("o", "c", "a"),
        "blocked_gone": ("c",),
        "blocked_new": ("c",),
        "due_gone": ("o", "c", "z"),
        "due_new": ("o", "c", "z"),
    }
    INDEXES = ("orders_c ON orders (c)",)
    ZONE = "CROSS JOIN customer k ON k.c = d.c CROSS JOIN region r ON r.r = k.r"
    FREE = "NOT EXISTS (SELECT 1 FROM blocked b WHERE b.c = d.c)"

    def change(self, gone: Mapping[str, Sequence[Row]], new: Mapping[str, Sequence[Row]]) -> Mapping[str, Answer]:
        execute = self.execute
        orders_gone, orders_new = gone.get("orders", ()), new.get("orders", ())
        free, block = gone.get("blocked", ()), new.get("blocked", ())
        orders, blocked = self.base["orders"], self.base["blocked"]
        lost = come = 0
        if orders_gone:
            self.fill("orders_gone", orders, orders_gone)
            lost += execute(
                f"INSERT OR IGNORE INTO due_gone SELECT d.o, d.c, r.z FROM orders_gone d {self.ZONE} WHERE {self.FREE}"
            ).rowcount
        if block:
            self.fill("blocked_new", blocked, block)
            lost += execute(
                f"INSERT OR IGNORE INTO due_gone SELECT d.o, d.c, r.z FROM blocked_new n CROSS JOIN orders d ON d.c = n.c {self.ZONE} WHERE {self.FREE}"
            ).rowcount
        if orders_gone:
            execute("DELETE FROM orders WHERE (o, c, a) IN (SELECT o, c, a FROM orders_gone)")
            execute("DELETE FROM orders_gone")
        if block:
            execute("INSERT OR IGNORE INTO blocked SELECT c FROM blocked_new")
            execute("DELETE FROM blocked_new")
        if orders_new:
            self.fill("orders_new", orders, orders_new)
        if free:
            self.fill("blocked_gone", blocked, free)
        if orders_new:
            freed = "OR EXISTS (SELECT 1 FROM blocked_gone f WHERE f.c = d.c)" if free else ""
            come += execute(
                f"INSERT OR IGNORE INTO due_new SELECT d.o, d.c, r.z FROM orders_new d {self.ZONE} WHERE {self.FREE} {freed}"
            ).rowcount
        if free:
            come += execute(
                f"INSERT OR IGNORE INTO due_new SELECT d.o, d.c, r.z FROM blocked_gone f CROSS JOIN orders d ON d.c = f.c {self.ZONE}"
            ).rowcount
        for table, some in (("due_gone", lost), ("due_new", come)):
            if some:
                holds = f"SELECT 1 FROM orders d {self.ZONE} WHERE d.o = {table}.o AND d.c = {table}.c AND r.z = {table}.z AND {self.FREE}"
                execute(f"DELETE FROM {table} WHERE EXISTS ({holds})")
        if free:
            execute("DELETE FROM blocked WHERE c IN (SELECT c FROM blocked_gone)")
            execute("DELETE FROM blocked_gone")
        if orders_new:
            execute("INSERT OR IGNORE INTO orders SELECT * FROM orders_new")
            execute("DELETE FROM orders_new")
        minus, plus = self.rows("due_gone") if lost else [], self.rows("due_new") if come else []
        if minus and plus:
            both = set(minus) & set(plus)
            if both:
                minus, plus = [row for row in minus if row not in both], [row for row in plus if row not in both]
        return {"due": Answer(plus, minus)}


class SummaryByHand(ByHand):
    """Groups that a change touches are computed anew, along an index that holds their values."""

    WORK: ClassVar = {"touched": ("g",)}
    INDEXES = ("reading_g ON reading (g, v)",)

    def change(self, gone: Mapping[str, Sequence[Row]], new: Mapping[str, Sequence[Row]]) -> Mapping[str, Answer]:
        execute, columns = self.execute, self.base["reading"]
        removed, added = gone.get("reading", ()), new.get("reading", ())
        self.fill("touched", ("g",), [(row[1],) for rows in (removed, added) for row in rows])
        old = execute("SELECT s.* FROM touched t CROSS JOIN summary s ON s.g = t.g").fetchall()
        if removed:
            self.remove("reading", columns, removed)
        if added:
            self.fill("reading", columns, added)
        found = execute(
            "SELECT r.g, count(*), sum(r.v), min(r.v), max(r.v) FROM touched t CROSS JOIN reading r ON r.g = t.g GROUP BY r.g"
        ).fetchall()
        execute("DELETE FROM touched")
        before, after = set(old), set(found)
        plus, minus = after - before, before - after
        self.remove("summary", ("g", "n", "s", "lo", "hi"), list(minus))
        self.fill("summary", ("g", "n", "s", "lo", "hi"), list(plus))
        return {"summary": Answer(plus, minus)}


PROGRAMS: dict[str, type[ByHand]] = {"closure": ClosureByHand, "join": JoinByHand, "summary": SummaryByHand}
