"""Updates of a view: for each instance the latest update that covers it decides; where there is none, the rules do.

So the updates of a relation, in their order, come to this: each insertion states what no later deletion covers, and *out* is what a deletion covers and no later insertion. The rules derive nothing in *out*.

>>> from vigilog.core.runs import axis
>>> from vigilog.core.values import NUMBER
>>> from vigilog.mediators.facts import where
>>> from vigilog.mediators.solver import Solver
>>> def some(least, most): return (Conjunction({"x": axis(NUMBER).between(least, most)}),)
>>> came, out = decided([Update(1, False, some(3, 4)), Update(2, True, some(4, 8))], Solver())
>>> [where(part) for part in out], {number: [where(part) for part in parts] for number, parts in came.items()}
(['x = 3'], {2: ['x >= 4, x <= 8']})
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.regions import joined, minus
from vigilog.mediators.solver import Solver


@dataclass(frozen=True)
class Update:
    """An insertion into a view, or a deletion from it. Its number says which is later."""

    number: int
    insert: bool
    region: tuple[Conjunction, ...]


def decided(updates: Iterable[Update], solver: Solver) -> tuple[dict[int, list[Conjunction]], list[Conjunction]]:
    """What each insertion states, by its number; and what is out."""
    came: dict[int, list[Conjunction]] = {}
    out: list[Conjunction] = []
    for update in sorted(updates, key=lambda one: one.number):
        if update.insert:
            came[update.number] = list(update.region)
            out = minus(out, update.region, solver)
        else:
            came = {number: minus(parts, update.region, solver) for number, parts in came.items()}
            out = joined([*out, *minus(update.region, out, solver)])
    return {number: parts for number, parts in came.items() if parts}, out
