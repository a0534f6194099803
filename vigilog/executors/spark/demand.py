"""Runs rules on demand on Spark.

Relations of the rules that are not tables are *work relations*. What a rule derives comes to this process while it is little, and goes back as a local relation where Spark joins it; what is much stays
where it is, with its lineage cut. Rules have read a work relation up to some point; what came since is what they read next. As in the embedded machine, rules of the lowest rank that have something to read
go first (`rewriting/demand/` says why): all of them are one query and one action. Rules that read nothing but rows that are here need no Spark at all (`local.py`), so of each rank they go first. Rules that
ask few things of tables run here, too: what they ask is looked up in this process, where the tables are files of this machine, or else fetched, by one action for all of them (`lookup.py`).

A join starts at the rows that are new, which are sent to the tables; tables are never sent around, unless they are small (`planning/select.py`), and never written anew for a change (`rewriting/maintenance/amended.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from vigilog.core.values import Row, Type
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.spark import temporary as sizes
from vigilog.executors.spark.local import Excess, LocalRule, Matching, Rows, is_local
from vigilog.executors.spark.lookup import Lookup, Unbound
from vigilog.executors.spark.stored import Snapshot, rows_of
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.executors.watch import Watch
from vigilog.language.parts import atoms, variables
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Literal, Rule, Variable, Wildcard
from vigilog.planning.dialect import Parameters
from vigilog.planning.select import Choice, select
from vigilog.rewriting.demand.demand import ranks
from vigilog.rewriting.maintenance.amended import Amendment
from vigilog.rewriting.naming import Naming
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLLECTED_ROWS = 50_000  # up to so many rows of a round come to this process
MOST_SURPRISES = 2  # so often may a round turn out to give more, which costs an action more
MOST_PARTS = 8  # of more parts than that, a relation is put together
MET_ROWS = 10 * COLLECTED_ROWS  # of a rule that meets more rows than that, Spark does the joins
WORK_ROWS = 10  # what a work relation is expected to hold, for the order of joins
TAG, UNDEFINED = "__relation", "__undefined"


@dataclass(frozen=True)
class _Batch:
    """Rows that came to a work relation in one round: here, or as a view."""

    size: int
    rows: Sequence[Row] = ()
    view: str = ""


@dataclass
class _Work:
    """A work relation: batches in the order in which they came, and the rows of those that are here. `trunk` is a view of all views among the first batches, as many as `covered`."""

    batches: list[_Batch] = field(default_factory=list)
    here: Rows = field(default_factory=Rows)
    size: int = 0
    shown: int = -1
    trunk: str = ""
    covered: int = 0

    @property
    def views(self) -> list[str]:
        return [self.trunk] * bool(self.trunk) + [batch.view for batch in self.batches[self.covered :] if batch.view]

    @property
    def elsewhere(self) -> bool:
        return any(batch.view for batch in self.batches)


@dataclass
class _Statement:
    sql: str
    parameters: Parameters
    undefined: Sequence[str]
    whole: bool  # whether it reads a large relation as a whole


@dataclass
class _Step:
    """What a rule does when rows come to its first atom. `reads` are the work relations in the rest of its body, `tables` the tables."""

    number: int
    rule: Rule
    reads: frozenset[str]
    tables: frozenset[str]
    near: bool  # whether it can run here, if what it reads comes here
    rules: dict[frozenset[str], LocalRule] = field(default_factory=dict)
    statements: dict[object, _Statement] = field(default_factory=dict)

    def local(self, late: frozenset[str]) -> LocalRule:
        if late not in self.rules:
            self.rules[late] = LocalRule(self.rule, late)
        return self.rules[late]

    @property
    def first(self) -> str:
        assert isinstance(self.rule.body[0], Atom)
        return self.rule.body[0].relation

    @property
    def target(self) -> str:
        return self.rule.head.relation


RoundPlan = list[dict[str, list[_Step]]]


class DemandMachine:
    """The work relations of some rules on demand over tables. A run begins with `run` and ends with `clear`; once it has derived more rows than its `budget`, it raises OverBudget."""

    def __init__(self, session: SparkSession, program: Program, levels: Mapping[str, int], tables: Iterable[str], watch: Watch) -> None:
        self.tables = frozenset(tables)
        naming = Naming(program.relations)
        self.gone = {name: naming(name, "gone") for name in sorted(self.tables)}
        lists = tuple(replace(program.relations[name], relation=listed) for name, listed in self.gone.items())
        self.frames = TemporaryViews(session, replace(program, declarations=(*program.declarations, *lists)), watch)
        self.layout = self.frames.layout
        self.steps = self._steps(program.rules, ranks(program.rules, levels))
        self.plans: dict[tuple[str, ...], RoundPlan] = {}
        self.work: dict[str, _Work] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.shown: dict[str, Snapshot] = {}
        self.lookup = Lookup(self.frames)
        self.derived = self.rounds = self.undefined = self.surprises = self.parts = 0
        self.budget: int | None = None

    def run(self, tables: Mapping[str, Snapshot], given: Mapping[str, Iterable[Row]], needed: Collection[str] | None = None) -> None:
        """Derives all that follows from given rows of some relations over tables; of what is not `needed` nothing."""
        self.work = {}
        self.derived = self.rounds = self.undefined = self.surprises = 0
        self.snapshots = dict(tables)
        for relation, rows in given.items():
            self._add(relation, rows)
        plan = self._plan(relation for relation, work in self.work.items() if work.size)
        seen: list[dict[str, int]] = [{} for _ in plan]
        open_ = [self.work.keys() & steps.keys() for steps in plan]
        while (lane := next((number for number, relations in enumerate(open_) if relations), None)) is not None:
            self.rounds += 1
            self.frames.watch.round(self.derived)
            since = {relation: seen[lane].get(relation, 0) for relation in sorted(open_[lane])}
            open_[lane] = set()
            for relation in since:
                seen[lane][relation] = len(self.work[relation].batches)
            steps = [step for relation in since for step in plan[lane][relation] if needed is None or step.target in needed]
            for target, number in self._round(steps, since).items():
                self.derived += number
                for other, reading in enumerate(plan):
                    if number and target in reading:
                        open_[other].add(target)
            if self.budget is not None and self.derived > self.budget:
                raise OverBudget(f"more than {self.budget} rows were derived on demand", "budget")

    def rows(self, relation: str) -> frozenset[Row]:
        """All rows of a work relation, here."""
        work = self.work.get(relation)
        if work is None:
            return frozenset()
        if not work.elsewhere:
            return frozenset(work.here.rows)
        return frozenset(rows_of(self.frames, relation, self.frames.act(self.frame(relation).toArrow)))

    def size(self, relation: str) -> int:
        """The number of rows of a work relation."""
        return self.work[relation].size if relation in self.work else 0

    def frame(self, relation: str) -> DataFrame:
        """All rows of a work relation."""
        work = self.work.get(relation, _Work())
        if not work.views:
            return self.frames.local(relation, list(work.here.rows))
        parts = self._views(work)
        return parts.unionAll(self.frames.local(relation, list(work.here.rows))) if work.here.rows else parts

    def is_elsewhere(self, relation: str) -> bool:
        """Whether some rows of a work relation are not here."""
        return relation in self.work and self.work[relation].elsewhere

    def clear(self) -> None:
        """Forgets what was derived."""
        for relation, work in self.work.items() if self.parts else ():
            named = [*work.views, self._recent(relation), self.layout.tables[relation], *(batch.view for batch in work.batches)]
            for view in {view for view in named if view in self.frames.views}:
                self.frames.forget(view)
        self.work, self.parts = {}, 0
        self.lookup.forget()

    def close(self) -> None:
        self.frames.close()

    # -- what is to be done

    def _steps(self, rules: Sequence[Rule], ranked: Sequence[int]) -> list[tuple[int, list[_Step]]]:
        """The steps of each rule, with the lane in which they run: of each rank, rules over work relations only go before the others."""
        lanes = []
        number = 0
        for rule, rank in {_unnamed(rule): rank for rule, rank in zip(rules, ranked, strict=True)}.items():
            steps = []
            read = {atom.relation for atom, _ in atoms(rule.body)}
            tables = frozenset(read & self.tables)
            for place, literal in enumerate(rule.body):
                if isinstance(literal, Atom) and literal.relation not in self.tables:
                    rest = tuple(other for index, other in enumerate(rule.body) if index != place)
                    ordered = rule.derive(rule.head, body=(literal, *rest))
                    reads = frozenset(atom.relation for atom, _ in atoms(rest)) - tables
                    steps.append(_Step(number, ordered, reads, tables, is_local(ordered, self.tables)))
                    number += 1
            lanes.append((2 * rank + (bool(tables) or not all(step.near for step in steps)), steps))
        return lanes

    def _plan(self, start: Iterable[str]) -> RoundPlan:
        """The steps that can have something to do when rows come to the relations in `start`: by lane, and by the relation they begin with."""
        key = tuple(sorted(start))
        if key not in self.plans:
            reached = set(key)
            live: list[tuple[int, list[_Step]]] = []
            waiting = self.steps
            while ready := [entry for entry in waiting if all(step.first in reached for step in entry[1])]:
                waiting = [entry for entry in waiting if not any(entry is other for other in ready)]
                live += ready
                reached |= {step.target for _, steps in ready for step in steps}
            plan: RoundPlan = [{} for _ in range(max((lane for lane, _ in live), default=0) + 1)]
            for lane, steps in live:
                for step in steps:
                    plan[lane].setdefault(step.first, []).append(step)
            self.plans[key] = plan
        return self.plans[key]

    # -- one round

    def _round(self, steps: Sequence[_Step], since: Mapping[str, int]) -> dict[str, int]:
        """Runs steps from the batches since a number; gives how many new rows each relation got."""
        recent = {relation: self._relation(relation).batches[start:] for relation, start in since.items()}
        self.lookup.wish_nothing()
        refused: set[int] = set()
        gained: dict[str, list[Row]] = {}

        def is_open(step: _Step) -> bool:
            if step.number in refused or not self._is_here(step, fresh):
                refused.add(step.number)
                return True
            try:
                return not self._derive(step, recent[step.first], gained)
            except (Excess, Unbound):
                refused.add(step.number)
                return True

        fresh = {relation: sum(batch.size for batch in batches) for relation, batches in recent.items()}
        open_ = list(filter(is_open, filter(self._can_hold, steps)))
        while open_ and self.lookup.fetch_near(MET_ROWS):
            open_ = list(filter(is_open, open_))
        if open_ and not refused and self._fetch():
            open_ = list(filter(is_open, open_))
        counts = {target: self._add(target, rows) for target, rows in gained.items()}
        for target, number in self._by_spark(open_, recent).items() if open_ else ():
            counts[target] = counts.get(target, 0) + number
        return counts

    def _is_here(self, step: _Step, fresh: Mapping[str, int]) -> bool:
        """Whether a step can run here: what it reads is here, but for what it asks of tables that can be looked up here, and, once, of another."""
        if not step.near or any(map(self.is_elsewhere, (step.first, step.target, *step.reads))):
            return False
        if not step.tables:
            return True
        far = {name for name in step.tables if self.snapshots[name].settled is not None and self.snapshots[name].near is None}
        asked = sum(name in far for name in _read(step.rule))
        return asked <= 1 and fresh[step.first] <= COLLECTED_ROWS and self.surprises < MOST_SURPRISES

    def _derive(self, step: _Step, recent: Sequence[_Batch], gained: dict[str, list[Row]]) -> bool:
        """Adds what a step derives here. False if it must be asked for first."""
        rule = step.local(frozenset(name for name in step.tables if self.snapshots[name].settled is not None))
        tables = {name: self.lookup.table(self.snapshots[name]) for name in step.tables}
        relations: dict[str, Matching] = {name: self._relation(name).here for name in step.reads}
        missed, undefined = sum(table.missed for table in tables.values()), rule.undefined
        rows = (row for batch in recent for row in batch.rows)
        derived = list(rule.derive(rows, relations | tables, MET_ROWS if tables else None))
        if sum(table.missed for table in tables.values()) > missed:
            return False
        gained.setdefault(step.target, []).extend(derived)
        self.undefined += rule.undefined - undefined
        return True

    def _fetch(self) -> bool:
        """Brings here what steps have asked for, by one action. False if that is too much."""
        done = self.lookup.fetch(COLLECTED_ROWS)
        self.surprises += not done
        return done

    def _can_hold(self, step: _Step) -> bool:
        """Whether nothing that the rest of a body needs is empty. What comes later is read first by another step."""
        needed = (literal.relation for literal in step.rule.body[1:] if isinstance(literal, Atom))
        return all(self.snapshots[name].rows if name in self.tables else self._relation(name).size for name in needed)

    def _by_spark(self, steps: Sequence[_Step], recent: Mapping[str, Sequence[_Batch]]) -> dict[str, int]:
        fresh = {relation: sum(batch.size for batch in batches) for relation, batches in recent.items()}
        for relation in {step.first for step in steps}:
            self.frames.show(self._recent(relation), self._batches(relation, recent[relation]), fresh[relation])
        for name in {name for step in steps for name in step.tables}:
            self._show_table(name)
        for relation in {name for step in steps for name in step.reads} | {step.target for step in steps if self.is_elsewhere(step.target)}:
            self._show_work(relation)
        small = sum(fresh.values()) <= COLLECTED_ROWS and self.surprises < MOST_SURPRISES
        statements = [(step.target, self._statement(step, fresh[step.first])) for step in steps]
        if small:
            counts = self._collect(statements)
            if counts is not None:
                return counts
            self.surprises += 1
        return self._settle(statements)

    def _collect(self, statements: Sequence[tuple[str, _Statement]]) -> dict[str, int] | None:
        """The new rows, brought here; None if they turn out to be too many for that."""
        whole = any(statement.whole for _, statement in statements)
        self.frames.configure(partitions=self.frames.partitions if whole else 1, adaptive=whole)
        targets = list(dict.fromkeys(target for target, _ in statements))
        texts = []
        for target in targets:
            own = [statement.sql for other, statement in statements if other == target]
            texts.append(
                _wide(
                    self.layout.types,
                    targets,
                    target,
                    self._unknown(target, own) if self.is_elsewhere(target) else _named(own, self.layout.columns[target]),
                )
            )
        for undefined in [text for _, statement in statements for text in statement.undefined]:
            texts.append(_wide(self.layout.types, targets, None, undefined))
        parameters = {name: value for _, statement in statements for name, value in statement.parameters.items()}
        text = f"SELECT * FROM ({' UNION ALL '.join(texts)}) LIMIT {COLLECTED_ROWS + 1}"
        table = self.frames.act(lambda: self.frames.sql(text, parameters).toArrow())
        if table.num_rows > COLLECTED_ROWS:
            return None
        self.undefined += pc.sum(table[UNDEFINED]).as_py() or 0
        return {target: self._add(target, self._decoded(table, number, target)) for number, target in enumerate(targets)}

    def _decoded(self, table: pa.Table, number: int, relation: str) -> Iterable[Row]:
        own = table.filter(pc.equal(table[TAG], number))
        columns = [f"c{number}_{place}" for place in range(len(self.layout.columns[relation]))]
        return rows_of(self.frames, relation, own.select(columns))

    def _settle(self, statements: Sequence[tuple[str, _Statement]]) -> dict[str, int]:
        """The new rows, left where they are: a part of each relation."""
        from pyspark.sql import functions as F

        self.frames.configure(partitions=self.frames.partitions, adaptive=True)
        targets = list(dict.fromkeys(target for target, _ in statements))
        texts = []
        for target in targets:
            self._show_work(target)
            texts.append(
                _wide(self.layout.types, targets, target, self._unknown(target, [s.sql for other, s in statements if other == target]))
            )
        for undefined in [text for _, statement in statements for text in statement.undefined]:
            texts.append(_wide(self.layout.types, targets, None, undefined))
        parameters = {name: value for _, statement in statements for name, value in statement.parameters.items()}
        counts = {f"n{number}": F.count_if(F.col(TAG) == number) for number in range(len(targets))} | {UNDEFINED: F.sum(UNDEFINED)}
        done, totals = self.frames.settle(self.frames.sql(" UNION ALL ".join(texts), parameters), counts)
        self.undefined += totals[UNDEFINED]
        for number, target in enumerate(targets):
            if size := totals[f"n{number}"]:
                columns = [F.col(f"c{number}_{place}").alias(name) for place, name in enumerate(self.layout.columns[target])]
                self._add_part(target, done.where(F.col(TAG) == number).select(*columns), size)
        return {target: totals[f"n{number}"] for number, target in enumerate(targets)}

    def _unknown(self, relation: str, texts: Sequence[str]) -> str:
        """The distinct rows that a work relation does not have yet, in columns n0, n1, …; a relation with many rows is not hashed but streamed."""
        columns = self.layout.columns[relation]
        listed = ", ".join(f"n{place}" for place in range(len(columns)))
        distinct = f"SELECT DISTINCT {listed} FROM ({_named(texts, columns)})"
        size = self._relation(relation).size
        if not size:
            return distinct
        equal = " AND ".join(f"f.f{place} = c.n{place}" for place in range(len(columns)))
        read = (
            "SELECT "
            + ", ".join(f"`{column}` AS f{place}" for place, column in enumerate(columns))
            + f" FROM `{self.layout.tables[relation]}`"
        )
        if size <= sizes.BROADCAST_ROWS:
            return f"SELECT {listed} FROM ({distinct}) c LEFT ANTI JOIN ({read}) f ON {equal}"
        return f"SELECT {listed} FROM (SELECT /*+ SHUFFLE_HASH(c) */ c.*, f.f0 FROM ({distinct}) c LEFT JOIN ({read}) f ON {equal}) WHERE f0 IS NULL"

    # -- relations

    def _relation(self, name: str) -> _Work:
        return self.work.setdefault(name, _Work())

    def _add(self, relation: str, rows: Iterable[Row]) -> int:
        work = self._relation(relation)
        new = work.here.add(rows)
        if new:
            work.batches.append(_Batch(len(new), new))
            work.size += len(new)
        return len(new)

    def _add_part(self, relation: str, part: DataFrame, size: int) -> None:
        from pyspark.sql import functions as F

        work = self._relation(relation)
        self.parts += 1
        view = self.frames.show(f"{self.layout.tables[relation]}__part_{self.parts}", part)
        work.batches.append(_Batch(size, view=view))
        work.size += size
        if len(work.views) > MOST_PARTS:
            self.parts += 1
            whole, _ = self.frames.settle(self._views(work), {"rows": F.count(F.lit(1))})
            work.trunk, work.covered = self.frames.show(f"{self.layout.tables[relation]}__part_{self.parts}", whole), len(work.batches)

    def _views(self, work: _Work) -> DataFrame:
        return _together([self.frames.session.table(view) for view in work.views])

    def _batches(self, relation: str, batches: Sequence[_Batch]) -> DataFrame:
        parts = [self.frames.session.table(batch.view) for batch in batches if batch.view]
        rows = [row for batch in batches for row in batch.rows]
        return _together([*parts, *([self.frames.local(relation, rows)] if rows or not parts else [])])

    def _show_work(self, relation: str) -> None:
        work = self._relation(relation)
        if work.shown != work.size:
            self.frames.show(self.layout.tables[relation], self.frame(relation), work.size)
            work.shown = work.size

    def _show_table(self, name: str) -> None:
        snapshot = self.snapshots[name]
        if self.shown.get(name) is not snapshot:
            self.frames.show(self.layout.tables[name], snapshot.read, snapshot.rows)
            if snapshot.tail.minus:
                self.frames.show(self.layout.tables[self.gone[name]], snapshot.gone, len(snapshot.tail.minus))
            self.shown[name] = snapshot

    def _recent(self, relation: str) -> str:
        return f"{self.layout.tables[relation]}__recent"

    # -- statements

    def _statement(self, step: _Step, fresh: int) -> _Statement:
        """The statement of a step; what it looks like depends on what is large and what lists of gone rows there are."""
        gone = {name: self.gone[name] for name in step.tables if self.snapshots[name].tail.minus}
        rows = {name: self.snapshots[name].rows for name in step.tables} | {name: self._relation(name).size for name in step.reads}
        large = frozenset(name for name, size in rows.items() if size > sizes.BROADCAST_ROWS and fresh <= sizes.BROADCAST_ROWS)
        key = frozenset(gone), large
        if key not in step.statements:
            recent = self._recent(step.first)

            def table(index: int, atom: Atom) -> str:
                return self.layout.tables[atom.relation] if index else recent

            expected = dict.fromkeys(self.layout.program.relations, WORK_ROWS) | {name: rows[name] for name in step.tables}
            choice = Choice(first=0, table=table, rows=expected, prefix=f"s{step.number}_", large=large)
            chosen = select(Amendment(gone, large).rule(step.rule), self.layout, self.frames.dialect, choice)
            text = chosen.text
            undefined = [] if chosen.whole else chosen.undefined_texts  # to count them would be to read it as a whole once more
            step.statements[key] = _Statement(text, chosen.parameters, undefined, chosen.whole)
        return step.statements[key]


def _unnamed(rule: Rule) -> Rule:
    """The rule with `_` for variables of its atoms that occur nowhere else, so that rules are equal that mean the same."""
    occurrences = Counter(variable.name for literal in (rule.head, *rule.body) for variable in variables(literal, into_aggregates=True))

    def plain(literal: Literal) -> Literal:
        if not isinstance(literal, Atom):
            return literal
        once = (isinstance(arg, Variable) and occurrences[arg.name] == 1 for arg in literal.args)
        return replace(literal, args=tuple(Wildcard(arg.type) if alone else arg for arg, alone in zip(literal.args, once, strict=True)))

    return replace(rule, body=tuple(plain(literal) for literal in rule.body))


def _read(rule: Rule) -> Iterator[str]:
    """The relations of a body, as often as they occur there."""
    return (atom.relation for atom, _ in atoms(rule.body))


def _together(parts: Sequence[DataFrame]) -> DataFrame:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.unionAll(part)
    return whole


def _named(texts: Sequence[str], columns: Sequence[str]) -> str:
    """The union of some SELECTs, in columns n0, n1, …"""
    return f"SELECT * FROM ({' UNION ALL '.join(texts)}) AS u({', '.join(f'n{place}' for place in range(len(columns)))})"


def _wide(types: Mapping[str, Sequence[Type]], relations: Sequence[str], relation: str | None, text: str) -> str:
    """Rows n0, n1, … of one relation among the columns of all, the others' being null; or, for no relation, a count `n` of undefined cases."""
    columns = [f"{-1 if relation is None else relations.index(relation)} AS {TAG}"]
    for index, other in enumerate(relations):
        for place, type_ in enumerate(types[other]):
            columns.append(f"{f'n{place}' if other == relation else f'CAST(NULL AS {spark_type(type_)})'} AS c{index}_{place}")
    columns.append(f"{'n' if relation is None else 'CAST(0 AS BIGINT)'} AS {UNDEFINED}")
    return f"SELECT {', '.join(columns)} FROM ({text})"
