"""Leaves out what the wanted relations do not need.

>>> from vigilog.language.parser import parse
>>> program = parse(".decl a(x:number) .decl b(x:number) .decl c(x:number) b(x) :- a(x). c(x) :- a(x).")
>>> [rule.head.relation for rule in relevant(program, ["b"]).rules]
['b']
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from vigilog.language.program import Program
from vigilog.language.strata import dependencies
from vigilog.language.syntax import Rule


def relevant(program: Program, wanted: Iterable[str]) -> Program:
    """The plain program without rules and relations that no wanted relation depends on."""
    rules: dict[str, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).append(rule)
    needed = set(wanted)
    queue = list(needed)
    for relation in queue:
        for rule in rules.get(relation, ()):
            new = {atom.relation for atom, _ in dependencies(rule)} - needed
            needed |= new
            queue.extend(sorted(new))
    return replace(
        program,
        declarations=tuple(declaration for declaration in program.declarations if declaration.relation in needed),
        directives=tuple(directive for directive in program.directives if directive.relation in needed),
        rules=tuple(rule for rule in program.rules if rule.head.relation in needed),
    )
