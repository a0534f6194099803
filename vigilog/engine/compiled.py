"""A program as transactions see it: what is base, what is derived, how each view is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from vigilog.core.errors import Finding, ProgramError
from vigilog.core.values import Row
from vigilog.language.printer import show_statement
from vigilog.language.strata import components
from vigilog.language.syntax import Constant, Declaration, Program, atoms, is_fact
from vigilog.rewriting.maintenance.plan import Plan, plan
from vigilog.rewriting.maintenance.strategies.choose import Decision, decide, kept_relations
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.separate import as_maintained


@dataclass(frozen=True)
class Compiled:
    """`program` is as written, less the rows that it states, which are `stated`. `plain` is what is maintained; in it a base relation's rows are at `homes`."""

    program: Program
    stated: Mapping[str, set[Row]]
    homes: Mapping[str, str]
    plain: Program
    wanted: str  # the strategy that is wished for
    strategies: dict[str, Decision]
    watched: frozenset[str] = frozenset()  # relations whose changes judges want to see

    @property
    def told(self) -> tuple[str, ...]:
        """The relations whose changes are found: the program's outputs, and what is watched besides."""
        outputs = self.program.outputs
        return (*outputs, *sorted(name for name in self.watched if name in self.plain.relations and name not in outputs))

    @cached_property
    def plan(self) -> Plan:
        """What is kept, and how it changes."""
        return plan(self.plain, self.told, kept_relations(self.plain, self.strategies))

    @property
    def stored(self) -> Collection[str]:
        return self.plan.kept.keys()

    def watching(self, relations: Collection[str]) -> Compiled:
        """The same program, of which judges want to see the changes of these relations."""
        made = replace(self, watched=frozenset(relations))
        return replace(made, strategies=decide(self.plain, made.told, self.wanted) | self.strategies)

    def with_strategies(self, changed: Mapping[str, Decision]) -> Compiled:
        return replace(self, strategies={**self.strategies, **changed})

    def fingerprints(self) -> dict[str, str]:
        """For each relation of the plain program what tells its meaning, and how it is kept, from any other: equal ones have equal rows over equal bases."""
        kept, relations = self.plan.kept, self.plain.relations
        derived = components(self.plain)
        inside = {name for component in derived for name in component.relations}
        found = {name: _digest(name, relations[name], []) for name in relations if name not in inside}
        for component in derived:
            below = sorted({atom.relation for rule in component.rules for atom, _ in atoms(rule.body)} - set(component.relations))
            parts = sorted(show_statement(rule) for rule in component.rules) + [found[name] for name in below]
            for name in component.relations:
                found[name] = _digest(name, relations[name], [kept[name].name if name in kept else "", *parts])
        for name, declaration in self.plan.beside.items():
            found[name] = _digest(
                name, declaration, [found[other] for other, parts in self.plan.counting.counted.items() if parts.numbers == name]
            )
        return found


def compiled(program: Program, given: Collection[str], strategy: str, watched: Collection[str] = ()) -> Compiled:
    """Prepares a checked program; the relations in `given` have rows of their own, whatever the program says. Of those `watched` judges want to see the changes."""
    ensure_maintained(program)
    bare = program.with_rules(tuple(rule for rule in program.rules if not is_fact(rule)))
    separated, homes = as_maintained(program, given)
    plain = rewrite(separated)
    made = Compiled(bare, _stated(program), homes, plain, strategy, decide(plain, bare.outputs, strategy))
    return made.watching(watched)


def ensure_maintained(program: Program) -> None:
    """Raises ProgramError if a checked program says what is for a single evaluation only."""
    rule = "a recursion that is cut off is no view that could be kept as rows change, or asked"
    hint = "bound the recursion by its rules (x < 100)"
    findings = [
        Finding("unsupported", f".limitsize {directive.relation} is for vigilog run alone", directive.span, rule=rule, hint=hint)
        for directive in program.directed("limitsize")
    ]
    if findings:
        raise ProgramError(findings, program.texts)


def _digest(name: str, declaration: Declaration, parts: list[str]) -> str:
    columns = [f"{column}: {type_}" for column, type_ in zip(declaration.columns, declaration.types, strict=True)]
    return hashlib.sha256("\n".join([name, *columns, *parts]).encode()).hexdigest()[:16]


def _stated(program: Program) -> dict[str, set[Row]]:
    """The rows that the program itself states."""
    found: dict[str, set[Row]] = {}
    for rule in program.rules:
        for head in rule.heads if is_fact(rule) else ():
            found.setdefault(head.relation, set()).add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
    return found
