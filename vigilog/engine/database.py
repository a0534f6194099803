"""A program with its data, in memory: apply a transaction, get the exact changes of every view.

Views are computed anew and compared, which is exact and simple. Maintaining them in proportion to the change comes next; it will keep these calls.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.engine.evaluate import checked_rows, start
from vigilog.engine.places import inputs
from vigilog.engine.transaction import Transaction, net_changes
from vigilog.executors.evaluation import Stats
from vigilog.executors.watch import Watch
from vigilog.files import reader
from vigilog.language.check import check
from vigilog.language.parser import read_program
from vigilog.language.syntax import Constant, Program


def open_program(program: str | Path | Program, facts: Mapping[str, Iterable[Iterable[Any]]] | str | Path | None = None) -> Database:
    """Opens a program in memory, with its facts as rows or as a folder of files.

    >>> db = open_program('''
    ... .decl edge(x: symbol, y: symbol)
    ... .decl closure(x: symbol, y: symbol)
    ... .output closure
    ... closure(x, y) :- edge(x, y).
    ... closure(x, y) :- edge(x, z), closure(z, y).
    ... ''', {"edge": [("a", "b")]})
    >>> with db.transaction() as tx:
    ...     tx.insert("edge", [("b", "c")])
    >>> sorted(tx.changes["closure"].plus)
    [('a', 'c'), ('b', 'c')]
    """
    if isinstance(program, Program):
        checked = check(program).program
    else:
        is_text = isinstance(program, str) and ("\n" in program or program.strip() == "" or program.lstrip().startswith("."))
        checked = check(str(program) if is_text else read_program(program)).program
    if facts is None or isinstance(facts, Mapping):
        rows = {name: set(checked_rows(checked, name, given)) for name, given in (facts or {}).items()}
    else:
        rows = {name: set(reader.rows(place)) for name, place in inputs(checked, facts).items()}
    return Database(checked, rows)


class Database:
    """The base relations of a program, and its views as of the last transaction."""

    def __init__(self, program: Program, facts: Mapping[str, set[Row]]) -> None:
        stated: dict[str, set[Row]] = {}
        for rule in program.rules:
            for head in rule.heads:
                if not rule.body and all(isinstance(arg, Constant) for arg in head.args):
                    stated.setdefault(head.relation, set()).add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
        rules = tuple(rule for rule in program.rules if rule.body or not all(isinstance(a, Constant) for h in rule.heads for a in h.args))
        derived = {head.relation for rule in rules for head in rule.heads}
        given = {directive.relation for directive in program.directed("input")} | stated.keys() | facts.keys()
        self.program = program.with_rules(rules)
        self.base = {
            name: facts.get(name, set()) | stated.get(name, set()) for name in program.relations if name not in derived or name in given
        }
        self.stats = Stats("embedded")
        self.views = self._evaluate(self.base)

    def apply(self, transaction: Transaction, *, dry_run: bool = False) -> dict[str, Delta]:
        """Applies a transaction; gives the changes of the views that changed. Raises DataError, and changes nothing, if it is refused."""
        changes = net_changes(self.program, self.base, transaction)
        base = {name: changes[name].apply(rows) if name in changes else rows for name, rows in self.base.items()}
        views = self._evaluate(base) if changes else self.views
        deltas = {name: between(self.views[name], rows) for name, rows in views.items()}
        if not dry_run:
            self.base, self.views = base, views
        return {name: delta for name, delta in deltas.items() if delta}

    @contextmanager
    def transaction(self) -> Iterator[Pending]:
        """Collects changes and applies them at the end of the block, unless it ends in an error."""
        pending = Pending()
        yield pending
        pending.changes = self.apply(pending.collected)

    def view(self, name: str) -> set[Row]:
        return set(self.views[name])

    def _evaluate(self, base: Mapping[str, set[Row]]) -> dict[str, set[Row]]:
        began = time.perf_counter()
        with closing(start(self.program, base, "embedded", self.program.outputs, Watch())) as evaluation:
            views = {name: set(evaluation.rows(name)) for name in self.program.outputs}
            self.stats = evaluation.stats
        self.stats.ms = (time.perf_counter() - began) * 1000
        return views


class Pending:
    """The changes of one transaction. After its block, `changes` holds what they did to the views."""

    def __init__(self) -> None:
        self.collected: dict[str, dict[str, list[Any]]] = {}
        self.changes: dict[str, Delta] = {}

    def insert(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("insert", {}).setdefault(relation, []).extend(map(tuple, rows))

    def delete(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("delete", {}).setdefault(relation, []).extend(map(tuple, rows))
