"""What the options of domains may be: which kinds take which, and what their values look like."""

from __future__ import annotations

import re
from collections.abc import Callable

from vigilog.core.errors import did_you_mean
from vigilog.domains.domain import DomainError, Options

KINDS: dict[str, tuple[str, ...]] = {"sql": ("url",), "file": ("path",), "python": ("module",), "rest": ("url",)}
GENERAL = ("timeout", "retries", "nulls", "max_rows", "down", "refresh")
FURTHER: dict[str, tuple[str, ...]] = {"sql": ("user", "password"), "python": ("beside",)}  # `beside` is where a program is

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """A time, in seconds.

    >>> seconds("10s"), seconds("5m"), seconds("2")
    (10.0, 300.0, 2.0)
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) *(ms|s|m|h|d)?", text)
    if parts is None or not float(parts[1]):
        raise ValueError(f"{text} is no time, like 10s or 5m")
    return float(parts[1]) * _UNITS[parts[2] or "s"]


def _number(text: str) -> None:
    if not re.fullmatch(r"\d{1,18}", text):
        raise ValueError(f"{text} is no number")


def _one_of(*words: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        if text not in words:
            raise ValueError(did_you_mean(text, words) or f"it is one of {', '.join(words)}")

    return check


_VALUES: dict[str, Callable[[str], object]] = {
    "timeout": seconds,
    "refresh": seconds,
    "retries": _number,
    "max_rows": _number,
    "nulls": _one_of("refuse", "skip"),
    "down": _one_of("refuse", "stale"),
}


def check_options(name: str, options: Options) -> str:
    """The kind of a domain. Raises DomainError if there is no such kind, an option is missing, unknown, or has a value that it cannot have."""
    kind = options.get("kind", "")
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"kinds are {', '.join(KINDS)}"
        raise DomainError(name, f"there is no kind {kind or 'stated'} ({hint})")
    keys = (*KINDS[kind], *FURTHER.get(kind, ()), *GENERAL)
    for key, value in options.items():
        if key not in ("kind", *keys) and not (kind == "sql" and key.startswith("query.")):
            hint = did_you_mean(key, keys) or f"there are {', '.join(keys)}"
            raise DomainError(name, f"there is no option {key} ({hint})")
        if key in _VALUES:
            try:
                _VALUES[key](value)
            except ValueError as reason:
                raise DomainError(name, f"{key}={value}: {reason}") from None
    for key in KINDS[kind]:
        if key not in options:
            raise DomainError(name, f"a domain of kind {kind} needs the option {key}")
    return kind


def patience(options: Options, usual: float) -> float:
    """How long a call may take, in seconds."""
    return seconds(options["timeout"]) if "timeout" in options else usual
