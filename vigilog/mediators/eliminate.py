"""Variables that only a body has: `exists v` of a conjunction, as a union of conjunctions without v.

It is done before anything is negated, by the first of these that applies:

    no test     v occurs in no test: its values are not empty, so it goes
    equality    a test says v = e: e takes its place, and has one of its values
    bounds      tests are v <= e, e <= v, with coefficients that leave no gap: every lower bound is at most every upper one (Fourier and Motzkin)
    cases       v has at most 1,000 values: one after the other
    z3          qe2, which may fail
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import product
from typing import Any

from vigilog.core.runs import Runs
from vigilog.language.syntax import Constant, Variable
from vigilog.mediators.conjunction import Conjunction, simplified, with_names
from vigilog.mediators.regions import joined
from vigilog.mediators.solver import Solver, Unsolved, inside, stated
from vigilog.mediators.tests import Computed, Linear, Test, linear

MOST_CASES = 1000
MOST_RUNS = 32  # of a variable, each of which is a case of its own where bounds are compared


def projected(part: Conjunction, onto: Collection[str], solver: Solver) -> list[Conjunction]:
    """The instances of some variables for which the others have values: a region over these."""
    done: list[Conjunction] = []
    todo = [part]
    while todo:
        one = todo.pop()
        spare = [name for name in one.runs if name not in onto]
        tested = {name for test in one.tests for name in test.names}
        idle = [name for name in spare if name not in tested]
        if idle:
            one = Conjunction({name: runs for name, runs in one.runs.items() if name in tested or name in onto}, one.tests)
            spare = [name for name in spare if name in tested]
        if not spare:
            if solver.solvable(one):
                done.append(one)
            continue
        ways: list[list[Conjunction]] = [way for name in spare if (way := _by_equality(one, name) or _by_bounds(one, name)) is not None]
        if ways:
            todo += min(ways, key=lambda way: len(list(way)))
        elif (name := min(spare, key=lambda name: one.runs[name].size(MOST_CASES) or MOST_CASES + 1)) and one.runs[name].size(MOST_CASES):
            cases = (one.limited(name, one.runs[name].axis.at(place)) for place in one.runs[name].places())
            todo += [case for case in cases if case is not None]
        else:
            todo += _by_solver(one, spare, solver)
    return joined(done)


def _by_equality(part: Conjunction, name: str) -> list[Conjunction] | None:
    """v = e, where e is linear, or v occurs nowhere else."""
    mine = [test for test in part.tests if name in test.names]
    for test in mine:
        match test:
            case Linear(terms=((one, first), (two, second)), op="=", bound=0) if first == -second and abs(first) == 1:
                other = two if one == name else one
                renamed = with_names(part, {name: other})
                return [renamed] if renamed is not None else []
            case Linear(op="="):
                factor = dict(test.terms)[name]
                if abs(factor) == 1 and all(isinstance(other, Linear) for other in mine) and part.runs[name].axis.most is not None:
                    return _replaced(part, name, factor, test, [other for other in mine if isinstance(other, Linear) and other is not test])
            case Computed(op="=", left=Variable(name=left), positive=True) if left == name and mine == [test]:
                return _computed(part, name, test, test.right)
            case Computed(op="=", right=Variable(name=right), positive=True) if right == name and mine == [test]:
                return _computed(part, name, test, test.left)
            case _:
                pass
    return None


def _replaced(part: Conjunction, name: str, factor: int, test: Linear, others: list[Linear]) -> list[Conjunction]:
    """With factor · v + rest = bound: v = factor · (bound - rest), factor being 1 or -1."""
    rest = {other: -factor * value for other, value in test.terms if other != name}
    start = factor * test.bound
    tests: list[Test | bool] = [other for other in part.tests if name not in other.names]
    for other in others:
        terms = dict(other.terms)
        times = terms.pop(name)
        for variable, value in rest.items():
            terms[variable] = terms.get(variable, 0) + times * value
        tests.append(linear(terms, other.op, other.bound - times * start))
    runs = {variable: some for variable, some in part.runs.items() if variable != name}
    cases = []
    for run in part.runs[name].intervals():
        least, most = run.least, run.most
        assert most is not None, "integers end"
        bounds = [linear(rest, "<=", most - start), linear({other: -value for other, value in rest.items()}, "<=", start - least)]
        cases.append(simplified(runs, [*tests, *bounds]))
    return [one for one in cases if one is not None]


def _computed(part: Conjunction, name: str, test: Computed, term: Any) -> list[Conjunction]:
    """v = a term that is computed: the term has a value, and that is one of v's."""
    runs = {variable: some for variable, some in part.runs.items() if variable != name}
    tests = [other for other in part.tests if other is not test]
    line = part.runs[name].axis
    cases = []
    for run in part.runs[name].intervals():
        least, most = (Constant(line.value(place), line.type) for place in (run.least, run.most))
        cases.append(simplified(runs, [*tests, Computed(">=", term, least), Computed("<=", term, most)]))
    return [one for one in cases if one is not None]


