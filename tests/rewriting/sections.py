"""Reads printed sections again and evaluates them by the reference, phase after phase."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from vigilog import reference
from vigilog.core.delta import Delta
from vigilog.language.check import check
from vigilog.language.program import Program
from vigilog.rewriting.naming import Naming

Rows = dict[str, set[tuple[Any, ...]]]

_HEADING = re.compile(r"// (.*?)(?:, rank (\d+))?")


@dataclass(frozen=True)
class Printed:
    """A section of a printed text: checked, so that it is known to parse, to be safe and to be stratified."""

    title: str
    rank: int
    program: Program
    lines: tuple[str, ...]


def read_sections(text: str) -> list[Printed]:
    """The sections of a text, each read together with the declarations it needs; comments without rules are none."""
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    declarations = [line for line in blocks[0] if not line.startswith("//")]
    defined = [line for line in declarations if not line.startswith(".decl ")]
    assert not defined or defined[0].startswith(".aggregate "), "declarations come first, then definitions"
    declarations = [line for line in declarations if line.startswith(".decl ")]
    found = []
    for heading, *lines in blocks[1:]:
        match = _HEADING.fullmatch(heading)
        assert match, heading
        if lines and not all(line.startswith("//") for line in lines):
            used = set(re.findall(r"\w+(?=\()", " ".join(lines)))
            needed = [line for line in declarations if re.findall(r"\w+", line)[1] in used]
            program = check("\n".join([*needed, *defined, *lines])).program
            found.append(Printed(match[1], int(match[2] or 0), program, tuple(lines)))
    return found


def evaluate(sections: Iterable[Printed], given: Mapping[str, Iterable[tuple[Any, ...]]]) -> Rows:
    """All relations after all sections. Those of one title run together: whenever one of lower rank has something to do, it goes first."""
    state: Rows = {name: set(rows) for name, rows in given.items()}
    for _, phase in groupby(sections, key=lambda section: section.title):
        ranked = sorted(phase, key=lambda section: section.rank)
        while any(_grows(section.program, state) for section in ranked):
            pass
    return state


def _grows(program: Program, state: Rows) -> bool:
    found = reference.evaluate(program, state)
    grown = any(rows - state.get(name, set()) for name, rows in found.items())
    state.update(found)
    return grown


def with_changes(base: Rows, changes: Mapping[str, Delta], naming: Naming) -> Rows:
    """The old rows of base relations and their net changes."""
    found = dict(base)
    for name in base:
        delta = changes.get(name, Delta())
        found |= {naming(name, "del"): set(delta.minus), naming(name, "ins"): set(delta.plus)}
    return found


def told(state: Rows, views: Iterable[str], naming: Naming) -> dict[str, Delta]:
    """The changes that sections found of some views."""
    return {view: Delta(frozenset(state.get(naming(view, "plus"), ())), frozenset(state.get(naming(view, "minus"), ()))) for view in views}
