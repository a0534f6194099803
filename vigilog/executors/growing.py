"""Evaluation that begins small: on SQLite, and on DuckDB from where it turns out to be much.

How much a program derives cannot be seen from its input: a few thousand facts may have a hundred million bindings. So what is small begins on SQLite, which is there at once, and when its
patience ends DuckDB takes over all rows there are, finished relations and unfinished ones: each of them follows from the rules, so what was begun need not be done again, and cannot be wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import TYPE_CHECKING

from vigilog.core.extras import DUCKDB
from vigilog.core.values import Row
from vigilog.executors.embedded.executor import EmbeddedEvaluation, Unfinished
from vigilog.executors.watch import Watch
from vigilog.language.program import Program

if TYPE_CHECKING:
    from vigilog.executors.evaluation import Evaluation

PATIENCE = 1.0  # seconds of SQLite before DuckDB takes over; it needs a sixth of one to start
MANY = 100_000  # rows of input from which DuckDB is faster even where rules do little with them


def evaluation(program: Program, sources: Mapping[str, Iterable[Row]], watch: Watch, engine: str = "auto") -> Evaluation:
    """Evaluates a plain program over the given rows, in this process: on SQLite (`embedded`), on DuckDB, or on whichever is faster for it."""
    if engine == "embedded" or not DUCKDB.installed:
        return EmbeddedEvaluation(program, sources, watch)
    from vigilog.executors.duckdb.executor import DuckEvaluation

    if engine == "duckdb" or sum(len(rows) for rows in sources.values() if isinstance(rows, Sized)) >= MANY:
        return DuckEvaluation(program, sources, watch)
    try:
        return EmbeddedEvaluation(program, sources, watch, resident=True, patience=PATIENCE)
    except Unfinished as unfinished:
        return DuckEvaluation(program, {}, watch, begun=unfinished)
