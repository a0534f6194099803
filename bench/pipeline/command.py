"""`bench pipeline`: measures, shows, judges."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench import chart, report
from bench.measure import WARM_UP_LIMIT, Memory, complaint, next_event, peaks, process
from bench.options import RESULTS, Options
from bench.pipeline.data import Shop
from bench.pipeline.operations import Bulk, Change, Operation, operations
from bench.progress import steps
from bench.report import Table
from bench.targets import Target, at_least, at_most, number

CONTENDERS = {
    "spark": "Vigilog, orders on Spark",
    "resident": "Vigilog, all resident",
    "cached": "Spark anew, cached",
    "uncached": "Spark anew, from Parquet",
}
PLAIN = ("cached", "uncached")
NOTES = (
    "Seconds for one operation, from what is told in Python, or from files, to what each view gained and lost, in Python. Five views over a shop's tables: a join of three with negation "
    "(`shippable`, a quarter of the orders), a recursion, a count for each blocked customer, a recursion with an aggregate on top, and the sum of price × quantity for each region and category.",
    "*Spark anew* changes the table, computes the views that read it as plain Spark SQL, and compares them with the last answers by EXCEPT ALL, both ways; tables and answers are cached, or Parquet. "
    "A new version of a table is compared with the last one in the same way.",
    "Every contender is a process of its own with the same driver memory. Of a change, the first time is shown beside the median of the later ones, each of another row.",
    "`init` of plain Spark reads and writes the same Parquet; its `verify` computes all views anew and compares them with the last answers.",
    "*Anew ÷* says how many times as fast as plain Spark, the faster of the two, Vigilog is. Memory is the peak of the Python process and of its Java process, in MiB.",
    "All contenders told the same rows for every change, or this page would say so.",
)


@dataclass
class Measured:
    """What came of one contender: for each operation its seconds, or why there are none."""

    times: dict[str, list[float]] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)

    def later(self, operation: str) -> float | None:
        """The median after the first time; of what is done once, that."""
        times = self.times.get(operation)
        return statistics.median(times[1:] or times) if times else None

    def remember(self, memory: Memory | None) -> None:
        if memory is not None:
            self.memory = Memory(max(self.memory.python, memory.python), max(self.memory.java, memory.java))


def run(options: Options) -> int:
    before = _before(options)
    now = (30_000,) if options.quick else _sizes()
    shops = [Shop.of(orders) for orders in sorted({*now, *map(int, before)})]
    if _unknown("contender", options.contenders, CONTENDERS) or _unknown("operation", options.only, [o.name for o in operations(shops[0])]):
        return 2
    contenders = [name for name in CONTENDERS if not options.contenders or name in options.contenders]
    around = report.surroundings()
    tables: list[Table] = []
    targets: list[Target] = []
    data: dict[str, Any] = {}
    measured: dict[Shop, dict[str, Measured]] = {}
    differences: list[str] = []
    with steps(len(now) * len(contenders)) as shown:
        for shop in shops:
            found = before.get(str(shop.orders), {}) | (_measure(shop, contenders, options, shown) if shop.orders in now else {})
            found = {name: found[name] for name in CONTENDERS if name in found}
            wanted = [operation for operation in operations(shop) if _asked(operation, options)]
            differences += _differences(found, wanted)
            tables += _tables(shop, found, wanted)
            targets += judge(shop, found, wanted)
            data[str(shop.orders)] = {name: asdict(measured) for name, measured in found.items()}
            measured[shop] = found
    judged = report.targets_table(targets, "Targets (too small to judge by)" if options.quick else "Targets")
    report.show([*tables, judged])
    for difference in differences:
        print(f"bench pipeline: {difference}", file=sys.stderr)
    whole = not options.quick and not options.only and all(_is_whole(found) for found in measured.values())
    for folder in () if differences else (options.results, RESULTS) if whole else (options.results,):
        for shop, found in measured.items():
            _draw(folder, shop, found, [operation for operation in operations(shop) if _asked(operation, options)])
        report.write(folder, "pipeline", "A data pipeline", NOTES, [judged, *tables], {"measured": data}, around)
        print(f"Written: pipeline.md, pipeline.json, pipeline.png in {os.path.relpath(folder)}")
    return 1 if differences else 0


def _is_whole(found: dict[str, Measured]) -> bool:
    """Whether both of ours were measured, beside plain Spark."""
    return found.keys() >= CONTENDERS.keys() - set(PLAIN) and not found.keys().isdisjoint(PLAIN)


def _before(options: Options) -> dict[str, dict[str, Measured]]:
    """What was measured before of other contenders and sizes, where only some are measured: so a run may be done in pieces."""
    path = options.results / "pipeline.json"
    if not options.contenders or options.only or not path.exists():
        return {}
    said = json.loads(path.read_text(encoding="utf-8"))["measured"]
    return {
        size: {name: Measured(**{**one, "memory": Memory(**one["memory"])}) for name, one in found.items()} for size, found in said.items()
    }


def _sizes() -> list[int]:
    """How many orders there are: 3 M, or what VIGILOG_BENCH_ORDERS says, separated by commas."""
    return [int(text) for text in os.environ.get("VIGILOG_BENCH_ORDERS", "3000000").split(",")]


def _asked(operation: Operation, options: Options) -> bool:
    return not options.only or operation.name in options.only


def _measure(shop: Shop, contenders: Sequence[str], options: Options, shown: Any) -> dict[str, Measured]:
    RESULTS.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=RESULTS))
    found = {}
    try:
        shop.write(folder / "facts")
        known = operations(shop)
        bulk = [operation for operation in known if isinstance(operation, Bulk)]
        new, versions = (max(getattr(operation, what) for operation in bulk) for what in ("new", "versions"))
        shop.write_orders(folder / "new", shop.orders, shop.orders + new)
        shop.write_orders(folder / "version", 0, shop.orders + new, versions)
        for name in contenders:
            tell = shown.begin(f"{shop.orders:,} orders, {CONTENDERS[name]}")
            (folder / name).mkdir()
            found[name] = _contender(name, shop, folder, options, tell)
            shown.end(f"{shop.orders:,} orders, {CONTENDERS[name]}: {_said(found[name])}")
            shutil.rmtree(folder / name, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _said(measured: Measured) -> str:
    parts = [f"{name} {number(measured.later(name) or 0)} s" for name in measured.times]
    parts += [f"{name}: {reason}" for name, reason in measured.failed.items()]
    return ", ".join([*parts, f"{measured.memory.python:,.0f} + {measured.memory.java:,.0f} MiB"])


def _contender(name: str, shop: Shop, folder: Path, options: Options, tell: Callable[[str], None]) -> Measured:
    """Runs one contender; if an operation takes too long, or its process ends, another process goes on with the next one."""
    measured = Measured()
    wanted = [
        operation for operation in operations(shop) if (_asked(operation, options) or operation.name == "init") and operation.name != "ask"
    ]
    left = [operation.name for operation in wanted]
    while left:
        arguments = [
            "-m",
            "bench.pipeline.child",
            name,
            str(shop.orders),
            str(folder / "facts"),
            str(folder / name),
            str(options.repeats),
            *left,
        ]
        with process(arguments) as (running, events, complaints):
            if (next_event(events, WARM_UP_LIMIT) or {}).get("event") != "ready":
                measured.failed |= dict.fromkeys(left, complaint(complaints) or "did not get ready")
                return measured
            while left:
                tell(left[0])
                event = next_event(events, _cap(left[0], options))
                if event is None:
                    over = running.poll() is None
                    measured.remember(peaks(running.pid))
                    measured.failed[left.pop(0)] = f"> {_cap('', options):g} s" if over else complaint(complaints) or "ended"
                    running.kill()
                    break
                if event["event"] == "failed":
                    measured.failed[left.pop(0)] = event["reason"]
                else:
                    measured.times[left[0]], measured.told[left[0]], measured.why[left[0]] = event["times"], event["told"], event["why"]
                    left.pop(0)
                measured.remember(peaks(running.pid))
    if name not in PLAIN and (not options.only or "ask" in options.only):
        measured.times["ask"] = [_ask(folder / name / "data") for _ in range(2)]
    return measured


def _cap(operation: str, options: Options) -> float:
    """What loads or computes everything has more time."""
    return options.cap * (10 if operation in ("init", "verify") else 3 if operation.startswith("orders,") else 1)


def _ask(data: Path) -> float:
    """A goal about a relation on Spark, from the start of a process to its end."""
    began = time.perf_counter()
    asked = [sys.executable, "-c", "from vigilog.cli.main import main; main()", "ask", str(data), "waiting(c, n), c < 1000"]
    subprocess.run(asked, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _unknown(what: str, asked: Sequence[str], there: Any) -> bool:
    wrong = [name for name in asked if name not in there]
    if wrong:
        print(f"There is no {what} {wrong[0]}; there is {', '.join(there)}.", file=sys.stderr)
    return bool(wrong)


def _differences(found: dict[str, Measured], wanted: Sequence[Operation]) -> list[str]:
    """Changes of which not all contenders told the same. Whoever left out an operation has another state from then on, and is not compared."""
    told = []
    for operation in wanted:
        answers = {name: measured.told[operation.name] for name, measured in found.items() if operation.name in measured.told}
        if len({str(answer) for answer in answers.values()}) > 1:
            told.append(f"{operation.name}: {', '.join(f'{name} {str(answer)[:120]}' for name, answer in answers.items())}")
        if any(operation.name in measured.failed for measured in found.values()):
            break
    return told


def _tables(shop: Shop, found: dict[str, Measured], wanted: Sequence[Operation]) -> list[Table]:
    columns = ["operation", *(f"{CONTENDERS[name]}, s" for name in found), *(f"anew ÷ {name}" for name in found if name not in PLAIN)]
    rows = []
    for operation in wanted:
        cells = [_cell(measured, operation) for measured in found.values()]
        ratios = [_ratio(found, name, operation.name) for name in found if name not in PLAIN]
        rows.append([operation.name, *cells, *("" if ratio is None else f"{number(ratio)}×" for ratio in ratios)])
    memory = [f"{measured.memory.python:,.0f} + {measured.memory.java:,.0f}" for measured in found.values()]
    rows.append(["memory, MiB", *memory, *("" for name in found if name not in PLAIN)])
    tables = [Table(f"{shop.orders:,} orders", columns, rows)]
    said = [
        (f"{CONTENDERS[name]}: {operation}", text)
        for name, measured in found.items()
        for operation, text in [*measured.failed.items(), *measured.why.items()]
        if text
    ]
    return [*tables, Table("What was said", ("operation", "said"), said)] if said else tables


def _cell(measured: Measured, operation: Operation) -> str:
    if operation.name in measured.failed:
        reason = measured.failed[operation.name]
        return reason if reason.startswith(">") else "failed"
    later = measured.later(operation.name)
    if later is None:
        return ""
    first = f" ({number(measured.times[operation.name][0])})" if isinstance(operation, Change) else ""
    return f"{number(later)}{first}"


def _anew(found: dict[str, Measured], operation: str) -> float | None:
    """What plain Spark takes, the faster of the two."""
    times = [time for name in PLAIN if name in found and (time := found[name].later(operation)) is not None]
    return min(times, default=None)


def _ratio(found: dict[str, Measured], name: str, operation: str) -> float | None:
    own, anew = found[name].later(operation), _anew(found, operation)
    return None if own is None or anew is None else anew / own


def judge(shop: Shop, found: dict[str, Measured], wanted: Sequence[Operation]) -> list[Target]:
    targets = []
    size = f"{shop.orders / 1_000_000:g} M"
    for operation in wanted:
        for name in ("spark", "resident"):
            if name not in found:
                continue
            what = f"{size}, {operation.name}, {'on Spark' if name == 'spark' else name}"
            ratio, own = _ratio(found, name, operation.name), found[name].later(operation.name)
            if operation.name in found[name].failed:
                targets.append(Target(what, "an answer", found[name].failed[operation.name][:60], "MISSED"))
            elif isinstance(operation, Change) and name == "resident" and own is not None:
                targets.append(at_most(what, own * 1000, 5, " ms"))
            elif operation.name == "ask" and own is not None:
                targets.append(at_most(what, own, 6, " s"))
            elif ratio is not None and operation.name in BOUNDS:
                bound = BOUNDS[operation.name] + (LOADING if (operation.name, name) == ("init", "resident") else 0)
                targets.append(at_most(f"{what} ÷ anew", 1 / ratio, bound, "×"))
            elif ratio is not None and (isinstance(operation, Change) or "new" in operation.name):
                targets.append(at_least(f"{what}: anew ÷", ratio, 3, "×"))
            elif ratio is not None and operation.name.startswith("orders,"):
                targets.append(at_most(f"{what} ÷ anew", 1 / ratio, 1.3, "×"))
    for name, measured in found.items():
        if name == "spark":
            targets.append(at_most(f"{size}, Python's memory", measured.memory.python, 500, " MiB"))
    return targets


LOADING = 3  # how many times as long as reading and writing Parquet loading all of it into the file may take, beside that
BOUNDS = {"init": 1.5, "view of shippable": 1.3, "view of revenue": 1.3}


def _draw(folder: Path, shop: Shop, found: dict[str, Measured], wanted: Sequence[Operation]) -> None:
    groups = []
    for operation in wanted:
        bars = [
            chart.Bar(CONTENDERS[name], later, f"{number(later)} s")
            for name, measured in found.items()
            if (later := measured.later(operation.name)) is not None
        ]
        if bars:
            groups.append((operation.name, bars))
    if groups:
        folder.mkdir(parents=True, exist_ok=True)
        colours = dict(zip(CONTENDERS.values(), ("#0b4f8a", "#79b0d9", "#f4b393", "#d9844e"), strict=True))
        panel = chart.Panel("seconds", [bars for _, bars in groups])
        chart.draw(folder / "pipeline.png", f"A data pipeline, {shop.orders:,} orders", [name for name, _ in groups], [panel], colours)
