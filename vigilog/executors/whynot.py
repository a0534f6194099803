"""Finds out why a row is not in a relation, by goals that any executor answers.

Each rule of the relation is taken with the row for its head, and its literals in their order: the longest beginning of the body that has answers holds, and the literal after it fails. What is asked
are ordinary goals, so what is derived is what they need, and no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol, assert_never

from vigilog.core.errors import DataError, counted
from vigilog.core.values import Row, Value, sorted_rows
from vigilog.core.whynot import Attempt, FailedInstance, WhyNot
from vigilog.executors.embedded.demand import OverBudget
from vigilog.language import solving, syntax
from vigilog.language.goal import Goal, goal_of, goal_of_body
from vigilog.language.parts import names, rename_literal, variables
from vigilog.language.printer import show_literal, show_statement, show_term
from vigilog.language.program import Program
from vigilog.language.safety import decidable, needs
from vigilog.rewriting.demand.demand import names_of, needs_of

FEW = 3  # ways of a rule, and rows near to one that is missing, are shown
MOST_RULES = 50  # of a relation are looked at
MOST_DERIVED = 100_000  # rows are derived for one question
MOST_QUESTIONS = 300  # are asked altogether
MUCH = "there is too much to look at; bind more columns, or ask for a literal of it alone"
ENOUGH = "not looked at, after so many others; ask for a literal of it alone"


class Answerer(Protocol):
    """What can be asked about a state of a plain program."""

    def some(self, goal: Goal, budget: int) -> Collection[Row]:
        """The answers to a goal. Raises OverBudget if more rows than `budget` would have to be derived."""

    def nearest(self, relation: str, bound: Mapping[int, Value], most: int) -> Collection[Row]:
        """Rows of a relation that agree with the values of some columns, in as many as there are rows for; not all of them, and none where looking for them would take long."""


def why_not(program: Program, homes: Mapping[str, str], state: Answerer, goal: Goal, depth: int = 1) -> WhyNot:
    """Why an atom that has no row does not hold: one level of rules, or as many as `depth`."""
    atom = goal.rule.body[0]
    assert isinstance(atom, syntax.Atom), "it is asked of one atom"
    args = tuple(_computed(arg) for arg in atom.args)
    return _Search(program, homes, state).atom(
        replace(atom, args=args), 0 if any(isinstance(arg, syntax.Functor) for arg in args) else depth
    )


class _Search:
    def __init__(self, program: Program, homes: Mapping[str, str], state: Answerer) -> None:
        self.program, self.state = program, state
        self.stated = {name for name, home in homes.items() if home != name}  # beside rules
        self.rules: dict[str, dict[int, list[syntax.Rule]]] = {}  # the plain rules of each relation, those together that were made of one
        for rule in program.rules:
            match rule.body:
                case (syntax.Atom(relation=home),) if rule.head.relation in self.stated and home == homes[rule.head.relation]:
                    continue
            self.rules.setdefault(rule.head.relation, {}).setdefault(id(rule.source), []).append(rule)
        self.seen: set[str] = set()
        self.questions = 0

    # -- literals that fail

    def literal(self, literal: syntax.Literal, depth: int) -> WhyNot:
        text = show_literal(literal)
        match literal:
            case syntax.Atom():
                return self.atom(literal, depth)
            case syntax.Negation(literal=syntax.Atom() as atom):
                there = [_fact(atom, row) for row in self.rows(atom)]
                return WhyNot(text, "does not hold" + (f": there is {', '.join(there)}" if there else ""))
            case syntax.Builtin(args=(_, syntax.Aggregate() as aggregate)):
                return WhyNot(text, self.compared(aggregate))
            case syntax.Builtin() | syntax.Negation(literal=syntax.Builtin()):
                return WhyNot(text, _compared(literal))
            case syntax.Truth() | syntax.Disjunction() | syntax.Negation() | syntax.SetOf():
                return WhyNot(text, "does not hold")
            case _:
                assert_never(literal)

    def atom(self, atom: syntax.Atom, depth: int) -> WhyNot:
        """Why there is no row of an atom, which may have variables."""
        text, rules, near = show_literal(atom), list(self.rules.get(atom.relation, {}).values()), self.near(atom)
        note = self.missing(atom)
        if rules and depth > 0 and text in self.seen:
            return WhyNot(text, f"{note} (see above)", near)
        if not rules or depth < 1:
            return WhyNot(text, note, near)
        self.seen.add(text)
        if len(rules) > MOST_RULES:
            note += f" ({counted(len(rules) - MOST_RULES, 'rule')} of it not looked at)"
        return WhyNot(text, note, near, tuple(self.attempt(made, atom, depth) for made in rules[:MOST_RULES]))

    def missing(self, atom: syntax.Atom) -> str:
        if atom.relation in self.rules:
            return "is not stated, and no rule gives it" if atom.relation in self.stated else "does not hold"
        return "is not there" if all(isinstance(arg, syntax.Constant) for arg in atom.args) else "has no row"

    def near(self, atom: syntax.Atom) -> tuple[str, ...]:
        """The rows of a relation that agree with an atom in most columns."""
        bound = {column: arg.value for column, arg in enumerate(atom.args) if isinstance(arg, syntax.Constant)}
        if not bound or self.questions >= MOST_QUESTIONS:
            return ()
        self.questions += 1

        def agreeing(row: Row) -> int:
            return sum(row[column] == value for column, value in bound.items())

        rows = sorted(sorted_rows(self.state.nearest(atom.relation, bound, FEW)), key=agreeing, reverse=True)
        return tuple(_fact(atom, row) for row in rows[:FEW] if agreeing(row) == agreeing(rows[0]))

    def rows(self, atom: syntax.Atom) -> list[Row]:
        """A few rows of an atom."""
        bound = {column: arg.value for column, arg in enumerate(atom.args) if isinstance(arg, syntax.Constant)}
        return sorted_rows(self.answers(goal_of(self.program, atom.relation, bound)) or ())[:FEW]

    def compared(self, aggregate: syntax.Aggregate) -> str:
        """What is to be said of an aggregate that has not the value it should have."""
        taken = names(aggregate, into_aggregates=True)
        value = syntax.Variable(next(name for number in count(1) if (name := f"value{number}") not in taken), aggregate.type)
        values = self.answers(goal_of_body(self.program, (syntax.Builtin("=", (value, aggregate)),), [value]))
        if values is None:
            return "does not hold"
        if not values:
            return "has no value" + (": it ranges over nothing" if aggregate.op in ("min", "max", "mean") else "")
        return f"does not hold: it is {show_term(_constant(next(iter(values))[0], value))}"

    # -- rules

    def attempt(self, rules: Sequence[syntax.Rule], atom: syntax.Atom, depth: int) -> Attempt:
        """How far a rule of the user comes that could give an atom: each of the plain rules that were made of it."""
        source, ways = rules[0].source, dict[tuple[syntax.Literal, ...], tuple[str, ...]]()
        for rule in rules:
            instances = self.failing(rule, atom)
            if instances is None:
                return Attempt(show_statement(source), str(source.span), note=ENOUGH if self.questions > MOST_QUESTIONS else MUCH)
            for holds, fails in instances:
                ways.setdefault((*holds, fails), tuple(map(show_literal, holds)))
        shown = [FailedInstance(holds, self.literal(way[-1], depth - 1)) for way, holds in list(ways.items())[:FEW]]
        return Attempt(show_statement(source), str(source.span), tuple(shown), len(ways) - len(shown))

    def failing(self, rule: syntax.Rule, atom: syntax.Atom) -> list[tuple[tuple[syntax.Literal, ...], syntax.Literal]] | None:
        """The literals that fail when a rule is to give an atom, each with those that hold before it; None if there is too much to look at."""
        body, own = _body(rule, atom)
        holding, bindings, fails = 0, [dict[str, syntax.Term]()], len(body)
        while fails - holding > 1:
            middle = (holding + fails) // 2
            extended = self.bindings(body[:middle])
            if extended is None:
                return None
            if extended:
                holding, bindings = middle, extended
            else:
                fails = middle
        ways: dict[syntax.Literal, Mapping[str, syntax.Term]] = {}
        for binding in bindings if body else ():
            ways.setdefault(rename_literal(body[holding], binding), binding)
        shown = [literal for literal in body[:holding] if literal not in own]
        return [(tuple(rename_literal(literal, binding) for literal in shown), fails) for fails, binding in ways.items()]

    def bindings(self, body: tuple[syntax.Literal, ...]) -> list[dict[str, syntax.Term]] | None:
        """The values of variables for which all literals hold, sorted; None if it takes too much to know them."""
        shown = list({variable.name: variable for literal in body for variable in variables(literal)}.values())
        rows = self.answers(goal_of_body(self.program, body, shown))
        if rows is None:
            return None
        return [{v.name: _constant(cell, v) for v, cell in zip(shown, row, strict=True)} for row in sorted_rows(rows)]

    def answers(self, goal: Goal) -> Collection[Row] | None:
        self.questions += 1
        if self.questions > MOST_QUESTIONS:
            return None
        try:
            return self.state.some(goal, MOST_DERIVED)
        except OverBudget:
            return None
        except DataError as reason:
            if reason.code != "budget":
                raise
            return None


def _body(rule: syntax.Rule, atom: syntax.Atom) -> tuple[tuple[syntax.Literal, ...], Collection[syntax.Literal]]:
    """The body of a rule with an atom for its head, in the order in which its literals are tried; and those that are not the user's, but say what is computed in another."""
    fresh = (name for name in (f"v{number}" for number in count(1)) if name not in names(rule, into_aggregates=True))
    body: list[syntax.Literal] = []
    own: list[syntax.Literal] = []
    for literal in rule.body:
        if isinstance(literal, syntax.Atom):
            args = tuple(syntax.Variable(next(fresh), arg.type) if isinstance(arg, syntax.Functor) else arg for arg in literal.args)
            own += [syntax.Builtin("=", pair) for pair in zip(args, literal.args, strict=True) if isinstance(pair[1], syntax.Functor)]
            literal = replace(literal, args=args)
        body.append(literal)
    bound, equal = _unified(atom, rule.head)
    own = [rename_literal(literal, bound) for literal in own]
    return _ordered([*own, *(rename_literal(literal, bound) for literal in (*equal, *body))]), own


