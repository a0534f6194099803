"""What was measured, as tables, data and a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import chart, report
from bench.targets import number
from bench.watch.contenders import CONTENDERS
from bench.watch.measuring import Measured, Results
from bench.watch.workloads import Workload

COLUMNS = (
    "contender",
    "first ms",
    "÷ later",
    "p50 ms",
    "p95 ms",
    "CPU ms",
    "DuckDB ÷",
    "÷ by hand",
    "changes",
    "derived",
    "statements",
    "rounds",
    "Python MiB",
    "Java MiB",
    "note",
)


def tables(chosen: Sequence[Workload], results: Results) -> list[report.Table]:
    found = []
    for workload in chosen:
        for series in results.series(workload):
            measured = results.of(workload, series)
            effect = f"{max(m.effect for m in measured):,.0f} rows of views in the median"
            title = f"{' '.join(workload.title.split())}: {series} a transaction, {effect}"
            found.append(report.Table(title, COLUMNS, [_row(m, measured) for m in measured]))
    return found


def skipped(results: Results) -> report.Table | None:
    rows = [(f"{workload}: {contender}", reason) for (workload, contender), reason in results.skipped.items()]
    return report.Table("Not measured", ("what", "why"), rows) if rows else None


def _row(one: Measured, all_: Sequence[Measured]) -> tuple[str, ...]:
    by_name = {other.contender.name: other for other in all_}
    yardstick, by_hand = by_name.get("duckdb"), by_name.get("by-hand")
    return (
        one.contender.title,
        _ms(median(one.first)),
        f"{number(median(one.colder))}×" if one.colder else "",
        _ms(one.p50),
        _ms(one.p95),
        "" if one.cpu is None else _ms(one.cpu),
        f"{number(yardstick.p50 / one.p50)}×" if yardstick else "",
        f"{number(one.p50 / by_hand.p50)}×" if by_hand else "",
        f"{len(one.times)}{', capped' if one.capped else ''}",
        *("" if (cost := one.cost(what)) is None else f"{cost:,.0f}" for what in ("derived", "statements", "rounds")),
        f"{one.memory.python:,.0f}" if one.memory.python else "",
        f"{one.memory.java:,.0f}" if one.memory.java else "",
        one.note,
    )


def _ms(value: float) -> str:
    """
    >>> _ms(0.0314), _ms(31.4), _ms(3141.6)
    ('0.031', '31.4', '3,142')
    """
    return f"{value:.3f}" if value < 10 else f"{value:.1f}" if value < 1_000 else f"{value:,.0f}"


def data(results: Results) -> list[dict[str, Any]]:
    return [
        {
            "workload": measured.workload.name,
            "series": measured.series,
            "contender": measured.contender.name,
            "rows": measured.rows,
            "first_ms": round(median(measured.first), 4),
            "first_by_later": round(median(measured.colder), 2) if measured.colder else None,
            "p50_ms": round(measured.p50, 4),
            "p95_ms": round(measured.p95, 4),
            "cpu_ms": None if measured.cpu is None else round(measured.cpu, 4),
            "capped": measured.capped,
            "effect": measured.effect,
            **{what: measured.cost(what) for what in ("derived", "statements", "rounds")},
            "note": measured.note,
            "python_mib": round(measured.memory.python, 1),
            "java_mib": round(measured.memory.java, 1),
            "times_ms": [round(time, 4) for time in measured.times],
        }
        for measured in results.measured.values()
    ]


def draw(path: Path, chosen: Sequence[Workload], results: Results) -> None:
    names, middle, slow = [], [], []
    for workload in chosen:
        for series in results.series(workload):
            measured = results.of(workload, series)
            names.append(f"{workload.title}\n{series}")
            middle.append([chart.Bar(m.contender.title, m.p50, _ms(m.p50)) for m in measured])
            slow.append([chart.Bar(m.contender.title, m.p95, _ms(m.p95)) for m in measured])
    used = {measured.contender.title for measured in results.measured.values()}
    colours = {contender.title: contender.colour for contender in CONTENDERS if contender.title in used}
    panels = (chart.Panel("ms for one transaction, p50 (logarithmic)", middle), chart.Panel("p95 (logarithmic)", slow))
    chart.draw(path, "Maintaining views: less is better", names, panels, colours)
