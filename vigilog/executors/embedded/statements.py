"""Rules as prepared statements over the tables of a database in the course of a transaction.

A table holds the rows of both states, the old one and the new one, until the transaction ends: what has come is put in at once, and what is gone is only listed. So the old state is the table without what has come, the
new one is the table without what is gone, and a rule that reads either is one statement, whatever has changed. It has two texts: while none of these lists has rows, nothing need be looked up in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vigilog.core.schema import distinct
from vigilog.executors.embedded.tables import Tables
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.syntax import Rule
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search
from vigilog.planning.select import Choice, select
from vigilog.rewriting.maintenance.states import States

WORK_ROWS = 10  # what a work table is expected to hold, for the order of joins


@dataclass(frozen=True)
class TableSource:
    """Where a relation of some rules is: in the table of a relation of the database, or in one for its changes, which are expected to be `few`; rows that the table `without` has do not count."""

    relation: str
    table: str
    without: str = ""
    few: bool = False


@dataclass
class Statement:
    """What a rule finds, put into its relation's work table, if that has one. `whole` is the text while no table in `without` has rows; `needs` are work relations that must have some."""

    target: str
    text: str
    whole: str
    parameters: dict[str, Any]
    without: frozenset[str]
    needs: tuple[str, ...] = ()
    put: str = ""  # what both texts begin with, if the rows are put into a table

    def now(self, filled: Collection[str]) -> str:
        return self.whole if self.without.isdisjoint(filled) else self.text


class WorkLayout(Layout):
    """Work tables beside tables of the database, which `sources` gives for some relations of the rules."""

    def __init__(self, program: Program, tables: Tables, sources: Mapping[str, TableSource], label: str) -> None:
        super().__init__(program)
        self.base, self.sources, self.label = tables.layout, sources, label

    @cached_property
    def tables(self) -> Mapping[str, str]:
        named = {name: f"{self.label}~{table}" for name, table in distinct(self.program.relations).items()}
        return named | {name: source.table for name, source in self.sources.items()}

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        own = {name: tuple(f"c{i}" for i in range(max(declaration.arity, 1))) for name, declaration in self.program.relations.items()}
        return own | {name: self.base.columns[source.relation] for name, source in self.sources.items()}

    @cached_property
    def excepted(self) -> Mapping[str, str]:
        return {name: source.without for name, source in self.sources.items() if source.without}


WorkTables = Callable[[str, str], str]  # the table for a kind of change (minus, plus) of a relation


def in_both_states(states: Mapping[str, States], tables: Tables, work: WorkTables) -> dict[str, TableSource]:
    """Where relations of the database are, in their old state and in the new one, and what they lost and gained."""
    sources = {}
    for name, state in states.items():
        table, lost, gained = tables.layout.tables[name], work(name, "minus"), work(name, "plus")
        sources[name] = TableSource(name, table, gained)
        sources[state.new] = TableSource(name, table, lost)
        sources |= {state.lost: TableSource(name, lost, few=True), state.gained: TableSource(name, gained, few=True)}
    return sources


def compiled(
    rule: Rule,
    layout: WorkLayout,
    tables: Tables,
    rows: Mapping[str, int],
    serve: Callable[[Iterable[Search]], None],
    *,
    first: int = 0,
    window: str = "",
    into: str | None = None,
) -> Statement:
    """The statement of a rule that is read from its `first` literal on; with a `window`, only new rows of that count. `rows` are the sizes of the database's relations; the indexes that are needed are served."""
    read = {atom.relation for atom, _ in atoms(rule.body)} & layout.sources.keys()
    different = {name: tables.distinct(layout.sources[name].relation) for name in read}
    choice = Choice(first=first, rows=expected(layout, rows), distinct=different, window=window)
    chosen = select(rule, layout, tables.dialect, choice)
    serve(chosen.searches)
    put = "" if into is None else f"INSERT OR IGNORE INTO {into} "
    text = put + chosen.text
    whole = put + chosen.whole_text if chosen.excepted else text
    without = frozenset(layout.excepted[name] for name in read & layout.excepted.keys())
    return Statement(rule.head.relation, text, whole, dict(chosen.parameters), without, put=put)


def serve(tables: Tables, layout: WorkLayout, search: Search) -> None:
    """Makes the index that a search in a table of the database, or in one for changes, needs and that is not there yet."""
    source, table = layout.sources.get(search.relation), layout.tables[search.relation]
    if source is not None and table == layout.base.tables[source.relation]:
        tables.serve([Search(source.relation, search.columns)])
    else:
        tables.serve_work(table, layout.columns[search.relation], search.columns)


def expected(layout: WorkLayout, rows: Mapping[str, int]) -> dict[str, int]:
    """How many rows each relation of some rules is expected to have, given those of the database's relations."""
    own = {name: rows.get(source.relation, 0) for name, source in layout.sources.items() if not source.few}
    return dict.fromkeys(layout.program.relations, WORK_ROWS) | own
