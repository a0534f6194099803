"""Views on SQLite: the exact changes of views for each transaction, whether they are stored or not."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Value
from vigilog.executors.embedded.ask import Asker
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.embedded.executor import EmbeddedEvaluation
from vigilog.executors.embedded.maintain import Maintainer
from vigilog.executors.embedded.why import Reasoner
from vigilog.executors.evaluation import Stats
from vigilog.executors.views import Settle, nothing
from vigilog.executors.watch import Watch
from vigilog.language.goal import Goal
from vigilog.language.syntax import Program
from vigilog.rewriting.external import external
from vigilog.rewriting.relevant import relevant

ENOUGH = 200_000  # rows derived on demand for one transaction, until it is known what recomputing costs


class EmbeddedViews:
    """See `Views`. `views` are the relations whose changes are told; of these and of what they are derived from, `stored` are kept, some of them `counted`.

    A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict`, refused. With a `connection`, the tables are
    in the file it leads to, where those of the relations in `kept` are as they should be. Raises TooManyRows if a recursion to be stored has more rows than `most`.
    """

    def __init__(
        self,
        program: Program,
        views: Iterable[str],
        rows: Mapping[str, Iterable[Row]],
        stored: Collection[str] = (),
        counted: Collection[str] = (),
        budget: int | None = None,
        strict: bool = False,
        connection: sqlite3.Connection | None = None,
        kept: Collection[str] = (),
        most: int | None = None,
    ) -> None:
        self.views, self.stored, self.budget, self.strict, self.enough = tuple(views), stored, budget, strict, ENOUGH
        needed = relevant(program, [*self.views, *rows])
        stored_part = replace(needed, rules=tuple(rule for rule in needed.rules if rule.head.relation in stored))
        self.on_demand = replace(needed, rules=tuple(rule for rule in needed.rules if rule.head.relation not in stored))
        self.evaluation = EmbeddedEvaluation(stored_part, rows, Watch(max_rows=most), resident=True, connection=connection, kept=kept)
        self.tables, self.stats = self.evaluation.tables, self.evaluation.stats
        self.maintainer = Maintainer(stored_part, self.tables, external(needed, stored) if self.on_demand.rules else None, counted)
        self.asker = Asker(program, stored, self.tables, self.maintainer.sizes)
        self.reasoner = Reasoner(program, self.tables, self.maintainer.sizes)
        self.contents = {name: self.tables.contents(name) for name in rows}

    def among(self, relation: str, rows: Collection[Row]) -> set[Row]:
        return self.contents[relation].among(rows)

    def having(self, relation: str, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        return self.contents[relation].having(columns, values)

    def twice(self, relation: str, columns: tuple[int, ...]) -> Row | None:
        return self.contents[relation].twice(columns)

    def apply(self, changes: Mapping[str, Delta], settle: Settle = nothing, *, keep: bool = True) -> dict[str, Delta]:
        began, statements, undefined = time.perf_counter(), self.tables.statements, self.tables.undefined
        deltas, reason = self._change(changes, settle, keep=keep)
        self.stats = Stats(
            "embedded",
            ms=(time.perf_counter() - began) * 1000,
            rounds=self.maintainer.rounds,
            derived=self.maintainer.derived,
            statements=self.tables.statements - statements,
            undefined=self.tables.undefined - undefined,
            recomputed=reason,
        )
        return deltas

    def _change(self, changes: Mapping[str, Delta], settle: Settle, *, keep: bool) -> tuple[dict[str, Delta], str]:
        """The changes of the views, and why they had to be recomputed, if they had."""
        budget = self.enough if self.budget is None else self.budget
        try:
            return self.maintainer.apply(changes, self.views, settle, keep=keep, budget=budget), ""
        except OverBudget as reason:
            if self.strict:
                raise DataError(f"{reason.message}, and recomputing is refused (strict)", "budget") from None
            deltas = self.maintainer.recompute(changes, self.views, self.on_demand, settle, keep=keep)
            self.enough = max(ENOUGH, self.maintainer.derived)  # so much may be derived on demand before recomputing is cheaper
            return deltas, reason.message

    def rows(self, relation: str) -> Iterable[Row]:
        return self.tables.rows(relation)

    def prepare(self, goal: Goal) -> None:
        self.asker.prepare(goal)

    def answers(self, goal: Goal) -> Iterable[Row]:
        answers = self.asker.answers(goal)
        self.stats = Stats("embedded", derived=self.asker.derived, rounds=self.asker.rounds)
        return answers

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        return self.reasoner.proofs(relation, rows)

    def some(self, goal: Goal, budget: int) -> list[Row]:
        """See `Answering`."""
        return self.asker.answers(goal, budget)

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """See `Answering`."""
        return self.asker.nearest(relation, bound, most)

    def attach(self) -> None:
        """Goes on after others have used the connection."""
        self.tables.attach()

    def close(self) -> None:
        self.evaluation.close()
