"""The Spark session: found or started when it is first needed, never before.

Where it runs is a setting of the environment: `SPARK_REMOTE` (Spark Connect), `VIGILOG_SPARK_MASTER` or `MASTER` (a cluster), else `local[*]`. Options of
your own go into `VIGILOG_SPARK_CONF`, as `key=value` separated by `;`. Jars of databases' drivers are in `VIGILOG_JDBC_JARS`, or where Debian puts them.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shlex
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError, SparkUnavailable
from vigilog.core.extras import SPARK
from vigilog.core.secrets import without_secrets
from vigilog.spark import archive, process

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
MEMORY = "4g"  # of Spark's process, unless VIGILOG_SPARK_MEMORY says otherwise
JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
PATIENCE = 5.0  # seconds until a cluster's address that does not answer counts as dead
NEEDS_JAVA = (
    "Spark needs Java 17 or newer, and none was found: install it (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME; "
    "--engine embedded needs no Java"
)

_ADDRESS = re.compile(r"local(-cluster)?(\[.*\])?|(spark|sc|k8s)://.+|yarn")
_PORT = {"spark": "7077", "sc": "15002"}

_DRIVERS = ("postgresql.jar", "mariadb-java-client.jar")  # as Debian calls them

_GONE = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"

_lock = threading.Lock()
_losses = 0
_session: SparkSession | None = None
_listener: Callable[[DataError | None], None] | None = None
_idle: list[SparkSession] = []  # sessions beside it that nobody uses now


def session() -> SparkSession:
    """The session. The first call starts it, which takes about ten seconds."""
    global _session
    with _lock:
        again = _session is not None and _is_stopped(_session)
        if _session is not None and again:
            _tell(ended())
            with suppress(Exception):  # its process may have ended
                _leave(_session)
        _session = _session or _start()
        if again:
            _tell(None)
        return _session


def _tell(end: DataError | None) -> None:
    if _listener is not None:
        _listener(end)


def listen(listener: Callable[[DataError | None], None]) -> None:
    """Who is told when a session turns out to have ended, whoever finds that, and (None) when another has started in its place."""
    global _listener
    _listener = listener


@contextmanager
def aside() -> Iterator[SparkSession]:
    """A session beside that of everybody: it has settings and temporary views of its own, and sees what is cached."""
    base = session()
    with _lock:
        spark = _idle.pop() if _idle and _session is base else base.newSession()
    _configure(spark)
    try:
        yield spark
    finally:
        with _lock:
            if _session is base:
                _idle.append(spark)
            else:
                _close(spark)


def started() -> bool:
    return _session is not None


def alive() -> bool:
    """Whether there is a session that can still be used."""
    with _lock:
        return _session is not None and not _is_stopped(_session)


def is_current(spark: SparkSession) -> bool:
    """Whether a session is the one that is used now: not one whose process has ended."""
    return alive() and spark is _session


@contextmanager
def surviving() -> Iterator[None]:
    """Work that needs Spark. If its process ends meanwhile, that is an error like others, and the next call, perhaps of another thread, starts it again."""
    before = _session if alive() else None
    try:
        yield
    except Exception as reason:
        if not process.is_lost(reason) and (is_current(before) if before is not None else not started() or alive()):
            raise
        raise ended() from None


def losses() -> int:
    """How often something that Spark kept on its workers turned out to have gone with one: what was kept before that is no more to be used."""
    return _losses


def failure(reason: Exception, doing: str) -> DataError:
    """A failure of Spark as one sentence."""
    global _losses
    text = cause(reason)
    if _GONE not in text:
        return DataError(f"{doing}: Spark failed: {text}", "spark")
    with _lock:
        _losses += 1
    return DataError(
        f"{doing}: what Spark kept on a worker has gone with it; nothing was changed, and the next call computes it anew", "spark"
    )


def ended() -> DataError:
    """What is told of work that Spark's process did not survive."""
    reason = process.last_words() or "perhaps for want of memory"
    given = os.environ.get("VIGILOG_SPARK_MEMORY", MEMORY)
    message = f"Spark's process has ended ({reason}); nothing was changed, and the next call starts it again"
    return DataError(f"{message}; VIGILOG_SPARK_MEMORY gives it more memory than {given}", "spark")


def use(existing: SparkSession) -> None:
    """Takes a session that somebody else started."""
    global _session
    with _lock:
        _close_idle()
        _session = existing
    _configure(existing)


def stop() -> None:
    with _lock:
        if _session is not None:
            _leave(_session)


def _leave(spark: SparkSession) -> None:
    """Stops a session, after those beside it."""
    global _session
    _session = None
    _close_idle()
    spark.stop()
    process.reap()