def _unified(atom: syntax.Atom, head: syntax.Atom) -> tuple[dict[str, syntax.Term], list[syntax.Literal]]:
    """What variables of a head are if it is to be an atom, and what must be equal beside that."""
    bound: dict[str, syntax.Term] = {}
    equal: list[syntax.Literal] = []
    firsts: dict[str, syntax.Term] = {}  # what stands in the head where a variable of the atom stands first

    def root(term: syntax.Term) -> syntax.Term:
        while isinstance(term, syntax.Variable) and term.name in bound:
            term = bound[term.name]
        return term

    for arg, own in zip(atom.args, map(root, head.args), strict=True):
        wanted = root(firsts.setdefault(arg.name, own)) if isinstance(arg, syntax.Variable) else arg
        if wanted == own or isinstance(wanted, syntax.Wildcard):
            continue
        if isinstance(own, syntax.Variable) and isinstance(wanted, syntax.Variable | syntax.Constant):
            bound[own.name] = wanted
        elif isinstance(wanted, syntax.Variable) and isinstance(own, syntax.Constant):
            bound[wanted.name] = own
        else:
            equal.append(syntax.Builtin("=", (wanted, own)))
    return {name: root(term) for name, term in bound.items()}, equal


def _ordered(literals: list[syntax.Literal]) -> tuple[syntax.Literal, ...]:
    """Literals in the order in which they were written, but each where it can be decided, and an atom of which nothing is known after what leads to it."""
    pending, scope, bound = list(literals), names_of(literals), set[str]()
    done: list[syntax.Literal] = []

    def ready(literal: syntax.Literal) -> bool:
        match literal:
            case syntax.Atom():
                return True
            case syntax.Builtin():
                return decidable(literal, lambda term: needs(term, scope) <= bound)
            case syntax.Negation() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                return needs_of(literal, scope) <= bound
            case _:
                assert_never(literal)

    def led_to(literal: syntax.Literal) -> bool:
        if not isinstance(literal, syntax.Atom) or not literal.args:
            return True
        return any(isinstance(arg, syntax.Constant) or (isinstance(arg, syntax.Variable) and arg.name in bound) for arg in literal.args)

    while pending:
        able = [literal for literal in pending if ready(literal)]
        literal = next(filter(led_to, able), (able or pending)[0])
        pending = [other for other in pending if other is not literal]
        done.append(literal)
        bound |= names(literal)
    return tuple(done)


