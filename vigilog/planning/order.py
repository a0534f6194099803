"""Which atom to join next.

A join starts at the recent rows, if there are any, or at the smallest relation, and goes outwards along columns that are bound already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from vigilog.language.syntax import Atom, Literal, Variable, Wildcard

UNKNOWN_ROWS = 1000


@dataclass(frozen=True)
class Search:
    """A look into a relation by some of its columns: what an index is for."""

    relation: str
    columns: frozenset[int]


def cheapest(
    atoms: Sequence[tuple[int, Literal]], bound: Collection[str], rows: Mapping[str, int], distinct: Mapping[str, Sequence[float]]
) -> tuple[int, Atom]:
    """The atom that is expected to give the fewest rows for each binding so far; the first of equals. One that shares nothing with what is bound comes last."""

    def cost(entry: tuple[int, Literal]) -> tuple[bool, float]:
        atom = entry[1]
        assert isinstance(atom, Atom)
        apart = bool(bound) and all(isinstance(arg, Wildcard) or (isinstance(arg, Variable) and arg.name not in bound) for arg in atom.args)
        return apart, fanout(atom, bound, rows.get(atom.relation, UNKNOWN_ROWS), distinct.get(atom.relation, ()))

    index, atom = min(atoms, key=cost)
    assert isinstance(atom, Atom)
    return index, atom


def fanout(atom: Atom, bound: Collection[str], rows: int, distinct: Sequence[float] = ()) -> float:
    """How many rows of a relation match a binding, if values are spread evenly; without the numbers of distinct values in its columns, if each column divides the rows evenly.

    >>> from vigilog.language.parser import parse
    >>> atom = parse("p(x) :- q(x, y).").rules[0].body[0]
    >>> fanout(atom, set(), 10000), fanout(atom, {"x"}, 10000), fanout(atom, {"x", "y"}, 10000)
    (10000.0, 100.0, 1.0)
    >>> fanout(atom, {"x"}, 10000, (10000, 50)), fanout(atom, {"y"}, 10000, (10000, 50))
    (1.0, 200.0)
    """
    free = [isinstance(arg, Wildcard) or (isinstance(arg, Variable) and arg.name not in bound) for arg in atom.args]
    if distinct:
        return rows / prod(values for values, open_ in zip(distinct, free, strict=True) if not open_)
    return float(pow(float(max(rows, 1)), sum(free) / len(free) if free else 0.0))
