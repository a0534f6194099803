"""Answers goals on SQLite, deriving only what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import assert_never

from vigilog.core.values import Row, Value
from vigilog.executors.embedded.demand import DemandMachine, OverBudget, RoundPlan
from vigilog.executors.embedded.statements import TableSource
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.language import syntax
from vigilog.language.goal import Goal, goal_of
from vigilog.language.parts import map_terms, names
from vigilog.language.program import Program
from vigilog.rewriting.demand.magic import magic
from vigilog.rewriting.passes import with_goal

NEAR = 1_000  # rows are derived, at most, to find such as are near to one that is missing
MOST_FORMS = 64  # of so many forms of goals the statements and work tables are kept


@dataclass(frozen=True)
class Form:
    """A goal with variables for its constants, which are the first columns of its answers."""

    rule: syntax.Rule
    declaration: syntax.Declaration
    constants: int

    @property
    def pattern(self) -> str:
        return "b" * self.constants + "f" * (self.declaration.arity - self.constants)


class Asker:
    """A plain program whose base relations, and those `stored`, are tables.

    Goals that differ only in their constants have one form: the same statements answer them, and the constants are the question.
    """

    def __init__(self, program: Program, stored: Iterable[str], tables: Tables, rows: Mapping[str, int]) -> None:
        self.program, self.stored, self.tables, self.sizes = program, frozenset(stored), tables, rows
        self.machines: dict[Form, tuple[DemandMachine, RoundPlan, str] | None] = {}
        self.derived = self.rounds = 0
        self.budget: int | None = None  # how many rows one answer may derive
        self.longest: int | None = None  # how many bytes a text of them may take

    def prepare(self, goal: Goal) -> None:
        """Makes the tables, indexes and statements for goals of this form."""
        self._prepared(form_of(goal)[0])

    def answers(self, goal: Goal, budget: int | None = None) -> list[Row]:
        """The answers to a goal, within a budget of its own or the one that all have."""
        self.derived = self.rounds = 0
        form, constants = form_of(goal)
        prepared = self._prepared(form)
        if prepared is None:
            return []
        machine, plan, question = prepared
        try:
            machine.budget = self.budget if budget is None else budget
            with self.tables.no_longer(self.longest):
                machine.seed(question, [constants])
                machine.run(plan)
                return [row[len(constants) :] for row in machine.rows(goal.declaration.relation)]
        finally:
            self.derived, self.rounds = machine.derived, machine.rounds
            machine.clear()

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> set[Row]:
        """Rows of a relation that agree with the values of some columns. Of one that must be derived, those that differ in one of them, if that are few."""
        if relation in self.stored or all(rule.head.relation != relation for rule in self.program.rules):
            return self.tables.nearest(relation, bound, most)
        rows: set[Row] = set()
        for column in bound if len(bound) > 1 else ():
            others = {other: value for other, value in bound.items() if other != column}
            with suppress(OverBudget):
                rows.update(self.answers(goal_of(self.program, relation, others), NEAR))
        return rows

    def _prepared(self, form: Form) -> tuple[DemandMachine, RoundPlan, str] | None:
        """What answers goals of a form; None if none of them can hold. Those used last are kept."""
        if form in self.machines:
            self.machines[form] = self.machines.pop(form)
        else:
            self.machines[form] = self._prepare(form)
            if len(self.machines) > MOST_FORMS:
                self._forget(next(iter(self.machines)))
        return self.machines[form]

    def _prepare(self, form: Form) -> tuple[DemandMachine, RoundPlan, str] | None:
        relation, asking = form.declaration.relation, with_goal(self.program, form.declaration, form.rule)
        if len(asking.rules) == len(self.program.rules):
            return None
        asked = magic(asking, [(relation, form.pattern)], self.stored)
        derived = {rule.head.relation for rule in asking.rules} - self.stored
        sources = {name: TableSource(name, self.tables.layout.tables[name]) for name in self.program.relations if name not in derived}
        machine = DemandMachine(asked.program, asked.levels, self.tables, sources, aside=True)
        question = asked.questions[relation, form.pattern]
        return machine, machine.plan([question], self.sizes), question

    def _forget(self, form: Form) -> None:
        prepared = self.machines.pop(form)
        if prepared is not None:
            machine = prepared[0]
            for relation in machine.made:
                self.tables.execute(f"DROP TABLE {quote(machine.layout.tables[relation])}")


def form_of(goal: Goal) -> tuple[Form, Row]:
    """The form of a goal, and its constants.

    >>> from vigilog.language.check import check
    >>> from vigilog.language.goal import parse_goal
    >>> from vigilog.language.printer import show_statement
    >>> program = check('.decl edge(x: symbol, y: symbol)').program
    >>> form, constants = form_of(parse_goal(program, 'edge("a", y), !edge(y, "a")'))
    >>> show_statement(form.rule), constants
    ('answer(k1, y) :- edge(k1, y), !edge(y, k1).', ('a',))
    """
    opener = _Opener(names(goal.rule, into_aggregates=True))
    body = tuple(map(opener.literal, goal.rule.body))
    args = tuple(opener.term(arg) for arg in goal.rule.head.args)
    parameters = tuple(opener.constants.values())
    attributes = tuple(syntax.Attribute(variable.name, str(variable.type), variable.type) for variable in parameters)
    shown = tuple(replace(attribute, name=f"a{number}") for number, attribute in enumerate(goal.declaration.attributes, start=1))
    rule = replace(goal.rule, heads=(replace(goal.rule.head, args=(*parameters, *args)),), body=body)
    declaration = replace(goal.declaration, attributes=(*attributes, *shown))
    return Form(rule, declaration, len(parameters)), tuple(value for _, value in opener.constants)


class _Opener:
    """Puts variables for constants, one for each."""

    def __init__(self, taken: set[str]) -> None:
        self.fresh = (name for name in (f"k{number}" for number in count(1)) if name not in taken)
        self.constants: dict[tuple[str, Value], syntax.Variable] = {}

    def literal(self, literal: syntax.Literal) -> syntax.Literal:
        """A set is collected by rules of its own, which see no variables of the goal, and an aggregate takes a component that is known: their constants stay."""
        applied = isinstance(literal, syntax.Builtin) and literal.op not in syntax.COMPARISONS and literal.op not in syntax.TESTS
        return literal if applied or isinstance(literal, syntax.SetOf) else map_terms(literal, self.term)

    def term(self, term: syntax.Term) -> syntax.Term:
        match term:
            case syntax.Constant():
                key = str(term.type), term.value
                if key not in self.constants:
                    self.constants[key] = syntax.Variable(next(self.fresh), term.type)
                return self.constants[key]
            case syntax.Functor():
                return replace(term, args=tuple(map(self.term, term.args)))
            case syntax.Aggregate():
                target = None if term.target is None else self.term(term.target)
                return replace(term, target=target, body=tuple(map(self.literal, term.body)))
            case syntax.Variable() | syntax.Wildcard():
                return term
            case _:
                assert_never(term)
