"""Table 1 of the paper (Mohapatra & Genesereth: CReaM): what a changed row costs a view over a join, one of whose variables is dropped.

With what is kept of its groups, and without; along indexes, and without them. Steps of SQLite's machine are counted, which no other load disturbs. What Vigilog has no way to do, to go without an index, is
written by hand in SQL: statements that do only that, over tables that have none.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from vigilog.engine.database import Database
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.language.check import check

PROGRAM = """
.decl r(x: number, z: number, b: number)
.input r
.decl s(b: number, y: number)
.input s
.decl v(x: number, t: number)
.output v
v(x, t) :- setof((b, y), (r(x, z, b), s(b, y)), w), sum(w, t, 2).
"""
ANEW = "SELECT x, z, sum(y) AS t FROM r JOIN s ON r.b = s.b GROUP BY x, z"
SEED, GROUP, DROPPED = 16, 10, 5  # rows of a group; values of the dropped variable for each x
FRESH = 2_000  # more rows can be joined
SIZES, CHANGED = (1_000, 10_000, 100_000), (1, 100)
Row = tuple[int, int, int]


Pair = tuple[int, int]


@dataclass(frozen=True)
class Cost:
    steps: float
    ms: float


@dataclass(frozen=True)
class Opened:
    """A state with some rows: its connection, what follows an insertion into `r`, and how it is closed."""

    connection: sqlite3.Connection
    insert: Callable[[Sequence[Row]], object]
    close: Callable[[], None]


@dataclass(frozen=True)
class Design:
    """Who keeps the view, and how."""

    name: str
    opened: Callable[[Sequence[Row], Sequence[Pair]], Opened]


def maintained(strategy: str) -> Design:
    def opened(r: Sequence[Row], s: Sequence[Pair]) -> Opened:
        database = Database(check(PROGRAM).program, {"r": r, "s": s}, strategy)
        assert isinstance(database.views, EmbeddedViews)
        return Opened(database.views.tables.connection, lambda rows: database.apply({"insert": {"r": rows}}), database.close)

    return Design(strategy, opened)


def by_hand(name: str, keys: bool, follow: Sequence[str], once: Sequence[str] = ()) -> Design:
    """Tables with or without keys; `follow` is run for each row, `once` for all of them."""

    def opened(r: Sequence[Row], s: Sequence[Pair]) -> Opened:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        for table, columns, key in (
            ("r", "x, z, b", "x, z, b"),
            ("s", "b, y", "b, y"),
            ("state", "x, z, n, t", "x, z"),
            ("v", "x, z, t", "x, z"),
        ):
            connection.execute(f"CREATE TABLE {table} ({columns}{f', PRIMARY KEY ({key})) WITHOUT ROWID' if keys else ')'}")
        connection.executemany("INSERT INTO r VALUES (?, ?, ?)", r)
        connection.executemany("INSERT INTO s VALUES (?, ?)", s)
        connection.execute("INSERT INTO state SELECT x, z, count(*), sum(y) FROM r JOIN s ON r.b = s.b GROUP BY x, z")
        connection.execute(f"INSERT INTO v {ANEW}")

        def insert(rows: Sequence[Row]) -> None:
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO r VALUES (?, ?, ?)", rows)
            for statement in follow:
                connection.executemany(statement, [{"x": x, "z": z, "b": b} for x, z, b in rows])
            for statement in once:
                connection.execute(statement).fetchall()
            connection.execute("COMMIT")

        return Opened(connection, insert, connection.close)

    return Design(name, opened)


ADDED = "UPDATE state SET n = n + 1, t = t + (SELECT y FROM s WHERE s.b = :b) WHERE x = :x AND z = :z"
COMPARED = (f"SELECT * FROM ({ANEW}) EXCEPT SELECT * FROM v", f"SELECT * FROM v EXCEPT SELECT * FROM ({ANEW})")
DESIGNS = (
    maintained("auto"),
    by_hand("state, no index", False, (ADDED,)),
    maintained("external"),
    by_hand("anew, index", True, (), COMPARED),
    by_hand("anew, no index", False, (), COMPARED),
)


def facts(size: int) -> tuple[list[Row], list[tuple[int, int]]]:
    """So many rows, ten for each x and z, each joined with one other."""
    chance, groups = random.Random(SEED), max(size // GROUP, 1)
    return [(g // DROPPED, g % DROPPED, b) for b in range(size) for g in [b % groups]], [
        (b, chance.randrange(1000)) for b in range(size + FRESH)
    ]


def measured(sizes: Sequence[int] = SIZES, changed: Sequence[int] = CHANGED, times: int = 5) -> Iterator[tuple[str, int, int, Cost]]:
    """The cost of so many rows for each design and size: the median of some transactions, with their steps, and then without counting them."""
    for design in DESIGNS:
        for size in sizes:
            r, s = facts(size)
            state = design.opened(r, s)
            groups, fresh, chance = max(size // GROUP, 1), iter(range(size, size + FRESH)), random.Random(SEED)
            with ExitStack() as stack:
                stack.callback(state.close)
                for rows in changed:
                    told = [
                        [(g // DROPPED, g % DROPPED, next(fresh)) for g in chance.choices(range(groups), k=rows)] for _ in range(2 * times)
                    ]
                    steps = [_steps(state, part) for part in told[:times]]
                    yield design.name, size, rows, Cost(median(steps), median(_ms(state, part) for part in told[times:]))


def _steps(state: Opened, rows: Sequence[Row]) -> int:
    taken = 0

    def step() -> int:
        nonlocal taken
        taken += 1
        return 0

    state.connection.set_progress_handler(step, 1)
    state.insert(rows)
    state.connection.set_progress_handler(None, 0)
    return taken


def _ms(state: Opened, rows: Sequence[Row]) -> float:
    began = time.perf_counter()
    state.insert(rows)
    return (time.perf_counter() - began) * 1000
