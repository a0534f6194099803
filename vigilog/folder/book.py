"""Where the transactions of a data folder are written down: its log and its outbox."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect, Part
from vigilog.core.errors import DataError
from vigilog.core.extras import ARROW
from vigilog.core.reports import ALERT, outbox_entry
from vigilog.core.rows import json_rows, rows_from_json
from vigilog.core.values import Row, Type
from vigilog.engine.proposal import Proposal
from vigilog.folder.alerts import AlertNotes
from vigilog.language.check import check
from vigilog.language.conditions import alerts
from vigilog.language.program import Program
from vigilog.language.syntax import Declaration
from vigilog.store.file import DataFile
from vigilog.store.log import ChangeEntry, Log, size
from vigilog.store.segments import Segments

MOST_ROWS = 1_000_000  # so many rows that Spark wrote are read into this process for one change, and no more
MANY_ROWS = 10_000  # from so many, the rows of one relation go into a segment, where Arrow is installed
DEFINITION = "define"  # the kind of a transaction that changes the program
KNOWN_REQUESTS = 10_000  # of so many transactions the keys are known, however few are retained: a retry comes late
LOOK_EVERY = 1_000  # at most so many transactions pass between two looks at what need not be retained


class Book:
    """The log and the outbox of a data folder."""

    def __init__(
        self,
        file: DataFile,
        program: Program,
        segments: Segments,
        retain: Mapping[str, float],
        remove: Callable[[str], None],
        far: Callable[[Sequence[Type], str], Iterable[Row]],
    ) -> None:
        """`far` gives the rows that Spark wrote for an entry, `remove` removes them when it is not retained any more. What is known of the past is read here, once: later, other threads ask for it."""
        self.file, self.program, self.segments, self.retain, self.remove = file, program, segments, retain, remove
        self.log, self.far = Log(file), far
        self.types_of = {alert.name: program.relations[alert.relation].types for alert in alerts(program)}
        self.notes = AlertNotes(file.connection, program, alerts(program))
        self.defined = int(file.get("defined", 0))  # the transaction that changed the program last
        self.versions: list[tuple[int, str]] = (  # the programs there were, each with the last transaction before it
            file.connection.execute("SELECT tx, text FROM vigilog_programs ORDER BY version").fetchall()
        )

    @property
    def last(self) -> int:
        return self.log.last

    def commit(self, proposal: Proposal, effect: Effect) -> int:
        changes = {name: self.said(name, part) for name, part in effect.changes.items()}
        views: dict[str, ChangeEntry] = {}
        for name, part in effect.views.items():
            if name in self.program.outputs or name in effect.redeclared:
                before = _program(self.versions[-2][1]).relations.get(name) if name in effect.redeclared else None
                views[name] = changes[name] if effect.changes.get(name) == part else self.said(name, part, before)
        for report in effect.alerts:
            views.setdefault(ALERT + report.alert, {"plus": []})["plus"].append(outbox_entry(self.types_of[report.alert], report))
        if effect.alerts or effect.waiting:
            self.notes.write(effect.waiting, effect.alerts)
        tx = self.log.append(proposal.kind, changes, views)
        if proposal.kind == DEFINITION:
            self.file.put("defined", tx)
            self.defined = tx
        if any(not isinstance(part, Delta) for part in effect.changes.values()):
            self.file.put("bulk", tx)
        if proposal.source:
            self.note_source(*proposal.source)
        if proposal.request:
            self.file.connection.execute("INSERT INTO vigilog_requests VALUES (?, ?)", (proposal.request, tx))
        return tx

    def committed(self, tx: int) -> None:
        self.log.last = tx
        if tx % min(LOOK_EVERY, max(1, int(self.retain.get("transactions", LOOK_EVERY)))) == 0:
            self.prune()

    def note_source(self, name: str, position: Any) -> None:
        self.file.connection.execute("INSERT OR REPLACE INTO vigilog_sources VALUES (?, ?)", (name, json.dumps(position)))
        self.file.seal()

    def position(self, name: str) -> Any:
        """How far a source has been read; None at the beginning."""
        row = self.file.connection.execute("SELECT position FROM vigilog_sources WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def answered(self, request: str) -> int | None:
        """The transaction that a request with this key became, if it was made before."""
        row = self.file.connection.execute("SELECT tx FROM vigilog_requests WHERE key = ?", (request,)).fetchone()
        return int(row[0]) if row else None

    # -- rows, said and read

    def said(self, relation: str, delta: Part, lost: Declaration | None = None) -> ChangeEntry:
        """A change as an entry says it; what is `lost` may have been declared in another way."""
        if not isinstance(delta, Delta):
            return dict(delta.written())
        change = {}
        plus, minus = delta.ordered
        if plus:
            change["plus"] = self._said(self.program.relations[relation], plus)
        if minus:
            change["minus"] = self._said(lost or self.program.relations[relation], minus)
        return change

    def _said(self, declaration: Declaration, rows: list[Row]) -> Any:
        if len(rows) >= MANY_ROWS and ARROW.installed:
            return self.segments.write(declaration.relation, declaration.columns, declaration.types, rows)
        return json_rows(declaration.types, rows)

    def delta(self, relation: str, change: ChangeEntry, tx: int | None = None) -> Delta:
        """The rows of what was said; in a transaction of the past, in the words of the program then."""
        gained, lost = (self.program, self.program) if tx is None else self._words(tx)
        plus, minus = change.get("plus", []), change.get("minus", [])
        return Delta(
            self._rows(gained.relations[relation], plus) if plus else frozenset(),
            self._rows(lost.relations[relation], minus) if minus else frozenset(),
        )

    def knew(self, relation: str, tx: int) -> bool:
        """Whether a relation was one of the program after a transaction, or before it."""
        return any(relation in program.relations for program in self._words(tx))

    def _words(self, tx: int) -> tuple[Program, Program]:
        """The programs in whose words a transaction says what came, and what went."""
        return (self.program, self.program) if tx > self.defined else (self._program_at(tx), self._program_at(tx - 1))

    def _program_at(self, tx: int) -> Program:
        """The program after a transaction."""
        texts = [text for last, text in self.versions if last < tx] or [self.versions[0][1]]
        return _program(texts[-1])

    def declared(self, relation: str) -> int:
        """The transaction since which a relation has the columns that it has: what it gained and lost before is said in other words."""
        since, columns = 0, _columns(self.program, relation)
        for last, text in reversed(self.versions) if self.defined else ():
            if _columns(_program(text), relation) != columns:
                return since
            since = last + 1
        return 0

    def _rows(self, declaration: Declaration, part: Any) -> frozenset[Row]:
        relation, types = declaration.relation, declaration.types
        if isinstance(part, dict):
            if "location" in part and part["rows"] > MOST_ROWS:
                raise DataError(
                    f"{part['rows']} rows of {relation} are in {part['location']} of the warehouse, more than are read at once ({MOST_ROWS}); db.frame gives {relation} as of now, a sink delivers its changes",
                    "large",
                )
            if "location" in part:
                return frozenset(self.far(types, part["location"]))
            return frozenset(self.segments.read(part, types))
        return frozenset(rows_from_json(types, part))

    def since(self, tx: int, relations: Collection[str] | None = None) -> dict[str, Delta]:
        """The net changes of base relations, all or some, after a transaction."""
        deltas: dict[str, Delta] = {}
        for entry in self.log.entries(tx):
            for relation, change in entry.changes.items():
                if relation in self.program.relations and (relations is None or relation in relations):
                    deltas[relation] = deltas.get(relation, Delta()).then(self.delta(relation, change))
        return deltas

    def changed(self, tx: int) -> int:
        """How many rows of base relations a transaction has changed."""
        entry = next(iter(self.log.entries(tx - 1)))
        return sum(sum(size(change)) for change in entry.changes.values())

    # -- retention

    def prune(self) -> None:
        """Drops what is not to be retained: entries that are too old, and the oldest of an outbox that is too large, with the keys of their requests."""
        until: int = 0
        connection = self.file.connection
        if "days" in self.retain:
            oldest = time.time() - self.retain["days"] * 86_400
            (until,) = connection.execute("SELECT coalesce(max(tx), 0) FROM vigilog_log WHERE at < ?", (oldest,)).fetchone()
        if "transactions" in self.retain:
            until = max(until, self.last - int(self.retain["transactions"]))
        if "bytes" in self.retain:
            sizes = connection.execute(
                "SELECT tx, sum(sum(length(said))) OVER (ORDER BY tx DESC) FROM vigilog_outbox GROUP BY tx ORDER BY tx DESC"
            )
            until = max(until, next((tx for tx, total in sizes if total > self.retain["bytes"]), 0))
        large = json.loads(self.file.get("large", "[]"))  # they are their snapshots and what came since
        snapshots = dict(connection.execute("SELECT relation, tx FROM vigilog_snapshots").fetchall())
        until = min([until, *(snapshots[name] for name in large if name in snapshots)])
        if until > self.log.first:
            try:
                parts = [part for change in self.log.said(until) for part in change.values() if isinstance(part, dict)]
                connection.execute("BEGIN IMMEDIATE")
                self.log.forget(until)
                connection.execute("DELETE FROM vigilog_requests WHERE tx <= ?", (min(until, self.last - KNOWN_REQUESTS),))
                connection.execute("COMMIT")
            except (sqlite3.Error, DataError):  # what is not dropped now is dropped later; the transaction that was committed stands
                if connection.in_transaction:
                    connection.rollback()
                return
            for part in parts:
                if "segment" in part:
                    self.segments.remove(part)
                else:
                    self.remove(part["location"])

    def sweep(self) -> None:
        """Removes segments that no entry names: those of transactions that were not committed."""
        if self.segments.folder.is_dir():
            self.segments.keep_only(self.named("segment"))

    def named(self, kind: str) -> set[str]:
        """The segments, or the locations in the warehouse, that entries name."""
        parts = (part for change in self.log.said(self.last) for part in change.values())
        return {part[kind] for part in parts if isinstance(part, dict) and kind in part}


@lru_cache(maxsize=16)
def _program(text: str) -> Program:
    return check(text, "program").program


def _columns(program: Program, relation: str) -> tuple[tuple[str, ...], tuple[Type, ...]] | None:
    declaration = program.relations.get(relation)
    return None if declaration is None else (declaration.columns, declaration.types)
