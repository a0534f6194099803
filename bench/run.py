"""Evaluating programs from nothing: both executors beside SQLite's and DuckDB's recursive queries and a plain Spark loop."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median

from bench import chart, report
from bench.contenders import CONTENDERS, Contender
from bench.measure import Failed, Memory, Sample, measure
from bench.options import Options
from bench.progress import Steps, steps
from bench.targets import Target, at_least, at_most
from bench.workloads import EVERYBODY, Workload, workloads

COLOURS = {
    "embedded": "#0b4f8a",
    "bulk": "#8a6d0b",
    "sqlite-counted": "#b5d3ea",
    "sqlite-stored": "#79b0d9",
    "auto": "#2a7a3f",
    "short": "#d9a21b",
    "duckdb-loop": "#e3d391",
    "duckdb": "#c9b458",
    "spark": "#c8470f",
    "spark-loop": "#f4b393",
    "opened": "#0b4f8a",
    "parquet": "#c9b458",
    "recomputed": "#0b4f8a",
    "recomputed-sqlite": "#b5d3ea",
    "verified": "#0b4f8a",
    "anew": "#8a6d0b",
}
FASTER_THAN_LOOP = 3.0
FASTER_THAN_SQLITE = 25.0  # where rules have very many bindings
SLOWER_WHERE_SMALL = 1.1
A_ROUND = 30.0  # microseconds
LEAST_MEMORY = 16.0  # MiB that DuckDB has in any case
DENSE = "points-to-dense"
QUICK_SPARK = ("closure-random", "points-to")
NOTES = (
    "Seconds from rows in Python to the stored answer, of the fastest kind of load each offers; *counted* stores nothing.",
    "Every measurement is a process of its own, which first does the same on a small input; that, and starting Spark, is not counted.",
    "What is light is measured several times in turn, the Spark executor twice, the plain loop once; the table has the median. Targets compare the fastest, since whatever else the machine does only adds.",
    "CPU seconds are the process's own, on all cores: on a busy machine they say more than the clock.",
    "The plain loop does `join`, `union`, `distinct` and `count` in each round and caches nothing. It is given up at the cap, or at a little more than three times the Spark executor's "
    "time if that is later; then its time and its ratio are lower bounds, and the round is the last it finished.",
    "Memory is the peak resident size of the process (with Python, the facts and the warm-up), and of its Java process.",
    "Actions are those that the Spark executor asks for, and the counts of the plain loop; Spark may run several jobs for one, to send a small relation to where it is joined.",
    "*A quarter of the memory* is a quarter of what the process of Vigilog on DuckDB grew by beyond its warm-up. SQLite is given up in the dense points-to analysis when it is "
    "known to take more than 25 times as long.",
    "Opening, recomputing and verifying: what is prepared is not counted. Recomputing is the median of transactions with a budget of nothing, *as it chooses* or with SQLite alone, before and after each time.",
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
    def fastest(self) -> float:
        """What targets compare: whatever else a machine does only adds."""
        return min(sample.cap if sample.seconds is None else sample.seconds for sample in self.samples)

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
    def grown(self) -> float:
        """By how many MiB the process grew beyond its warm-up."""
        return max(sample.memory.python - sample.before for sample in self.samples)

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
        results = _measure(chosen, options, _before(options))
    except Failed as reason:
        print(f"bench run: {reason}", file=sys.stderr)
        return 1
    chosen = [workload for workload in workloads(options.quick) if any(name == workload.name for name, _ in results)]
    targets = judge(chosen, results)
    tables = [
        report.targets_table(targets, "Targets (these inputs are too small to judge by)" if options.quick else "Targets"),
        *(_table(workload, results) for workload in chosen),
    ]
    report.show([*tables[1:], tables[0]])
    data = {
        "quick": options.quick,
        "targets": [asdict(target) for target in targets],
        "measured": [_data(measured) for measured in results.values()],
    }
    report.write(options.results, "run", "Evaluating programs", NOTES, tables, data, around)
    _draw(chosen, results, options)
    print(f"Written: run.md, run.json, run.png in {os.path.relpath(options.results)}")
    return 0


# -- measuring


def _measure(chosen: Sequence[Workload], options: Options, results: Results) -> Results:
    turns = [(workload, contender) for workload in chosen for contender in _turns(workload, options)]
    with steps(len(turns)) as shown:
        for workload, contender in turns:
            measured = results.setdefault((workload.name, contender.name), Measured(workload, contender, []))
            if measured.capped:
                shown.end(f"{workload.name}: {contender.title}: not again")
                continue
            measured.samples.append(_sample(workload, contender, results, options, shown))
            _compare(next(other for (name, _), other in results.items() if name == workload.name), measured)
    return results


def _before(options: Options) -> Results:
    """What was measured before, where only some workloads, or only some contenders for them, are measured: so a run may be done in pieces."""
    path = options.results / "run.json"
    if not options.only or not path.exists():
        return {}
    said = json.loads(path.read_text(encoding="utf-8"))
    known, contenders = {workload.name: workload for workload in workloads(options.quick)}, {one.name: one for one in CONTENDERS}
    found: Results = {}
    for one in said["measured"] if said.get("quick") == options.quick else ():
        again = one["workload"] in options.only and _wanted(contenders.get(one["contender"]), options)
        if one["workload"] in known and one["contender"] in contenders and not again:
            samples = [Sample(**{**sample, "memory": Memory(**sample["memory"])}) for sample in one["samples"]]
            measured = Measured(known[one["workload"]], contenders[one["contender"]], samples)
            found[one["workload"], one["contender"]] = measured
    return found


def _turns(workload: Workload, options: Options) -> list[Contender]:
    """Who is measured when: the light ones in turn, then the heavy ones. A quick run starts Spark for two workloads only."""
    able = [one for one in _able(workload) if _wanted(one, options)]
    light = [contender for _ in range(min(options.repeats, workload.times)) for contender in able if not contender.heavy]
    if options.quick and workload.name not in QUICK_SPARK:
        return light
    return light + [contender for contender in able if contender.heavy for _ in range(1 if contender.capped or options.quick else 2)]


def _wanted(contender: Contender | None, options: Options) -> bool:
    return contender is not None and (not options.contenders or contender.name in options.contenders)


def _able(workload: Workload) -> list[Contender]:
    """Who computes a workload; the first of them is what the others are compared with."""
    return sorted((one for one in CONTENDERS if one.asked(workload) and one.can(workload)), key=lambda one: workload.who.index(one.name))


def _cap(workload: Workload, contender: Contender, results: Results, options: Options) -> float:
    """The plain loop, and SQLite where it is known to be slow, get at least the time it takes to judge the target, unless in a hurry; everything else five times the cap."""
    bulk, spark = results.get((workload.name, "bulk")), results.get((workload.name, "spark"))
    if workload.name == DENSE and contender.name == "embedded" and bulk is not None and not options.quick:
        return max(options.cap, 1.1 * FASTER_THAN_SQLITE * bulk.seconds)
    if not contender.capped:
        return 5 * max(options.cap, 30.0)
    if spark is None or spark.capped or options.quick:
        return options.cap
    return max(options.cap, 1.05 * FASTER_THAN_LOOP * spark.seconds)


def _sample(workload: Workload, contender: Contender, results: Results, options: Options, shown: Steps) -> Sample:
    what = f"{workload.name}: {contender.title}"
    tell, cap = shown.begin(what), _cap(workload, contender, results, options)
    arguments = [contender.name, workload.name, *(["--quick"] if options.quick else [])]
    if contender.short:
        arguments += ["--memory", str(max(results[workload.name, "bulk"].grown / 4, LEAST_MEMORY))]
    sample = measure(arguments, cap, tell)
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
    for name in (workload.name for workload in chosen if workload.name.startswith("closure")):
        targets += [target for peer in ("sqlite-stored", "sqlite-counted") for target in _ratio(results, name, "embedded", peer, 1.0)]
    for workload in chosen:
        if workload.who == EVERYBODY:
            targets += _ratio(results, workload.name, "bulk", "duckdb", 1.5)
            targets += _ratio(results, workload.name, "auto", "embedded", SLOWER_WHERE_SMALL)
    for workload in chosen:
        targets += _judge_bulk(workload.name, results)
    for workload in chosen:
        if _has(results, workload.name, "spark", "spark-loop"):
            targets += _judge_spark(workload, results[workload.name, "spark"], results[workload.name, "spark-loop"])
    return targets


def _has(results: Results, workload: str, *contenders: str) -> bool:
    return all((workload, contender) in results for contender in contenders)


def _ratio(results: Results, workload: str, one: str, other: str, most: float) -> list[Target]:
    """That one takes at most so many times as long as another, where both were measured."""
    if not _has(results, workload, one, other):
        return []
    mine, theirs = results[workload, one], results[workload, other]
    return [at_most(f"{workload}: {mine.contender.title} ÷ {theirs.contender.title}", mine.fastest / theirs.fastest, most, "×")]


def _faster(results: Results, workload: str, one: str, other: str, least: float) -> list[Target]:
    if not _has(results, workload, one, other):
        return []
    mine, theirs = results[workload, one], results[workload, other]
    what = f"{workload}: {theirs.contender.title} ÷ {mine.contender.title}"
    return [at_least(what, theirs.fastest / mine.fastest, least, "×", theirs.capped)]


def _judge_bulk(name: str, results: Results) -> list[Target]:
    """What DuckDB is there for."""
    if name == DENSE:
        found = _faster(results, name, "bulk", "embedded", FASTER_THAN_SQLITE) + _ratio(results, name, "bulk", "duckdb-loop", 2.0)
        found += _ratio(results, name, "auto", "bulk", 1.5)
        if short := results.get((name, "short")):
            found.append(
                Target(f"{name}: {short.contender.title}", "ends", f"{short.seconds:.1f} s", "MISSED" if short.capped else "reached")
            )
        return found
    if name.startswith("counting"):
        ours = results[name, "bulk"]
        return [at_most(f"{name}: a round of one row", ours.fastest * 1e6 / (ours.told("rounds") or ours.rows or 1), A_ROUND, " µs")]
    if name.startswith("recomputing"):
        return _faster(results, name, "recomputed", "recomputed-sqlite", 3.0)
    if name == "opening":
        return _ratio(results, name, "opened", "parquet", 2.0)
    return _ratio(results, name, "verified", "anew", 4.0) if name == "verifying" else []


def _judge_spark(workload: Workload, ours: Measured, loop: Measured) -> list[Target]:
    actions, rounds = ours.told("actions") or 0, ours.told("rounds") or 0
    # One action reads each source, one starts each of the program's components, one counts undefined terms.
    constant = len(workload.columns) + 2
    return [
        at_least(f"{workload.name}: plain loop ÷ Spark executor", loop.fastest / ours.fastest, FASTER_THAN_LOOP, "×", loop.capped),
        at_most(f"{workload.name}: Spark actions ({actions}) − rounds ({rounds})", actions - rounds, constant),
    ]


# -- showing


def _table(workload: Workload, results: Results) -> report.Table:
    first = next(one for one in _able(workload) if (workload.name, one.name) in results)
    columns = (
        "contender",
        "seconds",
        f"× {first.title.removeprefix('Vigilog ')}",
        "CPU seconds",
        "rows",
        "Python MiB",
        "Java MiB",
        "rounds",
        "actions",
        "jobs",
        "fastest–slowest",
    )
    base = results[workload.name, first.name].seconds
    rows = []
    for contender in CONTENDERS:
        if not contender.asked(workload):
            continue
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
        "samples": [asdict(sample) for sample in measured.samples],
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
