"""Random programs and change streams on a data folder that is closed and opened at random: it is always what the reference says."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.programs import Transaction, changes, programs
from tests.properties.test_maintenance import STRATEGY, Rows, expected, stated, states
from tests.treatments import examples
from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.folder import book as ledger
from vigilog.folder.backup import restore
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program
from vigilog.language.check import check


def views(db: Durable, at: int | None = None) -> Rows:
    return {name: db.view(name, at) for name in db.program.outputs}


def changed(base: Rows, transaction: Transaction) -> Rows:
    """What a transaction makes of base relations."""
    gone, came = transaction.get("delete", {}), transaction.get("insert", {})
    return {name: (rows - set(gone.get(name, ()))) | set(came.get(name, ())) for name, rows in base.items()}


def assert_followed(db: Durable, known: dict[int, Rows]) -> None:
    """Every retained state can be looked at; the changes after it lead to the present."""
    now = views(db)
    for tx, then in known.items():
        if tx >= db.oldest:
            assert views(db, at=tx) == then
        copies: Rows = {name: set(rows) for name, rows in then.items()}
        for _, view, delta in db.changes(tx):
            rows = copies.setdefault(view, set())
            assert delta.minus <= rows and delta.plus.isdisjoint(rows), "a change fits what came before"
            copies[view] = delta.apply(rows)
        assert {name: copies.get(name, set()) for name in now} == now


@examples(5)
@given(st.data())
def test_a_data_folder_is_what_the_reference_says(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    stream = data.draw(changes(facts))
    many = data.draw(st.sampled_from([1, 2, 10_000]))  # from so many rows on, a change goes into a segment
    with TemporaryDirectory() as folder, patch.object(ledger, "MANY_ROWS", many):
        db = open_program(text, facts, data=Path(folder) / "data", strategy=data.draw(STRATEGY))
        try:
            base = stated(db)
            known = {0: states(db.program, base)}
            for transaction in stream:
                if data.draw(st.booleans()):
                    db.close()
                    db = open_program(data=Path(folder) / "data")
                before = views(db)
                found = db.apply(transaction)
                base = changed(base, transaction)
                after = states(db.program, base)
                assert (stated(db), views(db)) == (base, after)
                assert found == expected(before, after)
                known[db.tx] = after
            assert_followed(db, known)
            assert db.verify().problems == []
            db.backup(Path(folder) / "copy")
            restore(Path(folder) / "copy", Path(folder) / "other")
            with open_program(data=Path(folder) / "other") as other:
                assert (stated(other), views(other), other.tx) == (base, after, db.tx)
                assert_followed(other, known)
                assert other.file.history != db.file.history
        finally:
            db.close()


@examples(5)
@given(st.data())
def test_definitions_change_to_what_is_computed_anew(data: st.DataObject) -> None:
    """Another program takes the place of one: what both have as base keeps its rows, all else is derived anew, and the changes lead there."""
    (text, facts), (other, others) = data.draw(programs()), data.draw(programs())
    with TemporaryDirectory() as folder:
        place = Path(folder) / "data"
        with open_program(text, facts, data=place, strategy=data.draw(STRATEGY)) as db:
            db.apply(data.draw(changes(facts))[0])
            old, before, tx = {name: db.rows(name) for name in facts}, views(db), db.tx
        with open_program(other, data=place, define=True) as db:
            assert db.tx == tx + (check(text).program != check(other).program and db.redefined != "")
            assert {name: db.rows(name) for name in others} == {name: old.get(name, set()) for name in others}
            assert views(db) == states(db.program, stated(db)) == states(check(other).program, {name: db.rows(name) for name in others})
            assert_definition(db, tx, before)
            assert db.verify().problems == []
            assert_added(db, data.draw(st.sampled_from(db.program.outputs)))
            assert_dropped(db, data.draw(st.sampled_from(sorted(db.program.relations))))
            db.apply(data.draw(changes({name: rows for name, rows in others.items() if name in db.homes}))[0])
            assert views(db) == states(db.program, stated(db))
            assert db.verify().problems == []
        with open_program(data=place) as db:
            assert views(db) == states(db.program, stated(db))


def assert_definition(db: Durable, tx: int, before: Rows) -> None:
    """What a definition changed is told like any other change: of a view that has other columns now, all it has."""
    copies = {name: set(rows) for name, rows in before.items()}
    now = views(db)
    for name in now:
        told = [delta for _, view, delta in db.changes(tx) if view == name]
        rows = copies.get(name, set())
        for delta in told:
            rows = delta.apply(rows)
        assert rows == now[name]


def assert_added(db: Durable, name: str) -> None:
    declaration = db.program.relations[name]
    columns = ", ".join(f"{attribute.name}: {attribute.type}" for attribute in declaration.attributes)
    variables = ", ".join(declaration.columns)
    deltas = db.define(f".decl added({columns})\n.output added\nadded({variables}) :- {name}({variables}).")
    assert db.view("added") == db.view(name)
    assert deltas == ({"added": Delta(plus=frozenset(db.view(name)))} if db.view(name) else {})


def assert_dropped(db: Durable, name: str) -> None:
    before, base = views(db), stated(db)
    try:
        deltas = db.drop(name)
    except DataError as error:
        assert error.code == "needed"
        assert (views(db), stated(db)) == (before, base), "nothing has changed"
        return
    assert deltas == ({name: Delta(minus=frozenset(before[name]))} if before.get(name) else {})
    assert views(db) == {view: rows for view, rows in before.items() if view != name}
    assert stated(db) == {relation: rows for relation, rows in base.items() if relation != name}


@examples(1)
@given(st.data())
def test_a_mix_of_resident_relations_and_ones_on_spark(data: st.DataObject) -> None:
    text, facts = data.draw(programs())
    stream: list[Transaction] = data.draw(changes(facts))[:2]
    large: list[str] = data.draw(st.lists(st.sampled_from(sorted(facts)), min_size=1, max_size=2, unique=True))
    with TemporaryDirectory() as folder:
        db = open_program(text, facts, data=Path(folder) / "data", strategy=data.draw(STRATEGY))
        try:
            move_to_spark(db, large)
            base = stated(db)
            known = {0: states(db.program, base)}
            assert views(db) == known[0]
            for transaction in stream:
                if data.draw(st.booleans()):
                    db.close()
                    db = open_program(data=Path(folder) / "data")
                before = known[db.tx]
                told = db.apply(transaction, dry_run=True)
                found = db.apply(transaction)
                base = changed(base, transaction)
                known[db.tx] = states(db.program, base)
                assert found == told == expected(before, known[db.tx])
                assert (stated(db), views(db)) == (base, known[db.tx])
            assert_followed(db, known)
            db.compact(large[:1])
            assert (stated(db), views(db)) == (base, known[db.tx])
            assert db.verify().problems == []
        finally:
            db.close()


def move_to_spark(db: Durable, relations: list[str]) -> None:
    """Makes relations as if they were too large to be resident."""
    db.compact(relations)
    with db.swapping():
        db.move(frozenset(relations))
