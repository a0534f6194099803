"""What the algorithms share: a program of clauses with its stated facts, and what a change of these is.

The view of a program is the least set of instances closed under its clauses, where a clause of relation r derives nothing in `out[r]`. An algorithm keeps such a view, and takes changes of what is stated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from vigilog.mediators.clauses import Clause
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.regions import Region

Fact = tuple[object, ...]  # what states an atom: a row of a relation, or the number of an update


@dataclass(frozen=True)
class Program:
    """Clauses, and how they hang together."""

    clauses: tuple[Clause, ...]

    def of(self, relations: Collection[str]) -> list[Clause]:
        return [clause for clause in self.clauses if clause.head.relation in relations]

    def uses(self, relation: str) -> list[tuple[Clause, int]]:
        return [(clause, index) for clause in self.clauses for index, part in enumerate(clause.body) if part.relation == relation]


@dataclass
class Change:
    """What is stated differently: for each relation the facts that came, grew or shrank, by what states them, an empty region being none; and what is out now, where that is new."""

    stated: dict[str, dict[Fact, list[Conjunction]]] = field(default_factory=dict)
    out: dict[str, list[Conjunction]] = field(default_factory=dict)


@dataclass
class Work:
    """What an algorithm did: how many atoms it touched, and derived again."""

    touched: int = 0
    rederived: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(self.touched + other.touched, self.rederived + other.rederived)


@dataclass(frozen=True)
class Difference:
    """The instances that a relation gained and lost. They are disjoint, and exact."""

    plus: Region = ()
    minus: Region = ()

    def __bool__(self) -> bool:
        return bool(self.plus or self.minus)


class Algorithm(Protocol):
    """Keeps a view."""

    name: str
    work: Work

    def change(self, change: Change) -> dict[str, Difference]:
        """Takes a change; gives what each relation gained and lost, for those that did."""

    def region(self, relation: str) -> list[Conjunction]: ...

    def near(self, relation: str, part: Conjunction) -> Iterable[Conjunction]:
        """The conjunctions of a relation that may have instances in common with one."""

    def keep(self) -> None:
        """The last change stays."""

    def undo(self) -> None:
        """The last change has not happened."""


def recursive(program: Program) -> set[str]:
    """The relations that depend on themselves."""
    needs: dict[str, set[str]] = {}
    for clause in program.clauses:
        needs.setdefault(clause.head.relation, set()).update(part.relation for part in clause.body)
    relations = set()
    for start in needs:
        seen: set[str] = set()
        todo = list(needs[start])
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += needs.get(name, ())
        if start in seen:
            relations.add(start)
    return relations
