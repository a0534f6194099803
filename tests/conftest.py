"""What all tests share: the settings of the one Spark session, and the one process that has it.

A test that uses Spark in its own process has `spark` in its name, its parameters, its fixtures or its file's name.
"""

from __future__ import annotations

import os
import signal

import pytest

LASTING = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=512m"  # little data, but thousands of plans, each compiled to code of its own
QUICK = f"{LASTING} -XX:TieredStopAtLevel=1"  # in a process of its own that ends soon, little is worth compiling well
BRIEF = {"VIGILOG_SPARK_CONF": f"spark.driver.extraJavaOptions={QUICK}"}  # the environment of such a process

os.environ.setdefault("VIGILOG_SPARK_CONF", f"spark.driver.extraJavaOptions={LASTING}")

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts processes beside it deaf to Ctrl-C, and they pass that on


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in item.nodeid or "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
