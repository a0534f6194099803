"""Goals whose answers are followed: each is a view that nobody declared, beside those of the program.

Constants of its atoms become columns of the view, so that goals which differ only in them share one, of which each follows some rows:

>>> from vigilog.language.check import check
>>> from vigilog.language.goal import parse_goal
>>> program = check('.decl edge(x: symbol, y: symbol)').program
>>> text, values = as_view("query", parse_goal(program, 'edge("a", y), !edge(y, "b")'))
>>> print(text)
.decl query(k1: symbol, y: symbol)
.output query
query(k1, y) :- edge(k1, y), !edge(y, "b").
>>> values
('a',)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from vigilog.core.errors import DataError, ProgramError, Stopped
from vigilog.core.values import Row, Value
from vigilog.executors.allowance import TOGETHER, Allowance, TooDear
from vigilog.folder.definitions import defined
from vigilog.language.goal import Goal, parse_goal
from vigilog.language.parts import names
from vigilog.language.printer import show
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Attribute, Constant, Declaration, Directive, Rule, Term, Variable

if TYPE_CHECKING:
    from vigilog.folder.durable import Durable

PREFIX = "query_"
QueryVersion = tuple[str, int]


@dataclass(frozen=True)
class Followable:
    """Where the answers to a goal can be followed: in the rows of a view that have some values in some columns, less its first columns, after a transaction."""

    view: str
    bound: dict[int, Value]
    hidden: int
    attributes: tuple[Attribute, ...]
    since: int


class Queries:
    """The queries of a database. They are in its file, so that those who follow one can go on after a restart; those that are `tried`, because nobody has had an answer yet, are not.

    Nothing is kept for a query, and each has its `allowance` in a transaction. One that goes beyond it is dropped, and those who listen are told.
    """

    def __init__(self, db: Durable) -> None:
        self.db = db
        self.allowance = Allowance()
        self.without: frozenset[str] = frozenset()  # what is left out of a transaction that is not kept
        self.in_vain = 0.0  # seconds that attempts at this transaction took in which a query cost too much
        self.parts = 0  # among so many what one query may cost is divided, if as much was done in vain
        self.tried: dict[str, QueryVersion] = {}
        self.listeners: list[Callable[[TooDear], None]] = []

    @property
    def names(self) -> frozenset[str]:
        """Of the views that the database has for them."""
        return self.db.compiled.queries

    @property
    def known(self) -> dict[str, QueryVersion]:
        """The text of each query's view, and the transaction since which it is followed."""
        with self.db.lock:
            stored = self.db.file.get("queries", "{}")
            return {name: (text, since) for name, (text, since) in json.loads(stored).items()} | self.tried

    def _write(self, queries: dict[str, QueryVersion]) -> None:
        self.tried = {name: query for name, query in self.tried.items() if name in queries}
        self.db.file.put("queries", json.dumps({name: query for name, query in queries.items() if name not in self.tried}))

    def added_to(self, program: Program) -> tuple[Program, frozenset[str]]:
        """A program with the views of those queries that it can answer, and their names."""
        added = set()
        for name, (text, _) in self.known.items():
            try:
                program = defined(program, text, name)
                added.add(name)
            except ProgramError:  # of another program: `keep` forgets it
                continue
        return program, frozenset(added)

    def follow(self, goal: str, most: int | None = None, *, tried: bool = False) -> Followable:
        """Makes the answers to a goal a view; if it is only `tried`, until `settle`, a restart knows nothing of it."""
        asked = parse_goal(self.db.program, goal)
        atom = asked.rule.body[0]
        if asked.of_atom in self.db.program.outputs and isinstance(atom, Atom) and _plain(atom):
            bound = {column: arg.value for column, arg in enumerate(atom.args) if isinstance(arg, Constant)}
            return Followable(asked.of_atom, bound, 0, asked.declaration.attributes, 0)
        name = _name(asked)
        queries = self.known
        if name not in queries:
            if most is not None and len(queries) >= most:
                raise DataError(f"{most} queries are followed already", "limit")
            queries[name] = as_view(name, asked)[0], self.db.tx
            self._change(queries, {**self.tried, name: queries[name]} if tried else self.tried)
        values = as_view(name, asked)[1]
        return Followable(name, dict(enumerate(values)), len(values), asked.declaration.attributes, queries[name][1])

    def asks_for(self, goal: str) -> str:
        """The view that a goal would be followed in, if it is none of the program's own; a goal that means nothing now has none."""
        try:
            return _name(parse_goal(self.db.program, goal))
        except ProgramError:
            return ""

    def drop(self, views: Iterable[str]) -> None:
        queries = self.known
        left = {name: query for name, query in queries.items() if name not in views}
        if len(left) < len(queries):
            self._change(left, self.tried)

    def _change(self, queries: dict[str, QueryVersion], tried: dict[str, QueryVersion]) -> None:
        """Goes on with other queries, or, if that fails, with these."""
        before, self.tried = self.tried, tried
        try:
            with self.db.swapping():
                self._write(queries)
                self.db.build(self.db.compile(self.db.whole_program()), {})
        except BaseException:
            self.tried = before
            raise

    @contextmanager
    def leaving_out(self, views: Collection[str] = ()) -> Iterator[None]:
        """Nobody is told of what is done inside: queries cost nothing, or, if they cost too much, are left out."""
        self.without, self.in_vain, self.parts = frozenset(views), 0.0, 0
        try:
            yield
        finally:
            self.without = frozenset()

    def share(self) -> Allowance:
        """What each query may cost now."""
        part = 1 / max(1, self.parts)
        return replace(self.allowance, without=self.without, seconds=part * self.allowance.seconds, together=TOGETHER / part)

    def settle(self, view: str) -> None:
        """Somebody has an answer of a query that was tried, and may want to go on from it after a restart."""
        if view in self.tried:
            queries = self.known
            del self.tried[view]
            self._write(queries)

    def give_up(self, reason: TooDear, *, keep: bool) -> None:
        """Drops queries that cost too much, and says so; or, if nothing is to be kept, leaves them out.

        What was done for it in vain counts, too: when that is as much as one query may cost, all of them share so much from then on.
        """
        self.in_vain += reason.seconds
        if self.in_vain >= self.allowance.seconds and not self.parts:
            self.parts = len(reason.cost)
            reason = reason.with_all(self.share().seconds)
        if not keep:
            self.without |= reason.queries
            return
        self.drop(reason.queries)
        for listener in self.listeners:
            listener(reason)

    def seen(self, view: str) -> set[Row]:
        """All rows of a query's view. Raises TooDear if that is too much to ask."""
        try:
            with self.db.views.within(self.allowance):
                return self.db.view(view)
        except Stopped as reason:
            raise TooDear([view], f"when the program was changed, {self.allowance.said(reason)}") from None

    def keep(self, program: Program) -> None:
        """Forgets queries that a program, with all that it can answer, does not have."""
        self._write({name: query for name, query in self.known.items() if name in program.relations})


