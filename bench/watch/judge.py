"""What must be reached: how many times as fast as DuckDB that recomputes and compares, in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bench.targets import Target, at_least, at_most
from bench.watch.measuring import Measured, Results
from bench.watch.workloads import Workload

BEST = "auto"
STORED, EXTERNAL, YARDSTICK, BY_HAND = "materialized", "external", "duckdb", "by-hand"

SPEED_UP = {  # workload and series: how many times as fast, in the median
    ("closure", "1 row"): 40,
    ("closure-large", "1 row"): 190,
    ("closure-cyclic", "1 row"): 25,
    ("join", "1 row"): 1_900,
    ("join", "10,000 rows"): 4,
    ("summary", "1 row"): 1_000,
    ("summary", "maximum"): 1_000,
    ("summary", "10,000 rows"): 4,
    ("integrity", "1 row"): 190,
    ("same-generation", "1 row"): 140,
}
OF_BY_HAND = 3.0
OF_STORED = 5.0
TEN_TIMES_THE_DATA = 1.5
ON_SPARK = 5.0
COLDER = 5.0
CLOSURES = ("closure", "closure-large", "closure-cyclic")
ACYCLIC = ("closure", "closure-large")


def judge(chosen: list[Workload], results: Results) -> list[Target]:
    return [*_speed_up(results), *_first(results), *_relations(results), *_derived(chosen, results), *_on_spark(chosen, results)]


def _ours(results: Results, workload: str, series: str = "1 row") -> Measured | None:
    """What a user gets who chooses nothing: `auto`, or what there is instead."""
    return results.get(workload, BEST, series) or results.get(workload, STORED, series)


def _speed_up(results: Results) -> Iterator[Target]:
    for (workload, series), wanted in SPEED_UP.items():
        ours, yardstick = _ours(results, workload, series), results.get(workload, YARDSTICK, series)
        if ours and yardstick:
            yield at_least(f"{workload}, {series}: DuckDB ÷ {ours.contender.name}, p50", yardstick.p50 / ours.p50, wanted, "×")
            if workload == "closure-cyclic":
                yield at_most(f"{workload}, {series}: {ours.contender.name} ÷ DuckDB, p95", ours.p95 / yardstick.p95, 1.0, "×")


def _first(results: Results) -> Iterator[Target]:
    """Everything is planned and compiled when a database is opened."""
    for measured in results.measured.values():
        if measured.contender.name == BEST and measured.colder:
            what = f"{measured.workload.name}, {measured.series}: the first transaction ÷ the same one later"
            yield at_most(what, median(measured.colder), COLDER, "×")


def _relations(results: Results) -> Iterator[Target]:
    for workload in CLOSURES:
        stored, by_hand = results.get(workload, STORED), results.get(workload, BY_HAND)
        if stored and by_hand:
            yield at_most(f"{workload}: materialized ÷ by hand, p50", stored.p50 / by_hand.p50, OF_BY_HAND, "×")
    for workload in ACYCLIC:
        stored, external = results.get(workload, STORED), results.get(workload, EXTERNAL)
        if stored and external:
            yield at_most(f"{workload}: external ÷ materialized, p50", external.p50 / stored.p50, OF_STORED, "×")
    for contender in (STORED, EXTERNAL):
        alone, among = results.get("closure", contender), results.get("closure-beside", contender)
        if alone and among:
            yield at_most(f"closure: {contender}, ten times the data, same changes, p50", among.p50 / alone.p50, TEN_TIMES_THE_DATA, "×")


def _derived(chosen: list[Workload], results: Results) -> Iterator[Target]:
    """The rows that `external` derives do not grow with data that has nothing to do with the change."""
    found = {}
    for workload in chosen:
        if workload.name.startswith("golden-"):
            measured = results.get(workload.name, EXTERNAL, "bc out, hd in")
            if measured:
                found[workload.name.removeprefix("golden-")] = sorted({cost["derived"] for cost in measured.costs[:2]})
    if len(found) > 1:
        same = len({tuple(derived) for derived in found.values()}) == 1
        told = ", ".join(f"{'/'.join(map(str, derived))} with {more}" for more, derived in found.items())
        yield Target("golden: rows that external derives, there and back", "the same", told, "reached" if same else "MISSED")


def _on_spark(chosen: list[Workload], results: Results) -> Iterator[Target]:
    for workload in chosen:
        for series in results.series(workload) if workload.files else ():
            ours, recomputed = results.get(workload.name, "on-spark", series), results.get(workload.name, "spark", series)
            if ours and recomputed:
                yield at_least(
                    f"{workload.name}, {series}: recomputing on Spark ÷ maintaining, p50", recomputed.p50 / ours.p50, ON_SPARK, "×"
                )
