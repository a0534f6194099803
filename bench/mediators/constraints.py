"""Deleting from views of constrained relations, and deciding conditions."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable
from functools import partial

from bench.mediators.shapes import LAYERS, PIECES, REACH, View, timed
from vigilog.core.runs import Runs, axis
from vigilog.core.values import NUMBER, Row
from vigilog.mediators.conjunction import Conjunction, meet
from vigilog.mediators.recompute import Recomputed
from vigilog.mediators.sets import Sets
from vigilog.mediators.solver import Solver, inside
from vigilog.mediators.straight import Straight

SIZES = (10_000, 100_000, 1_000_000)
LONGEST = 240.0  # seconds that a view may take to be made; larger ones are left out, and so not judged
TURNS = 60


def supports(quick: bool) -> dict[str, float]:
    """Milliseconds to delete an atom on which the same number depend, by the number of supports."""
    found = {}
    for name, piece in PIECES.items():
        took = 0.0
        for size in (1_000, 10_000) if quick else SIZES:
            if 10 * took > LONGEST:
                break
            number = size // piece.supports
            facts: dict[str, list[Row]] = {
                "start": [(place * piece.nodes,) for place in range(number)],
                "edge": [(place * piece.nodes + one, place * piece.nodes + other) for place in range(number) for one, other in piece.edges],
            }
            gc.disable()  # hundreds of thousands of objects come, and none goes
            began = time.perf_counter()
            view = View(REACH, Straight, dict(facts))
            took = time.perf_counter() - began
            gc.collect()
            gc.freeze()
            gc.enable()
            times = []
            for turn in range(TURNS):
                row = (turn * (number // TURNS) * piece.nodes,)
                times.append(timed(partial(view.put, "start", row, there=False)))
                view.put("start", row, there=True)
            found[f"{name}, {size:,} supports"] = sorted(times)[TURNS // 2]
            gc.unfreeze()
    return found


def algorithms(quick: bool) -> dict[str, float]:
    """Milliseconds to delete what has another proof at each of ten levels, so that most is rederived, and what has none, with ten dependents."""
    number = 50 if quick else 300
    found: dict[str, float] = {}
    for name, algorithm in (("straight", Straight), ("dred", Sets), ("recompute", Recomputed)):
        view = View(LAYERS, algorithm, {"l": [(k,) for k in range(number)], "r": [(k,) for k in range(0, number, 2)]})
        turns = 2 if algorithm is Recomputed else 40
        for what, first in (("rederived", 0), ("lost", 1)):
            times = []
            for turn in range(turns):
                row = ((2 * turn + first) % number,)
                times.append(timed(partial(view.put, "l", row, there=False)))
                view.put("l", row, there=True)
            found[f"{name}, {what}"] = sorted(times)[turns // 2]
        if algorithm is Straight:
            solver = view.solver
            found["checks by the own normal form, of a hundred"] = 100 * solver.own / max(1, solver.own + solver.asked)
    return found


def checks(quick: bool) -> dict[str, float]:
    """Checks in a second: conjunctions over one column, by their normal form, and by z3 that is used incrementally."""
    import z3

    line, rand = axis(NUMBER), random.Random(7)
    pairs = [(_runs(line.all, rand), _runs(line.all, rand)) for _ in range(500 if quick else 5_000)]
    own = Solver()

    def normal() -> int:
        met = (meet(Conjunction({"x": one}), Conjunction({"x": other})) for one, other in pairs)
        return sum(own.solvable(part) for part in met)

    solver, x = z3.SolverFor("QF_LIA"), z3.Int("x")

    def asked() -> int:
        count = 0
        for one, other in pairs:
            solver.push()
            solver.add(inside(z3, x, one, int), inside(z3, x, other, int))
            count += solver.check() == z3.sat
            solver.pop()
        return count

    assert normal() == asked(), "they decide the same"
    return {"normal form": _a_second(normal, len(pairs)), "z3": _a_second(asked, len(pairs))}


def _runs(all_: Runs, rand: random.Random) -> Runs:
    low = rand.randrange(1000)
    return all_.axis.between(low, low + rand.randrange(300)) - all_.axis.at(low + rand.randrange(300))


def _a_second(work: Callable[[], object], number: int) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return number / sorted(times)[2]
