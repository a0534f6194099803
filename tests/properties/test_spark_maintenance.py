"""Random programs and random change streams on Spark: every delta is the difference of two states computed anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.engine.proofs import Judge
from tests.properties.programs import Facts, Transaction, changes, programs
from tests.treatments import examples
from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.engine.database import Database
from vigilog.executors.spark import demand, reader, stored, temporary
from vigilog.executors.spark.views import SparkViews
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.strategies import STRATEGIES

STRATEGY = st.sampled_from([*STRATEGIES])
CONSTANT = 4  # actions beside those of the rounds: rounds that turned out to be large, and what came of them
Rows = dict[str, set[tuple[Any, ...]]]

# Where rows are depends on how many there are. With other limits, few rows go the ways of many.
LIMITS: dict[str, dict[tuple[Any, str], int]] = {
    "as they are": {},
    "tables in Spark, tails here": {(stored, "LOCAL_ROWS"): 0},
    "tables in Spark, tails folded in": {(stored, "LOCAL_ROWS"): 1, (stored, "SHORT_TAIL"): 0, (stored, "FOLDED_PART"): 1},
    "large tables": {(stored, "LOCAL_ROWS"): 0, (temporary, "BROADCAST_ROWS"): 1},
    "large changes": {(demand, "COLLECTED_ROWS"): 2, (demand, "MOST_PARTS"): 1},
    "all is large": {(stored, "LOCAL_ROWS"): 0, (temporary, "BROADCAST_ROWS"): 0, (demand, "COLLECTED_ROWS"): 1},
}


@contextmanager
def limits(name: str) -> Iterator[None]:
    patches = [patch.object(module, constant, value) for (module, constant), value in LIMITS[name].items()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in patches:
            each.stop()


def states(program: Program, base: Rows) -> Rows:
    found = reference.evaluate(program, base)
    return {name: found[name] for name in program.outputs}


def stated(database: Database) -> Rows:
    return {name: database.rows(name) for name in database.homes}


def assert_exact(text: str, facts: Facts, stream: list[Transaction], strategy: str, budget: int | None) -> None:
    program = check(text).program
    with Database(program, facts, strategy, "spark", budget) as database:
        state = states(program, stated(database))
        for transaction in stream:
            told = database.apply(transaction, dry_run=True) if transaction is stream[0] else None
            found = database.apply(transaction)
            if not database.stats.recomputed:
                assert database.stats.statements <= database.stats.rounds + len(facts) + 2 * len(database.stored) + CONSTANT
            after = states(program, stated(database))
            assert found == {name: delta for name in state if (delta := between(state[name], after[name]))}
            assert told in (None, found)
            state = after
        assert {name: database.view(name) for name in program.outputs} == state
        assert isinstance(database.views, SparkViews)
        kept = {name: database.views.rows(name) for name in database.views.stored}
        rules = database.views.rules.program
        derived = reference.evaluate(rules, {home: database.rows(name) for name, home in database.homes.items() if home in rules.relations})
        assert kept == {name: derived[name] for name in kept}, "what is stored, numbers of proofs included, is what the rules give"


@examples(2)
@given(st.data())
def test_every_delta_is_exact(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    stream = data.draw(changes(facts))[:3]
    with limits(data.draw(st.sampled_from(sorted(LIMITS)))):
        assert_exact(text, facts, stream, data.draw(STRATEGY), data.draw(st.sampled_from([None, None, 0])))


@examples(1)
@given(st.data())
def test_the_inverse_goes_back(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY), "spark") as database:
        before = stated(database)
        found: dict[str, Delta] = {}
        for transaction in data.draw(changes(facts))[:3]:
            for name, delta in database.apply(transaction).items():
                found[name] = found.get(name, Delta()).then(delta)
        whole = {name: between(rows, database.rows(name)) for name, rows in before.items()}
        back = {"delete": {n: list(d.plus) for n, d in whole.items()}, "insert": {n: list(d.minus) for n, d in whole.items()}}
        assert database.apply(back) == {name: delta.inverse() for name, delta in found.items() if delta}


@examples(2)
@given(st.data())
def test_proofs_are_sought_by_questions(data: st.DataObject) -> None:
    """Where no table is small enough to come here as a whole."""
    text, facts = data.draw(programs())
    program, way, strategy = check(text).program, data.draw(st.sampled_from(sorted(LIMITS))), data.draw(STRATEGY)
    with limits(way), patch.object(reader, "FEW_ROWS", 0), Database(program, facts, strategy, "spark") as database:
        judge = Judge(database.program, stated(database))
        for name in program.outputs[-2:]:
            rows = sorted(judge.state[name])[:5]
            absent = [tuple(9 if isinstance(cell, int) else "z" for cell in row) for row in rows[:1] if row]
            proofs = [proof and judge.check(proof.json()) for proof in database.proofs(name, [*rows, *absent])]
            assert proofs == [(name, row) for row in rows] + [None] * len(absent)
