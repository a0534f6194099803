"""A database on a data folder: what was acknowledged is there again, whatever happened."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from vigilog.conditions import MOST_ROUNDS
from vigilog.conditions.constraints import violated
from vigilog.conditions.timing import Key, Waiting
from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, Finding, UsageError, VigilogError
from vigilog.core.extras import SPARK
from vigilog.core.proofs import Proof
from vigilog.core.reports import ALERT, CEASED
from vigilog.core.reports import Report as AlertReport
from vigilog.core.values import Row, Type, Value, sorted_rows
from vigilog.core.whynot import WhyNot
from vigilog.engine.asking import Trying
from vigilog.engine.changes import ViewChange
from vigilog.engine.compiled import Compiled
from vigilog.engine.evaluate import ensure_known, look, read
from vigilog.engine.nested import Nested, nest, shape_of
from vigilog.engine.outcome import Outcome
from vigilog.engine.places import key_place, source_place, split
from vigilog.engine.proposal import Proposal
from vigilog.engine.refreshing import Refresher
from vigilog.engine.step import Step
from vigilog.engine.transaction import check_keys
from vigilog.executors.allowance import Allowance, TooDear
from vigilog.executors.choose import choose
from vigilog.executors.embedded.tables import quote
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.mixed import MixedViews
from vigilog.executors.watch import Report, Watch
from vigilog.files.place import Place, is_uri
from vigilog.files.reader import files
from vigilog.flows.flows import Flows
from vigilog.folder.alerts import Clock
from vigilog.folder.backup import backup
from vigilog.folder.book import DEFINITION
from vigilog.folder.definitions import changed_statements, defined, dropped
from vigilog.folder.file_database import FileDatabase
from vigilog.folder.large import Large, LoadMode, default_warehouse
from vigilog.folder.queries import Followable, Queries
from vigilog.folder.reading.states import Question, Readers, State, affordable, reading
from vigilog.folder.redefine import Redefinition
from vigilog.folder.residency import SHARE, budget_of, size
from vigilog.folder.status import Status, status
from vigilog.folder.verify import Verified, verify
from vigilog.language.calls import with_places
from vigilog.language.conditions import Alert, Integrity
from vigilog.language.goal import goal_of_body, parse_goal
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Constant, Wildcard
from vigilog.language.written import kept, read_again
from vigilog.planning.layout import file_table
from vigilog.protocol.shapes import Shape
from vigilog.rewriting.maintenance.strategies import MATERIALIZED
from vigilog.spark.snapshots import Written
from vigilog.store.file import DataFile, damage

if TYPE_CHECKING:
    import pyarrow as pa

    from vigilog.flows.sinks import Sink
    from vigilog.flows.streams import Stream
    from vigilog.spark.types import DataFrame

CACHE_KIB = 500_000
SMALL_FILE = 32 * 2**20  # bytes of text that are loaded faster than Spark starts

Facts = Mapping[str, Iterable[Row] | Place]


class Durable(FileDatabase):
    """A program with its data in a folder. One process at a time has it open."""

    def __init__(
        self,
        folder: str | Path,
        program: Program | None = None,
        facts: Facts | None = None,
        *,
        strategy: str | None = None,
        budget: int | None = None,
        strict: bool = False,
        define: bool = False,
        retain: Mapping[str, float] | None = None,
        warehouse: str | None = None,
        memory: int | str | None = None,
        report: Report | None = None,
        cascade: int = MOST_ROUNDS,
    ) -> None:
        """Opens a data folder, or, with a program, makes it; the facts are what a new one begins with."""
        self.folder, self.report = Path(folder), report
        self.file = DataFile(self.folder, cache_kib=CACHE_KIB, create=program is not None)
        self.lock, self.budget, self.strict, self.cascade = RLock(), budget, strict, cascade
        self.step, self.readers, self.queries = Step(self), Readers(self), Queries(self)
        self.trying, self.refresher = Trying(), Refresher(self)
        self.waiting: dict[Key, Waiting] = {}
        self.timer = Clock(self)
        self.troubles: list[str] = []  # what failed after transactions that stand
        self.warnings: list[Finding] = []  # what was doubtful in the last definition
        self.redefined = ""  # the statements that opening has changed,
        self.redefinition: dict[str, Delta] = {}  # and what that did to views
        try:
            with damage(self.file.path):
                stated = {"strategy": strategy, "retain": retain and json.dumps(retain), "warehouse": warehouse, "memory": memory}
                self._open(program, facts or {}, stated, define=define)
        except BaseException:
            self.file.close()
            raise
        self.timer.start()

    def _open(self, program: Program | None, facts: Facts, settings: Mapping[str, Any], *, define: bool) -> None:
        stored, written = self.kept_program()
        text, places = kept(program) if program else (stored, written)
        if stored and stored != text and not define:
            shown = changed_statements(stored, text)
            raise DataError(
                f"{self.folder} has another program; to change its definitions, say so (define=True, --define):\n{shown}", "program-changed"
            )
        if stored and facts:
            raise DataError(f"{self.folder} has data already; load more into it instead", "facts")
        if not stored and program is None:
            raise DataError(f"{self.folder} has no program yet (make it with: vigilog init PROGRAM --data {self.folder})", "no-data")
        current = read_again(stored, written) if stored and stored != text else read_again(text, places or written)
        with self.writing():
            for name, value in settings.items():
                if value is not None:
                    self.file.put(name, self._own_warehouse(value) if name == "warehouse" else value)
            if not stored:
                self.write_program(current)
                self.file.put("given", json.dumps(sorted(facts)))
            elif stored == text and places not in ("", written):
                self.move_program(current)
            self.store = Large(self, self.file.get("warehouse", default_warehouse(self.folder)), budget_of(self.file.get("memory", SHARE)))
            strategy = self.file.get("strategy", "auto")
            self.overruns = 0 if strategy == "auto" else None
            made = self.compile(current)
            self.build(made, self._first_rows(made, facts), first=not stored)
            if not stored:
                check_keys(self.program, self.base, self.store.unique)
        if not stored:
            self.warnings = self._violated(self.conditions.enforced)
        elif stored != text:
            self.redefined = changed_statements(stored, text)
            self.redefinition = self._redefine(read_again(text, places))

    def _own_warehouse(self, stated: str) -> str:
        """A folder of this database's own in the warehouse that is stated, which it may share with others."""
        place = stated.rstrip("/") if is_uri(stated) else str(Path(stated).absolute())
        before = self.file.get("warehouse", default_warehouse(self.folder))
        if f"{before}/".startswith(f"{place}/"):
            return str(before)
        if self.file.connection.execute("SELECT count(*) FROM vigilog_snapshots").fetchone()[0]:
            raise DataError(f"{self.folder} has snapshots in {before}; its warehouse cannot be another now", "warehouse")
        return f"{place}/{self.file.history}"

    def _first_rows(self, made: Compiled, facts: Facts) -> dict[str, Iterable[Row]]:
        """What a new database begins with; what is too large to be resident is written as a snapshot instead."""
        relations: dict[str, Iterable[Row]] = {}
        look(facts.values())
        places = []
        for name, source in facts.items():
            if not isinstance(source, Place) or choose("auto", [source]).engine != "spark":
                relations[name] = read(source)
            else:
                places.append(source)
        if not places:
            return relations
        counted = {name: size(made.program.relations[name].types, len(rows)) for name, rows in relations.items() if isinstance(rows, Sized)}
        for name, rows in self.store.begin(made, places, counted).items():
            if isinstance(rows, Written):
                self.store.keep(name, rows, 0)
                self.large |= {name}
            else:
                relations[name] = rows
        return relations

    # -- transactions

    def _proposed(self, proposal: Proposal, *, keep: bool) -> Outcome:
        with damage(self.file.path):
            if keep and proposal.request is not None and (before := self.book.answered(proposal.request)) is not None:
                return Outcome(before)
            with self.queries.leaving_out():
                while True:
                    try:
                        outcome = super()._proposed(proposal, keep=keep)
                        break
                    except TooDear as reason:  # everything is as it was, and goes on without these queries
                        self.queries.give_up(reason, keep=keep)
            if outcome.waiting:
                self.timer.start()
            if keep and outcome.changes:
                self._afterwards(lambda: self.store.compact_if_due(outcome.changes))
            return outcome

    def _afterwards(self, work: Callable[[], None]) -> None:
        try:
            with damage(self.file.path):
                work()
        except (VigilogError, sqlite3.Error) as reason:
            self.troubles.append(str(reason))

    def _rebuild(self, made: Compiled) -> None:
        reasons = {name: chosen.reason for name, chosen in made.strategies.items() if chosen.strategy is MATERIALIZED}
        with self.swapping():
            self.file.put("stored", json.dumps(reasons))
            self.build(made, {})

    def stamped(self, reports: Sequence[AlertReport]) -> Sequence[AlertReport]:
        """Reports with the time, and whether somebody has seen their keys."""
        return self.book.notes.stamped(reports, round(self.clock(), 3))

    def ack(self, alert: str, row: Sequence[Any]) -> Row:
        """Somebody has seen what an alert says of a row, or of a key: sinks and callables are silent about that key until it ceases. Gives the key. Raises DataError if nothing is reported of it now."""
        with self.lock, damage(self.file.path), self.writing():
            return self.book.notes.ack(alert, row, self.clock(), self._reported)

    def holding(self, alert: Alert) -> list[Row]:
        """The rows of an alert's keys that hold as far as it was reported: what waits is as it was before."""
        with self.lock, damage(self.file.path):
            held = {key: waiting.report for (name, key), waiting in self.waiting.items() if name == alert.name}
            now = (row for row in self.told_rows(alert.relation) if tuple([row[place] for place in alert.key]) not in held)
            return sorted_rows({*now, *(report.row for report in held.values() if report.state == CEASED)})

    def _reported(self, alert: Alert, key: Row) -> bool:
        """Whether what is told of a key is that it holds."""
        if (held := self.waiting.get((alert.name, key))) is not None:
            return held.report.state == CEASED
        attributes = self.plain.relations[alert.relation].attributes
        bound = dict(zip(alert.key, key, strict=True))
        args = (Constant(bound[place], column.type) if place in bound else Wildcard(column.type) for place, column in enumerate(attributes))
        return bool(self.views.answers(goal_of_body(self.plain, (Atom(alert.relation, tuple(args)),), ())))

    # -- definitions

    def define(self, text: str, name: str = "definition") -> dict[str, Delta]:
        """Adds or replaces relations and rules; gives, and publishes, what views gain and lose by that. Relations that do not change their meaning are left alone.

        The change of a view on Spark that is too large for this process stays there: it is published, and named in the log, but not given. Errors call the text by its `name`.
        """
        return self._defining(lambda: read_again(*kept(with_places(defined(self.whole_program(), text, name), self.folder, self.folder))))

    def drop(self, name: str) -> dict[str, Delta]:
        """Removes a relation with its rows or rules; gives what it loses, if it is a view."""
        return self._defining(lambda: dropped(self.whole_program(), name))

    def _defining(self, program: Callable[[], Program]) -> dict[str, Delta]:
        def work() -> dict[str, Delta]:
            with damage(self.file.path):
                return self._redefine(program())

        return self.trying.patiently(self.lock, work)

    def _redefine(self, program: Program) -> dict[str, Delta]:
        before = self.conditions
        outcome = self.propose(Proposal(Redefinition(self, program), DEFINITION))
        self.warnings = self._violated(self.conditions.new_constraints(before))
        return outcome.deltas

    def _violated(self, constraints: Iterable[Integrity]) -> list[Finding]:
        """Warnings of constraints that what is there already violates."""
        return [violated(constraint, number) for constraint in constraints if (number := len(self.told_rows(constraint.relation)))]

    # -- reading

    def ask_typed(
        self, goal: str, at: int | None = None, allowance: Allowance | None = None, *, enumerated: bool = False
    ) -> tuple[tuple[Type, ...], list[Row]]:
        """The types of a goal's answers, and the answers, now or as of a transaction; looking back costs no more than an allowance."""
        if at is None:
            with damage(self.file.path):
                return super().ask_typed(goal, enumerated=enumerated)
        with self.lock, damage(self.file.path):
            if at == self.tx:
                return super().ask_typed(goal, enumerated=enumerated)
            if not self.beside(goal):
                self.views.prepare(parse_goal(self.program, goal))
            answers: list[tuple[tuple[Type, ...], list[Row]]] = []
            self._as_of(at, lambda: answers.append(super(Durable, self).ask_typed(goal, enumerated=enumerated)), allowance)
            return answers[0]

    def ask(self, goal: str, at: int | None = None, allowance: Allowance | None = None, *, named: bool = False) -> list[Row]:
        answers = self.ask_typed(goal, at, allowance)[1]
        return self.named(goal, answers) if named else answers

    def view(self, name: str, at: int | None = None, allowance: Allowance | None = None, *, named: bool = False) -> set[Row]:
        """All rows of an output relation, now or as of a transaction; looking back costs no more than an allowance. If they are to be `named`, each is a NamedTuple."""
        with self.lock, damage(self.file.path):
            if named:
                return set(self.named(self.whole(name), self.view(name, at, allowance)))
            if at is None or at == self.tx:
                return super().view(name)
            ensure_known(self.program, name)
            if name not in self.program.constrained:
                self.views.prepare(parse_goal(self.program, self.whole(name)))
            rows: set[Row] = set()
            self._as_of(at, lambda: rows.update(super(Durable, self).view(name)), allowance)
            return rows

    def rows(self, name: str) -> set[Row]:
        ensure_known(self.program, name)
        if name not in self.base:
            raise DataError(f"{name} is derived by rules; no rows are stated for it", "derived")
        with damage(self.file.path):
            return super().rows(name)

    def why(self, goal: str) -> Proof | None:
        with damage(self.file.path):
            return super().why(goal)

    def why_not(self, goal: str, depth: int = 1) -> WhyNot | None:
        with damage(self.file.path):
            return super().why_not(goal, depth)

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        with damage(self.file.path):
            return super().proofs(relation, rows)

    def nested(self, name: str) -> list[Nested]:
        return self.nested_at(name)[1]

    def nested_at(
        self,
        name: str,
        at: int | None = None,
        allowance: Allowance | None = None,
        *,
        bind: Mapping[str, Value] | None = None,
        integers: str = "number",
    ) -> tuple[int, list[Nested]]:
        """The objects of a view frame, nested, now or as of a transaction, and that transaction. All of their relations are of one state.

        `bind` has values of the view's parameters: only objects with these.
        """
        shape = shape_of(self.program, name)
        bound = shape.bound(bind or {})
        if at is not None and at != self.tx:
            with self.lock:
                past = {relation: self.view(relation, at, allowance) for relation in shape.relations}
            rows = {
                relation: [row for row in past[relation] if all(row[place] == value for place, value in values.items())]
                for relation, values in bound.items()
            }
            return at, self._nested(shape, rows, integers)
        with self.reading(*bound.items(), allowance=allowance) as state:
            return state.tx, self._nested(
                shape, {relation: list(state.rows(relation, values)) for relation, values in bound.items()}, integers
            )

    def _nested(self, shape: Shape, rows: Mapping[str, Iterable[Row]], integers: str) -> list[Nested]:
        return nest(shape, rows, lambda relation: self.program.relations[relation].types, integers=integers)

    def reading(self, *questions: str | Question, allowance: Allowance | None = None) -> AbstractContextManager[State]:
        """A state of the database, to be read while others write: `with db.reading("closure") as state`. See `folder/reading/`."""
        return reading(self, questions, allowance)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The views of the program, without those of queries that are followed."""
        return tuple(name for name in self.program.outputs if name not in self.queries.names)

    def reads(self, goal: str) -> set[str]:
        """The relations that a goal asks for: those of the program, not the views of what others follow."""
        if relation := self.beside(goal):
            return {relation}
        relations = {atom.relation for atom, _ in atoms(parse_goal(self.program, goal).rule.body)}
        if strange := sorted(relations & self.queries.names):
            raise DataError(f"there is no relation {strange[0]}", "unknown-relation")
        return relations

    def reads_of(self, view: str) -> set[str]:
        """The relations that one must be allowed to read to see a view: itself, or those that a query which is followed asks for."""
        if view not in self.queries.names:
            return {view}
        return {atom.relation for rule in self.program.rules if rule.heads[0].relation == view for atom, _ in atoms(rule.body)}

    def declared(self, view: str) -> int:
        """The transaction since which a view has the columns that it has."""
        return self.book.declared(view)

    def follow(self, goal: str, most: int | None = None, *, tried: bool = False) -> Followable:
        """Makes the answers to a goal a view, whose changes are told like any other's, unless they cost too much; of such views there are at `most` so many. One that is `tried` is kept once it is settled."""
        with self.lock, damage(self.file.path):
            return self.queries.follow(goal, most, tried=tried)

    def settle(self, *views: str) -> None:
        """Keeps queries that were tried."""
        with self.lock, damage(self.file.path):
            for view in views:
                self.queries.settle(view)

    def unfollow(self, *views: str) -> None:
        """Ends what `follow` began."""
        with self.lock, damage(self.file.path):
            self.queries.drop(views)

    @property
    def oldest(self) -> int:
        """The oldest transaction whose state can be looked at: what came later is in the log, in the words of this program, and in rows that come to one process."""
        with self.lock:
            return max(self.book.log.first, int(self.file.get("defined", 0)), int(self.file.get("bulk", 0)))

    @property
    def resident(self) -> EmbeddedViews:
        """What is kept in the file."""
        views = self.views.resident if isinstance(self.views, MixedViews) else self.views
        assert isinstance(views, EmbeddedViews), "a file is SQLite's"
        return views

    def kept_rows(self, relation: str) -> int:
        """How many rows the file has for a base relation or a stored view."""
        (number,) = self.file.connection.execute(f"SELECT count(*) FROM {quote(file_table(relation))}").fetchone()
        return int(number)

    def _as_of(self, tx: int, look: Callable[[], None], allowance: Allowance | None) -> None:
        """Looks at the state after a transaction, by undoing, for a moment, what came later."""
        if tx > self.tx:
            raise DataError(f"there is no transaction {tx} yet: the last is {self.tx}", "future")
        if tx < self.oldest:
            reasons = {
                self.book.log.first: "older ones are not retained",
                int(self.file.get("bulk", 0)): "it changed more rows than come to one process",
            }
            why = reasons.get(self.oldest, "it changed the program")
            raise DataError(f"the state after transaction {tx} cannot be looked at: the oldest is that after {self.oldest} ({why})", "gap")
        undo = {self.homes[name]: delta.inverse() for name, delta in self.book.since(tx).items() if delta}
        mediation = self.mediation
        for name in mediation.parts.read if mediation is not None else ():
            self.views.prepare(parse_goal(self.plain, self.whole(name)))

        def settle(_: Mapping[str, Delta]) -> None:
            try:
                self.mediation = mediation and mediation.anew()
                affordable(look)
            finally:
                self.mediation = mediation

        with self.views.within(allowance), self.queries.leaving_out(self.queries.names):
            self.views.apply(undo, settle, keep=False)

    def changes(self, since: int, until: int | None = None) -> Iterator[tuple[int, str, Delta]]:
        """What views of the program gained and lost after a transaction, in order. Raises DataError if some of it is no longer retained."""
        with self.lock, damage(self.file.path):
            if since < self.book.log.first:
                raise DataError(f"changes after {since} are not all retained: the oldest are after {self.book.log.first}", "gap")
            if since > self.tx:
                raise DataError(f"there is no transaction {since} yet: the last is {self.tx}", "future")
            changes, book, queries = list(self.book.log.changes(since, until)), self.book, self.queries.names
        for tx, view, change in changes:
            if view not in queries and book.knew(view, tx):  # of queries that are not followed any more nothing is known
                yield tx, view, book.delta(view, change, tx)

    def reports(self, since: int, until: int | None = None, alerts: Iterable[str] | None = None) -> list[tuple[int, dict[str, Any]]]:
        """What alerts, all or some, reported after a transaction, in order, each with its transaction."""
        with self.lock, damage(self.file.path):
            names = [alert.name for alert in self.conditions.alerts] if alerts is None else alerts
            changes = self.book.log.changes(since, until, [ALERT + name for name in names]) if names else ()
            return [(tx, json.loads(row[-1])) for tx, _, entry in changes for row in entry["plus"]]

    keeps_changes = True

    def changes_of(self, view: str, since: int, until: int | None = None) -> list[ViewChange]:
        return [ViewChange(tx, delta) for tx, name, delta in self.changes(since, until) if name == view]

    def segment(self, view: str, part: Mapping[str, Any]) -> Iterable[Row]:
        """The rows of a change that are not in the outbox itself, but in what it names."""
        types = self.program.relations[view].types
        return self.store.rows(types, part["location"]) if "location" in part else self.book.segments.read(dict(part), types)

    # -- large data

    def load(
        self,
        relation: str,
        source: str | Path | Place,
        *,
        upsert: bool = False,
        delete_key: bool = False,
        op: str | None = None,
        **options: str,
    ) -> Outcome:
        """Adds the rows of a file, folder or table to a base relation, in one transaction; `options` are those of `.input`, like `IO="parquet"`.

        With `upsert` a row takes the place of the one with its key; with `delete_key` the source has the columns of the key, and what has one of its keys goes. With `op` each row of a file says in that
        column what is to be done with it, as the rows of a stream do.
        """
        if sum([upsert, delete_key, op is not None]) > 1:
            raise UsageError("upsert, delete_key and op: it is one of them")
        if op is not None:
            return self._operate(relation, self._place(relation, source, options), op)
        return self._change(relation, source, options, "upsert" if upsert else "delete_key" if delete_key else "add", kind="load")

    def sync(self, relation: str, source: str | Path | Place, **options: str) -> Outcome:
        """Makes a base relation equal to a file, folder or table, in one transaction that holds only the differences."""
        return self._change(relation, source, options, "equal", kind="sync")

    def _place(self, relation: str, source: str | Path | Place, options: Mapping[str, str]) -> Place:
        ensure_known(self.program, relation)
        if relation not in self.base:
            raise DataError(f"{relation} is derived by rules; change the relations it is derived from", "derived")
        place = source if isinstance(source, Place) else source_place(self.program, relation, str(source), options)
        if place.local and place.format != "delta":
            files(place)  # what is not there is said before Spark starts
        return place

    def _change(self, relation: str, source: str | Path | Place, options: Mapping[str, str], way: LoadMode, *, kind: str) -> Outcome:
        place = self._place(relation, source, options)
        return self.trying.patiently(self.lock, lambda: self._changed(relation, place, way, kind))

    def _changed(self, relation: str, place: Place, way: LoadMode, kind: str) -> Outcome:
        with damage(self.file.path):
            if way in ("upsert", "delete_key") and relation not in self.program.keys:
                raise DataError(f"{relation} has no key, which {way} goes by; declare one (.key)", "key")
            if way == "delete_key":
                place = key_place(self.program, place)
            places = [place] if way == "delete_key" else split(self.program, place)
            if way == "equal" and place.format == "iceberg":
                return [self.store.follow(part, f"sync {part.relation}", kind=kind) for part in (*places[1:], places[0])][-1]
            look(places)
            large = not self.large.isdisjoint([relation, *(part.relation for part in places)])
            if large or (len(places) == 1 and choose("auto", [place], large=SMALL_FILE).engine == "spark"):
                return self._change_by_spark(relation, places, way, kind)
            sets = {part.relation: set(Watch(report=self.report, doing=f"reading {part.relation}").counted(read(part))) for part in places}
            if way == "delete_key":
                return self.take({way: {relation: list(sets[place.relation])}}, kind=kind)
            rows = {name: list(some) for name, some in sets.items()}
            if way == "upsert":
                key = self.program.keys[relation]
                told = [tuple(row[column] for column in key) for row in rows[relation]]  # a column that is null now was not, perhaps
                others = {name: some for name, some in rows.items() if name != relation}
                return self.take(
                    {"upsert": {relation: rows[relation]}, "delete_key": dict.fromkeys(others, told), "insert": others}, kind=kind
                )
            gone = {name: list(self.rows(name) - some) for name, some in sets.items()} if way == "equal" else {}
            return self.take({"delete": gone, "insert": rows}, kind=kind)

    def _change_by_spark(self, relation: str, places: Sequence[Place], way: LoadMode, kind: str) -> Outcome:
        """The same on Spark: transactions for each optional column's relation, and then one for the relation itself. Of an upsert, first all that was known of its keys goes."""
        owner, *others = places
        for place in others:
            if way == "upsert":
                key = replace(key_place(self.program, place), source=place.source)
                self.store.change(place.relation, key, "delete_key", kind=kind)
            self.store.change(place.relation, place, way, kind=kind)
        return self.store.change(relation, owner, way, kind=kind)

    def _operate(self, relation: str, place: Place, op: str) -> Outcome:
        """One transaction of the operations that the rows of files name, in the order of the files and of the rows in them."""
        SPARK.need("rows with operations are read by Spark")
        from vigilog.flows.streams import folded, together
        from vigilog.spark.streams import from_files

        if not place.local or place.format == "delta":
            raise UsageError("op goes with files on this machine: elsewhere their rows have no order")
        batch = replace(place, format="stream", options={"format": place.format, "op": op})

        def work() -> Outcome:
            paths = [str(path.absolute()) for path in files(place)]
            keys = {part: self.program.keys.get(part.relation, ()) for part in split(self.program, batch)}
            wish = together(folded(part.relation, key, from_files(part, key, paths)) for part, key in keys.items())
            return self.take(wish, kind="load")

        with damage(self.file.path):
            return self.trying.patiently(self.lock, work)

    # -- streams and sinks

    @cached_property
    def followed(self) -> Flows:
        return Flows(self)

    def stream(self, relation: str, *, once: bool = False, anew: bool = False) -> Stream:
        """Follows the stream that a relation's `.input` names, in the background: each of its batches is one transaction.

        With `once` it ends when all that is there now was read. It goes on where it was left, or begins `anew`.
        """
        return self.followed.stream(relation, once=once, anew=anew)

    def streams(self) -> list[Stream]:
        """The streams that are followed, and those that failed."""
        return list(self.followed.streams.values())

    def sink(self, view: str, kind: str, target: str | Path, *, name: str | None = None, since: int | None = None, **options: Any) -> Sink:
        """Delivers the changes of a view, in the background, from where its last delivery ended: `kind` is `parquet`, `jdbc` or `webhook`, `target` a folder or an address.

        Of an alert (`alert:NAME`, or NAME, if no view is called that), or of all (`alert:*`), it delivers the reports: `kind` is `webhook`, `alertmanager` or `file`.

        A new sink begins with the whole view, or, with `since`, with the changes after a transaction.
        """
        return self.followed.sink(view, kind, str(target), name, since, options)

    def on_alert(self, alert: str, call: Callable[[dict[str, Any]], object]) -> Sink:
        """Calls somebody for each report of an alert from now on, in the background; `every` and acknowledgements hold a key back. One that raises is told in the log, and tried again."""
        return self.followed.on_alert(alert, call)

    def sinks(self) -> list[Sink]:
        """The sinks that are served, and those that failed."""
        return list(self.followed.sinks.values())

    def frame(self, name: str, *, nested: bool = False) -> DataFrame:
        """A view, or a base relation, as a Spark DataFrame, as of now; a view frame `nested`, with arrays of structs."""
        if nested:
            return self._nested_frame(name)
        with self.lock, damage(self.file.path):
            return self.store.frame(name)

    def arrow(self, name: str) -> pa.Table:
        """A view, or a base relation, as an Arrow table, as of now."""
        from vigilog.core.arrow import to_arrow

        ensure_known(self.program, name)
        with self.lock, damage(self.file.path):
            declaration = self.program.relations[name]
            if self.store.is_far(name):
                table = self.store.table(self.homes.get(name, name))
                return table.rename_columns(declaration.columns) if declaration.columns else table
            return to_arrow(declaration.columns, declaration.types, self.view(name) if name in self.program.outputs else self.rows(name))

    def compact(self, relations: Iterable[str] | None = None) -> dict[str, int]:
        """Writes new Parquet snapshots of base relations, by default of all, and swaps them in; gives their numbers of rows."""
        with self.lock, damage(self.file.path):
            wanted = list(self.homes if relations is None else relations)
            for name in wanted:
                ensure_known(self.program, name)
                if name not in self.homes:
                    raise DataError(f"{name} is derived by rules; only base relations have snapshots", "derived")
            self.book.sweep()
            self.store.sweep()
            return self.store.compact(wanted)

    def move(self, large: frozenset[str], rows: Mapping[str, Iterable[Row]] | None = None) -> None:
        """From now on these relations are not resident; those that come back, do so with their rows."""
        self.large = large
        self.build(self.compiled, rows or {})

    # -- care

    def verify(self, by: str = "auto") -> Verified:
        """Computes everything anew from the base and compares it with all that is kept: by the reference, on SQLite or on Spark, as the size suggests."""
        with self.lock:
            return verify(self, by)

    def status(self) -> Status:
        """What the database holds, where, and how it is kept."""
        with self.lock, damage(self.file.path):
            return status(self)

    def backup(self, target: str | Path) -> int:
        """Copies the database, as it is now, into a new folder, while transactions go on; gives the number of the last one that it has."""
        return backup(self.folder, target, self.report)

    def close(self) -> None:
        self.timer.stop()
        self.refresher.stop()
        if "followed" in self.__dict__:
            self.followed.stop()  # before the lock is taken, which they may be waiting for
        self.readers.close()
        with self.lock:
            if self.file.closed:
                return
            try:
                self.views.close()
            finally:
                self.file.close()
