"""Frames to declarations, directives and rules, and from there on nothing is new.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> program = check("class C with attribute d: D end class D end view V isA C with attribute d: D end").program
>>> for rule in program.rules[:2]:
...     print(show_statement(rule))
V(x) :- C(x).
V_d(x, y) :- V(x), C_d(x, y), D(y).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypeVar

from vigilog.core.errors import Findings
from vigilog.core.spans import Span
from vigilog.language.frames import syntax
from vigilog.language.frames.formulas import Body, Bound, Formulas
from vigilog.language.frames.schema import Class, Link, Schema, schema, table_column
from vigilog.language.frames.syntax import And, Formula, Implies, Labelled, Member, Name, Quantified
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Attribute, Builtin, Declaration, Directive, Negation, Rule, Variable, Wildcard
from vigilog.protocol.shapes import Part, Shape

_Part = TypeVar("_Part", Declaration, Directive, Rule)

X, Y = Variable("x"), Variable("y")
THIS = "this"


@dataclass
class Parts:
    """What frames become, as it is collected."""

    schema: Schema
    declarations: list[Declaration] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    owners: dict[str, Span] = field(default_factory=dict)

    def declare(self, frame: str, relation: str, columns: list[tuple[str, str]], span: Span) -> None:
        """Declares a relation that has its name by right: it gives way to none."""
        user = self.schema.program.relations.get(relation)
        if user is not None or relation in self.owners:
            other = user.span if user is not None else self.owners[relation]
            rule = f"frames give names to relations: of {frame} this one; the other {relation} is at {other}"
            self.schema.findings.error("duplicate", f"there are two relations {relation}", span, rule=rule, hint="rename one of the two")
            return
        self.owners[relation] = span
        self.taken.add(relation)
        self._declare(frame, relation, columns, span)

    def _declare(self, frame: str, relation: str, columns: list[tuple[str, str]], span: Span, *, helper: bool = False) -> None:
        attributes = tuple(Attribute(name, type_, span=span) for name, type_ in columns)
        self.declarations.append(Declaration(relation, attributes, (), span, frame, helper))

    def direct(self, frame: str, kind: str, relation: str, span: Span, *options: tuple[str, str]) -> None:
        if kind != "output" and any(
            directive.kind == kind and directive.relation == relation for directive in self.schema.program.directives
        ):
            return  # the user's own says more
        self.directives.append(Directive(kind, relation, options, span, frame))

    def rule(self, frame: str, head: Atom, body: Body, span: Span, formulas: Formulas | None = None) -> None:
        """A rule, and before it the helpers that its formulas need."""
        if formulas is not None:
            formulas.check_restricted([arg.name for arg in head.args if isinstance(arg, Variable)], body)
            for helper in formulas.helpers:
                columns = [(each.variable.name, self.schema.type(each.sort)) for each in helper.columns]
                formulas.check_restricted([name for name, _ in columns], helper.body)
                self._declare(frame, helper.relation, columns, helper.span, helper=True)
                variables = tuple(each.variable for each in helper.columns)
                self.rules.append(Rule((Atom(helper.relation, variables, helper.span),), helper.body, helper.span, frame=frame))
            formulas.helpers.clear()
        self.rules.append(Rule((replace(head, span=span),), body, span, frame=frame))

    def formulas(self, name: str) -> Formulas:
        return Formulas(self.schema, name, self.taken)


def translate(program: Program, findings: Findings) -> Program:
    """The program with what its frames say among its other parts, marked as theirs."""
    if not program.frames:
        return program
    parts = _parts(program, findings)
    return replace(
        program,
        declarations=(*own(program.declarations), *parts.declarations),
        directives=(*own(program.directives), *parts.directives),
        rules=(*own(program.rules), *parts.rules),
    )


def shapes(program: Program) -> dict[str, Shape]:
    """The structure of each view frame of a checked program. Types that have names of their own are told as what they are."""
    structures = _parts(program, Findings()).shapes if program.frames else {}
    return {name: replace(shape, parameters=_typed(program, shape), parts=_plain(program, shape)) for name, shape in structures.items()}


def _typed(program: Program, shape: Shape) -> tuple[tuple[str, str], ...]:
    types = program.relations[shape.name].types
    return tuple((name, str(type_)) for (name, _), type_ in zip(shape.parameters, types, strict=False))


def _plain(program: Program, shape: Shape) -> dict[str, Part]:
    def type_of(relation: str) -> str:
        return str(program.relations[relation].types[-1])

    return {
        name: replace(part, type=type_of(part.relation), slots=tuple(replace(slot, type=type_of(slot.relation)) for slot in part.slots))
        for name, part in shape.parts.items()
    }


def own(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """What no frame says."""
    return tuple(part for part in parts if not part.frame)


def _parts(program: Program, findings: Findings) -> Parts:
    from vigilog.language.frames.views import translate_views

    plain = replace(program, declarations=own(program.declarations), directives=own(program.directives), rules=own(program.rules))
    made = schema(plain, findings)
    findings.raise_errors(program.texts)
    parts = Parts(made, taken={*plain.relations})
    for class_ in made.classes.values():
        _members(parts, class_)
        for label in class_.links:
            _attribute(parts, class_, label)
    translate_views(parts)
    for class_ in made.classes.values():
        _formulas(parts, class_)
    for class_ in made.classes.values():
        for label, link in class_.links.items():
            _integrity(parts, class_, label, link)
    findings.raise_errors(program.texts)
    return parts


# -- classes


def _members(parts: Parts, class_: Class) -> None:
    name, span = class_.name.text, class_.name.span
    parts.declare(name, name, [("x", parts.schema.type(name))], span)
    if class_.source is None:
        parts.direct(name, "input", name, span, ("missing", "empty"))
    else:
        _read(parts, class_, Atom(name, (X,)), {X: class_.source.column}, span)
    for narrow in parts.schema.classes.values():
        if any(parent.text == name for parent in narrow.parents):
            parts.rule(name, Atom(name, (X,)), (Atom(narrow.name.text, (X,), narrow.name.span),), narrow.name.span)


def _read(parts: Parts, class_: Class, head: Atom, columns: dict[Variable, Name], span: Span) -> None:
    """Derives from the relation that a class is laid over."""
    assert class_.source is not None, "the class is laid over a relation"
    places = {table_column(parts.schema, class_, column): replace(variable, span=column.span) for variable, column in columns.items()}
    declaration = parts.schema.program.relations.get(class_.source.relation.text)
    if declaration is not None and None not in places:
        args = tuple(places.get(place, Wildcard()) for place in range(declaration.arity))
        read = replace(head, args=tuple(replace(variable, span=column.span) for variable, column in columns.items()))
        parts.rule(class_.name.text, read, (Atom(declaration.relation, args, span),), span)


def _attribute(parts: Parts, class_: Class, label: str) -> None:
    name, link, part = class_.name.text, class_.links[label], class_.properties[label]
    made = parts.schema
    if link.relation == f"{name}_{label}":
        parts.declare(name, link.relation, [("x", made.type(name)), ("y", made.type(link.sort))], link.span)
        if part.source is None:
            parts.direct(name, "input", link.relation, link.span, ("missing", "empty"))
        if link.single:
            parts.direct(name, "key", link.relation, link.span, ("x", ""))
    if part.source is not None and class_.source is None:
        rule = "an attribute is read from a column of the relation that its class is laid over"
        hint = f"say which: class {name} from relation(column) with …"
        made.findings.error("frame", f"{name} is laid over no relation", part.source.span, rule=rule, hint=hint)
    elif part.source is not None and class_.source is not None:
        _read(parts, class_, Atom(link.relation, (X, Y)), {X: class_.source.column, Y: part.source}, link.span)


def _integrity(parts: Parts, class_: Class, label: str, link: Link) -> None:
    """What may be wrong with links: `dangling` ones are listed, `missing` ones are refused, and `several` where one is derived and there may be one."""
    name, made, span = class_.name.text, parts.schema, link.span
    columns = [("x", made.type(name)), ("y", made.type(link.sort))]
    dangling, there = f"{name}_{label}_dangling", Atom(link.relation, (X, Y), span)
    parts.declare(name, dangling, columns, span)
    of_class: Body = () if link.relation == f"{name}_{label}" else (Atom(name, (X,), span),)
    ends = [Atom(name, (X,), span)] if not of_class else []
    ends += [Atom(link.sort, (Y,), span)] if made.known(link.sort) else []
    for end in ends:
        parts.rule(name, Atom(dangling, (X, Y)), (*of_class, there, Negation(end, span)), span)
    if "necessary" in class_.modifiers[label]:
        missing, formulas = f"{name}_{label}_missing", parts.formulas(f"{name}_{label}_missing")
        parts.declare(name, missing, columns[:1], span)
        seen = Quantified(
            False,
            (syntax.Binding((Name("y", span),), Name(link.sort, span)),),
            syntax.Link(Variable(THIS), (Name(label, span),), Y, span),
            span,
        )
        this = formulas.bind(Name(THIS, span), name, "x")
        parts.rule(name, Atom(missing, (X,)), (Atom(name, (X,), span), *formulas.fails(seen, {THIS: this})), span, formulas)
        parts.direct(name, "constraint", missing, span)
    rules = (*made.program.rules, *parts.rules)
    if link.single and link.relation == f"{name}_{label}" and any(head.relation == link.relation for rule in rules for head in rule.heads):
        several, other = f"{name}_{label}_several", Variable("z")
        parts.declare(name, several, columns[:1], span)
        body = (there, Atom(link.relation, (X, other), span), Builtin("!=", (Y, other), span))
        parts.rule(name, Atom(several, (X,)), body, span)
        parts.direct(name, "constraint", several, span)


def _formulas(parts: Parts, class_: Class) -> None:
    name, number = class_.name.text, 0
    labels: dict[str, Span] = {}
    for kind, labelled in class_.formulas:
        if isinstance(labelled.formula, syntax.Elision):
            continue
        if kind == "rule":
            _rule(parts, class_, labelled)
            continue
        number += not labelled.label
        relation = f"{name}_{labelled.label or f'constraint{number}'}"
        if relation in labels:
            rule = f"labels of one class differ; the first is at {labels[relation]}"
            parts.schema.findings.error("duplicate", f"{name} has two constraints {labelled.label}", labelled.span, rule=rule)
            continue
        labels[relation] = labelled.span
        _constraint(parts, class_, relation, labelled)


def _outer(formulas: Formulas, formula: Formula, scope: dict[str, Bound]) -> tuple[dict[str, Bound], list[Bound], Formula]:
    """The outermost `forall` variables of a formula, and what it says of them."""
    new: list[Bound] = []
    while isinstance(formula, Quantified) and formula.every:
        scope, more = formulas.quantify(formula, scope)
        new += more
        formula = formula.body
    return scope, new, formula


def _constraint(parts: Parts, class_: Class, relation: str, labelled: Labelled) -> None:
    name, span = class_.name.text, labelled.span
    formulas = parts.formulas(relation)
    this = formulas.bind(Name(THIS, class_.name.span), name)
    scope, new, formula = _outer(formulas, labelled.formula, {THIS: this})
    members = formulas.members([this, *new])
    body = (*members, *formulas.fails(formula, scope, members))
    columns = [this, *new]
    parts.declare(name, relation, [(each.variable.name, parts.schema.type(each.sort)) for each in columns], span)
    parts.rule(name, Atom(relation, tuple(each.variable for each in columns)), body, span, formulas)
    parts.direct(name, "constraint", relation, span)


def _rule(parts: Parts, class_: Class, labelled: Labelled) -> None:
    name, span = class_.name.text, labelled.span
    formulas = parts.formulas(f"{name}_{labelled.label or 'rule'}")
    this = formulas.bind(Name(THIS, class_.name.span), name)
    scope, new, formula = _outer(formulas, labelled.formula, {THIS: this})
    condition, conclusion = (formula.left, formula.right) if isinstance(formula, Implies) and not formula.both else (None, formula)
    members = formulas.members([this, *new])
    body = members if condition is None else (*members, *formulas.holds(condition, scope, members))
    for head in conclusion.parts if isinstance(conclusion, And) else (conclusion,):
        atom = _head(parts, formulas, head, scope, span)
        if atom is not None:
            parts.rule(name, atom, body, span, formulas)


def _head(parts: Parts, formulas: Formulas, formula: Formula, scope: dict[str, Bound], span: Span) -> Atom | None:
    findings = parts.schema.findings
    match formula:
        case syntax.Link(path=(label,)):
            sort = scope[formula.object.name].sort if isinstance(formula.object, Variable) and formula.object.name in scope else None
            link = formulas.resolve(sort, label, scope)
            if link is None:
                return None
            if link.owner in parts.schema.views:
                findings.error("derived", f"{link.relation} belongs to a view, so no rule adds to it", formula.span)
                return None
            return Atom(link.relation, (formulas.term(formula.object, scope), formulas.term(formula.value, scope)), formula.span)
        case Member() if formula.of.text in parts.schema.views:
            findings.error("derived", f"{formula.of} is a view, so no rule adds to it", formula.span)
        case Member():
            atom = formulas.holds(formula, scope)[0]
            return atom if isinstance(atom, Atom) else None
        case _:
            rule = "a rule ends in what it derives: … ==> (x m y), or … ==> (x in C)"
            findings.error("frame", "this is nothing that a rule can derive", getattr(formula, "span", span), rule=rule)
    return None
