"""Facts that are not ground, as messages have them: `{"args": ["x"], "where": "x >= 5, x != 6"}`; and whether an instance is one of theirs.

What engines do with conditions is in `mediators/`. A client needs only this: `covers` decides of one row whether the conditions hold.

>>> from vigilog.core.values import BUILTIN
>>> fact = Fact(("x", "y"), 'x >= 5, x != 6, !(x >= 8, x <= 9), x + 2 * y <= 20')
>>> types = (BUILTIN["number"], BUILTIN["number"])
>>> [covers(fact, types, row) for row in ((5, 1), (6, 1), (8, 1), (10, 5), (10, 6), (5, 2**62))]
[True, False, False, True, False, False]
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type, Value

Instance = Mapping[str, Value]
Term = Callable[[Instance], Any]  # None where it has no value
Condition = Callable[[Instance], bool]


class Fact(NamedTuple):
    """All rows of these columns for which the conditions hold."""

    args: tuple[str, ...]
    where: str

    def json(self) -> dict[str, Any]:
        return {"args": list(self.args), "where": self.where}


def fact_rows(args: Sequence[str], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Texts of conditions, as rows of one column, as objects."""
    return [{"args": list(args), "where": text} for (text,) in rows]


def fact_of_json(message: Any) -> Fact:
    """A fact as a message has it. Raises ValueError if it is none."""
    match message:
        case {"args": list() as args, "where": str() as where}:
            return Fact(tuple(map(str, args)), where)
        case _:
            raise ValueError(f"{json.dumps(message)} is no fact, which has args and where")


def covers(fact: Fact, types: Sequence[Type], row: Row) -> bool:
    """Whether a row is an instance of a fact. Raises DataError for conditions that this client does not know."""
    return _conditions(fact, tuple(types))(dict(zip(fact.args, row, strict=True)))


@lru_cache(maxsize=10_000)
def _conditions(fact: Fact, types: tuple[Type, ...]) -> Condition:
    reading = _Reading(fact, dict(zip(fact.args, types, strict=True)))
    condition = reading.conjunction()
    if reading.next():
        raise reading.trouble()
    return condition


_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\d+(?:\.\d+)?(?:e[+-]?\d+)?u?|[A-Za-z_?][\w?]*|<=|>=|!=|[<>=!(),+\-*/%])')
_COMPARED = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class _Reading:
    """Conditions as they are read, from left to right."""

    def __init__(self, fact: Fact, types: Mapping[str, Type]) -> None:
        self.fact, self.types, self.tokens, self.place = fact, types, list[str](), 0
        text, end = fact.where, 0
        while end < len(text.rstrip()):
            if (token := _TOKEN.match(text, end)) is None:
                raise self.trouble()
            self.tokens.append(token[1])
            end = token.end()

    def trouble(self) -> DataError:
        return DataError(f"this client cannot read the conditions {self.fact.where}", "where")

    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.next()
        if not token or (wanted and token not in wanted):
            raise self.trouble()
        self.place += 1
        return token

    def conjunction(self) -> Condition:
        conditions = [self.condition()]
        while self.next() == ",":
            self.take()
            conditions.append(self.condition())
        return lambda row: all(condition(row) for condition in conditions)

    def condition(self) -> Condition:
        if self.next() == "true" and self.place + 1 in (len(self.tokens),):
            self.take()
            return lambda row: True
        if self.next() == "!":
            self.take(), self.take("(")
            inner = self.conjunction()
            self.take(")")
            return lambda row: not inner(row)
        start = self.place
        type_ = self._type(start)
        left = self.sum(type_)
        compare = _COMPARED[self.take(*_COMPARED)]
        right = self.sum(type_)

        def holds(row: Instance) -> bool:
            one, other = left(row), right(row)
            return one is not None and other is not None and bool(compare(one, other))

        return holds

    def _type(self, start: int) -> Type:
        """The type of a comparison: that of the columns in it."""
        names = [token for token in self.tokens[start:] if token in self.types]
        if not names:
            raise self.trouble()
        return self.types[names[0]]

    def sum(self, type_: Type) -> Term:
        term = self.product(type_)
        while self.next() in ("+", "-"):
            term = _applied(self.take(), term, self.product(type_), type_)
        return term

    def product(self, type_: Type) -> Term:
        term = self.factor(type_)
        while self.next() in ("*", "/", "%"):
            term = _applied(self.take(), term, self.factor(type_), type_)
        return term

    def factor(self, type_: Type) -> Term:
        token = self.take()
        if token == "(":
            term = self.sum(type_)
            self.take(")")
            return term
        if token == "-":
            if self.next()[:1].isdigit():
                return self._constant("-" + self.take(), type_)
            return _applied("-", lambda row: 0, self.factor(type_), type_)
        if token in self.types:
            return lambda row: row[token]
        return self._constant(token, type_)

    def _constant(self, token: str, type_: Type) -> Term:
        text = re.sub(r"\\(U[0-9a-fA-F]{8}|.)", _unescaped, token[1:-1]) if token.startswith('"') else token
        try:
            value = type_.parse(text.removesuffix("u") if type_.kind == "unsigned" else text)
        except ValueError:
            raise self.trouble() from None
        return lambda row: value


def _unescaped(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)


def _applied(op: str, left: Term, right: Term, type_: Type) -> Term:
    least, most = (0, 2**64 - 1) if type_.kind == "unsigned" else (-(2**63), 2**63 - 1)

    def value(row: Instance) -> Any:
        one, other = left(row), right(row)
        if one is None or other is None or (op in "/%" and other == 0):
            return None
        match op:
            case "+":
                number = one + other
            case "-":
                number = one - other
            case "*":
                number = one * other
            case _:  # towards zero
                whole = abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1)
                number = whole if op == "/" else one - whole * other
        return number if least <= number <= most else None

    return value
