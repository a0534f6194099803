"""Changes of a program while it runs: what is defined anew, what is dropped."""

from __future__ import annotations

from dataclasses import replace
from difflib import ndiff

from vigilog.core.errors import DataError
from vigilog.engine.evaluate import ensure_known
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.strata import dependencies
from vigilog.language.syntax import Program
from vigilog.language.written import making_room, written


def defined(program: Program, text: str, name: str = "definition") -> Program:
    """The program with what a text declares and defines; the rules of relations that it has rules for are replaced, others stay.

    >>> from vigilog.language.printer import show
    >>> old = check(".decl q(x: number) .decl p(x: number) .output p p(x) :- q(x), x > 1.").program
    >>> print(show(defined(old, "p(x) :- q(x), x > 2.")))
    .decl q(x: number)
    .decl p(x: number)
    .output p
    p(x) :- q(x), x > 2.

    What is wrong is told at its place in the text, which has a `name`, or in the texts that the program was written in.
    """
    return check(_together(written(making_room(program, name)), parse(text, name))).program


def _together(program: Program, new: Program) -> Program:
    heads = {head.relation for rule in new.rules for head in rule.heads}
    types = {definition.name for definition in new.types}
    directed = {(directive.kind, directive.relation) for directive in new.directives}
    return replace(
        program,
        types=(*(old for old in program.types if old.name not in types), *new.types),
        declarations=(*(old for old in program.declarations if old.relation not in new.relations), *new.declarations),
        directives=(*(old for old in program.directives if (old.kind, old.relation) not in directed), *new.directives),
        rules=(*(rule for rule in program.rules if not any(head.relation in heads for head in rule.heads)), *new.rules),
        texts={**program.texts, **new.texts},
    )


def dropped(program: Program, name: str) -> Program:
    """The program without a relation and its rules. Raises DataError if others are derived from it."""
    ensure_known(program, name)
    rules = tuple(rule for rule in program.rules if all(head.relation != name for head in rule.heads))
    reading = sorted({rule.heads[0].relation for rule in rules if any(atom.relation == name for atom, _ in dependencies(rule))})
    if reading:
        are, them = ("is", "it") if len(reading) == 1 else ("are", "them")
        raise DataError(f"{', '.join(reading)} {are} derived from {name}; drop or redefine {them} first", "needed")
    return replace(
        program,
        declarations=tuple(old for old in program.declarations if old.relation != name),
        directives=tuple(old for old in program.directives if old.relation != name),
        rules=rules,
    )


def changed_statements(old: str, new: str) -> str:
    """What is not in both of two programs, a line for each statement.

    >>> print(changed_statements("p(x) :- q(x).\\nq(1).", "p(x) :- q(x), x > 2.\\nq(1)."))
    - p(x) :- q(x).
    + p(x) :- q(x), x > 2.
    """
    return "\n".join(line for line in ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-")
