"""Evaluating programs from nothing: both executors beside SQLite's and DuckDB's recursive queries and a plain Spark loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from bench import chart, report
from bench.contenders import CONTENDERS, Contender
from bench.measure import Failed, Sample, measure
from bench.options import Options
from bench.progress import Steps, steps
from bench.targets import Target, at_least, at_most
from bench.workloads import Workload, workloads

COLOURS = {
    "embedded": "#0b4f8a",
    "bulk": "#8a6d0b",
    "sqlite-counted": "#b5d3ea",
    "sqlite-stored": "#79b0d9",
    "duckdb": "#c9b458",
    "spark": "#c8470f",
    "spark-loop": "#f4b393",
}
FASTER_THAN_LOOP = 3.0
QUICK_SPARK = ("closure-random", "points-to")
NOTES = (
    "Seconds from rows in Python to the stored answer, of the fastest kind of load each offers; *counted* stores nothing.",
    "Every measurement is a process of its own, which first does the same on a small input; that, and starting Spark, is not counted.",
    "What is light is measured several times in turn, the Spark executor twice, the plain loop once; the table has the median.",
    "CPU seconds are the process's own, on all cores: on a busy machine they say more than the clock.",
    "The plain loop does `join`, `union`, `distinct` and `count` in each round and caches nothing. It is given up at the cap, or at a little more than three times the Spark executor's "
    "time if that is later; then its time and its ratio are lower bounds, and the round is the last it finished.",
    "Memory is the peak resident size of the process (with Python, the facts and the warm-up), and of its Java process.",
    "Actions are those that the Spark executor asks for, and the counts of the plain loop; Spark may run several jobs for one, to send a small relation to where it is joined.",
    "All contenders gave the same number of rows, or there would be no table.",
)


@dataclass(frozen=True)
class Measured:
    """All samples of one contender on one workload."""

    workload: Workload
    contender: Contender
    samples: list[Sample]

    @property
    def capped(self) -> bool:
        return any(sample.seconds is None for sample in self.samples)

    @property
    def seconds(self) -> float:
        """The median; if a cap came first, that cap, which is a lower bound."""
        return median(sample.cap if sample.seconds is None else sample.seconds for sample in self.samples)

    @property
    def cpu(self) -> float | None:
        """The median of the processor time, which others on the machine disturb less; not for Spark, whose work is in another process."""
        return None if self.contender.heavy or self.capped else median(sample.outcome["cpu"] for sample in self.samples)

    @property
    def rows(self) -> int | None:
        return next((int(sample.outcome["rows"]) for sample in self.samples if sample.outcome), None)

    def told(self, what: str) -> int | None:
        """A number of the outcome, where the contender told it."""
        if what == "rounds" and self.capped:
            return max((number for sample in self.samples for number, _, _ in sample.rounds), default=0)
        found = self.samples[0].outcome.get(what)
        return None if found is None else int(found)

    @property
    def python(self) -> float:
        return max(sample.memory.python for sample in self.samples)

    @property
    def java(self) -> float:
        return max(sample.memory.java for sample in self.samples)


Results = dict[tuple[str, str], Measured]


def main(options: Options) -> int:
    chosen = [workload for workload in workloads(options.quick) if not options.only or workload.name in options.only]
    if not chosen:
        print(f"There is no such workload; there is {', '.join(workload.name for workload in workloads(options.quick))}.", file=sys.stderr)
        return 2
    around = report.surroundings()
    try:
        results = _measure(chosen, options)
    except Failed as reason:
        print(f"bench run: {reason}", file=sys.stderr)
        return 1
    targets = judge(chosen, results)
    tables = [
        report.targets_table(targets, "Targets (these inputs are too small to judge by)" if options.quick else "Targets"),
        *(_table(workload, results) for workload in chosen),
    ]
    report.show([*tables[1:], tables[0]])
    data = {"targets": [asdict(target) for target in targets], "measured": [_data(measured) for measured in results.values()]}
    report.write(options.results, "run", "Evaluating programs", NOTES, tables, data, around)
    _draw(chosen, results, options)
    print(f"Written: run.md, run.json, run.png in {os.path.relpath(options.results)}")
    return 0


# -- measuring


def _measure(chosen: Sequence[Workload], options: Options) -> Results:
    turns = [(workload, contender) for workload in chosen for contender in _turns(workload, options)]
    results: Results = {}
    with steps(len(turns)) as shown:
        for workload, contender in turns:
            measured = results.setdefault((workload.name, contender.name), Measured(workload, contender, []))
            if measured.capped:
                shown.end(f"{workload.name}: {contender.title}: not again")
                continue
            cap = _cap(contender, results.get((workload.name, "spark")), options)
            measured.samples.append(_sample(workload, contender, cap, options, shown))
            _compare(results[workload.name, "embedded"], measured)
    return results


def _turns(workload: Workload, options: Options) -> list[Contender]:
    """Who is measured when: the light ones in turn, then the heavy ones. A quick run starts Spark for two workloads only."""
    able = [contender for contender in CONTENDERS if contender.can(workload)]
    light = [contender for _ in range(options.repeats) for contender in able if not contender.heavy]
    if options.quick and workload.name not in QUICK_SPARK:
        return light
    return light + [contender for contender in able if contender.heavy for _ in range(1 if contender.capped or options.quick else 2)]


def _cap(contender: Contender, spark: Measured | None, options: Options) -> float:
    """The plain loop gets at least the time it takes to judge the target, unless in a hurry; everything else five times the cap."""
    if not contender.capped:
        return 5 * max(options.cap, 30.0)
    if spark is None or spark.capped or options.quick:
        return options.cap
    return max(options.cap, 1.05 * FASTER_THAN_LOOP * spark.seconds)


def _sample(workload: Workload, contender: Contender, cap: float, options: Options, shown: Steps) -> Sample:
    what = f"{workload.name}: {contender.title}"
    tell = shown.begin(what)
    sample = measure([contender.name, workload.name, *(["--quick"] if options.quick else [])], cap, tell)
    if sample.seconds is None:
        shown.end(f"{what}: given up after {cap:.0f} s, {len(sample.rounds)} round(s) done")
    else:
        shown.end(f"{what}: {sample.seconds:.3f} s, {sample.outcome['rows']:,} rows")
    return sample


def _compare(one: Measured, other: Measured) -> None:
    if one.rows is not None and other.rows is not None and one.rows != other.rows:
        raise Failed(f"{one.workload.name}: {one.contender.title} has {one.rows:,} rows, {other.contender.title} has {other.rows:,}")


# -- judging


def judge(chosen: Sequence[Workload], results: Results) -> list[Target]:
    targets = []
    for workload in chosen:
        ours = results[workload.name, "embedded"]
        for peer in ("sqlite-stored", "sqlite-counted"):
            if workload.name.startswith("closure") and (workload.name, peer) in results:
                other = results[workload.name, peer]
                targets.append(at_most(f"{workload.name}: embedded ÷ {other.contender.title}", ours.seconds / other.seconds, 1.0, "×"))
    for workload in chosen:
        if (workload.name, "duckdb") in results:
            mine, other = results[workload.name, "bulk"], results[workload.name, "duckdb"]
            targets.append(at_most(f"{workload.name}: Vigilog on DuckDB ÷ {other.contender.title}", mine.seconds / other.seconds, 1.5, "×"))
    for workload in chosen:
        if (workload.name, "spark") in results:
            targets += _judge_spark(workload, results[workload.name, "spark"], results[workload.name, "spark-loop"])
    return targets


def _judge_spark(workload: Workload, ours: Measured, loop: Measured) -> list[Target]:
    actions, rounds = ours.told("actions") or 0, ours.told("rounds") or 0
    # One action reads each source, one starts each of the program's components, one counts undefined terms.
    constant = len(workload.columns) + 2
    return [
        at_least(f"{workload.name}: plain loop ÷ Spark executor", loop.seconds / ours.seconds, FASTER_THAN_LOOP, "×", loop.capped),
        at_most(f"{workload.name}: Spark actions ({actions}) − rounds ({rounds})", actions - rounds, constant),
    ]


# -- showing


def _table(workload: Workload, results: Results) -> report.Table:
    columns = (
        "contender",
        "seconds",
        "× embedded",
        "CPU seconds",
        "rows",
        "Python MiB",
        "Java MiB",
        "rounds",
        "actions",
        "jobs",
        "fastest–slowest",
    )
    base = results[workload.name, "embedded"].seconds
    rows = []
    for contender in CONTENDERS:
        if not contender.can(workload):
            rows.append((contender.title, "cannot say it", *[""] * (len(columns) - 2)))
            continue
        if (workload.name, contender.name) not in results:
            continue
        measured = results[workload.name, contender.name]
        more = "> " if measured.capped else ""
        times = sorted(sample.seconds for sample in measured.samples if sample.seconds is not None)
        counts = [measured.rows, round(measured.python) or None, round(measured.java) or None]
        counts += [measured.told(what) for what in ("rounds", "actions", "jobs")]
        spread = f"{times[0]:.3f}–{times[-1]:.3f}" if len(times) > 1 else ""
        cpu = "" if measured.cpu is None else f"{measured.cpu:.3f}"
        ratio = f"{more}{measured.seconds / base:.2f}"
        cells = ("" if count is None else f"{count:,}" for count in counts)
        rows.append((contender.title, f"{more}{measured.seconds:.3f}", ratio, cpu, *cells, spread))
    return report.Table(workload.title.replace("\n", " "), columns, rows)


def _data(measured: Measured) -> dict[str, object]:
    return {
        "workload": measured.workload.name,
        "contender": measured.contender.name,
        "seconds": round(measured.seconds, 4),
        "cpu": measured.cpu,
        "capped": measured.capped,
        "times": [sample.seconds for sample in measured.samples],
        "rows": measured.rows,
        "rounds": measured.told("rounds"),
        "actions": measured.told("actions"),
        "jobs": measured.told("jobs"),
        "python_mib": round(measured.python, 1),
        "java_mib": round(measured.java, 1),
        "each_round": measured.samples[0].rounds,
    }


def _draw(chosen: Sequence[Workload], results: Results, options: Options) -> None:
    titles = {contender.title: COLOURS[contender.name] for contender in CONTENDERS}
    times, memory = [], []
    for workload in chosen:
        found = [results[workload.name, contender.name] for contender in CONTENDERS if (workload.name, contender.name) in results]
        times.append([chart.Bar(m.contender.title, m.seconds, _seconds(m), m.capped) for m in found])
        memory.append([chart.Bar(m.contender.title, max(m.python + m.java, 1), f"{m.python + m.java:,.0f}", m.capped) for m in found])
    panels = (chart.Panel("seconds (logarithmic)", times), chart.Panel("peak memory, MiB, Python and Java together (logarithmic)", memory))
    chart.draw(options.results / "run.png", "Evaluating programs: less is better", [workload.title for workload in chosen], panels, titles)


def _seconds(measured: Measured) -> str:
    if measured.capped:
        return f"> {measured.seconds:.0f} s, in round {(measured.told('rounds') or 0) + 1}"
    return f"{measured.seconds:.3g} s" if measured.seconds >= 0.1 else f"{measured.seconds * 1000:.3g} ms"
