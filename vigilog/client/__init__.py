"""Clients of the monitoring service: calls, and copies of views that keep themselves right (docs/clients.md)."""

from __future__ import annotations

import ssl

from vigilog.client.answers import Answer, Described, Preview, Receipt
from vigilog.client.asynchronous import AsyncChanges, AsyncClient, AsyncView, AsyncViews
from vigilog.client.columns import Columns
from vigilog.client.events import Alert, Change, Disconnected, Event, Gap, Progress, Snapshot, Stale, Subscribed
from vigilog.client.synchronous import Changes, Client, View, Views
from vigilog.core.errors import ConnectionLost, DataError, Refused
from vigilog.protocol.messages import Mark

__all__ = [
    "Alert",
    "Answer",
    "AsyncChanges",
    "AsyncClient",
    "AsyncView",
    "AsyncViews",
    "Change",
    "Changes",
    "Client",
    "Columns",
    "ConnectionLost",
    "DataError",
    "Described",
    "Disconnected",
    "Event",
    "Gap",
    "Mark",
    "Preview",
    "Progress",
    "Snapshot",
    "Stale",
    "Receipt",
    "Refused",
    "Subscribed",
    "View",
    "Views",
    "aconnect",
    "connect",
]


def connect(
    url: str,
    token: str | None = None,
    *,
    tool: str | None = None,
    patience: float = 30.0,
    timeout: float = 300.0,
    tls: ssl.SSLContext | None = None,
) -> Client:
    """A client of the server at an address. Nothing is sent before its first call. `tool` is what the server's log and status call this program."""
    return Client(url, token, patience=patience, timeout=timeout, tls=tls, tool=tool)


def aconnect(
    url: str,
    token: str | None = None,
    *,
    tool: str | None = None,
    patience: float = 30.0,
    timeout: float = 300.0,
    tls: ssl.SSLContext | None = None,
) -> AsyncClient:
    """The same for programs on asyncio."""
    return AsyncClient(url, token, patience=patience, timeout=timeout, tls=tls, tool=tool)
