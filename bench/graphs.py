"""Generated facts, the same on every machine."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

Rows = list[tuple[int, ...]]
Facts = Mapping[str, Rows]

SEED = 20_240


def random_graph(nodes: int, edges: int) -> Rows:
    """So many different edges between random nodes; loops are possible.

    >>> random_graph(10, 3) == random_graph(10, 3), len(random_graph(10, 3))
    (True, 3)
    """
    chance = random.Random(SEED)
    found: set[tuple[int, ...]] = set()
    while len(found) < edges:
        found.add((chance.randrange(nodes), chance.randrange(nodes)))
    return sorted(found)


def grid(side: int) -> Rows:
    """Edges to the right and down.

    >>> grid(2)
    [(0, 1), (0, 2), (1, 3), (2, 3)]
    """
    right = [(row * side + column, row * side + column + 1) for row in range(side) for column in range(side - 1)]
    down = [(row * side + column, (row + 1) * side + column) for row in range(side - 1) for column in range(side)]
    return sorted(right + down)


def tree(depth: int) -> Rows:
    """Edges from parent to child in a complete binary tree.

    >>> tree(2)
    [(1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)]
    """
    return [(node // 2, node) for node in range(2, 2 ** (depth + 1))]


def chains(edges: int, length: int = 4) -> Rows:
    """So many edges in chains, each of a few.

    >>> chains(4, 2)
    [(0, 1), (1, 2), (3, 4), (4, 5)]
    """
    return [(place + place // length, place + place // length + 1) for place in range(edges)]


def shop(orders: int) -> Facts:
    """Orders (number, customer, amount) of a tenth as many customers, some of whom are blocked, and who recommended whom."""
    chance, customers = random.Random(SEED), orders // 10
    return {
        "orders": [(number, chance.randrange(customers), chance.randrange(1_000)) for number in range(orders)],
        "blocked": [(customer,) for customer in range(0, customers, 37)],
        "recommends": tree(customers.bit_length() - 2),
    }


def random_pointers(objects: int) -> Facts:
    """A pointer program without procedures: five times as many variables and loads and stores as objects, 20 fields, and so many assignments that everything reaches nearly everything."""
    chance, variables = random.Random(SEED), 5 * objects

    def some(number: int, *below: int) -> Rows:
        found: set[tuple[int, ...]] = set()
        while len(found) < number:
            found.add(tuple(chance.randrange(bound) for bound in below))
        return sorted(found)

    return {
        "new": some(objects, variables, objects),
        "assign": some(objects * 40 // 3, variables, variables),
        "load": some(variables, variables, variables, 20),
        "store": some(variables, variables, 20, variables),
    }


def pointer_program(variables: int, procedure: int = 20, fields: int = 10) -> Facts:
    """The statements of a program with pointers: `v = new h`, `v = u`, `v = b.f`, `b.f = v`.

    Variables belong to procedures; one statement in 200 reaches into another procedure, so a result grows about as the program does.
    """
    chance = random.Random(SEED)

    def other(variable: int) -> int:
        if chance.random() < 0.005:
            return chance.randrange(variables)
        return variable // procedure * procedure + chance.randrange(procedure)

    def some(share: float) -> list[int]:
        return [chance.randrange(variables) for _ in range(int(variables * share))]

    new: set[tuple[int, ...]] = {(variable, made) for made, variable in enumerate(some(0.2))}
    assign: set[tuple[int, ...]] = {(variable, other(variable)) for variable in some(1.5)}
    load: set[tuple[int, ...]] = {(variable, other(variable), chance.randrange(fields)) for variable in some(0.3)}
    store: set[tuple[int, ...]] = {(variable, chance.randrange(fields), other(variable)) for variable in some(0.3)}
    return {"new": sorted(new), "assign": sorted(assign), "load": sorted(load), "store": sorted(store)}


def arrow(columns: tuple[str, ...], rows: Rows) -> pa.Table:
    import pyarrow as pa

    return pa.table({column: pa.array([row[place] for row in rows], pa.int64()) for place, column in enumerate(columns)})
