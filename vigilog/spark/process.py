"""Spark's Java process: how it starts, what it says, and how it ends.

What Java writes goes to a file that nobody sees, so that no stack trace reaches a terminal; `VIGILOG_SPARK_LOG` names a file to keep, or `-` for the terminal.

A process that has ended, perhaps for want of memory, is forgotten, so that the next call starts another one in the same Python process. pyspark has no public way to do that.
"""

from __future__ import annotations

import atexit
import os
import socketserver
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]  # it has no types

LOG = "VIGILOG_SPARK_LOG"
LAST_BYTES = 20_000  # of what it said, that are looked at
_TELLING = ("java.lang.OutOfMemoryError", "Exception", "Error", "error", "Invalid ")

_log: IO[bytes] | None = None  # what the process says that was started last
_process: subprocess.Popen[bytes] | None = None


def launch(settings: Mapping[str, str]) -> None:
    """Makes sure that there is a process."""
    global _process
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    _hush()
    if not is_there() and "PYSPARK_GATEWAY_PORT" not in os.environ:  # which would be that of spark-submit, which started this one
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        with _no_client():
            gateway = launch_gateway(conf, _output())  # type: ignore[no-untyped-call]  # it has no types
        _process = gateway.proc
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _no_client() -> Iterator[None]:
    """Spark's process is to be a server, though this one is its client."""
    remote = os.environ.pop("SPARK_REMOTE", None)
    try:
        yield
    finally:
        if remote is not None:
            os.environ["SPARK_REMOTE"] = remote


def _hush() -> None:
    """A process that ends leaves requests to pyspark's own server unfinished, which would tell the terminal so."""
    from pyspark.accumulators import AccumulatorTCPServer

    usual = socketserver.BaseServer.handle_error

    def handle_error(server: Any, request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            usual(server, request, address)

    setattr(AccumulatorTCPServer, "handle_error", handle_error)  # noqa: B010  # it offers no other way


def is_there() -> bool:
    """Whether there is a process, though it may be about to end."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def has_ended() -> bool:
    """Whether there was a process, and it is no more."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return False
    process = getattr(gateway, "proc", None)
    return (process is not None and process.poll() is not None) or not _answers(gateway)


def is_lost(reason: BaseException | None) -> bool:
    """Whether a failure came because a process was no more; there may be another since."""
    protocol = sys.modules.get("py4j.protocol")
    while protocol is not None and reason is not None and not isinstance(reason, protocol.Py4JNetworkError):
        reason = reason.__cause__ or reason.__context__
    return protocol is not None and reason is not None


def bury() -> None:
    """Forgets a process; if it was started here, and does not end by itself, it is ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        with suppress(Exception):
            process.stdin.close()
        process.wait()
    for owner, names in (
        (SparkContext, ("_active_spark_context", "_gateway", "_jvm")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
    ):
        for name in names:
            setattr(owner, name, None)


def reap() -> None:
    """Waits for a process that pyspark has let go, as it does with a server of Spark Connect when its session stops."""
    if _process is not None and not is_there():
        _ended(_process)


def leave() -> None:
    """Lets a process that was started here end by itself, and waits until it has."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None and _process is not None:
        with suppress(Exception):
            SparkContext._gateway.shutdown()
        _ended(_process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    with suppress(Exception):
        assert process.stdin is not None
        process.stdin.close()
    process.wait()


def last_words() -> str:
    """The line that tells what went wrong with the process: the first that is an error, or that its memory was full; empty if there is none."""
    if _log is None:
        return ""
    with suppress(OSError, ValueError):
        _log.seek(max(0, _log.seek(0, os.SEEK_END) - LAST_BYTES))
        lines = [line.strip() for line in _log.read().decode(errors="replace").splitlines()]
        for kind in _TELLING[:1], _TELLING[1:]:
            if telling := [line for line in lines if any(word in line for word in kind) and not line.startswith("at ")]:
                return telling[0][:300]
    return ""


def _answers(gateway: JavaGateway) -> bool:
    try:
        gateway.jvm.System.currentTimeMillis()
    except Exception:
        return False
    return True


def _output() -> dict[str, Any]:
    """Where the process writes, as `Popen` takes it."""
    global _log
    named = os.environ.get(LOG, "")
    if named == "-":
        return {}
    if _log is not None:
        _log.close()
    _log = Path(named).open("ab+") if named else tempfile.TemporaryFile()  # noqa: SIM115  # the process writes as long as it lives
    atexit.register(_log.close)
    return {"stdout": _log, "stderr": _log}
