"""The processes of the demo: what loads, what serves, and those who hold views. Each is a command that one could type."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from examples.company.data import Row

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"  # Spark for a minute: compile little
HOME = Path(__file__).parents[2]


class Ended(Exception):
    """A process ended that should not have; the message says which, and what it said last."""


class Process:
    """A process in a group of its own, so that Ctrl-C is for the demo alone, which then ends all in order."""

    def __init__(self, folder: Path, name: str, arguments: Sequence[str], environment: dict[str, str] | None = None) -> None:
        (folder / "tmp").mkdir(exist_ok=True)
        self.name, self.log = name, folder / f"{name}.log"
        java = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {QUICK} -Djava.io.tmpdir={folder / 'tmp'}"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=HOME,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="utf-8",
                start_new_session=True,
                env=os.environ | {"JAVA_TOOL_OPTIONS": java, "SPARK_LOCAL_DIRS": str(folder / "tmp")} | (environment or {}),
            )

    def lines(self) -> Iterator[str]:
        """What it says, until it ends well."""
        assert self.process.stdout
        for line in self.process.stdout:
            yield line.rstrip("\n")
        if self.process.wait() != 0:
            last = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
            raise Ended("\n".join([f"{self.name} ended with status {self.process.returncode}:", *last]))

    def kill(self) -> None:
        """`kill -9`, of all that it started, too."""
        assert self.process.stdin
        assert self.process.stdout
        if self.process.stdout.closed:  # it was killed before
            return
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.read()  # until the last one has let go of it
        self.process.stdout.close()
        self.process.wait()

    def end(self) -> None:
        """Asks it to end, and sees to it that it does."""
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(15)
        self.kill()


class Server(Process):
    """`vigilog serve`. One that is started again at the same port is the same server to its clients."""

    def __init__(self, folder: Path, port: int = 0, origins: Sequence[str] = ()) -> None:
        allowed = [part for origin in origins for part in ("--origin", origin)]
        # an idle client is told soon how far all is, so that the story need not wait
        arguments = ["serve", "--data", str(folder / "data"), "--port", str(port), "--limit", "progress=0.3", *allowed]
        super().__init__(folder, "server", ["vigilog.cli.main", *arguments])

    def listening(self) -> str:
        """Its address, as soon as it has one."""
        found = next((match for line in self.lines() if (match := re.search(r"http://\S+:(\d+)", line))), None)
        if found is None:
            raise Ended("the server ended before it listened")
        self.port = int(found[1])
        return found[0]


class Holder(Process):
    """`examples.client`: a process that holds a view."""

    def __init__(self, folder: Path, name: str, url: str, view: str, bind: dict[str, str], environment: dict[str, str]) -> None:
        self.view, self.bind, self.copy = view, bind, folder / f"{name}.parquet"
        bound = [part for column, value in bind.items() for part in ("--bind", f"{column}={value}")]
        super().__init__(folder, name, ["examples.client", url, view, *bound, "--copy", str(self.copy)], environment)

    def __str__(self) -> str:
        return (
            f"{self.view} where {' and '.join(f'{column} is {value}' for column, value in self.bind.items())}" if self.bind else self.view
        )

    @property
    def is_goal(self) -> bool:
        return "(" in self.view

    @property
    def name_of_view(self) -> str:
        return "query" if self.is_goal else self.view

    def come_to(self, tx: int) -> Iterator[str]:
        """What it says until its copy has come to a transaction."""
        assert self.process.stdin
        self.process.stdin.write(f"{tx}\n")
        self.process.stdin.flush()
        for line in self.lines():
            if re.fullmatch(r"at \d+", line):
                return
            yield line
        raise Ended(f"{self.name} ended")

    def end(self) -> None:
        """Its input ends, and so does it."""
        assert self.process.stdin
        with suppress(OSError, subprocess.TimeoutExpired):
            self.process.stdin.close()
            self.process.wait(5)
        self.kill()

    def rows(self) -> set[Row]:
        """Its copy, as of when it last said how far it had come."""
        return {tuple(row.values()) for row in pq.read_table(self.copy).to_pylist()}
