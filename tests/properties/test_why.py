"""Random programs: every row of every view has a proof that holds step by step, and every lost row one that is broken."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.proofs import Judge
from tests.properties.programs import changes, programs
from tests.properties.test_maintenance import STRATEGY, stated
from tests.treatments import examples
from vigilog.cli.arguments import to_line
from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.language.check import check


@examples(18)
@given(st.data())
def test_every_row_has_a_proof(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY)) as database:
        judge = Judge(database.program, stated(database))
        for name in program.relations:
            rows = sorted(judge.state[name])
            absent = [tuple(9 if isinstance(cell, int) else "z" for cell in row) for row in rows[:1]]
            proofs = database.proofs(name, [*rows, *(row for row in absent if row not in judge.state[name])])
            assert [judge.check(proof.json()) for proof in proofs[: len(rows)] if proof] == [(name, row) for row in rows]
            assert proofs[len(rows) :] == [None] * (len(proofs) - len(rows))


@examples(18)
@given(st.data())
def test_every_change_has_its_reason(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    stream: list[Any] = data.draw(changes(facts))
    with Database(program, facts, data.draw(STRATEGY)) as database:
        before = Judge(database.program, stated(database))
        for answer in watch(database, [to_line(transaction) for transaction in stream], why=True):
            after = Judge(database.program, stated(database))
            for name, change in answer["views"].items():
                assert [after.check(proof) for proof in change["why"]["plus"]] == [(name, tuple(row)) for row in change["plus"]]
                lost = [after.check_broken(proof, before) for proof in change["why"]["minus"]]
                assert lost == [(name, tuple(row)) for row in change["minus"]]
            before = after
