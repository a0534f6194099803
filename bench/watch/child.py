"""A process for one contender on one workload: `python -m bench.watch.child CONTENDER WORKLOAD CAP [--quick]`.

It loads the facts and computes the views, says `ready` with digests of them, applies each series of changes and says what came of it, says `done`, and waits until its standard input
is closed, so that whoever started it can look at its memory. What it says are lines of JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import time
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from bench.watch.contenders import BY_NAME, Contender
from bench.watch.session import Session, Told, digest
from bench.watch.workloads import Change, Series, Workload, workloads

OFTEN = 0.25  # seconds between two signs of life
AGAIN = 9  # so often the first pair is applied once more, when everything is warm


def main() -> None:
    quick = "--quick" in sys.argv
    contender, cap = BY_NAME[sys.argv[1]], float(sys.argv[3])
    workload = next(workload for workload in workloads(quick) if workload.name == sys.argv[2])
    with ExitStack() as stack:
        session, planned = load(workload, contender, stack)
        say(event="ready", views={name: digest(session.view(name)) for name in workload.program.views})
        for place, series in enumerate(planned):
            warm = series.warm if not contender.spark else 0 if place else min(series.warm, 2)  # Spark is slow, and warm after a pair
            say(event="series", **run(session, series, warm, cap, 0 if contender.spark else AGAIN))
        say(event="done")
        sys.stdin.read()


def load(workload: Workload, contender: Contender, stack: ExitStack) -> tuple[Session, list[Series]]:
    """The contender with its data, and the changes to apply; the facts themselves are let go."""
    if workload.files is not None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        workload.files(folder)
        return stack.enter_context(closing(contender.open(workload, folder))), list(workload.series({}))
    facts = workload.facts()
    planned = list(workload.series(facts))
    return stack.enter_context(closing(contender.open(workload, facts))), planned


def run(session: Session, series: Series, warm: int, cap: float, again: int) -> dict[str, Any]:
    """Applies changes pair by pair until there are no more, or the time is up; the first ones are not counted. In the end the first pair is applied `again` so often."""
    gc.collect()
    times: list[float] = []
    cpu: list[float] = []
    told: list[dict[str, Any]] = []
    costs: list[dict[str, Any]] = []
    first: list[float] = []  # of the first pair, before anything is warm
    spent, shown = 0.0, time.perf_counter()
    for place, change in enumerate(series.changes):
        began, used = time.perf_counter(), time.process_time()
        answers = session.apply(change)
        took, used = time.perf_counter() - began, time.process_time() - used
        told.append(asdict(Told.of(answers)))
        if place < 2:
            first.append(took * 1000)
        if place >= warm:
            spent += took
            times.append(took * 1000)
            cpu.append(used * 1000)
            costs.append(asdict(session.cost()))
        if began + took - shown > OFTEN:
            shown = began + took
            say(event="change", series=series.name, number=place + 1, of=len(series.changes))
        if place % 2 and times and spent > cap:
            break
    capped = spent > cap and len(told) < len(series.changes)
    later = [[timed(session, change) for change in series.changes[:2]] for _ in range(0 if capped else again)]
    return {
        "name": series.name,
        "rows": series.rows,
        "first": first,
        "later": [median(times) for times in zip(*later, strict=True)],
        "ms": times,
        "cpu": cpu,
        "told": told,
        "costs": costs,
        "capped": capped,
    }


def timed(session: Session, change: Change) -> float:
    began = time.perf_counter()
    session.apply(change)
    return (time.perf_counter() - began) * 1000


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
