"""What is computed: a program, its facts, and the same in the SQL of those who can say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.graphs import Facts, grid, pointer_program, random_graph, tree

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

SMALL_POINTER_PROGRAM: Facts = {"new": [(1, 1), (2, 2)], "assign": [(3, 1)], "load": [(4, 1, 0)], "store": [(1, 0, 2)]}


@dataclass(frozen=True)
class Workload:
    """`facts` is what is measured, `small` what a process warms up with. `sqlite` and `duckdb` are queries for the answer, None if they cannot say it.

    `small` takes few rounds, because a plain loop's plans grow exponentially with them.
    """

    name: str
    title: str
    program: str
    columns: Mapping[str, tuple[str, ...]]
    answer: str
    facts: Callable[[], Facts]
    small: Callable[[], Facts]
    sqlite: str | None
    duckdb: str | None
    loop: str


def _closure(name: str, title: str, facts: Callable[[], Facts]) -> Workload:
    columns = {"edge": ("x", "y")}
    return Workload(name, title, CLOSURE, columns, "closure", facts, lambda: {"edge": tree(2)}, CLOSURE_SQL, CLOSURE_SQL, "closure")


def workloads(quick: bool) -> tuple[Workload, ...]:
    nodes, edges, side, depth, variables = (60, 60, 4, 4, 200) if quick else (2_000, 2_400, 40, 11, 50_000)
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
    )
