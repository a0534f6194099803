"""What every request passes first: who asks, from where, how often."""

from __future__ import annotations

import ipaddress
import json
import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from vigilog.core.errors import DataError, VigilogError
from vigilog.service.access import ANYONE, Forbidden, Rate, Rights, Tokens
from vigilog.service.clients import Clients, tool_of
from vigilog.service.limits import Limits
from vigilog.service.metrics import Metrics

log = logging.getLogger("vigilog.service")


class TooMany(DataError):
    """More requests than a token may make."""

    code = "rate"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class Gate:
    """Without tokens anyone who comes by the loopback interface may do everything, but for web pages of elsewhere, which a browser would let in."""

    def __init__(self, tokens: Tokens | None, limits: Limits, metrics: Metrics, origins: frozenset[str], host: str) -> None:
        self.tokens, self.limits, self.metrics, self.origins = tokens, limits, metrics, origins
        self.loopback = is_loopback(host)
        self.rate = Rate(limits.rate)
        self.clients = Clients()

    def rights_of(self, headers: Mapping[str, str], token: str | None) -> Rights:
        """What a caller may do: by the token in a header, or by one that it said otherwise."""
        if self.tokens is None:
            return ANYONE
        kind, _, credentials = headers.get("authorization", "").partition(" ")
        return self.tokens.rights(credentials.strip() if kind.lower() == "bearer" and credentials else token)

    def may_come_later(self, headers: Mapping[str, str]) -> bool:
        """Whether a client may still say its token: a browser's WebSocket says it in its first message."""
        return self.tokens is not None and "authorization" not in headers

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuses web pages that were not served from here, and names of this machine that are not its own."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if self.tokens is None and self.loopback and not is_loopback(_hostname(host)):
            raise Forbidden(f"this server answers to the names of the loopback interface, not to {host}")
        if origin is not None and origin not in self.origins and "*" not in self.origins and origin.partition("://")[2] != host:
            raise Forbidden(f"pages of {origin} may not call this server (allow them with --origin)")

    def limit(self, rights: Rights) -> None:
        seconds = self.rate.take(rights.name)
        if seconds:
            raise TooMany(f"this token may make {self.limits.rate:g} requests a second", seconds)

    def admit(self, request: HTTPConnection) -> Rights:
        """Everything at once, for a call."""
        self.check_origin(request.headers)
        request.state.tool = tool_of(request.headers)
        rights = self.rights_of(request.headers, request.query_params.get("token"))
        request.state.user = rights.name
        self.limit(rights)
        self.clients.called(rights.name, request.state.tool)
        return rights

    def refused(self, reason: VigilogError, request: HTTPConnection) -> None:
        """Each refusal is logged and counted."""
        client = request.client.host if request.client else ""
        self.metrics.refused.labels(code=reason.code).inc()
        who = {key: name for key in ("user", "tool") if (name := getattr(request.state, key, ""))}
        log.warning("refused", extra={"code": reason.code, "reason": reason.message, "path": request.url.path, "client": client, **who})


def is_loopback(host: str) -> bool:
    """
    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # none at all
        return ""


class JsonLines(logging.Formatter):
    """A line of JSON for each thing that happened."""

    KEPT = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}

    def format(self, record: logging.LogRecord) -> str:
        line = {"at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}", "level": record.levelname.lower()}
        line |= {"logger": record.name, "event": record.getMessage()}
        line |= {key: value for key, value in vars(record).items() if key not in self.KEPT}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