def _close_idle() -> None:
    while _idle:
        _close(_idle.pop())


def _close(spark: SparkSession) -> None:
    """Closes a session beside another. Through Spark Connect it has a connection of its own, which would ask a server that is gone for minutes when Python ends."""
    if is_remote(spark):
        spark.client.close()


def _start() -> SparkSession:
    SPARK.need()
    from pyspark.sql import SparkSession

    for name in ("py4j", "SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # what they report arrives as an exception, too
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_of_others)
    log4j = Path(__file__).with_name("log4j2.properties")
    os.environ.setdefault("SPARK_SUBMIT_OPTS", f"-Dlog4j2.configurationFile={log4j.as_uri()}")
    if process.has_ended():
        process.bury()
    active = SparkSession.getActiveSession()
    if active is not None and not _is_stopped(active):
        _configure(active)
        return active
    remote = os.environ.get("SPARK_REMOTE")
    where = remote or _stated_master()
    _ensure_answer(where)
    there = process.is_there()
    try:
        return _begun(where, remote)
    except SparkUnavailable:
        raise
    except Exception as reason:
        if not there:
            raise SparkUnavailable(f"Spark cannot start at {where}: {process.last_words() or cause(reason)}") from None
    process.bury()  # it was about to end
    return _start()


def _begun(where: str, remote: str | None) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("vigilog")
    if not where.startswith("sc://"):
        ensure_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        settings = _settings(where)
        if remote:  # the client of a server in this process may not know the server's settings
            options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
            os.environ.setdefault("PYSPARK_SUBMIT_ARGS", shlex.join([*options, "pyspark-shell"]))
            os.environ.setdefault("SPARK_CONNECT_AUTHENTICATE_TOKEN", secrets.token_hex(16))  # which the process has from its environment
        process.launch(settings)
        for key, value in [] if remote else settings.items():
            builder = builder.config(key, value)
    spark = (builder.remote(remote) if remote else builder).getOrCreate()
    _configure(spark)
    if not where.startswith("sc://") and not _submitted():
        archive.want()
    return spark


def _ensure_answer(where: str) -> None:
    """Raises SparkUnavailable if an address is none, or if nobody answers there: Spark itself would try for minutes."""
    if not _ADDRESS.fullmatch(where):
        raise SparkUnavailable(
            f"{where} is no address of Spark; it must be like local[4], spark://host:7077, yarn, k8s://host or sc://host:15002"
        )
    scheme, _, hosts = where.partition("://")
    if scheme not in _PORT:
        return
    try:
        _connect(hosts.split("/")[0].split(","), scheme)
        if scheme == "sc":
            _greet(where)
    except (OSError, ValueError) as reason:
        raise SparkUnavailable(f"Spark cannot start: nothing answers at {where} ({reason})") from None


def _connect(addresses: list[str], scheme: str) -> None:
    """Makes sure that somebody listens at one of several addresses, and that a cluster's master answers."""
    for number, address in enumerate(addresses, start=1):
        host, _, port = address.partition(":")
        try:
            with socket.create_connection((host, int(port or _PORT[scheme])), PATIENCE) as connection:
                if scheme == "spark":
                    _ask(connection)
            return
        except OSError:
            if number == len(addresses):
                raise


def _ask(connection: socket.socket) -> None:
    """Makes sure that who listens has an answer to a request of Spark's protocol, for a stream that there is not."""
    name = b"/files/vigilog"
    connection.sendall(struct.pack(">qbi", 13 + len(name), 6, len(name)) + name)  # the length of all, a request for a stream, its name
    try:
        connection.recv(1)
    except TimeoutError:
        raise TimeoutError("it does not speak Spark's protocol") from None


def _greet(remote: str) -> None:
    """Makes sure that who listens speaks Spark Connect's protocol."""
    import grpc  # type: ignore[import-untyped]  # it has no types
    from pyspark.sql.connect.client import DefaultChannelBuilder

    channel = DefaultChannelBuilder(remote).toChannel()
    try:
        grpc.channel_ready_future(channel).result(PATIENCE)
    except grpc.FutureTimeoutError:
        raise TimeoutError("it does not speak Spark Connect's protocol") from None
    finally:
        channel.close()


def cause(reason: BaseException) -> str:
    """Why Spark failed, in one line: of the chained reasons the first that is one of Spark's named conditions, else the innermost."""
    texts = _chained(reason)
    named = [match[0] for match in (re.search(r"\[[A-Z][A-Z0-9_.]+\] .*", text) for text in texts) if match]
    lines = named[:1] or [text.strip().split("\n")[0] for text in texts if text.strip()][-1:] or [type(reason).__name__]
    return without_secrets(re.sub(r"\s*SQLSTATE: \w+", "", lines[0]))[:400]


