"""Conjunctions: for each variable a set of values, and tests over several. Conditions of facts are unions of them.

The law: a conjunction stands for the set of its instances, the choices of values within the runs for which all tests hold. `simplified` keeps that set; it gives None only where the set is empty, and where no test is
left, the set is not. That is this module's own normal form, for which nobody need be asked.

>>> from vigilog.core.runs import axis
>>> from vigilog.core.values import NUMBER
>>> from vigilog.mediators.tests import linear
>>> some = axis(NUMBER).between(0, 9)
>>> simpler = simplified({"x": some, "y": some}, [linear({"x": 1, "y": -1}, "<=", -9)])
>>> {name: list(runs.values()) for name, runs in simpler.runs.items()}, simpler.tests
({'x': [0], 'y': [9]}, frozenset())
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from vigilog.core.runs import Place, Runs
from vigilog.mediators.reduction import reduced, tightened
from vigilog.mediators.tests import Computed, Linear, Test, renamed

MOST_TIGHTENED = 12  # rounds in which bounds are propagated; more would be right, too, and take longer


@dataclass(frozen=True, eq=False)
class Conjunction:
    """The values of each variable, none of them empty, and tests. Every variable of a test has runs."""

    runs: Mapping[str, Runs]
    tests: frozenset[Test] = frozenset()

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What tells equal ones."""
        return (tuple(sorted((name, runs.cuts) for name, runs in self.runs.items())), self.tests)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conjunction) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def row(self) -> tuple[Place, ...] | None:
        """The places of its only instance, if each variable has one value."""
        places = tuple(runs.single for runs in self.runs.values())
        return None if self.tests or None in places else places

    def limited(self, name: str, runs: Runs) -> Conjunction | None:
        """The instances with some values of one variable."""
        kept = self.runs[name] & runs
        if not kept:
            return None
        if kept.cuts == self.runs[name].cuts:
            return self
        changed = {**self.runs, name: kept}
        return simplified(changed, self.tests) if self.tests else Conjunction(changed)

    def tested(self, *tests: Test) -> Conjunction | None:
        """The instances for which more tests hold."""
        return simplified(self.runs, [*self.tests, *tests])


def simplified(runs: Mapping[str, Runs], tests: Iterable[Test | bool]) -> Conjunction | None:
    """The conjunction, with as few tests as can be seen easily; None if it is seen to be empty."""
    if not all(runs.values()):
        return None
    values, left = dict(runs), list(tests)
    for _ in range(MOST_TIGHTENED if left else 0):
        kept: dict[Test, None] = {}
        moved = False
        for test in left:
            simpler = test if isinstance(test, bool) else reduced(test, values)
            if isinstance(simpler, Linear):
                bounds = tightened(simpler, values)
                if isinstance(bounds, bool):
                    simpler = bounds
                elif bounds:
                    values.update(bounds)
                    moved = True
                    if not all(bounds.values()):
                        return None
            match simpler:
                case bool():
                    if not simpler:
                        return None
                case (name, some):
                    values[name] &= some
                    moved = True
                    if not values[name]:
                        return None
                case Linear() | Computed():
                    if simpler.complement() in kept:
                        return None
                    kept[simpler] = None
        left = list(kept)
        if not moved:
            break
    return Conjunction(values, frozenset(test for test in left if not isinstance(test, bool)))


def meet(one: Conjunction, other: Conjunction) -> Conjunction | None:
    """The instances of both; a variable of one alone is any value for the other."""
    runs = dict(one.runs)
    for name, some in other.runs.items():
        runs[name] = runs[name] & some if name in runs else some
        if not runs[name]:
            return None
    tests = one.tests | other.tests
    return simplified(runs, tests) if tests else Conjunction(runs)


def with_names(part: Conjunction, names: Mapping[str, str]) -> Conjunction | None:
    """The conjunction with other names for its variables; those that get the same name have the same value."""
    runs: dict[str, Runs] = {}
    merged = False
    for name, some in part.runs.items():
        other = names.get(name, name)
        merged = merged or other in runs
        runs[other] = runs[other] & some if other in runs else some
        if not runs[other]:
            return None
    tests = [renamed(test, names) for test in part.tests]
    return simplified(runs, tests) if tests or merged else Conjunction(runs)
