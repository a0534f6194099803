"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.postgres import Postgres, binaries, postgres


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    """A PostgreSQL of this test run."""
    programs = binaries()
    if programs is None:
        pytest.fail("PostgreSQL is not installed (./run postgres, or Debian, Ubuntu: apt-get install postgresql libpostgresql-jdbc-java)")
    with postgres(programs) as running:
        yield running
