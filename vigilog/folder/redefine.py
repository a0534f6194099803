"""A data folder goes on with another program, in one transaction: what still means the same stays, the difference is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.engine.compiled import Compiled
from vigilog.engine.step import Outcome
from vigilog.engine.transaction import Transaction, check_keys
from vigilog.folder.large import Past
from vigilog.language.syntax import Program

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable


def redefine(db: Durable, program: Program) -> dict[str, Delta]:
    """Goes on with another program; gives, and publishes, what views gain and lose by that. What is too much for this process stays on Spark: the outbox names it."""
    made = db.compile(program)
    old, new = db.compiled.fingerprints(), made.fingerprints()
    carried = _carried(db, made)
    past = Past(db.compiled, {name: db.store.seen(name) for name in db.program.outputs if new.get(name) != old[name]})
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
        tx, deltas, far = _note(db, past, wish, [name for name in db.program.outputs if old.get(name) != new[name]])
    strange = {name for name in past.views if not past.alike(name, db.program)}  # what has other columns now, no copy can follow
    told = {name: delta for name, delta in deltas.items() if name not in strange}
    db.step.publish(Outcome(tx, {}, told, tuple(name for name in far if name not in strange)))
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
        elif any(row not in stated for row in db.store.some(name, len(stated) + 1)):
            raise DataError(f"{name} has rows; delete them, or drop {name}, before it is declared or derived in another way", "has-rows")
    return found


def _note(db: Durable, past: Past, wish: Transaction, changed: Sequence[str]) -> tuple[int, dict[str, Delta], list[str]]:
    """Writes down what a change of definitions does: to views whose meaning it changes, and by rows that the program states now, or no more. Gives the changes, and which of them stay on Spark."""
    outcome = Outcome(db.book.last, db.step.propose(wish))
    moved = {db.homes[name]: delta for name, delta in outcome.changes.items()}
    deltas = db.views.apply(moved) if moved else {}
    said = {name: db.book.said(name, delta) for name, delta in deltas.items() if name not in changed}
    far = []
    for name in dict.fromkeys([*past.views, *changed]):
        now = db.store.seen(name) if name in db.program.outputs else None
        said[name], delta = db.store.redefined(past, name, now)
        deltas.pop(name, None)
        if delta is None:
            far.append(name)
        else:
            deltas[name] = delta
    changes = {name: db.book.said(name, delta) for name, delta in outcome.changes.items()}
    tx = db.book.log.append("define", changes, {name: parts for name, parts in said.items() if parts})
    db.file.put("defined", tx)
    db.book.defined = tx
    return tx, {name: delta for name, delta in deltas.items() if delta}, far


def _columns(program: Program, relation: str) -> list[tuple[str, Type]]:
    declaration = program.relations[relation]
    return list(zip(declaration.columns, declaration.types, strict=True))
