"""Shows long work on a terminal, and nothing on a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vigilog.executors.watch import Report


@contextmanager
def progress() -> Iterator[Report | None]:
    """A report function that draws a bar with rounds and rows so far; None if nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TextColumn("{task.fields[detail]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=8) as bar:
        task = bar.add_task("starting", total=None, detail="")

        def report(what: str, round_: int, rows: int) -> None:
            detail = f"round {round_}, {rows:,} rows so far" if round_ else ""
            bar.update(task, description=what[:40], detail=detail)

        yield report
