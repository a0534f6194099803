"""z3, for conjunctions that have tests. It is imported when the first of them is to be solved.

There is one solver: variables and what bounds them are asserted between push and pop, so a check costs a fraction of a millisecond. Places are integers. Texts are numbered: constants in their order, between two of
them as many numbers as there are texts, or more than there are variables; for order and equality that is the same. What z3 does not find out in time is *unknown*, which raises: it is never taken for false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vigilog.core.errors import DataError
from vigilog.core.extras import Extra
from vigilog.core.runs import NEXT, Place, Runs, axis
from vigilog.language.syntax import Aggregate, Constant, Functor, Term, Variable, Wildcard
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.tests import Computed, Linear, Test

Z3 = Extra("the solver z3", "vigilog[mediators]", ("z3",))
SECONDS = 10.0

Expression = Any  # of z3, which has no types


class Unsolved(DataError):
    """A condition that the solver could not decide in time."""

    code = "unsolved"


@dataclass
class Solver:
    """Decides conjunctions, and counts how. It is made once, and asks z3 from its first conjunction with tests on."""

    seconds: float = SECONDS
    own: int = 0  # decided by the normal form alone
    asked: int = 0  # decided by z3
    _solver: Any = field(default=None, repr=False)

    def solvable(self, part: Conjunction | None) -> bool:
        """Whether a conjunction has an instance."""
        if part is None or not part.tests:
            self.own += 1
            return part is not None
        return self.instance(part) is not None

    def instance(self, part: Conjunction) -> dict[str, Place] | None:
        """The places of one instance; None if there is none."""
        if not part.tests:
            self.own += 1
            return {name: runs.least for name, runs in part.runs.items()}
        self.asked += 1
        z3, solver = self._ready()
        wanted = {name for test in part.tests for name in test.names}
        texts = _Texts({name: part.runs[name] for name in wanted})
        names = {name: z3.Int(name) for name in wanted}
        solver.push()
        try:
            for name in wanted:
                solver.add(inside(z3, names[name], part.runs[name], texts.number))
            for test in part.tests:
                solver.add(stated(z3, test, names))
            answer = solver.check()
            if answer == z3.unknown:
                shown = ", ".join(sorted(wanted))
                raise Unsolved(
                    f"the solver found no answer within {self.seconds:g} s for a condition on {shown}: {solver.reason_unknown()}"
                )
            if answer == z3.unsat:
                return None
            model = solver.model()
            places = {name: runs.least for name, runs in part.runs.items()}
            places |= {name: texts.place(name, model.eval(names[name], model_completion=True).as_long()) for name in wanted}
            return places
        finally:
            solver.pop()

    def _ready(self) -> tuple[Any, Any]:
        Z3.need("a condition concerns several columns")
        import z3

        if self._solver is None:
            self._solver = z3.SolverFor("QF_LIA")
            self._solver.set("timeout", int(self.seconds * 1000))
        return z3, self._solver


def inside(z3: Any, name: Expression, runs: Runs, number: Callable[[Place], int]) -> Expression:
    """That a variable has one of its values."""
    ways = []
    for run in runs.intervals():
        start, *end = run.cuts
        ways.append(z3.And(name >= number(start), *[name < number(cut) for cut in end]))
    if runs.axis.most is not None and len(runs.cuts) % 2:
        ways[-1] = z3.And(ways[-1], name <= runs.axis.most)
    return z3.Or(*ways)


def stated(z3: Any, test: Test, names: Mapping[str, Expression]) -> Expression:
    """A test, as z3 has it."""
    match test:
        case Linear():
            total = z3.Sum([factor * names[name] for name, factor in test.terms])
            return {"<=": total <= test.bound, "=": total == test.bound, "!=": total != test.bound}[test.op]
        case Computed():
            guards: list[Expression] = []
            left, right = (_value(z3, side, names, guards) for side in (test.left, test.right))
            compared = {
                "=": left == right,
                "!=": left != right,
                "<": left < right,
                "<=": left <= right,
                ">": left > right,
                ">=": left >= right,
            }
            whole = z3.And(compared[test.op], *guards)
            return whole if test.positive else z3.Not(whole)


def _value(z3: Any, term: Term, names: Mapping[str, Expression], guards: list[Expression]) -> Expression:
    """A term; every computed one is within its type, and division truncates."""
    match term:
        case Variable():
            return names[term.name]
        case Constant():
            return z3.IntVal(term.value)
        case Functor():
            assert term.type is not None, "checked programs are typed"
            args = [_value(z3, arg, names, guards) for arg in term.args]
            match term.name, args:
                case "+", [left, right]:
                    expression = left + right
                case "-", [left, right]:
                    expression = left - right
                case "neg", [only]:
                    expression = -only
                case "*", [left, right]:
                    expression = left * right
                case "/" | "%", [left, right]:
                    divisor = term.args[1]
                    assert isinstance(divisor, Constant) and isinstance(divisor.value, int), "checked: conditions are linear"
                    if divisor.value == 0:
                        guards.append(z3.BoolVal(False))
                        return z3.IntVal(0)
                    size = abs(divisor.value)
                    towards = z3.If(left >= 0, left / size, -((-left) / size))
                    quotient = towards if divisor.value > 0 else -towards
                    expression = quotient if term.name == "/" else left - quotient * divisor.value
                case _:
                    raise AssertionError("checked: conditions are linear")
            line = axis(term.type)
            guards.append(z3.And(expression >= line.least, expression <= line.most))
            return expression
        case Wildcard() | Aggregate():
            raise AssertionError("conditions have no aggregates and no wildcards")


class _Texts:
    """Numbers for the texts that occur, so that each order of the variables among them is possible that is possible for texts."""

    def __init__(self, runs: Mapping[str, Runs]) -> None:
        texts = {name: some for name, some in runs.items() if some.axis.most is None}
        self.names = set(texts)
        self.room = len(texts) + 1
        self.numbers = {"": 0} if texts else {}
        last = ""
        for text in sorted({cut for some in texts.values() for cut in some.cuts} - {""}):
            steps = len(text) - len(last)
            near = text == last + NEXT * steps
            self.numbers[text] = self.numbers[last] + (min(steps, self.room) if near else self.room)
            last = text

    def number(self, place: Place) -> int:
        return self.numbers[place] if isinstance(place, str) else place

    def place(self, name: str, number: int) -> Place:
        """A place with a number: a text not far behind the last constant before it."""
        if name not in self.names:
            return number
        text, start = max(((text, at) for text, at in self.numbers.items() if at <= number), key=lambda constant: constant[1])
        return text + NEXT * (number - start)


def solutions(region: Iterable[Conjunction], solver: Solver) -> list[Conjunction]:
    """Those that have instances."""
    return [part for part in region if solver.solvable(part)]
