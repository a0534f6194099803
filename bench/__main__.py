"""`python -m bench NAME …`: runs the named benchmarks, or lists them.

A benchmark is a module of this package with `main(options) -> int`, and a line in BENCHMARKS.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from bench.options import Options


@dataclass(frozen=True)
class Benchmark:
    """`cap` and `repeats` are for a whole run and for a quick one; `choosing` if single contenders can be asked for."""

    what: str
    cap: tuple[float, float]
    repeats: tuple[int, int]
    choosing: bool = False

    def options(self, given: argparse.Namespace) -> Options:
        cap = given.cap or self.cap[given.quick]
        repeats = given.repeats or self.repeats[given.quick]
        return Options(given.quick, cap, repeats, tuple(given.only or ()), tuple(given.contender or ()))


BENCHMARKS = {
    "run": Benchmark(
        "evaluating programs: both executors beside SQLite, DuckDB and a plain Spark loop", (60.0, 5.0), (5, 1), choosing=True
    ),
    "watch": Benchmark(
        "maintaining views: all strategies beside recomputing on SQLite, DuckDB and Spark, and beside programs written by hand",
        (20.0, 2.0),
        (1, 1),
        choosing=True,
    ),
    "aggregates": Benchmark("aggregates over groups whose state is kept, beside DuckDB computing them anew", (20.0, 5.0), (1, 1)),
    "frames": Benchmark("complex views: frames beside the same rules, loops and classes written by hand", (60.0, 5.0), (1, 1)),
    "store": Benchmark("surviving: durable commits, recovery, large relations on Spark", (60.0, 5.0), (1, 1)),
    "pipeline": Benchmark(
        "a data pipeline on Spark: five views over real tables, beside plain Spark that computes them anew and compares",
        (120.0, 60.0),
        (5, 2),
        choosing=True,
    ),
    "conditions": Benchmark("alerts, constraints and triggers, beside views that nobody does anything with", (60.0, 5.0), (1, 1)),
    "mediators": Benchmark("sources that are asked, facts that are not ground, beside loops, z3 and Spark", (60.0, 5.0), (1, 1)),
    "service": Benchmark("serving: how soon clients hear of a commit, alone, in a crowd, beside one that stalls", (60.0, 5.0), (1, 1)),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Vigilog beside what people use instead.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to run: {', '.join(BENCHMARKS)}; none lists them")
    parser.add_argument("--quick", action="store_true", help="a small version, about a minute, to see that everything works")
    parser.add_argument(
        "--cap", type=float, metavar="SECONDS", help="when to give up on a slow peer (run: 60, watch: 20; less with --quick)"
    )
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="how often to measure what runs in this machine's memory (run: 5, watch: 1)"
    )
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help="only these workloads; may be given several times")
    parser.add_argument(
        "--contender", action="append", metavar="NAME", help="only these contenders; may be given several times (run, watch, pipeline)"
    )
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there is {', '.join(BENCHMARKS)}")
    if not given.names:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:10}{benchmark.what}")
    for name in given.names:
        if given.contender and not BENCHMARKS[name].choosing:
            parser.error(f"{name} measures all its contenders together; leave out --contender")
    return max((int(import_module(f"bench.{name}").main(BENCHMARKS[name].options(given))) for name in given.names), default=0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that processes under way are ended, too
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
