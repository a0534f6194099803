"""A data folder goes on with another program: what still means the same stays, the difference is the effect."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vigilog.core.delta import Delta, between
from vigilog.core.effect import Effect, Part
from vigilog.core.errors import DataError
from vigilog.core.values import Row, Type
from vigilog.engine.compiled import Compiled
from vigilog.engine.proposal import Settle
from vigilog.engine.transaction import Transaction, check_keys, net_changes
from vigilog.folder.large import FormerProgram
from vigilog.language.program import Program

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable


@dataclass(frozen=True)
class Redefinition:
    """Another program for a data folder. Nothing fires: what views gain and lose by it has not happened to anything."""

    db: Durable
    program: Program
    fires = False

    def maintain(self, settle: Settle, *, keep: bool, idle: bool) -> None:
        db, made = self.db, self.db.compile(self.program)
        old, new = db.compiled.fingerprints(), made.fingerprints()
        carried = _carried(db, made)
        past = FormerProgram(db.compiled, {name: db.store.seen(name) for name in db.compiled.told if new.get(name) != old[name]})
        asked = {name: db.queries.seen(name) for name in sorted(made.queries & db.compiled.queries) if new[name] != old[name]}
        wish, enforced = _stated(db.compiled, made, carried.keys()), {name: key for name, key in db.program.keys.items() if name in db.base}
        with db.swapping(keep=keep), ExitStack() as resources:
            db.write_program(self.program)
            db.book.notes.redefine(made.program, made.conditions.alerts)
            db.queries.keep(made.program)
            db.large = db.large & carried.keys()
            for name in db.homes.keys() - carried.keys():
                db.file.connection.execute("DELETE FROM vigilog_snapshots WHERE relation = ?", (name,))
            db.build(made, carried)
            check_keys(db.program, db.base, enforced)
            changes = net_changes(db.program, db.base, wish)
            moved = {db.homes[name]: delta for name, delta in changes.items()}
            views: dict[str, Part] = {**db.views.apply(moved)} if moved else {}
            if moved:
                db.begin_again()
            views |= {name: between(rows, db.queries.seen(name)) for name, rows in asked.items()}
            for name in dict.fromkeys([*past.views, *(name for name in made.told if old.get(name) != new[name])]):
                views[name] = db.store.redefined(past, name, resources)
            redeclared = [name for name in past.compiled.program.outputs if name in past.views and not past.alike(name, db.program)]
            settle(Effect(changes, {name: part for name, part in views.items() if not isinstance(part, Delta) or part}, redeclared))


def _stated(before: Compiled, made: Compiled, carried: Iterable[str]) -> Transaction:
    """The rows that the program states now, and states no more."""
    stated = {name: before.stated[name] for name in carried if name in before.stated}
    return {
        "delete": {name: sorted(gone) for name, rows in stated.items() if (gone := rows - made.stated.get(name, set()))},
        "insert": {name: sorted(came) for name, rows in made.stated.items() if (came := rows - stated.get(name, set()))},
    }


def _carried(db: Durable, made: Compiled) -> dict[str, Iterable[Row]]:
    """The base relations that a changed program has, too; with their rows, if these get another home. Raises DataError if it has no place for rows that there are."""
    carried: dict[str, Iterable[Row]] = {}
    for name, home in db.homes.items():
        if name not in made.program.relations:
            continue
        there, stated = made.homes.get(name), db.compiled.stated.get(name, set())
        if there is not None and _columns(made.plain, there) == _columns(db.plain, home):
            carried[name] = () if there == home or name in db.large else list(db.views.rows(home))
        elif any(row not in stated for row in db.store.some(name, len(stated) + 1)):
            raise DataError(f"{name} has rows; delete them, or drop {name}, before it is declared or derived in another way", "has-rows")
    return carried


def _columns(program: Program, relation: str) -> list[tuple[str, Type]]:
    declaration = program.relations[relation]
    return list(zip(declaration.columns, declaration.types, strict=True))
