"""Measures contenders one after the other, each in a process of its own, and sees to it that their answers are the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.measure import Failed, Memory, complaint, next_event, peaks, process
from bench.options import Options
from bench.progress import steps
from bench.watch.contenders import CONTENDERS, Contender
from bench.watch.workloads import Workload

LOADING = 900.0  # seconds
PATIENCE = 120.0  # seconds for one change, however small the cap is
QUICK_SPARK = "join"  # a quick run starts Spark for this workload, and for those that are asked for


@dataclass
class Measured:
    """One contender on one series of one workload; times in ms, of all repeats."""

    workload: Workload
    contender: Contender
    series: str
    rows: int
    first: list[float] = field(default_factory=list)
    colder: list[float] = field(default_factory=list)  # how many times as long as later the first ones took
    times: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)
    capped: bool = False
    memory: Memory = field(default_factory=Memory)

    @property
    def p50(self) -> float:
        return median(self.times)

    @property
    def cpu(self) -> float | None:
        """The median of the processor time, on all cores, which others on the machine disturb less; not for Spark, whose work is in another process."""
        return None if self.contender.spark else median(self.used)

    @property
    def p95(self) -> float:
        """
        >>> Measured(None, None, "", 1, times=[5.0, *range(1, 20)]).p95  # type: ignore[arg-type]
        18
        """
        return sorted(self.times)[max(0, -(-len(self.times) * 95 // 100) - 1)]

    @property
    def effect(self) -> float:
        """How many rows of views a change adds or removes, in the median."""
        changed: list[float] = [sum(plus[0] + minus[0] for plus, minus in told["views"].values()) for told in self.told]
        return median(changed)

    def cost(self, what: str) -> float | None:
        """The median of what the contender told of its changes."""
        found = [cost[what] for cost in self.costs if cost[what] is not None]
        return median(found) if found else None

    @property
    def note(self) -> str:
        """The strategies it chose, and how often it fell back to recomputing."""
        again = sum(cost["recomputed"] for cost in self.costs)
        strategies = next((cost["strategy"] for cost in self.costs if cost["strategy"]), "")
        return f"{strategies}, recomputed {again} times" if again else strategies


Key = tuple[str, str, str]  # workload, series, contender
Tell = Callable[[str], None]


@dataclass
class Results:
    """What was measured, what could not be, and why. `failures` are contenders that broke down or gave another answer than the others."""

    measured: dict[Key, Measured] = field(default_factory=dict)
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    first: dict[str, tuple[str, dict[str, Any]]] = field(
        default_factory=dict
    )  # of each workload, by whom, the digests of the first answers

    def get(self, workload: str, contender: str, series: str = "1 row") -> Measured | None:
        return self.measured.get((workload, series, contender))

    def series(self, workload: Workload) -> list[str]:
        return list(dict.fromkeys(series for name, series, _ in self.measured if name == workload.name))

    def of(self, workload: Workload, series: str) -> list[Measured]:
        found = (self.measured.get((workload.name, series, contender.name)) for contender in CONTENDERS)
        return [measured for measured in found if measured is not None]


def measure(chosen: Sequence[Workload], options: Options) -> Results:
    results = Results()
    planned = [(workload, contender) for workload in chosen for contender in turns(workload, options)]
    with steps(len(planned)) as shown:
        for workload, contender in planned:
            key, what = (workload.name, contender.name), f"{workload.name}: {contender.title}"
            reason = results.skipped.get(key) or contender.missing()
            if reason:
                results.skipped[key] = reason
                shown.end(f"{what}: skipped: {reason}")
                continue
            try:
                shown.end(f"{what}: {_sample(workload, contender, options, results, shown.begin(what))}")
            except Failed as failure:
                results.failures.append(f"{what}: {failure}")
                results.skipped[key] = "failed"
                shown.end(f"{what}: FAILED: {failure}")
    return results


def turns(workload: Workload, options: Options) -> list[Contender]:
    """Who is measured when: the light ones in turn, then Spark."""
    able = [contender for contender in CONTENDERS if contender.can(workload)]
    if options.contenders:
        able = [contender for contender in able if contender.name in options.contenders]
    elif options.quick and workload.name not in (QUICK_SPARK, *options.only):
        able = [contender for contender in able if not contender.spark]
    light = [contender for _ in range(options.repeats) for contender in able if not contender.spark]
    return light + [contender for contender in able if contender.spark]


def _sample(workload: Workload, contender: Contender, options: Options, results: Results, tell: Tell) -> str:
    """Runs one process and keeps what it measured; says what came of it. Raises Failed if it breaks down, or differs from the others."""
    arguments = [contender.name, workload.name, str(options.cap), *(["--quick"] if options.quick else [])]
    limit, lines = LOADING, list[str]()
    with process(["-m", "bench.watch.child", *arguments]) as (running, events, complaints):
        tell("loading")
        while True:
            event = next_event(events, limit)
            if event is None and running.poll() is not None:
                raise Failed(complaint(complaints) or "it ended without a word")
            if event is None:
                results.skipped[workload.name, contender.name] = f"given up after {limit:.0f} s"
                running.kill()
                return "; ".join([*lines, f"given up after {limit:.0f} s"])
            match event["event"]:
                case "ready":
                    limit = max(PATIENCE, 3 * options.cap)
                    _compare_first(workload, contender, event["views"], results)
                case "change":
                    tell(f"{event['series']}: change {event['number']} of {event['of']}")
                case "series":
                    measured = _keep(workload, contender, event, results)
                    _compare(measured, results)
                    lines.append(f"{event['name']} {measured.p50:.3g} ms")
                case "done":
                    memory = peaks(running.pid) or Memory()
                    for series in results.series(workload):
                        results.measured[workload.name, series, contender.name].memory = memory
                    return "; ".join(lines)
                case other:
                    raise Failed(f"there is no event {other}")


def _keep(workload: Workload, contender: Contender, event: dict[str, Any], results: Results) -> Measured:
    key = (workload.name, event["name"], contender.name)
    measured = results.measured.setdefault(key, Measured(workload, contender, event["name"], event["rows"]))
    measured.first.append(max(event["first"], default=0.0))
    if event["later"]:
        measured.colder.append(max(first / later for first, later in zip(event["first"], event["later"], strict=True)))
    measured.times += event["ms"]
    measured.used += event["cpu"]
    measured.costs += event["costs"]
    measured.capped |= event["capped"]
    measured.told = max(measured.told, event["told"], key=len)
    return measured


def _compare_first(workload: Workload, contender: Contender, views: dict[str, Any], results: Results) -> None:
    who, known = results.first.setdefault(workload.name, (contender.title, views))
    if views != known:
        raise Failed(f"its first answer is not that of {who}")


def _compare(one: Measured, results: Results) -> None:
    """Sees to it that the changes that two contenders both applied had the same effects."""
    for other in results.of(one.workload, one.series):
        for number, (mine, theirs) in enumerate(zip(one.told, other.told, strict=False), start=1):
            if mine != theirs:
                views = [name for name in {**mine["views"], **theirs["views"]} if mine["views"].get(name) != theirs["views"].get(name)]
                del results.measured[one.workload.name, one.series, one.contender.name]
                raise Failed(f"{one.series}, change {number}: its answer for {', '.join(views[:3])} is not that of {other.contender.title}")
