"""Keeps passwords out of what people read."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "…"
SECRET_OPTIONS = frozenset({"password"})
_IN_ADDRESS = re.compile(
    r"(?<=//)[^/?#@\s\"':]*:[^/?#@\s\"']*@|(?<=thin:)[^/@\s\"']+/[^@\s\"']+@"
)  # user:password@, or Oracle's user/password@
_PASSWORD = re.compile(r"(?i)(password\s*=\s*)(\"(?:[^\"\\]|\\.)*\"|[^&;,\s)\"']+)")
_NAMED = re.compile(
    r"(?i)((?:password|passwd|pwd|secret|token|api_?key|access_?key|sig(?:nature)?)\w*\s*=\s*)(\"[^\"]*\"|'[^']*'|[^&;,\s)\"']+)"
)


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """A text without passwords: known ones, and whatever an address or an option shows as one.

    >>> without_secrets("cannot reach jdbc:postgresql://ann:tulip@host/db?ssl=true&password=tulip")
    'cannot reach jdbc:postgresql://…@host/db?ssl=true&password=…'
    >>> without_secrets("the user said tulip", ["tulip"])
    'the user said …'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return _NAMED.sub(rf"\g<1>{HIDDEN}", _IN_ADDRESS.sub(f"{HIDDEN}@", text))


def masked(text: str) -> str:
    """A line of a program with its passwords covered, each character by one, so that columns stay where they are.

    >>> masked('.input r(IO=jdbc, password="tulip", user=ann)')
    '.input r(IO=jdbc, password=*******, user=ann)'
    """
    text = _IN_ADDRESS.sub(lambda part: "*" * (len(part[0]) - 1) + "@", text)
    return _PASSWORD.sub(lambda part: part[1] + "*" * len(part[2]), text)
