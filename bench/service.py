"""`bench service`: what a client feels: how soon it hears of a commit, alone, in a crowd, beside one that stalls.

The server is a process, the clients are another, on the loopback interface.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from bench import chart, report
from bench.options import RESULTS, Options
from bench.progress import steps
from bench.report import Table
from bench.targets import Target, at_most, number

NOTES = (
    "Commits are durable: written ahead, synchronized, then told. The clients write and read raw frames, in a process of their own, so that what is measured is the server.",
    "*Latency* is from sending a one-row transaction to hearing of the view's change on a WebSocket. *Echo* is the same stack (uvicorn, FastAPI, WebSockets) without a database: what is posted is pushed.",
    "*Crowd* are subscribers of one view, each with a connection of its own; all of them hear of every commit.",
    "*Bindings* are subscriptions to single slices of one view, of which each commit touches one.",
    "*Stall* is a client that stops reading, beside one that goes on.",
    "*Batch* is a transaction of many rows, each of which gives four rows of a view: from telling it, through the Python client, until the client's copy of the view has them all. Beside it is what Python takes to write the rows told and the view's rows as JSON, and to read them.",
)
PROGRAM = """\
.decl edge(x: symbol, y: symbol)
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
.decl owns(person: symbol, item: symbol)
.decl lost(item: symbol)
.decl holds(person: symbol, item: symbol)
.output holds
holds(p, i) :- owns(p, i), !lost(i).
edge("b", "c").
.decl order(id: number, name: symbol, day: date, amount: decimal(10,2))
.decl part(k: number)
.decl line(id: number, k: number, name: symbol, day: date, amount: decimal(10,2))
.output line
line(id, k, name, day, amount) :- order(id, name, day, amount), part(k).
part(0). part(1). part(2). part(3).
"""
PEOPLE = 10_000


def main(options: Options) -> int:
    """Runs all measurements, shows and judges them."""
    scale = 0.1 if options.quick else 1.0
    changes = int(2000 * scale)
    planned: list[tuple[str, str, dict[str, Any]]] = [
        ("echo", "latency", {"changes": changes}),
        ("latency", "latency", {"changes": changes}),
        ("bindings", "bindings", {"number": 10, "changes": changes}),
        ("bindings", "bindings", {"number": int(10_000 * scale), "changes": changes}),
        ("crowd", "crowd", {"subscribers": int(2000 * scale), "rate": 100, "seconds": 20 * scale}),
        ("stall", "stall", {"rate": 100, "seconds": 60 * scale}),
        ("batch", "batch", {"rows": int(20_000 * scale)}),
    ]
    planned = [entry for entry in planned if not options.only or entry[0] in options.only]
    around = report.surroundings()
    found: dict[str, list[dict[str, Any]]] = {}
    with steps(len(planned)) as shown:
        for name, measurement, arguments in planned:
            shown.begin(name)
            with _server(echo=name == "echo") as (port, process):
                result = _measure(measurement, port, process, arguments)
            found.setdefault(name, []).append(result)
            shown.end(f"{name}: " + ", ".join(f"{key} {number(value)}" for key, value in result.items()))
    targets = judge(found)
    tables = [report.targets_table(targets), *_tables(found)]
    report.show([*tables[1:], tables[0]])
    report.write(
        options.results,
        "service",
        "Serving",
        NOTES,
        tables,
        {"targets": [asdict(target) for target in targets], "measured": found},
        around,
    )
    _draw(options.results / "service.png", found)
    print(f"Written: service.md, service.json, service.png in {os.path.relpath(options.results)}")
    return 0


@contextmanager
def _server(*, echo: bool) -> Iterator[tuple[int, int]]:
    """A server on a free port, with its process."""
    RESULTS.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=RESULTS))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        (folder / "program.dl").write_text(PROGRAM + "".join(f'owns("p{n}", "i{n}").\n' for n in range(PEOPLE)), encoding="utf-8")
        serving = [sys.executable, "-m", "vigilog.cli.main", "serve", str(folder / "program.dl"), "--data", str(folder / "data")]
        serving += ["--port", str(port), "--no-spark", "--limit", "rate=1000000"]
        command = [sys.executable, "-m", "bench.service_echo", str(port)] if echo else serving
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                _wait(port, process)
                yield port, process.pid
            finally:
                process.terminate()
                process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            with urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except (URLError, ConnectionError):
            if process.poll() is not None:
                break
            time.sleep(0.1)  # until it listens
    raise SystemExit("bench service: the server did not start")


def _measure(name: str, port: int, process: int, arguments: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.service_client", name, str(port), str(process), json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench service: {name} failed")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def judge(found: dict[str, list[dict[str, Any]]]) -> list[Target]:
    targets = []
    if "latency" in found:
        alone = found["latency"][0]
        echo = f" (echo: {number(found['echo'][0]['p50 ms'])} ms)" if "echo" in found else ""
        targets.append(at_most(f"from commit to client, p50{echo}", alone["p50 ms"], 5, " ms"))
        echo = f" (echo: {number(found['echo'][0]['p99 ms'])} ms)" if "echo" in found else ""
        targets.append(at_most(f"from commit to client, p99{echo}", alone["p99 ms"], 25, " ms"))
    if len(found.get("bindings", ())) > 1:
        few, many = found["bindings"][0], found["bindings"][-1]
        targets.append(
            at_most(
                f"a commit with {many['bindings']:,} bindings ÷ with {few['bindings']}",
                many["commit p50 ms"] / few["commit p50 ms"],
                2,
                "×",
            )
        )
    if "crowd" in found:
        crowd = found["crowd"][0]
        targets.append(at_most(f"changes that did not arrive at {crowd['subscribers']:,} subscribers", crowd["missing"], 0))
        targets.append(at_most("memory of an idle subscriber", crowd["idle kB each"], 50, " kB"))
    if "stall" in found:
        stall = found["stall"][0]
        targets.append(at_most("p50 beside a client that stalls ÷ before", stall["stalled p50 ms"] / stall["before p50 ms"], 1.5, "×"))
    if "batch" in found:
        batch = found["batch"][0]
        targets.append(
            at_most(f"{batch['rows told']:,} rows told until a copy has {batch['view rows']:,} ÷ their JSON", batch["÷ JSON"], 15, "×")
        )
    return targets


def _tables(found: dict[str, list[dict[str, Any]]]) -> list[Table]:
    return [
        Table(name, ("measurement", *results[0]), [(name, *(number(value) for value in result.values())) for result in results])
        for name, results in found.items()
    ]


def _draw(path: Path, found: dict[str, list[dict[str, Any]]]) -> None:
    groups: list[tuple[str, list[chart.Bar]]] = []
    pairs = [(title, found[name][0]["p50 ms"]) for name, title in (("echo", "bare echo"), ("latency", "Vigilog")) if name in found]
    if pairs:
        groups.append(("ms from commit to client, p50", [chart.Bar(title, value, f"{value:.2f}") for title, value in pairs]))
    if len(found.get("bindings", ())) > 1:
        bars = [
            chart.Bar("Vigilog", each["commit p50 ms"], f"{each['bindings']:,}: {each['commit p50 ms']:.2f}") for each in found["bindings"]
        ]
        groups.append(("ms for a commit, few and many bindings", bars))
    if groups:
        colours = {"bare echo": "#bbbbbb", "Vigilog": "#0b4f8a"}
        chart.draw(path, "Serving", [name for name, _ in groups], [chart.Panel("", [bars for _, bars in groups])], colours)
