"""The Spark executor where Spark can run: on a cluster, through Spark Connect, and not at all. Each in a process of its own.

`python -m tests.spark.test_modes CASE …` evaluates golden cases in the session that its environment describes.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import NO_CODE
from tests.golden import PROGRAMS, read_case
from tests.java import JAVA
from vigilog.core.errors import SparkUnavailable
from vigilog.spark import session

pytestmark = pytest.mark.apart
ROOT = Path(__file__).parents[2]
CASES = ("closure-left-linear", "float-text", "aggregate-decimals")  # float-text and aggregate-decimals call Python functions
READING = "tests/folder/test_spark_reading.py::test_a_state_is_of_its_transaction[materialized]"
PROGRAM = '.decl r(x: symbol)\n.output r\nr("a").\n'

# On a worker, vigilog is found only if the driver sent it there.
NOT_INSTALLED = """
import sys
from importlib.machinery import PathFinder

class OnlyShipped:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "vigilog":
            return None
        found = PathFinder.find_spec(name, [entry for entry in sys.path if entry.endswith(".zip")])
        if found is None:
            raise ModuleNotFoundError("vigilog is not installed on this worker")
        return found

sys.meta_path.insert(0, OnlyShipped)
"""


def evaluate(names: list[str]) -> None:
    """Prints what came out of golden cases, and where the workers have vigilog from, as JSON."""
    from pyspark.sql.functions import udf

    from tests.executors.test_programs import by_engine
    from vigilog.language.check import check

    results = {}
    for name in names:
        case = read_case(PROGRAMS / f"{name}.case")
        with tempfile.TemporaryDirectory() as folder:
            case.write_facts(Path(folder))
            results[name] = by_engine(check(case.program).program, Path(folder), "spark")

    def origin() -> str:
        import vigilog

        return str(vigilog.__file__)

    found = session.session()
    origins = [row[0] for row in found.range(0, 2, 1, 2).select(udf(origin)()).distinct().collect()]
    remote = session.is_remote(found)
    reading = pytest.main(["-q", "-p", "no:cacheprovider", READING]) if remote else 0
    print(json.dumps({"results": results, "origins": origins, "remote": remote, "reading": reading}))
    session.stop()


def environment(folder: Path, changes: dict[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "VIGILOG_", "PYTEST_")) and name != "MASTER"
    }
    java = session.find_java()
    assert java is not None
    settings = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.executorEnv.PYTHONPATH": str(folder / "site"),
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
    }
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(NOT_INSTALLED)
    conf = ";".join(f"{key}={value}" for key, value in settings.items())
    return kept | {"JAVA_HOME": str(java.resolve().parent.parent), "VIGILOG_SPARK_CONF": conf, "VIGILOG_SPARK_MEMORY": "1g"} | changes


def evaluate_elsewhere(folder: Path, changes: dict[str, str]) -> tuple[list[str], bool]:
    """Evaluates the cases in a process with other settings, and checks what comes out; gives where its workers have vigilog from."""
    command = [sys.executable, "-W", "error", "-m", "tests.spark.test_modes", *CASES]
    done = subprocess.run(command, cwd=ROOT, env=environment(folder, changes), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == "", "Java says nothing"
    printed = json.loads(done.stdout.strip().split("\n")[-1])
    assert printed["results"] == {name: read_case(PROGRAMS / f"{name}.case").expect for name in CASES}
    assert printed["reading"] == 0, done.stdout[-3000:]
    return printed["origins"], printed["remote"]


# -- a cluster


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def daemon(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Spark's own servers, from the package's scripts; it ends with the block, and its children with it."""
    import pyspark

    home = Path(pyspark.__file__).parent
    env = environment(
        folder, {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA}
    )
    log = (folder / f"{arguments[0].rpartition('.')[2]}.log").open("ab")
    with log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-class"), *arguments], cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, sent)
                process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"nobody listens at port {port} after {seconds} s")


@dataclass(frozen=True)
class Cluster:
    master: str
    workers: list[int]  # groups of processes


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A master and two workers on the loopback interface."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        server = stack.enter_context(
            daemon(tmp_path, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        )
        wait_for(port, server)
        workers = []
        for number in (1, 2):
            arguments = (
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--webui-port",
                "0",
                "--work-dir",
                str(tmp_path / f"work{number}"),
            )
            workers.append(stack.enter_context(daemon(tmp_path, "org.apache.spark.deploy.worker.Worker", *arguments, master)).pid)
        yield Cluster(master, workers)


def test_cluster(cluster: Cluster, tmp_path: Path) -> None:
    origins, remote = evaluate_elsewhere(tmp_path, {"VIGILOG_SPARK_MASTER": cluster.master})
    assert not remote
    assert len(list(tmp_path.glob("work*/app-*/*"))) == 2, "an executor on each worker"
    assert all(origin.endswith("vigilog.zip/vigilog/__init__.py") for origin in origins)


