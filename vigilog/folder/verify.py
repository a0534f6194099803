"""Computes everything anew and compares it with all that is kept.

What is kept and could be wrong: the pages of the file, the entries of log and outbox, segments, stored views, numbers of proofs, snapshots. What follows from what: a snapshot with the log since is the base;
the views follow from the base by the rules; a view at the oldest state that is retained, with the outbox since, is the view now.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vigilog import reference
from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError, UsageError, VigilogError, counted
from vigilog.core.extras import DUCKDB
from vigilog.core.values import Row
from vigilog.executors import growing
from vigilog.executors.watch import Watch
from vigilog.language.program import Program
from vigilog.mediators.canonical import canonical
from vigilog.mediators.facts import where
from vigilog.mediators.regions import Region, common, minus
from vigilog.mediators.solver import Solver
from vigilog.rewriting.maintenance.turning import states
from vigilog.rewriting.program.relevant import relevant
from vigilog.store.file import explained

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable

FEW_ROWS = 200  # up to so many rows, kept altogether, the reference computes in a moment
MANY_ROWS = 20_000  # from so many rows DuckDB computes, if it is there
WAYS = ("auto", "reference", "embedded", "duckdb", "spark")
SHOWN = 3

Rows = dict[str, set[Row]]


@dataclass
class Verified:
    """What was compared, how, and what was found wrong."""

    by: str
    checked: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    @property
    def fine(self) -> bool:
        return not self.problems

    @contextmanager
    def checking(self, what: str, db: Durable) -> Iterator[None]:
        """Notes what is checked; if it cannot be read, that is a problem like others, but that Spark has ended is none of the data."""
        self.watch.begin(f"checking {what}")
        before = len(self.problems)
        try:
            yield
        except VigilogError as reason:
            if reason.code == "spark":
                raise
            self.problems.append(f"{what}: {reason}")
        except sqlite3.DatabaseError as reason:
            self.problems.append(f"{what}: {explained(reason, db.file.path)}")
        if len(self.problems) == before:
            self.checked.append(what)

    def compare(self, what: str, kept: set[Any], right: set[Any]) -> None:
        if kept != right:
            self.problems.append(f"{what}: {_difference(kept, right)}")


def verify(db: Durable, by: str = "auto") -> Verified:
    """Checks an open database; nothing is changed."""
    if by not in WAYS:
        raise UsageError(f"there is no way {by} to verify; there are {', '.join(WAYS)}")
    verified = Verified(_way(db) if by == "auto" else by, watch=Watch(report=db.report))
    with verified.checking("the file", db):
        problems = [text for (text,) in db.file.connection.execute("PRAGMA integrity_check(20)") if text != "ok"]
        verified.problems += [f"the file: {problem}" for problem in problems]
    with verified.checking("the settings", db):
        db.file.check_seal()
    _check_entries(db, verified)
    base: Rows = {}
    for name in db.homes:
        with verified.checking(f"base relation {name}", db):
            base[name] = db.rows(name) if name not in db.large else set()
            _check_base(db, verified, name, base[name])
    if base.keys() == db.homes.keys():
        _check_views(db, verified, base)
        _check_constrained(db, verified)
    return verified


def _way(db: Durable) -> str:
    if db.large:
        return "spark"
    kept = [*db.homes.values(), *db.stored]
    try:
        rows = sum(db.kept_rows(name) for name in kept)
        return "reference" if rows <= FEW_ROWS else "duckdb" if rows >= MANY_ROWS and DUCKDB.installed else "embedded"
    except sqlite3.DatabaseError:  # what cannot be read is said later
        return "embedded"


def _check_entries(db: Durable, verified: Verified) -> None:
    """Sums of the log, of the outbox and of segments; no change of a view without its transaction."""
    log, watch = db.book.log, verified.watch
    with verified.checking("the log", db):
        for entry in log.entries(log.first):
            watch.part(entry.tx - log.first, log.last - log.first, "transaction")
            _check_segments(db, verified, f"transaction {entry.tx} of the log", entry.changes)
    with verified.checking("the outbox", db):
        for tx, view, change in log.changes(log.first, alerts=True):
            watch.part(tx - log.first, log.last - log.first, "transaction")
            _check_segments(db, verified, f"transaction {tx} of {view}", {view: change})
        stray = log.connection.execute("SELECT count(*) FROM vigilog_outbox WHERE tx NOT IN (SELECT tx FROM vigilog_log)").fetchone()[0]
        if stray:
            verified.problems.append(f"the outbox: {counted(stray, 'change')} of views without a transaction")
    with verified.checking("what is noted of alerts", db):
        db.book.notes.check()


def _check_segments(db: Durable, verified: Verified, what: str, changes: Mapping[str, Any]) -> None:
    for change in changes.values():
        for part in change.values():
            try:
                if isinstance(part, dict) and "segment" in part:
                    db.book.segments.check(part)
                elif isinstance(part, dict) and (rows := sum(1 for _ in db.store.rows((), part["location"]))) != part["rows"]:
                    verified.problems.append(f"{what}: {part['location']} has {counted(rows, 'row')}, and was written with {part['rows']}")
            except DataError as reason:
                verified.problems.append(f"{what}: {reason}")


def _check_base(db: Durable, verified: Verified, name: str, rows: set[Row]) -> None:
    """What the log says came last is there. A snapshot, read to its end, has as many rows as it was written with; and it is, with what came since, the relation."""
    recent = db.book.since(db.oldest, [name]).get(name, Delta()) if name not in db.large else Delta()
    if not recent.plus <= rows or not recent.minus.isdisjoint(rows):
        verified.problems.append(f"base relation {name}: {_difference(rows, recent.apply(rows))}, says the log")
    snapshot = db.store.snapshot(name)
    if snapshot is None or (name not in db.large and snapshot[1] < db.book.log.first):
        return
    since = db.book.since(snapshot[1], [name]).get(name, Delta())
    number, difference = db.store.check_snapshot(name, None if name in db.large else since.inverse().apply(rows))
    if number != snapshot[0].rows:
        verified.problems.append(f"the snapshot of {name}: it has {number} rows, and was written with {snapshot[0].rows}")
    if difference:
        verified.problems.append(
            f"the snapshot of {name}: {counted(difference, 'row')} differ from the relation as of transaction {snapshot[1]}"
        )


def _check_views(db: Durable, verified: Verified, base: Rows) -> None:
    near = [name for name in db.outputs if not db.store.is_far(name) and name not in db.program.constrained]  # nothing is kept for queries
    stored = sorted([*db.resident.plan.kept, *db.resident.plan.beside])
    if db.large:
        with verified.checking("views on Spark", db):
            for name, difference in db.store.check_views():
                verified.problems.append(f"view {name}: {counted(difference, 'row')} differ from what the rules give")
    groups = {group.state.relation: group for group in db.resident.plan.groups}
    named = [*near, *(name for name in stored if name not in groups), *(group.rows.relation for group in groups.values())]
    by = "embedded" if db.large and verified.by == "spark" else verified.by
    with _anew(db, base, by, [*dict.fromkeys(named)]) as (right, derived_before):
        for name, group in groups.items():
            right[name] = set(states(group, right[group.rows.relation]))
        for name in stored:
            with verified.checking(f"stored {name}", db):
                verified.compare(f"stored {name}", set(db.resident.rows(name)), right[name])
        for name in near:
            if name not in stored and name not in db.homes:
                with verified.checking(f"view {name}", db):
                    verified.compare(f"view {name}", db.view(name), right[name])
        oldest = db.oldest
        with verified.checking(f"changes of views since {oldest}", db):
            undo = {name: delta.inverse() for name, delta in db.book.since(oldest, [*base.keys() - db.large]).items() if delta}
            changes = list(db.changes(oldest))
            if undo or changes:
                then = derived_before(undo, near)
                for _, view, delta in changes:
                    if view in then:
                        _follow(verified, view, then[view], delta)
                for name in near:
                    verified.compare(f"changes of {name} since {oldest}", then[name], right[name])


def _follow(verified: Verified, view: str, rows: set[Row], delta: Delta) -> None:
    if not delta.minus <= rows or not delta.plus.isdisjoint(rows):
        verified.problems.append(f"changes of {view}: one of them does not fit what came before")
    rows -= delta.minus
    rows |= delta.plus


def _check_constrained(db: Durable, verified: Verified) -> None:
    """Of constrained relations instances are compared: the same ones may be told by other facts."""
    mediation = db.mediation
    if mediation is None:
        return
    right = mediation.recomputed()
    for name in mediation.parts.updates:
        with verified.checking(f"view {name}", db):
            if wrong := _apart(mediation.algorithm.region(name), right.region(name), mediation.solver):
                verified.problems.append(f"view {name}: {wrong}")
        if name not in db.outputs:
            continue
        with verified.checking(f"changes of {name} since {db.oldest}", db):
            now = mediation.region_of(name, (text for (text,) in db.view(name, db.oldest)))  # type: ignore[misc]  # texts
            for tx, view, delta in db.changes(db.oldest):
                if view == name:
                    plus, gone = (mediation.region_of(name, [text for (text,) in side]) for side in (delta.plus, delta.minus))  # type: ignore[misc]
                    if minus(gone, now, mediation.solver) or common(plus, now, mediation.solver):
                        verified.problems.append(f"changes of {name}: that of transaction {tx} does not fit what came before")
                    now = [*minus(now, gone, mediation.solver), *plus]
            if wrong := _apart(now, right.region(name), mediation.solver):
                verified.problems.append(f"changes of {name} since {db.oldest}: {wrong}")


def _apart(kept: Region, right: Region, solver: Solver) -> str:
    """What one region has and the other has not, as facts."""
    sides = [(minus(kept, right, solver), "should not be there"), (minus(right, kept, solver), "should be there")]
    return ", ".join(f"{_listed(frozenset(map(where, canonical(side, solver))))} {what}" for side, what in sides if side)


Before = Callable[[dict[str, Delta], list[str]], Rows]  # from net changes of the base since then, and names, to their rows then


@contextmanager
def _anew(db: Durable, base: Rows, by: str, names: list[str]) -> Iterator[tuple[Rows, Before]]:
    """The rows of relations, derived from base rows alone, and how to derive what they were. DuckDB, which has the one, gives of the other what is different."""
    if by != "duckdb" or not names:

        def again(undo: dict[str, Delta], near: list[str]) -> Rows:
            then = {name: undo[name].apply(rows) if name in undo else rows for name, rows in base.items()}
            return _computed(db, then, "embedded" if by == "spark" else by, near)

        yield _computed(db, base, by, names), again
        return
    DUCKDB.need("verify --by duckdb")
    from vigilog.executors.duckdb.executor import DuckEvaluation

    program, homes = _resident(db, base, names)
    with closing(DuckEvaluation(program, homes, Watch(report=db.report))) as evaluation:
        now = {name: set(evaluation.rows(name)) for name in names}

        def before(undo: dict[str, Delta], near: list[str]) -> Rows:
            moved = {db.homes[name]: delta for name, delta in undo.items() if db.homes[name] in homes}
            changed = undo | evaluation.changed(moved, near)
            return {name: changed.get(name, Delta()).apply(now[name]) for name in near}

        yield now, before


def _computed(db: Durable, base: Rows, by: str, names: list[str]) -> Rows:
    """The rows of relations, derived from base rows alone."""
    ways: dict[str, Callable[[], Rows]] = {
        "reference": lambda: _by_reference(db, base, names),
        "embedded": lambda: _on_sqlite(db, base, names),
        "spark": lambda: db.store.computed(base, names),
    }
    return ways[by]() if names else {}


def _by_reference(db: Durable, base: Rows, names: list[str]) -> Rows:
    """By the meaning of the language; what the user did not name, but rewriting did, by the meaning of the rewritten program."""
    derived = reference.evaluate(db.program, base)
    if any(name not in derived for name in names):
        derived |= {
            name: rows
            for name, rows in reference.evaluate(db.resident.plan.whole, {db.homes[n]: rows for n, rows in base.items()}).items()
            if name not in derived
        }
    return {name: derived[name] for name in names}


def _on_sqlite(db: Durable, base: Rows, names: list[str]) -> Rows:
    program, homes = _resident(db, base, names)
    with closing(growing.evaluation(program, homes, Watch(report=db.report), "embedded")) as anew:
        return {name: set(anew.rows(name)) for name in names}


def _resident(db: Durable, base: Rows, names: list[str]) -> tuple[Program, Rows]:
    """The rules for some relations, and the rows that are here of what they read."""
    program = relevant(db.resident.plan.whole, names)
    return program, {db.homes[name]: rows for name, rows in base.items() if name not in db.large and db.homes[name] in program.relations}


def _difference(kept: set[Any], right: set[Any]) -> str:
    delta = between(right, kept)
    parts = [
        f"{_listed(delta.plus)} should not be there" if delta.plus else "",
        f"{_listed(delta.minus)} should be there" if delta.minus else "",
    ]
    return ", ".join(part for part in parts if part)


def _listed(rows: frozenset[Any]) -> str:
    shown = ", ".join(map(str, sorted(rows, key=repr)[:SHOWN]))
    return f"{shown} and {len(rows) - SHOWN} more" if len(rows) > SHOWN else shown
