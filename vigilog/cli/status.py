"""What `vigilog status` shows."""

from __future__ import annotations

import time
from collections.abc import Sequence

from vigilog.core.errors import counted
from vigilog.engine.sources import SourceStatus
from vigilog.folder.status import ON_SPARK, RESIDENT, RelationStatus, Status

_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


def status_text(state: Status) -> str:
    """The state of a data folder as lines that people read.

    >>> print(size(3 * 2**20), age(7_300))
    3.0 MiB 2.0 hours
    """
    retained = ", ".join(f"{number:,.15g} {what}" for what, number in state.retain.items())
    about = [
        ("folder", state.folder),
        ("transaction", f"{state.tx} (states from {state.oldest} on can be looked at)"),
        ("history", f"{state.history}, format {state.format}, program version {state.program}"),
        ("outbox", f"{counted(state.outbox_changes, 'change')}, {size(state.outbox_bytes)}; retained: {retained}"),
        ("file", size(state.file_bytes)),
        ("warehouse", state.warehouse),
        ("memory", residency(state)),
        *(("trouble", trouble) for trouble in state.troubles),
    ]
    rows = [("relation", "kind", "rows", "where", "snapshot", "kept"), *(_line(relation) for relation in state.relations)]
    sources = [("source", "kind", "calls", "refresh", "read", "state"), *map(_source, state.sources)] if state.sources else []
    return "\n".join([*table(about), "", *table(rows), *(["", *table(sources)] if sources else [])])


def residency(state: Status) -> str:
    """How much base relations in the file take of what they may take, and what it would take to have the others there."""
    base = [relation for relation in state.relations if relation.size is not None]
    taken = sum(relation.size or 0 for relation in base if relation.residency == RESIDENT)
    far = [relation for relation in base if relation.residency == ON_SPARK]
    text = f"resident base relations take about {size(taken)} of {size(state.memory)}"
    if not far:
        return text
    needed = -(-(taken + sum(relation.size or 0 for relation in far)) // 2**20)
    names = ", ".join(relation.name for relation in far)
    return f"{text}, smallest first; on Spark: {names} (--memory {needed} would be enough for all)"


def _line(relation: RelationStatus) -> tuple[str, ...]:
    snapshot = ""
    if relation.snapshot is not None and relation.snapshot_age is not None:
        snapshot = f"at {relation.snapshot}, {age(relation.snapshot_age)} old, {counted(relation.behind or 0, 'row')} changed since"
    kept = f"{relation.strategy}: {relation.reason}" if relation.strategy else ""
    kept = f"about {size(relation.size)}" if relation.size else kept
    kept += f", sorted by {', '.join(relation.sorted_by)}" if relation.sorted_by else ""
    kept += f", filters by {', '.join(relation.filtered_by)}" if relation.filtered_by else ""
    rows = "" if relation.rows is None else f"{relation.rows:,}"
    return relation.name, relation.kind, rows, relation.residency, snapshot, kept


def _source(source: SourceStatus) -> tuple[str, ...]:
    read = "" if source.read_at is None else f"{age(max(0.0, time.time() - source.read_at))} ago"
    every = "" if source.refresh is None else f"every {source.refresh:g} s"
    return source.name, source.kind, f"{source.calls:,}", every, read, f"stale: {source.trouble}" if source.stale else ""


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their columns under each other.

    >>> table([("a", "bc"), ("def", "g")])
    ['a    bc', 'def  g']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def size(number: float) -> str:
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    power = 0
    while number >= 1024 and power < len(units) - 1:
        number, power = number / 1024, power + 1
    return f"{number:.{min(power, 1)}f} {units[power]}"


def age(seconds: float) -> str:
    length, unit = next((unit for unit in _UNITS if seconds >= unit[0]), _UNITS[-1])
    return f"{seconds / length:.1f} {unit}"
