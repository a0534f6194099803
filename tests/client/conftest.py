"""What the tests of the clients share with those of the service: servers."""

from __future__ import annotations

from tests.service.conftest import lasting, serve, server, shared

__all__ = ["lasting", "serve", "server", "shared"]
