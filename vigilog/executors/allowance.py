"""What one query that a client brings may cost: for an answer, and in each transaction.

The law: whoever follows a query pays for it alone. Its rules are run apart from the program's own, nothing is kept for it, and what goes beyond its allowance is given up as a whole: the transaction is taken back, the query
is dropped, and the transaction begins anew without it. So no view can be wrong by what was given up in the middle.

>>> Allowance(rows=10).over(rows=11, seconds=0.5)
'more than 10 rows were derived'
>>> Allowance().over(rows=10, seconds=0.5)
''
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from vigilog.core.errors import Stopped

TOGETHER = 4  # all queries together may cost as much as so many


@dataclass(frozen=True)
class Allowance:
    """So many rows may be derived, in so many seconds; their tables may grow by so many bytes, and a text or a set of them may take so many. Some queries may not cost anything: they are left out."""

    rows: int = 1_000_000
    size: int = 128 * 2**20
    seconds: float = 5.0
    text: int = 16 * 2**20
    together: float = TOGETHER
    without: frozenset[str] = frozenset()

    def over(self, rows: int, seconds: float) -> str:
        """What was too much, if something was."""
        if rows > self.rows:
            return f"more than {self.rows:,} rows were derived"
        return f"it took more than {self.seconds:g} s" if seconds > self.seconds else ""

    def said(self, reason: Stopped) -> str:
        """Why something was stopped, to those who do not know how."""
        return self.over(0, self.seconds + 1) if reason.code == "timeout" else reason.message


ALL_TOGETHER = "all queries together cost more than they may in one transaction, and this one is among the dearest"


class TooDear(Stopped):
    """Queries went beyond what they may cost: in seconds, `cost`, infinite where nobody knows yet. Everything is as it was before the transaction."""

    def __init__(self, queries: Collection[str], reason: str, cost: Mapping[str, float] | None = None) -> None:
        super().__init__(f"this query costs too much, and is not followed any more: {reason}; ask for less of it", "budget")
        self.queries, self.cost = frozenset(queries), dict(cost or {})

    @property
    def seconds(self) -> float:
        """What was spent in vain."""
        return sum(filter(math.isfinite, self.cost.values()))

    def with_all(self, seconds: float) -> TooDear:
        """The same of all that are known to cost more than some seconds."""
        return TooDear(self.queries | {name for name, cost in self.cost.items() if seconds < cost < math.inf}, ALL_TOGETHER, self.cost)


class Deriving(Protocol):
    """What knows how many rows it has derived."""

    @property
    def derived(self) -> int: ...


class Spent:
    """What queries cost in one transaction that concerns some of them. It is taken back if one costs too much, but first all others are looked at, as long as it `lasts`, so that all that do are known."""

    def __init__(self, allowance: Allowance, queries: Iterable[str], lasts: Callable[[], bool] = lambda: True) -> None:
        self.allowance, self.lasts = allowance, lasts
        self.refused: dict[str, str] = {}  # with the reasons
        self.unknown = dict.fromkeys(queries, math.inf)
        self.rows: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    @contextmanager
    def by(self, query: str, work: Deriving) -> Iterator[None]:
        """What is done inside is done for a query. Raises TooDear if nothing can be looked at after it, or all that was done is too much: if none is refused, for the dearest."""
        began = time.monotonic()
        try:
            yield
        except Stopped as reason:
            self.refused[query] = f"in one transaction {self.allowance.said(reason)}"
        self.rows[query], self.seconds[query] = work.derived, time.monotonic() - began
        share = self.allowance
        over = sum(self.rows.values()) > share.together * share.rows or sum(self.seconds.values()) > share.together * share.seconds
        if over or not self.lasts():
            self.settle()
        if over:
            dearest = max(self.rows, key=lambda name: max(self.rows[name] / share.rows, self.seconds[name] / share.seconds))
            raise TooDear([dearest], ALL_TOGETHER, self.unknown | self.seconds)

    def settle(self) -> None:
        """Raises TooDear for those that cost too much."""
        if self.refused:
            raise TooDear(self.refused, next(iter(self.refused.values())), self.unknown | self.seconds)
