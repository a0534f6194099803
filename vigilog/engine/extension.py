"""What a program has beyond rows and rules: relations that may be told to although rules derive them, ground ones and constrained ones.

Tables hold the `ordinary` program, in which hidden relations remember what was told. Everybody else sees the program that is `shown`: there the facts of a constrained relation are texts, in one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.core.errors import Finding
from vigilog.core.values import SYMBOL
from vigilog.language.program import Program
from vigilog.language.syntax import Attribute, Declaration
from vigilog.mediators.program import Mediated, mediated
from vigilog.rewriting.program.updatable import UpdateRelations, updatable

WHERE = (Attribute("where", "symbol", SYMBOL),)


@dataclass(frozen=True)
class Extension:
    """`told` are the updatable relations, with those beside them; `mediated` is what there is of constrained ones."""

    shown: Program
    ordinary: Program
    told: Mapping[str, UpdateRelations] = field(default_factory=dict)
    mediated: Mediated | None = None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is doubtful in rules of constrained relations."""
        return self.mediated.warnings if self.mediated else ()

    @cached_property
    def hidden(self) -> frozenset[str]:
        """The base relations that no user names."""
        beside = {name for told in self.told.values() for name in (told.updates, told.inside, told.outside)}
        beside |= {name for call in self.shown.directed("call") for name in (call.relation, call.option["asked"])}
        return frozenset(beside) | (self.mediated.hidden if self.mediated else frozenset())

    @cached_property
    def updates(self) -> dict[str, str]:
        """For each relation that may be told to, the one that lists its updates."""
        return {name: told.updates for name, told in self.told.items()} | dict(self.mediated.updates if self.mediated else {})


def extended(program: Program) -> Extension:
    """A checked program, taken apart. Raises ProgramError if it says of constrained relations what cannot be."""
    program = _without_deferred(program)
    if not program.constrained and not program.updatable:
        return Extension(program, program)
    parts = mediated(program) if program.constrained else None
    ordinary, told = updatable(parts.ordinary if parts else program)
    texts = tuple(_as_texts(program.relations[name]) for name in program.relations if name in program.constrained)
    shown = replace(ordinary, declarations=(*ordinary.declarations, *texts), directives=program.directives)
    return Extension(shown, ordinary, told, parts)


def _without_deferred(program: Program) -> Program:
    """The program without relations that are only asked: tables hold nothing of them, and nobody follows them."""
    if not (late := program.deferred & {directive.relation for directive in program.directed("deferred")}):
        return program
    kept = tuple(one for one in program.directives if one.kind == "deferred" or one.relation not in late)
    return replace(program, declarations=tuple(one for one in program.declarations if one.relation not in late), directives=kept)


def _as_texts(declaration: Declaration) -> Declaration:
    return replace(declaration, attributes=WHERE, args=declaration.columns, of=declaration.types)
