"""Who uses the server: users, which are the names of tokens, and the tools that they say they use.

A tool is said in the header `Vigilog-Tool`, or, by a browser's WebSocket, which cannot, in `subscribe`.

>>> known = Clients()
>>> known.called("ann", "payroll"), known.called("ann", "payroll"), known.called("bob", "")
(None, None, None)
>>> known.json(Counter({("ann", "payroll"): 1}))
[{'user': 'ann', 'tool': 'payroll', 'calls': 2, 'subscriptions': 1}, {'user': 'bob', 'tool': '', 'calls': 1, 'subscriptions': 0}]
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from vigilog.core.errors import DataError
from vigilog.protocol.messages import TOOL, is_name

log = logging.getLogger("vigilog.service")
MOST_KNOWN = 1000  # who came longest ago is forgotten
Who = tuple[str, str]  # user and tool


class Clients:
    """How many calls each client made since the server began."""

    def __init__(self) -> None:
        self.calls: dict[Who, int] = {}

    def called(self, user: str, tool: str) -> None:
        """Notes a call; the first of a tool is logged."""
        who = user, tool
        calls = self.calls.pop(who, 0)
        if tool and not calls:
            log.info("client", extra={"user": user, "tool": tool})
        self.calls[who] = calls + 1
        if len(self.calls) > MOST_KNOWN:
            del self.calls[next(iter(self.calls))]

    def json(self, following: Counter[Who]) -> list[dict[str, Any]]:
        """All that are known, and how many subscriptions each has now."""
        callers = sorted({*self.calls, *following})[:MOST_KNOWN]
        return [
            {"user": who[0], "tool": who[1], "calls": self.calls.get(who, 0), "subscriptions": following.get(who, 0)} for who in callers
        ]


def tool_of(headers: Mapping[str, str]) -> str:
    """The tool that a caller says it is. Raises DataError if that is no name."""
    tool = unquote(headers.get(TOOL, ""))
    if tool and not is_name(tool):
        raise DataError(f"{TOOL}: a tool has 1 to 200 printable characters", "message")
    return tool
