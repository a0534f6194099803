"""Goals: what can be asked of a program.

A goal is an atom, or a body as a rule has it. Its answers are the atom's rows, or the values of the body's variables.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> program = check('.decl edge(x: symbol, y: symbol) .input edge').program
>>> goal = parse_goal(program, 'edge("a", y)')
>>> show_statement(goal.rule), goal.columns
('answer("a", y) :- edge("a", y).', ('x', 'y'))
>>> parse_goal(program, 'edge(x, y), !edge(y, x)').columns
('x', 'y')
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from vigilog.core.errors import Finding, ProgramError
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.syntax import Atom, Attribute, Declaration, Disjunction, Literal, Program, Rule, Variable, Wildcard, names, variables


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
    """The goal a text says, checked against a checked program. Raises ProgramError."""
    text = text.strip().removesuffix(".")
    parsed = parse(f"answer() :- {text}.", "goal")
    if len(parsed.rules) != 1 or parsed.declarations or parsed.directives or parsed.types:
        raise ProgramError([Finding("syntax", "a goal is one atom, or several literals with commas", parsed.rules[0].span)], parsed.text)
    name = _unused("answer", program)
    body = parsed.rules[0].body
    match body:
        case (Atom() as atom,) if atom.relation in program.relations and len(atom.args) == program.relations[atom.relation].arity:
            fresh = (f"c{number}" for number in count(1) if f"c{number}" not in names(atom))
            atom = replace(atom, args=tuple(Variable(next(fresh)) if isinstance(arg, Wildcard) else arg for arg in atom.args))
            head, body = replace(atom, relation=name), (atom,)
            attributes, relation = program.relations[atom.relation].attributes, atom.relation
        case _:
            relation = ""
            shown = list({variable.name: variable for literal in body for variable in variables(literal)}.values())
            head = Atom(name, tuple(shown))
            attributes = tuple(_attribute(program, variable, body, parsed.text) for variable in shown)
    declaration = Declaration(name, tuple(replace(attribute, type=None) for attribute in attributes))
    plain = tuple(replace(known, attributes=tuple(replace(a, type=None) for a in known.attributes)) for known in program.declarations)
    asked = Program(program.types, (*plain, declaration), (), (Rule((head,), body, parsed.rules[0].span),), "goal", parsed.text)
    checked = check(asked).program
    return Goal(checked.rules[0], checked.relations[name], relation)


def _attribute(program: Program, variable: Variable, body: tuple[Literal, ...], text: str) -> Attribute:
    """A column for a variable, of the type of the first column it stands in."""
    for atom in _atoms(body):
        for arg, attribute in zip(
            atom.args, program.relations[atom.relation].attributes if atom.relation in program.relations else (), strict=False
        ):
            if arg == variable:
                return Attribute(variable.name, attribute.type_name)
    known = [atom.relation for atom in _atoms(body)]
    if all(relation in program.relations for relation in known) and known:
        raise ProgramError(
            [Finding("type", f"the type of {variable.name} is not clear", variable.span, hint="let it stand in an atom")], text
        )
    return Attribute(variable.name, "symbol")  # the check that follows says what is wrong


def _atoms(body: tuple[Literal, ...]) -> list[Atom]:
    found = []
    for literal in body:
        if isinstance(literal, Atom):
            found.append(literal)
        elif isinstance(literal, Disjunction):
            found += [atom for branch in literal.branches for atom in _atoms(branch)]
    return found


def _unused(name: str, program: Program) -> str:
    while name in program.relations:
        name += "_"
    return name
