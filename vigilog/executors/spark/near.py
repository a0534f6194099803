"""A recursion over few rows, in this process.

A round on Spark takes a twentieth of a second at least, on SQLite some microseconds. So what such a recursion reads is fetched, by one action, and its rounds run here. When they grow large, or take long, what they have
derived goes to Spark, and the recursion goes on there: each row of it follows from the rules, so nothing is lost, and nothing can be wrong.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from vigilog.executors.embedded.bulk import patient
from vigilog.executors.embedded.executor import TableMachine
from vigilog.executors.embedded.tables import Tables
from vigilog.executors.spark.stored import rows_of
from vigilog.executors.spark.together import Part, part_of, together
from vigilog.executors.watch import Outgrown
from vigilog.language.parts import is_fact
from vigilog.language.strata import Component, dependencies
from vigilog.planning.layout import Layout

if TYPE_CHECKING:
    from vigilog.executors.spark.machine import FrameMachine

READ_ROWS = 100_000  # of relations with no more rows together the recursion is begun here,
MOST_ROWS = 300_000  # and it goes to Spark when it has more,
MOST_RECENT = 20_000  # or when a round has given so many,
A_ROUND = 0.5  # or has taken so many seconds


def read_by(component: Component) -> set[str]:
    """What a component reads of others."""
    read = {atom.relation for rule in component.rules if not is_fact(rule) for atom, _ in dependencies(rule)}
    return read - {*component.relations}


class NearMachine:
    """See `fixpoint.Machine`: a component of a machine on Spark, begun here."""

    def __init__(self, far: FrameMachine, component: Component) -> None:
        self.far, self.reads = far, sorted(read_by(component))
        self.tables = Tables(Layout(far.layout.program), far.frames.watch)
        self.near: TableMachine | None = None
        self.recent = self.rows = 0
        self.seconds = 0.0  # that the last round took

    def start(self, component: Component) -> int:
        self.component = component
        try:
            self._fetch()
            machine = TableMachine(self.tables)
            with patient(self.tables, A_ROUND):
                self.recent = self.rows = machine.start(component)
        except Outgrown:
            self.tables.close()
            return self.far.start(component)
        except BaseException:
            self.tables.close()
            raise
        self.near = machine
        return self.recent

    def advance(self) -> int:
        if self.near is None:
            return self.far.advance()
        try:
            if self.recent <= MOST_RECENT and self.rows <= MOST_ROWS and self.seconds <= A_ROUND:
                began = time.monotonic()
                with patient(self.tables, A_ROUND):
                    self.recent = self.near.advance()
                self.rows, self.seconds = self.rows + self.recent, time.monotonic() - began
                return self.recent
        except Outgrown:
            pass
        except BaseException:
            self.tables.close()
            raise
        return self._move()

    def size(self, relation: str) -> int:
        return self.far.size(relation) if self.near is None else self.near.size(relation)

    def finish(self) -> None:
        if self.near is not None:
            self.near.finish()
            self.far.derived += self.near.derived
            self._give()
            self.far.take_over(self.component)
        self.far.finish()

    def _fetch(self) -> None:
        """Brings here what the component reads."""
        far, frames = self.far, self.far.frames
        for relation in far.layout.program.relations:
            self.tables.create(relation)
        away = [name for name in self.reads if far.sizes[name] and far.here(name) is None]
        parts = [Part(name, range(len(far.layout.columns[name])), far.whole(name)) for name in away]
        fetched = frames.act(together(frames, parts).toArrow) if parts else None
        for name in self.reads:
            table = far.here(name) if name not in away else part_of(fetched, parts, away.index(name))
            if table is not None:
                self.tables.insert(name, rows_of(frames, name, table))

    def _move(self) -> int:
        """Goes on on Spark; gives how many rows are recent there that were not known here."""
        assert self.near is not None, "it is here"
        self.far.derived += self.near.derived
        self._give()
        self.near = None
        return max(1, self.far.start(self.component) - self.rows)

    def _give(self) -> None:
        """Gives to Spark what was derived here."""
        with closing(self.tables):
            for relation in self.component.relations:
                self.far.state(relation, self.tables.rows(relation))