def a_worker_dies(folder: Path, master: str, *group: int) -> None:
    """The shop's tables on a cluster, end to end, with a worker that is killed in the middle of a transaction."""
    env = environment(folder, {"VIGILOG_SPARK_MASTER": master})
    env["VIGILOG_SPARK_CONF"] += NO_CODE
    command = [sys.executable, "-W", "error", "-m", "tests.spark.clustered", str(folder / "shop"), *map(str, group)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    *steps, last = map(json.loads, done.stdout.splitlines())
    assert last == {"problems": []}
    for step in steps:
        assert len(step["refused"]) <= (2 if step["step"] == "load" else 0), step
        for refused in step["refused"]:
            assert refused.startswith("spark: ") and refused.endswith("nothing was changed, and the next call computes it anew"), step


def test_a_worker_of_a_cluster_dies(cluster: Cluster, tmp_path: Path) -> None:
    a_worker_dies(tmp_path, cluster.master, cluster.workers[0])


def test_an_executor_of_a_local_cluster_dies(tmp_path: Path) -> None:
    a_worker_dies(tmp_path, "local-cluster[2,1,2048]")


SUBMITTED = """
import vigilog
from vigilog.spark import session
assert not session.on_this_machine(), "nobody knows yet"
assert vigilog.evaluate('.decl r(x: symbol)\\n.output r\\nr("a").', engine="spark")["r"] == {("a",)}
found = session.session()
print(found.sparkContext.master, found.sparkContext.appName, found.conf.get("spark.sql.ansi.enabled"))
"""


def test_spark_submit_says_where_spark_runs(tmp_path: Path) -> None:
    import pyspark

    (tmp_path / "job.py").write_text(SUBMITTED)
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    command = [submit, "--master", "local[3]", "--driver-memory", "1g", str(tmp_path / "job.py")]
    env = environment(tmp_path, {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable})
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == "local[3] vigilog true"


# -- Spark Connect


def test_connect(tmp_path: Path) -> None:
    """There, too, the readers' sessions are others than the writer's."""
    origins, remote = evaluate_elsewhere(tmp_path, {"SPARK_REMOTE": "local[2]", "SPARK_TESTING": "1"})  # which takes any free port
    assert remote
    assert all(origin.endswith("vigilog.zip/vigilog/__init__.py") for origin in origins)


# -- no Spark


def refused(folder: Path, changes: dict[str, str], before: str = "") -> str:
    """What the command line says when Spark cannot start."""
    program = folder / "program.dl"
    program.write_text(PROGRAM)
    code = f"{before}\nfrom vigilog.cli.main import main\nmain()"
    command = [sys.executable, "-c", code, "run", str(program), "-D", str(folder / "out"), "--engine", "spark"]
    done = subprocess.run(command, cwd=folder, env=environment(folder, changes), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert not (folder / "out").exists()
    return done.stderr


NO_JAVA = "from vigilog.spark import session; session.find_java = lambda: None"


@pytest.mark.parametrize(
    "changes", [{}, {"SPARK_REMOTE": "local[2]"}, {"VIGILOG_RUN": "/bin/false"}], ids=["local", "connect", "run-cannot-help"]
)
def test_without_java(changes: dict[str, str], tmp_path: Path) -> None:
    assert refused(tmp_path, changes, NO_JAVA) == f"error[spark]: {session.NEEDS_JAVA}\n"


@pytest.mark.parametrize("variable", ["VIGILOG_SPARK_MASTER", "SPARK_REMOTE"])
def test_nobody_listens(variable: str, tmp_path: Path) -> None:
    address = f"{'sc' if variable == 'SPARK_REMOTE' else 'spark'}://127.0.0.1:{free_port()}"
    said = refused(tmp_path, {variable: address})
    assert said == f"error[spark]: Spark cannot start: nothing answers at {address} ([Errno 111] Connection refused)\n"


def test_who_listens_is_no_spark(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"sc://127.0.0.1:{mute.getsockname()[1]}"
        said = refused(tmp_path, {"SPARK_REMOTE": address}, "from vigilog.spark import session; session.PATIENCE = 1.0")
    assert said == f"error[spark]: Spark cannot start: nothing answers at {address} (it does not speak Spark Connect's protocol)\n"


def test_a_cluster_that_says_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"spark://127.0.0.1:{mute.getsockname()[1]}"
        said = refused(tmp_path, {"VIGILOG_SPARK_MASTER": address}, "from vigilog.spark import session; session.PATIENCE = 1.0")
    assert said == f"error[spark]: Spark cannot start: nothing answers at {address} (it does not speak Spark's protocol)\n"


def test_no_address(tmp_path: Path) -> None:
    said = refused(tmp_path, {"VIGILOG_SPARK_MASTER": "nonsense"})
    assert said.startswith("error[spark]: nonsense is no address of Spark; it must be like local[4], ")
    assert said.count("\n") == 1


def test_java_that_does_not_start(tmp_path: Path) -> None:
    said = refused(tmp_path, {"VIGILOG_SPARK_MEMORY": "much"})
    assert "Traceback" not in said
    assert said.strip().split("\n")[-1].startswith("error[spark]: Spark cannot start at local[*]: Invalid ")


DIES = """
import os, signal
from vigilog.spark import session
from pyspark import SparkContext
session.session()
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
SparkContext._gateway.proc.wait(30)
"""


def test_spark_that_dies_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text(PROGRAM)
    command = [
        sys.executable,
        "-c",
        f"{DIES}\nfrom vigilog.cli.main import main\nmain()",
        "run",
        "program.dl",
        "-D",
        "out",
        "--engine",
        "spark",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path, {}), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert any((tmp_path / "out").iterdir())


def java(folder: Path, version: str) -> Path:
    """A `java` that only tells its version."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    path.chmod(0o755)
    return path


def test_java_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = java(tmp_path / "old", "1.8.0_392"), java(tmp_path / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", f"{new.parent}:{os.environ['PATH']}")
    assert session.find_java() == new, "the one in JAVA_HOME is too old"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    monkeypatch.setenv("PATH", str(old.parent))
    assert session.find_java() == new


def test_missing_java_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "find_java", lambda: None)
    monkeypatch.delenv("VIGILOG_RUN", raising=False)
    with pytest.raises(SparkUnavailable, match="Spark needs Java 17 or newer, and none was found: install it"):
        session.ensure_java()


if __name__ == "__main__":
    evaluate(sys.argv[1:])
