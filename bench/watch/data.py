"""Generated facts, the same on every machine. All values are numbers, so that rows hash alike in every process."""

from __future__ import annotations

import random
from pathlib import Path

from bench.graphs import SEED, Facts, Rows


def acyclic(nodes: int, edges: int, seed: int = SEED, first: int = 0) -> Rows:
    """So many different random edges, each from the smaller node to the larger; nodes are numbered from `first`.

    >>> all(x < y for x, y in acyclic(10, 12))
    True
    """
    return sorted((min(x, y), max(x, y)) for x, y in _pairs(nodes, edges, seed, first, ordered=True))


def cyclic(nodes: int, edges: int) -> Rows:
    """So many different random edges without loops; with more edges than nodes much of it is one component."""
    return sorted(_pairs(nodes, edges, SEED, 0, ordered=False))


def _pairs(nodes: int, edges: int, seed: int, first: int, *, ordered: bool) -> set[tuple[int, ...]]:
    chance = random.Random(seed)
    found: set[tuple[int, ...]] = set()
    while len(found) < edges:
        x, y = first + chance.randrange(nodes), first + chance.randrange(nodes)
        if x != y:
            found.add((min(x, y), max(x, y)) if ordered else (x, y))
    return found


def beside(nodes: int, edges: int, times: int) -> Rows:
    """The graph `acyclic(nodes, edges)`, and beside it others of its size until there are so many: more data, the same effects."""
    return [edge for part in range(times) for edge in acyclic(nodes, edges, SEED + part, part * nodes)]


def levels(depth: int, width: int) -> Rows:
    """Edges from parent to child in a tree: below the root, levels of so many nodes, each with a random parent one level above.

    >>> levels(2, 2)[:2], len(levels(2, 2))
    ([(0, 1), (0, 2)], 4)
    """
    chance = random.Random(SEED)
    above = [0]
    edges: Rows = []
    for level in range(depth):
        nodes = [1 + level * width + place for place in range(width)]
        edges += [(chance.choice(above), node) for node in nodes]
        above = nodes
    return edges


def orders(number: int, customers: int, regions: int = 50) -> Facts:
    """orders(o, c, a): order, customer, amount; customer(c, r); region(r, z): its zone; blocked(c)."""
    chance = random.Random(SEED)
    return {
        "orders": [(order, chance.randrange(customers), chance.randrange(1_000)) for order in range(number)],
        "customer": [(customer, chance.randrange(regions)) for customer in range(customers)],
        "region": [(region, region % 7) for region in range(regions)],
        "blocked": [(customer,) for customer in range(0, customers, 37)],
    }


def numbered_order(order: int, customers: int) -> tuple[int, ...]:
    """The order of a number, where there are too many to draw them one by one."""
    return order, order * 7_919 % customers, order * 31 % 1_000


def orders_in_files(folder: Path, number: int, customers: int, regions: int = 50) -> None:
    """The relations of `orders`, with numbered orders, as Parquet files in a folder."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    order, customer, region = (np.arange(size, dtype=np.int64) for size in (number, customers, regions))
    tables = {
        "orders": {"o": order, "c": order * 7_919 % customers, "a": order * 31 % 1_000},
        "customer": {"c": customer, "r": customer % regions},
        "region": {"r": region, "z": region % 7},
        "blocked": {"c": customer[::37]},
    }
    for name, columns in tables.items():
        parquet.write_table(pa.table(columns), folder / f"{name}.parquet")


def readings(number: int, groups: int) -> Facts:
    """reading(i, g, v): a value of a group."""
    chance = random.Random(SEED)
    return {"reading": [(place, chance.randrange(groups), chance.randrange(10_000)) for place in range(number)]}


def staff(employees: int) -> Facts:
    """employee(e, d, m, s): department, manager, salary; department(d, h, b): head, budget; manager(m, l): level.

    The first of every twenty are managers, of whom one in a hundred is not listed as such; who has no department, a manager elsewhere or too much pay is rare.
    """
    chance = random.Random(SEED)
    departments = max(2, employees // 100)
    managers = list(range(0, employees, 20))
    home = {person: chance.randrange(departments) for person in range(employees)}
    at: dict[int, list[int]] = {}
    for manager in managers:
        at.setdefault(home[manager], []).append(manager)
    level = {manager: chance.randrange(10) for manager in managers}
    employee: Rows = []
    for person, department in home.items():
        if person in level:
            salary = 60_000 + 5_000 * level[person] + chance.randrange(5_000)
        else:
            salary = 20_000 + chance.randrange(40_000) + (40_000 if chance.random() < 0.01 else 0)
        elsewhere = department not in at or chance.random() < 0.01
        manager = chance.choice(managers if elsewhere else at[department])
        employee.append((person, department if chance.random() < 0.999 else departments + person, manager, salary))
    heads = [chance.choice(at.get(department, managers)) for department in range(departments)]
    return {
        "employee": employee,
        "department": [(department, head, 90_000 + chance.randrange(30_000)) for department, head in enumerate(heads)],
        "manager": [(manager, level[manager]) for manager in managers if chance.random() < 0.99],
    }


GOLDEN = {name: place for place, name in enumerate("abcdefgh")}


def golden(more: int) -> Rows:
    """The example of the closure paper, and beside it a graph of so many edges, all of which lead into g.

    >>> len(golden(0)), len(golden(10))
    (7, 17)
    """
    chance = random.Random(SEED)
    given = [(GOLDEN[x], GOLDEN[y]) for x, y in ("fe", "ed", "ea", "ab", "dc", "bc", "cg")]
    into = [GOLDEN["g"]]
    for place in range(more):
        given.append((100 + place, chance.choice(into)))
        into.append(100 + place)
    return sorted(given)
