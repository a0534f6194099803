"""`bench aggregates`: what a changed row costs where groups are aggregated, whose state is kept.

Beside it, DuckDB changes the table, computes the view anew and compares it with the last answer; and `external`, which reads the groups that are touched, before and after.
"""

from __future__ import annotations

import gc
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench import chart, report, table1
from bench.options import Options
from bench.progress import steps
from bench.report import Table
from bench.targets import Target, at_least, at_most, number
from vigilog.engine.database import Database
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.language.check import check

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

NOTES = (
    "Milliseconds for one transaction, median, from rows in Python to what the view gained and lost, in Python; in memory, one process, all contenders in the same run.",
    "*auto* keeps the state of groups, and here no rows. *external* keeps nothing, and reads the groups that are touched: what `auto` was before; of *revenue* only an order is tried. *DuckDB* changes its table, computes the view anew, and "
    "compares it with the last answer by EXCEPT, both ways.",
    "*summary* is count, sum, least and greatest of 1 M readings in 100,000 groups; *revenue* the sum of orders by region and category, a join with customers and products, in 160 groups (3 M orders, or as many as VIGILOG_BENCH_ORDERS says).",
    "*One group* grows, and a row comes, or its greatest row leaves: in milliseconds, and in steps of SQLite's machine, which no other load disturbs. *Same groups*: more groups of ten rows each.",
    "*Bytes* are what the tables of the state take for each group, and for each row that is aggregated.",
    "*Table 1* is the paper's: a view over a join, one of whose variables is dropped (a sum for each x and z, of which only x is told), in groups of ten rows. *auto* and *external* are Vigilog; the others are written by hand in SQL: "
    "the state of groups without any index, and everything computed anew, along indexes and without. In steps of SQLite's machine ([plot](aggregates-table1.png)).",
    "A set that is itself a column of a view costs the set that is told: it is not measured here.",
    "All contenders ended with the same view, or this page would say so.",
)
SUMMARY = """
.decl reading(i: number, g: number, v: number)
.input reading
.decl summary(g: number, n: number, s: number, lo: number, hi: number)
.output summary
summary(g, n, s, lo, hi) :- reading(_, g, _), n = count : { reading(_, g, _) }, s = sum v : { reading(_, g, v) },
    lo = min v : { reading(_, g, v) }, hi = max v : { reading(_, g, v) }.
"""
REVENUE = """
.decl ordered(o: number, c: number, p: number, a: number)
.input ordered
.decl customer(c: number, r: symbol)
.input customer
.decl product(p: number, k: symbol)
.input product
.decl revenue(r: symbol, k: symbol, t: number)
.output revenue
revenue(r, k, t) :- ordered(_, c, p, _), customer(c, r), product(p, k),
    t = sum a : { ordered(_, c2, p2, a), customer(c2, r), product(p2, k) }.
"""
ANEW = {
    "summary": "SELECT g, count(*) AS n, sum(v)::BIGINT AS s, min(v) AS lo, max(v) AS hi FROM reading GROUP BY g",
    "revenue": "SELECT r, k, sum(a)::BIGINT AS t FROM ordered JOIN customer USING (c) JOIN product USING (p) GROUP BY r, k",
}
COLUMNS = {"reading": "igv", "ordered": "ocpa", "customer": "cr", "product": "pk"}
SEED = 16
Rows = list[tuple[Any, ...]]
Facts = Mapping[str, Rows]


@dataclass(frozen=True)
class Change:
    relation: str
    gone: Rows
    came: Rows

    @property
    def told(self) -> dict[str, dict[str, list[list[Any]]]]:
        return {"delete": {self.relation: [*map(list, self.gone)]}, "insert": {self.relation: [*map(list, self.came)]}}


@dataclass(frozen=True)
class Series:
    """Changes of one kind; how many times as fast as DuckDB computing anew they must be, and the most milliseconds they may take."""

    name: str
    changes: Sequence[Change]
    ratio: float
    most: float | None = None


def readings(rows: int, groups: int) -> Facts:
    chance = random.Random(SEED)
    return {"reading": [(i, i % groups, chance.randrange(1_000_000)) for i in range(rows)]}


