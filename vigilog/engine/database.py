"""A program with its data: apply a transaction, get the exact changes of every view."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, is_dataclass, replace
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from vigilog.conditions import MOST_ROUNDS
from vigilog.conditions.constraints import Violation
from vigilog.conditions.timing import Key, Waiting, next_due
from vigilog.core.delta import Delta, Keyed
from vigilog.core.errors import DataError, UsageError, VigilogError
from vigilog.core.named import records
from vigilog.core.proofs import Proof
from vigilog.core.reports import Report as AlertReport
from vigilog.core.values import Row, Type, sorted_rows
from vigilog.core.whynot import WhyNot
from vigilog.engine.asking import Trying
from vigilog.engine.changes import Changes, ViewChange
from vigilog.engine.compiled import Compiled, compiled
from vigilog.engine.evaluate import ensure_known, joined, look, read
from vigilog.engine.ledger import CountingLedger, Ledger
from vigilog.engine.nested import Nested, nest, shape_of
from vigilog.engine.outcome import Judge, Outcome
from vigilog.engine.pending import Pending, WhatIf
from vigilog.engine.proposal import DUE, DueReports, Proposal, RowChange
from vigilog.engine.refreshing import Refresher
from vigilog.engine.sources import Sources, functions
from vigilog.engine.step import Step
from vigilog.engine.transaction import Lookup, Transaction, check_keys
from vigilog.executors.embedded.views import EmbeddedViews
from vigilog.executors.evaluation import Stats, total
from vigilog.executors.views import Views
from vigilog.executors.watch import Report, TooManyRows, Watch
from vigilog.executors.whynot import why_not
from vigilog.files.place import Place
from vigilog.language.goal import goal_of_body, parse_atom, parse_goal
from vigilog.language.program import Program
from vigilog.language.strata import components, improved
from vigilog.language.syntax import Literal
from vigilog.rewriting.maintenance.strategies import COUNTED, EXTERNAL, MATERIALIZED
from vigilog.rewriting.maintenance.strategies.choose import Decision, depends_on, kept_by_none, recursive_relations

if TYPE_CHECKING:
    from vigilog.engine.extension import Extension
    from vigilog.engine.mediation import Mediation
    from vigilog.mediators.program import Mediated
    from vigilog.spark.types import DataFrame

MOST_STORED = 10_000_000  # rows of a recursion that `auto` stores in memory; on Spark, of a view, unless the base relations have more
MOST_OVERRUNS = 3  # so often a view under `auto` may cost more on demand than to recompute, before it is stored

Facts = Mapping[str, Iterable[Any]]


class Database:
    """The relations of a program as of the last transaction, in memory. It holds tables: close it, or use it in a `with`.

    It may be used from several threads: one call at a time is served, the others wait.
    """

    sources: Sources | None = None  # domains that are asked, if there are any
    mediation: Mediation | None = None  # constrained relations, if there are any
    deletion = "auto"  # how they lose facts
    last_update = numbered = 0  # the number of the last update of a view that was kept, and of the last one

    def __init__(
        self,
        program: Program,
        facts: Mapping[str, Iterable[Row] | Place],
        strategy: str = "auto",
        engine: str = "embedded",
        budget: int | None = None,
        strict: bool = False,
        report: Report | None = None,
        cascade: int = MOST_ROUNDS,
        deletion: str = "auto",
    ) -> None:
        self.deletion = deletion
        made = compiled(program, facts.keys(), strategy)
        look(facts.values())
        views: Views
        if engine == "spark":
            from vigilog.executors.spark.views import SparkViews

            sources = {made.homes[name]: source for name, source in facts.items()}
            told = {made.homes[name]: rows for name, rows in made.stated.items()}
            views = SparkViews(made.plan, sources, Watch(report=report), stated=told, budget=budget, strict=strict)
        else:
            made, views = _in_memory(made, facts, budget, strict, MOST_STORED if strategy == "auto" else None, report)
        self.overruns = 0 if strategy == "auto" else None  # how often deriving on demand cost too much, where that matters
        self.budget, self.strict, self.lock, self.cascade = budget, strict, RLock(), cascade
        self.step, self.trying, self.refresher = Step(self), Trying(), Refresher(self)
        self.waiting: dict[Key, Waiting] = {}
        try:
            self._use(made, views, CountingLedger())
            check_keys(self.program, self.base)
        except BaseException:
            self.close()
            raise

    def _use(self, made: Compiled, views: Views, ledger: Ledger) -> None:
        """Goes on with these tables."""
        self.compiled, self.views, self.ledger, self.stats = made, views, ledger, views.stats
        self.conditions, self.soonest = made.conditions, 0.0
        self.program, self.homes, self.plain, self.strategies, self.stored = (
            made.program,
            made.homes,
            made.plain,
            made.strategies,
            made.stored,
        )
        self.base: Mapping[str, Lookup] = {name: BaseRelation(views, home) for name, home in made.homes.items()}
        self._ask_sources()
        self._mediate(made.extension.mediated)

    def _ask_sources(self) -> None:
        """Calls of domains are made when they are asked for; which, is the program's to say."""
        calls, before = functions(self.program), self.sources
        if before is not None:
            self.step.judges.remove(before)
            self.sources = None
        if calls:
            self.sources = Sources(self, calls, before)
            self.step.judges.insert(0, self.sources)
            self.sources.begin()
        if self.refresher.on:
            self.refresher.start()

    def _mediate(self, parts: Mediated | None) -> None:
        """Constrained relations are kept beside the tables; they begin anew if their rules are others."""
        if self.mediation is not None and self.mediation.parts is not parts:
            self.step.judges.remove(self.mediation)
            self.mediation = None
        if parts is not None and self.mediation is None:
            from vigilog.engine.mediation import Mediation

            self.mediation = Mediation(self, parts, self.deletion)
            self.step.judges.insert(0, self.mediation)

    def begin_again(self) -> None:
        """The tables have changed without those who answer changes: what the program states now is asked for, and concluded from."""
        if self.sources is not None:
            self.sources.begin()
        if self.mediation is not None:
            self.step.judges.remove(self.mediation)
            self.mediation = None
            self._mediate(self.extension.mediated)

    @property
    def extension(self) -> Extension:
        """What the program has beyond rows and rules."""
        return self.compiled.extension

    def next_update(self) -> Iterator[int]:
        """Numbers for updates of views, each larger than all before."""
        numbers = (row[0] for name in self.extension.updates.values() for row in self.rows(name))
        self.numbered = max([self.last_update, *numbers])  # type: ignore[assignment]  # numbers, all of them
        while True:
            self.numbered += 1
            yield self.numbered

    def add(self, judge: Judge) -> None:
        """From now on a judge looks at every change."""
        with self.lock:
            self.step.judges.append(judge)
            wanted = self.watched - self.compiled.watched
            if wanted:
                self._rebuild(self.compiled.watching(self.watched))

    @property
    def watched(self) -> frozenset[str]:
        """The relations whose changes judges want to see."""
        return frozenset(name for judge in self.step.judges for name in judge.views)

    clock: Callable[[], float] = staticmethod(time.time)  # by which alerts wait; tests turn it

    def stamped(self, reports: Sequence[AlertReport]) -> Sequence[AlertReport]:
        """Reports as they are written down: here nowhere."""
        return reports

    soonest = 0.0  # before then nothing falls due that alerts wait with

    def due(self) -> Outcome | None:
        """Reports what alerts have waited with long enough, in a transaction of its own; None if there is nothing. Whatever else is committed comes after what was due before it."""
        with self.lock:
            if not self.waiting or self.clock() < self.soonest:
                return None
            outcome, when = None, next_due(self.conditions.named, self.waiting)
            if when is not None and when <= self.clock():
                outcome = self.propose(Proposal(DueReports(self), DUE))
                when = next_due(self.conditions.named, self.waiting)
            self.soonest = when or 0.0
            return outcome

    @property
    def tx(self) -> int:
        """The number of the last transaction."""
        return self.ledger.last

    def apply(self, transaction: Transaction, *, dry_run: bool = False) -> dict[str, Delta]:
        """Applies a transaction; gives the changes of the views that changed. Raises DataError, and changes nothing, if it is refused.

        With `dry_run` the changes are told and nothing is applied.
        """
        return self.take(transaction, keep=not dry_run).deltas

    def take(
        self,
        transaction: Transaction,
        *,
        keep: bool = True,
        kind: str = "change",
        source: tuple[str, Any] | None = None,
        request: str | None = None,
        why: bool = False,
    ) -> Outcome:
        """Applies a transaction; gives its number and all that it changed, and, if somebody asks `why`, what triggers fired for.

        In a data folder the position of a source is committed with it; a request with a key that was used before does nothing again, and gives the first one's number.
        """

        def proposed() -> Outcome:
            return self.propose(Proposal(RowChange(self, self._told(transaction)), kind, source, request, why), keep=keep)

        if self.sources is None:  # nobody is waited for
            with self.lock:
                return proposed()
        return self.trying.patiently(self.lock, proposed)

    def _told(self, transaction: Transaction) -> Transaction:
        """The transaction as the tables take it."""
        if self.sources is None and "refresh" in transaction:
            raise DataError("the program states no domain that could be asked anew", "absent")
        if not self.extension.updates and "withdraw" in transaction:
            raise DataError("the program has no relation that is updatable or constrained, so there is no update to withdraw", "absent")
        if not self.extension.hidden:
            return transaction
        from vigilog.engine.updates import translated

        return translated(self, transaction)

    def refresh(self, *domains: str) -> dict[str, Delta]:
        """Asks sources anew, in a transaction of its own; gives the changes of the views that changed."""
        return self.apply({"refresh": list(domains)})  # type: ignore[dict-item]  # the one operation that names no relations

    def propose(self, proposal: Proposal, *, keep: bool = True) -> Outcome:
        """Takes a proposal through the step."""
        with self.lock:
            if keep and self.waiting and proposal.kind != DUE:
                self.due()
            return self._proposed(proposal, keep=keep)

    def _proposed(self, proposal: Proposal, *, keep: bool) -> Outcome:
        began = time.perf_counter()
        kept = False
        try:
            outcome = self.step.take(proposal, keep=keep)
            kept = keep
            self.last_update = max(self.last_update, self.numbered) if keep else self.last_update
        finally:
            if self.mediation is not None:
                self.mediation.settled(keep=kept)
            if self.sources is not None:
                self.sources.settled(keep=kept)
        self.stats = total(outcome.costs) if outcome.changes else Stats(self.views.stats.engine)
        self.stats.ms = (time.perf_counter() - began) * 1000
        if self.stats.recomputed and self.overruns is not None and keep:
            self.overruns += 1
            if self.overruns == MOST_OVERRUNS:
                self._afterwards(self._store_views)
        return outcome

    def _afterwards(self, work: Callable[[], None]) -> None:
        """Does what is of use later; the transaction before it stands whatever comes of that."""
        work()

    def _store_views(self) -> None:
        """Stores what was derived on demand until now, since that has turned out to cost too much; not recursions, which are not stored only if they are too large."""
        reason = f"deriving it on demand went over its budget {MOST_OVERRUNS} times ({self.stats.recomputed})"
        recursive = recursive_relations(self.plain)
        external = [name for name, chosen in self.strategies.items() if chosen.strategy is EXTERNAL]
        changed = [name for name in external if depends_on(self.plain, name).isdisjoint(recursive)]
        if changed:
            self._rebuild(self.compiled.with_strategies(dict.fromkeys(changed, Decision(MATERIALIZED, reason))))

    def _rebuild(self, made: Compiled) -> None:
        """Goes on with other tables over the same base."""
        views = self.views
        if isinstance(views, EmbeddedViews):
            rows = {home: set(views.rows(home)) for home in self.homes.values()}
            self.views = EmbeddedViews(made.plan, rows, self.budget, self.strict)
            views.close()
        else:
            made = self._stored_on_spark(made)
        self._use(made, self.views, self.ledger)

    def _stored_on_spark(self, made: Compiled) -> Compiled:
        """Stores more views on Spark, and counts their proofs: there, a stored view that is not counted still derives on demand whether a row has another proof."""
        from vigilog.executors.spark.views import SparkViews

        assert isinstance(self.views, SparkViews), "one engine or the other"
        changed = {
            name: chosen.reason for name, chosen in made.strategies.items() if name in self.strategies and chosen != self.strategies[name]
        }
        made = made.with_strategies({name: Decision(COUNTED, reason) for name, reason in changed.items()})
        try:
            self.views.renew(made.plan, MOST_STORED)
        except VigilogError as trouble:  # the transaction stands, and what follows is answered as before
            made = made.with_strategies({name: Decision(EXTERNAL, f"{reason}, but {trouble.message}") for name, reason in changed.items()})
        return made

    def overrides(self) -> list[dict[str, Any]]:
        """The updates of views that were not withdrawn, in their order."""
        from vigilog.engine.updates import overrides

        with self.lock:
            return overrides(self)

    def what_if(
        self, insert: Facts | None = None, delete: Facts | None = None, upsert: Facts | None = None, delete_key: Facts | None = None
    ) -> WhatIf:
        """What a transaction would cause; nothing is applied. Raises the error with which it would be refused."""
        told = {"delete": delete, "insert": insert, "upsert": upsert, "delete_key": delete_key}
        outcome = self.take({operation: _lists(facts) for operation, facts in told.items() if facts}, keep=False)
        return WhatIf(self._keyed(outcome), outcome.alerts, outcome.triggered)

    def _keyed(self, outcome: Outcome) -> dict[str, Keyed]:
        """The changes of views, of which those with a key tell what is modified."""
        keys = self.program.keys
        return {name: Keyed(delta.plus, delta.minus, keys.get(name)) for name, delta in outcome.deltas.items()}

    def on_alert(self, alert: str, call: Callable[[dict[str, Any]], object]) -> object:
        """Calls somebody for each report of an alert, from now on, in the background. Only what is in a data folder can be delivered so."""
        raise UsageError("reports are delivered from a data folder: open one with data=…; here tx.alerts has those of each transaction")

    keeps_changes = False  # whether the changes of the past can be read again

    def subscribe(self, view: str, since: int | None = None) -> Changes:
        """The changes of a view, as they come: `with db.subscribe("closure") as changes`. See `engine/changes.py`."""
        return Changes(self, view, since)

    def changes_of(self, view: str, since: int, until: int | None = None) -> list[ViewChange]:
        """What a view gained and lost after a transaction, if that is kept."""
        raise DataError("the changes of the past are kept in a data folder only; leave out since", "gap")

    @contextmanager
    def transaction(self) -> Iterator[Pending]:
        """Collects changes and applies them at the end of the block, unless it ends in an error."""
        pending = Pending()
        yield pending
        outcome = self.take(pending.collected)
        pending.changes = self._keyed(outcome)
        pending.tx, pending.alerts, pending.triggered = outcome.tx, outcome.alerts, outcome.triggered

    def view(self, name: str, *, named: bool = False) -> set[Row]:
        """All rows of an output relation; each a NamedTuple, if they are to be `named`."""
        ensure_known(self.program, name)
        if named:
            return set(self.named(self.whole(name), self.view(name)))
        with self.lock:
            if self.mediation is not None and name in self.mediation.parts.updates:
                return self.mediation.texts(name)
            return self.told_rows(name)

    def begin_with(self, name: str) -> Sequence[Row]:
        """What a copy of a view begins with: its rows, sorted; of a constrained one its region, as a change from nothing."""
        with self.lock:
            if self.mediation is not None and name in self.mediation.parts.updates:
                return self.mediation.region(name)
            return sorted_rows(self.told_rows(name))

    def beside(self, goal: str) -> str:
        """The relation whose answers are no rows of tables, if a goal is an atom of one: constrained, or deferred."""
        late, constrained = self.compiled.late, self.program.constrained
        if late is None and not constrained:
            return ""
        from vigilog.mediators.asking import read_atom

        rule = read_atom(goal)
        relation = rule.head.relation if rule is not None else ""
        is_late = late is not None and relation in late.relations and relation not in self.program.relations
        return relation if is_late or relation in constrained else ""

    def ensure_rows(self, goal: str) -> None:
        """Raises DataError if a goal is an atom of a relation that has no rows in tables, so no proof rests on such."""
        if relation := self.beside(goal):
            constrained = relation in self.program.constrained
            why = "is constrained: explain --show supports shows what its facts rest on" if constrained else "is deferred: ask for it"
            raise DataError(f"proofs are of rows, and {relation} {why}", "why")

    def told_rows(self, name: str) -> set[Row]:
        """All rows of a relation whose changes are found: a view of the program, or one that only its conditions need."""
        with self.lock:
            if name in self.stored or self.homes.get(name) == name:
                return set(self.views.rows(name))
            columns = ", ".join("_" for _ in self.plain.relations[name].attributes)
            return set(self.views.answers(parse_goal(self.plain, f"{name}({columns})")))

    def frame(self, name: str, *, nested: bool = False) -> DataFrame:
        """A view, or a base relation, as a Spark DataFrame, as of now; a view frame `nested`, with arrays of structs."""
        if nested:
            return self._nested_frame(name)
        from vigilog.executors.spark.bulk import Bulk
        from vigilog.executors.spark.views import SparkViews

        ensure_known(self.program, name)
        with self.lock:
            if isinstance(self.views, SparkViews) and (name in self.views.views or self.homes.get(name) == name):
                return self.views.frame(name)
            with closing(Bulk(self.plain, Watch())) as bulk:
                return bulk.local(name, sorted_rows(self.view(name)))

    def _nested_frame(self, name: str) -> DataFrame:
        from vigilog.executors.spark.nested import nested_frame

        with self.lock:
            return nested_frame(shape_of(self.program, name), self.frame)

    def nested(self, name: str) -> list[Nested]:
        """The objects of a view frame, nested as it says, as JSON has them. See `engine/nested.py`."""
        with self.lock:
            shape = shape_of(self.program, name)
            rows = {relation: self.view(relation) for relation in shape.relations}
            return nest(shape, rows, lambda relation: self.program.relations[relation].types)

    def whole(self, name: str) -> str:
        """The goal that asks for all rows of a relation."""
        return f"{name}({', '.join('_' for _ in self.program.relations[name].attributes)})"

    def rows(self, name: str) -> set[Row]:
        """All rows that are stated for a base relation."""
        with self.lock:
            return set(self.views.rows(self.homes[name]))

    def ask(self, goal: str, *, named: bool = False) -> list[Row]:
        """The answers to a goal like `closure("a", y)`, sorted: the rows of an atom, or the values of the variables of several literals. If they are to be `named`, each is a NamedTuple."""
        answers = self.ask_typed(goal)[1]
        return self.named(goal, answers) if named else answers

    def named(self, goal: str, answers: Iterable[Row]) -> list[Row]:
        """The answers to a goal as NamedTuples."""
        asked = parse_goal(self.program, goal)
        return records(asked.of_atom or "answer", asked.columns, asked.declaration.types, answers)

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The names of the columns of each relation."""
        return {name: declaration.columns for name, declaration in self.program.relations.items()}

    def columns_of(self, goal: str) -> tuple[str, ...]:
        """The names of the columns of a goal's answers, where these are rows."""
        relation, late = self.beside(goal), self.compiled.late
        if relation in self.program.constrained:
            return self.program.relations[relation].args
        return tuple(parse_goal(self.program if not relation or late is None else late, goal).columns)

    def ask_typed(self, goal: str, *, enumerated: bool = False) -> tuple[tuple[Type, ...], list[Row]]:
        """The types of a goal's answers, and the answers; of a constrained relation texts of facts, unless the goal binds all columns, or its rows are to be `enumerated`."""
        if (late := self._late(goal)) is not None:
            return late
        with self.lock:
            if self.mediation is not None and (mediated := self.mediation.asked(goal, enumerated=enumerated)) is not None:
                return mediated
            asked = parse_goal(self.program, goal)
            answers = sorted_rows(self.views.answers(asked))
            self.stats = self.views.stats
            return asked.declaration.types, answers

    def _late(self, goal: str) -> tuple[tuple[Type, ...], list[Row]] | None:
        """The answers to a goal about deferred relations alone, by sources as they are now."""
        late = self.compiled.late
        if late is None:
            return None
        from vigilog.engine.deferred import atoms_of

        asked = {name for name in late.relations if name not in self.program.relations}
        if not any(re.search(rf"\b{name}\s*\(", goal) for name in asked):
            return None
        with self.lock:
            atoms = {name: self.view(name) for name in atoms_of(late)}
        with Database(late, atoms, "external") as answering:  # its sources are waited for, and nobody waits for it
            return answering.ask_typed(goal)

    def why(self, goal: str) -> Proof | None:
        """A proof of an atom from base facts; None if it does not hold. If it has variables, their first values that hold are taken."""
        self.ensure_rows(goal)
        with self.lock:
            asked = parse_atom(self.program, goal)
            answers = sorted_rows(self.views.answers(asked))
            return self.proofs(asked.of_atom, answers[:1])[0] if answers else None

    def why_not(self, goal: str, depth: int = 1) -> WhyNot | None:
        """Why an atom does not hold: for each rule that could give it the first literal that fails, and rows near to it; None if it holds.

        Below literals that fail because no rule gives them, the same for their rules, down to a `depth`.
        """
        self.ensure_rows(goal)
        with self.lock:
            asked = parse_atom(self.program, goal)
            holds = any(True for _ in self.views.answers(asked))
            return None if holds else why_not(self.plain, self.homes, self.views, asked, depth)

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it; None if it has none, as facts that are not ground."""
        if relation in self.program.constrained:
            return [None for _ in rows]
        with self.lock:
            return [proof and proof.rebuilt(self.stated_step) for proof in self.views.proofs(relation, rows)]

    def stated_step(self, step: Proof) -> Proof:
        """A step from a row to the same row where it is stated is none; what a source has answered is told by the call."""
        stated = step.relation in self.homes and any(part.relation == self.homes[step.relation] != step.relation for part in step.because)
        step = replace(step, rule="", place="", because=()) if stated else step
        return step if self.sources is None else self.sources.told(step)

    def broken(self, proof: Proof) -> Proof:
        """A proof that once held, with marks on what it rests on that does not hold any more."""
        with self.lock:
            return proof.rebuilt(lambda step: replace(step, broken=not step.rule and not self._holds(step)))

    def _holds(self, leaf: Proof) -> bool:
        if leaf.row is not None:
            return bool(self.base[leaf.relation].among([leaf.row]))
        if leaf.asked is None:
            return True
        asked = cast(
            Literal, leaf.asked
        )  # which no text of it may say: it may read relations that passes have made, or compute what has no value
        return bool(self.views.answers(goal_of_body(self.plain, (asked,), ())))

    def check(self) -> list[dict[str, Any]]:
        """The present violations of all constraints, whether they are enforced or not, by priority and name: the rows, and why they hold."""
        with self.lock:
            violations = []
            for constraint in self.conditions.constraints:
                rows = sorted_rows(self.view(constraint.relation))
                if rows:
                    violation = Violation(constraint, rows, len(rows))
                    members = violation.json(self.program, violation.proofs(self.proofs))
                    violations.append({**members, "mode": constraint.mode, "message": violation.message(self.program)})
            return violations

    def close(self) -> None:
        self.refresher.stop()
        with self.lock:
            self.views.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@dataclass(frozen=True)
class BaseRelation:
    """A base relation in which rows can be looked up."""

    views: Views
    home: str

    def among(self, rows: Collection[Row]) -> set[Row]:
        return self.views.among(self.home, rows)

    def twice(self, columns: tuple[int, ...]) -> Row | None:
        return self.views.twice(self.home, columns)

    def having(self, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        return self.views.having(self.home, columns, values)


def _in_memory(
    made: Compiled, facts: Mapping[str, Iterable[Row] | Place], budget: int | None, strict: bool, most: int | None, report: Report | None
) -> tuple[Compiled, EmbeddedViews]:
    """The tables of a program on SQLite; views on recursions that turn out to have more rows than `most` are not stored."""
    while True:
        rows = {home: joined(read(facts.get(name, ())), made.stated.get(name, ())) for name, home in made.homes.items()}
        try:
            return made, EmbeddedViews(made.plan, rows, budget, strict, most=most, report=report)
        except TooManyRows as large:
            relations = next(component.relations for component in components(made.plain) if str(component) == large.doing)
            if not improved(made.plain).isdisjoint(relations):  # it is stored in any case
                most = None
                continue
            made = made.with_strategies(kept_by_none(made.plain, made.strategies, relations, f"{large.message}, too many to store"))


def _lists(facts: Facts | None) -> dict[str, list[Any]]:
    return {
        name: [row if isinstance(row, Mapping) or is_dataclass(row) else list(row) for row in rows] for name, rows in (facts or {}).items()
    }
