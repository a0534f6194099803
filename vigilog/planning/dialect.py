"""What differs between the two SQLs: how a functor, a test, an aggregate or a constant is written.

Everything else, the shape of a SELECT, is the same and built by `select.py`. An expression is NULL exactly where its
functor is undefined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from vigilog.core.values import Type, Value

if TYPE_CHECKING:
    from vigilog.planning.applied import Applied

Sql = exp.Expr
Parameters = Mapping[str, str | float]


class Dialect(Protocol):
    name: str
    counts_itself: bool  # whether `counted` counts, so that no statement need do it
    correlates: bool  # whether a subquery may use the rows around it, freely and at every depth

    def constant(self, value: Value, type_: Type) -> Sql:
        """A constant as a literal; symbols and floats are passed as parameters instead where that is possible."""

    def functor(self, name: str, type_: Type, arg_types: Sequence[Type], args: Sequence[Sql]) -> Sql: ...

    def test(self, op: str, args: Sequence[Sql], types: Sequence[Type]) -> Sql: ...

    def component(self, sql: Sql, type_: Type, place: int) -> Sql:
        """A component of a tuple, from 0."""

    def applied(self, applied: Applied, args: Sequence[Sql]) -> Sql:
        """An aggregate over a set."""

    def members(self, sql: Sql, element: Type) -> Sql:
        """A set as what its elements are read from: a table with a column `value` where subqueries are correlated, else an expression that gives rows."""

    def member(self, sql: Sql, element: Type) -> Sql:
        """The value of an element, from such a column."""

    def aggregate(self, op: str, type_: Type, target_type: Type | None, target: Sql | None) -> Sql:
        """The aggregate over the rows of a SELECT."""

    def finish(self, op: str, type_: Type, target_type: Type | None, result: Sql) -> Sql:
        """What remains to be done with the subquery's value, outside it."""

    def listed(self, op: str, target_type: Type | None) -> bool:
        """Whether a subquery's value is a list, which is finished group by group: a join would repeat it, and the work, for each binding."""

    def sought(self, pairs: Sequence[tuple[Sql, Sql, Type]]) -> list[Sql]:
        """Conditions that all pairs, of some type each, are equal, where many tuples are sought in a large table at once."""

    def staged(self, inner: exp.Select) -> exp.Select:
        """A SELECT as it must be to be read by another one that uses its aggregates more than once."""

    def opaque(self, sql: Sql) -> bool:
        """Whether an expression must be computed before a subquery can use it."""

    def counted(self, guard: Sql) -> Sql:
        """A guard (`e IS NOT NULL`) that also counts the cases in which it is false, if this dialect can."""


COMPARISONS: dict[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}


def call(name: str, *args: Sql | int | str) -> Sql:
    """A function call that every dialect writes the same way."""
    return exp.Anonymous(this=name, expressions=[_literal(arg) for arg in args])


def paren(sql: Sql) -> Sql:
    return (
        sql
        if isinstance(sql, exp.Column | exp.Literal | exp.Anonymous | exp.Paren | exp.Subquery | exp.Placeholder)
        else exp.Paren(this=sql)
    )


def binary(kind: type[exp.Binary], left: Sql, right: Sql) -> Sql:
    return kind(this=paren(left), expression=paren(right))


def integer(value: int) -> Sql:
    literal = exp.Literal.number(abs(value))
    return exp.Paren(this=exp.Neg(this=literal)) if value < 0 else literal


def case(condition: Sql, then: Sql, otherwise: Sql | None = None) -> Sql:
    return exp.Case(ifs=[exp.If(this=condition, true=then)], default=otherwise)


def conjunction(parts: Sequence[Sql]) -> Sql | None:
    return exp.and_(*parts) if parts else None


def is_null(sql: Sql) -> Sql:
    return exp.Is(this=paren(sql), expression=exp.Null())


def defined(sql: Sql) -> Sql:
    return exp.Not(this=is_null(sql))


def _literal(arg: Sql | int | str) -> Sql:
    if isinstance(arg, int):
        return integer(arg)
    return exp.Literal.string(arg) if isinstance(arg, str) else arg
