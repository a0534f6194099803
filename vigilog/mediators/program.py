"""A program with constrained relations, taken apart: what SQL evaluates, and the clauses of this package.

The rules of constrained relations become clauses. What is ordinary in their bodies (atoms of other relations, what is negated or aggregated there, what is computed of their values) becomes a relation of its own,
whose rows the clause reads as facts. Ordinary rules read boxes in the place of constrained relations (`boxes.py`). What is said to a constrained relation is a row of its *updates*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import assert_never

from vigilog.core.errors import Finding, Findings
from vigilog.core.runs import Runs, axis
from vigilog.core.values import BOOLEAN, NUMBER, SYMBOL, Type
from vigilog.language import syntax
from vigilog.language.parts import aggregates, map_terms, names, variables
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by, needs
from vigilog.language.strata import components
from vigilog.mediators import boxes
from vigilog.mediators.clauses import Clause, pattern
from vigilog.mediators.conditions import said
from vigilog.mediators.forms import NotLinear
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.normalize import normalize

UPDATES = (
    syntax.Attribute("id", "number", NUMBER),
    syntax.Attribute("tx", "number", NUMBER),
    syntax.Attribute("insert", "boolean", BOOLEAN),
    syntax.Attribute("region", "symbol", SYMBOL),
)


@dataclass(frozen=True)
class Mediated:
    """`ordinary` is the program for SQL. For each constrained relation: `updates` names the relation of its updates, `inside` and `outside` those of its boxes, if ordinary rules read them."""

    program: Program
    ordinary: Program
    clauses: tuple[Clause, ...]
    updates: Mapping[str, str]
    inside: Mapping[str, str]
    outside: Mapping[str, str]
    warnings: tuple[Finding, ...] = ()

    @cached_property
    def read(self) -> frozenset[str]:
        """The ordinary relations that clauses read."""
        return frozenset(part.relation for clause in self.clauses for part in clause.body) - self.program.constrained

    @property
    def hidden(self) -> frozenset[str]:
        """The base relations that no user names."""
        return frozenset([*self.updates.values(), *self.inside.values(), *self.outside.values()])

    def columns(self, relation: str) -> dict[str, Type]:
        declaration = self.program.relations[relation]
        return dict(zip(declaration.columns, declaration.types, strict=True))

    def all_of(self, relation: str) -> dict[str, Runs]:
        return {column: axis(type_).all for column, type_ in self.columns(relation).items()}


def mediated(program: Program) -> Mediated:
    """Takes a checked program apart. Raises ProgramError if its constrained rules say what conditions cannot."""
    return _Taken(program).apart()


class _Taken:
    def __init__(self, program: Program) -> None:
        self.program, self.constrained = program, program.constrained
        self.names, self.findings, self.numbers = Naming(program.relations), Findings(), count(1)
        self.declarations: list[syntax.Declaration] = []
        self.rules: list[syntax.Rule] = []
        self.inside: dict[str, str] = {}
        self.outside: dict[str, str] = {}

    def apart(self) -> Mediated:
        program = self.program
        asking = {call.option["demand"] for call in program.directed("call")}
        written = (rule for rule in program.rules if rule.heads[0].relation not in asking)
        places = {id(rule.source): number for number, rule in enumerate(written, 1)}
        mine = tuple(rule for rule in program.rules if any(head.relation in self.constrained for head in rule.heads))
        self._check(mine)
        clauses = [self._clause(rule, places[id(rule.source)]) for rule in normalize(program.with_rules(mine)).rules]
        for rule in program.rules:
            if not any(head.relation in self.constrained for head in rule.heads):
                self.rules.append(replace(rule, body=self._read(rule.body)))
        updates = {name: self.names(name, "updates") for name in sorted(self.constrained)}
        self.declarations += [syntax.Declaration(name, UPDATES) for name in updates.values()]
        self.findings.raise_errors(program.texts)
        directives = tuple(one for one in program.directives if one.relation not in self.constrained)
        kept = tuple(one for one in program.declarations if one.relation not in self.constrained)
        hidden = [*updates.values(), *self.inside.values(), *self.outside.values()]
        given = tuple(syntax.Directive("input", name) for name in hidden)
        ordinary = replace(program, declarations=(*kept, *self.declarations), directives=(*directives, *given), rules=tuple(self.rules))
        numbered = tuple(replace(clause, place=index) for index, clause in enumerate(taken for taken in clauses if taken is not None))
        return Mediated(program, ordinary, numbered, updates, self.inside, self.outside, tuple(self.findings.warnings))

    # -- what is refused

    def _check(self, mine: Iterable[syntax.Rule]) -> None:
        for rule in mine:
            if not all(head.relation in self.constrained for head in rule.heads):
                self._refuse(rule, "this rule has a constrained head and one that is not", "write two rules")
            for literal in rule.body:
                if (
                    isinstance(literal, syntax.Negation)
                    and isinstance(literal.literal, syntax.Atom)
                    and literal.literal.relation in self.constrained
                ):
                    self._refuse(
                        rule,
                        f"a rule of a constrained relation negates {literal.literal.relation}, which is constrained",
                        "say what holds instead, as a condition",
                    )
        for component in components(self.program):
            inside = [name for name in component.relations if name in self.constrained]
            if component.recursive and inside and len(inside) < len(component.relations):
                other = next(name for name in component.relations if name not in self.constrained)
                rule = component.rules[0]
                self._refuse(
                    rule,
                    f"{inside[0]} is constrained and depends on {other}, which is not and depends on {inside[0]}",
                    f"declare {other} constrained, too",
                )
        for name in sorted(self.constrained):
            for attribute in self.program.relations[name].attributes:
                if attribute.type is not None and attribute.type.kind in ("set", "tuple"):
                    message = f"{name} is constrained, and has a column of type {attribute.type}"
                    self.findings.error("unsupported", message, attribute.span, hint="conditions compare single values; take the elements")
        for directive in self.program.directed("input"):
            if directive.relation in self.constrained:
                hint = f"declare a relation for the rows, and write {directive.relation}(…) :- that relation"
                self.findings.items.append(
                    Finding("unsupported", f"{directive.relation} is constrained, and has no .input", directive.span, hint=hint)
                )

    def _refuse(self, rule: syntax.Rule, message: str, hint: str) -> None:
        self.findings.error("unsupported", message, rule.span, hint=hint)

    # -- rules of constrained relations

    def _clause(self, rule: syntax.Rule, number: int) -> Clause | None:
        rule = self._without_wildcards(rule)
        mine = [part for part in rule.body if isinstance(part, syntax.Atom) and part.relation in self.constrained]
        others = [part for part in rule.body if part not in mine]
        ordinary = self._ordinary(others)
        conditions = [part for part in others if part not in ordinary]
        body = [pattern(atom, self.program.relations[atom.relation].columns) for atom in mine]
        if ordinary:
            wanted = names(rule.head).union(*map(names, mine), *map(names, conditions))
            typed = {one.name: one for part in rule.body for one in variables(part)} | {one.name: one for one in variables(rule.head)}
            shared = [typed[name] for name in sorted(wanted & set[str]().union(*map(names, ordinary)))]
            name = self.names.fresh(f"{rule.head.relation}_body")
            self.declarations.append(
                syntax.Declaration(name, tuple(syntax.Attribute(one.name, str(one.type), one.type) for one in shared), (), rule.span)
            )
            atom = syntax.Atom(name, tuple(shared))
            self.rules.append(rule.derive(atom, body=self._read(tuple(ordinary))))
            body.insert(0, pattern(atom, tuple(one.name for one in shared)))
        constraints = []
        for literal in conditions:
            try:
                constraints += said(literal)
            except NotLinear as reason:
                hint = "bind its variables by atoms of ordinary relations, or say it by =, !=, order and linear arithmetic"
                self.findings.error("unsupported", f"a condition of {rule.head.relation} {reason}", literal.span, hint=hint)
        by_name = {one.name: one for part in (*rule.heads, *mine, *conditions) for one in variables(part)}
        for arg in body[0].args if ordinary else ():
            by_name.setdefault(arg.name, arg) if isinstance(arg, syntax.Variable) else None
        values = {name: axis(one.type).all for name, one in by_name.items() if one.type is not None}
        head = pattern(rule.head, self.program.relations[rule.head.relation].columns)
        clause = Clause(number, head, tuple(body), tuple(constraints), values, rule)
        if constraints and clause.start is None:
            message = f"the conditions of this rule of {rule.head.relation} contradict each other, so it gives nothing"
            self.findings.warn("unsolvable", message, rule.span)
        return clause

    def _ordinary(self, literals: Collection[syntax.Literal]) -> list[syntax.Literal]:
        """What SQL can say: atoms, what is negated or aggregated, and what concerns their variables alone."""
        atoms_ = [part for part in literals if isinstance(part, syntax.Atom)]
        if not atoms_ and not any(isinstance(part, syntax.Negation) or any(aggregates(part)) for part in literals):
            return []
        scope = set[str]().union(*map(names, literals))
        plain = tuple(part for part in literals if isinstance(part, syntax.Atom) or (isinstance(part, syntax.Builtin) and part.op == "="))
        grounded = grounded_by(plain, set(), scope)
        return [
            part
            for part in literals
            if isinstance(part, syntax.Atom | syntax.Negation) or any(aggregates(part)) or _needs(part, scope) <= grounded
        ]

    def _without_wildcards(self, rule: syntax.Rule) -> syntax.Rule:
        fresh = count(1)

        def named(term: syntax.Term) -> syntax.Term:
            return syntax.Variable(f"_any{next(fresh)}", term.type) if isinstance(term, syntax.Wildcard) else term

        body = tuple(
            map_terms(part, named) if isinstance(part, syntax.Atom) and part.relation in self.constrained else part for part in rule.body
        )
        return replace(rule, body=body)

    # -- ordinary rules

    def _read(self, body: tuple[syntax.Literal, ...]) -> tuple[syntax.Literal, ...]:
        """The body with boxes in the place of constrained atoms, in its aggregates, too."""
        return tuple(part for literal in body for part in self._boxed(literal))

    def _boxed(self, literal: syntax.Literal) -> Iterable[syntax.Literal]:
        match literal:
            case syntax.Atom(relation=relation) if relation in self.constrained:
                return self._box(literal, self.inside, "box")
            case syntax.Negation(literal=syntax.Atom(relation=relation) as atom) if relation in self.constrained:
                return self._box(atom, self.outside, "outside")
            case syntax.Disjunction():
                return [replace(literal, branches=tuple(map(self._read, literal.branches)))]
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.SetOf():
                return [map_terms(literal, self._term)] if any(aggregates(literal)) else [literal]
            case _:
                assert_never(literal)

    def _box(self, atom: syntax.Atom, box_names: dict[str, str], word: str) -> Iterable[syntax.Literal]:
        declaration = self.program.relations[atom.relation]
        if atom.relation not in box_names:
            box_names[atom.relation] = self.names(atom.relation, word)
            self.declarations.append(boxes.declared(declaration, box_names[atom.relation]))
        return boxes.reading(box_names[atom.relation], declaration, atom.args, next(self.numbers), atom.span)

    def _term(self, term: syntax.Term) -> syntax.Term:
        match term:
            case syntax.Aggregate():
                return replace(term, body=self._read(term.body))
            case syntax.Functor():
                return replace(term, args=tuple(map(self._term, term.args)))
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term


def _needs(literal: syntax.Literal, scope: set[str]) -> set[str]:
    return (
        set[str]().union(*(needs(term, scope) for term in getattr(literal, "args", ()))) if isinstance(literal, syntax.Builtin) else set()
    )
