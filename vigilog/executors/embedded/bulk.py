"""When DuckDB evaluates for tables on SQLite."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from vigilog.core.extras import DUCKDB
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.executors.fixpoint import recursive_positions
from vigilog.language.strata import Component, dependencies

ROWS = 200_000  # rows that are read, from which moving them to DuckDB and back costs less than it saves: where rules only join,
RECURSIVE = 5_000  # where they are recursive,
NONLINEAR = 1_000  # and where a recursion joins itself, so that few rows may have very many bindings

PATIENCE = 1.0  # seconds of SQLite's work, after which DuckDB fills tables that were thought to be small,
A_MOMENT = 0.1  # and those after which it recomputes views


def worthwhile(tables: Tables, left: Sequence[Component]) -> bool:
    """Whether components are better evaluated on DuckDB, judged by the rows there are of what they read."""
    if not left or not DUCKDB.installed:
        return False
    recursive = [len(recursive_positions(rule, one)) for one in left if one.recursive for rule in one.rules]
    enough = NONLINEAR if any(places > 1 for places in recursive) else RECURSIVE if recursive else ROWS
    return _rows(tables, {atom.relation for one in left for rule in one.rules for atom, _ in dependencies(rule)}, enough) >= enough


def _rows(tables: Tables, relations: Iterable[str], enough: int) -> int:
    """How many rows some relations have together; there may be more than enough."""
    total = 0
    for relation in sorted(relations):
        if total < enough:
            table = quote(tables.layout.tables[relation])
            total += int(tables.execute(f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {enough})").fetchone()[0])
    return total


@contextmanager
def patient(tables: Tables, seconds: float | None) -> Iterator[None]:
    """What is done inside raises Outgrown after some seconds of work. A statement that is stopped so may leave its table half done: empty it, or throw it away.

    In a transaction no statement is stopped, for SQLite would take all of it back; it is looked at the clock between rounds.
    """
    if seconds is None:
        yield
        return
    tables.watch.patience, tables.passing = time.thread_time() + seconds, not tables.connection.in_transaction
    try:
        yield
    finally:
        tables.watch.patience = tables.stopped = None
        tables.passing = False
