"""Deferred relations (W_P, section 4 of the paper): their atoms are kept with their calls unsolved, and solved when they are asked for.

So a change inside a source needs no maintenance, and the next question sees it. What is kept is the part of each rule beside its calls, an ordinary view; the rest is a small program over its rows, which is opened to answer, asks
its sources as they are now, and is forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from vigilog.core.values import Row
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.language.syntax import Declaration


class Atoms(Protocol):
    """A database that has the atoms."""

    def view(self, name: str) -> set[Row]: ...


def deferred_program(whole: Program, declared: Mapping[str, Declaration]) -> Program | None:
    """The rules of deferred relations, over the relations of their atoms; None if there are none."""
    directives = [one for one in whole.directed("deferred") if one.relation in declared]
    if not directives:
        return None
    wanted = {name for one in directives for name in (one.relation, one.option["atoms"])}
    lines = [show_statement(declaration) for name, declaration in declared.items() if name in wanted]
    lines += [show_statement(type_) for type_ in whole.types]
    lines += [show_statement(one) for one in whole.directives if one.kind in ("domain", "table", "function")]
    lines += dict.fromkeys(one.option["rule"] for one in directives)
    return check(parse("\n".join(lines).replace(" deferred\n", "\n"), "deferred")).program


def atoms_of(program: Program) -> Collection[str]:
    """The relations of atoms."""
    derived = {head.relation for rule in program.rules for head in rule.heads}
    hidden = {name for call in program.directed("call") for name in (call.relation, call.option["asked"])}
    return [name for name in program.relations if name not in derived and name not in hidden]
