"""What all tests share: the settings of the one Spark session, and who runs beside whom (`./run test`).

A test that shares the session has `spark` in its name, its parameters, its fixtures or its file's name. One that starts processes of its own, and Spark only there, is marked `apart`;
so are those of the service.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m -XX:TieredStopAtLevel=1"  # little data, but thousands of plans: little is worth compiling well

# Spark compiles each plan to code, which takes longer than it saves where there are few rows. Every third golden program, and those on a cluster, are compiled all the same.
CODE = {"spark.sql.codegen.wholeStage": ("true", "false"), "spark.sql.codegen.factoryMode": ("FALLBACK", "NO_CODEGEN")}
NO_CODE = "".join(f";{key}={without}" for key, (_, without) in CODE.items())

os.environ.setdefault("VIGILOG_SPARK_CONF", f"spark.driver.extraJavaOptions={JAVA}{NO_CODE}")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts processes beside it deaf to Ctrl-C, and they pass that on


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session of the whole test run."""
    from vigilog.spark.session import session

    return session()


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("apart"):
            continue
        if "spark" in item.nodeid or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        elif item.nodeid.startswith("tests/service/"):
            item.add_marker(pytest.mark.apart)
