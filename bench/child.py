"""A process for one measurement: `python -m bench.child CONTENDER WORKLOAD [--quick] [--memory MIB]`.

It warms up on small facts, says `ready`, measures, tells each round where there are any, says `done`, and waits until its standard input is
closed, so that whoever started it can look at its memory. What it says are lines of JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from dataclasses import asdict
from typing import Any

from bench.contenders import CONTENDERS
from bench.workloads import workloads


def main() -> None:
    contender = next(contender for contender in CONTENDERS if contender.name == sys.argv[1])
    workload = next(workload for workload in workloads("--quick" in sys.argv) if workload.name == sys.argv[2])
    contender.compute(workload, workload.small(), lambda number, rows: None)
    facts = workload.facts()
    if "--memory" in sys.argv:
        os.environ["VIGILOG_BULK_MEMORY"] = sys.argv[sys.argv.index("--memory") + 1]
    say(event="ready", peak=peak())
    started, used = time.perf_counter(), time.process_time()

    def each(number: int, rows: int) -> None:
        say(event="round", number=number, rows=rows, seconds=round(time.perf_counter() - started, 3))

    outcome = contender.compute(workload, facts, each)
    cpu = time.process_time() - used
    say(event="done", peak=peak(), **{**asdict(outcome), "cpu": cpu if outcome.cpu is None else outcome.cpu})
    sys.stdin.read()


def peak() -> float:
    """The largest resident size so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
