"""What is kept of groups on Spark: their state and their values are relations like others (`stored.py`).

A change's bindings are found on demand, added up by group, where they are, and joined with the state of these groups in this process: as many rows as groups are touched. An extreme that has left is looked for
among the bindings of its group, which are derived on demand. What a change of very many groups costs more than is not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from vigilog.core.delta import Delta
from vigilog.core.values import Row, Type
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark import reader as reading
from vigilog.executors.spark.demand import DemandMachine
from vigilog.executors.spark.functions import ship
from vigilog.executors.spark.improved import ImprovedKeeper, improved_keeper
from vigilog.executors.spark.stored import Snapshot, having, in_files, rows_of, settled
from vigilog.executors.spark.stored import spooled as in_own_files
from vigilog.executors.spark.temporary import TemporaryViews
from vigilog.executors.watch import Watch
from vigilog.language import accumulators
from vigilog.language.program import Program
from vigilog.rewriting.demand.magic import magic
from vigilog.rewriting.maintenance import turning
from vigilog.rewriting.maintenance.group import EXTREMES, Cells, Group
from vigilog.rewriting.maintenance.on_demand import OnDemand, bindings_on_demand
from vigilog.rewriting.maintenance.plan import ComponentPlan, Plan
from vigilog.rewriting.program.relevant import relevant
from vigilog.spark.snapshots import read_rows, spool
from vigilog.spark.types import spark_type

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

MOST_GROUPS = 200_000  # so many groups that a transaction touches come to this process; of more, all is computed anew
Snapshots = Mapping[str, Snapshot]


@dataclass
class GroupKeeper:
    """What is kept of the groups of one set of bindings."""

    group: Group
    rules: OnDemand
    program: Program  # of the bindings, and of all that they are derived from
    machine: DemandMachine
    frames: TemporaryViews  # those of the views, which know the columns of what is kept
    watch: Watch

    @property
    def kept(self) -> tuple[str, ...]:
        return self.group.aux.relation, self.group.state.relation

    @property
    def counts(self) -> tuple[str, ...]:
        """What the groups are gathered from."""
        return (self.group.rows.relation,)

    # -- all groups

    def fill(self, given: Snapshots, stats: Stats) -> dict[str, Snapshot]:
        """What is kept of all groups, from relations as they are given."""
        group, rows = self.group, self.group.rows.relation
        with reading.evaluated(self.frames.session, self.program, [rows], given, self.watch, stats, [rows]) as machine:
            state = in_own_files(self.frames, group.state.relation, self._added_up(machine.asked(rows)))
        if state.settled is None:
            values = frozenset(value for row in state.tail.plus if (value := self._valued(row)) is not None)
            aux = Snapshot(self.frames, group.aux.relation, Delta(plus=values))
        elif state.spooled is not None:
            states = read_rows(group.state.types, state.spooled.location)
            valued = (value for row in states if (value := self._valued(row)) is not None)
            aux = in_files(self.frames, group.aux.relation, spool(self._columns(group.aux.relation), group.aux.types, valued))
        else:
            if not self.frames.on_this_machine:
                ship(self.frames.session)
            schema = ", ".join(
                f"`{name}` {spark_type(type_)}" for name, type_ in zip(self._columns(group.aux.relation), group.aux.types, strict=True)
            )
            aux = settled(
                self.frames, group.aux.relation, state.exact.mapInArrow(_Valued(group, self._columns(group.aux.relation)), schema)
            )
        return {group.state.relation: state, group.aux.relation: aux}

    def _columns(self, relation: str) -> tuple[str, ...]:
        return self.frames.layout.columns[relation]

    def _valued(self, row: Row) -> Row | None:
        (values,) = turning.values(self.group, turning.read(self.group, [row[self.group.keys :]]))
        return None if values is None else (*row[: self.group.keys], *values)

    def _added_up(self, frame: DataFrame) -> DataFrame:
        """The states of groups that have the bindings of a frame."""
        from pyspark.sql import functions as F

        columns, group = [F.col(f"`{name}`") for name in frame.columns], self.group
        wanted = self._columns(group.state.relation)
        keys = [column.alias(name) for column, name in zip(columns[: group.keys], wanted, strict=False)]
        parts = [_part(part.op, part.type, columns[part.column]) for part in group.parts]
        states = frame.groupBy(*keys).agg(F.count(F.lit(1)), *parts).toDF(*wanted)
        return states if group.keys else states.where(F.col(f"`{wanted[0]}`") > 0)

    # -- a change

    def changes(self, before: Snapshots, after: Snapshots, changed: Mapping[str, Delta], stats: Stats) -> dict[str, Delta]:
        """What a change of what the bindings are derived from does to what is kept. `before` and `after` have all relations that are not derived."""
        states, machine, rows = self.rules.external.states, self.machine, self.group.rows.relation
        given = {states[name].lost: delta.minus for name, delta in changed.items() if name in self.rules.external.tables}
        given |= {states[name].gained: delta.plus for name, delta in changed.items() if name in self.rules.external.tables}
        if not given:
            return {}
        tables = {name: before[name] for name in self.rules.tables & before.keys()}
        tables |= {states[name].new: after[name] for name in self.rules.external.tables}
        machine.frames.begin()
        try:
            machine.run(tables, given)
            stats.rounds, stats.derived = stats.rounds + machine.rounds, stats.derived + machine.derived
            gone, came = (self._states(machine, relation) for relation in (states[rows].lost, states[rows].gained))
        finally:
            machine.clear()
            self._resume(machine.frames, stats)
        return self._turn(gone, came, before, after, stats) if gone or came else {}

    def _states(self, machine: DemandMachine, relation: str) -> dict[Cells, Cells]:
        """The groups that have the bindings of a work relation."""
        if not machine.is_elsewhere(relation):
            return turning.gathered(self.group, list(machine.rows(relation)))
        states = self._added_up(machine.frame(relation)).limit(MOST_GROUPS + 1)
        table = machine.frames.act(states.toArrow)
        if table.num_rows > MOST_GROUPS:
            raise OverBudget(f"more than {MOST_GROUPS} groups are touched", "budget")
        width = self.group.keys
        rows = list(rows_of(self.frames, self.group.state.relation, table))
        if not rows:
            return {}
        columns = turning.read(self.group, [row[width:] for row in rows])
        return dict(zip([row[:width] for row in rows], zip(*columns, strict=True), strict=True))

    def _turn(
        self, gone: Mapping[Cells, Cells], came: Mapping[Cells, Cells], before: Snapshots, after: Snapshots, stats: Stats
    ) -> dict[str, Delta]:
        group, touched = self.group, gone.keys() | came.keys()
        width = group.keys
        kept = having(before[group.state.relation], tuple(range(width)), touched) if width else before[group.state.relation].collect()
        old = {row[:width]: row[width:] for row in kept}
        open_: set[Cells] = set()

        def left(key: Cells, _: int) -> None:
            open_.add(key)

        keys = list(touched)
        before_ = turning.read(group, [old.get(key) for key in keys])
        less, more = turning.aligned(group, keys, gone), turning.aligned(group, keys, came)
        now = turning.turned(group, keys, before_, less, more, left)
        if open_:
            derived = self._derived(open_, after, stats)
            rows = dict(zip(keys, zip(*now, strict=True), strict=True)) | {key: derived[key] for key in open_}
            now = turning.aligned(group, keys, rows)
        states, values = _Change(), _Change()
        for key, state, was, is_ in zip(
            keys, turning.written(group, now), turning.values(group, before_), turning.values(group, now), strict=True
        ):
            states.note(key, old.get(key), state)
            values.note(key, was, is_)
        return {group.state.relation: states.delta, group.aux.relation: values.delta}

    def _derived(self, keys: Iterable[Cells], after: Snapshots, stats: Stats) -> dict[Cells, Cells]:
        """The states of groups, by all their bindings."""
        rows, arity = self.group.rows.relation, self.group.rows.arity
        pattern = "b" * self.group.keys + "f" * (arity - self.group.keys)
        question = magic(self.program, [(rows, pattern)])
        given = {name: after[name] for name in (self.program.relations.keys() & after.keys()) - self.rules.stored}  # as it was before
        machine = DemandMachine(self.frames.session, question.program, question.levels, given, self.watch)
        try:
            machine.run(given, {question.questions[rows, pattern]: keys})
            stats.rounds, stats.derived = stats.rounds + machine.rounds, stats.derived + machine.derived
            return self._states(machine, rows)
        finally:
            self._resume(machine.frames, stats)
            machine.close()

    def _resume(self, frames: TemporaryViews, stats: Stats) -> None:
        """Counts what others have done, and goes on."""
        stats.statements, stats.spark_jobs = stats.statements + frames.actions, stats.spark_jobs + frames.jobs()
        frames.restore()
        self.frames.resume()

    def close(self) -> None:
        self.machine.close()


class _Change:
    """What a relation with a row for each group, or none, loses and gains."""

    def __init__(self) -> None:
        self.minus: set[Row] = set()
        self.plus: set[Row] = set()

    def note(self, key: Cells, before: Cells | None, after: Cells | None) -> None:
        if before != after:
            self.minus |= {(*key, *before)} if before is not None else set()
            self.plus |= {(*key, *after)} if after is not None else set()

    @property
    def delta(self) -> Delta:
        return Delta(frozenset(self.plus), frozenset(self.minus))


@dataclass(frozen=True)
class _Valued:
    """Turns states of groups into their values, batch by batch, in Spark's workers."""

    group: Group
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from vigilog.core.arrow import from_arrow, to_arrow

        width = self.group.keys
        for batch in batches:
            rows = list(from_arrow(self.group.state.types, pa.Table.from_batches([batch])))
            made = turning.values(self.group, turning.read(self.group, [row[width:] for row in rows])) if rows else []
            valued = [(*row[:width], *values) for row, values in zip(rows, made, strict=True) if values is not None]
            yield from to_arrow(self.columns, self.group.aux.types, valued).to_batches()