def roots(reason: BaseException) -> list[str]:
    """The chained reasons of a failure, a line of each, the innermost last."""
    return [text.strip().split("\n")[0] for text in _chained(reason) if text.strip()] or [type(reason).__name__]


def _chained(reason: BaseException) -> list[str]:
    java = getattr(reason, "java_exception", None)
    texts = [str(reason)] if java is None else []
    while java is None and (inner := getattr(reason, "_cause", None)) is not None:  # pyspark shows no other way to it
        reason = inner
        texts.append(str(reason))
    while java is not None:
        texts.append(java.getMessage() or java.getClass().getSimpleName())
        java = java.getCause()
    return texts


def _settings(master: str) -> dict[str, str]:
    settings = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": os.environ.get("VIGILOG_SPARK_MEMORY", MEMORY),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "false",
        "spark.log.level": "FATAL",  # an error arrives as an exception, too
    }
    if master.startswith("local") or "127.0.0.1" in master or "localhost" in master:
        settings |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
            "spark.default.parallelism": str(os.cpu_count() or 2),
        }
    if _submitted():
        settings = {key: value for key, value in settings.items() if key.startswith("spark.sql.")}
    for part in filter(None, os.environ.get("VIGILOG_SPARK_CONF", "").split(";")):
        key, _, value = part.partition("=")
        settings[key.strip()] = value.strip()
    if _submitted():
        return settings
    settings[JAVA_OPTIONS] = f"{archive.options()} {settings.get(JAVA_OPTIONS, '')}".strip()
    jars = [*filter(None, settings.get("spark.jars", "").split(",")), *_driver_jars()]
    return settings | ({"spark.jars": ",".join(dict.fromkeys(jars))} if jars else {})


def _driver_jars() -> list[str]:
    """The jars of databases' drivers: those that are named, else those that Debian has installed."""
    if stated := os.environ.get("VIGILOG_JDBC_JARS"):
        return stated.split(os.pathsep)
    return [str(jar) for name in _DRIVERS if (jar := Path("/usr/share/java") / name).exists()]


def _configure(spark: SparkSession) -> None:
    """What the rules and the readers need of any session, whoever started it."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
    spark.conf.set("spark.sql.parquet.pushdown.inFilterThreshold", "1000")  # so many keys are looked up by filters of files


def on_this_machine() -> bool:
    """Whether Spark is, or will be, a process of this machine alone, which sees all its files."""
    if alive():
        return _session is not None and not is_remote(_session) and _is_local(str(_session.sparkContext.master))
    return not os.environ.get("SPARK_REMOTE") and not _submitted() and _is_local(_stated_master())


def _submitted() -> bool:
    """Whether `spark-submit` has started this process: then it has said where and how Spark runs."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _stated_master() -> str:
    return os.environ.get("VIGILOG_SPARK_MASTER") or os.environ.get("MASTER") or "local[*]"


def _is_local(master: str) -> bool:
    """
    >>> _is_local("local[2]"), _is_local("local-cluster[2,1,1024]")
    (True, False)
    """
    return master == "local" or master.startswith("local[")


def is_remote(spark: SparkSession) -> bool:
    """Whether a session goes through Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _of_others(record: logging.LogRecord) -> bool:
    """Whether a line of the log is not py4j's, which writes some, with all that led to them, under no name; they arrive as exceptions, too."""
    return "py4j" not in Path(record.pathname).parts


def _is_stopped(spark: SparkSession) -> bool:
    if is_remote(spark):
        return bool(getattr(spark, "is_stopped", False))
    context = spark.sparkContext._jsc  # pyspark has no public way to ask
    try:
        return context is None or bool(context.sc().isStopped())
    except Exception:
        process.bury()
        return True


def ensure_java() -> None:
    """Makes sure that Spark will find a Java that is new enough; raises SparkUnavailable if there is none."""
    java = find_java()
    if java is None and os.environ.get("VIGILOG_RUN"):
        subprocess.run([os.environ["VIGILOG_RUN"], "java"], check=False)
        java = find_java()
    if java is None:
        raise SparkUnavailable(NEEDS_JAVA)
    os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)


def find_java() -> Path | None:
    """A Java runtime of version 17 or newer: the one in JAVA_HOME, on the PATH, or where Linux keeps them."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    candidates = [Path(home) / "bin" / "java"] if home else []
    candidates += [Path(on_path)] if on_path else []
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    return next((java for java in candidates if _version(java) >= OLDEST_JAVA), None)


def _version(java: Path) -> int:
    try:
        output = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False, timeout=30).stderr
        return int(output.split('"')[1].split(".")[0])
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        return 0
