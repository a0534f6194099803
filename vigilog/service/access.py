"""Who may do what. A token is a secret that its holder says; the server knows only its hash, and what it may do.

The file is JSON, `{"tokens": [{"name": "shop", "hash": "sha256:…", "read": ["closure"], "write": ["edge"], "define": false, "domains": false}]}`; `vigilog token` writes it. It is looked at again when it
changes, so that a token can be given or taken back while the server runs.

>>> shop = Rights("shop", frozenset({"closure"}), frozenset({"edge"}))
>>> shop.require_read(["closure"])
>>> shop.require_write(["edge", "stock"])
Traceback (most recent call last):
...
vigilog.service.access.Forbidden: this token may not write stock
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vigilog.core.errors import DataError

log = logging.getLogger("vigilog.service")
ALL = "*"
LOOK_EVERY = 1.0  # seconds between two looks at the file


class Forbidden(DataError):
    """Not a right of this token."""

    code = "forbidden"


class Unknown(DataError):
    """No token, or one that is not known."""

    code = "token"


@dataclass(frozen=True)
class Rights:
    """What a token may do: read views and ask for base relations, write base relations, change definitions. `*` stands for all."""

    name: str
    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    define: bool = False
    token: str = ""  # its hash
    domains: bool = False  # it may state sources that the server asks

    def may_read(self, *relations: str) -> bool:
        return ALL in self.read or self.read.issuperset(relations)

    def require_read(self, relations: Iterable[str]) -> None:
        self._require("read", self.read, relations)

    def require_write(self, relations: Iterable[str]) -> None:
        self._require("write", self.write, relations)

    def require_define(self) -> None:
        if not self.define:
            raise Forbidden("this token may not change definitions")

    def require_domains(self) -> None:
        if not self.domains:
            raise Forbidden("this token may not state domains, which the server asks")

    def _require(self, what: str, given: frozenset[str], wanted: Iterable[str]) -> None:
        missing = [] if ALL in given else sorted(set(wanted) - given)
        if missing:
            raise Forbidden(f"this token may not {what} {', '.join(missing)}")


ANYONE = Rights("", frozenset({ALL}), frozenset({ALL}), True, domains=True)  # where there are no tokens: on the loopback interface alone


class Tokens:
    """A file of tokens. Raises DataError if it is none; one that becomes none while the server runs leaves things as they were."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.looked = 0.0
        self.changed: tuple[int, int] = (0, 0)
        self.known: Mapping[str, Rights] = {}
        self.trouble = ""
        self._read()

    def look(self) -> Mapping[str, Rights]:
        """What the tokens, by their hashes, may do now."""
        if time.monotonic() - self.looked > LOOK_EVERY:
            self.looked = time.monotonic()
            trouble = ""
            try:
                self._read()
            except DataError as reason:
                trouble = reason.message
            if trouble and trouble != self.trouble:
                log.error("the tokens stay as they were", extra={"reason": trouble})
            self.trouble = trouble
        return self.known

    def rights(self, token: str | None) -> Rights:
        """What a token may do. Raises Unknown if it is not known."""
        if token is None:
            raise Unknown("a token is needed (Authorization: Bearer …)")
        rights = self.look().get(hashed(token))
        if rights is None:
            raise Unknown("this token is not known")
        return rights

    def now(self, rights: Rights) -> Rights | None:
        """What a token may do now that could do something before; None if it is not known any more."""
        current = self.look().get(rights.token)
        return current if current is not None and current.name == rights.name else None

    def _read(self) -> None:
        try:
            about = self.path.stat()
            changed = about.st_mtime_ns, about.st_size
            if changed == self.changed:
                return
            self.known = _tokens(json.loads(self.path.read_text(encoding="utf-8")))
            self.changed = changed
        except OSError as reason:
            raise DataError(f"{self.path}: {reason.strerror}", "tokens") from None
        except (ValueError, KeyError, TypeError, AttributeError) as reason:
            raise DataError(f"{self.path} is no file of tokens: {reason}", "tokens") from None


def _tokens(content: Any) -> dict[str, Rights]:
    rights = {}
    for entry in content["tokens"]:
        if not str(entry["hash"]).startswith("sha256:"):
            raise ValueError(f"the hash of {entry['name']} is not of the form sha256:…")
        read, write = (frozenset(map(str, entry.get(what, ()))) for what in ("read", "write"))
        hash_ = str(entry["hash"])
        rights[hash_] = Rights(str(entry["name"]), read, write, bool(entry.get("define", False)), hash_, bool(entry.get("domains", False)))
    return rights


def hashed(token: str) -> str:
    """Tokens are 256 random bits, so a plain hash of one tells nothing."""
    return "sha256:" + hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def add_token(path: Path, name: str, read: Iterable[str], write: Iterable[str], *, define: bool, domains: bool = False) -> str:
    """Adds a new token to a file, or makes one; gives the token, which is kept nowhere."""
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"tokens": []}
        _tokens(content)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as reason:
        raise DataError(f"{path} is no file of tokens: {reason}", "tokens") from None
    if any(entry["name"] == name for entry in content["tokens"]):
        raise DataError(f"{path} has a token {name} already; take it out first, or use another name", "tokens")
    token = secrets.token_urlsafe(32)
    added = {"name": name, "hash": hashed(token), "read": sorted(read), "write": sorted(write), "define": define}
    content["tokens"].append(added | ({"domains": True} if domains else {}))
    fresh = path.with_name(path.name + ".new")
    fresh.touch(mode=0o600)
    fresh.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    fresh.replace(path)
    return token


@dataclass
class Rate:
    """So many requests a second, and as many at once."""

    rate: float
    left: dict[str, tuple[float, float]] = field(default_factory=dict)

    def take(self, name: str) -> float:
        """How many seconds a caller must wait; 0 if it need not."""
        now = time.monotonic()
        left, since = self.left.get(name, (self.rate, now))
        left = min(self.rate, left + (now - since) * self.rate)
        self.left[name] = (left - 1 if left >= 1 else left), now
        return 0.0 if left >= 1 else (1 - left) / self.rate
