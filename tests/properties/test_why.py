"""Random programs: every row of every view has a proof that holds step by step, and every lost row one that is broken."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.proofs import Judge
from tests.properties.programs import OF_TYPE, Facts, changes, programs
from tests.properties.test_maintenance import STRATEGY, stated
from tests.treatments import examples
from vigilog.cli.arguments import to_line
from vigilog.core.sets import Set
from vigilog.core.values import Row, Type
from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.executors.embedded.demand import DemandMachine
from vigilog.executors.embedded.statements import TableSource
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.embedded.why import provable, questions
from vigilog.language.check import check
from vigilog.language.printer import show_statement
from vigilog.rewriting.demand.lineage import lineage
from vigilog.rewriting.maintenance.plan import plan
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.relevant import relevant


def _another(cell: Any) -> Any:
    """A value of the same type that random programs do not have."""
    match cell:
        case int():
            return 9
        case Set():
            return Set([9])
        case tuple():
            return tuple(map(_another, cell))
        case _:
            return "z"


@examples(18)
@given(st.data())
def test_every_row_has_a_proof(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    program = check(text).program
    with Database(program, facts, data.draw(STRATEGY)) as database:
        judge = Judge(database.program, stated(database))
        for name in program.relations:
            rows = sorted(judge.state[name])
            absent = [tuple(map(_another, row)) for row in rows[:1]]
            proofs = database.proofs(name, [*rows, *(row for row in absent if row not in judge.state[name])])
            assert [judge.check(proof.json()) for proof in proofs[: len(rows)] if proof] == [(name, row) for row in rows]
            assert proofs[len(rows) :] == [None] * (len(proofs) - len(rows))


def from_json(types: Sequence[Type], rows: list[list[Any]]) -> list[Row]:
    return [tuple(type_.from_json(cell) for type_, cell in zip(types, row, strict=True)) for row in rows]


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
                plus, minus = (
                    [(name, row) for row in from_json(program.relations[name].types, change[side])] for side in ("plus", "minus")
                )
                assert [after.check(proof) for proof in change["why"]["plus"]] == plus
                assert [after.check_broken(proof, before) for proof in change["why"]["minus"]] == minus
            before = after


@examples(40)
@given(st.data())
def test_a_proof_rests_on_its_lineage(data: st.DataObject) -> None:
    """Over the rows of base relations that its questions have read, a row has a proof if and only if it has one over all."""
    text, facts = data.draw(programs())
    with Database(check(text).program, facts, "external") as database:
        judge = Judge(database.program, stated(database))
        for name in sorted(set(database.plain.relations) - set(database.homes.values())):
            rows, types = judge.state[name], database.plain.relations[name].types
            others = product(*([OF_TYPE[type_.kind] for type_ in types]))
            for asked in [[row] for row in sorted(rows)[:3]] + [[row for row in others if row not in rows][:40]]:
                proofs = [proof and proof.rebuilt(database.stated_step).json() for proof in proofs_by_lineage(database, name, asked)]
                assert [judge.check(proof) for proof in proofs if proof] == [(name, row) for row in asked if row in rows]


# What fails over all rows, though `a` has read the rows that are joined: the rest of each body must have been read as well.
FAILING = {
    "negation": "!r(x, _)",
    "two negations that both fail": "!r(x, _), !s(x)",
    "an aggregate": "count : { r(x, _) } < 1",
    "two aggregates that both fail": "count : { r(x, _) } < 1, sum n : { r(x, n) } = 0",
    "an aggregate and a negation": "count : { r(x, _) } < 1, !s(x)",
    "a negation of what an aggregate gives": "n = count : { r(x, _) }, !s(n)",
    "an aggregate over what another gives": "n = count : { s(x) }, 0 = count : { r(n, _) }",
    "an aggregate that is joined": "n = count : { r(x, _) }, s(n + 5)",
    "a negation in an aggregate": "1 = count : { q(x), !r(x, _) }",
    "an aggregate in an aggregate": "0 = count : { r(x, y), y = count : { pair(_, _) } }",
    "ways of an aggregate": "0 = count : { r(x, y) ; pair(y, y), s(x + 7) }",
    "functors": "!r(x, x + 1), !s(x * 1)",
    "aggregates that need each other": "n = count : { r(m, _) }, m = count : { r(n, _) }, pair(n, m)",
}


@pytest.mark.parametrize("body", FAILING.values(), ids=FAILING)
def test_what_fails_fails_by_its_lineage(body: str) -> None:
    text = f".decl q(x: number) .decl r(x: number, y: number) .decl s(x: number) .decl pair(x: number, y: number) .decl a(x: number) .decl p(x: number) a(x) :- q(x). p(x) :- a(x), q(x), {body}."
    facts: Facts = {"q": [(1,), (2,)], "r": [(1, 2), (1, 1), (3, 1), (9, 9)], "s": [(1,), (2,), (8,)], "pair": [(1, 1)]}
    with Database(check(text).program, facts, "external") as database:
        held = [row[0] for row in database.ask("p(x)")]
        proofs = proofs_by_lineage(database, "p", [(1,), (2,)])
        assert [row for row, proof in zip((1, 2), proofs, strict=True) if proof] == held != [1, 2]
        assert isinstance(database.views, EmbeddedViews)
        assert (9, 9) not in lineage_of(database.views, "p", [(1,), (2,)], facts.keys())["r"], "not all is read"


def test_a_table_that_is_joined_by_what_an_aggregate_gives_is_not_read_without_it() -> None:
    text = ".decl q(x: number) .decl r(x: number, y: number) .decl big(n: number) .decl p(x: number) p(x) :- q(x), n = count : { r(x, _) }, big(n)."
    asked, _ = questions(provable(rewrite(check(text).program)), "p")
    rules = [show_statement(rule) for rule in lineage(asked.program, ["q", "r", "big"])[0].rules]
    assert rules[-2:] == ["read_big(n) :- m_p_b(x), q(x), big(n), n = count : { r(x, _) }.", "read_r(x, r1) :- m_p_b(x), q(x), r(x, r1)."]


def proofs_by_lineage(database: Database, relation: str, rows: list[Any]) -> list[Any]:
    views = database.views
    assert isinstance(views, EmbeddedViews)
    program, base = relevant(database.plain, [relation]), set(database.homes.values())
    with closing(EmbeddedViews(plan(program, ()), lineage_of(views, relation, rows, base & program.relations.keys()))) as others:
        return others.proofs(relation, rows)


def lineage_of(views: EmbeddedViews, relation: str, rows: list[Any], base: Collection[str]) -> dict[str, Any]:
    asked, question = questions(provable(views.reasoner.program), relation)
    reading, read = lineage(asked.program, base)
    sources = {name: TableSource(name, views.tables.layout.tables[name]) for name in views.contents}
    machine = DemandMachine(reading, asked.levels, views.tables, sources)
    steps = machine.plan([question], {})
    machine.seed(question, rows)
    machine.run(steps)
    return {name: set(machine.rows(own)) for name, own in read.items()}