def _computed(term: syntax.Term) -> syntax.Term:
    """A term without variables as its value."""
    if not isinstance(term, syntax.Functor) or names(term):
        return term
    value = solving.value(term, {}, {}, set())
    return term if value is None else syntax.Constant(value, term.type)


def _compared(literal: syntax.Builtin | syntax.Negation) -> str:
    """What is to be said of a comparison that fails."""
    inner = literal.literal if isinstance(literal, syntax.Negation) else literal
    assert isinstance(inner, syntax.Builtin)
    values = tuple(_computed(arg) for arg in inner.args)
    undefined = [show_term(value) for value in values if isinstance(value, syntax.Functor)]
    if undefined:
        return f"does not hold: {undefined[0]} has no value"
    return f"does not hold: it is {show_literal(replace(inner, args=values))}" if values != inner.args else "does not hold"


def _constant(value: Value, variable: syntax.Variable) -> syntax.Constant:
    assert variable.type is not None, "checked programs are typed"
    return syntax.Constant(value, variable.type, unsigned=variable.type.kind == "unsigned")


def _fact(atom: syntax.Atom, row: Row) -> str:
    return show_literal(replace(atom, args=tuple(syntax.Constant(cell, arg.type) for cell, arg in zip(row, atom.args, strict=True))))
