"""The syntax tree. Every node is frozen, knows its place, and is equal to a node that reads the same.

A program as the user wrote it may have several heads, disjunctions and aggregates anywhere. After the passes in
`rewriting/` it is still a program of these classes, only plainer. Types are filled in by `types.elaborate`; they and
the places do not count for equality, so that `parse(print(program)) == program`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import assert_never

from vigilog.core.spans import NOWHERE, Span
from vigilog.core.values import Type, Value
from vigilog.language.frames.syntax import Frame


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

    literal: Atom | Builtin
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Builtin:
    """A comparison (`=`, `<` …), a test (`match`, `contains`), `member`, or an aggregate over a set; a program's own has its definition."""

    op: str
    args: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    definition: Definition | None = field(default=None, compare=False, repr=False)


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


@dataclass(frozen=True)
class SetOf:
    """`setof(target, (body), result)`: for each binding of all variables of the body that are not the target's, the set of the target's values."""

    target: Term
    body: tuple[Literal, ...]
    result: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def own(self) -> set[str]:
        """The variables that the setof collects over. After `scope.py` nothing else has their names."""
        return names(self.target)


Term = Variable | Wildcard | Constant | Functor | Aggregate
Literal = Atom | Negation | Builtin | Truth | Disjunction | SetOf


@dataclass(frozen=True)
class Rule:
    """`heads :- body.`; a fact has an empty body. `origin` is the user's rule this one was derived from."""

    heads: tuple[Atom, ...]
    body: tuple[Literal, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    origin: Rule | None = field(default=None, compare=False, repr=False)
    frame: str = field(default="", compare=False, repr=False)  # the frame that says it, if one does

    @property
    def head(self) -> Atom:
        assert len(self.heads) == 1, "after normalization a rule has one head"
        return self.heads[0]

    @property
    def source(self) -> Rule:
        """The rule as the user wrote it."""
        return self.origin.source if self.origin else self

    def derive(self, *heads: Atom, body: tuple[Literal, ...]) -> Rule:
        return Rule(heads, body, self.span, origin=self)


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
    frame: str = field(default="", compare=False, repr=False)
    helper: bool = field(default=False, compare=False, repr=False)  # of a formula of a frame: nobody has named it
    args: tuple[str, ...] = ()  # of a constrained relation whose facts are told as texts: the columns that they are about,
    of: tuple[Type, ...] = ()  # and their types

    @cached_property
    def types(self) -> tuple[Type, ...]:
        types = tuple(attribute.type for attribute in self.attributes)
        assert all(types), "types are known after elaboration"
        return types  # type: ignore[return-value]  # asserted just now

    @cached_property
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
    """`.input r(key=value, …)` and its kin; `kind` is `input`, `output`, `printsize`, `limitsize`, `alert`, `constraint`, `trigger`, or `key`, whose options are columns."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    frame: str = field(default="", compare=False, repr=False)

    @cached_property
    def option(self) -> Mapping[str, str]:
        return dict(self.options)


@dataclass(frozen=True)
class Definition:
    """`.aggregate name(s: set<T>, r: R)` with its rules, or `python="module:Class"`. Its rules are gathered when a program is checked."""

    name: str
    attributes: tuple[Attribute, ...]
    python: str = ""
    rules: tuple[Rule, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    text: str = field(default="", repr=False)  # of the module of a Python class

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.attributes, self.python, self.rules, self.text))

    @cached_property
    def types(self) -> tuple[Type, ...]:
        types = tuple(attribute.type for attribute in self.attributes)
        assert all(types), "types are known after elaboration"
        return types  # type: ignore[return-value]  # asserted just now


@dataclass(frozen=True)
class Ignored:
    """A statement that is accepted and changes nothing, `.pragma` or `.plan`, as it is written."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Statement = TypeDefinition | Declaration | Directive | Definition | Ignored | Frame | Rule


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
        found: dict[str, Declaration] = {}
        for declaration in self.declarations:
            found.setdefault(declaration.relation, declaration)  # a second one is an error, which the first need not suffer for
        return found

    def with_rules(self, rules: tuple[Rule, ...]) -> Program:
        return replace(self, rules=rules)

    def directed(self, kind: str) -> tuple[Directive, ...]:
        return self._directed.get(kind, ())

    @cached_property
    def _directed(self) -> Mapping[str, tuple[Directive, ...]]:
        found: dict[str, list[Directive]] = {}
        for directive in self.directives:
            found.setdefault(directive.kind, []).append(directive)
        return {kind: tuple(directives) for kind, directives in found.items()}

    @cached_property
    def optional(self) -> Mapping[str, Mapping[str, str]]:
        """For each relation with optional columns the relations of these (`optional.py`)."""
        found: dict[str, dict[str, str]] = {}
        for directive in self.directed("input"):
            if "of" in directive.option and directive.relation in self.relations:
                found.setdefault(directive.option["of"], {})[self.relations[directive.relation].columns[-1]] = directive.relation
        return found

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
        found: dict[str, set[str]] = {}
        for rule in self.rules:
            read = {atom.relation for atom, _ in atoms(rule.body)}
            for head in rule.heads:
                found.setdefault(head.relation, set()).update(read)
        return {name: frozenset(read) for name, read in found.items()}

    @cached_property
    def limits(self) -> Mapping[str, int]:
        """At how many rows the recursion of a relation is to end, for those that say it."""
        return {directive.relation: int(directive.option["n"]) for directive in self.directed("limitsize")}

    @cached_property
    def constrained(self) -> frozenset[str]:
        """The relations that may hold facts that are not ground."""
        return frozenset(name for name, known in self.relations.items() if "constrained" in known.qualifiers)

    @cached_property
    def deferred(self) -> frozenset[str]:
        """The relations whose calls are made when they are asked for, and not before."""
        return frozenset(name for name, known in self.relations.items() if "deferred" in known.qualifiers)

    @cached_property
    def updatable(self) -> frozenset[str]:
        """The relations that have rules and may be told to, all the same."""
        return frozenset(name for name, known in self.relations.items() if "updatable" in known.qualifiers) - self.constrained

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The relations that are told: outputs, and constraints that only report."""
        reporting = (directive for directive in self.directed("constraint") if directive.option.get("mode") == "report")
        return tuple(dict.fromkeys(directive.relation for directive in (*self.directed("output"), *reporting)))


COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
TESTS = ("match", "contains")


@dataclass(frozen=True)
class Usage:
    """How a literal that binds is used: from what it computes, what it gives, and which component of tuples it takes, from 1."""

    given: tuple[Term, ...]
    results: tuple[Term, ...]
    component: Term | None = None


def usage(literal: Literal) -> Usage | None:
    """How `member`, or an aggregate over a set, binds; None for all other literals.

    >>> usage(Builtin("percentile", (Variable("s"), Constant(90), Variable("r"), Constant(2)))).results
    (Variable(name='r', type=None),)
    """
    match literal:
        case Builtin(op=op) if op in COMPARISONS or op in TESTS:
            return None
        case Builtin(definition=Definition(), args=(collected, *results)):
            return Usage((collected,), tuple(results))
        case Builtin(op="member", args=args):
            return Usage(args[1:2], args[:1])
        case Builtin(op=op, args=args):
            inputs = LIBRARY[op]
            return Usage(args[:inputs], args[inputs : inputs + 1], args[inputs + 1] if len(args) > inputs + 1 else None)
        case _:
            return None


# The aggregates over sets that every program has, with the number of arguments before the result; a component may stand behind it.
LIBRARY = {
    **dict.fromkeys(("count", "sum", "min", "max", "mean", "variance", "median", "mode", "any", "all"), 1),
    **dict.fromkeys(("percentile", "top", "concat"), 2),
}


def pattern(term: Term) -> set[str]:
    """The variables that get values if the term is known to equal a value: a variable, and those in tuples."""
    match term:
        case Variable():
            return {term.name}
        case Functor(name="()"):
            return set[str]().union(*map(pattern, term.args))
        case Functor() | Wildcard() | Constant() | Aggregate():
            return set()
        case _:
            assert_never(term)


def rigid(term: Term) -> Iterator[Term]:
    """The terms in a pattern that must have values before it can be compared: all but its variables."""
    match term:
        case Variable():
            pass
        case Functor(name="()"):
            for arg in term.args:
                yield from rigid(arg)
        case Functor() | Wildcard() | Constant() | Aggregate():
            yield term
        case _:
            assert_never(term)


def is_fact(rule: Rule) -> bool:
    """Whether a rule only states rows."""
    return not rule.body and all(isinstance(arg, Constant) for head in rule.heads for arg in head.args)


def terms(literal: Literal | Rule) -> Iterator[Term]:
    """The terms that stand directly in a literal or a rule, not those inside them."""
    match literal:
        case Atom() | Builtin():
            yield from literal.args
        case Negation():
            yield from terms(literal.literal)
        case Disjunction():
            for branch in literal.branches:
                for part in branch:
                    yield from terms(part)
        case SetOf():
            yield literal.target
            for part in literal.body:
                yield from terms(part)
            yield literal.result
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
    match part:
        case SetOf():
            own = part.own
            for inner in (part.target, *part.body, part.result):
                yield from (
                    found for found in variables(inner, into_aggregates=into_aggregates) if into_aggregates or found.name not in own
                )
        case Disjunction():
            for branch in part.branches:
                for inner in branch:
                    yield from variables(inner, into_aggregates=into_aggregates)
        case Rule():
            for inner in (*part.heads, *part.body):
                yield from variables(inner, into_aggregates=into_aggregates)
        case Atom() | Builtin() | Negation() | Truth():
            for root in terms(part):
                yield from variables(root, into_aggregates=into_aggregates)
        case Aggregate() if into_aggregates:
            if part.target is not None:
                yield from variables(part.target, into_aggregates=True)
            for literal in part.body:
                yield from variables(literal, into_aggregates=True)
        case Variable() | Wildcard() | Constant() | Functor() | Aggregate():
            for term in subterms(part):
                if isinstance(term, Variable):
                    yield term
                elif into_aggregates and isinstance(term, Aggregate):
                    yield from variables(term, into_aggregates=True)
        case _:
            assert_never(part)


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
            case SetOf():
                for atom, _ in atoms(literal.body):
                    yield atom, False
            case Builtin() | Truth():
                pass
            case _:
                assert_never(literal)
        if not isinstance(literal, Disjunction | SetOf):
            for aggregate in aggregates(literal):
                for atom, _ in atoms(aggregate.body):
                    yield atom, False


def constraints(body: tuple[Literal, ...]) -> Iterator[Builtin]:
    """The comparisons, tests and aggregates over sets of a body, negated or not, at any depth outside aggregates' own bodies."""
    for literal in body:
        match literal:
            case Builtin():
                yield literal
            case Negation():
                yield from constraints((literal.literal,))
            case Disjunction():
                for branch in literal.branches:
                    yield from constraints(branch)
            case SetOf():
                yield from constraints(literal.body)
            case Atom() | Truth():
                pass
            case _:
                assert_never(literal)


def definitions(rules: Iterable[Rule]) -> dict[str, Definition]:
    """The program's own aggregates that rules use, and those that these are defined by, each after what it needs."""
    found: dict[str, Definition] = {}
    for rule in rules:
        bodies = [rule.body, *(aggregate.body for aggregate in aggregates(rule))]
        for part in (part for body in bodies for part in constraints(body)):
            if part.definition is not None and part.op not in found and (not rule.heads or rule.heads[0].relation != part.op):
                found |= definitions(part.definition.rules)
                found[part.op] = part.definition
    return found


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
        case Atom() | Builtin():
            return replace(literal, args=tuple(map(change, literal.args)))
        case Negation():
            inner = map_terms(literal.literal, change)
            assert isinstance(inner, Atom | Builtin), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case Disjunction():
            return replace(literal, branches=tuple(tuple(map_terms(part, change) for part in branch) for branch in literal.branches))
        case SetOf():
            body = tuple(map_terms(part, change) for part in literal.body)
            return replace(literal, target=change(literal.target), body=body, result=change(literal.result))
        case Truth():
            return literal
        case _:
            assert_never(literal)
