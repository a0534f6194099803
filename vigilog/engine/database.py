"""A program with its data, in memory: apply a transaction, get the exact changes of every view.

The views are stored and maintained in proportion to the change (`executors/embedded/maintain.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.proofs import Proof
from vigilog.core.values import Row, Type, sorted_rows
from vigilog.engine.evaluate import checked_rows, read
from vigilog.engine.places import inputs
from vigilog.engine.transaction import Transaction, net_changes
from vigilog.executors.embedded.ask import Asker
from vigilog.executors.embedded.demand import OverBudget
from vigilog.executors.embedded.executor import EmbeddedEvaluation
from vigilog.executors.embedded.maintain import Maintainer
from vigilog.executors.embedded.why import Reasoner
from vigilog.executors.evaluation import Stats
from vigilog.executors.watch import Watch
from vigilog.language.check import check
from vigilog.language.goal import parse_goal
from vigilog.language.parser import read_program
from vigilog.language.syntax import Constant, Program, Rule
from vigilog.planning.strategy import choose_strategies, counted_relations, stored_relations
from vigilog.rewriting.external import external
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.relevant import relevant
from vigilog.rewriting.separate import separate

ENOUGH = 200_000  # rows derived on demand for one transaction, until it is known what recomputing costs

Facts = Mapping[str, Iterable[Iterable[Any]]]


def open_program(
    program: str | Path | Program,
    facts: Facts | str | Path | None = None,
    *,
    strategy: str = "auto",
    engine: str = "embedded",
    budget: int | None = None,
    strict: bool = False,
) -> Database:
    """Opens a program, given as text, file or tree, in memory, with its facts as rows or as a folder of files.

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
    >>> db.close()

    `strategy` is `external`, `materialized`, `counted` or `auto`. A transaction that would derive more than `budget` rows on demand is answered by recomputing, or, if `strict`, refused.
    """
    if isinstance(program, str) and "\n" not in program:
        program = Path(program)
    checked = check(read_program(program) if isinstance(program, Path) else program).program
    if facts is None or isinstance(facts, Mapping):
        return Database(
            checked, {name: checked_rows(checked, name, given) for name, given in (facts or {}).items()}, strategy, budget, strict
        )
    return Database(checked, {name: read(place) for name, place in inputs(checked, facts).items()}, strategy, budget, strict)


class Database:
    """The relations of a program as of the last transaction. It holds tables: close it, or use it in a `with`."""

    def __init__(
        self, program: Program, facts: Mapping[str, Iterable[Row]], strategy: str = "auto", budget: int | None = None, strict: bool = False
    ) -> None:
        stated = _stated(program)
        rules = tuple(rule for rule in program.rules if not _is_fact(rule))
        derived = {head.relation for rule in rules for head in rule.heads}
        given = {directive.relation for directive in program.directed("input")} | stated.keys() | facts.keys()
        self.program = replace(program, rules=rules)
        split, self.homes = separate(self.program, [name for name in program.relations if name in given or name not in derived])
        whole = rewrite(split)
        plain = relevant(whole, [*self.program.outputs, *self.homes.values()])
        self.strategies = choose_strategies(plain, self.program.outputs, strategy)
        self.stored = stored = stored_relations(plain, self.strategies)
        kept = replace(plain, rules=tuple(rule for rule in plain.rules if rule.head.relation in stored))
        rows = {home: _together(facts.get(name, ()), stated.get(name, ())) for name, home in self.homes.items()}
        self.on_demand = replace(plain, rules=tuple(rule for rule in plain.rules if rule.head.relation not in stored))
        self.budget, self.strict = budget, strict
        self.enough = ENOUGH
        self.evaluation = EmbeddedEvaluation(kept, rows, Watch(), resident=True)
        views = external(plain, stored) if len(kept.rules) < len(plain.rules) else None
        self.maintainer = Maintainer(kept, self.evaluation.tables, views, counted_relations(plain, self.strategies))
        self.base = {name: self.evaluation.tables.contents(home) for name, home in self.homes.items()}
        self.asker = Asker(whole, stored, self.evaluation.tables, self.maintainer.sizes)
        self.reasoner = Reasoner(whole, self.evaluation.tables, self.maintainer.sizes, self.homes)
        self.stats = self.evaluation.stats

    def apply(self, transaction: Transaction, *, dry_run: bool = False) -> dict[str, Delta]:
        """Applies a transaction; gives the changes of the views that changed. Raises DataError, and changes nothing, if it is refused.

        With `dry_run` the changes are told and nothing is applied.
        """
        began = time.perf_counter()
        tables = self.evaluation.tables
        statements, undefined = tables.statements, tables.undefined
        changes = net_changes(self.program, self.base, transaction)
        homed = {self.homes[name]: delta for name, delta in changes.items()}
        deltas, reason = self._change(homed, keep=not dry_run) if changes else ({}, "")
        self.stats = Stats(
            "embedded",
            ms=(time.perf_counter() - began) * 1000,
            rounds=self.maintainer.rounds if changes else 0,
            derived=self.maintainer.derived if changes else 0,
            statements=tables.statements - statements,
            undefined=tables.undefined - undefined,
            recomputed=reason,
        )
        return deltas

    def _change(self, changes: Mapping[str, Delta], *, keep: bool) -> tuple[dict[str, Delta], str]:
        """The changes of the views, and why they had to be recomputed, if they had."""
        budget = self.enough if self.budget is None else self.budget
        try:
            return self.maintainer.apply(changes, self.program.outputs, keep=keep, budget=budget), ""
        except OverBudget as reason:
            if self.strict:
                raise DataError(f"{reason.message}, and recomputing is refused (strict)", "budget") from None
            deltas = self.maintainer.recompute(changes, self.program.outputs, self.on_demand, keep=keep)
            self.enough = max(ENOUGH, self.maintainer.derived)  # so much may be derived on demand before recomputing is cheaper
            return deltas, reason.message

    def what_if(self, insert: Facts | None = None, delete: Facts | None = None) -> dict[str, Delta]:
        """The changes that a transaction would cause; nothing is applied."""
        return self.apply({"delete": _lists(delete), "insert": _lists(insert)}, dry_run=True)

    @contextmanager
    def transaction(self) -> Iterator[Pending]:
        """Collects changes and applies them at the end of the block, unless it ends in an error."""
        pending = Pending()
        yield pending
        pending.changes = self.apply(pending.collected)

    def view(self, name: str) -> set[Row]:
        """All rows of an output relation."""
        if name in self.maintainer.program.relations and name in self.stored:
            return set(self.evaluation.rows(name))
        return set(self.ask(f"{name}({', '.join('_' for _ in self.program.relations[name].attributes)})"))

    def ask(self, goal: str) -> list[Row]:
        """The answers to a goal like `closure("a", y)`, sorted: the rows of an atom, or the values of the variables of several literals."""
        return self.ask_typed(goal)[1]

    def ask_typed(self, goal: str) -> tuple[tuple[Type, ...], list[Row]]:
        """The types of a goal's answers, and the answers."""
        asked = parse_goal(self.program, goal)
        return asked.declaration.types, sorted_rows(self.asker.answers(asked))

    def why(self, goal: str) -> Proof | None:
        """A proof of an atom from base facts; None if it does not hold. If it has variables, their first values that hold are taken."""
        asked = parse_goal(self.program, goal)
        answers = self.asker.answers(asked)
        if not asked.of_atom:
            raise DataError('why takes one atom, like closure("a", "b")', "goal")
        return self.proofs(asked.of_atom, sorted_rows(answers)[:1])[0] if answers else None

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it."""
        return self.reasoner.proofs(relation, rows)

    def broken(self, proof: Proof) -> Proof:
        """A proof that once held, with marks on what it rests on that does not hold any more."""
        marked: dict[int, Proof] = {}
        for step in sorted(proof.steps(), key=lambda part: part.depth):
            broken = not step.because and not step.rule and not self._holds(step)
            marked[id(step)] = replace(step, broken=broken, because=tuple(marked[id(part)] for part in step.because))
        return marked[id(proof)]

    def _holds(self, leaf: Proof) -> bool:
        if leaf.row is not None:
            return leaf.row in self.evaluation.tables.contents(self.homes.get(leaf.relation, leaf.relation))
        return bool(self.asker.answers(parse_goal(self.program, leaf.literal)))

    def rows(self, name: str) -> set[Row]:
        """All rows that are stated for a base relation."""
        return set(self.evaluation.rows(self.homes[name]))

    def close(self) -> None:
        self.evaluation.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Pending:
    """The changes of one transaction. After its block, `changes` holds what they did to the views."""

    def __init__(self) -> None:
        self.collected: dict[str, dict[str, list[Any]]] = {}
        self.changes: dict[str, Delta] = {}

    def insert(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("insert", {}).setdefault(relation, []).extend(map(tuple, rows))

    def delete(self, relation: str, rows: Iterable[Iterable[Any]]) -> None:
        self.collected.setdefault("delete", {}).setdefault(relation, []).extend(map(tuple, rows))


def _lists(facts: Facts | None) -> dict[str, list[list[Any]]]:
    return {name: [list(row) for row in rows] for name, rows in (facts or {}).items()}


def _is_fact(rule: Rule) -> bool:
    return not rule.body and all(isinstance(arg, Constant) for head in rule.heads for arg in head.args)


def _stated(program: Program) -> dict[str, set[Row]]:
    """The rows that the program itself states."""
    found: dict[str, set[Row]] = {}
    for rule in program.rules:
        for head in rule.heads if _is_fact(rule) else ():
            found.setdefault(head.relation, set()).add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
    return found


def _together(first: Iterable[Row], second: Iterable[Row]) -> Iterator[Row]:
    yield from first
    yield from second
