"""Changes of a program while it runs: what is defined anew, what is dropped."""

from __future__ import annotations

from dataclasses import replace
from difflib import ndiff

from vigilog.core.errors import DataError, ProgramError
from vigilog.engine.evaluate import ensure_known
from vigilog.language.calls import without_idle_calls
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.program import Program
from vigilog.language.strata import dependencies
from vigilog.language.syntax import Directive
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
    framed = {frame.name.text for frame in new.frames}
    directed = {_about(directive) for directive in new.directives}
    return replace(
        program,
        types=(*(old for old in program.types if old.name not in types), *new.types),
        declarations=(*(old for old in program.declarations if old.relation not in new.relations), *new.declarations),
        directives=(*(old for old in program.directives if _about(old) not in directed), *new.directives),
        rules=(*(rule for rule in program.rules if not any(head.relation in heads for head in rule.heads)), *new.rules),
        frames=(*(old for old in program.frames if old.name.text not in framed), *new.frames),
        texts={**program.texts, **new.texts},
        aggregates=(*(old for old in program.aggregates if old.name not in {each.name for each in new.aggregates}), *new.aggregates),
    )


def _about(directive: Directive) -> tuple[str, ...]:
    """What a directive takes the place of: another of its kind on the same relation; an alert, one of its name; a trigger, one that does the same."""
    options = directive.option
    if directive.kind == "trigger":
        return directive.kind, directive.relation, *sorted(f"{key}={value}" for key, value in options.items() if key != "priority")
    return directive.kind, directive.relation, options.get("name", directive.relation) if directive.kind == "alert" else ""


def dropped(program: Program, name: str) -> Program:
    """The program without a relation and its rules, or without a frame and all that it says. Raises DataError if others are derived from it."""
    ensure_known(program, name)
    if any(frame.name.text == name for frame in program.frames):
        return _without_frame(program, name)
    if program.relations[name].frame:
        raise DataError(f"{name} belongs to the frame {program.relations[name].frame}; drop or define that", "needed")
    rules = tuple(rule for rule in program.rules if all(head.relation != name for head in rule.heads))
    reading = sorted({rule.heads[0].relation for rule in rules if any(atom.relation == name for atom, _ in dependencies(rule))})
    if reading:
        are, them = ("is", "it") if len(reading) == 1 else ("are", "them")
        raise DataError(f"{', '.join(reading)} {are} derived from {name}; drop or redefine {them} first", "needed")
    left = replace(
        program,
        declarations=tuple(old for old in program.declarations if old.relation != name),
        directives=tuple(old for old in program.directives if old.relation != name),
        rules=rules,
    )
    return without_idle_calls(left)


def _without_frame(program: Program, name: str) -> Program:
    """The program without the frames of a name, if what is left still makes sense."""
    left = replace(written(program), frames=tuple(frame for frame in program.frames if frame.name.text != name))
    try:
        return check(left).program
    except ProgramError as trouble:
        reading = "; ".join(f"{finding.span}: {finding.message}" for finding in trouble.findings)
        raise DataError(f"{name} is needed: {reading}", "needed") from None


def changed_statements(old: str, new: str) -> str:
    """What is not in both of two programs, a line for each statement.

    >>> print(changed_statements("p(x) :- q(x).\\nq(1).", "p(x) :- q(x), x > 2.\\nq(1)."))
    - p(x) :- q(x).
    + p(x) :- q(x), x > 2.
    """
    return "\n".join(line for line in ndiff(old.splitlines(), new.splitlines()) if line[0] in "+-")
