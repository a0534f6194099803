"""Keeps a component true that is recursive through `min` or `max`: a relation has the best row for each binding of its other columns (`language/improving.py`).

1. Rows that may have lost their proof (D) are listed in `minus`, to a fixpoint: those that a lost row, or another one that may be lost, gives.
2. Candidates are collected: for the keys of what is listed, from what is left (R); and from what has come (I).
3. Of the candidates those count that are better than what is left for their key. Each takes the place of the row there, which is gone; one that is listed in `minus` is taken off the list. From these rows there are
   further candidates, until there are none.

A row that is replaced by a better one takes nothing with it: what it gave, the better one gives better. So only what is lost is overestimated, and rows that support only each other go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vigilog.executors.embedded.statements import Statement, TableSource, WorkLayout, WorkTables, compiled, in_both_states, serve
from vigilog.executors.embedded.tables import Tables, among, quote
from vigilog.language.program import Program
from vigilog.planning.best import worse_than
from vigilog.planning.order import Search
from vigilog.rewriting.maintenance.plan import ComponentPlan
from vigilog.rewriting.maintenance.rules import Variant
from vigilog.rewriting.maintenance.states import Direction

LISTS = ("minus", "plus", "candidate", "recent")


@dataclass(frozen=True)
class _Run:
    """A statement, and the table that it starts from."""

    statement: Statement
    start: str


@dataclass(frozen=True)
class _Settling:
    """How the candidates of a relation are settled: those that are not better are left out, then what they replace goes, then they come."""

    weed: tuple[str, ...]
    replace: tuple[str, ...]
    take: tuple[str, ...]


class ImprovedComponent:
    """The relations of a component. `work(relation, kind)` names the lists of what comes and goes; `filled` are those of all relations that have rows."""

    def __init__(
        self, plan: ComponentPlan, program: Program, tables: Tables, sizes: Mapping[str, int], work: WorkTables, filled: set[str]
    ) -> None:
        self.plan, self.component, self.tables, self.sizes, self.filled = plan, plan.component, tables, sizes, filled
        self.names = {(name, kind): work(name, kind) for name in self.component.relations for kind in LISTS}
        for (relation, _), name in self.names.items():
            tables.create_numbered(relation, name)
        self.layout = self._layout(program, work)
        starts = {plan.states[name].lost: name for name in self.component.relations}
        recent = {plan.states[name].gained: name for name in self.component.relations}
        self.losing = [self._run(v, "minus") for v in plan.deletions if v.first.relation not in starts]
        self.taking: dict[str, list[_Run]] = {name: [] for name in self.component.relations}  # what follows from rows that may be lost
        for variant in plan.deletions:
            if variant.first.relation in starts:
                name = starts[variant.first.relation]
                self.taking[name].append(self._run(variant, "minus", window=tables.numbering(name)))
        self.seeking = [self._run(variant, "candidate") for variant in plan.rederivations]
        self.coming = [self._run(v, "candidate") for v in plan.insertions if v.first.relation not in recent]
        self.following = [self._run(v, "candidate") for v in plan.insertions if v.first.relation in recent]
        self.settling = {name: self._settling(name) for name in self.component.relations}
        self.derived = self.rounds = 0

    def maintain(self) -> dict[str, Direction]:
        """Brings the relations up to date with changes of what they read; gives their own."""
        self.derived = self.rounds = 0
        self._lose()
        self._round((*self.seeking, *self.coming))
        while self._settle():
            self._round(self.following)
        changes = {}
        for name in self.component.relations:
            self.tables.execute(f"DELETE FROM {self._table(name, 'recent')}")
            self.filled.discard(self.names[name, "recent"])
            change = Direction(self._note(name, "minus"), self._note(name, "plus"))
            if change.lost or change.gained:
                changes[name] = change
        return changes

    def forget(self) -> None:
        """A transaction was taken back."""

    def warm(self) -> None:
        """Lets SQLite compile the statements, by running them over nothing."""
        runs = [*self.losing, *self.seeking, *self.coming, *self.following]
        for run, window in [(run, {}) for run in runs] + [
            (run, {"since": 0, "until": 0}) for taking in self.taking.values() for run in taking
        ]:
            for text in {run.statement.text, run.statement.whole}:
                self.tables.execute(text, run.statement.parameters | window)
        for settling in self.settling.values():
            for text in (*settling.weed, *settling.replace, *settling.take):
                self.tables.execute(text)
        for relation in self.component.relations:
            self._last(relation)
            for kind in LISTS:
                self._note(relation, kind)

    # -- rounds

    def _lose(self) -> None:
        """Lists what may be lost."""
        seen = dict.fromkeys(self.component.relations, 0)
        for run in self.losing:
            if run.start in self.filled:
                self.derived += self._execute(run)
        while windows := {name: (seen[name], until) for name in seen if (until := self._last(name)) > seen[name]}:
            self.rounds += 1
            for name, (since, until) in windows.items():
                seen[name] = until
                self.filled.add(self.names[name, "minus"])
                for run in self.taking[name]:
                    run.statement.parameters["since"], run.statement.parameters["until"] = since, until
                    self.derived += self._execute(run)

    def _round(self, runs: Iterable[_Run]) -> None:
        """Collects candidates."""
        self.rounds += 1
        for run in runs:
            if run.start in self.filled:
                self.derived += self._execute(run)

    def _settle(self) -> bool:
        """Puts the candidates that are better in their places, and makes them recent; whether there are any."""
        found = False
        for name, settling in self.settling.items():
            for text in settling.weed:
                self.tables.execute(text)
            if not self._note(name, "candidate"):
                self.tables.execute(f"DELETE FROM {self._table(name, 'recent')}")
                self.filled.discard(self.names[name, "recent"])
                continue
            for text in (*settling.replace, *settling.take):
                self.tables.execute(text)
            self.filled.add(self.names[name, "recent"])
            self.filled.discard(self.names[name, "candidate"])
            self._note(name, "minus")
            found = True
        return found

    def _execute(self, run: _Run) -> int:
        return self.tables.execute(run.statement.now(self.filled), run.statement.parameters).rowcount

    def _last(self, relation: str) -> int:
        """The number of the last row that may be lost."""
        number = self.tables.numbering(relation)
        return int(self.tables.execute(f"SELECT coalesce(max({number}), 0) FROM {self._table(relation, 'minus')}").fetchone()[0])

    def _note(self, relation: str, kind: str) -> bool:
        """Notes whether a list has rows."""
        (some,) = self.tables.execute(f"SELECT EXISTS (SELECT 1 FROM {self._table(relation, kind)})").fetchone()
        (self.filled.add if some else self.filled.discard)(self.names[relation, kind])
        return bool(some)

    # -- statements

    def _table(self, relation: str, kind: str) -> str:
        return quote(self.names[relation, kind])

    def _layout(self, program: Program, work: WorkTables) -> WorkLayout:
        states = self.plan.states
        sources = in_both_states(states, self.tables, work)
        for relation in self.component.relations:  # what is new is put in after all that reads what was
            table = self.tables.layout.tables[relation]
            sources[relation] = TableSource(relation, table)
            sources[states[relation].lost] = TableSource(relation, self.names[relation, "minus"])
            sources[states[relation].gained] = TableSource(relation, self.names[relation, "recent"])
        declarations = [replace(program.relations[source.relation], relation=name) for name, source in sources.items()]
        return WorkLayout(replace(program, declarations=tuple(declarations), rules=()), self.tables, sources, self.tables.label())

    def _run(self, variant: Variant, kind: str, window: str = "") -> _Run:
        relation = next(name for name in self.component.relations if variant.rule.head.relation in self.plan.states[name].names)
        into = self._table(relation, kind)
        statement = compiled(
            variant.rule, self.layout, self.tables, self.sizes, self._serve, first=variant.changed, window=window, into=into
        )
        return _Run(statement, self.layout.sources[variant.first.relation].table)

    def _serve(self, searches: Iterable[Search]) -> None:
        for search in searches:
            serve(self.tables, self.layout, search)

    def _settling(self, relation: str) -> _Settling:
        columns, best = self.tables.layout.columns[relation], self.component.best.get(relation)
        own, names = self.tables.layout.tables[relation], [*map(quote, columns)]
        minus, plus, candidate, recent = (self._table(relation, kind) for kind in LISTS)
        listed = ", ".join(names)

        def alike(one: str, other: str, places: Iterable[int] = range(len(columns))) -> str:
            return " AND ".join(f"{one}.{names[place]} = {other}.{names[place]}" for place in places) or "true"

        left = f"NOT EXISTS (SELECT 1 FROM {minus} AS m WHERE {alike('m', 'o')})"
        take = (
            f"INSERT INTO {plus} SELECT {listed} FROM {candidate} AS c WHERE NOT EXISTS (SELECT 1 FROM {minus} AS m WHERE {alike('m', 'c')})",
            f"INSERT OR IGNORE INTO {quote(own)} SELECT {listed} FROM {candidate}",
            f"DELETE FROM {minus} WHERE {among(names, f'(SELECT {listed} FROM {candidate})')}",
            f"DELETE FROM {recent}",
            f"INSERT INTO {recent} SELECT {listed} FROM {candidate}",
            f"DELETE FROM {candidate}",
        )
        if best is None:
            stored = f"EXISTS (SELECT 1 FROM {quote(own)} AS o WHERE {alike('o', candidate)} AND {left})"
            return _Settling((f"DELETE FROM {candidate} WHERE {stored}",), (), take)
        keys = best.keys(len(columns))
        self.tables.serve([Search(relation, frozenset(keys))] if keys else [])
        for kind in LISTS[:3] if keys else ():
            self.tables.serve_work(self.names[relation, kind], columns, frozenset(keys))
        weed = (
            f"DELETE FROM {candidate} WHERE {worse_than(best, names, candidate, candidate, equal=False)}",
            f"DELETE FROM {candidate} WHERE {worse_than(best, names, candidate, quote(own), equal=True, where=left)}",
        )
        same = f"EXISTS (SELECT 1 FROM {candidate} AS c WHERE {alike('c', plus, keys)})"
        shown = ", ".join(f"o.{name}" for name in names)
        replaced = (
            f"DELETE FROM {quote(own)} WHERE {among(names, f'(SELECT {listed} FROM {plus} WHERE {same})')}",
            f"DELETE FROM {plus} WHERE {same}",
            f"INSERT INTO {minus} SELECT {shown} FROM {candidate} AS c JOIN {quote(own)} AS o ON {alike('o', 'c', keys)} WHERE {left}",
        )
        return _Settling(weed, replaced, take)
