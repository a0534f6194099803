"""Frames to text, which parses to the same frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from vigilog.language.frames.syntax import (
    And,
    Attributes,
    Comparison,
    Computed,
    Elision,
    Formula,
    Formulas,
    Frame,
    Implies,
    Isa,
    Link,
    Member,
    Name,
    Not,
    Or,
    Path,
    Property,
    Quantified,
    Section,
    Target,
)
from vigilog.language.printer import show_term

_INDENT = "  "
_IMPLIES, _OR, _AND, _NOT, _LITERAL = range(5)  # from loosest to tightest


def show_frame(frame: Frame) -> str:
    parameters = ", ".join(f"{each.name}: {each.sort}" for each in frame.parameters)
    header = [frame.kind, f"{frame.name}({parameters})" if parameters else str(frame.name)]
    if frame.parents:
        header.append(f"isA {', '.join(map(str, frame.parents))}")
    if frame.source is not None:
        header.append(f"from {frame.source.relation}({frame.source.column})")
    if not frame.sections:
        return " ".join([*header, "end"])
    return "\n".join([" ".join([*header, "with"]), *_sections(frame.sections, _INDENT), "end"])


def _sections(sections: Iterable[Section | Elision], indent: str) -> Iterator[str]:
    inner = indent + _INDENT
    for section in sections:
        match section:
            case Elision():
                yield f"{indent}..."
            case Attributes():
                yield indent + ", ".join(["attribute", *section.modifiers])
                for part in section.properties:
                    yield from [f"{inner}..."] if isinstance(part, Elision) else _property(part, inner)
            case Formulas():
                yield indent + section.kind
                for entry in section.formulas:
                    label = "" if isinstance(entry, Elision) else f"{entry.label} " if entry.label else ""
                    yield f"{inner}..." if isinstance(entry, Elision) else f"{inner}{label}: {show_formula(entry.formula)}"
            case _:
                assert_never(section)


def _property(part: Property, indent: str) -> Iterator[str]:
    source = "" if part.source is None else f" from {part.source}"
    head = f"{indent}{part.label}: {show_target(part.target)}{source}"
    if part.subframe is None:
        yield head
    else:
        yield from [f"{head} with", *_sections(part.subframe, indent + _INDENT), f"{indent}end"]


def show_target(target: Target) -> str:
    match target:
        case Name():
            return str(target)
        case Path():
            return ".".join(map(str, target.labels))
        case Computed():
            return f"{target.op} of {target.of}"
        case _:
            assert_never(target)


def show_formula(formula: Formula) -> str:
    return "$...$" if isinstance(formula, Elision) else f"$ {_formula(formula)} $"


def _formula(formula: Formula, outer: int = 0, last: bool = True) -> str:
    """The formula; in parentheses if it binds less than `outer`, or reaches too far to the right."""
    text, level = _shown(formula, last)
    open_end = isinstance(formula, Quantified) and not last
    return f"({text})" if level < outer or open_end else text


def _shown(formula: Formula, last: bool) -> tuple[str, int]:
    match formula:
        case Member():
            return f"({show_term(formula.object)} in {formula.of})", _LITERAL
        case Isa():
            return f"({formula.narrow} isA {formula.wide})", _LITERAL
        case Link():
            path = ".".join(map(str, formula.path))
            return f"({show_term(formula.object)} {path} {show_term(formula.value)})", _LITERAL
        case Comparison():
            return f"({show_term(formula.left)} {formula.op} {show_term(formula.right)})", _LITERAL
        case Not():
            return f"not {_formula(formula.part, _NOT, last)}", _NOT
        case And():
            return _chain(formula.parts, " and ", _NOT, last), _AND
        case Or():
            return _chain(formula.parts, " or ", _AND, last), _OR
        case Implies():
            sign = "<==>" if formula.both else "==>"
            return f"{_formula(formula.left, _OR, False)} {sign} {_formula(formula.right, _IMPLIES, last)}", _IMPLIES
        case Quantified():
            word = "forall" if formula.every else "exists"
            bindings = " ".join(f"{', '.join(map(str, each.names))}/{each.sort}" for each in formula.bindings)
            return f"{word} {bindings} {_formula(formula.body, _IMPLIES, True)}", _NOT
        case Elision():
            return "...", _LITERAL
        case _:
            assert_never(formula)


def _chain(parts: tuple[Formula, ...], sign: str, level: int, last: bool) -> str:
    ends = [*[False] * (len(parts) - 1), last]
    return sign.join(_formula(part, level, end) for part, end in zip(parts, ends, strict=True))
