"""Random programs and random change streams: every delta is the difference of two states computed anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.programs import changes, programs
from tests.treatments import examples
from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.engine.database import Database
from vigilog.engine.transaction import Transaction
from vigilog.executors.embedded.stored import StoredComponent
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.rewriting.maintenance.strategies import STRATEGIES

STRATEGY = st.sampled_from([*STRATEGIES, "auto"])
Rows = dict[str, set[tuple[Any, ...]]]


def states(program: Program, base: Rows) -> Rows:
    found = reference.evaluate(program, base)
    return {name: found[name] for name in program.outputs}


def stated(database: Database) -> Rows:
    return {name: database.rows(name) for name in database.homes}


def expected(old: Rows, new: Rows) -> dict[str, Delta]:
    return {name: delta for name in old if (delta := between(old[name], new[name]))}


def ensure_exact(database: Database, program: Program, stream: Iterable[Transaction]) -> None:
    """Each transaction tells what the reference finds before and after it, and a dry run tells the same and changes nothing."""
    state = states(program, stated(database))
    for transaction in stream:
        told = database.apply(transaction, dry_run=True)
        assert {name: database.view(name) for name in program.outputs} == state, "a dry run changes nothing"
        found = database.apply(transaction)
        after = states(program, stated(database))
        assert found == told == expected(state, after)
        assert {name: database.view(name) for name in program.outputs} == after
        state = after


@examples(22)
@given(st.data())
def test_every_delta_is_exact(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY), budget=data.draw(st.sampled_from([None, None, 0]))) as database:
        doubtful = data.draw(st.sampled_from([1, 64]))
        assert isinstance(database.views, EmbeddedViews)
        for keeper in database.views.maintainer.keepers:
            if isinstance(keeper, StoredComponent):
                keeper.doubtful = doubtful
        ensure_exact(database, program, data.draw(changes(facts)))


@examples(9)
@given(st.data())
def test_stepwise_is_at_once_and_the_inverse_goes_back(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    stream = data.draw(changes(facts))
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY)) as stepwise, Database(program, facts, data.draw(STRATEGY)) as at_once:
        before, views = stated(stepwise), {name: stepwise.view(name) for name in program.outputs}
        total: dict[str, Delta] = {}
        for transaction in stream:
            for name, delta in stepwise.apply(transaction).items():
                total[name] = total.get(name, Delta()).then(delta)
        whole = {name: between(rows, stepwise.rows(name)) for name, rows in before.items()}
        forth = {"delete": {n: list(d.minus) for n, d in whole.items()}, "insert": {n: list(d.plus) for n, d in whole.items()}}
        back = {"delete": {n: list(d.plus) for n, d in whole.items()}, "insert": {n: list(d.minus) for n, d in whole.items()}}
        found = at_once.apply(forth)
        assert found == {name: delta for name, delta in total.items() if delta}
        assert at_once.apply(back) == {name: delta.inverse() for name, delta in found.items()}
        assert {name: at_once.view(name) for name in program.outputs} == views


@examples(16)
@given(st.data())
def test_keys_change_nothing_but_the_work(data: st.DataObject) -> None:
    """With keys, and changes that go by them, every delta is exact: what a key determines need not be asked."""
    text, facts = data.draw(programs())
    keys = {name: data.draw(st.integers(1, len(rows[0]))) for name, rows in facts.items() if rows and rows[0]}
    plain = check(text).program
    keyed = [f".key {name}({', '.join(plain.relations[name].columns[:width])})" for name, width in keys.items()]
    program = check("\n".join([text, *keyed])).program
    rows = {name: list({row[: keys.get(name)]: row for row in given}.values()) if name in keys else given for name, given in facts.items()}
    stated_rows = {name for name, _ in _stated_facts(program)}
    if stated_rows & keys.keys():
        return  # the rows that a program states may break the key
    with Database(program, rows, data.draw(STRATEGY)) as database:
        state = states(program, stated(database))
        for transaction in data.draw(changes(facts)):
            wanted = {
                name: list({tuple(row)[: keys.get(name)]: row for row in given}.values())
                for name, given in transaction.get("insert", {}).items()
            }
            by_key = {name: given for name, given in wanted.items() if name in keys}
            found = database.apply(
                {
                    "delete": transaction.get("delete", {}),
                    "insert": {name: given for name, given in wanted.items() if name not in keys},
                    "upsert": by_key,
                }
            )
            after = states(program, stated(database))
            assert found == expected(state, after)
            state = after


def _stated_facts(program: Program) -> list[tuple[str, object]]:
    return [(head.relation, head) for rule in program.rules if not rule.body for head in rule.heads]
