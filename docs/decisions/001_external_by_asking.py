"""Measures how many rows rederivation and asking derive for the same changes; the figures are in 001-external-by-asking.md.

.venv/bin/python docs/decisions/001_external_by_asking.py
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import groupby
from statistics import median

from vigilog.core.delta import Delta, net
from vigilog.core.values import Row
from vigilog.engine.evaluate import evaluate
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.paper.rederive import rederive
from vigilog.rewriting.sections import Section

CLOSURE = """
.decl edge(x: symbol, y: symbol)
.decl closure(x: symbol, y: symbol)
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
"""

State = dict[str, set[Row]]


def derive(sections: Sequence[Section], edges: set[Row], change: Delta) -> tuple[Delta, int]:
    """The change of the closure, and how many rows were derived for it. Copies of the table are not counted: they could be read in place."""
    given: State = {"edge": edges, "edge_del": set(change.minus), "edge_ins": set(change.plus), "edge_new": change.apply(edges)}
    state = dict(given)
    for _, phase in groupby(sections, key=lambda section: section.title):
        ranked = list(phase)
        while any(grows(section.program, state) for section in ranked):
            pass
    counted = sum(len(rows) for name, rows in state.items() if name not in given)
    return Delta(frozenset(state["closure_plus"]), frozenset(state["closure_minus"])), counted


def grows(program: Program, state: State) -> bool:
    known = {name: rows for name, rows in state.items() if name in program.relations}
    found = {name: set(rows) for name, rows in evaluate(program, known).relations.items()}
    grown = any(rows - state.get(name, set()) for name, rows in found.items())
    state.update(found)
    return grown


def compare(title: str, edges: set[Row], changes: Sequence[Delta]) -> None:
    program = check(CLOSURE).program
    rederivation, asking = rederive(program), external(program).sections
    sizes: list[tuple[int, int, int]] = []
    for change in changes:
        found, many = derive(rederivation, edges, change)
        same, few = derive(asking, edges, change)
        assert found == same, "both are exact"
        sizes.append((len(found.plus) + len(found.minus), many, few))
    for name, column in zip(("rows that changed", "rederivation", "asking"), zip(*sizes, strict=True), strict=True):
        print(f"{title:40} {name:18} median {median(column):7.0f}  mean {sum(column) / len(column):9.1f}  most {max(column):7}")


def dag(nodes: int, edges: int, seed: int) -> list[Row]:
    chosen = random.Random(seed)
    found: dict[Row, None] = {}
    while len(found) < edges:
        low, high = sorted(chosen.sample(range(nodes), 2))
        found[f"n{low}", f"n{high}"] = None
    return list(found)


if __name__ == "__main__":
    golden: set[Row] = {(*pair,) for pair in ("fe", "ed", "ea", "ab", "dc", "bc", "cg")}
    compare("golden example", golden, [net(golden, [("b", "c")], [("h", "d")])])
    graph = dag(200, 240, seed=1)
    closure = evaluate(CLOSURE, {"edge": graph})["closure"]
    print(f"random graph without cycles, n=200, m=240: the closure has {len(closure)} rows")
    chosen = random.Random(2).sample(graph, 60)
    compare("one edge deleted, 60 times", set(graph), [Delta(minus=frozenset({edge})) for edge in chosen])
    new = [edge for edge in dag(200, 400, seed=3) if edge not in set(graph)][:60]
    compare("one edge inserted, 60 times", set(graph), [Delta(frozenset({edge})) for edge in new])
