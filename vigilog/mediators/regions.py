"""Regions: unions of conjunctions over the same variables, as sets of instances.

`minus` gives disjoint parts: those outside of the first variable's values, then those inside of them and outside of the second's, and so on, and last those for which the first test fails, the second …

>>> from vigilog.core.runs import axis
>>> from vigilog.core.values import NUMBER
>>> from vigilog.mediators.solver import Solver
>>> def box(x, y): return Conjunction({"x": axis(NUMBER).between(*x), "y": axis(NUMBER).between(*y)})
>>> parts = minus([box((0, 2), (0, 2))], [box((1, 1), (0, 5))], Solver())
>>> [(list(part.runs["x"].values()), list(part.runs["y"].values())) for part in parts]
[([0, 2], [0, 1, 2])]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from vigilog.core.runs import union
from vigilog.mediators.conjunction import Conjunction, meet
from vigilog.mediators.solver import Solver

Region = Sequence[Conjunction]

MOST_LOOSE = 16  # values that are far from each other and still in one fact


def without(one: Conjunction, other: Conjunction) -> Iterator[Conjunction]:
    """The parts of one conjunction outside of another, disjoint; they may turn out to be empty."""
    if meet(one, other) is None:
        yield one
        return
    rest: Conjunction | None = one
    for name, runs in other.runs.items():
        assert rest is not None, "the loop ends with it"
        if not rest.runs[name] <= runs and (outside := rest.limited(name, ~runs)) is not None:
            yield outside
        if (rest := rest.limited(name, runs)) is None:
            return
    for test in sorted(other.tests, key=repr):
        assert rest is not None, "the loop ends with it"
        if (outside := rest.tested(test.complement())) is not None:
            yield outside
        if (rest := rest.tested(test)) is None:
            return


def minus(region: Iterable[Conjunction], other: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    """The instances of one region that are not in another."""
    left = list(region)
    for part in other:
        if not left:
            break
        left = [piece for one in left for piece in ([one] if meet(one, part) is None else _solved(without(one, part), solver))]
    return left


def _solved(parts: Iterable[Conjunction], solver: Solver) -> Iterator[Conjunction]:
    return (part for part in parts if solver.solvable(part))


def common(region: Iterable[Conjunction], other: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    """The instances of two regions."""
    others = list(other)
    pieces = (meet(one, two) for one in region for two in others)
    return [part for part in pieces if part is not None and solver.solvable(part)]


def implied(part: Conjunction, by: Iterable[Conjunction], solver: Solver) -> bool:
    """Whether all instances of a conjunction are in a region."""
    return not minus([part], by, solver)


def within(region: Iterable[Conjunction], other: Region, solver: Solver) -> bool:
    return all(implied(part, other, solver) for part in region)


def joined(region: Iterable[Conjunction]) -> list[Conjunction]:
    """The region with fewer conjunctions: two that differ in the values of one variable are one, again and again.

    >>> from vigilog.core.runs import axis
    >>> from vigilog.core.values import NUMBER
    >>> len(joined([Conjunction({"x": axis(NUMBER).only(n)}) for n in range(9)]))
    1
    """
    parts = list(dict.fromkeys(region))
    if len(parts) < 2:
        return parts
    names = list(parts[0].runs)
    moved = True
    while moved and len(parts) > 1:
        moved = False
        for name in reversed(names):
            groups: dict[object, list[Conjunction]] = {}
            for part in parts:
                rest = (tuple(part.runs[other].cuts for other in names if other != name), part.tests)
                groups.setdefault(rest, []).append(part)
            merged = [one for group in groups.values() for one in _together(group, name)]
            moved = moved or len(merged) < len(parts)
            parts = merged
    return parts


def _together(parts: list[Conjunction], name: str) -> list[Conjunction]:
    """Parts that differ in the values of one variable, as one; as they are, if no two of their runs touch, for then one would only be longer."""
    if len(parts) == 1:
        return parts
    whole = union([part.runs[name] for part in parts])
    if len(parts) > MOST_LOOSE and len(whole.cuts) == sum(len(part.runs[name].cuts) for part in parts):
        return parts
    return [Conjunction({**parts[0].runs, name: whole}, parts[0].tests)]
