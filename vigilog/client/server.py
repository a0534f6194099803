"""Where a server is, how it is spoken to, and how its absence shows."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from vigilog.client.calls import refusal
from vigilog.client.effects import Lost, Request, Response
from vigilog.core.errors import DataError, UsageError
from vigilog.protocol.calls import NOT_NOW
from vigilog.protocol.messages import TOOL, is_name

LARGEST_MESSAGE = 2**28
REFUSED = (1003, 1007, 1008, 1009)  # what a WebSocket is closed with for good: what was sent is not taken
REACH = 10.0  # seconds to make a connection


class Server:
    """The address of a server. `reached` is whether it was ever there: one that was is waited for, one that never was is told of at once."""

    def __init__(self, url: str, token: str | None, patience: float, timeout: float, tls: ssl.SSLContext | None, tool: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url} is no address of a server; one is like http://127.0.0.1:8080")
        self.url = url.rstrip("/")
        self.socket_url = "ws" + self.url.removeprefix("http") + "/v1/subscribe"
        if tool is not None and not is_name(tool):
            raise UsageError("a tool has 1 to 200 printable characters")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.headers |= {TOOL: quote(tool)} if tool else {}
        self.longest, self.timeout, self.tls = patience, timeout, tls
        self.reached = False

    @property
    def patience(self) -> float:
        return self.longest if self.reached else 0.0

    @property
    def http(self) -> dict[str, Any]:
        """How httpx reaches it."""
        timeout = httpx.Timeout(self.timeout, connect=REACH)
        return {"headers": self.headers, "timeout": timeout, **({"verify": self.tls} if self.tls else {})}

    @property
    def socket(self) -> dict[str, Any]:
        """How websockets reaches it. Nothing is compressed: that costs a server memory for each client."""
        return {
            "additional_headers": self.headers,
            "compression": None,
            "max_size": LARGEST_MESSAGE,
            "open_timeout": REACH,
            "close_timeout": 1.0,
            **({"ssl": self.tls} if self.tls else {}),
        }

    def request(self, wanted: Request) -> dict[str, Any]:
        """A request in the words of httpx."""
        kind = {} if wanted.body is None else {"Content-Type": "application/json"}
        arguments = {"method": wanted.method, "url": self.url + wanted.path, "content": wanted.body, "headers": {**kind, **wanted.headers}}
        return {**arguments, "params": wanted.params} if wanted.params else arguments

    def response(self, answered: httpx.Response) -> Response:
        self.reached = True
        wait = None
        with suppress(ValueError):
            wait = float(answered.headers.get("Retry-After", ""))
        return Response(answered.status_code, answered.headers.get("Content-Type", ""), answered.content, wait, self.patience)

    @contextmanager
    def losing(self) -> Iterator[None]:
        """What the libraries raise when a server is not there, as `Lost`."""
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout) as reason:
            raise Lost(f"{self.url} cannot be reached: {reason}", sent=False, patience=self.patience) from None
        except httpx.ReadTimeout:
            raise Lost(f"{self.url} has not answered in {self.timeout:g} seconds") from None
        except httpx.TransportError as reason:
            raise Lost(f"the connection to {self.url} was lost: {reason}", patience=self.patience) from None
        except InvalidStatus as refused:
            response = Response(refused.response.status_code, "", bytes(refused.response.body or b""))
            if response.status in NOT_NOW:
                raise Lost(f"{self.url} takes no subscription now: {refusal(response)}", patience=self.patience) from None
            raise refusal(response) from None
        except ConnectionClosed as closed:
            if closed.rcvd and closed.rcvd.code in REFUSED:
                raise DataError(f"the server has ended the subscription: {closed.rcvd.reason or closed.rcvd.code}", "message") from None
            raise Lost(f"the connection to {self.url} was lost: {closed}", patience=self.patience) from None
        except (OSError, WebSocketException) as reason:
            raise Lost(f"{self.url} cannot be reached: {reason}", sent=False, patience=self.patience) from None
