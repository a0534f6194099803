"""Programs and goals take the same passes, and a pass keeps what relations have."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vigilog import reference
from vigilog.core.values import Row
from vigilog.folder.opening import open_program
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.language.syntax import Atom
from vigilog.rewriting import passes
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.unfold import passing, unfold

BASE = """\
.decl a(x: number, y: number)
.decl b(x: number)
.decl v(x: number, y: number)
.output v
"""
FACTS: dict[str, set[Row]] = {"a": {(1, 2), (2, 3), (3, 1), (3, 3), (4, 4)}, "b": {(1,), (3,), (7,)}}

CHANGES: list[dict[str, dict[str, list[Row]]]] = [
    {"delete": {"a": [(3, 1)]}, "insert": {"b": [(2,)]}},
    {"insert": {"a": [(7, 9)]}, "delete": {"b": [(1,), (3,)]}},
]

INLINED = {
    "constants, repeated and computed arguments": ".decl h(x: number, y: number, z: number) inline h(x, x, 2) :- b(x). h(x, y + 1, 3) :- a(x, y). v(p, q) :- h(p, q, 2). v(p, q) :- h(p, p, q), a(p, _).",
    "wildcards": ".decl h(x: number, y: number) inline h(x, 10 / y) :- a(x, y). v(p, p) :- h(p, _), b(p).",
    "negation and aggregates inside": ".decl h(x: number, n: number) inline h(x, n) :- b(x), !a(x, x), n = count : { a(x, y), y > 0 }. v(y, x) :- h(y, x), y >= 0.",
    "read under a negation and in an aggregate": ".decl h(x: number) inline h(x) :- a(x, y), y > x. v(x, n) :- b(x), !h(x), n = count : { h(y) }.",
    "one of the other": ".decl g(x: number) inline g(y) :- a(_, y). .decl h(x: number) inline h(x) :- g(x), b(x). v(x, y) :- h(x), g(y), x < y.",
    "recursive": ".decl h(x: number, y: number) inline h(x, y) :- a(x, y). h(x, z) :- h(x, y), a(y, z). v(x, y) :- h(x, y), b(x).",
    "variables called alike": ".decl h(y: number) inline h(y) :- a(x, y), b(x). v(x, y) :- h(x), a(y, x).",
}


@pytest.mark.parametrize("name", INLINED)
def test_what_is_unfolded_means_the_same(name: str) -> None:
    program = check(BASE + INLINED[name]).program
    assert reference.evaluate(rewrite(program), FACTS) == reference.evaluate(program, FACTS)
    if name != "recursive" and "negation and in" not in name:
        assert not any(literal.relation == "h" for rule in rewrite(program).rules for literal in rule.body if isinstance(literal, Atom))
    for strategy in ("external", "materialized", "counted"):
        with open_program(program, FACTS, strategy=strategy) as db:
            for change in CHANGES:
                db.apply(change)
                expected = reference.evaluate(program, {name: db.rows(name) for name in FACTS})
                assert (
                    db.view("v") == expected["v"]
                    and set(db.ask("h" + "(" + ", ".join("_" for _ in program.relations["h"].attributes) + ")")) == expected["h"]
                )


def test_too_many_ways_are_left_alone() -> None:
    rules = " ".join(f"h(x) :- a(x, {number})." for number in range(11))
    program = rewrite(check(BASE + f".decl h(x: number) inline {rules} v(x, y) :- h(x), h(y).").program)
    assert len(program.rules) == 12, "121 rules would take the place of one"


def test_what_passes_bindings_on() -> None:
    text = ".decl f(x: number, y: number) .decl g(x: number) .decl h(x: number, y: number) f(x, y) :- a(x, y), x < y. g(x) :- a(x, _). h(x, y) :- a(x, y), b(y). v(x, y) :- f(x, y), g(y), !h(x, y)."
    program = rewrite(check(BASE + text).program)
    assert passing(program, ["v"]) == ["f"], "g has fewer rows than bindings, h is read under a negation"
    assert passing(program, ["v", "f"]) == []


def aside(program: Program) -> Program:
    """A pass that reads `b` from a relation beside it."""
    taken = "aside" in program.relations
    declared = () if taken else (replace(program.relations["b"], relation="aside"),)
    rule = check(BASE + ".decl aside(x: number) aside(x) :- b(x).").program.rules

    def read(literal: object) -> object:
        return replace(literal, relation="aside") if isinstance(literal, Atom) and literal.relation == "b" else literal

    rules = tuple(replace(one, body=tuple(map(read, one.body))) for one in program.rules)  # type: ignore[arg-type]  # literals stay literals
    return replace(program, declarations=(*program.declarations, *declared), rules=(*rules, *(() if taken else rule)))


def test_programs_and_goals_take_the_same_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noted(program: Program) -> Program:
        seen.append([rule.head.relation for rule in program.rules])
        return aside(program)

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, noted))
    with open_program(BASE + "v(x, y) :- a(x, y), b(y).", FACTS) as db:
        assert db.view("v") == {(2, 3), (3, 1), (3, 3)} and db.ask("v(3, y), b(y)") == [(1,), (3,)]
        assert db.apply({"delete": {"b": [(3,)]}})["v"].minus == {(2, 3), (3, 3)}
        assert seen[0] == ["v"] and all(heads == ["answer"] for heads in seen[1:]) and len(seen) > 2
    assert unfold(check(BASE).program).rules == ()
