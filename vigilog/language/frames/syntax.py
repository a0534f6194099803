"""The syntax tree of frames. Like every node of a program, one knows its place and is equal to another that reads the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from vigilog.core.spans import NOWHERE, Span

if TYPE_CHECKING:
    from vigilog.language.syntax import Constant, Term, Variable

Kind = Literal["class", "view"]


@dataclass(frozen=True)
class Name:
    """A name with its place: of a class, a view, a label, a sort."""

    text: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Elision:
    """`...`: something that the writer left out. Where a formula should stand it is true."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


# -- formulas


@dataclass(frozen=True)
class Member:
    """`(x in C)`."""

    object: Variable | Constant
    of: Name
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Isa:
    """`(c isA d)`, of classes: true or false once the frames are known."""

    narrow: Name
    wide: Name
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Link:
    """`(x m y)`, or along a path `(x m.n y)`."""

    object: Variable | Constant
    path: tuple[Name, ...]
    value: Variable | Constant
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Comparison:
    op: str
    left: Term
    right: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Not:
    part: Formula
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class And:
    parts: tuple[Formula, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Or:
    parts: tuple[Formula, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Implies:
    """`a ==> b`; if `both`, `a <==> b`."""

    left: Formula
    right: Formula
    both: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Binding:
    """`s1, s2/Integer`."""

    names: tuple[Name, ...]
    sort: Name


@dataclass(frozen=True)
class Quantified:
    every: bool  # forall, else exists
    bindings: tuple[Binding, ...]
    body: Formula
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Formula = Member | Isa | Link | Comparison | Not | And | Or | Implies | Quantified | Elision


# -- frames


@dataclass(frozen=True)
class Path:
    """`dept.head`: a computed attribute."""

    labels: tuple[Name, ...]


@dataclass(frozen=True)
class Computed:
    """`count of members`."""

    op: str
    of: Name


Target = Name | Path | Computed


@dataclass(frozen=True)
class Property:
    label: Name
    target: Target
    source: Name | None = None  # the column that a class reads it from
    subframe: tuple[Section | Elision, ...] | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    opened: Span = field(default=NOWHERE, compare=False, repr=False)  # the `with` of its subframe


@dataclass(frozen=True)
class Labelled:
    label: str
    formula: Formula
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Attributes:
    modifiers: tuple[str, ...]
    properties: tuple[Property | Elision, ...]


@dataclass(frozen=True)
class Formulas:
    kind: Literal["rule", "constraint"]
    formulas: tuple[Labelled | Elision, ...]


Section = Attributes | Formulas


@dataclass(frozen=True)
class Parameter:
    name: Name
    sort: Name


@dataclass(frozen=True)
class Overlay:
    """`from employees(id)`: the relation that a class is laid over, and the column of its objects."""

    relation: Name
    column: Name


@dataclass(frozen=True)
class Frame:
    kind: Kind
    name: Name
    parameters: tuple[Parameter, ...] = ()
    parents: tuple[Name, ...] = ()
    source: Overlay | None = None
    sections: tuple[Section | Elision, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)
