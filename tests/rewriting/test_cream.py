"""CReaM as it is printed: it parses, counts proofs as the paper's table does, and its rules find what changes."""

from __future__ import annotations

from random import Random

import pytest

from tests.rewriting.sections import Rows
from vigilog import reference
from vigilog.core.delta import between
from vigilog.explain.explain import explained
from vigilog.explain.show import Show
from vigilog.language.check import check
from vigilog.rewriting.paper.cream import cream

TABLE = ".decl t(v: symbol, d: symbol, l: symbol) .input t .decl u(l: symbol) .input u "
VIEWS = {
    "p(v, w)": ".decl p(v: symbol, w: set<symbol>) p(v, w) :- setof(d, t(v, d, l), w).",
    "counted": ".decl p(v: symbol, n: number) p(v, n) :- setof(d, t(v, d, l), s), count(s, n).",
    "two sets": ".decl p(v: symbol, n: number, m: number) p(v, n, m) :- setof(d, t(v, d, l), w), setof(x, t(x, v, k), u), count(w, n), count(u, m).",
    "tuples": ".decl p(n: number) p(n) :- setof((d, l), t(v, d, l), s), count(s, n).",
    "a join": ".decl p(v: symbol, w: set<symbol>) p(v, w) :- setof(d, (t(v, d, l), u(l), !t(d, v, l)), w).",
    "no groups": '.decl p(w: set<symbol>) p(w) :- setof(d, t("a", d, _), w).',
}
TABLE_2 = {("yoda", "vader", "dagobah"), ("yoda", "palpatine", "dagobah"), ("vader", "yoda", "tatooine"), ("yoda", "palpatine", "tatooine")}
DOMINATES = """
.decl tournament(victor: symbol, beaten: symbol, planet: symbol)
.input tournament
.decl dominates(victor: symbol, beaten: set<symbol>)
.output dominates
dominates(v, w) :- setof(d, tournament(v, d, l), w).
"""


def test_proofs_are_counted_as_in_the_paper() -> None:
    text = explained(check(DOMINATES).program, Show.maintenance, None, "embedded", "auto")
    program = check(text).program

    def counted(rows: set[tuple[str, str, str]]) -> set[tuple[object, ...]]:
        found = reference.evaluate(program, {"tournament": rows})["dominates_proofs"]
        return {(victor, tuple(beaten), number) for victor, beaten, number in found}  # type: ignore[arg-type]  # a set

    assert counted(TABLE_2) == {("vader", ("yoda",), 1), ("yoda", ("palpatine",), 1), ("yoda", ("palpatine", "vader"), 1)}
    assert counted(TABLE_2 - {("yoda", "vader", "dagobah")}) == {("vader", ("yoda",), 1), ("yoda", ("palpatine",), 2)}


def rows(random: Random) -> set[tuple[str, str, str]]:
    return {(random.choice("abc"), random.choice("abc"), random.choice("xy")) for _ in range(random.randint(0, 6))}


@pytest.mark.parametrize("name", VIEWS)
def test_the_printed_rules_find_what_changes(name: str) -> None:
    printed, random = check(cream(check(TABLE + VIEWS[name]).program, ["p"])).program, Random()
    seed = random.randrange(2**32)
    random.seed(seed)
    for _ in range(15):
        places = [{(place,) for place in "xy" if random.random() < 0.6} for _ in range(2)]
        old, new = (reference.evaluate(printed, {"t": rows(random), "u": given}) for given in places)
        given: Rows = {"t": old["t"], "u": old.get("u", set())}
        for relation in ("t", "p_rows"):
            if relation in old:
                delta = between(old[relation], new[relation])
                given |= {f"{relation}_ins": set(delta.plus), f"{relation}_del": set(delta.minus)}
        found = reference.evaluate(printed, given)
        assert (found["p_plus"], found["p_minus"]) == (new["p"] - old["p"], old["p"] - new["p"]), f"seed {seed}"


def test_other_views_have_no_such_form() -> None:
    program = check(".decl e(x: number) .decl p(n: number) p(n) :- n = count : { e(_) }. .decl q(x: number) q(x) :- e(x).").program
    assert cream(program, ["p", "q"]) == ""