def _name(goal: Goal) -> str:
    """What the view of a goal is called: the same for all that differ in constants only."""
    text, _ = as_view("query", goal)
    return PREFIX + hashlib.sha256(text.encode()).hexdigest()[:12]


def as_view(name: str, goal: Goal) -> tuple[str, tuple[Value, ...]]:
    """The text of a view for a goal, and the values of its first columns that are meant."""
    taken = names(goal.rule, into_aggregates=True) | set(goal.declaration.columns)
    fresh = (variable for variable in (f"k{number}" for number in count(1)) if variable not in taken)
    variables: dict[tuple[str, Value], Variable] = {}

    def opened(term: Term) -> Term:
        if not isinstance(term, Constant):
            return term
        key = str(term.type), term.value
        if key not in variables:
            variables[key] = Variable(next(fresh), term.type)
        return variables[key]

    body = tuple(replace(part, args=tuple(map(opened, part.args))) if isinstance(part, Atom) else part for part in goal.rule.body)
    args = tuple(opened(arg) for arg in goal.rule.head.args)
    columns = tuple(Attribute(variable.name, str(variable.type), variable.type) for variable in variables.values())
    program = Program(
        declarations=(Declaration(name, (*columns, *goal.declaration.attributes)),),
        directives=(Directive("output", name),),
        rules=(Rule((Atom(name, (*variables.values(), *args)),), body),),
    )
    return show(program), tuple(value for _, value in variables)


def _plain(atom: Atom) -> bool:
    """Whether an atom asks for the rows of a relation with some values in some columns, and for nothing else."""
    variables = [arg for arg in atom.args if isinstance(arg, Variable)]
    return len(set(variables)) == len(variables) and all(isinstance(arg, Variable | Constant) for arg in atom.args)