def _by_bounds(part: Conjunction, name: str) -> list[Conjunction] | None:
    """Where all tests of v are linear: `!=` is two cases, `=` two bounds, each run a case."""
    mine = [test for test in part.tests if name in test.names]
    runs = list(part.runs[name].intervals())
    if part.runs[name].axis.most is None or len(runs) > MOST_RUNS or not all(isinstance(test, Linear) for test in mine):
        return None
    choices = [_as_bounds(test) for test in mine if isinstance(test, Linear)]
    ways = [[bound for choice in way for bound in choice] for way in product(*choices)]
    if len(ways) * len(runs) > MOST_CASES or any(not _exact(way, name) for way in ways):
        return None
    rest = [test for test in part.tests if name not in test.names]
    others = {variable: some for variable, some in part.runs.items() if variable != name}
    cases = (simplified(others, [*rest, *_crossed(way, name, run)]) for way in ways for run in runs)
    return [one for one in cases if one is not None]


def _as_bounds(test: Linear) -> list[list[Linear]]:
    """The ways in which a test holds, each as inequalities."""
    opposite = tuple((name, -factor) for name, factor in test.terms)
    match test.op:
        case "<=":
            return [[test]]
        case "=":
            return [[Linear(test.terms, "<=", test.bound), Linear(opposite, "<=", -test.bound)]]
        case "!=":
            return [[Linear(test.terms, "<=", test.bound - 1)], [Linear(opposite, "<=", -test.bound - 1)]]


def _exact(bounds: list[Linear], name: str) -> bool:
    """Between a lower bound a·v >= s and an upper b·v <= t there is an integer if and only if a·t >= b·s, as long as a or b is 1."""
    factors = [dict(bound.terms)[name] for bound in bounds]
    upper, lower = [f for f in factors if f > 0], [-f for f in factors if f < 0]
    return all(f == 1 for f in upper) or all(f == 1 for f in lower)


def _crossed(bounds: list[Linear], name: str, run: Runs) -> Iterator[Linear | bool]:
    sides: list[tuple[int, dict[str, int], int]] = [(1, {}, run.most or 0), (-1, {}, -run.least)]
    for bound in bounds:
        terms = dict(bound.terms)
        sides.append((terms.pop(name), terms, bound.bound))
    for upper, above, most in sides:
        for lower, below, least in sides:
            if upper > 0 > lower:
                terms = {variable: -lower * factor for variable, factor in above.items()}
                for variable, factor in below.items():
                    terms[variable] = terms.get(variable, 0) + upper * factor
                yield linear(terms, "<=", -lower * most + upper * least)


def _by_solver(part: Conjunction, spare: list[str], solver: Solver) -> list[Conjunction]:
    """By z3's quantifier elimination."""
    names = {name for test in part.tests for name in test.names}
    if any(part.runs[name].axis.most is None for name in names):
        raise Unsolved(f"{spare[0]} is a text without values of its own, compared with others: it cannot be eliminated")
    z3, _ = solver._ready()
    solver.asked += 1
    integers = {name: z3.Int(name) for name in names}
    body = z3.And(
        *(inside(z3, integers[name], part.runs[name], lambda place: place) for name in spare),
        *(stated(z3, test, integers) for test in part.tests),
    )
    goal = z3.Goal()
    goal.add(z3.Exists([integers[name] for name in spare], body))
    tactic = z3.TryFor(z3.Then("qe2", z3.With("simplify", arith_lhs=True), "ctx-simplify"), int(solver.seconds * 1000))
    try:
        answer = z3.simplify(tactic(goal).as_expr(), arith_lhs=True)
    except z3.Z3Exception as reason:
        raise Unsolved(f"{', '.join(spare)} could not be eliminated from a condition: {reason}") from None
    kept = {name: runs for name, runs in part.runs.items() if name not in spare}
    from vigilog.mediators.formulas import ways

    types = {name: runs.axis.type for name, runs in kept.items()}
    cases = (simplified(kept, tests) for tests in ways(z3, answer, types))
    return [one for one in cases if one is not None]
