"""Which executor evaluates a program, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vigilog.core.errors import UsageError
from vigilog.core.extras import DUCKDB, SPARK
from vigilog.files.place import Place

ENGINES = ("auto", "embedded", "duckdb", "spark")
LARGE_BYTES = 256 * 2**20
BULK_BYTES = 2**20


@dataclass(frozen=True)
class Chosen:
    engine: str
    reason: str
    amiss: bool = False  # whether it is not what was asked for
    grows: bool = False  # whether DuckDB takes over if it turns out to be much


def choose(engine: str, sources: Iterable[Place], sinks: Iterable[Place] = (), large: int = LARGE_BYTES) -> Chosen:
    """The executor for these sources: `engine` itself, unless that is `auto`.

    Small text files are read faster than Spark starts (about ten seconds); all else is Spark's. Without Spark large ones are read, too. Raises NotInstalled for what needs Spark where it is not installed.
    """
    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine}; there are {', '.join(ENGINES)}")
    if engine == "duckdb" and not DUCKDB.installed:
        reason = f'engine duckdb was asked for, but {DUCKDB.what} is not installed: pip install "{DUCKDB.name}"; SQLite evaluates'
        return Chosen("embedded", reason, amiss=True)
    if engine != "auto":
        return Chosen(engine, f"asked for by --engine {engine}")
    total = 0
    for place in sources:
        if not (place.text and place.local):
            return _spark(f"{place.relation} is read from {_what(place)}, which Spark reads")
        total += _size(place)
    for place in sinks:
        if not place.text and place.format != "stdout":
            return _spark(f"{place.relation} is written as {_what(place)}, which Spark writes")
    if total > large and not SPARK.installed:
        return Chosen("embedded", f"the input is large: {total / 2**20:.0f} MiB, but Spark is not installed")
    if total > large:
        return Chosen("spark", f"the input is large: {total / 2**20:.0f} MiB, and from {large / 2**20:.0f} MiB on Spark is faster")
    if total > BULK_BYTES:
        reason = f"the input is {total / 2**20:.0f} MiB of text, and from {BULK_BYTES / 2**20:.0f} MiB DuckDB is faster than SQLite"
        if not DUCKDB.installed:
            return Chosen("embedded", f'{reason}, but not installed: pip install "{DUCKDB.name}"')
        return Chosen("duckdb", reason)
    return Chosen("embedded", f"the input is small text: {total / 2**20:.1f} MiB", grows=True)


def _spark(reason: str) -> Chosen:
    SPARK.need(reason)
    return Chosen("spark", reason)


def _what(place: Place) -> str:
    return "a table" if place.format == "table" else place.format if place.local else place.location


def _size(place: Place) -> int:
    try:
        if place.path.is_dir():
            return sum(file.stat().st_size for file in place.path.rglob("*") if file.is_file())
        return place.path.stat().st_size
    except OSError:
        return 0  # reading it will say what is wrong
