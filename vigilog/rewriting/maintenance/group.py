"""A group of bindings that are aggregated: what is kept of it, how that changes, and the values it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vigilog.core.values import Type, Value
from vigilog.language import accumulators, functors
from vigilog.language.syntax import Atom, Builtin, Constant, Declaration, Functor, Rule, Term, Variable

EXTREMES: Mapping[str, Callable[..., Any]] = {"min": min, "max": max}
Cells = tuple[Any, ...]


@dataclass(frozen=True)
class Part:
    """What is kept of a column of the bindings: an exact sum (`accumulators.py`), or the least or the greatest value."""

    op: str
    column: int
    type: Type


@dataclass(frozen=True)
class Shown:
    """An aggregate: the variable that gets its value, and the part that it is found from; `count` needs none."""

    variable: Variable
    op: str
    type: Type
    part: int | None


@dataclass(frozen=True)
class Group:
    """Aggregates of one rule over the same bindings, `rows`, whose first columns, `keys`, are the group's. If rows are `own`, they are kept, too.

    `state` has, for each group, the number of its bindings and its parts; `aux` the values that rules read, where they exist and pass the `tests`.
    """

    rows: Declaration
    aux: Declaration
    state: Declaration
    definition: Rule  # of `aux`, by all bindings
    keys: int
    parts: tuple[Part, ...]
    shown: tuple[Shown, ...]
    read: tuple[int, ...]  # which of the values rules read
    tests: tuple[Builtin, ...]
    bound: tuple[str, ...]  # the variables whose values the columns of `rows` are
    source: Atom | None  # the atom whose rows are the bindings, if that is all there is to them
    own: bool
    asked: bool  # whether a rule asks if a group is empty

    @property
    def looked_up(self) -> bool:
        """Whether an extreme that leaves has to be looked up."""
        return any(part.op in EXTREMES for part in self.parts)

    @property
    def kept(self) -> tuple[Declaration, ...]:
        return (self.aux, self.state, *((self.rows,) if self.own else ()))

    def gathered(self, bindings: Sequence[Cells]) -> Cells:
        """The state of a group that has these bindings, each told by the values of all parts."""
        if len(bindings) == 1:
            return (1, *map(_alone, self.parts, bindings[0]))
        found: list[Any] = [len(bindings)]
        for place, part in enumerate(self.parts):
            cells = [row[place] for row in bindings]
            if part.op == "sum":
                units, type_ = accumulators.units, part.type
                found.append(accumulators.written(type_, sum([units(type_, cell) for cell in cells])))
            else:
                found.append(EXTREMES[part.op](cells))
        return tuple(found)

    def after(self, state: Cells | None, gone: Cells | None, came: Cells | None, look_up: Callable[[int], Any]) -> Cells | None:
        """The state of a group after bindings have gone and come, each of them given as the state of a group; None for an empty one. `look_up` finds the extreme of a part when the one before has left."""
        if state is None and gone is None:
            return came
        assert state is not None, "what goes was there"
        number = state[0] - (gone[0] if gone else 0) + (came[0] if came else 0)
        if not number:
            return None
        found: list[Any] = [number]
        for place, part in enumerate(self.parts, start=1):
            before, less, more = state[place], gone and gone[place], came and came[place]
            if part.op == "sum":
                read = accumulators.read
                total = read(before) - (read(less) if less else 0) + (read(more) if more else 0)
                found.append(accumulators.written(part.type, total))
            elif came is not None and EXTREMES[part.op](more, before) == more:
                found.append(more)
            else:
                found.append(look_up(place - 1) if gone is not None and less == before else before)
        return tuple(found)

    def values(self, state: Cells | None) -> Cells | None:
        """The values of a group that rules read; None if one is undefined, or does not pass a test."""
        if state is None:
            return None
        found = [state[0] if shown.part is None else self._value(shown, state, shown.part) for shown in self.shown]
        if None in found:
            return None
        if self.tests:
            known = {shown.variable.name: value for shown, value in zip(self.shown, found, strict=True)}
            if not all(_passes(test, known) for test in self.tests):
                return None
        return tuple([found[place] for place in self.read])

    def _value(self, shown: Shown, state: Cells, place: int) -> Any:
        part, kept = self.parts[place], state[1 + place]
        if part.op != "sum":
            return kept
        total = accumulators.read(kept)
        return accumulators.sum_of(shown.type, total) if shown.op == "sum" else accumulators.mean_of(part.type, total, state[0])

    def states(self, rows: Iterable[Cells]) -> dict[Cells, Cells]:
        """The states of all groups, by all bindings."""
        found: dict[Cells, list[Cells]] = {}
        for row in rows:
            found.setdefault(row[: self.keys], []).append(tuple([row[part.column] for part in self.parts]))
        return {key: self.gathered(bindings) for key, bindings in found.items()}


def _alone(part: Part, cell: Any) -> Any:
    """What is kept of a single value."""
    return accumulators.written(part.type, accumulators.units(part.type, cell)) if part.op == "sum" else cell


def _passes(test: Builtin, known: Mapping[str, Value]) -> bool:
    args = [_term(arg, known) for arg in test.args]
    return None not in args and bool(functors.test(test.op, args))


def _term(term: Term, known: Mapping[str, Value]) -> Any:
    match term:
        case Variable():
            return known[term.name]
        case Constant():
            return term.value
        case Functor():
            args = [_term(arg, known) for arg in term.args]
            assert term.type is not None, "checked programs are typed"
            return None if None in args else functors.apply(term.name, term.type, [a.type for a in term.args if a.type], args)
        case _:
            raise AssertionError("a test of values has neither `_` nor aggregates")
