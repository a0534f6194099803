"""Views of constrained relations, of the shapes and sizes that are measured: many of a kind beside each other, so that what depends on one atom is the same whatever their number is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from vigilog.core.runs import axis
from vigilog.core.values import NUMBER, Row
from vigilog.language.check import check
from vigilog.mediators.clauses import fact_of
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.program import mediated
from vigilog.mediators.solver import Solver
from vigilog.mediators.view import Algorithm, Change, Program

REACH = """
.decl start(x: number)
.decl edge(x: number, y: number)
.decl reach(x: number) constrained
reach(x) :- start(x).
reach(y) :- reach(x), edge(x, y).
"""
LEVELS = 10
LAYERS = (
    ".decl left(k: number, x: number) constrained\n.decl right(k: number, x: number) constrained\n"
    ".decl l(k: number)\n.decl r(k: number)\n"
    + "".join(f".decl a{level}(k: number, x: number) constrained\n" for level in range(LEVELS))
    + "left(k, x) :- l(k), x >= 0, x <= 100.\nright(k, x) :- r(k), x >= 0, x <= 100.\na0(k, x) :- left(k, x).\na0(k, x) :- right(k, x).\n"
    + "".join(f"a{level}(k, x) :- a{level - 1}(k, x).\n" for level in range(1, LEVELS))
)


@dataclass(frozen=True)
class Piece:
    """What a shape consists of: edges between a few nodes, from node 0 on, and how many supports come of it."""

    nodes: int
    edges: tuple[tuple[int, int], ...]
    supports: int


CHAIN = Piece(11, tuple((node, node + 1) for node in range(10)), 11)
TREE = Piece(15, tuple((node, child) for node in range(7) for child in (2 * node + 1, 2 * node + 2)), 15)
GRID = Piece(9, tuple((node, node + 1) for node in range(9) if node % 3 < 2) + tuple((node, node + 3) for node in range(6)), 19)
HOMES = {"start": "reach_body_1", "edge": "reach_body_2", "l": "left_body_1", "r": "right_body_1"}
PIECES = {"chains": CHAIN, "trees": TREE, "grids": GRID}


class View:
    """A view over rows of ordinary relations, kept by an algorithm."""

    def __init__(self, text: str, algorithm: Callable[[Program, Solver, Change], Algorithm], facts: dict[str, Iterable[Row]]) -> None:
        parts = mediated(check(text).program)
        self.columns = {part.relation: part.columns for clause in parts.clauses for part in clause.body if part.relation in parts.read}
        change = Change()
        for relation, rows in facts.items():
            change.stated[self.home(relation)] = {row: [self.fact(relation, row)] for row in rows}
        self.solver = Solver()
        self.algorithm = algorithm(Program(parts.clauses), self.solver, change)

    def home(self, relation: str) -> str:
        """What clauses read of an ordinary relation: that of the ordinary part of a body, which here is an atom of its own."""
        return HOMES[relation]

    def fact(self, relation: str, row: Row) -> Conjunction:
        columns = self.columns[self.home(relation)]
        return fact_of(columns, [axis(NUMBER).all for _ in columns], row)

    def put(self, relation: str, row: Row, *, there: bool) -> int:
        """A row comes or goes; gives how many relations it changes."""
        found = self.algorithm.change(Change({self.home(relation): {row: [self.fact(relation, row)] if there else []}}))
        self.algorithm.keep()
        return len(found)


def timed(turn: Callable[[], object]) -> float:
    began = time.perf_counter()
    turn()
    return (time.perf_counter() - began) * 1000


def median(turns: Iterable[Callable[[], object]]) -> float:
    return statistics.median(timed(turn) for turn in turns)
