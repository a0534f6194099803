"""Aggregates over sets as functions that SQL calls: from a set, and parameters, to the result, or to the set of results where there may be several."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vigilog.core.sets import Set
from vigilog.core.values import Type, Value, set_type, tuple_type
from vigilog.language.printer import show_statement, show_term
from vigilog.language.solving import outcomes
from vigilog.language.syntax import Builtin, Term, Usage


@dataclass(frozen=True)
class Applied:
    """A literal that applies an aggregate to a set."""

    literal: Builtin
    use: Usage

    @property
    def single(self) -> bool:
        """Whether there is at most one result; rules may give several."""
        return self.literal.definition is None or bool(self.literal.definition.python)

    @property
    def types(self) -> tuple[Type, ...]:
        return tuple(map(_type, self.use.given))

    @cached_property
    def element(self) -> Type:
        """The type of a result."""
        types = tuple(map(_type, self.use.results))
        return types[0] if len(types) == 1 else tuple_type(*types)

    @property
    def type(self) -> Type:
        """The type of what the function gives."""
        return self.element if self.single else set_type(self.element)

    @cached_property
    def name(self) -> str:
        """A name for the function that no other one has."""
        definition = self.literal.definition
        text = [self.literal.op, *map(str, (*self.types, self.type)), show_term(self.use.component) if self.use.component else ""]
        if definition is not None:
            text += [show_statement(definition), definition.text, *map(show_statement, definition.rules)]
        return f"v_{self.literal.op}_{hashlib.sha256(chr(0).join(text).encode()).hexdigest()[:12]}"

    def compute(self, given: Sequence[Any]) -> Value | None:
        """The value of the function; None if there is no result."""
        rows = list(outcomes(self.literal, self.use, list(given)))
        if not rows:
            return None
        cells: list[Any] = [row[0] if len(row) == 1 else row for row in rows]
        return cells[0] if self.single else Set(cells)


def _type(term: Term) -> Type:
    assert term.type is not None, "checked programs are typed"
    return term.type
