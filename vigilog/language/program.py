"""A program: the statements of a text by their kinds, and what directives and qualifiers say of its relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.language.frames.syntax import Frame
from vigilog.language.parts import atoms
from vigilog.language.syntax import Declaration, Definition, Directive, Ignored, Rule, TypeDefinition


@dataclass(frozen=True)
class Program:
    types: tuple[TypeDefinition, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    directives: tuple[Directive, ...] = ()
    rules: tuple[Rule, ...] = ()
    texts: Mapping[str, str] = field(
        default_factory=dict, compare=False, repr=False
    )  # what it was written in, by the names that places have
    ignored: tuple[Ignored, ...] = ()
    aggregates: tuple[Definition, ...] = ()
    frames: tuple[Frame, ...] = ()  # what they become is among the other parts, marked as theirs, once a program is checked

    @cached_property
    def relations(self) -> Mapping[str, Declaration]:
        by_name: dict[str, Declaration] = {}
        for declaration in self.declarations:
            by_name.setdefault(declaration.relation, declaration)  # a second one is an error, which the first need not suffer for
        return by_name

    def with_rules(self, rules: tuple[Rule, ...]) -> Program:
        return replace(self, rules=rules)

    def directed(self, kind: str) -> tuple[Directive, ...]:
        return self._directed.get(kind, ())

    @cached_property
    def _directed(self) -> Mapping[str, tuple[Directive, ...]]:
        by_kind: dict[str, list[Directive]] = {}
        for directive in self.directives:
            by_kind.setdefault(directive.kind, []).append(directive)
        return {kind: tuple(directives) for kind, directives in by_kind.items()}

    @cached_property
    def optional(self) -> Mapping[str, Mapping[str, str]]:
        """For each relation with optional columns the relations of these (`optional.py`)."""
        by_owner: dict[str, dict[str, str]] = {}
        for directive in self.directed("input"):
            if "of" in directive.option and directive.relation in self.relations:
                by_owner.setdefault(directive.option["of"], {})[self.relations[directive.relation].columns[-1]] = directive.relation
        return by_owner

    @cached_property
    def keys(self) -> Mapping[str, tuple[int, ...]]:
        """The columns by which a relation's rows are told apart, for those that have a key."""
        return {
            directive.relation: tuple(self.relations[directive.relation].columns.index(column) for column, _ in directive.options)
            for directive in self.directed("key")
            if directive.relation in self.relations
        }

    @cached_property
    def reads(self) -> Mapping[str, frozenset[str]]:
        """The relations that the rules of each derived relation read."""
        by_head: dict[str, set[str]] = {}
        for rule in self.rules:
            read = {atom.relation for atom, _ in atoms(rule.body)}
            for head in rule.heads:
                by_head.setdefault(head.relation, set()).update(read)
        return {name: frozenset(read) for name, read in by_head.items()}

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """At how many rows the recursion of a relation is to end, for those that say it."""
        return {directive.relation: int(directive.option["n"]) for directive in self.directed("limitsize")}

    @cached_property
    def constrained(self) -> frozenset[str]:
        """The relations that may hold facts that are not ground."""
        return frozenset(name for name, declaration in self.relations.items() if "constrained" in declaration.qualifiers)

    @cached_property
    def deferred(self) -> frozenset[str]:
        """The relations whose calls are made when they are asked for, and not before."""
        return frozenset(name for name, declaration in self.relations.items() if "deferred" in declaration.qualifiers)

    @cached_property
    def updatable(self) -> frozenset[str]:
        """The relations that have rules and may be told to, all the same."""
        return frozenset(name for name, declaration in self.relations.items() if "updatable" in declaration.qualifiers) - self.constrained

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The relations that are told: outputs, and constraints that only report."""
        reporting = (directive for directive in self.directed("constraint") if directive.option.get("mode") == "report")
        return tuple(dict.fromkeys(directive.relation for directive in (*self.directed("output"), *reporting)))
