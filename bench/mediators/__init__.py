"""`bench mediators`: what sources and facts that are not ground cost, beside loops, z3 and Spark that do the same by hand.

All that is compared runs in one process, in turns where it can, so a ratio does not depend on how busy the machine is.
"""

from __future__ import annotations

from collections.abc import Mapping

from bench.experiments import Experiments
from bench.mediators import constraints, sources, tables
from bench.options import Options
from bench.targets import Target, at_least, at_most

NOTES = (
    "Times are medians in milliseconds, in memory; checks are counted in a second. What is compared ran in one process.",
    "*Supports*: an atom is deleted on which 10 (chains), 14 (trees) or 18 (grids) supports depend, in views of ever more supports.",
    "*Algorithms*: ten levels over two sources. *Rederived*: all that is deleted has another proof. *Lost*: nothing has, and ten atoms go.",
    "*Calls*: a Python function that takes some 150 µs, called by rules and in a plain loop; then all answers are asked for anew.",
    "*Ranges*: 1,000,000 rows joined with ten facts, each of which covers one row in a thousand.",
    "*Joins*: 1,000,000 rows of PostgreSQL and as many of a CSV file, joined on Spark and kept there; Spark has started.",
    "*Without*: single rows of a program that has neither domains nor constraints; *before* is the step alone, without what lets sources be waited for.",
)


def main(options: Options) -> int:
    return Experiments(
        "Mediators",
        "ms, checks a second",
        NOTES,
        {
            "without": sources.without,
            "calls": sources.calls,
            "deferred": sources.deferred,
            "checks": constraints.checks,
            "algorithms": constraints.algorithms,
            "ranges": tables.ranges,
            "joins": tables.joins,
            "supports": constraints.supports,
        },
        judge,
    ).run(options)


def judge(found: Mapping[str, Mapping[str, float]]) -> list[Target]:
    targets = []
    for shape in ("chains", "trees", "grids") if "supports" in found else ():
        sizes = [value for name, value in found["supports"].items() if name.startswith(shape)]
        names = [name for name in found["supports"] if name.startswith(shape)]
        targets.append(at_most(f"deleting: {names[-1]} ÷ {names[0].partition(', ')[2]}", sizes[-1] / sizes[0], 2, "×"))
    if "algorithms" in found:
        own = found["algorithms"]
        targets.append(
            at_least("most is rederived: extended DRed ÷ Straight Delete", own["dred, rederived"] / own["straight, rederived"], 3, "×")
        )
        for what in ("rederived", "lost"):
            for name in ("straight", "dred"):
                targets.append(at_least(f"{what}: recomputing ÷ {name}", own[f"recompute, {what}"] / own[f"{name}, {what}"], 20, "×"))
    if "checks" in found:
        targets.append(at_least("checks a second: normal form ÷ z3", found["checks"]["normal form"] / found["checks"]["z3"], 10, "×"))
    if "calls" in found:
        own = found["calls"]
        targets.append(at_most("calls made ÷ distinct arguments", own["calls made"] / own["distinct arguments"], 1, "×"))
        targets.append(at_most("calls of a Python function ÷ a plain loop", own["transaction"] / own["plain loop"], 1.5, "×"))
        bare = own["plain loop"] + own["one-row transaction"]
        targets.append(
            at_most("a refresh, one changed ÷ the calls and a one-row transaction", own["refresh, one changed"] / bare, 1.5, "×")
        )
    if "deferred" in found:
        own = found["deferred"]
        targets.append(
            at_most("deferred, a source changes: calls and transactions", own["calls before it is asked"] + own["transactions"], 0)
        )
        targets.append(at_least("deferred: the next answer is new", own["answers that are new"], 1))
    for place in ("first", "last") if "ranges" in found else ():
        own, what = found["ranges"], f"the column comes {place}"
        targets.append(
            at_most(f"facts joined with rows, {what} ÷ literal bounds", own[f"facts, {what}"] / own[f"literal bounds, {what}"], 2, "×")
        )
    if found.get("joins"):
        own = found["joins"]
        targets.append(
            at_most("PostgreSQL joined with a file on Spark ÷ Spark's own join", own["a program"] / own["Spark's own"], 1.3, "×")
        )
    if "without" in found:
        targets.append(at_most("no domains, no constraints: now ÷ before", found["without"]["now"] / found["without"]["before"], 1.02, "×"))
        targets.append(at_most("no domains, no constraints: imports of z3", float(sources.imported()), 0))
    return targets
