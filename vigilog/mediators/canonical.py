"""A region's canonical form: the same instances give the same facts, however they were found.

Where each condition concerns one column: the first column is cut where the rest changes; runs with the same rest are put together, and told as maximal runs; then the rest, in the same way. Texts are told one by
one, or, if all but some are meant, by `!=`. Where a test remains, the parts are disjoint and simplified, and only their instances count.

>>> from vigilog.core.runs import axis
>>> from vigilog.core.values import NUMBER
>>> from vigilog.mediators.facts import where
>>> from vigilog.mediators.solver import Solver
>>> parts = [Conjunction({"x": axis(NUMBER).between(*x), "y": axis(NUMBER).between(*y)}) for x, y in (((0, 1), (1, 1)), ((1, 1), (0, 2)), ((2, 2), (1, 1)))]
>>> [where(part) for part in canonical(parts, Solver())]
['x = 0, y = 1', 'x = 1, y >= 0, y <= 2', 'x = 2, y = 1']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vigilog.core.runs import Place, Runs
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import where
from vigilog.mediators.regions import joined, minus
from vigilog.mediators.solver import Solver

Box = tuple[Runs, ...]


def canonical(region: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    """The facts of a region, sorted by their texts."""
    return sorted(boxes(region, solver), key=where)


def boxes(region: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    parts = list(dict.fromkeys(region))
    if not parts:
        return []
    names = list(parts[0].runs)
    if any(part.tests for part in parts):
        return joined(_disjoint(parts, solver))
    if len(parts) == 1 and all(len(list(_told(runs))) == 1 for runs in parts[0].runs.values()):
        return parts
    cut = _cut([tuple(part.runs[name] for name in names) for part in parts])
    return [Conjunction(dict(zip(names, box, strict=True))) for box in cut]


def _cut(parts: Sequence[Box]) -> tuple[Box, ...]:
    """The boxes of a union of boxes: disjoint, maximal from the first column on."""
    if not parts[0]:
        return ((),)
    line = parts[0][0].axis
    rests: dict[tuple[Box, ...], list[Place]] = {}  # for each rest the cuts of the values that have it
    before: tuple[Box, ...] | None = None
    by_active: dict[frozenset[int], tuple[Box, ...]] = {}
    for place, active in _swept(parts):
        if active not in by_active:
            by_active[active] = _cut([parts[index][1:] for index in sorted(active)]) if active else ()
        now = by_active[active] or None
        if now != before:
            for rest in (before, now):
                if rest is not None:
                    rests.setdefault(rest, []).append(place)
            before = now
    return tuple((run, *rest_box) for rest, cuts in rests.items() for run in _told(Runs(line, tuple(cuts))) for rest_box in rest)


def _swept(parts: Sequence[Box]) -> Iterator[tuple[Place, frozenset[int]]]:
    """The cuts of the first column, in their order, each with the parts that are there from then on."""
    turns: dict[Place, list[int]] = {}
    for index, part in enumerate(parts):
        for cut in part[0].cuts:
            turns.setdefault(cut, []).append(index)
    active: frozenset[int] = frozenset()
    for place in sorted(turns):
        active = active ^ frozenset(turns[place])
        yield place, active


def _told(runs: Runs) -> Iterator[Runs]:
    """The runs that are facts of their own."""
    if (
        runs.axis.most is None
        and runs.cuts[0] == ""
        and len(runs.cuts) % 2
        and all(hole.single is not None for hole in (~runs).intervals())
    ):
        yield runs  # all texts but some
    elif runs.axis.most is None:
        for run in runs.intervals():
            size = run.size(1000)
            yield from [run] if size is None else (run.axis.at(place) for place in run.places())
    else:
        yield from runs.intervals()


def _disjoint(parts: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    pieces: list[Conjunction] = []
    for part in parts:
        pieces += minus([part], pieces, solver)
    return pieces
