"""What the tests of the service share: servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.serving import PROGRAM, Served
from vigilog.client import connect

PRICES = """
.decl price(item: symbol, day: date, amount: decimal(6,2))
.key price(item)
.decl dear(item: symbol, day: date, amount: decimal(6,2))
.output dear
.key dear(item)
dear(i, d, a) :- price(i, d, a), a > 10.
"""

Serve = Callable[..., Served]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with options of `vigilog serve`, each on a folder of its own; they are killed at the end."""
    started: list[Served] = []

    def start(*options: str, **given: Any) -> Served:
        started.append(Served(tmp_path / f"served{len(started)}", *options, **given))
        return started[-1].start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def server(serve: Serve) -> Served:
    return serve()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for all tests of a file that leave it alive."""
    server = Served(tmp_path_factory.mktemp("lasting"), program=PROGRAM + PRICES).start()
    yield server
    server.kill()


@pytest.fixture
def shared(lasting: Served) -> Served:
    """That server, without rows."""
    with connect(lasting.url) as client:
        client.tell(delete={"edge": client.ask("edge(x, y)"), "price": client.ask("price(i, d, a)")})
        for found in client.subscriptions():
            client.cancel(found["name"])
    return lasting
