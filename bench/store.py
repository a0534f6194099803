"""`bench store`: what it costs to survive: durable commits, recovery, large data.

Each measurement is a process of its own (`python -m bench.store_child`), on a folder of the disk that the results are on.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import chart, report
from bench.options import RESULTS, Options
from bench.progress import steps
from bench.report import Table
from bench.targets import Target, at_least, at_most, number

NOTES = (
    "Every measurement is a process of its own on a folder of the same disk. Commits are synchronized: after each, the rows survive a `kill -9` and a loss of power.",
    "*Disk* is how often a second this disk writes four kilobytes to the end of a file and synchronizes them: no durable commit of its own can be faster.",
    "Single-row commits change one edge of an acyclic graph (n = 2,000, m = 2,400) whose closure is stored, and record the view's change in the outbox. *SQLite* commits the same row into one "
    "table, in the same mode, and nothing else.",
    "*Grouped* are 1,000 rows in a transaction.",
    "*Recovery* is the time from opening a folder whose writer was killed after so many logged transactions until it has answered a goal.",
    "*Not resident* is a relation that lives on Spark only: 10,000 changed rows against it, beside evaluating the view again on Spark and comparing it with the last answer.",
    "Memory is the peak resident size of the process, and of its Java process, while relations of the given size are loaded from Parquet and changed.",
)


def main(options: Options) -> int:
    """Runs all measurements, shows and judges them."""
    scale = 0.01 if options.quick else 1.0
    planned: list[tuple[str, dict[str, Any]]] = [
        ("fsync", {}),
        ("sqlite", {}),
        ("single", {}),
        ("grouped", {}),
        ("recovery", {"transactions": int(100_000 * scale)}),
        ("large", {"rows": int(10_000_000 * scale), "changed": int(10_000 * scale)}),
        *(("memory", {"rows": int(rows * scale)}) for rows in (1_000_000, 5_000_000, 20_000_000)),
    ]
    planned = [entry for entry in planned if not options.only or entry[0] in options.only]
    around = report.surroundings()
    found: dict[str, list[dict[str, Any]]] = {}
    with steps(len(planned)) as shown:
        for name, arguments in planned:
            shown.begin(name)
            result = _measure(name, arguments)
            found.setdefault(name, []).append(result)
            shown.end(
                f"{name}: "
                + ", ".join(f"{key} {number(value) if isinstance(value, int | float) else value}" for key, value in result.items())
            )
    targets = judge(found)
    tables = [report.targets_table(targets), *_tables(found)]
    report.show([*tables[1:], tables[0]])
    data = {"targets": [asdict(target) for target in targets], "measured": found}
    report.write(options.results, "store", "Surviving", NOTES, tables, data, around)
    _draw(options.results / "store.png", found)
    print(f"Written: store.md, store.json, store.png in {os.path.relpath(options.results)}")
    return 0


def _measure(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    RESULTS.mkdir(exist_ok=True)
    folder = tempfile.mkdtemp(prefix="bench-", dir=RESULTS)
    try:
        command = [sys.executable, "-m", "bench.store_child", name, folder, json.dumps(arguments)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"bench store: {name} failed")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def judge(found: dict[str, list[dict[str, Any]]]) -> list[Target]:
    targets = []
    if "single" in found and "fsync" in found:
        disk = found["fsync"][0]["per second"]
        targets.append(at_least(f"durable commits a second (this disk: {number(disk)})", found["single"][0]["per second"], min(500, disk)))
    if "grouped" in found:
        targets.append(at_least("rows a second, in transactions of 1,000", found["grouped"][0]["rows per second"], 20_000))
    if "recovery" in found:
        targets.append(at_most("recovery after a crash", found["recovery"][0]["seconds"], 5, " s"))
    if "large" in found:
        large = found["large"][0]
        targets.append(
            at_least(
                "10,000 changed rows, not resident: recomputing on Spark ÷ change",
                large["recompute seconds"] / large["change seconds"],
                5,
                "×",
            )
        )
    if len(found.get("memory", ())) > 1:
        grown = found["memory"][-1]["python MiB"] - found["memory"][0]["python MiB"]
        targets.append(at_most("Python's memory grows with twenty times the data by", grown, 256, " MiB"))
    return targets


def _tables(found: dict[str, list[dict[str, Any]]]) -> list[Table]:
    tables = []
    for name, results in found.items():
        columns = ("measurement", *results[0])
        rows = [
            (name, *(number(value) if isinstance(value, int | float) else str(value) for value in result.values())) for result in results
        ]
        tables.append(Table(name, columns, rows))
    return tables


def _draw(path: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    groups: list[tuple[str, list[chart.Bar]]] = []
    commits = [
        (title, found[name][0]["per second"])
        for name, title in (("fsync", "disk"), ("sqlite", "SQLite"), ("single", "Vigilog"))
        if name in found
    ]
    if commits:
        groups.append(("durable commits a second", [chart.Bar(title, value, number(value)) for title, value in commits]))
    if "large" in found:
        large = found["large"][0]
        pairs = (("Vigilog", large["change seconds"]), ("Spark, recomputing", large["recompute seconds"]))
        groups.append(
            ("seconds for 10,000 changes\nof 10 M rows on Spark", [chart.Bar(title, value, f"{value:.1f} s") for title, value in pairs])
        )
    if groups:
        colours = {"disk": "#bbbbbb", "SQLite": "#79b0d9", "Vigilog": "#0b4f8a", "Spark, recomputing": "#f4b393"}
        chart.draw(path, "Surviving", [name for name, _ in groups], [chart.Panel("", [bars for _, bars in groups])], colours)
