"""Sources that change at random: what is kept and refreshed (T_P) agrees with what is solved when it is asked (W_P). The own normal form agrees with z3."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.treatments import examples
from vigilog.core.runs import Runs, axis
from vigilog.core.values import NUMBER
from vigilog.folder.opening import open_program
from vigilog.mediators.conjunction import Conjunction, meet
from vigilog.mediators.solver import Solver, inside

BOTH = """
.domain s(kind=file, path="FOLDER")
.table s:f(arg: number, value: number)
.decl b(x: number, y: number)
RULES
.output kept
"""
RULES = """
.decl NAME(x: number, z: number)WORD
NAME(x, r.value) :- b(x, _), in(r, s:select_eq("f", "arg", x)).
NAME(x, z) :- b(x, y), in(r, s:select_ge("f", "value", y)), in(q, s:select_eq("f", "arg", r.value)), z = q.value + 1.
NAME(x, 0) :- b(x, y), !in(_, s:select_eq("f", "arg", y)).
"""
values = st.integers(0, 4)
pairs = st.sets(st.tuples(values, values), max_size=5)


@examples(25)
@given(st.lists(st.tuples(st.booleans(), pairs), max_size=5), pairs)
def test_what_is_kept_agrees_with_what_is_solved_late(
    changes: list[tuple[bool, set[tuple[int, int]]]], first: set[tuple[int, int]]
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:

        def write(rows: set[tuple[int, int]]) -> None:
            (Path(folder) / "f.csv").write_text("arg,value\n" + "".join(f"{arg},{value}\n" for arg, value in sorted(rows)))

        write(first)
        rules = RULES.replace("NAME", "kept").replace("WORD", "") + RULES.replace("NAME", "late").replace("WORD", " deferred")
        with open_program(BOTH.replace("FOLDER", folder).replace("RULES", rules), {"b": [(0, 1)]}) as db:
            for source, rows in changes:
                if source:
                    write(rows)
                    assert db.sources is not None
                    made = db.sources.made
                    late = db.ask("late(x, z)")
                    assert db.sources.made == made, "nothing that is kept was asked for"
                    db.refresh("s")
                    assert db.ask("late(x, z)") == late, "it was seen before the refresh"
                else:
                    there = db.rows("b")
                    db.apply({"delete": {"b": [list(row) for row in there - rows]}, "insert": {"b": [list(row) for row in rows]}})
                assert sorted(db.view("kept")) == db.ask("late(x, z)")


def runs() -> st.SearchStrategy[Runs]:
    ends = [-(2**63), -(2**63) + 1, -3, 0, 1, 2, 5, 2**63 - 2, 2**63 - 1]
    pieces = st.tuples(st.sampled_from(ends), st.sampled_from(ends)).map(lambda pair: axis(NUMBER).all.axis.between(min(pair), max(pair)))
    return st.lists(pieces, max_size=3).map(lambda some: _union(some))


def _union(some: list[Runs]) -> Runs:
    found = axis(NUMBER).none
    for one in some:
        found = found | one
    return found


@examples(200)
@given(runs(), runs(), runs())
def test_the_normal_form_decides_as_z3(one: Runs, other: Runs, third: Runs) -> None:
    z3 = pytest.importorskip("z3")
    x, solver = z3.Int("x"), z3.Solver()
    everything = Conjunction({"x": axis(NUMBER).all})
    part = everything.limited("x", one)
    part = part and meet(part, Conjunction({"x": other})) if other else None
    part = part and part.limited("x", ~third)
    if one and other:
        solver.add(inside(z3, x, one, int), inside(z3, x, other, int))
        solver.add(z3.And(x >= -(2**63), x < 2**63))
        if third:
            solver.add(z3.Not(inside(z3, x, third, int)))
        assert Solver().solvable(part) == (solver.check() == z3.sat)
    else:
        assert not Solver().solvable(part)
