"""Goals: what can be asked of a program.

A goal is an atom, or a body as a rule has it. Its answers are the atom's rows, or the values of the body's variables, less those that only one way of a disjunction has.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> program = check('.decl edge(x: symbol, y: symbol) .input edge').program
>>> goal = parse_goal(program, 'edge("a", y)')
>>> show_statement(goal.rule), goal.columns
('answer("a", y) :- edge("a", y).', ('x', 'y'))
>>> goal = parse_goal(program, 'edge(x, y), !edge(y, x), n = count : { edge(x, _) }')
>>> [f"{attribute.name}: {attribute.type}" for attribute in goal.declaration.attributes]
['x: symbol', 'y: symbol', 'n: number']
>>> parse_goal(program, 'edge(x, y), (edge(y, z), z != x ; x = "a")').columns
('x', 'y')
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from vigilog.core.errors import DataError, Finding, ProgramError
from vigilog.core.spans import Span
from vigilog.core.values import Value
from vigilog.language.calls import all_terms, is_arithmetic, is_call
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.parts import names, variables
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by
from vigilog.language.syntax import Atom, Attribute, Constant, Declaration, Literal, Rule, Variable, Wildcard


@dataclass(frozen=True)
class Goal:
    """A goal as a rule for a relation of its own, and the columns of its answers."""

    rule: Rule
    declaration: Declaration
    of_atom: str = ""  # the relation of a goal that is a single atom

    @property
    def columns(self) -> tuple[str, ...]:
        return self.declaration.columns


def parse_goal(program: Program, text: str) -> Goal:
    """The goal a text says, checked against a checked program. Raises ProgramError, with places in that text."""
    text = text.strip().removesuffix(".").rstrip()
    if not text:
        raise ProgramError(
            [Finding("syntax", "there is no goal", Span("goal", 1, 1, 1, 1), hint=f"write an atom like {_example(program)}")], ""
        )
    name = _unused("answer", program)
    try:
        body = _body(text)
        checked = check(_asking(program, Rule((Atom(name, ()),), body), text)).program.rules[0]
    except ProgramError as error:
        raise ProgramError(_placed(error.findings, text), text) from None
    match checked.body:
        case (Atom() as atom,):
            head, attributes, relation = replace(atom, relation=name), program.relations[atom.relation].attributes, atom.relation
        case _:
            bound = grounded_by(checked.body, set(), names(checked))
            by_name = {variable.name: variable for literal in checked.body for variable in variables(literal)}
            shown = [variable for variable in by_name.values() if variable.name in bound]
            head, attributes, relation = Atom(name, tuple(shown)), tuple(map(_attribute, shown)), ""
    return Goal(replace(checked, heads=(head,)), Declaration(name, attributes), relation)


def parse_atom(program: Program, text: str) -> Goal:
    """The goal a text says, which is a single atom."""
    return of_one_atom(parse_goal(program, text))


def of_one_atom(goal: Goal) -> Goal:
    """A goal that asks why. Raises DataError if it is more than an atom."""
    if not goal.of_atom:
        raise DataError('why takes one atom, like closure("a", "b")', "goal")
    return goal


def goal_of(program: Program, relation: str, bound: Mapping[int, Value] | None = None) -> Goal:
    """The goal that asks for the rows of a relation, all or those with some values in some columns.

    >>> from vigilog.language.check import check
    >>> from vigilog.language.printer import show_statement
    >>> show_statement(goal_of(check('.decl edge(x: symbol, y: symbol)').program, "edge", {0: "a"}).rule)
    'answer("a", c1) :- edge("a", c1).'
    """
    declaration, name, values = program.relations[relation], _unused("answer", program), bound or {}
    args = tuple(
        Constant(values[column], type_) if column in values else Variable(f"c{column}", type_)
        for column, type_ in enumerate(declaration.types)
    )
    return Goal(Rule((Atom(name, args),), (Atom(relation, args),)), Declaration(name, declaration.attributes), relation)


def goal_of_body(program: Program, body: tuple[Literal, ...], shown: Sequence[Variable]) -> Goal:
    """The goal that asks for the values of some variables for which typed literals hold.

    >>> from vigilog.language.check import check
    >>> from vigilog.language.printer import show_statement
    >>> program = check('.decl edge(x: symbol, y: symbol) .decl p(x: symbol) p(y) :- edge("a", y), !edge(y, "a").').program
    >>> body = program.rules[0].body
    >>> show_statement(goal_of_body(program, body, list(variables(body[0]))).rule)
    'answer(y) :- edge("a", y), !edge(y, "a").'
    """
    name = _unused("answer", program)
    return Goal(Rule((Atom(name, tuple(shown)),), body), Declaration(name, tuple(map(_attribute, shown))))


def _body(text: str) -> tuple[Literal, ...]:
    """The goal's literals. It stands on lines of its own, the first being the second, so that errors can show it alone."""
    parsed = parse(f"answer() :-\n{text}\n.", "goal")
    if len(parsed.rules) != 1 or parsed.declarations or parsed.directives or parsed.types or parsed.aggregates:
        raise ProgramError([Finding("syntax", "a goal is one atom, or several literals with commas", Span("goal", 2, 1, 2, 2))], text)
    body = parsed.rules[0].body
    if call := next((one for one in all_terms(parsed.rules[0]) if is_call(one) and not is_arithmetic(one)), None):
        hint = "ask for a relation whose rule has the call"
        raise ProgramError(
            [Finding("unsupported", "a goal is answered from what is there, and calls no domain", call.span, hint=hint)], text
        )
    if len(body) == 1 and isinstance(body[0], Atom):
        atom = body[0]
        fresh = (f"c{number}" for number in count(1) if f"c{number}" not in names(atom))
        args = (Variable(next(fresh), span=arg.span) if isinstance(arg, Wildcard) else arg for arg in atom.args)
        return (replace(atom, args=tuple(args)),)
    return body


def _asking(program: Program, rule: Rule, text: str) -> Program:
    """The declarations of a checked program, as if they had not been checked, and one rule."""
    answer = Declaration(rule.head.relation, ())
    plain = tuple(
        replace(declaration, attributes=tuple(replace(a, type=None) for a in declaration.attributes))
        for declaration in program.declarations
    )
    return Program(program.types, (*plain, answer), (), (rule,), {"goal": text}, aggregates=program.aggregates)


def _placed(findings: Sequence[Finding], text: str) -> list[Finding]:
    """What was found, with its place in the goal's own text."""
    lines = text.split("\n")
    inside = [finding for finding in findings if finding.span.line - 1 <= len(lines)]
    if not inside:
        end = Span("goal", len(lines), len(lines[-1]) + 1, len(lines), len(lines[-1]) + 2)
        return [Finding("syntax", "the goal ends too early", end, hint="close what is open, and end with a literal")]
    spans = [replace(f.span, line=f.span.line - 1, end_line=min(f.span.end_line - 1, len(lines))) for f in inside]
    return [replace(finding, span=span) for finding, span in zip(inside, spans, strict=True)]


def _attribute(variable: Variable) -> Attribute:
    return Attribute(variable.name, str(variable.type), variable.type)


def _example(program: Program) -> str:
    declaration = program.declarations[0] if program.declarations else None
    return f"{declaration.relation}({', '.join(declaration.columns)})" if declaration else 'closure("a", y)'


def _unused(name: str, program: Program) -> str:
    while name in program.relations:
        name += "_"
    return name
