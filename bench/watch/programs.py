"""The views: a program, and for each view the same in SQL that SQLite, DuckDB and, if it does not recur, Spark understand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class View:
    """`sql` gives each row once. `loop` names the same recursion on Spark, in `recompute_spark.py`."""

    columns: tuple[str, ...]
    sql: str
    loop: str | None = None


@dataclass(frozen=True)
class Program:
    """`base` are the columns of the relations that change, `indexes` what SQLite needs beside their keys to compute the views."""

    text: str
    base: Mapping[str, tuple[str, ...]]
    views: Mapping[str, View]
    indexes: tuple[tuple[str, str], ...] = ()

    @property
    def recursive(self) -> bool:
        return any(view.loop for view in self.views.values())


def _declared(base: Mapping[str, tuple[str, ...]], views: Mapping[str, View]) -> str:
    lines = []
    for name, columns in [*base.items(), *((name, view.columns) for name, view in views.items())]:
        lines.append(f".decl {name}({', '.join(f'{column}: number' for column in columns)})")
        lines.append(f".input {name}" if name in base else f".output {name}")
    return "\n".join(lines) + "\n"


def _program(rules: str, base: Mapping[str, tuple[str, ...]], views: Mapping[str, View], *indexes: tuple[str, str]) -> Program:
    return Program(_declared(base, views) + rules, base, views, indexes)


CLOSURE = _program(
    """
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
""",
    {"edge": ("x", "y")},
    {
        "closure": View(
            ("x", "y"),
            """
WITH RECURSIVE closure(x, y) AS (
  SELECT x, y FROM edge
  UNION
  SELECT closure.x, edge.y FROM closure JOIN edge ON edge.x = closure.y
) SELECT x, y FROM closure""",
            "closure",
        )
    },
)

JOIN = _program(
    """
due(o, c, z) :- orders(o, c, _), customer(c, r), region(r, z), !blocked(c).
""",
    {"orders": ("o", "c", "a"), "customer": ("c", "r"), "region": ("r", "z"), "blocked": ("c",)},
    {
        "due": View(
            ("o", "c", "z"),
            """
SELECT orders.o, orders.c, region.z FROM orders JOIN customer ON customer.c = orders.c JOIN region ON region.r = customer.r
WHERE NOT EXISTS (SELECT 1 FROM blocked WHERE blocked.c = orders.c)""",
        )
    },
)

SUMMARY = _program(
    """
summary(g, n, s, lo, hi) :- reading(_, g, _),
  n = count : { reading(_, g, _) }, s = sum v : { reading(_, g, v) }, lo = min v : { reading(_, g, v) }, hi = max v : { reading(_, g, v) }.
""",
    {"reading": ("i", "g", "v")},
    {
        "summary": View(
            ("g", "n", "s", "lo", "hi"),
            "SELECT g, count(*) AS n, CAST(sum(v) AS BIGINT) AS s, min(v) AS lo, max(v) AS hi FROM reading GROUP BY g",
        )
    },
)

SAME_GENERATION = _program(
    """
same(x, y) :- edge(p, x), edge(p, y), x != y.
same(x, y) :- edge(p, x), same(p, q), edge(q, y).
""",
    {"edge": ("x", "y")},
    {
        "same": View(
            ("x", "y"),
            """
WITH RECURSIVE same(x, y) AS (
  SELECT a.y, b.y FROM edge a JOIN edge b ON b.x = a.x WHERE a.y <> b.y
  UNION
  SELECT a.y, b.y FROM same JOIN edge a ON a.x = same.x JOIN edge b ON b.x = same.y
) SELECT x, y FROM same""",
            "same_generation",
        )
    },
)


# -- integrity views: eight kinds of violation, each at ten bounds


@dataclass(frozen=True)
class _Violation:
    """`rule` and `where` may use {k}, from 0 to 9, {pay}, {raise_} and {budget}, bounds that grow with it."""

    name: str
    columns: tuple[str, str]
    rule: str
    sql: str


_VIOLATIONS = (
    _Violation(
        "overpaid",
        ("e", "m"),
        "employee(e, _, m, s), employee(m, _, _, t), s > t + {raise_}",
        "SELECT a.e AS e, b.e AS m FROM employee a JOIN employee b ON b.e = a.m WHERE a.s > b.s + {raise_}",
    ),
    _Violation(
        "homeless",
        ("e", "d"),
        "employee(e, d, _, s), !department(d, _, _), s >= {pay}",
        "SELECT e, d FROM employee a WHERE s >= {pay} AND NOT EXISTS (SELECT 1 FROM department b WHERE b.d = a.d)",
    ),
    _Violation(
        "unled",
        ("e", "m"),
        "employee(e, _, m, s), !manager(m, _), s >= {pay}",
        "SELECT e, m FROM employee a WHERE s >= {pay} AND NOT EXISTS (SELECT 1 FROM manager b WHERE b.m = a.m)",
    ),
    _Violation(
        "abroad",
        ("e", "m"),
        "employee(e, d, m, _), manager(m, {k}), employee(m, f, _, _), d != f",
        "SELECT a.e AS e, a.m AS m FROM employee a JOIN manager c ON c.m = a.m JOIN employee b ON b.e = a.m WHERE c.l = {k} AND a.d <> b.d",
    ),
    _Violation(
        "headless",
        ("d", "h"),
        "department(d, h, b), !employee(h, d, _, _), b >= {budget}",
        "SELECT d, h FROM department a WHERE b >= {budget} AND NOT EXISTS (SELECT 1 FROM employee b WHERE b.e = a.h AND b.d = a.d)",
    ),
    _Violation(
        "costly",
        ("e", "d"),
        "employee(e, d, _, s), department(d, _, b), s > b + {raise_}",
        "SELECT a.e AS e, a.d AS d FROM employee a JOIN department b ON b.d = a.d WHERE a.s > b.b + {raise_}",
    ),
    _Violation(
        "outranked",
        ("e", "m"),
        "employee(e, _, m, s), manager(m, l), l < 3, s > 40000 + {pay}",
        "SELECT a.e AS e, a.m AS m FROM employee a JOIN manager b ON b.m = a.m WHERE b.l < 3 AND a.s > 40000 + {pay}",
    ),
    _Violation(
        "idle",
        ("m", "l"),
        "manager(m, l), l = {k}, !employee(_, _, m, _)",
        "SELECT m, l FROM manager a WHERE l = {k} AND NOT EXISTS (SELECT 1 FROM employee b WHERE b.m = a.m)",
    ),
)


def _integrity() -> Program:
    base = {"employee": ("e", "d", "m", "s"), "department": ("d", "h", "b"), "manager": ("m", "l")}
    views, rules = {}, []
    for violation in _VIOLATIONS:
        for k in range(10):
            bounds = {"k": k, "pay": 20_000 + 4_000 * k, "raise_": 2_000 * k, "budget": 90_000 + 3_000 * k}
            name = f"{violation.name}_{k}"
            views[name] = View(violation.columns, violation.sql.format(**bounds))
            rules.append(f"{name}({', '.join(violation.columns)}) :- {violation.rule.format(**bounds)}.")
    return _program("\n".join(rules) + "\n", base, views, ("employee", "m"))


INTEGRITY = _integrity()
