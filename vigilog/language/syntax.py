"""The syntax tree. Every node is frozen, knows its place, and is equal to a node that reads the same.

A program as the user wrote it may have several heads, disjunctions and aggregates anywhere. After the passes in
`rewriting/` it is still a program of these classes, only plainer. Types are filled in by `types.elaborate`; they and
the places do not count for equality, so that `parse(print(program)) == program`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

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
