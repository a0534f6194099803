"""A data folder goes on with another program, in one transaction: what still means the same stays, the difference is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.engine.compiled import Compiled
from vigilog.engine.step import Outcome
from vigilog.engine.transaction import Transaction, check_keys
from vigilog.language.syntax import Declaration, Program

if TYPE_CHECKING:
    from vigilog.engine.durable import Durable


def redefine(db: Durable, program: Program) -> dict[str, Delta]:
    """Goes on with another program; gives, and publishes, what views gain and lose by that."""
    made = db.compile(program)
    old, new = db.compiled.fingerprints(), made.fingerprints()
    carried = _carried(db, made)
    was = {name: (db.program.relations[name], db.view(name)) for name in db.program.outputs if new.get(name) != old[name]}
    before = {name: rows for name, rows in db.compiled.stated.items() if name in carried}
    wish = {
        "delete": {name: sorted(gone) for name, rows in before.items() if (gone := rows - made.stated.get(name, set()))},
        "insert": {name: sorted(came) for name, rows in made.stated.items() if (came := rows - before.get(name, set()))},
    }
    enforced = {name: key for name, key in db.program.keys.items() if name in db.base}
    with db.swapping():
        db.write_program(program)
        db.queries.keep(made.program)
        db.large = db.large & carried.keys()
        for name in db.homes.keys() - carried.keys():
            db.file.connection.execute("DELETE FROM vigilog_snapshots WHERE relation = ?", (name,))
        db.build(made, carried)
        check_keys(db.program, db.base, enforced)
        tx, deltas = _note(db, was, wish, [name for name in db.program.outputs if old.get(name) != new[name]])
    alike = {
        name: delta for name, delta in deltas.items() if name not in was or _same_columns(was[name][0], db.program.relations.get(name))
    }
    db.step.publish(Outcome(tx, {}, alike))  # of what has other columns now, nobody's copy can follow
    return deltas


def _carried(db: Durable, made: Compiled) -> dict[str, Iterable[Row]]:
    """The base relations that a changed program has, too; with their rows, if these get another home. Raises DataError if it has no place for rows that there are."""
    found: dict[str, Iterable[Row]] = {}
    for name, home in db.homes.items():
        if name not in made.program.relations:
            continue
        there, stated = made.homes.get(name), db.compiled.stated.get(name, set())
        if there is not None and _columns(made.plain, there) == _columns(db.plain, home):
            found[name] = () if there == home or name in db.large else list(db.views.rows(home))
        elif any(row not in stated for row in db.views.rows(home)):
            raise DataError(f"{name} has rows; delete them, or drop {name}, before it is declared or derived in another way", "has-rows")
    return found


def _note(
    db: Durable, was: Mapping[str, tuple[Declaration, set[Row]]], wish: Transaction, changed: Sequence[str]
) -> tuple[int, dict[str, Delta]]:
    """Writes down what a change of definitions does: to views whose meaning it changes, and by rows that the program states now, or no more."""
    outcome = Outcome(db.book.last, db.step.propose(wish))
    moved = {db.homes[name]: delta for name, delta in outcome.changes.items()}
    deltas = db.views.apply(moved) if moved else {}
    said = {name: db.book.said(name, delta) for name, delta in deltas.items() if name not in changed}
    for name in dict.fromkeys([*was, *changed]):
        declaration, rows = was.get(name, (None, set()))
        now = db.view(name) if name in db.program.outputs else set()
        deltas[name] = between(rows, now)
        said[name] = db.book.said(name, deltas[name], lost=declaration)
    changes = {name: db.book.said(name, delta) for name, delta in outcome.changes.items()}
    tx = db.book.log.append("define", changes, {name: parts for name, parts in said.items() if parts})
    db.file.put("defined", tx)
    db.book.defined = tx
    return tx, {name: delta for name, delta in deltas.items() if delta}


def _columns(program: Program, relation: str) -> list[tuple[str, Type]]:
    declaration = program.relations[relation]
    return list(zip(declaration.columns, declaration.types, strict=True))


def _same_columns(one: Declaration, other: Declaration | None) -> bool:
    return other is not None and (one.columns, one.types) == (other.columns, other.types)
