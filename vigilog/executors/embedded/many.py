"""Many rows into a table: some hundreds of values in a statement take SQLite half the time of a row in each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import chain, islice
from typing import Any

AT_ONCE = 10_000  # rows that are looked at together
VALUES = 400  # in a statement; more is not faster


def put(connection: sqlite3.Connection, into: str, width: int, rows: Iterable[tuple[Any, ...]], otherwise: str = "") -> None:
    """Inserts rows of so many columns; `into` is the statement up to VALUES, `otherwise` what follows it.

    >>> connection = sqlite3.connect(":memory:")
    >>> made = connection.execute("CREATE TABLE square (x, y)")
    >>> put(connection, "INSERT INTO square", 2, ((x, x * x) for x in range(1_001)))
    >>> connection.execute("SELECT count(*), sum(y) FROM square").fetchone()
    (1001, 333833500)
    >>> key = connection.execute("CREATE UNIQUE INDEX by_x ON square (x)")
    >>> put(connection, "INSERT INTO square", 2, [(1, 5)], "ON CONFLICT (x) DO UPDATE SET y = excluded.y")
    >>> connection.execute("SELECT y FROM square WHERE x = 1").fetchone()
    (5,)
    """
    together = max(1, VALUES // width)
    one = f"({', '.join('?' * width)})"
    single, many = (f"{into} VALUES {', '.join([one] * number)} {otherwise}" for number in (1, together))
    left = iter(rows)
    while some := list(islice(left, AT_ONCE)):
        values = chain.from_iterable(some)
        if whole := len(some) // together:
            connection.executemany(many, zip(*[islice(values, whole * together * width)] * (together * width), strict=True))
        connection.executemany(single, islice(some, whole * together, None))
