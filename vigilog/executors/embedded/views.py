"""Views on SQLite: the exact changes of views for each transaction, whether they are stored or not."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.allowance import Allowance
from vigilog.executors.embedded.ask import Asker
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.embedded.executor import EmbeddedEvaluation
from vigilog.executors.embedded.maintain import Maintainer
from vigilog.executors.embedded.why import Reasoner
from vigilog.executors.evaluation import Stats
from vigilog.executors.views import Settle, nothing
from vigilog.executors.watch import Report, Watch
from vigilog.language.goal import Goal
from vigilog.rewriting.maintenance.plan import Plan

ENOUGH = 200_000  # rows derived on demand for one transaction, until it is known what recomputing costs


class EmbeddedViews:
    """See `Views`. The plan says whose changes are told, and what is kept.

    A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict`, refused. With a `connection`, the tables are
    in the file it leads to, where those of the relations in `kept` are as they should be. The changes of `queries`, of which the plan says nothing, are told, too; each has its allowance. Raises TooManyRows if a recursion to be stored has more rows than `most`.
    """

    def __init__(
        self,
        plan: Plan,
        rows: Mapping[str, Iterable[Row]],
        budget: int | None = None,
        strict: bool = False,
        connection: sqlite3.Connection | None = None,
        kept: Collection[str] = (),
        most: int | None = None,
        report: Report | None = None,
        queries: Collection[str] = (),
        allowance: Callable[[], Allowance] = Allowance,
    ) -> None:
        self.allowance = allowance
        self.plan, self.budget, self.strict, self.enough = plan, budget, strict, ENOUGH
        stored = replace(plan.stored, declarations=(*plan.stored.declarations, *plan.beside.values()))
        self.evaluation = EmbeddedEvaluation(
            stored, rows, Watch(report=report, max_rows=most), resident=True, connection=connection, kept=kept, functional=plan.functional
        )
        self.tables, self.stats = self.evaluation.tables, self.evaluation.stats
        copies = plan.copies
        self.contents = {name: self.tables.contents(name, copies.get(name)).prepare(plan.program.keys.get(name)) for name in rows}
        self.maintainer = Maintainer(plan, self.tables, kept, queries)
        self.asker = Asker(plan.asked, plan.tables, self.tables, self.maintainer.sizes)
        self.reasoner = Reasoner(plan.program, self.tables, self.maintainer.sizes)
        self.warm()

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        return self.contents[relation].among(rows)

    def having(self, relation: str, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        return self.contents[relation].having(columns, values)

    def twice(self, relation: str, columns: tuple[int, ...]) -> Row | None:
        return self.contents[relation].twice(columns)

    def apply(self, changes: Mapping[str, Delta], settle: Settle = nothing, *, keep: bool = True) -> dict[str, Delta]:
        began, statements, undefined = time.perf_counter(), self.tables.statements, self.tables.undefined
        if self.tables.watch.report is not None:
            self.tables.watch.begin("maintaining views", sum(len(delta.plus) + len(delta.minus) for delta in changes.values()))
        stats = Stats("embedded")

        def settled(net: Mapping[str, Delta]) -> None:  # what follows may be another change, which counts for itself
            stats.rounds, stats.derived = self.maintainer.rounds, self.maintainer.derived
            stats.statements, stats.undefined = self.tables.statements - statements, self.tables.undefined - undefined
            settle(net)

        deltas, stats.recomputed = self._change(changes, settled, keep=keep)
        stats.ms = (time.perf_counter() - began) * 1000
        self.stats = stats
        return deltas

    def _change(self, changes: Mapping[str, Delta], settle: Settle, *, keep: bool) -> tuple[dict[str, Delta], str]:
        """The changes of the views, and why they had to be recomputed, if they had."""
        budget, allowance = self.enough if self.budget is None else self.budget, self.allowance()
        try:
            return self.maintainer.apply(changes, self.plan.told, settle, keep=keep, budget=budget, allowance=allowance), ""
        except OverBudget as reason:
            if self.strict:
                raise DataError(f"{reason.message}, and recomputing is refused (strict)", "budget") from None
            deltas = self.maintainer.recompute(changes, self.plan.told, settle, keep=keep, allowance=allowance)
            self.enough = max(ENOUGH, self.maintainer.derived)  # so much may be derived on demand before recomputing is cheaper
            return deltas, reason.message

    def rows(self, relation: str) -> Iterable[Row]:
        return self.evaluation.rows(relation)

    def warm(self) -> None:
        """Lets SQLite compile all statements of transactions, so that none waits for that."""
        with self.tables.transaction(), self.tables.transaction():
            self.maintainer.warm()
            for contents in self.contents.values():
                contents.warm()
        self.tables.indexed = False

    def prepare(self, goal: Goal) -> None:
        self.asker.prepare(goal)

    def answers(self, goal: Goal) -> Iterable[Row]:
        if self.tables.watch.report is not None:
            self.tables.watch.begin("answering")
        answers = self.asker.answers(goal)
        if self.tables.indexed and not self.tables.connection.in_transaction:
            self.warm()
        self.stats = Stats("embedded", derived=self.asker.derived, rounds=self.asker.rounds)
        return answers

    @contextmanager
    def within(self, allowance: Allowance | None) -> Iterator[None]:
        if allowance is None:
            yield
            return
        before = self.asker.budget, self.asker.longest
        self.asker.budget, self.asker.longest = allowance.rows, allowance.text
        try:
            with self.tables.within(allowance.seconds, allowance.size if self.tables.durable else None):
                yield
        finally:
            self.asker.budget, self.asker.longest = before

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        reasoner = self.reasoner
        if self.tables.connection.in_transaction:  # work tables that are made now are gone if it is taken back
            reasoner = Reasoner(self.plan.program, self.tables, self.maintainer.sizes)
        return reasoner.proofs(relation, rows)

    def some(self, goal: Goal, budget: int) -> list[Row]:
        """See `Answerer`."""
        return self.asker.answers(goal, budget)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """See `Answerer`."""
        return self.asker.nearest(relation, bound, most)

    def attach(self) -> None:
        """Goes on after others have used the connection."""
        self.tables.attach()

    def close(self) -> None:
        self.maintainer.leave()
        self.evaluation.close()
