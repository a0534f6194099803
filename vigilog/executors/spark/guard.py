"""What maintaining views on Spark may take: a fifth of what computing them anew takes. What takes longer is given up, and answered by computing anew.

What that takes is measured whenever it is done; until then it is estimated from the sizes of the base relations. A change that was given up is not tried again the next time, nor any of the same relations
that is as large; then it is, and if it is given up again, twice as many are not tried.

>>> guard = Guard()
>>> change = {"edge": Delta(plus=frozenset({(1, 2)}))}
>>> with guard.watching(Watch(), change, rows=1_000_000):
...     raise OverBudget("it takes too long", "budget")
Traceback (most recent call last):
vigilog.executors.embedded.demand.OverBudget: it takes too long
>>> with guard.watching(Watch(), change, rows=1_000_000):
...     pass
Traceback (most recent call last):
vigilog.executors.embedded.demand.OverBudget: it takes too long, as the last time
>>> with guard.watching(Watch(), change, rows=1_000_000):
...     guard.seconds(1_000_000)
10.0
>>> with guard.watching(Watch(), {"edge": Delta(plus=frozenset((x, x) for x in range(150_000)))}, rows=30_000):
...     pass
Traceback (most recent call last):
vigilog.executors.embedded.demand.OverBudget: 150,000 rows change at once, and computing anew is expected to take less time
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from vigilog.core.delta import Delta
from vigilog.core.errors import Stopped
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.watch import Watch

SHARE = 0.2  # of what computing anew takes,
LEAST = 1.0  # but at least so many seconds, where it has been measured,
UNMEASURED = 10.0  # and so many otherwise
BEGINNING, ROWS_A_SECOND = (
    2.0,
    1_000_000,
)  # what computing anew takes where it has not been measured: so many seconds, and one for so many rows
A_CHANGE = 2e-5  # seconds that maintaining takes at least for each row that changes
LONGEST_REST = 64  # changes that are not tried


@dataclass
class _GivenUp:
    """A change that took too long: how many rows it had, why it was given up, and how many changes after it are not tried."""

    rows: int
    reason: str
    rest: int = 1
    left: int = 1


@dataclass
class Guard:
    """`anew` are the seconds that computing anew took when it was done last, for changes of each set of relations. If it is `refused`, maintaining is tried whatever is expected."""

    refused: bool = False
    anew: dict[frozenset[str], float] = field(default_factory=dict)
    given_up: dict[frozenset[str], _GivenUp] = field(default_factory=dict)

    def seconds(self, rows: int, relations: Iterable[str] = ()) -> float:
        """How long maintaining may take after a change of some relations, where base relations have so many rows."""
        measured = frozenset(relations) in self.anew
        return max(LEAST if measured else UNMEASURED, SHARE * self._expected(rows, relations))

    def _expected(self, rows: int, relations: Iterable[str]) -> float:
        """How long computing anew takes."""
        return self.anew.get(frozenset(relations), BEGINNING + rows / ROWS_A_SECOND)

    @contextmanager
    def watching(self, watch: Watch, changes: Mapping[str, Delta], rows: int) -> Iterator[None]:
        """Maintains views within the bound. Raises OverBudget if that takes longer, or is not to be tried."""
        relations, number = frozenset(changes), sum(len(delta.plus) + len(delta.minus) for delta in changes.values())
        before = self.given_up.get(relations)
        if before is not None and before.left and number >= before.rows:
            before.left -= 1
            raise OverBudget(f"{before.reason}, as the last time", "budget")
        if not self.refused and number * A_CHANGE > self._expected(rows, relations):
            raise OverBudget(f"{number:,} rows change at once, and computing anew is expected to take less time", "budget")
        bound = self.seconds(rows, relations)
        try:
            if watch.timeout is not None:  # somebody has set a bound of his own
                yield
                return
            with watch.within(bound, watch.max_rows):
                try:
                    yield
                except Stopped as reason:
                    if reason.code == "timeout" and watch.expired:
                        raise OverBudget(f"maintaining took more than {bound:.3g} s", "budget") from None
                    raise
        except OverBudget as reason:
            rest = 1 if before is None else min(LONGEST_REST, 2 * before.rest)
            self.given_up[relations] = _GivenUp(number, reason.message, rest, rest)
            raise
        self.given_up.pop(relations, None)
