"""Random programs: what the executors derive is what the reference derives."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.executors.test_duckdb import scarce
from tests.properties.programs import programs
from tests.treatments import examples
from vigilog import reference
from vigilog.engine.evaluate import evaluate
from vigilog.executors import growing
from vigilog.executors.duckdb import machine as duck
from vigilog.executors.duckdb import tail
from vigilog.executors.embedded import tables
from vigilog.executors.spark import machine, near
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.rewriting.passes import rewrite

Drawn = tuple[str, dict[str, list[tuple[Any, ...]]]]


def assert_agrees(drawn: Drawn, engine: str) -> None:
    text, facts = drawn
    program = check(text).program
    expected = reference.evaluate(program, facts)
    found = evaluate(program, facts, engine)
    for relation in program.outputs:
        assert found[relation] == expected[relation], relation


@examples(140)
@given(programs())
def test_embedded_agrees_with_the_reference(drawn: Drawn) -> None:
    assert_agrees(drawn, "embedded")


@examples(140)
@given(programs())
def test_duckdb_agrees_with_the_reference(drawn: Drawn) -> None:
    assert_agrees(drawn, "duckdb")


class EveryRound(tail.Pace):
    def down(self, recent: int, seconds: float, rows: int) -> bool:
        return True

    def up(self, recent: int) -> bool:
        return True


@examples(40)
@given(programs())
def test_engines_that_change_each_round_agree_with_the_reference(drawn: Drawn) -> None:
    with patch.object(duck, "Pace", EveryRound), patch.object(duck, "linear", lambda *_: False):
        assert_agrees(drawn, "duckdb")


@examples(40)
@given(programs(), st.sampled_from([5, 17]))
def test_statements_in_parts_agree_with_the_reference(drawn: Drawn, parts: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        scarce(patched, parts=parts)
        assert_agrees(drawn, "duckdb")


@examples(60)
@given(programs(), st.sampled_from([0.0, 0.0005, 0.002]))
def test_what_begins_on_sqlite_agrees_with_the_reference(drawn: Drawn, patience: float) -> None:
    with patch.object(growing, "PATIENCE", patience), patch.object(tables, "STEPS_BETWEEN_LOOKS", 10):
        assert_agrees(drawn, "auto")


@examples(12)
@given(programs(), st.sampled_from([machine.SMALL_ROWS, 3, 0]))
def test_spark_agrees_with_the_reference(drawn: Drawn, few: int) -> None:
    with patch.object(machine, "SMALL_ROWS", few), patch.object(near, "READ_ROWS", near.READ_ROWS if few > 3 else -1):
        assert_agrees(drawn, "spark")


@examples(70)
@given(programs())
def test_printed_and_normalized_programs_mean_the_same(drawn: Drawn) -> None:
    text, facts = drawn
    program = parse(text)
    assert parse(show(program)) == program
    checked = check(program).program
    expected = reference.evaluate(checked, facts)
    again = check(show(rewrite(checked))).program
    found = reference.evaluate(again, facts)
    for relation in checked.outputs:
        assert found[relation] == expected[relation], relation
