"""Random programs: what is said of a row that is not there is true, literal by literal, and is said of every rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.proofs import Judge
from tests.properties.programs import OF_TYPE, programs
from tests.properties.test_maintenance import STRATEGY, stated
from tests.treatments import examples
from vigilog.core.whynot import WhyNot
from vigilog.engine.database import Database
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.parts import is_fact
from vigilog.language.printer import show_constant, show_statement
from vigilog.language.syntax import Atom, Literal


@examples(12)
@given(st.data())
def test_what_is_said_is_true(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY)) as database:
        judge = Judge(database.program, stated(database))
        for name, declaration in program.relations.items():
            columns: list[Iterable[Any]] = [OF_TYPE[type_.kind] for type_ in declaration.types]
            absent = [row for row in product(*columns) if row not in judge.state[name]]
            for row in absent[:: max(1, len(absent) // 3)]:
                goal = f"{name}({', '.join([show_constant(cell) for cell in row])})"
                found = database.why_not(goal, data.draw(st.integers(1, 2)))
                assert found is not None and found.literal == goal
                for node in _nodes(found):
                    assert_true(node, judge)
            for present in sorted(judge.state[name])[:1]:
                assert database.why_not(f"{name}({', '.join(map(show_constant, present))})") is None


def assert_true(said: WhyNot, judge: Judge) -> None:
    literal = _literal(said.literal)
    assert not judge.holds(said.literal), f"{said.literal} holds"
    assert all(judge.holds(near) for near in said.near), "rows that are near are there"
    if not said.rules:
        return
    assert isinstance(literal, Atom)
    rules = {
        show_statement(rule)
        for rule in judge.program.rules
        if any(head.relation == literal.relation for head in rule.heads) and not is_fact(rule)
    }
    assert {attempt.rule for attempt in said.rules} == rules, "every rule is looked at"
    for attempt in said.rules:
        assert (attempt.rule, attempt.place) in judge.rules
        assert attempt.ways or attempt.note or "false" in attempt.rule
        for way in attempt.ways:
            assert all(judge.holds(held) for held in way.holds), f"{way.holds} do not hold"


def _nodes(said: WhyNot) -> Iterator[WhyNot]:
    yield said
    for attempt in said.rules:
        for way in attempt.ways:
            yield from _nodes(way.fails)


def _literal(text: str) -> Literal:
    return parse(f"answer() :- {text}.").rules[0].body[0]
