"""What all tests share: the settings of the one Spark session, and who runs beside whom (`./run test`).

A test that shares the session has `spark` in its name, its parameters, its fixtures or its file's path. One that starts processes of its own, servers above all, and
Spark only there, is marked `apart`. What takes more than a second by itself is marked `slow`.
The inner loop (`./run test --quick`) leaves out all of these.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.java import JAVA
from tests.postgres import Postgres, binaries, postgres
from tests.treatments import COMMIT, SIZE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Spark compiles each plan to code, which takes longer than it saves where there are few rows. Some golden programs, and those on a cluster, are compiled all the same.
CODE = {"spark.sql.codegen.wholeStage": ("true", "false"), "spark.sql.codegen.factoryMode": ("FALLBACK", "NO_CODEGEN")}
NO_CODE = "".join(f";{key}={without}" for key, (_, without) in CODE.items())

os.environ.setdefault("VIGILOG_SPARK_CONF", f"spark.driver.extraJavaOptions={JAVA}{NO_CODE}")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts processes beside it deaf to Ctrl-C, and they pass that on


@contextmanager
def compiled() -> Iterator[None]:
    """Plans are compiled inside, as they are for users."""
    from vigilog.spark.session import session

    settings = session().conf
    for key, (usual, _) in CODE.items():
        settings.set(key, usual)
    try:
        yield
    finally:
        for key, (_, without) in CODE.items():
            settings.set(key, without)


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session of the whole test run."""
    from vigilog.spark.session import session

    return session()


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL of this test run."""
    programs = binaries()
    if programs is None:
        pytest.fail("PostgreSQL is not installed (./run postgres, or Debian, Ubuntu: apt-get install postgresql libpostgresql-jdbc-java)")
    with postgres(programs) as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    from hypothesis import HealthCheck, settings  # which pytest has loaded by then

    if config.option.hypothesis_seed is None and SIZE == "usual":
        config.option.hypothesis_seed = (
            COMMIT  # as treatments: each commit draws other examples, and a failure comes again at the same commit
        )
    settings.register_profile("vigilog", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    settings.load_profile("vigilog")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        shares = "spark" in item.nodeid or "spark" in getattr(item, "fixturenames", ())
        if shares and not item.get_closest_marker("apart"):
            item.add_marker(pytest.mark.spark)
    if SIZE == "quick":
        late = [item for item in items if any(item.get_closest_marker(each) for each in ("spark", "apart", "slow"))]
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]


def _start_nothing(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn") and os.environ.get("PYTEST_CURRENT_TEST"):
        pytest.fail("this test starts a process, so it is none for the inner loop: mark it apart")


if SIZE == "quick":
    sys.addaudithook(_start_nothing)
