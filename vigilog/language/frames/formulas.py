"""Formulas to the bodies of rules.

`forall` is no counterexample, and what is negated as a whole is a relation of its own, so every body is safe and stratified if its frames are.
A variable over a class takes its objects; one over values must get them from a literal: otherwise it is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from vigilog.core.errors import did_you_mean
from vigilog.core.spans import Span
from vigilog.language.frames import syntax
from vigilog.language.frames.schema import Link, Schema
from vigilog.language.frames.syntax import And, Comparison, Elision, Formula, Implies, Isa, Member, Name, Not, Or, Quantified
from vigilog.language.parts import names
from vigilog.language.syntax import Atom, Builtin, Constant, Disjunction, Functor, Literal, Negation, SetOf, Term, Truth, Variable

OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
Body = tuple[Literal, ...]


@dataclass(frozen=True)
class Bound:
    """A variable of a formula: what stands for it in rules, and its sort; `implied` if what surrounds the formula says that it is of this sort."""

    variable: Variable
    sort: str
    span: Span


@dataclass(frozen=True)
class Helper:
    """A relation that a formula needs, with its columns and the body of its rule."""

    relation: str
    columns: tuple[Bound, ...]
    body: Body
    span: Span


@dataclass
class Formulas:
    """Turns the formulas of one rule into literals. `helpers` are the relations that they need beside."""

    schema: Schema
    name: str  # of the relation whose rule this is, which names the helpers
    taken: set[str]  # names of relations
    helpers: list[Helper] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # names of variables
    inner: bool = False  # whether it is of a subframe
    values: dict[str, tuple[str, Span]] = field(default_factory=dict)  # variables over values, by the names they have in rules

    def __post_init__(self) -> None:
        self.errors_before = len(self.schema.findings.errors)

    def bind(self, name: Name, sort: str, shown: str | None = None) -> Bound:
        fresh = (shown or name.text).replace("~", "")
        while fresh in self.used:
            fresh += "_"
        self.used.add(fresh)
        if not self.schema.known(sort):
            self.values[fresh] = name.text, name.span
        return Bound(Variable(fresh, span=name.span), sort, name.span)

    def members(self, bounds: Iterable[Bound]) -> Body:
        """The literals that say of variables over classes which objects they take."""
        return tuple(Atom(each.sort, (each.variable,), each.span) for each in bounds if self.schema.known(each.sort))

    # -- formulas

    def holds(self, formula: Formula, scope: Mapping[str, Bound], context: Body = ()) -> Body:
        """Literals that hold where the formula does; `context` are literals beside it, which give values to its variables."""
        match formula:
            case Member():
                return (self._member(formula, scope),)
            case Isa():
                return (self._isa(formula),)
            case syntax.Link():
                return self._path(formula, scope)
            case Comparison():
                return (self._comparison(formula, formula.op, scope),)
            case Not():
                return self.fails(formula.part, scope, context)
            case And():
                return self._all(formula.parts, scope, context)
            case Or():
                return self._any(formula.parts, scope, context, formula.span)
            case Implies(both=False):
                return self._any((Not(formula.left), formula.right), scope, context, formula.span)
            case Implies():
                one, other = Implies(formula.left, formula.right), Implies(formula.right, formula.left)
                return (*self.holds(one, scope, context), *self.holds(other, scope, context))
            case Quantified(every=False):
                return self._some(formula, formula.body, scope, context)
            case Quantified():
                return (self._none(formula, Not(formula.body), scope, context),)
            case Elision():
                return ()
            case _:
                assert_never(formula)

    def fails(self, formula: Formula, scope: Mapping[str, Bound], context: Body = ()) -> Body:
        """Literals that hold where the formula does not."""
        match formula:
            case Member():
                return (Negation(self._member(formula, scope), formula.span),)
            case Isa():
                return (Truth(not self._isa(formula).value, formula.span),)
            case syntax.Link():
                return self._no_link(formula, scope, context)
            case Comparison():
                return (self._comparison(formula, OPPOSITE[formula.op], scope),)
            case Not():
                return self.holds(formula.part, scope, context)
            case And():
                return self._any(tuple(map(Not, formula.parts)), scope, context, formula.span)
            case Or():
                return self._all(tuple(map(Not, formula.parts)), scope, context)
            case Implies(both=False):
                return self._all((formula.left, Not(formula.right)), scope, context)
            case Implies():
                ways = And((formula.left, Not(formula.right))), And((formula.right, Not(formula.left)))
                return self._any(ways, scope, context, formula.span)
            case Quantified(every=True):
                return self._some(formula, Not(formula.body), scope, context)
            case Quantified():
                return (self._none(formula, formula.body, scope, context),)
            case Elision():
                return (Truth(False, formula.span),)
            case _:
                assert_never(formula)

    def _all(self, parts: Sequence[Formula], scope: Mapping[str, Bound], context: Body) -> Body:
        """A conjunction. What needs helpers comes last, so that the others can give it values."""
        made: dict[int, Body] = {}
        for late in (False, True):
            for place, part in enumerate(parts):
                if _denies(part) is late:
                    giving = tuple(literal for body in made.values() for literal in body if _gives(literal))
                    made[place] = self.holds(part, scope, (*context, *giving))
        return tuple(literal for place in range(len(parts)) for literal in made[place])

    def _any(self, parts: Sequence[Formula], scope: Mapping[str, Bound], context: Body, span: Span) -> Body:
        branches = [self.holds(part, scope, context) for part in parts]
        if any(not branch for branch in branches):
            return ()
        return (Disjunction(tuple(branches), span),) if len(branches) > 1 else branches[0]

    def quantify(self, formula: Quantified, scope: Mapping[str, Bound]) -> tuple[dict[str, Bound], list[Bound]]:
        inner, new = dict(scope), []
        for binding in formula.bindings:
            sort = self.schema.sort(binding.sort)
            if sort in self.schema.views and self.schema.views[sort].parameters:
                self.schema.findings.error("frame", f"{sort} has parameters, so it is no sort", binding.sort.span)
            for name in binding.names:
                inner[name.text] = self.bind(name, sort or "symbol")
                new.append(inner[name.text])
        return inner, new

    def _some(self, formula: Quantified, body: Formula, scope: Mapping[str, Bound], context: Body) -> Body:
        inner, new = self.quantify(formula, scope)
        members = self.members(new)
        return (*members, *self.holds(body, inner, (*context, *members)))

    def _none(self, formula: Quantified, body: Formula, scope: Mapping[str, Bound], context: Body) -> Literal:
        return self._deny(self._some(formula, body, scope, context), scope, context, formula.span)

    def _deny(self, body: Body, scope: Mapping[str, Bound], context: Body, span: Span) -> Literal:
        """That a body has no solution: the negation of a relation that holds where it has one."""
        inside = {name for literal in body for name in names(literal)}
        free = tuple(each for each in dict.fromkeys(scope.values()) if each.variable.name in inside)
        given = self.members(free)
        rest = tuple(literal for literal in body if literal not in given)
        if not {each.variable.name for each in free} <= bound((*given, *rest)):
            given = (*given, *(literal for literal in context if literal not in given and literal not in rest))
        columns = free
        relation = self._helper_name()
        self.helpers.append(Helper(relation, columns, (*given, *rest), span))
        return Negation(Atom(relation, tuple(each.variable for each in columns), span), span)

    def _helper_name(self) -> str:
        number = 1
        while f"{self.name}_case{number}" in self.taken:
            number += 1
        self.taken.add(f"{self.name}_case{number}")
        return f"{self.name}_case{number}"

    # -- literals

    def _member(self, formula: Member, scope: Mapping[str, Bound]) -> Atom:
        if not self.schema.known(formula.of.text):
            if formula.of.text in scope:
                self._refuse_variable("classes", formula.of)
            else:
                hint = did_you_mean(formula.of.text, [*self.schema.classes, *self.schema.views])
                self.schema.findings.error("unknown-class", f"there is no class {formula.of}", formula.of.span, hint=hint)
        elif formula.of.text in self.schema.views and self.schema.views[formula.of.text].parameters:
            self.schema.findings.error("frame", f"{formula.of} has parameters, so it cannot be asked here", formula.of.span)
        return Atom(formula.of.text, (self.term(formula.object, scope),), formula.span)

    def _isa(self, formula: Isa) -> Truth:
        for name in (formula.narrow, formula.wide):
            if not self.schema.known(name.text):
                hint = did_you_mean(name.text, [*self.schema.classes, *self.schema.views])
                rule = "isA is said of classes by their names; there are no variables over classes"
                self.schema.findings.error("unknown-class", f"there is no class {name}", name.span, rule=rule, hint=hint)
                return Truth(False, formula.span)
        return Truth(self.schema.below(formula.narrow.text, formula.wide.text), formula.span)

    def _refuse_variable(self, over: str, name: Name) -> None:
        rule = "a class and an attribute are named; variables are over objects and values"
        self.schema.findings.error("unsupported", f"{name} is a variable over {over}, which formulas do not have", name.span, rule=rule)

    def _comparison(self, formula: Comparison, op: str, scope: Mapping[str, Bound]) -> Builtin:
        return Builtin(op, (self.term(formula.left, scope), self.term(formula.right, scope)), formula.span)

    def _path(self, formula: syntax.Link, scope: Mapping[str, Bound]) -> Body:
        literals: list[Literal] = []
        start: Term = self.term(formula.object, scope)
        sort = self._sort(formula.object, scope)
        for place, label in enumerate(formula.path):
            link = self.resolve(sort, label, scope)
            if link is None:
                return ()
            if place == len(formula.path) - 1:
                end, target = self.term(formula.value, scope), self._sort(formula.value, scope)
            else:
                step = self.bind(Name("z", label.span), link.sort)
                end, target = step.variable, None
            literals += self.along(link, start, sort, end, target, formula.span)
            start, sort = end, link.sort
        return tuple(literals)

    def along(self, link: Link, start: Term, sort: str | None, end: Term, target: str | None, span: Span) -> Body:
        """That a link is seen: it is there, and both its ends are what the attribute says, unless their sorts say so already."""
        literals: list[Literal] = []
        if sort is None or not self.schema.below(sort, link.owner):
            literals.append(Atom(link.owner, (start,), span))
        literals.append(Atom(link.relation, (start, end), span))
        if self.schema.known(link.sort) and not (target is not None and self.schema.known(target) and self.schema.below(target, link.sort)):
            literals.append(Atom(link.sort, (end,), span))
        return tuple(literals)

    def _no_link(self, formula: syntax.Link, scope: Mapping[str, Bound], context: Body) -> Body:
        body = self._path(formula, scope)
        if len(formula.path) > 1:
            return (self._deny(body, scope, context, formula.span),)
        denied = tuple((Negation(literal, formula.span),) for literal in body if isinstance(literal, Atom))
        return (Disjunction(denied, formula.span),) if len(denied) > 1 else denied[0] if denied else ()

    def resolve(self, sort: str | None, label: Name, scope: Mapping[str, Bound]) -> Link | None:
        """The attribute that a label names, for objects of a sort; an error if there is none."""
        findings = self.schema.findings
        if sort is None:
            among = self.schema.declaring(label.text)
            if len(among) > 1:
                classes = " and ".join(sorted(link.relation.removesuffix(f"_{label}") for link in among))
                findings.error(
                    "unknown-attribute", f"{classes} declare {label}, so a quoted object does not tell which is meant", label.span
                )
                return None
            attribute = among[0] if among else None
        else:
            attribute = self.schema.link(sort, label.text) if self.schema.known(sort) else None
        if attribute is None and label.text in scope:
            self._refuse_variable("attributes", label)
        elif attribute is None:
            of = f"{sort} has" if sort else "there is"
            labels = self.schema.labels(sort) if sort and self.schema.known(sort) else []
            hint = did_you_mean(label.text, labels) or (f"its attributes are {', '.join(labels)}" if labels else "")
            findings.error("unknown-attribute", f"{of} no attribute {label}", label.span, hint=hint)
        return attribute

    def _sort(self, term: Term, scope: Mapping[str, Bound]) -> str | None:
        return scope[term.name].sort if isinstance(term, Variable) and term.name in scope else None

    def term(self, term: Term, scope: Mapping[str, Bound]) -> Term:
        match term:
            case Variable():
                if term.name not in scope:
                    self._unknown(term, scope)
                    return term
                return replace(scope[term.name].variable, span=term.span)
            case Functor():
                return replace(term, args=tuple(self.term(arg, scope) for arg in term.args))
            case _:
                assert isinstance(term, Constant), "terms of formulas are variables, constants and computed from them"
                return term

    def _unknown(self, term: Variable, scope: Mapping[str, Bound]) -> None:
        if self.inner and (term.name == "~this" or not did_you_mean(term.name, scope)):
            rule = "in a subframe, this is the object of the subframe; it knows nothing of the objects that lead to it"
            hint = "let a rule of the class derive an attribute for what it needs of an outer object: rule : $ … ==> (this attribute …) $"
            self.schema.findings.error("unknown-variable", f"{term.name} is quantified nowhere", term.span, rule=rule, hint=hint)
            return
        if term.name.startswith("~"):
            parameters = [name for name in scope if name.startswith("~")]
            hint = did_you_mean(term.name, parameters) or "parameters stand behind the name of a view: View Name(boss: Manager) …"
            self.schema.findings.error("unknown-variable", f"there is no parameter {term.name}", term.span, hint=hint)
            return
        rule = "a bare name is a variable, or this; an object is a text in quotes"
        hint = did_you_mean(term.name, scope) or f'write "{term.name}", or quantify it: exists {term.name}/Class …'
        self.schema.findings.error("unknown-variable", f"{term.name} is quantified nowhere", term.span, rule=rule, hint=hint)

    # -- safety

    def check_restricted(self, heads: Iterable[str], body: Body) -> None:
        """Refuses, by name, variables over values that get none; not where a literal that could give them values is wrong itself."""
        if len(self.schema.findings.errors) > self.errors_before:
            return
        told: set[str] = set()
        for name in [*unrestricted(body), *(name for name in heads if name not in bound(body))]:
            if name in self.values and name not in told:
                told.add(name)
                shown, span = self.values[name]
                rule = "a variable over a class takes its objects; one over values takes those that a literal like (x salary s) gives it, in each alternative"
                hint = f"say where {shown} comes from: (x attribute {shown}) and …"
                self.schema.findings.error("unrestricted", f"{shown} has no values to take", span, rule=rule, hint=hint)


def _denies(formula: Formula) -> bool:
    """Whether a formula may need a helper, and gives no values itself."""
    match formula:
        case Not() | Quantified(every=True) | Implies() | Or():
            return True
        case And(parts=parts):
            return any(map(_denies, parts))
        case Quantified(body=body):
            return _denies(body)
        case Member() | Isa() | syntax.Link() | Comparison() | Elision():
            return False
        case _:
            assert_never(formula)


def _gives(literal: Literal) -> bool:
    return isinstance(literal, Atom) or (isinstance(literal, Builtin) and literal.op == "=")


def bound(body: Body) -> set[str]:
    """The variables to which a conjunction gives values."""
    variables: set[str] = set()
    while True:
        before = len(variables)
        for literal in body:
            match literal:
                case Atom():
                    variables |= {arg.name for arg in literal.args if isinstance(arg, Variable)}
                case Builtin(op="=", args=(left, right)):
                    for one, other in ((left, right), (right, left)):
                        if isinstance(one, Variable) and names(other) <= variables:
                            variables.add(one.name)
                case Disjunction():
                    branches = [bound((*(Atom("", (Variable(name),)) for name in variables), *branch)) for branch in literal.branches]
                    variables |= set.intersection(*branches)
                case Builtin() | Negation() | Truth() | SetOf():
                    pass  # formulas have no sets
                case _:
                    assert_never(literal)
        if len(variables) == before:
            return variables


def unrestricted(body: Body, around: frozenset[str] = frozenset()) -> Iterator[str]:
    """The variables of a conjunction that are compared, or negated, without values."""
    restricted = around | bound((*(Atom("", (Variable(name),)) for name in around), *body))
    for literal in body:
        match literal:
            case Builtin() | Negation():
                yield from sorted(names(literal) - restricted)
            case Disjunction():
                for branch in literal.branches:
                    yield from unrestricted(branch, frozenset(restricted))
            case Atom() | Truth() | SetOf():
                pass
            case _:
                assert_never(literal)
