"""The classes of Spark as Java keeps them ready to use (AppCDS): an archive, made once beside the environment, with which Spark starts in a fraction of the time.

It is made by a process of its own, some time after Spark has started without one, and belongs to one Java and one set of jars. Where it cannot be made, it is empty,
and nobody tries again. `VIGILOG_SPARK_ARCHIVE` is a folder for it, or `none`.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

SETTING = "VIGILOG_SPARK_ARCHIVE"
REST = 60.0  # seconds that a process runs before the archive is made beside it, unless it ends before
KEPT = 2  # archives in a folder: of the Java and the Spark that are used, and of those before
MAKER = "vigilog.cli.rehearsal"

# What is compiled once is run thousands of times before it is compiled again, better: on few cores that would take time from what is waited for.
COMPILING = {"InvocationThreshold": 20_000, "MinInvocationThreshold": 2_400, "CompileThreshold": 60_000, "BackEdgeThreshold": 160_000}

_lock = threading.Lock()
_wanted = False  # whether this process has seen to it that it will be made


def options() -> str:
    """What Java is told when it starts."""
    path = place()
    told = ["-XX:+IgnoreUnrecognizedVMOptions", *(f"-XX:Tier4{name}={number}" for name, number in COMPILING.items())]
    if path is not None and usable(path):
        told += [f"-XX:SharedArchiveFile={path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return " ".join(told)


def usable(archive: Path) -> bool:
    with suppress(OSError):
        return archive.stat().st_size > 0
    return False


def place() -> Path | None:
    """Where the archive is, or will be; None if there is to be none."""
    stated = os.environ.get(SETTING, "")
    spark, java = find_spec("pyspark"), os.environ.get("JAVA_HOME")
    if stated == "none" or spark is None or spark.origin is None or java is None or os.environ.get("SPARK_HOME"):
        return None
    folder = Path(stated).absolute() if stated else _beside()
    name = None if folder is None else f"spark-{_digest(Path(spark.origin).parent / 'jars', Path(java))}.jsa"
    return None if folder is None or name is None or any(letter.isspace() for letter in str(folder)) else folder / name


def _beside() -> Path | None:
    """In the virtual environment, or else where the user keeps what can be made again."""
    environment = Path(sys.prefix)
    if sys.prefix != sys.base_prefix and os.access(environment, os.W_OK):
        return environment / "share" / "vigilog"
    with suppress(RuntimeError):  # there is no home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vigilog"
    return None


@cache
def _digest(jars: Path, java: Path) -> str:
    """Java refuses an archive if a jar, or Java itself, is not the one it was made with."""
    files = [*sorted(jars.glob("*.jar")), *(java / "lib").glob("**/libjvm.so"), java / "release"]
    told = [f"{file}:{stat.st_size}:{stat.st_mtime_ns}" for file in files if file.exists() and (stat := file.stat())]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def want() -> None:
    """Sees to it that the archive is made, when this process has ended or has been running for a while."""
    global _wanted
    path = place()
    with _lock:
        if _wanted or path is None or path.exists():
            return
        _wanted = True
    begin = _once(_begin)
    atexit.register(begin)
    timer = threading.Timer(REST, _make, [begin])
    timer.daemon = True
    timer.start()


def _once(work: Callable[[], int | None]) -> Callable[[], int | None]:
    first = threading.Lock()

    def once() -> int | None:
        return work() if first.acquire(blocking=False) else None

    return once


def _make(begin: Callable[[], int | None]) -> None:
    if (begun := begin()) is not None:
        with suppress(OSError):
            os.waitpid(begun, 0)


def _begin() -> int | None:
    """Starts the process that makes the archive, which lives on when this one ends."""
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    try:
        return os.posix_spawn(sys.executable, [sys.executable, "-m", MAKER], os.environ, file_actions=quiet, setsid=True)
    except OSError:
        return None


@contextmanager
def making() -> Iterator[tuple[Path, Path] | None]:
    """Where the archive is to be written, and where it will be: None if it is there, or somebody else makes it. What was not written is empty from then on."""
    path = place()
    if path is None or path.exists():
        yield None
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        yield part, path
        if not part.exists():
            part.touch()
        part.rename(path)
        archives = sorted(path.parent.glob("spark-*.jsa"), key=lambda other: other.stat().st_mtime)
        for other in archives[:-KEPT]:
            other.unlink(missing_ok=True)
