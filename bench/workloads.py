"""What is computed: a program, its facts, and the same in the SQL of those who can say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.graphs import Facts, chains, grid, pointer_program, random_graph, random_pointers, shop, tree
from bench.watch.workloads import Change
from bench.watch.workloads import Workload as Maintained
from bench.watch.workloads import workloads as maintained

CLOSURE = """
.decl edge(x: number, y: number)
.input edge
.decl closure(x: number, y: number)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- closure(x, z), edge(z, y).
"""
CLOSURE_SQL = """
WITH RECURSIVE closure(x, y) AS (
  SELECT x, y FROM edge
  UNION
  SELECT closure.x, edge.y FROM closure JOIN edge ON edge.x = closure.y
) SELECT x, y FROM closure"""

SAME_GENERATION = """
.decl edge(x: number, y: number)
.input edge
.decl same(x: number, y: number)
.output same
same(x, y) :- edge(p, x), edge(p, y), x != y.
same(x, y) :- same(p, q), edge(p, x), edge(q, y).
"""
SAME_GENERATION_SQL = """
WITH RECURSIVE same(x, y) AS (
  SELECT a.y, b.y FROM edge a JOIN edge b ON b.x = a.x WHERE a.y <> b.y
  UNION
  SELECT a.y, b.y FROM same JOIN edge a ON a.x = same.x JOIN edge b ON b.x = same.y
) SELECT x, y FROM same"""

POINTS_TO = """
.decl new(v: number, h: number)
.decl assign(v: number, u: number)
.decl load(v: number, b: number, f: number)
.decl store(b: number, f: number, v: number)
.input new
.input assign
.input load
.input store
.decl points(v: number, h: number)
.decl heap(h: number, f: number, o: number)
.output points
points(v, h) :- new(v, h).
points(v, h) :- assign(v, u), points(u, h).
points(v, o) :- load(v, b, f), points(b, h), heap(h, f, o).
heap(h, f, o) :- store(b, f, v), points(b, h), points(v, o).
"""
# Two relations that need each other and themselves twice: DuckDB can say it with one tagged table (k: 0 points, 1 heap) whose recent
# rows are `t` and whose rows so far are `recurring.t`; each rule comes once for every place where a recent row may stand.
POINTS_TO_DUCKDB = """
WITH RECURSIVE t(k, x, f, y) USING KEY (k, x, f, y) AS (
  SELECT 0, v, 0, h FROM new
  UNION (
    SELECT 0, s.v, 0, t.y FROM t JOIN assign s ON t.k = 0 AND s.u = t.x
    UNION SELECT 0, l.v, 0, o.y FROM t JOIN load l ON t.k = 0 AND l.b = t.x JOIN recurring.t o ON o.k = 1 AND o.x = t.y AND o.f = l.f
    UNION SELECT 0, l.v, 0, t.y FROM t JOIN recurring.t p ON t.k = 1 AND p.k = 0 AND p.y = t.x JOIN load l ON l.b = p.x AND l.f = t.f
    UNION SELECT 1, t.y, s.f, p.y FROM t JOIN store s ON t.k = 0 AND s.b = t.x JOIN recurring.t p ON p.k = 0 AND p.x = s.v
    UNION SELECT 1, p.y, s.f, t.y FROM t JOIN store s ON t.k = 0 AND s.v = t.x JOIN recurring.t p ON p.k = 0 AND p.x = s.b
  )
) SELECT x, y FROM t WHERE k = 0"""

# The same by hand, round after round: beside each relation a table of its recent rows, and one of those that are new.
POINTS_TO_START = (
    "CREATE TABLE points AS SELECT DISTINCT v, h FROM new",
    "CREATE TABLE heap (h BIGINT, f BIGINT, o BIGINT)",
    "CREATE TABLE points_new AS SELECT * FROM points",
    "CREATE TABLE heap_new AS SELECT * FROM heap",
)
POINTS_TO_ROUND = (
    "CREATE OR REPLACE TABLE points_recent AS SELECT * FROM points_new",
    "CREATE OR REPLACE TABLE heap_recent AS SELECT * FROM heap_new",
    """CREATE OR REPLACE TABLE points_new AS SELECT DISTINCT * FROM (
        SELECT a.v, r.h FROM points_recent r JOIN assign a ON a.u = r.v
        UNION ALL SELECT l.v, k.o FROM points_recent r JOIN load l ON l.b = r.v JOIN heap k ON k.h = r.h AND k.f = l.f
        UNION ALL SELECT l.v, r.o FROM heap_recent r JOIN points k ON k.h = r.h JOIN load l ON l.b = k.v AND l.f = r.f
    ) found(v, h) WHERE NOT EXISTS (SELECT 1 FROM points k WHERE k.v = found.v AND k.h = found.h)""",
    """CREATE OR REPLACE TABLE heap_new AS SELECT DISTINCT * FROM (
        SELECT r.h, s.f, k.h FROM points_recent r JOIN store s ON s.b = r.v JOIN points k ON k.v = s.v
        UNION ALL SELECT k.h, s.f, r.h FROM points_recent r JOIN store s ON s.v = r.v JOIN points k ON k.v = s.b
    ) found(h, f, o) WHERE NOT EXISTS (SELECT 1 FROM heap k WHERE k.h = found.h AND k.f = found.f AND k.o = found.o)""",
    "INSERT INTO points SELECT * FROM points_new",
    "INSERT INTO heap SELECT * FROM heap_new",
)

COUNTING = """
.decl n(x: number)
.output n
n(0).
n(x + 1) :- n(x), x < {number}.
"""
COUNTING_IN_TURNS = """
.decl n(x: number)
.decl m(x: number)
.output n
n(0).
m(x + 1) :- n(x), x < {number}.
n(x + 1) :- m(x), x < {number}.
"""

VERIFIED = """
.decl orders(id: number, customer: number, amount: number)
.decl blocked(customer: number)
.decl recommends(x: number, y: number)
.input orders
.input blocked
.input recommends
.decl shippable(id: number, customer: number)
.decl above(x: number, y: number)
.decl revenue(customer: number, total: number)
.decl often(customer: number, times: number)
.decl largest(customer: number, amount: number)
.output shippable
.output above
.output revenue
.output often
.output largest
shippable(o, c) :- orders(o, c, _), !blocked(c).
above(x, y) :- recommends(x, y).
above(x, y) :- above(x, z), recommends(z, y).
revenue(c, t) :- orders(_, c, _), t = sum a : { orders(_, c, a) }.
often(c, n) :- orders(_, c, _), n = count : { orders(_, c, _) }.
largest(c, a) :- orders(_, c, _), a = max b : { orders(_, c, b) }.
"""

SMALL_POINTER_PROGRAM: Facts = {"new": [(1, 1), (2, 2)], "assign": [(3, 1)], "load": [(4, 1, 0)], "store": [(1, 0, 2)]}


EVERYBODY = ("embedded", "bulk", "auto", "sqlite-counted", "sqlite-stored", "duckdb", "spark", "spark-loop")


@dataclass(frozen=True)
class Workload:
    """`facts` is what is measured, `small` what a process warms up with. `sqlite` and `duckdb` are queries for the answer, None if they cannot say it.

    `small` takes few rounds, because a plain loop's plans grow exponentially with them. `who` computes it, at most so many times; the first of them is what the others are compared with. `changes` are transactions for those that apply some.
    """

    name: str
    title: str
    program: str
    columns: Mapping[str, tuple[str, ...]]
    answer: str
    facts: Callable[[], Facts]
    small: Callable[[], Facts]
    sqlite: str | None = None
    duckdb: str | None = None
    loop: str = ""
    who: tuple[str, ...] = EVERYBODY
    times: int = 5
    changes: Callable[[Facts], Sequence[Change]] = lambda facts: ()


def _closure(name: str, title: str, facts: Callable[[], Facts]) -> Workload:
    columns = {"edge": ("x", "y")}
    return Workload(name, title, CLOSURE, columns, "closure", facts, lambda: {"edge": tree(2)}, CLOSURE_SQL, CLOSURE_SQL, "closure")


def workloads(quick: bool) -> tuple[Workload, ...]:
    nodes, edges, side, depth, variables = (60, 60, 4, 4, 200) if quick else (2_000, 2_400, 40, 11, 50_000)
    dense, most = (20, 2_000) if quick else (300, 2_000_000)
    return (
        _closure("closure-random", f"closure, random graph\n(n={nodes:,}, m={edges:,})", lambda: {"edge": random_graph(nodes, edges)}),
        _closure("closure-grid", f"closure, grid\n({side}×{side})", lambda: {"edge": grid(side)}),
        _closure("closure-tree", f"closure, binary tree\n(depth {depth})", lambda: {"edge": tree(depth)}),
        Workload(
            "same-generation",
            f"same generation,\nbinary tree (depth {depth})",
            SAME_GENERATION,
            {"edge": ("x", "y")},
            "same",
            lambda: {"edge": tree(depth)},
            lambda: {"edge": tree(2)},
            SAME_GENERATION_SQL,
            SAME_GENERATION_SQL,
            "same_generation",
        ),
        Workload(
            "points-to",
            f"points-to analysis\n({variables:,} variables)",
            POINTS_TO,
            {"new": ("v", "h"), "assign": ("v", "u"), "load": ("v", "b", "f"), "store": ("b", "f", "v")},
            "points",
            lambda: pointer_program(variables),
            lambda: SMALL_POINTER_PROGRAM,
            None,
            POINTS_TO_DUCKDB,
            "points_to",
        ),
        Workload(
            "points-to-dense",
            f"points-to analysis, dense\n({5 * dense:,} variables)",
            POINTS_TO,
            {"new": ("v", "h"), "assign": ("v", "u"), "load": ("v", "b", "f"), "store": ("b", "f", "v")},
            "points",
            lambda: random_pointers(dense),
            lambda: SMALL_POINTER_PROGRAM,
            who=("bulk", "auto", "short", "duckdb-loop", "embedded"),
            times=3,
        ),
        *(_counting(name, title, program, most) for name, title, program in COUNTED),
        *_lasting(quick),
    )


COUNTED = (
    ("counting", "counting, by one relation", COUNTING),
    ("counting-in-turns", "counting, by two relations", COUNTING_IN_TURNS),
)


def _counting(name: str, title: str, program: str, most: int) -> Workload:
    def nothing() -> Facts:
        return {}

    return Workload(name, f"{title}\n(up to {most:,})", program.format(number=most), {}, "n", nothing, nothing, who=("bulk",), times=3)


def _lasting(quick: bool) -> tuple[Workload, ...]:
    """What a data folder, or a database in memory, has DuckDB evaluate."""
    edges, orders = (1_000, 2_000) if quick else (1_000_000, 1_000_000)
    opening = Workload(
        "opening",
        f"opening a folder, recursive view\n({edges:,} rows)",
        CLOSURE,
        {"edge": ("x", "y")},
        "closure",
        lambda: {"edge": chains(edges)},
        lambda: {"edge": tree(2)},
        duckdb=CLOSURE_SQL,
        who=("opened", "parquet"),
        times=3,
    )
    return opening, *(_recomputed(workload) for workload in maintained(quick) if workload.name in RECOMPUTED), _verified(orders)


RECOMPUTED = (
    "closure",
    "closure-large",
    "closure-cyclic",
    "same-generation",
)  # of the others the changes of few rows never go beyond a budget


def _recomputed(workload: Maintained) -> Workload:
    title = f"recomputing, {workload.title}"
    return Workload(
        f"recomputing-{workload.name}",
        title,
        workload.program.text,
        {},
        next(iter(workload.program.views)),
        workload.facts,
        dict,
        who=("recomputed", "recomputed-sqlite"),
        times=1,
        changes=lambda facts: workload.series(facts)[0].changes,
    )


def _verified(orders: int) -> Workload:
    return Workload(
        "verifying",
        f"verifying a folder, five views\n({orders:,} orders)",
        VERIFIED,
        {},
        "above",
        lambda: shop(orders),
        lambda: shop(200),
        who=("verified", "anew"),
        times=1,
    )
