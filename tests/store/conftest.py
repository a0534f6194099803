"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.store.postgres import Postgres, binaries, postgres
from vigilog.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session of the whole test run."""
    return session()


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL of this test run."""
    programs = binaries()
    if programs is None:
        pytest.fail("PostgreSQL is not installed (./run postgres, or Debian, Ubuntu: apt-get install postgresql libpostgresql-jdbc-java)")
    with postgres(programs) as running:
        yield running
