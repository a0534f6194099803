"""Clauses: rules of constrained relations, as T_P applies them.

A clause has a head, atoms, and conditions (its Ξ₀). Applied to regions for its atoms it gives the region of its head: everything conjoined, and the variables that only the body has eliminated.

>>> from vigilog.language.check import check
>>> from vigilog.mediators.facts import parsed_where, where
>>> from vigilog.mediators.program import mediated
>>> text = ".decl b(x: number, z: number) constrained .decl f(x: number) constrained f(x) :- b(x, z), z <= x."
>>> some = mediated(check(text).program)
>>> fact = parsed_where("x >= 0, z >= 5, z <= 6", some.columns("b"))
>>> [where(part) for part in some.clauses[0].applied([fact], Solver())]
['x >= 5']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from vigilog.core.runs import Runs, axis
from vigilog.core.values import Value
from vigilog.language.syntax import Atom, Constant, Rule, Variable
from vigilog.mediators.conditions import conjunction
from vigilog.mediators.conjunction import Conjunction, meet, with_names
from vigilog.mediators.eliminate import projected
from vigilog.mediators.forms import Known
from vigilog.mediators.solver import Solver
from vigilog.mediators.tests import linear

Columns = tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """An atom of a clause: for each column the variable, or the constant, that stands there."""

    relation: str
    columns: Columns
    args: tuple[Variable | Constant | None, ...]  # None where any value will do

    @cached_property
    def names(self) -> dict[str, str]:
        return {column: arg.name for column, arg in zip(self.columns, self.args, strict=True) if isinstance(arg, Variable)}

    @cached_property
    def fixed(self) -> list[tuple[str, Runs]]:
        return [
            (column, axis(arg.type).only(arg.value))
            for column, arg in zip(self.columns, self.args, strict=True)
            if isinstance(arg, Constant) and arg.type
        ]

    def matched(self, fact: Conjunction) -> Conjunction | None:
        """A fact of the relation, over the clause's variables; columns that nothing names are left out later."""
        part: Conjunction | None = fact
        for column, value in self.fixed:
            part = part and part.limited(column, value)
        if part is None:
            return None
        spare = {
            column: f"{self.relation}.{column}"
            for column, arg in zip(self.columns, self.args, strict=True)
            if not isinstance(arg, Variable)
        }
        return with_names(part, {**self.names, **spare})


@dataclass(frozen=True)
class Clause:
    """`number` is what supports call it: its place among the rules as the user wrote them, from 1 on."""

    number: int
    head: Pattern
    body: tuple[Pattern, ...]
    constraints: tuple[Known, ...]
    variables: dict[str, Runs] = field(hash=False)  # all values of each
    rule: Rule = field(compare=False, repr=False)
    place: int = field(default=-1, compare=False)  # among the clauses of its program

    @cached_property
    def start(self) -> Conjunction | None:
        """The conditions alone; None if they have no solution."""
        return conjunction(self.constraints, self.variables)

    def applied(self, regions: Sequence[Sequence[Conjunction]], solver: Solver) -> list[Conjunction]:
        """The region of the head, for one region for each atom of the body."""
        parts: list[Conjunction] = []
        if self.start is not None:
            for whole in self._met(self.start, 0, regions):
                if solver.solvable(whole):
                    parts += self.concluded(whole, solver)
        return parts

    def _met(self, so_far: Conjunction, index: int, regions: Sequence[Sequence[Conjunction]]) -> Iterator[Conjunction]:
        if index == len(self.body):
            yield so_far
            return
        for fact in regions[index]:
            matched = self.body[index].matched(fact)
            if matched is not None and (more := meet(so_far, matched)) is not None:
                yield from self._met(more, index + 1, regions)

    def concluded(self, whole: Conjunction, solver: Solver) -> list[Conjunction]:
        """The head's facts, of a conjunction of the body."""
        wanted = {arg.name for arg in self.head.args if isinstance(arg, Variable)}
        return [fact for part in projected(whole, wanted, solver) for fact in self._headed(part)]

    def _headed(self, part: Conjunction) -> Iterator[Conjunction]:
        runs: dict[str, Runs] = {}
        names: dict[str, str] = {}
        equal: list[Known] = []
        for column, arg in zip(self.head.columns, self.head.args, strict=True):
            match arg:
                case Variable() if arg.name not in names:
                    names[arg.name] = column
                    runs[column] = part.runs[arg.name]
                case Variable():
                    runs[column] = part.runs[arg.name]
                    equal.append(linear({column: 1, names[arg.name]: -1}, "=", 0))
                case Constant() if arg.type is not None:
                    runs[column] = axis(arg.type).only(arg.value)
                case _:
                    raise AssertionError("a head has variables and constants")
        named = with_names(part, names)
        assert named is not None, "names of their own change nothing"
        head = conjunction([*named.tests, *equal], runs)
        if head is not None:
            yield head


def fact_of(columns: Columns, types: Sequence[Runs], row: Sequence[Value]) -> Conjunction:
    """A row as a fact."""
    return Conjunction({column: every.axis.only(value) for column, every, value in zip(columns, types, row, strict=True)})


def pattern(atom: Atom, columns: Columns) -> Pattern:
    return Pattern(atom.relation, columns, tuple(arg if isinstance(arg, Variable | Constant) else None for arg in atom.args))
