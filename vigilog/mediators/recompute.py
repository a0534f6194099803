"""Recomputing: the view is computed anew, and compared with the one before. Slow, and the measure of the others."""

from __future__ import annotations

from collections.abc import Iterator

from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.regions import minus
from vigilog.mediators.sets import Sets
from vigilog.mediators.solver import Solver
from vigilog.mediators.view import Change, Difference, Fact, Program, Work


class Recomputed:
    """A view that is computed anew at every change."""

    name = "recompute"

    def __init__(self, program: Program, solver: Solver, start: Change) -> None:
        self.program, self.solver, self.work = program, solver, Work()
        self.before = self.now = Sets(program, solver, start)

    def change(self, change: Change) -> dict[str, Difference]:
        stated: dict[str, dict[Fact, list[Conjunction]]] = {relation: dict(facts) for relation, facts in self.now.stated.items()}
        for relation, facts in change.stated.items():
            stated.setdefault(relation, {}).update(facts)
        self.now = Sets(self.program, self.solver, Change(stated, {**self.now.out, **change.out}))
        self.work = Work(touched=len(self.now.atoms.by_number))
        relations = dict.fromkeys([*self.before.atoms.of, *self.now.atoms.of])
        pairs = ((relation, self.before.region(relation), self.now.region(relation)) for relation in relations)
        differences = {relation: Difference(minus(new, old, self.solver), minus(old, new, self.solver)) for relation, old, new in pairs}
        return {relation: difference for relation, difference in differences.items() if difference}

    def region(self, relation: str) -> list[Conjunction]:
        return self.now.region(relation)

    def near(self, relation: str, part: Conjunction) -> Iterator[Conjunction]:
        return self.now.near(relation, part)

    def keep(self) -> None:
        self.before = self.now

    def undo(self) -> None:
        self.now = self.before
