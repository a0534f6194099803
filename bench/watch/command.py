"""`bench watch`: measures, shows, judges."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict

from bench import report
from bench.options import Options
from bench.watch import show
from bench.watch.contenders import CONTENDERS
from bench.watch.judge import judge
from bench.watch.measuring import measure
from bench.watch.workloads import workloads

NOTES = (
    "Milliseconds for one transaction, from rows in Python to the rows that each view gained and lost, in Python; loading and the first answer are not counted.",
    "Every contender is a process of its own that applies the same transactions, one after the other; each second one undoes the one before it. Some at the start warm up and are not counted.",
    "*Recompute and compare* changes the tables, computes the views into a new table, and compares it with the old one by EXCEPT, both ways; on DuckDB in one transaction on all cores, "
    "on Spark in the session of the Spark executor, with a semi-naive loop for recursion.",
    "*By hand* is a program in SQL on SQLite that can maintain this one view only: delete and rederive for the closure, exact changes without a stored view for the join, touched groups for the summary.",
    "A slow contender stops after the pair of transactions in which the cap is reached: it has fewer changes, the same first ones.",
    "*First* is the longer of the first two transactions, *÷ later* how many times as long as the same one later, when it is applied again.",
    "CPU ms are the process's own, on all cores, in the median: on a busy machine they say more than the clock.",
    "*Derived*, *statements* and *rounds* are what Vigilog tells of a transaction, in the median. *DuckDB ÷* says how many times as fast as DuckDB a contender is.",
    "All contenders gave the same first answers and, change for change, the same rows, or this page would not be here.",
)


def run(options: Options) -> int:
    known = workloads(options.quick)
    if _unknown("workload", options.only, [workload.name for workload in known]):
        return 2
    if _unknown("contender", options.contenders, [contender.name for contender in CONTENDERS]):
        return 2
    chosen = [workload for workload in known if not options.only or workload.name in options.only]
    around = report.surroundings()
    results = measure(chosen, options)
    if results.measured:
        targets = judge(chosen, results)
        judged = report.targets_table(targets, _heading(options, float(around["load when started"])))
        tables = show.tables(chosen, results)
        missing = show.skipped(results)
        tables += [missing] if missing else []
        report.show([*tables, *([judged] if targets else [])])
        if not results.failures:
            data = {"targets": [asdict(target) for target in targets], "measured": show.data(results)}
            report.write(options.results, "watch", "Maintaining views", NOTES, [*([judged] if targets else []), *tables], data, around)
            show.draw(options.results / "watch.png", chosen, results)
            print(f"Written: watch.md, watch.json, watch.png in {os.path.relpath(options.results)}")
    for failure in results.failures:
        print(f"bench watch: {failure}", file=sys.stderr)
    return 1 if results.failures else 0


def _heading(options: Options, load: float) -> str:
    """What to say above the targets. On a busy machine a contender that uses all cores loses more than one that uses one."""
    cores = os.cpu_count() or 1
    load = max(load, os.getloadavg()[0])
    if options.quick:
        return "Targets (these inputs are too small to judge by)"
    return (
        f"Targets (others were busy here, too: load {load:.0f} on {cores} cores; the ratios flatter us)" if load > cores + 1 else "Targets"
    )


def _unknown(what: str, asked: Sequence[str], there: Collection[str]) -> bool:
    wrong = [name for name in asked if name not in there]
    if wrong:
        print(f"There is no {what} {wrong[0]}; there is {', '.join(there)}.", file=sys.stderr)
    return bool(wrong)