def shop(orders: int) -> Facts:
    chance, customers, products = random.Random(SEED), max(orders // 30, 100), max(orders // 300, 50)
    return {
        "ordered": [(o, chance.randrange(customers), chance.randrange(products), chance.randrange(1, 1000)) for o in range(orders)],
        "customer": [(c, f"region {c % 8}") for c in range(customers)],
        "product": [(p, f"category {p % 20}") for p in range(products)],
    }


def summary_series(facts: Facts, quick: bool) -> Iterator[Series]:
    rows, chance = facts["reading"], random.Random(SEED)
    left, fresh, groups = iter(chance.sample(rows, len(rows) // 2)), iter(range(len(rows), 2**40)), 1 + max(row[1] for row in rows)

    def changes(size: int, times: int) -> list[Change]:
        return [
            Change(
                "reading",
                [next(left) for _ in range(size // 2)],
                [(next(fresh), chance.randrange(groups), chance.randrange(1_000_000)) for _ in range(size - size // 2)],
            )
            for _ in range(times)
        ]

    yield Series("1 row", changes(1, 10 if quick else 100), 2_000)
    yield Series("100 rows", changes(100, 3 if quick else 20), 50)
    yield Series("10,000 rows", changes(100 if quick else 10_000, 3 if quick else 7), 1)


def revenue_series(facts: Facts, quick: bool) -> Iterator[Series]:
    chance, fresh, times = random.Random(SEED), iter(range(len(facts["ordered"]), 2**40)), 3 if quick else 15
    customers, products = len(facts["customer"]), len(facts["product"])

    def orders(count: int) -> Rows:
        return [(next(fresh), chance.randrange(customers), chance.randrange(products), chance.randrange(1, 1000)) for _ in range(count)]

    old = chance.sample(facts["ordered"], times)
    yield Series("an order", [Change("ordered", [row], orders(1)) for row in old], 100, 5)
    moved = [(row, (row[0], f"region {(row[0] + 1) % 8}")) for row in chance.sample(facts["customer"], times)]
    yield Series("a customer", [Change("customer", [old], [new]) for old, new in moved], 100, 5)
    shelved = [(row, (row[0], f"category {(row[0] + 1) % 20}")) for row in chance.sample(facts["product"], times)]
    yield Series("a product", [Change("product", [old], [new]) for old, new in shelved], 100, 5)
    yield Series("20,000 new orders", [Change("ordered", [], orders(200 if quick else 20_000)) for _ in range(3)], 3)


def arrow(columns: str, rows: Rows) -> pa.Table:
    """Rows for DuckDB."""
    import pyarrow as pa

    return pa.table({column: pa.array([row[place] for row in rows]) for place, column in enumerate(columns)})


class Anew:
    """DuckDB: the tables of a view, its answer as it is and as it was."""

    def __init__(self, view: str, facts: Facts) -> None:
        import duckdb

        self.connection: DuckDBPyConnection = duckdb.connect(":memory:")
        self.view = view
        for name, rows in facts.items():
            table = arrow(COLUMNS[name], rows)
            self.connection.register("given", table)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        self.connection.execute(f"CREATE TABLE answer AS {ANEW[view]}")

    def apply(self, change: Change) -> object:
        name, columns = change.relation, COLUMNS[change.relation]
        for rows, statement in (
            (change.gone, f"DELETE FROM {name} WHERE {columns[0]} IN (SELECT {columns[0]} FROM given)"),
            (change.came, f"INSERT INTO {name} SELECT * FROM given"),
        ):
            if rows:
                table = arrow(columns, rows)
                self.connection.register("given", table)
                self.connection.execute(statement)
        self.connection.execute(f"CREATE TABLE anew AS {ANEW[self.view]}")
        found = [
            self.connection.execute(f"SELECT * FROM {a} EXCEPT SELECT * FROM {b}").fetchall()
            for a, b in (("anew", "answer"), ("answer", "anew"))
        ]
        self.connection.execute("DROP TABLE answer")
        self.connection.execute("ALTER TABLE anew RENAME TO answer")
        return found

    def rows(self) -> set[tuple[Any, ...]]:
        return set(self.connection.execute("SELECT * FROM answer").fetchall())

    def close(self) -> None:
        self.connection.close()


def timed(apply: Callable[[Change], object], changes: Sequence[Change], cap: float) -> float:
    """The median in milliseconds; after `cap` seconds, of those so far."""
    times: list[float] = []
    for change in changes:
        began = time.perf_counter()
        apply(change)
        times.append((time.perf_counter() - began) * 1000)
        if sum(times) > cap * 1000:
            break
    return statistics.median(times[1:] or times)


def measured(view: str, program: str, facts: Facts, series: Sequence[Series], contender: str, cap: float) -> tuple[dict[str, float], Any]:
    """The median of each series, and the view in the end, if all changes were made."""
    if contender == "DuckDB":
        with closing(Anew(view, facts)) as anew:
            return {one.name: timed(anew.apply, one.changes, 10**9) for one in series}, anew.rows()
    with Database(check(program).program, facts, contender) as database:
        found = {
            one.name: timed(lambda change: database.apply(change.told), one.changes, cap if contender == "external" else 10**9)
            for one in series
        }
        return found, database.view(view) if contender == "auto" else None


def grown(sizes: Sequence[int], groups: Callable[[int], int], strategy: str) -> dict[int, dict[str, float]]:
    """What a row that comes, and the greatest row that leaves, cost over so many rows."""
    found = {}
    for size in sizes:
        facts = readings(size, groups(size))
        with Database(check(SUMMARY).program, facts, strategy) as database:
            assert isinstance(database.views, EmbeddedViews)
            best = {row[1]: row for row in sorted(facts["reading"], key=lambda row: row[2])}
            chosen = random.Random(SEED).sample(sorted(best), min(len(best), 40))
            gone = [Change("reading", [best[group]], []) for group in chosen]
            came = [Change("reading", [], [(size + place, place % groups(size), place)]) for place in range(40)]
            if len(best) == 1:  # each time the greatest that is left
                rows = sorted(facts["reading"], key=lambda row: -row[2])[:40]
                gone = [Change("reading", [row], []) for row in rows]
            taken = 0

            def apply(change: Change, database: Database = database) -> object:
                return database.apply(change.told)

            costs = {"comes": timed(apply, came, 5), "greatest leaves": timed(apply, gone[:-1], 5)}

            def step() -> int:
                nonlocal taken
                taken += 1
                return 0

            database.views.tables.connection.set_progress_handler(step, 1)
            apply(gone[-1])
            database.views.tables.connection.set_progress_handler(None, 0)
            found[size] = {**costs, "steps": float(taken)} | ({} if strategy == "external" else {"bytes": _bytes(database)})
    return found


def _bytes(database: Database) -> float:
    """What the tables of the state take for each group."""
    assert isinstance(database.views, EmbeddedViews)
    tables, plan = database.views.tables, database.compiled.plan
    kept = [tables.layout.tables[declaration.relation] for group in plan.groups for declaration in group.kept]
    try:
        marks = ", ".join("?" for _ in kept)
        total = tables.connection.execute(f"SELECT sum(pgsize) FROM dbstat WHERE name IN ({marks})", kept).fetchone()[0]
    except Exception:  # an SQLite without that table
        return 0.0
    return float(total or 0) / max(tables.count(plan.groups[0].state.relation), 1)


def main(options: Options) -> int:
    """Runs all measurements, shows and judges them."""
    scale = 100 if options.quick else 1
    around, tables, targets = report.surroundings(), list[Table](), list[Target]()
    data: dict[str, Any] = {}
    differences: list[str] = []
    panels: list[tuple[str, dict[str, float]]] = []
    contenders = ("auto", "external", "DuckDB")
    with steps(2 * len(contenders) + 3) as shown:
        for view, program, facts, make in (
            ("summary", SUMMARY, readings(1_000_000 // scale, 100_000 // scale), summary_series),
            ("revenue", REVENUE, shop(int(os.environ.get("VIGILOG_BENCH_ORDERS", "3000000")) // scale), revenue_series),
        ):
            series, found, ends = list(make(facts, options.quick)), dict[str, dict[str, float]](), dict[str, Any]()
            gc.freeze()  # millions of rows that only this benchmark holds are not looked through in each transaction
            for contender in contenders:
                shown.begin(f"{view}, {contender}")
                own = series[:1] if view == "revenue" and contender == "external" else series  # the others take minutes
                found[contender], ends[contender] = measured(view, program, facts, own, contender, options.cap)
                shown.end(f"{view}, {contender}: " + ", ".join(f"{name} {number(ms)} ms" for name, ms in found[contender].items()))
            if ends["auto"] != ends["DuckDB"]:
                differences.append(f"{view}: what is maintained is not what DuckDB computes")
            rows = [
                (
                    one.name,
                    *(number(found[c][one.name]) if one.name in found[c] else "" for c in contenders),
                    number(found["DuckDB"][one.name] / found["auto"][one.name]),
                )
                for one in series
            ]
            size = f"{sum(map(len, facts.values())):,} rows"
            tables.append(Table(f"{view} ({size})", ("change", *(f"{contender}, ms" for contender in contenders), "DuckDB ÷ auto"), rows))
            for one in series:
                ms = found["auto"][one.name]
                targets.append(at_least(f"{view}, {one.name}: DuckDB ÷ auto", found["DuckDB"][one.name] / ms, one.ratio))
                if one.most is not None:
                    targets.append(at_most(f"{view}, {one.name}", ms, one.most, " ms"))
                panels.append(
                    (f"{view}: {one.name}", {contender: costs[one.name] for contender, costs in found.items() if one.name in costs})
                )
            data[view] = found
        sizes = [size // scale for size in (10_000, 100_000, 1_000_000)]
        for title, groups, strategies in (
            ("one group", lambda _: 1, ("auto", "external")),
            ("same groups", lambda size: max(size // 10, 1), ("auto", "auxiliary")),
        ):
            shown.begin(title)
            grew = {strategy: grown(sizes if strategy == "auto" else sizes[:2], groups, strategy) for strategy in strategies}
            shown.end(f"{title}: {grew}")
            kinds = ("comes", "greatest leaves", "steps", "bytes")
            rows = [
                (
                    f"{strategy}, {size:,} rows",
                    *(number(costs[kind]) if kind in costs else "" for kind in kinds),
                    number(costs["bytes"] * groups(size) / size) if costs.get("bytes") else "",
                )
                for strategy, by_size in grew.items()
                for size, costs in by_size.items()
            ]
            tables.append(
                Table(
                    title,
                    ("", "a row comes, ms", "the greatest leaves, ms", "SQLite's steps for that", "bytes a group", "bytes a row"),
                    rows,
                )
            )
            first, last = grew["auto"][sizes[0]], grew["auto"][sizes[-1]]
            bound = 1.5
            targets += [
                at_most(f"{title}: {sizes[-1]:,} rows ÷ {sizes[0]:,}, {kind}", last[kind] / first[kind], bound)
                for kind in ("comes", "greatest leaves", "steps")
            ]
            data[title] = {strategy: {str(size): costs for size, costs in by_size.items()} for strategy, by_size in grew.items()}
        shown.begin("table 1")
        costs = list(table1.measured([size // scale or 10 for size in table1.SIZES]))
        shown.end("table 1")
    gc.unfreeze()
    tables += [
        Table(
            f"Table 1: a join, one variable dropped; {rows} rows come",
            ("", *(f"{size:,} rows, steps" for size in dict.fromkeys(size for _, size, _, _ in costs)), "ms at last"),
            [
                (name, *(number(cost.steps) for cost in found), number(found[-1].ms))
                for name in (design.name for design in table1.DESIGNS)
                for found in [[cost for one, _, many, cost in costs if (one, many) == (name, rows)]]
            ],
        )
        for rows in table1.CHANGED
    ]
    data["table 1"] = [
        {"design": name, "rows": size, "changed": rows, "steps": cost.steps, "ms": cost.ms} for name, size, rows, cost in costs
    ]
    kept = [cost.steps for name, _, rows, cost in costs if (name, rows) == ("auto", 1)]
    targets.append(at_most("table 1, auto: a row comes, steps, last size ÷ first", kept[-1] / kept[0], 1.5))
    judged = report.targets_table(targets, "Targets (too small to judge by)" if options.quick else "Targets")
    report.show([*tables, judged])
    for difference in differences:
        print(f"bench aggregates: {difference}", file=sys.stderr)
    if not differences:
        options.results.mkdir(parents=True, exist_ok=True)
        colours = {"auto": "#2a6fbb", "external": "#9bbad9", "DuckDB": "#e0a030"}
        bars = [[chart.Bar(name, ms, f"{number(ms)} ms") for name, ms in costs.items()] for _, costs in panels]
        chart.draw(
            options.results / "aggregates.png",
            "Aggregates over groups",
            [name for name, _ in panels],
            [chart.Panel("milliseconds a transaction", bars)],
            colours,
        )
        drawn = [
            chart.Lines(
                f"{rows} row{'s' * (rows > 1)} come{'s' * (rows == 1)}: steps of SQLite",
                {
                    design.name: {size: cost.steps for name, size, many, cost in costs if (name, many) == (design.name, rows)}
                    for design in table1.DESIGNS
                },
            )
            for rows in table1.CHANGED
        ]
        shades = dict(zip((design.name for design in table1.DESIGNS), ("#2a6fbb", "#9bbad9", "#7a9f35", "#e0a030", "#b04a3a"), strict=True))
        chart.lines(options.results / "aggregates-table1.png", "Table 1: a join, one variable dropped", "rows", drawn, shades)
        report.write(options.results, "aggregates", "Aggregates over groups", NOTES, [judged, *tables], {"measured": data}, around)
        print("Written: aggregates.md, aggregates.json, aggregates.png, aggregates-table1.png")
    return 1 if differences else 0
