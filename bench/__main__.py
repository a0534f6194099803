"""`python -m bench NAME …`: runs the named benchmarks, or lists them.

A benchmark is a module of this package with `main(options) -> int`, and a line in BENCHMARKS.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from bench.options import Options

BENCHMARKS = {
    "run": "evaluating programs: both executors beside SQLite, DuckDB and a plain Spark loop",
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measures Vigilog beside what people use instead.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to run: {', '.join(BENCHMARKS)}; none lists them")
    parser.add_argument("--quick", action="store_true", help="a small version, about a minute, to see that everything works")
    parser.add_argument("--cap", type=float, metavar="SECONDS", help="when to give up on a slow peer (60; 5 with --quick)")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="how often to measure what runs in this machine's memory (5; 1 with --quick)"
    )
    parser.add_argument("--only", action="append", metavar="WORKLOAD", help="only these workloads; may be given several times")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there is {', '.join(BENCHMARKS)}")
    if not given.names:
        for name, what in BENCHMARKS.items():
            print(f"{name:10}{what}")
    options = Options.of(given.quick, given.cap, given.repeats, given.only)
    return max((int(import_module(f"bench.{name}").main(options)) for name in given.names), default=0)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that processes under way are ended, too
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
