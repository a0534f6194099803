"""Measuring one contender at a time, each in a process of its own."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

WARM_UP_LIMIT = 300.0


class Failed(Exception):
    """A contender broke down, or its answer is not that of the others."""


@dataclass(frozen=True)
class Memory:
    """Peak resident sizes in MiB; `java` is 0 where there is none; both are where the system does not tell."""

    python: float = 0.0
    java: float = 0.0


@dataclass(frozen=True)
class Sample:
    """One measurement. `seconds` is None if the cap came first; `rounds` are (number, rows so far, seconds so far); `before` are the MiB of its process when it was warm."""

    seconds: float | None
    cap: float
    outcome: dict[str, Any]
    rounds: list[tuple[int, int, float]]
    memory: Memory = Memory()
    before: float = 0.0


Progress = Callable[[str], None]


def measure(arguments: Sequence[str], cap: float, progress: Progress) -> Sample:
    """Runs `python -m bench.child` with these arguments; the cap counts from when it is warm. Raises Failed if it fails."""
    rounds: list[tuple[int, int, float]] = []
    with process(["-m", "bench.child", *arguments]) as (running, events, complaints):
        progress("warming up")
        ready = next_event(events, WARM_UP_LIMIT) or {}
        if ready.get("event") != "ready":
            raise Failed(f"{' '.join(arguments)}: {complaint(complaints) or 'did not get ready'}")
        progress("")
        deadline = time.monotonic() + cap
        while True:
            event = next_event(events, deadline - time.monotonic())
            if event is None and running.poll() is not None:
                raise Failed(f"{' '.join(arguments)}: {complaint(complaints)}")
            if event is None:
                capped = Sample(None, cap, {}, rounds, peaks(running.pid) or Memory(), ready["peak"])
                running.kill()
                return capped
            if event["event"] == "done":
                memory = peaks(running.pid) or Memory(event["peak"])
                return Sample(event["seconds"], cap, event, rounds, memory, ready["peak"])
            rounds.append((event["number"], event["rows"], event["seconds"]))
            progress(f"round {event['number']}, {event['rows']:,} rows")


@contextmanager
def process(arguments: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], queue.Queue[str | None], IO[str]]]:
    """A Python process, its lines, and what it complains of; it, its children and their files are gone afterwards."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, tempfile.TemporaryFile("w+", encoding="utf-8") as complaints:
        settings = [os.environ.get("VIGILOG_SPARK_CONF", ""), f"spark.driver.extraJavaOptions=-Djava.io.tmpdir={folder}"]
        running = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            env={**os.environ, "TMPDIR": folder, "SPARK_LOCAL_DIRS": folder, "VIGILOG_SPARK_CONF": ";".join(settings)},
            start_new_session=True,
        )
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_read, args=(running, lines), daemon=True)
        reader.start()
        try:
            yield running, lines, complaints
            assert running.stdin is not None
            running.stdin.close()
            running.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            reader.join(timeout=10)
            for stream in (running.stdin, running.stdout):
                assert stream is not None
                stream.close()


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    process.wait()
    lines.put(None)


def next_event(lines: queue.Queue[str | None], seconds: float) -> dict[str, Any] | None:
    """The next event; None if there is none in time, or the process has ended."""
    try:
        line = lines.get(timeout=max(0.0, seconds))
    except queue.Empty:
        return None
    return None if line is None else dict(json.loads(line))


def complaint(complaints: IO[str]) -> str:
    complaints.seek(0)
    lines = [line.strip() for line in complaints if line.strip()]
    return lines[-1][:400] if lines else ""


def peaks(process: int) -> Memory | None:
    """The peak memory of a Python process and of the Java processes below it while they live; None where the system does not tell."""
    known = {int(path.parent.name): _status(path) for path in Path("/proc").glob("[0-9]*/status")}
    if process not in known:
        return None
    below = {process}
    for _ in range(3):
        below |= {number for number, status in known.items() if int(status.get("PPid", "0")) in below}
    java = sum(_mebibytes(known[number]) for number in below if known[number].get("Name") == "java")
    return Memory(_mebibytes(known[process]), java)


def _status(path: Path) -> dict[str, str]:
    try:
        return dict(line.split(":\t", 1) for line in path.read_text().splitlines() if ":\t" in line)
    except OSError:
        return {}


def _mebibytes(status: dict[str, str]) -> float:
    return int(status.get("VmHWM", "0 kB").split()[0]) / 1024
