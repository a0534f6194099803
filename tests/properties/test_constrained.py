"""Constrained relations against enumeration: random programs and updates, on a finite window in which everything can be tried.

All that is stated has bounds well inside of the window, so a larger one must give the same; that is tried, too. The three algorithms agree, and what changes, applied to what was, gives what is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.mediators.views import ALGORITHMS, View
from tests.treatments import examples
from vigilog.core.values import Row
from vigilog.language import functors
from vigilog.language.check import check
from vigilog.language.parts import names
from vigilog.language.syntax import Atom, Builtin, Rule, Variable
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import parsed_where, where
from vigilog.mediators.regions import common, joined, minus
from vigilog.mediators.solver import Solver
from vigilog.mediators.straight import NotGround
from vigilog.mediators.tests import evaluated
from vigilog.rewriting.program.normalize import normalize

MOST = 3  # what is stated has values from 0 to this
ARITIES = {"p": 1, "q": 2, "r": 1, "s": 2}
DECLARED = " ".join(f".decl {name}({', '.join(f'c{i}: number' for i in range(n))}) constrained" for name, n in ARITIES.items())

variables = st.sampled_from(["x", "y", "z"])
constants = st.integers(0, MOST)


@st.composite
def conditions(draw: st.DrawFn, names: list[str]) -> str:
    name, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    op, constant = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="])), draw(constants)
    return draw(
        st.sampled_from(
            [
                f"{name} {op} {constant}",
                f"{name} {op} {other}",
                f"{name} + {other} {op} {constant}",
                f"{name} = {other} + {constant}",
                f"2 * {name} {op} {other} + {constant}",
                f"{name} = ({other} + {constant}) % 3",
                f"{name} {op} {other} / 2",
                f"!({name} = {constant}, {other} >= {constant})",
            ]
        )
    )


def bounded(columns: list[str]) -> str:
    return ", ".join(f"{column} >= 0, {column} <= {MOST}" for column in columns)


@st.composite
def rules(draw: st.DrawFn, recursion: bool) -> str:
    head = draw(st.sampled_from(sorted(ARITIES)))
    below = [name for name in sorted(ARITIES) if recursion or name < head]
    args = [draw(variables) for _ in range(ARITIES[head])]
    body = []
    for _ in range(draw(st.integers(0, 2)) if below else 0):
        name = draw(st.sampled_from(below))
        body.append(f"{name}({', '.join(draw(variables) for _ in range(ARITIES[name]))})")
    used = sorted({letter for text in [*args, *body] for letter in text if letter in "xyz"})
    body += [draw(conditions(used)) for _ in range(draw(st.integers(0, 2)))]
    return f"{head}({', '.join(args)}) :- {', '.join([*body, bounded(sorted({*args, *used}))])}."


@st.composite
def updates(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        name = draw(st.sampled_from(sorted(ARITIES)))
        columns = [f"c{i}" for i in range(ARITIES[name])]
        some = ", ".join([bounded(columns), *(draw(conditions(columns)) for _ in range(draw(st.integers(0, 2))))])
        found.append((draw(st.sampled_from(["insert", "delete"])), name, some))
    return found


@dataclass
class Enumerated:
    """The meaning, by trying all values of a window."""

    text: str
    window: range

    def __post_init__(self) -> None:
        self.rules = normalize(check(f"{DECLARED} {self.text}").program).rules
        self.updates: list[tuple[bool, str, set[Row]]] = []

    def covered(self, name: str, region: list[Conjunction]) -> set[Row]:
        columns = [f"c{i}" for i in range(ARITIES[name])]
        return {row for row in product(self.window, repeat=len(columns)) if holds(region, dict(zip(columns, row, strict=True)))}

    def view(self) -> dict[str, set[Row]]:
        decided: dict[str, dict[Row, bool]] = {name: {} for name in ARITIES}
        for insert, name, rows in self.updates:
            decided[name].update(dict.fromkeys(rows, insert))
        state = {name: {row for row, insert in rows.items() if insert} for name, rows in decided.items()}
        while True:
            new = {
                (rule.head.relation, row)
                for rule in self.rules
                for row in self.derived(rule, state)
                if row not in state[rule.head.relation] and decided[rule.head.relation].get(row, True)
            }
            if not new:
                return state
            for name, row in new:
                state[name].add(row)

    def derived(self, rule: Rule, state: dict[str, set[Row]]) -> Iterator[Row]:
        used = sorted(names(rule))
        for values in product(self.window, repeat=len(used)):
            known: dict[str, Any] = dict(zip(used, values, strict=True))
            if all(self.true(literal, known, state) for literal in rule.body):
                yield tuple(evaluated(arg, known) for arg in rule.head.args)  # type: ignore[misc]  # all have values

    def true(self, literal: Any, known: dict[str, Any], state: dict[str, set[Row]]) -> bool:
        match literal:
            case Atom():
                return tuple(known[arg.name] for arg in literal.args if isinstance(arg, Variable)) in state[literal.relation]
            case Builtin():
                sides = [evaluated(arg, known) for arg in literal.args]
                return None not in sides and bool(functors.test(literal.op, sides))
            case _:
                raise AssertionError(literal)


def holds(region: list[Conjunction], known: dict[str, Any]) -> bool:
    """Whether a region has an instance, by its definition."""

    def one(part: Conjunction) -> bool:
        fixed: Conjunction | None = part
        for name, value in known.items():
            fixed = fixed and fixed.limited(name, part.runs[name].axis.only(value))
        return fixed is not None and not fixed.tests

    return any(map(one, region))


@examples(60)
@given(st.booleans().flatmap(lambda recursion: st.lists(rules(recursion), min_size=1, max_size=5)), st.lists(updates(), max_size=3))
def test_all_algorithms_give_what_enumeration_gives(texts: list[str], transactions: list[list[tuple[str, str, str]]]) -> None:
    text = " ".join(texts)
    judges = [Enumerated(text, range(-1, MOST + 2)), Enumerated(text, range(-3, MOST + 4))]
    views = {}
    for name in ALGORITHMS:
        try:
            views[name] = View(f"{DECLARED} {text}", name)
        except NotGround:
            assert name == "straight"
    before = judges[0].view()
    compare(views, judges, before)
    for transaction in transactions:
        told: dict[str, dict[str, list[dict[str, str]]]] = {}
        for operation in ("delete", "insert"):
            for kind, name, some in transaction:
                if kind == operation:
                    told.setdefault(kind, {}).setdefault(name, []).append({"where": some})
                    columns = {f"c{i}": check(DECLARED).program.relations[name].types[i] for i in range(ARITIES[name])}
                    for judge in judges:
                        judge.updates.append((kind == "insert", name, judge.covered(name, parsed_where(some, columns))))
        after = judges[0].view()
        for name in list(views):
            try:
                changes = views[name].take(told)
            except NotGround:
                assert name not in ("dred", "recompute")
                del views[name]
                continue
            for relation in ARITIES:
                found = changes.get(relation, {"plus": [], "minus": []})
                gained, lost = (region_rows(judges[0], relation, found[side]) for side in ("plus", "minus"))
                assert (gained, lost) == (after[relation] - before[relation], before[relation] - after[relation]), (name, relation)
        compare(views, judges, after)
        before = after


def region_rows(judge: Enumerated, relation: str, texts: list[str]) -> set[Row]:
    columns = {f"c{i}": check(DECLARED).program.relations[relation].types[i] for i in range(ARITIES[relation])}
    found = [part for text in texts for part in parsed_where(text, columns)]
    return judge.covered(relation, found)


def compare(views: dict[str, View], judges: list[Enumerated], expected: dict[str, set[Row]]) -> None:
    assert judges[1].view() == expected, "what is stated has bounds inside of both windows"
    for name, view in views.items():
        for relation in ARITIES:
            assert judges[0].covered(relation, view.algorithm.region(relation)) == expected[relation], (name, relation)
            assert region_rows(judges[0], relation, view.region(relation)) == expected[relation], "facts are read as they are written"


@examples(60)
@given(st.lists(conditions(["x", "y"]), min_size=1, max_size=3), st.lists(conditions(["x", "y"]), min_size=1, max_size=3))
def test_regions_are_sets(one: list[str], other: list[str]) -> None:
    """Over an unbounded plane: union, difference, intersection and complement, against trying values; and the texts against themselves."""
    columns = {name: check(".decl p(x: number)").program.relations["p"].types[0] for name in ("x", "y")}
    solver = Solver()
    first, second = parsed_where(", ".join(one), columns), parsed_where(", ".join(other), columns)
    less, both = minus(first, second, solver), common(first, second, solver)
    rest = parsed_where(f"!({', '.join(one)})", columns)
    written = [part for found in (first, less, rest) for piece in found for part in [parsed_where(where(piece), columns)]]
    pieces = [piece for found in (first, less, rest) for piece in found]
    for x, y in product(range(-3, 6), repeat=2):
        known = {"x": x, "y": y}
        in_first, in_second = holds(first, known), holds(second, known)
        assert holds(less, known) == (in_first and not in_second)
        assert holds(both, known) == (in_first and in_second)
        assert holds(rest, known) != in_first
        assert holds(joined([*less, *both]), known) == in_first
        assert [holds([piece], known) for piece in pieces] == [holds(part, known) for part in written]
    assert not common(less, second, solver) and not common(rest, first, solver)
