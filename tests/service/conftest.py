"""What the tests of the service share: servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.service.serving import Served

Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with options of `vigilog serve`, each on a folder of its own; they are killed at the end."""
    started: list[Served] = []

    def start(*options: str, **given: str) -> Served:
        started.append(Served(tmp_path / f"served{len(started)}", *options, **given))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server(serve: Serve) -> Served:
    return serve()
