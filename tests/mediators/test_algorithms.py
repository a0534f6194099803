"""The examples of the paper, and those that show where its text is wrong, under each algorithm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mediators.views import ALGORITHMS, View
from vigilog.mediators.facts import where
from vigilog.mediators.straight import NotGround, Straight

HEADS = ".decl a(x: number) constrained .decl b(x: number) constrained .decl c(x: number) constrained "


def minus(**relations: list[str]) -> dict[str, dict[str, list[str]]]:
    return {name: {"plus": [], "minus": texts} for name, texts in relations.items()}


def plus(**relations: list[str]) -> dict[str, dict[str, list[str]]]:
    return {name: {"plus": texts, "minus": []} for name, texts in relations.items()}


def told(text: str) -> list[dict[str, str]]:
    return [{"where": text}]


CASES: dict[str, tuple[str, list[tuple[dict[str, Any], dict[str, Any]]]]] = {
    "example 4": (
        HEADS + "a(x) :- x <= 3. a(x) :- b(x). b(x) :- x <= 5. c(x) :- a(x).",
        [
            ({"delete": {"b": told("x = 6")}}, {}),
            ({"delete": {"b": told("x = 3")}}, minus(b=["x = 3"])),
            ({"delete": {"a": told("x = 3")}}, minus(a=["x = 3"], c=["x = 3"])),
            ({"insert": {"c": told("x >= 3, x <= 7")}}, plus(c=["x = 3", "x >= 6, x <= 7"])),
        ],
    ),
    "example 5": (
        HEADS + "a(x) :- x <= 3. a(x) :- b(x). b(x) :- x >= 5. c(x) :- a(x).",
        [
            ({"delete": {"b": told("x = 6")}}, minus(a=["x = 6"], b=["x = 6"], c=["x = 6"])),
            (
                {"insert": {"b": told("x >= 3, x <= 6")}},
                plus(a=["x = 4", "x = 6"], b=["x = 6", "x >= 3, x <= 4"], c=["x = 4", "x = 6"]),
            ),
        ],
    ),
    "example 6": (
        '.decl p(x: symbol, y: symbol) constrained .decl a(x: symbol, y: symbol) constrained p("a", "b"). p("a", "c"). p("c", "d"). '
        "a(x, y) :- p(x, y). a(x, y) :- p(x, z), a(z, y).",
        [
            (
                {"delete": {"p": told('x = "c", y = "d"')}},
                minus(p=['x = "c", y = "d"'], a=['x = "a", y = "d"', 'x = "c", y = "d"']),
            )
        ],
    ),
    "aside": (
        ".decl a() constrained .decl b() constrained .decl c() constrained .decl d() constrained "
        "b() :- true. c() :- true. a() :- b(). a() :- c(). d() :- a().",
        [
            ({"delete": {"a": [[]]}}, minus(a=["true"], d=["true"])),
            ({"delete": {"b": [[]]}}, minus(b=["true"])),
            ({"insert": {"b": [[]]}}, plus(b=["true"])),
            ({"insert": {"a": [[]]}}, plus(a=["true"], d=["true"])),
        ],
    ),
    "positions": (
        ".decl a(x: number) constrained .decl d(x: number, y: number) constrained .decl e(x: number, y: number) constrained "
        "a(x) :- x >= 0, x <= 2. d(x, y) :- a(x), a(y). e(x, y) :- d(x, y).",
        [
            (
                {"delete": {"a": [[1]]}},
                minus(a=["x = 1"]) | {name: minus(e=["x = 0, y = 1", "x = 1, y >= 0, y <= 2", "x = 2, y = 1"])["e"] for name in "de"},
            ),
            ({"delete": {"d": told("x = 0")}}, {name: minus(e=["x = 0, y = 0", "x = 0, y = 2"])["e"] for name in "de"}),
        ],
    ),
    "local": (
        ".decl b(x: number, z: number) constrained .decl f(x: number) constrained .decl g(x: number) constrained "
        "b(x, z) :- x >= 0, x <= 1, z >= 0, z <= x. f(x) :- b(x, z). g(x) :- f(x).",
        [
            ({"delete": {"b": told("z = 0")}}, minus(b=["x >= 0, x <= 1, z = 0"], f=["x = 0"], g=["x = 0"])),
            ({"delete": {"b": told("z = 1")}}, minus(b=["x = 1, z = 1"], f=["x = 1"], g=["x = 1"])),
        ],
    ),
    "ring": (
        HEADS + "b(x) :- x >= 0, x <= 9. a(x) :- b(x). a(y) :- a(x), y = (x + 1) % 10, x >= 0, x <= 9.",
        [
            ({"delete": {"b": told("x >= 1, x <= 9")}}, minus(b=["x >= 1, x <= 9"])),
            ({"delete": {"a": told("x = 4")}}, minus(a=["x >= 4, x <= 9"])),
            ({"delete": {"b": told("x = 0")}}, minus(a=["x >= 0, x <= 3"], b=["x = 0"])),
        ],
    ),
    "overlap": (
        HEADS + "a(x) :- x <= 3. a(x) :- x <= 5. c(x) :- a(x), x >= 2.",
        [
            ({"delete": {"a": told("x >= 3, x <= 4")}}, minus(a=["x >= 3, x <= 4"], c=["x >= 3, x <= 4"])),
            ({"insert": {"a": told("x >= 4, x <= 8")}}, plus(a=["x = 4", "x >= 6, x <= 8"], c=["x = 4", "x >= 6, x <= 8"])),
            ({"delete": {"a": told("x = 7")}, "insert": {"a": told("x >= 6, x <= 7")}}, {}),
        ],
    ),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", CASES)
def test_what_changes(name: str, algorithm: str) -> None:
    text, steps = CASES[name]
    if (name, algorithm) == ("ring", "straight"):
        with pytest.raises(NotGround):
            View(text, algorithm)
        return
    view = View(text, algorithm)
    for transaction, expected in steps:
        assert view.take(transaction) == expected


def test_supports_are_those_of_the_paper() -> None:
    def supports(name: str) -> list[str]:
        algorithm = View(CASES[name][0], "straight").algorithm
        assert isinstance(algorithm, Straight)
        return sorted(f"{atom.relation}: {', '.join(map(where, atom.parts))} // {support}" for atom, support in algorithm.supports())

    assert supports("example 5") == [
        "a: x <= 3 // <1>",
        "a: x >= 5 // <2, <3>>",
        "b: x >= 5 // <3>",
        "c: x <= 3 // <4, <1>>",
        "c: x >= 5 // <4, <2, <3>>>",
    ]
    assert 'a: x = "a", y = "d" // <5, <2>, <4, <3>>>' in supports("example 6")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_withdrawn_never_was(algorithm: str) -> None:
    view = View(CASES["overlap"][0], algorithm)
    before = {name: view.region(name) for name in "ac"}
    view.take({"delete": {"a": told("x >= 3, x <= 4")}})
    view.take({"insert": {"a": told("x >= 4, x <= 8")}})
    assert view.withdraw([2])["a"] == {"plus": [], "minus": ["x = 4", "x >= 6, x <= 8"]}
    assert view.withdraw([1])["c"] == {"plus": ["x >= 3, x <= 4"], "minus": []}
    assert {name: view.region(name) for name in "ac"} == before


@pytest.mark.parametrize("algorithm", ["straight", "dred"])
def test_what_is_undone_has_not_happened(algorithm: str) -> None:
    view = View(CASES["example 5"][0], algorithm)
    before = {name: view.region(name) for name in "abc"}
    keep, view.algorithm.keep = view.algorithm.keep, view.algorithm.undo  # type: ignore[method-assign]  # the transaction is refused
    view.take({"delete": {"b": told("x = 6")}, "insert": {"a": told("x = 4")}})
    assert {name: view.region(name) for name in "abc"} == before
    view.algorithm.keep = keep  # type: ignore[method-assign]
    view.updates.clear()
    assert view.take({"delete": {"b": told("x = 6")}}) == minus(a=["x = 6"], b=["x = 6"], c=["x = 6"])
