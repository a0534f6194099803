"""Recursion through `min` and `max`: what is kept is the best, whatever comes and goes, also in cycles that support only themselves."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.improving import improving_changes, improving_programs
from tests.properties.programs import Facts
from tests.properties.test_executors_agree import EveryRound
from tests.properties.test_maintenance import STRATEGY, Rows, ensure_exact, stated, states
from tests.treatments import examples
from vigilog import reference
from vigilog.engine.database import Database
from vigilog.engine.evaluate import evaluate
from vigilog.executors.duckdb import machine
from vigilog.executors.duckdb.tail import Pace
from vigilog.language.check import check
from vigilog.language.printer import show
from vigilog.rewriting.passes import rewrite


@examples(40)
@given(st.data())
def test_every_delta_is_exact(data: st.DataObject) -> None:
    text, facts = data.draw(improving_programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY), budget=data.draw(st.sampled_from([None, None, 0]))) as database:
        assert {name: database.view(name) for name in program.outputs} == states(program, stated(database))
        ensure_exact(database, program, data.draw(improving_changes(facts)))


@examples(15)
@given(st.data())
def test_goals_and_reasons_agree(data: st.DataObject) -> None:
    text, facts = data.draw(improving_programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY)) as database:
        database.apply(data.draw(improving_changes(facts))[0])
        state = reference.evaluate(program, stated(database))
        columns = program.relations["p"].columns
        at = columns.index("x")
        for name in "abcd":
            known = ", ".join(f"'{name}'".replace("'", '"') if place == at else column for place, column in enumerate(columns))
            assert set(database.ask(f"p({known})")) == {row for row in state["p"] if row[at] == name}
        rows_of_p = sorted(state["p"])
        for row, proof in zip(rows_of_p, database.proofs("p", rows_of_p), strict=True):
            assert proof is not None, f"p{row} has a proof"


@examples(15)
@given(improving_programs())
def test_what_is_printed_means_the_same(drawn: tuple[str, Facts]) -> None:
    text, facts = drawn
    program = check(text).program
    rows: Rows = {name: {*given} for name, given in facts.items()}
    before, after = reference.evaluate(program, rows), reference.evaluate(check(show(rewrite(program))).program, rows)
    assert {name: before[name] for name in program.outputs} == {name: after[name] for name in program.outputs}


@examples(40)
@given(improving_programs(), st.booleans())
def test_duckdb_agrees_with_the_reference(drawn: tuple[str, Facts], turning: bool) -> None:
    """Also where it changes engines after each round."""
    text, facts = drawn
    program = check(text).program
    with patch.object(machine, "Pace", EveryRound if turning else Pace):
        found = evaluate(program, facts, "duckdb")
    right = reference.evaluate(program, {name: {*given} for name, given in facts.items()})
    assert {name: found[name] for name in program.outputs} == {name: right[name] for name in program.outputs}
