"""The changes of queries on Spark, found apart from the program's views, so that what one costs is known and what one does not get is no matter of the others.

All queries share their rounds, for a round costs what it costs however many rows it derives. Only if they cost too much together each is run alone, to see which of them does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from vigilog.core.delta import Delta
from vigilog.core.errors import Stopped
from vigilog.executors.allowance import Allowance, Spent, TooDear
from vigilog.executors.evaluation import Stats
from vigilog.executors.spark import reader as reading
from vigilog.executors.spark.demand import DemandMachine
from vigilog.executors.spark.stored import Snapshot
from vigilog.executors.watch import Watch
from vigilog.rewriting.maintenance.external import external
from vigilog.rewriting.maintenance.plan import Plan, plan
from vigilog.rewriting.maintenance.strategies.choose import depends_on
from vigilog.rewriting.program.relevant import relevant
from vigilog.spark.session import session


class SparkQueries:
    """Queries over the base relations and stored views of a plan. Machines are made when they are first needed."""

    def __init__(self, kept: Plan, queries: Sequence[str], watch: Watch) -> None:
        self.kept, self.queries = kept, tuple(queries)
        self.reads = frozenset(name for query in queries for name in depends_on(kept.program, query))
        self.watch = replace(watch)  # its bounds are its own
        self.machines: dict[tuple[str, ...], _Machine] = {}

    def changes(
        self, changes: Mapping[str, Delta], old: Mapping[str, Snapshot], new: Mapping[str, Snapshot], allowance: Allowance, stats: Stats
    ) -> dict[str, Delta]:
        """What they gain and lose by changes of relations whose states before and after are given. Raises TooDear if one costs more than it may."""
        queries = tuple(name for name in self.queries if name not in allowance.without)
        if not queries or not changes:
            return {}
        try:
            with self.watch.within(allowance.seconds):
                return self._machine(queries).changes(changes, old, new, allowance.rows, stats)
        except Stopped as reason:
            if len(queries) == 1:
                raise TooDear(queries, f"in one transaction {allowance.said(reason)}") from None
        deltas, spent = dict[str, Delta](), Spent(allowance, queries)
        for name in queries:
            machine = self._machine((name,))
            with spent.by(name, machine), self.watch.within(allowance.seconds):
                deltas |= machine.changes(changes, old, new, allowance.rows, stats)
        spent.settle()
        return deltas

    def _machine(self, queries: tuple[str, ...]) -> _Machine:
        if queries not in self.machines:
            self.machines[queries] = _Machine(self.kept, queries, self.watch)
        return self.machines[queries]

    def close(self) -> None:
        for machine in self.machines.values():
            machine.machine.close()


class _Machine:
    """The rules for the changes of some queries."""

    def __init__(self, kept: Plan, queries: Sequence[str], watch: Watch) -> None:
        own = plan(kept.program, queries, kept.kept)
        self.queries, self.external = queries, external(own.needed, own.kept)
        states = self.external.states
        program = self.external.program
        wanted = [name for query in queries for name in (states[query].lost, states[query].gained)]
        tables = {name for base in self.external.tables for name in (base, states[base].new)}
        levels = {name: level for name, level in self.external.levels.items() if name not in tables}
        rules = replace(program, rules=relevant(program, wanted).rules)
        self.machine = DemandMachine(session(), rules, levels, tables, watch)
        self.derived = 0

    def changes(
        self, changes: Mapping[str, Delta], old: Mapping[str, Snapshot], new: Mapping[str, Snapshot], rows: int, stats: Stats
    ) -> dict[str, Delta]:
        states, machine = self.external.states, self.machine
        read = {name: delta for name, delta in changes.items() if name in self.external.tables}
        tables = {name: old[name] for name in self.external.tables}
        tables |= {states[name].new: new.get(name, old[name]) for name in self.external.tables}
        given = {states[name].lost: delta.minus for name, delta in read.items()} | {
            states[name].gained: delta.plus for name, delta in read.items()
        }
        machine.budget = rows
        machine.frames.begin()
        try:
            machine.run(tables, given)
            deltas = {name: Delta(machine.rows(states[name].gained), machine.rows(states[name].lost)) for name in self.queries}
            return {name: delta for name, delta in deltas.items() if delta}
        finally:
            self.derived = machine.derived
            reading.count(stats, machine)
            machine.clear()
            machine.frames.restore()
