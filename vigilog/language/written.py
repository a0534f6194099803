"""Programs as they were written: the texts they come from, and the places of their statements there.

A checked program is kept as it is printed, which is what it means. Beside that stand its texts and where in them each statement begins; so it can be read again with the places that its
users know, also if its statements come from several texts:

>>> from vigilog.language.check import check
>>> program = check("// all of them\\n.decl p(x: number) .output p\\n\\np(1).", "rules/all.dl").program
>>> again = read_again(*kept(program))
>>> again == program, str(program.rules[0].span), str(again.rules[0].span)
(True, 'rules/all.dl:4:1', 'all.dl:4:1')
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import PurePath
from typing import TypeVar

from vigilog.core.errors import ProgramError
from vigilog.language.check import check
from vigilog.language.frames.syntax import Frame
from vigilog.language.frames.translate import own
from vigilog.language.parser import parse
from vigilog.language.printer import show
from vigilog.language.program import Program
from vigilog.language.syntax import Declaration, Definition, Directive, Rule, Statement, TypeDefinition

NAME = "program"  # of a text that has no other

_Kind = TypeVar("_Kind", TypeDefinition, Declaration, Directive, Definition, Frame, Rule)


def written(program: Program) -> Program:
    """A program as its texts have it, before it was checked; one that was not written, but made, as it is printed."""
    modules = {definition.python: definition.text for definition in program.aggregates}
    try:
        unchecked = _selected(program.texts, [(part.span.file, part.span.line, part.span.column) for part in _statements(program)])
    except KeyError:
        unchecked = parse(show(program), NAME)
    return with_modules(unchecked, modules)


def kept(program: Program) -> tuple[str, str]:
    """A checked program as it is printed, and, as JSON, its texts and the places of its statements; no places if it was not written, but made.

    Texts are called by the last part of their names: where files were on a machine is nobody else's business.
    """
    places = [(base_name(part.span.file), part.span.line, part.span.column) for part in _statements(program)]
    named = {file for file, _, _ in places}
    texts = {name: text for name, text in ((base_name(name), text) for name, text in program.texts.items()) if name in named}
    modules = {definition.python: definition.text for definition in program.aggregates if definition.text}
    whole = texts.keys() == named
    record = {"texts": texts if whole else {}, "places": places if whole else [], **({"modules": modules} if modules else {})}
    return show(program), json.dumps(record) if whole or modules else ""


def base_name(name: str) -> str:
    return PurePath(name).name or NAME


@lru_cache(maxsize=16)
def read_again(printed: str, places: str) -> Program:
    """The checked program that is printed like this, with its places. Without them, or if they are those of another program, its places are those in what is printed."""
    record = json.loads(places) if places else {}
    modules = record.get("modules", {})
    if record.get("places"):
        try:
            program = check(with_modules(_selected(record["texts"], [tuple(place) for place in record["places"]]), modules)).program
            if show(program) == printed:
                return program
        except (ProgramError, KeyError):  # it was written for another version of the language; what is printed counts
            pass
    return check(with_modules(parse(printed, NAME), modules)).program


def with_modules(program: Program, modules: Mapping[str, str]) -> Program:
    """The program whose Python classes are those of modules with these texts, where they are known."""
    definitions = (replace(definition, text=definition.text or modules.get(definition.python, "")) for definition in program.aggregates)
    return replace(program, aggregates=tuple(definitions))


def making_room(program: Program, name: str) -> Program:
    """A program none of whose texts is kept by the name that this one will have: an earlier one is `name#1`, `name#2`, …

    >>> from vigilog.language.check import check
    >>> list(making_room(check(".decl p(x: number)", "more.dl").program, "rules/more.dl").texts)
    ['more.dl#1']
    """
    old = base_name(name)
    new = next(other for number in count(1) if (other := f"{old}#{number}") not in program.texts)

    def moved(parts: tuple[_Kind, ...]) -> tuple[_Kind, ...]:
        return tuple(replace(part, span=replace(part.span, file=new)) if part.span.file == old else part for part in parts)

    defined = tuple(replace(definition, rules=moved(definition.rules)) for definition in moved(program.aggregates))
    texts = {new if name == old else name: text for name, text in program.texts.items()}
    return Program(
        moved(program.types),
        moved(program.declarations),
        moved(program.directives),
        moved(program.rules),
        texts,
        aggregates=defined,
        frames=moved(program.frames),
    )


def _selected(texts: Mapping[str, str], places: list[tuple[str, int, int]]) -> Program:
    """The statements at some places of texts."""
    by_place = {name: {(part.span.line, part.span.column): part for part in _statements(parse(text, name))} for name, text in texts.items()}
    statements = [by_place[file][line, column] for file, line, column in places]

    def of(kind: type[_Kind]) -> tuple[_Kind, ...]:
        return tuple(part for part in statements if isinstance(part, kind))

    return Program(of(TypeDefinition), of(Declaration), of(Directive), of(Rule), texts, aggregates=of(Definition), frames=of(Frame))


def _statements(program: Program) -> tuple[Statement, ...]:
    """What a program itself says; what its frames say stands there."""
    defined: list[Statement] = []
    for definition in program.aggregates:
        defined += [definition, *definition.rules]
    return *program.types, *own(program.declarations), *own(program.directives), *defined, *program.frames, *own(program.rules)
