"""Evaluates a program on DuckDB, in this process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from vigilog.core.delta import Delta
from vigilog.core.values import Row
from vigilog.executors.duckdb.aside import Aside
from vigilog.executors.duckdb.machine import DuckMachine
from vigilog.executors.duckdb.settings import Settings
from vigilog.executors.duckdb.tables import DuckTables
from vigilog.executors.embedded.executor import Unfinished
from vigilog.executors.evaluation import Stats, written
from vigilog.executors.fixpoint import fixpoint
from vigilog.executors.watch import Watch
from vigilog.files.place import Place
from vigilog.language.program import Program
from vigilog.language.strata import Component, components
from vigilog.planning.layout import Layout


class DuckEvaluation:
    """The relations of a program that is evaluated in bulk."""

    def __init__(
        self,
        program: Program,
        sources: Mapping[str, Iterable[Row]],
        watch: Watch,
        settings: Settings | None = None,
        begun: Unfinished | None = None,
    ) -> None:
        """Evaluates a plain program (see `rewriting.passes`) over the given rows, or goes on with what SQLite has begun, and closes that."""
        started = time.perf_counter()
        self.program, self.watch = program, watch
        self.tables = DuckTables(Layout(program), watch, settings)
        self.stats = Stats("duckdb")
        try:
            with self.tables.bounded():
                if begun is None:
                    self._load(sources)
                else:
                    self._take(begun)
                self._evaluate(components(program) if begun is None else begun.left)
        except BaseException:
            self.close()
            raise
        self.stats.ms = (time.perf_counter() - started) * 1000

    def _evaluate(self, left: Iterable[Component]) -> None:
        machine = DuckMachine(self.tables)
        for component in left:
            self.stats.rounds += fixpoint(component, machine, self.watch, self.program.limits)
        self.stats.derived += machine.derived
        self.stats.undefined += machine.undefined
        self.stats.statements = self.tables.statements

    def changed(self, changes: Mapping[str, Delta], wanted: Iterable[str]) -> dict[str, Delta]:
        """What those of the wanted relations that are derived gain and lose when others change so: all are evaluated anew."""
        left = [component for component in components(self.program) if component.rules]
        derived = [relation for component in left for relation in component.relations]
        with self.tables.bounded():
            aside = Aside(self.tables, derived, [name for name in wanted if name in derived])
            for relation, delta in changes.items():
                self.tables.delete(relation, delta.minus)
                self.tables.insert(relation, delta.plus)
            self._evaluate(left)
            return aside.differences()

    def _load(self, sources: Mapping[str, Iterable[Row]]) -> None:
        for relation in self.program.relations:
            self.tables.create(relation)
            if relation in sources:
                self.watch.begin(f"reading {relation}")
                rows = sources[relation]
                self.tables.insert(relation, rows if self.watch.report is None else self.watch.counted(rows))

    def _take(self, begun: Unfinished) -> None:
        with closing(begun.begun):
            self.stats = replace(begun.begun.stats, engine="duckdb")
            for relation in self.program.relations:
                self.tables.create(relation)
                self.watch.begin(f"moving {relation} to DuckDB")
                self.tables.take(relation, begun.begun.tables)

    def count(self, relation: str) -> int:
        return self.tables.sizes[relation]

    def rows(self, relation: str, doing: str = "reading") -> Iterator[Row]:
        number = self.count(relation)
        self.watch.begin(f"{doing} {relation}", number)
        return self.watch.counted(self.tables.rows(relation), number)

    def write(self, place: Place, path: Path | None) -> None:
        written(place, path, self.rows(place.relation, "writing"))

    def close(self) -> None:
        self.tables.close()
