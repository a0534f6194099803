"""SQL for relations that keep the best row for each binding of their other columns (`language/improving.py`). Names are quoted."""

from __future__ import annotations

from collections.abc import Sequence

from vigilog.language.improving import Best


def best_rows(text: str, best: Best, width: int) -> str:
    """Of rows n0, n1, … that are alike in their other columns, the best.

    >>> best_rows("SELECT 1 AS n0, 2 AS n1", Best("min", 1), 2)
    'SELECT n0, min(n1) AS n1 FROM (SELECT 1 AS n0, 2 AS n1) AS u GROUP BY n0'
    """
    keys = best.keys(width)
    shown = ", ".join(f"n{place}" if place in keys else f"{best.op}(n{place}) AS n{place}" for place in range(width))
    grouped = f"GROUP BY {', '.join(f'n{place}' for place in keys)}" if keys else "HAVING count(*) > 0"
    return f"SELECT {shown} FROM ({text}) AS u {grouped}"


def worse_than(best: Best, columns: Sequence[str], table: str, other: str, *, equal: bool, where: str = "true") -> str:
    """That a table's row is worse than a row of another that is alike in all columns but the best; or, if `equal` counts, not better. Of the other table only rows count that are as in `where`, which calls it `o`.

    >>> worse_than(Best("max", 0), ["v", "x"], "fresh", "known", equal=True)
    'EXISTS (SELECT 1 FROM known AS o WHERE o.x = fresh.x AND o.v >= fresh.v AND true)'
    """
    value, sign = columns[best.column], "<" if best.op == "min" else ">"
    alike = [f"o.{columns[place]} = {table}.{columns[place]}" for place in best.keys(len(columns))]
    better = f"o.{value} {sign}{'=' if equal else ''} {table}.{value}"
    return f"EXISTS (SELECT 1 FROM {other} AS o WHERE {' AND '.join([*alike, better, where])})"
