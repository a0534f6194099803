"""Bulk evaluation for tables that stay on SQLite: rows go over, are evaluated, and what is derived comes back sorted, so that B-trees only grow at their end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from vigilog.core.delta import Delta
from vigilog.executors.duckdb.aside import Aside
from vigilog.executors.duckdb.machine import DuckMachine
from vigilog.executors.duckdb.tables import DuckTables, quote
from vigilog.executors.embedded.tables import Tables
from vigilog.executors.evaluation import Stats
from vigilog.executors.fixpoint import fixpoint
from vigilog.language.program import Program
from vigilog.language.strata import Component, dependencies
from vigilog.planning.layout import Layout

LIGHT = 5_000_000  # rows up to which what was recomputed stays for the next transaction


def fill(tables: Tables, left: Sequence[Component]) -> Stats:
    """Derives the relations of some components, in their order, into their tables on SQLite; gives what it cost."""
    with closing(_Bulk(tables, left)) as bulk:
        bulk.evaluate()
        for component in left:
            for relation in component.relations:
                tables.watch.begin(f"storing {relation}", bulk.tables.sizes[relation])
                tables.execute(f"DELETE FROM {quote(tables.layout.tables[relation])}")  # what SQLite has begun, perhaps by halves
                bulk.tables.give(relation, tables)
        return bulk.stats


class _Bulk:
    """What some components read, and they themselves, on DuckDB."""

    def __init__(self, tables: Tables, left: Sequence[Component]) -> None:
        self.left, self.stats, self.watch = left, Stats("duckdb"), tables.watch
        self.read = reads(left)
        program = tables.layout.program
        needed = [name for name in program.relations if name in self.read or any(name in one.relations for one in left)]
        self.tables = DuckTables(Layout(_narrowed(program, needed)), tables.watch)
        self.layout = self.tables.layout
        try:
            for relation in needed:
                self.tables.create(relation)
                self.tables.take(relation, tables)
        except BaseException:
            self.close()
            raise

    def evaluate(self) -> None:
        machine = DuckMachine(self.tables)
        with self.tables.bounded():
            for component in self.left:
                self.stats.rounds += fixpoint(component, machine, self.watch, self.layout.program.limits)
        self.stats.derived += machine.derived
        self.stats.undefined += machine.undefined
        self.stats.statements = self.tables.statements

    def close(self) -> None:
        self.tables.close()


class Recomputation(_Bulk):
    """Views before a change and after it, on DuckDB; only their differences come back. What they are then is what they were before the next change."""

    def __init__(self, tables: Tables, left: Sequence[Component], wanted: Iterable[str]) -> None:
        super().__init__(tables, left)
        self.derived = {relation for component in left for relation in component.relations}
        self.wanted = [name for name in wanted if name in self.derived]
        self.evaluate()

    def after(self, changes: Mapping[str, Delta]) -> dict[str, Delta]:
        """The net changes of the wanted views that net changes of what they read make."""
        aside = Aside(self.tables, self.derived, self.wanted)
        for relation in changes.keys() & self.read:
            self.tables.delete(relation, changes[relation].minus)
            self.tables.insert(relation, changes[relation].plus)
        self.evaluate()
        deltas = aside.differences()
        aside.drop()
        return deltas

    @property
    def light(self) -> bool:
        return sum(self.tables.sizes.values()) <= LIGHT


def reads(left: Iterable[Component]) -> set[str]:
    """The relations that the rules of some components read."""
    return {atom.relation for component in left for rule in component.rules for atom, _ in dependencies(rule)}


def _narrowed(program: Program, needed: Collection[str]) -> Program:
    return replace(program, declarations=tuple(one for one in program.declarations if one.relation in needed))
