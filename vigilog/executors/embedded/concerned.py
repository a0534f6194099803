"""Which rules a change concerns, by the constants that they want.

A rule that reads what a table gained or lost, and wants a constant in one of its columns, is found by that constant: of many rules that differ in it, only those are run for which there are rows. So what a
change costs does not depend on how many rules it does not concern.

>>> from vigilog.language.parser import parse
>>> wanted_constant(parse('p(y) :- e("a", y).').rules[0]), wanted_constant(parse('p(x) :- e(x, y), x < y, y = 7.').rules[0])
((0, Constant(value='a', type=None, unsigned=False)), (1, Constant(value=7, type=None, unsigned=False)))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from vigilog.executors.embedded.statements import Statement
from vigilog.language.syntax import Atom, Builtin, Constant, Rule, Variable

MANY = 8  # rules that want constants of one relation; for fewer it is not worth to look


def wanted_constant(rule: Rule) -> tuple[int, Constant] | None:
    """The first column of a rule's first atom that must have a constant, and the constant."""
    first = rule.body[0]
    assert isinstance(first, Atom), "it is read first"
    equal: dict[str, Constant] = {}
    for literal in rule.body:
        if isinstance(literal, Builtin) and literal.op == "=":
            for variable, value in (literal.args, literal.args[::-1]):
                if isinstance(variable, Variable) and isinstance(value, Constant):
                    equal.setdefault(variable.name, value)
    for column, arg in enumerate(first.args):
        if isinstance(arg, Constant):
            return column, arg
        if isinstance(arg, Variable) and arg.name in equal:
            return column, equal[arg.name]
    return None


@dataclass
class Concerned:
    """The statements that read one table first: those that want a constant by column and value, and the others."""

    others: list[tuple[Statement, bool]] = field(default_factory=list)
    by_constant: dict[int, dict[Any, list[tuple[Statement, bool]]]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)  # how the values of a column are asked for

    def add(self, statement: tuple[Statement, bool], wanted: tuple[int, Any] | None) -> None:
        if wanted is None:
            self.others.append(statement)
        else:
            self.by_constant.setdefault(wanted[0], {}).setdefault(wanted[1], []).append(statement)

    @property
    def many(self) -> bool:
        return sum(len(statements) for values in self.by_constant.values() for statements in values.values()) >= MANY

    def among(self, values: Iterable[tuple[int, Sequence[Any]]]) -> Iterator[tuple[Statement, bool]]:
        """The statements to run for rows that have these values in their columns."""
        yield from self.others
        for column, cells in values:
            by_value = self.by_constant[column]
            for value in cells:
                yield from by_value.get(value, ())