def keepers(plan: Plan, session: SparkSession, frames: TemporaryViews, watch: Watch) -> list[GroupKeeper | ImprovedKeeper]:
    """Who keeps what changes before views do: the groups of a plan, and what is recursive through `min` or `max`, each after those that it needs."""
    all_keepers: list[GroupKeeper | ImprovedKeeper] = []
    for part in plan.components:
        if isinstance(part, ComponentPlan):
            all_keepers += [improved_keeper(plan, part, frames, watch)] if part.component.best else []
        else:
            rules = bindings_on_demand(plan, part)
            machine = DemandMachine(session, rules.changes, rules.levels, rules.tables, watch)
            program = relevant(plan.needed, [part.group.rows.relation])
            program = program.with_rules(tuple(rule for rule in program.rules if rule.head.relation not in plan.improved))
            all_keepers.append(GroupKeeper(part.group, rules, program, machine, frames, watch))
    frames.resume()
    return all_keepers


def _part(op: str, type_: Type, column: Column) -> Column:
    """What the state of a group has of a column; see `rewriting/maintenance/group.py`."""
    from pyspark.sql import functions as F

    if op in EXTREMES:
        return F.min(column) if op == "min" else F.max(column)
    if op == "squares":
        return F.udf(_squares(type_), "string", useArrow=True)(F.collect_list(column))
    if type_.kind == "float":
        return F.udf(_float_units, "string", useArrow=True)(F.collect_list(column))
    whole = column * F.lit(Decimal(10) ** type_.scale).cast(f"decimal({type_.scale + 1},0)") if type_.scale else column
    return F.sum(whole.cast("decimal(38,0)")).cast("string")


def _float_units(values: Iterable[float]) -> str:
    from vigilog.core.values import FLOAT

    total: Any = sum(accumulators.units(FLOAT, value) for value in values)
    return accumulators.written(FLOAT, total)


def _squares(type_: Type) -> Callable[[Iterable[Any]], str]:
    def squares(values: Iterable[Any]) -> str:
        return accumulators.written(type_, sum(accumulators.units(type_, value) ** 2 for value in values))

    return squares
