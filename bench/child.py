"""A process for one measurement: `python -m bench.child CONTENDER WORKLOAD [--quick]`.

It warms up on small facts, says `ready`, measures, tells each round where there are any, says `done`, and waits until its standard input is
closed, so that whoever started it can look at its memory. What it says are lines of JSON.
"""

from __future__ import annotations

import json
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
    say(event="ready")
    started, used = time.perf_counter(), time.process_time()

    def each(number: int, rows: int) -> None:
        say(event="round", number=number, rows=rows, seconds=round(time.perf_counter() - started, 3))

    outcome = contender.compute(workload, facts, each)
    cpu = time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    say(event="done", peak=peak, cpu=cpu, **asdict(outcome))
    sys.stdin.read()


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
