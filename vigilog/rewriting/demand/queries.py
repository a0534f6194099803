"""The goal-directed program for each way in which a view can be asked, as sections.

>>> from vigilog.language.check import check
>>> from vigilog.rewriting.sections import show_sections
>>> text = ".decl edge(x: number, y: number) .decl tail(x: number) tail(y) :- edge(_, y)."
>>> print(show_sections(queries(check(text).program, ["tail"])))
.decl edge(x: number, y: number)
.decl tail(x: number)
.decl m_tail_b(x: number)
.decl m_tail_f()
<BLANKLINE>
// tail(x), asked by m_tail_b(x)
tail(y) :- m_tail_b(y), edge(_, y).
<BLANKLINE>
// tail(_), asked by m_tail_f()
tail(y) :- m_tail_f(), edge(_, y).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from vigilog.language.printer import show_literal
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Declaration, Rule, Variable, Wildcard
from vigilog.rewriting.demand.demand import Demand
from vigilog.rewriting.demand.magic import definitions_of, levels
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.sections import Section, by_rank

MANY_COLUMNS = 6  # a view with more has too many patterns to print them all

Question = tuple[str, str]
Answers = Mapping[Question, tuple[Rule, ...]]


def queries(program: Program, views: Iterable[str]) -> tuple[Section, ...]:
    """For each derived relation among the views of a plain program, and each pattern, the rules that answer its question."""
    definitions = definitions_of(program, ())
    naming = Naming(program.relations)
    demand = Demand(definitions, naming)
    goals: list[tuple[Question, Atom, Atom]] = []
    for view in views:
        declaration = program.relations[view]
        for pattern in patterns(declaration) if view in definitions else ():
            columns = [Variable(attribute.name, attribute.type) for attribute in declaration.attributes]
            question = demand.question(view, pattern, [column for column, mark in zip(columns, pattern, strict=True) if mark == "b"])
            answer = Atom(view, tuple(column if mark == "b" else Wildcard() for column, mark in zip(columns, pattern, strict=True)))
            goals.append(((view, pattern), question, answer))
    answers = demand.finish()
    declarations = {**program.relations, **demand.declarations}
    sections: list[Section] = []
    for key, question, answer in goals:
        rules = [rule for other in asked_by(answers[key], demand, answers, [key]) for rule in answers[other]]
        title = f"{show_literal(answer)}, asked by {show_literal(question)}"
        sections += by_rank(title, rules, declarations, levels(program), naming)
    return tuple(sections)


def patterns(declaration: Declaration) -> list[str]:
    """The patterns of known columns; for a view with many columns only those with one or none, and with all."""
    arity = declaration.arity
    if arity <= MANY_COLUMNS:
        return ["".join(marks) for marks in product("bf", repeat=arity)]
    return ["b" * arity, *("f" * place + "b" + "f" * (arity - place - 1) for place in range(arity)), "f" * arity]


def asked_by(rules: Iterable[Rule], demand: Demand, answers: Answers, given: Iterable[Question] = ()) -> list[Question]:
    """The questions that rules ask, directly or through the rules that answer them, in the order in which they came up; those `given` first."""
    key_of = {magic: key for key, magic in demand.asked.items()}
    questions = dict.fromkeys(given)
    queue = list(rules)
    for rule in queue:
        key = key_of.get(rule.head.relation)
        if key is not None and key not in questions:
            questions[key] = None
            queue += answers[key]
    return [*questions]
