"""A view of constrained relations, with updates, as tests drive it: a program's text, transactions, and what each changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from vigilog.language.check import check
from vigilog.mediators.canonical import canonical
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import parsed_where, where
from vigilog.mediators.fitted import fitting
from vigilog.mediators.program import Mediated, mediated
from vigilog.mediators.recompute import Recomputed
from vigilog.mediators.sets import Sets
from vigilog.mediators.solver import Solver
from vigilog.mediators.straight import Straight
from vigilog.mediators.updates import Update, decided
from vigilog.mediators.view import Algorithm, Change, Fact, Program

ALGORITHMS: dict[str, Callable[[Program, Solver, Change], Algorithm]] = {
    "straight": Straight,
    "dred": Sets,
    "recompute": Recomputed,
    "fitted": fitting,
    "a as a set": partial(fitting, sets=("a", "q")),
    "all but one as sets": partial(fitting, sets=("b", "c", "f", "e", "p", "r")),
}


class View:
    def __init__(self, text: str, algorithm: str) -> None:
        self.mediated: Mediated = mediated(check(text).program)
        self.solver = Solver()
        self.updates: dict[str, list[Update]] = {}
        self.algorithm = ALGORITHMS[algorithm](
            Program(self.mediated.clauses), self.solver, Change(out={name: [] for name in self.mediated.updates})
        )
        self.number = 0

    def said(self, relation: str, fact: Any) -> list[Conjunction]:
        columns = self.mediated.columns(relation)
        if isinstance(fact, dict):
            return parsed_where(fact["where"], columns)
        return parsed_where(", ".join(f"{column} = {value}" for column, value in zip(columns, fact, strict=True)) or "true", columns)

    def take(self, transaction: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, dict[str, list[str]]]:
        """The texts of what each relation gained and lost."""
        touched: dict[str, None] = {}
        for operation in ("delete", "insert"):
            for relation, facts in transaction.get(operation, {}).items():
                touched[relation] = None
                for fact in facts:
                    self.number += 1
                    self.updates.setdefault(relation, []).append(
                        Update(self.number, operation == "insert", tuple(self.said(relation, fact)))
                    )
        return self.changed(touched)

    def withdraw(self, numbers: Sequence[int]) -> dict[str, dict[str, list[str]]]:
        touched = [relation for relation, known in self.updates.items() if any(one.number in numbers for one in known)]
        self.gone = {relation: [one for one in self.updates[relation] if one.number in numbers] for relation in touched}
        for relation in touched:
            self.updates[relation] = [one for one in self.updates[relation] if one.number not in numbers]
        return self.changed(touched, {relation: {(one.number,): [] for one in gone if one.insert} for relation, gone in self.gone.items()})

    def changed(self, relations: Any, withdrawn: Any = None) -> dict[str, dict[str, list[str]]]:
        change = Change()
        for relation in relations:
            came, change.out[relation] = decided(self.updates[relation], self.solver)
            stated: dict[Fact, list[Conjunction]] = {
                (one.number,): came.get(one.number, []) for one in self.updates[relation] if one.insert
            }
            change.stated[relation] = {**(withdrawn or {}).get(relation, {}), **stated}
        found = self.algorithm.change(change)
        self.algorithm.keep()
        return {name: {"plus": self.texts(one.plus), "minus": self.texts(one.minus)} for name, one in found.items()}

    def texts(self, region: Sequence[Conjunction]) -> list[str]:
        return [where(part) for part in canonical(region, self.solver)]

    def region(self, relation: str) -> list[str]:
        return self.texts(self.algorithm.region(relation))
