"""The syntax tree. Every node is frozen, knows its place, and is equal to a node that reads the same.

A program as the user wrote it may have several heads, disjunctions and aggregates anywhere. After the passes in
`rewriting/` it is still a program of these classes, only plainer. Types are filled in by `types.elaborate`; they and
the places do not count for equality, so that `parse(print(program)) == program`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from vigilog.core.spans import NOWHERE, Span
from vigilog.core.values import Type, Value


@dataclass(frozen=True)
class Variable:
    name: str
    type: Type | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Wildcard:
    type: Type | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Constant:
    """A constant. Before types are known, `value` is as written (text for a date); afterwards it is of its type."""

    value: Value
    type: Type | None = field(default=None, compare=False)
    unsigned: bool = field(default=False, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Functor:
    """A computed term: an operator (`+`, `band`; unary minus is `neg`) or a named functor (`cat`)."""

    name: str
    args: tuple[Term, ...]
    type: Type | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Aggregate:
    """`op target : { body }`; `count` has no target."""

    op: str
    target: Term | None
    body: tuple[Literal, ...]
    type: Type | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Atom:
    relation: str
    args: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Negation:
    """`!atom` or `!test`; the parser moves every other negation inwards."""

    literal: Atom | Constraint
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Constraint:
    """A comparison (`=`, `<` …) or a test (`match`, `contains`)."""

    op: str
    args: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Truth:
    value: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Disjunction:
    """`(a, b ; c)`: each branch is a conjunction. There are always two branches or more. Those known to be `apart` have no binding in common."""

    branches: tuple[tuple[Literal, ...], ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    apart: bool = field(default=False, compare=False, repr=False)


Term = Variable | Wildcard | Constant | Functor | Aggregate
Literal = Atom | Negation | Constraint | Truth | Disjunction


@dataclass(frozen=True)
class Rule:
    """`heads :- body.`; a fact has an empty body. `origin` is the user's rule this one was derived from."""

    heads: tuple[Atom, ...]
    body: tuple[Literal, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    origin: Rule | None = field(default=None, compare=False, repr=False)

    @property
    def head(self) -> Atom:
        assert len(self.heads) == 1, "after normalization a rule has one head"
        return self.heads[0]

    @property
    def source(self) -> Rule:
        """The rule as the user wrote it."""
        return self.origin.source if self.origin else self

    def derive(self, *heads: Atom, body: tuple[Literal, ...]) -> Rule:
        return Rule(heads, body, self.span, self)


@dataclass(frozen=True)
class Attribute:
    name: str
    type_name: str
    type: Type | None = field(default=None, compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Declaration:
    relation: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @cached_property
    def types(self) -> tuple[Type, ...]:
        types = tuple(attribute.type for attribute in self.attributes)
        assert all(types), "types are known after elaboration"
        return types  # type: ignore[return-value]  # asserted just now

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def arity(self) -> int:
        return len(self.attributes)


@dataclass(frozen=True)
class TypeDefinition:
    """`.type name <: parent`, or `.type name = member | member`."""

    name: str
    members: tuple[str, ...]
    subtype: bool
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Directive:
    """`.input r(key=value, …)` and its kin; `kind` is `input`, `output`, `printsize`, `limitsize`, or `key`, whose options are columns."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @cached_property
    def option(self) -> Mapping[str, str]:
        return dict(self.options)


@dataclass(frozen=True)
class Ignored:
    """A statement that is accepted and changes nothing, `.pragma` or `.plan`, as it is written."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Statement = TypeDefinition | Declaration | Directive | Ignored | Rule


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

    @cached_property
    def relations(self) -> Mapping[str, Declaration]:
        found: dict[str, Declaration] = {}
        for declaration in self.declarations:
            found.setdefault(declaration.relation, declaration)  # a second one is an error, which the first need not suffer for
        return found

    def with_rules(self, rules: tuple[Rule, ...]) -> Program:
        return replace(self, rules=rules)

    def directed(self, kind: str) -> tuple[Directive, ...]:
        return tuple(directive for directive in self.directives if directive.kind == kind)

    @cached_property
    def keys(self) -> Mapping[str, tuple[int, ...]]:
        """The columns by which a relation's rows are told apart, for those that have a key."""
        return {
            directive.relation: tuple(self.relations[directive.relation].columns.index(column) for column, _ in directive.options)
            for directive in self.directed("key")
            if directive.relation in self.relations
        }

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """At how many rows the recursion of a relation is to end, for those that say it."""
        return {directive.relation: int(directive.option["n"]) for directive in self.directed("limitsize")}

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(directive.relation for directive in self.directed("output")))


def is_fact(rule: Rule) -> bool:
    """Whether a rule only states rows."""
    return not rule.body and all(isinstance(arg, Constant) for head in rule.heads for arg in head.args)


def terms(literal: Literal | Rule) -> Iterator[Term]:
    """The terms that stand directly in a literal or a rule, not those inside them."""
    match literal:
        case Atom() | Constraint():
            yield from literal.args
        case Negation():
            yield from terms(literal.literal)
        case Disjunction():
            for branch in literal.branches:
                for part in branch:
                    yield from terms(part)
        case Rule():
            for part in (*literal.heads, *literal.body):
                yield from terms(part)
        case Truth():
            pass
        case _:
            assert_never(literal)


def subterms(term: Term, *, into_aggregates: bool = False) -> Iterator[Term]:
    """The term and all terms inside it; an aggregate's own scope only if asked for."""
    yield term
    match term:
        case Variable() | Wildcard() | Constant():
            pass
        case Functor():
            for arg in term.args:
                yield from subterms(arg, into_aggregates=into_aggregates)
        case Aggregate():
            if into_aggregates and term.target is not None:
                yield from subterms(term.target, into_aggregates=True)
            for literal in term.body if into_aggregates else ():
                for inner in terms(literal):
                    yield from subterms(inner, into_aggregates=True)
        case _:
            assert_never(term)


def variables(part: Term | Literal | Rule, *, into_aggregates: bool = False) -> Iterator[Variable]:
    """Every occurrence of a variable in the scope of a term, literal or rule."""
    roots = [part] if isinstance(part, Term) else terms(part)
    for root in roots:
        for term in subterms(root, into_aggregates=into_aggregates):
            if isinstance(term, Variable):
                yield term


def names(part: Term | Literal | Rule, *, into_aggregates: bool = False) -> set[str]:
    return {variable.name for variable in variables(part, into_aggregates=into_aggregates)}


def aggregates(part: Term | Literal | Rule) -> Iterator[Aggregate]:
    """The aggregates of a scope, not those nested in other aggregates."""
    roots = [part] if isinstance(part, Term) else terms(part)
    for root in roots:
        for term in subterms(root):
            if isinstance(term, Aggregate):
                yield term


def atoms(literals: tuple[Literal, ...]) -> Iterator[tuple[Atom, bool]]:
    """Every atom of a body with its sign: True if a change of it can only add. Aggregates' atoms count as negative."""
    for literal in literals:
        match literal:
            case Atom():
                yield literal, True
            case Negation():
                for atom, _ in atoms((literal.literal,)):
                    yield atom, False
            case Disjunction():
                for branch in literal.branches:
                    yield from atoms(branch)
            case Constraint() | Truth():
                pass
            case _:
                assert_never(literal)
        if not isinstance(literal, Disjunction):
            for aggregate in aggregates(literal):
                for atom, _ in atoms(aggregate.body):
                    yield atom, False


def rename(term: Term, bindings: Mapping[str, Term]) -> Term:
    """The term with variables replaced, in its own scope and in its aggregates'."""
    match term:
        case Variable():
            return bindings.get(term.name, term)
        case Functor():
            return replace(term, args=tuple(rename(arg, bindings) for arg in term.args))
        case Aggregate():
            target = None if term.target is None else rename(term.target, bindings)
            return replace(term, target=target, body=tuple(rename_literal(part, bindings) for part in term.body))
        case Wildcard() | Constant():
            return term
        case _:
            assert_never(term)


def rename_literal(literal: Literal, bindings: Mapping[str, Term]) -> Literal:
    return map_terms(literal, lambda term: rename(term, bindings))


def map_terms(literal: Literal, change: Callable[[Term], Term]) -> Literal:
    """The literal with each term that stands directly in it changed."""
    match literal:
        case Atom() | Constraint():
            return replace(literal, args=tuple(map(change, literal.args)))
        case Negation():
            inner = map_terms(literal.literal, change)
            assert isinstance(inner, Atom | Constraint), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case Disjunction():
            return replace(literal, branches=tuple(tuple(map_terms(part, change) for part in branch) for branch in literal.branches))
        case Truth():
            return literal
        case _:
            assert_never(literal)
