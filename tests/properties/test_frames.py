"""Random schemas, formulas, objects and changes: the relations of frames against an evaluator that enumerates objects and formulas directly."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.treatments import amount
from vigilog.core.errors import ProgramError
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.frames.syntax import And, Comparison, Formula, Implies, Isa, Link, Member, Not, Or, Quantified
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.language.syntax import Constant, Functor, Term, Variable

SCHEMA = """
class P with attribute friend: P; q: Q; attribute, single age: Integer end
class M isA P with attribute leads: Q end
class Q with attribute head: M; size: Integer end
"""
CLASSES = {"P": ["P", "M"], "M": ["M"], "Q": ["Q"]}
LABELS = {"friend": ("P", "P"), "q": ("P", "Q"), "age": ("P", ""), "leads": ("M", "Q"), "head": ("Q", "M"), "size": ("Q", "")}
ABOVE = {"P": ["P"], "M": ["M", "P"], "Q": ["Q"]}
OBJECTS = ["a", "b", "c", "d"]
NUMBERS = [0, 1, 2]

State = dict[str, set[tuple[Any, ...]]]


def members(state: State, name: str) -> set[str]:
    return {row[0] for narrow in CLASSES[name] for row in state[narrow]}


def linked(state: State, sort: str, label: str, x: str, y: Any) -> bool:
    owner, target = LABELS[label]
    return (x, y) in state[f"{owner}_{label}"] and x in members(state, owner) and (not target or y in members(state, target))


def value(term: Term, scope: dict[str, Any]) -> Any:
    match term:
        case Variable():
            return scope[term.name]
        case Constant():
            return term.value
        case Functor(name="+", args=(left, right)):
            return value(left, scope) + value(right, scope)
        case _:
            raise AssertionError(term)


def holds(formula: Formula, state: State, scope: dict[str, Any]) -> bool:
    match formula:
        case Member():
            return value(formula.object, scope) in members(state, formula.of.text)
        case Isa():
            return formula.wide.text in ABOVE[formula.narrow.text]
        case Link():
            ends = {value(formula.object, scope)}
            for place, label in enumerate(formula.path):
                last = place == len(formula.path) - 1
                wanted = [value(formula.value, scope)] if last else [*OBJECTS]
                ends = {y for x in ends for y in wanted if linked(state, "", label.text, x, y)}
            return bool(ends)
        case Comparison():
            left, right = value(formula.left, scope), value(formula.right, scope)
            return bool({"<": left < right, "=": left == right, ">=": left >= right, "!=": left != right}[formula.op])
        case Not():
            return not holds(formula.part, state, scope)
        case And():
            return all(holds(part, state, scope) for part in formula.parts)
        case Or():
            return any(holds(part, state, scope) for part in formula.parts)
        case Implies():
            left, right = holds(formula.left, state, scope), holds(formula.right, state, scope)
            return left == right if formula.both else (not left or right)
        case Quantified():
            judged = (holds(formula.body, state, scope | one) for one in assignments(formula, state))
            return all(judged) if formula.every else any(judged)
        case _:
            raise AssertionError(formula)


def assignments(formula: Quantified, state: State) -> Iterator[dict[str, Any]]:
    """All values of the variables. Values are taken from a range that is larger than what links lead to: a formula that is safe does not see the rest."""
    names = [(name.text, binding.sort.text) for binding in formula.bindings for name in binding.names]
    domains = [sorted(members(state, sort)) if sort in CLASSES else range(-1, 6) for _, sort in names]
    for values in itertools.product(*domains):
        yield dict(zip([name for name, _ in names], values, strict=True))


class Writer:
    """Writes random formulas; many with values are not safe, and are refused."""

    def __init__(self, chance: random.Random) -> None:
        self.chance, self.number = chance, 0

    def formula(self, scope: dict[str, str], depth: int) -> str:
        pick = self.chance.random()
        if depth <= 0 or pick < 0.2:
            return self.literal(scope)
        if pick < 0.32:
            return f"not {self.formula(scope, depth - 1)}" if self.chance.random() < 0.5 else f"not ({self.formula(scope, depth - 1)})"
        if pick < 0.62:
            sign = self.chance.choice(["and", "and", "or", "==>", "<==>"])
            return f"({self.formula(scope, depth - 1)}) {sign} ({self.formula(scope, depth - 1)})"
        self.number += 1
        name, word = f"v{self.number}", self.chance.choice(["forall", "exists"])
        if self.chance.random() < 0.65:
            sort = self.chance.choice(["P", "M", "Q"])
            return f"({word} {name}/{sort} {self.formula({**scope, name: sort}, depth - 1)})"
        owner = self.chance.choice([(each, sort) for each, sort in scope.items() if sort in CLASSES])
        label = "size" if owner[1] == "Q" else "age"
        rest, sign = self.formula({**scope, name: "Integer"}, depth - 1), "==>" if word == "forall" else "and"
        return f"({word} {name}/Integer ({owner[0]} {label} {name}) {sign} ({rest}))"

    def literal(self, scope: dict[str, str]) -> str:
        objects = [(name, sort) for name, sort in scope.items() if sort in CLASSES]
        numbers = [name for name, sort in scope.items() if sort == "Integer"]
        name, sort = self.chance.choice(objects)
        pick = self.chance.random()
        if numbers and pick < 0.3:
            other = self.chance.choice([*numbers, "1", "2"])
            return f"({self.chance.choice(numbers)} {self.chance.choice(['<', '=', '>=', '!='])} {other} + {self.chance.choice('01')})"
        if pick < 0.45:
            return f"({name} in {self.chance.choice(list(CLASSES))})"
        if pick < 0.5:
            return f"({self.chance.choice(list(CLASSES))} isA {self.chance.choice(list(CLASSES))})"
        labels = [label for label, (owner, _) in LABELS.items() if owner in ABOVE[sort]]
        label = self.chance.choice(labels)
        target = LABELS[label][1]
        if not target:
            return f"({name} {label} {self.chance.choice([*numbers, '1'])})"
        if target in ("Q", "M") and self.chance.random() < 0.3:
            return f"({name} {label}.{'head' if target == 'Q' else 'q'} {self.end('M' if target == 'Q' else 'Q', objects)})"
        return f"({name} {label} {self.end(target, objects)})"

    def end(self, target: str, objects: list[tuple[str, str]]) -> str:
        return self.chance.choice([*(name for name, _ in objects), '"a"', '"b"'])


def random_state(chance: random.Random) -> State:
    found: State = {name: {(each,) for each in OBJECTS if chance.random() < 0.5} for name in CLASSES}
    for label, (owner, target) in LABELS.items():
        ends = OBJECTS if target else NUMBERS
        pairs = {(x, y) for x in OBJECTS for y in ends if chance.random() < 0.3}
        if label == "age":
            pairs = set({x: (x, y) for x, y in pairs}.values())
        found[f"{owner}_{label}"] = pairs
    return found


def transaction(old: State, new: State) -> dict[str, dict[str, list[list[Any]]]]:
    return {
        "delete": {name: sorted(map(list, old[name] - new[name])) for name in old},
        "insert": {name: sorted(map(list, new[name] - old[name])) for name in old},
    }


def expected(views: dict[str, Formula], state: State) -> dict[str, set[tuple[Any, ...]]]:
    """The four relations of each view, from their definitions."""
    found: dict[str, set[tuple[Any, ...]]] = {}
    outer, inner = views["V"], views["VQ"]
    found["V"] = main = {(x,) for x in members(state, "P") if holds(outer, state, {"this": x})}
    among = {y for y in members(state, "Q") if holds(inner, state, {"this": y})}
    found["V_q"] = {(x, y) for (x,) in main for y in among if linked(state, "P", "q", x, y)}
    found["VQ"] = {(y,) for _, y in found["V_q"]}
    found["VQ_head"] = {(x, y) for (x,) in found["VQ"] for y in OBJECTS if linked(state, "Q", "head", x, y)}
    found["V_age"] = {(x, y) for (x,) in main for y in NUMBERS if linked(state, "P", "age", x, y)}
    found["V_far"] = {
        (x, z) for (x,) in main for y in OBJECTS for z in OBJECTS if linked(state, "P", "q", x, y) and linked(state, "Q", "head", y, z)
    }
    found["V_many"] = {(x, sum(linked(state, "P", "friend", x, y) for y in OBJECTS)) for (x,) in main}
    return found


@pytest.mark.parametrize("seed", range(amount(40)))
def test_views_are_what_their_formulas_say(seed: int) -> None:
    chance = random.Random(seed)
    strategy = chance.choice(["auto", "external", "materialized", "counted"])
    while True:
        writer = Writer(chance)
        outer, inner = writer.formula({"this": "P"}, 3), writer.formula({"this": "Q"}, 3)
        text = (
            SCHEMA
            + f"""view V isA P with
          attribute q: Q with attribute head: M constraint : $ {inner} $ end
            age: Integer; far: q.head; many: count of friend
          constraint : $ {outer} $
        end"""
        )
        try:
            program = check(text).program
        except ProgramError as refused:
            assert {found.code for found in refused.findings} <= {"unrestricted", "expansion"}, refused
            continue
        break
    assert parse(show(program)).frames == program.frames
    assert check(show(program)).program == program
    frame = program.frames[-1]
    formulas = {"V": frame.sections[1].formulas[0].formula, "VQ": frame.sections[0].properties[0].subframe[1].formulas[0].formula}  # type: ignore[union-attr,index]
    state = random_state(chance)
    with Database(program, state, strategy=strategy) as database:
        before = {name: database.view(name) for name in program.outputs}
        assert before == expected(formulas, state), text
        for _ in range(4):
            following = random_state(chance)
            changes = database.apply(transaction(state, following))
            state = following
            now = expected(formulas, state)
            for name in program.outputs:
                delta = changes.get(name)
                before[name] = before[name] if delta is None else delta.apply(before[name])
                assert before[name] == now[name], (name, text)


@pytest.mark.parametrize("seed", range(amount(20)))
def test_violations_are_counterexamples(seed: int) -> None:
    chance = random.Random(1000 + seed)
    while True:
        writer = Writer(chance)
        body = writer.formula({"this": "P", "m": "M", "s": "Integer"}, 2)
        text = SCHEMA + f"class P with constraint c: $ forall m/M s/Integer (m age s) ==> ({body}) $ end\n.output P_c"
        try:
            program = check(text).program
        except ProgramError as refused:
            assert {found.code for found in refused.findings} <= {"unrestricted", "expansion"}, refused
            continue
        break
    formula = program.frames[-1].sections[0].formulas[0].formula  # type: ignore[union-attr]
    assert isinstance(formula, Quantified)
    for _ in range(3):
        state = random_state(chance)
        with Database(program, state) as database:
            wanted = {
                (x, one["m"], one["s"])
                for x in members(state, "P")
                for one in assignments(formula, state)
                if not holds(formula.body, state, {"this": x, **one})
            }
            assert database.view("P_c") == wanted, text
