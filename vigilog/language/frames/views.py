"""View frames to relations and rules: a main view, one view for each subframe, one relation for each attribute, without nulls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vigilog.core.errors import did_you_mean
from vigilog.language.frames.formulas import Body, Bound, Formulas
from vigilog.language.frames.schema import MAX_ATTRIBUTES, MAX_DEPTH, Link, check_label, formulas, properties
from vigilog.language.frames.syntax import Computed, Elision, Frame, Name, Path, Property, Section
from vigilog.language.functors import AGGREGATES, NUMERIC
from vigilog.language.syntax import Aggregate, Atom, Builtin, Variable
from vigilog.protocol.shapes import Part, Shape, Slot

if TYPE_CHECKING:
    from vigilog.language.frames.translate import Parts

X, Y, N = Variable("x"), Variable("y"), Variable("n")


@dataclass
class _View:
    """A view frame while it is translated."""

    parts: Parts
    frame: Frame
    parameters: tuple[tuple[str, str], ...]  # names of columns, and sorts
    made: dict[str, Part]

    @property
    def name(self) -> str:
        return self.frame.name.text

    @property
    def columns(self) -> list[tuple[str, str]]:
        return [(name, self.parts.schema.type(sort)) for name, sort in self.parameters]

    @property
    def bound(self) -> tuple[Variable, ...]:
        return tuple(Variable(name) for name, _ in self.parameters)

    def scope(self, made: Formulas) -> dict[str, Bound]:
        """The parameters, as formulas name them."""
        return {
            f"~{each.name}": made.bind(Name(f"~{each.name}", each.name.span), sort, column)
            for each, (column, sort) in zip(self.frame.parameters, self.parameters, strict=True)
        }


def translate_views(parts: Parts) -> None:
    schema = parts.schema
    views = []
    for frame in schema.views.values():
        view = _checked(parts, frame)
        if view is not None:
            views.append(view)
            _note_links(view, frame.name.text, [parent.text for parent in frame.parents], frame.sections)
    for view in views:
        _main(view)
    for view in views:
        parts.shapes[view.name] = Shape(
            view.name,
            tuple((each.name.text, column[1]) for each, column in zip(view.frame.parameters, view.columns, strict=True)),
            _reached(view, {each.name: each for each in views}),
        )


def _reached(view: _View, views: dict[str, _View]) -> dict[str, Part]:
    """The parts of a view, and those of views inside it."""
    parts = dict(view.made)
    for name in list(parts):
        for slot in parts[name].slots:
            if slot.part and slot.part not in parts and slot.part in views:
                todo = [slot.part]
                while todo:
                    other = views[todo.pop()]
                    parts.update(other.made)
                    todo += [
                        each.part for part in other.made.values() for each in part.slots if each.part in views and each.part not in parts
                    ]
    return parts


def _checked(parts: Parts, frame: Frame) -> _View | None:
    findings, schema = parts.schema.findings, parts.schema
    if frame.source is not None:
        findings.error("frame", f"{frame.name} is a view, and is read from nowhere", frame.source.relation.span, rule="from is for classes")
    if not frame.parents:
        rule = "a view says of which class its objects are"
        findings.error("frame", f"{frame.name} is of no class", frame.name.span, rule=rule, hint=f"write: View {frame.name} isA Class …")
        return None
    for parent in frame.parents:
        if parent.text in schema.views and schema.views[parent.text].parameters:
            findings.error("frame", f"{parent} has parameters, so no view can be built on it", parent.span)
            return None
    types = {schema.type(parent.text) for parent in frame.parents}
    if len(types) > 1:
        findings.error("type", f"the classes of {frame.name} have ids of different types", frame.name.span, rule=", ".join(sorted(types)))
    if any(formulas(frame.sections, "rule")):
        where = next(formulas(frame.sections, "rule"))
        findings.error(
            "frame",
            f"{frame.name} is a view, and has no rules",
            where.span,
            rule="rules derive links and members of classes",
            hint="put it into a class frame",
        )
    taken, parameters = {"x", "y", "n"}, []
    for each in frame.parameters:
        column = each.name.text
        while column in taken:
            column += "_"
        taken.add(column)
        parameters.append((column, schema.sort(each.sort) or "symbol"))
    return _View(parts, frame, tuple(parameters), {})


def _note_links(view: _View, name: str, sorts: list[str], sections: tuple[Section | Elision, ...]) -> None:
    """What labels mean for objects of a view: what it shows under them."""
    schema = view.parts.schema
    links = schema.shown.setdefault(name, {})
    for part, _ in properties(sections):
        if view.parameters or not isinstance(part.target, Name):
            continue
        first = next((link for sort in sorts if (link := schema.link(sort, part.label.text)) is not None), None)
        if first is not None:
            links[part.label.text] = Link(part.label.text, name, f"{name}_{part.label}", part.target.text, first.single, part.span)


def _main(view: _View) -> None:
    parts, name, span = view.parts, view.name, view.frame.name.span
    made = parts.formulas(name)
    made.used |= {"x"}
    scope = view.scope(made)
    sorts = [parent.text for parent in view.frame.parents]
    members = (*made.members(scope.values()), *(Atom(sort, (X,), span) for sort in sorts))
    scope["this"] = Bound(X, _sort(view, sorts), span)
    body = _constrained(made, scope, members, view.frame.sections)
    parts.declare(name, name, [*view.columns, ("x", parts.schema.type(sorts[0]))], span)
    parts.rule(name, Atom(name, (*view.bound, X)), body, span, made)
    parts.direct(name, "output", name, span)
    _attributes(view, name, sorts, view.frame.sections, 1)


def _sort(view: _View, sorts: list[str]) -> str:
    """The sort of a view's own objects: its class; of several, one that stands for all."""
    if len(sorts) == 1:
        return sorts[0]
    joined = " and ".join(sorts)
    view.parts.schema.views.setdefault(joined, Frame("view", Name(joined), parents=tuple(map(Name, sorts))))
    return joined


def _constrained(made: Formulas, scope: dict[str, Bound], members: Body, sections: tuple[Section | Elision, ...]) -> Body:
    body = members
    for labelled in formulas(sections, "constraint"):
        body = (*body, *made.holds(labelled.formula, scope, body))
    return body


def _attributes(view: _View, name: str, sorts: list[str], sections: tuple[Section | Elision, ...], depth: int) -> None:
    """The attributes of a frame or subframe whose relation is `name`; its objects are of some sorts."""
    parts, schema = view.parts, view.parts.schema
    slots: list[Slot] = []
    view.made[name] = Part(name, schema.type(sorts[0]), (), len(view.parameters))
    attributes = list(properties(sections))
    if len(attributes) > MAX_ATTRIBUTES:
        schema.findings.error("range", f"{name} has more than {MAX_ATTRIBUTES} attributes", attributes[MAX_ATTRIBUTES][0].span)
    seen: dict[str, Property] = {}
    for part, modifiers in attributes:
        check_label(part, schema.findings)
        label = part.label.text
        if label in seen or (label == "params" and view.parameters):
            rule = f"the first is at {seen[label].span}" if label in seen else "params are the parameters of an object"
            schema.findings.error("duplicate", f"{name} has two attributes {label}", part.span, rule=rule)
            continue
        seen[label] = part
        if part.source is not None:
            schema.findings.error("frame", "an attribute of a view is read from no column", part.source.span, rule="from is for classes")
        slot = _slot(view, name, sorts, part, {each.label: each for each in slots}, depth)
        if slot is not None:
            slots.append(slot)
            _check_modifiers(view, sorts, part, modifiers, slot)
            parts.direct(view.name, "output", slot.relation, part.span)
    view.made[name] = replace(view.made[name], slots=tuple(slots))


def _check_modifiers(view: _View, sorts: list[str], part: Property, modifiers: tuple[str, ...], slot: Slot) -> None:
    classes = view.parts.schema.classes
    owners = [classes[each] for sort in sorts for each in view.parts.schema.above(sort) if each in classes]
    necessary = any("necessary" in owner.modifiers.get(part.label.text, ()) for owner in owners)
    for word, promised in (("single", slot.single), ("necessary", necessary)):
        if word in modifiers and not promised:
            rule = "a view shows what its class has; single and necessary are promises of the class"
            hint = "say it in the class" if word == "single" else "say it in the class, or restrict the view: $ exists y/C (this m y) $"
            view.parts.schema.findings.error(
                "frame", f"the class does not say that {part.label} is {word}", part.span, rule=rule, hint=hint
            )


def _slot(view: _View, name: str, sorts: list[str], part: Property, before: dict[str, Slot], depth: int) -> Slot | None:
    parts, schema, span, label = view.parts, view.parts.schema, part.span, part.label.text
    relation = f"{name}_{label}"
    made = parts.formulas(relation)
    made.used |= {"x", "y", "n", *(column for column, _ in view.parameters)}
    start: Body = (Atom(name, (*view.bound, X), span),)
    sort = _sort(view, sorts)

    def links(path: tuple[Name, ...]) -> tuple[Body, Link | None, bool]:
        body: Body = ()
        link: Link | None = None
        here, end, single = sort, X, True
        for place, step in enumerate(path):
            link = made.resolve(here, step, {})
            if link is None:
                return (), None, False
            following = Y if place == len(path) - 1 else made.bind(Name("z", step.span), link.sort).variable
            body = (*body, *made.along(link, end, here, following, None, span))
            here, end, single = link.sort, following, single and link.single
        return body, link, single

    match part.target:
        case Name() as target:
            return _plain(view, name, sort, part, target, relation, made, start, depth)
        case Path(labels=path):
            body, link, single = links(path)
            if link is None:
                return None
            declared = schema.type(link.sort)
            parts.declare(view.name, relation, [*view.columns, ("x", schema.type(sort)), ("y", declared)], span)
            parts.rule(view.name, Atom(relation, (*view.bound, X, Y)), (*start, *body), span, made)
            return _leading(view, part, label, relation, link.sort, single, depth)
        case Computed(op=op, of=of):
            if of.text in before:
                own = before[of.text]
                body, type_, of_class = (Atom(own.relation, (*view.bound, X, Y), span),), own.type, bool(own.part or own.of)
            else:
                body, link, _ = links((of,))
                if link is None:
                    return None
                type_, of_class = schema.type(link.sort), schema.known(link.sort)
            if op != "count" and (of_class or (op in ("sum", "mean") and type_.partition("(")[0] not in NUMERIC)):
                schema.findings.error(
                    "type",
                    f"{op} of {of} is over {'objects' if of_class else type_}",
                    span,
                    rule=f"{op} takes {'numbers' if op in ('sum', 'mean') else 'values'}",
                )
                return None
            result = {"count": "number", "mean": "float"}.get(op, type_)
            value = Aggregate(op, None if op == "count" else Y, body, span=span)
            parts.declare(view.name, relation, [*view.columns, ("x", schema.type(sort)), ("y", result)], span)
            parts.rule(view.name, Atom(relation, (*view.bound, X, N)), (*start, Builtin("=", (N, value), span)), span)
            assert op in AGGREGATES, "the grammar knows the aggregates"
            return Slot(label, relation, result, single=True)


def _plain(
    view: _View, name: str, sort: str, part: Property, target: Name, relation: str, made: Formulas, start: Body, depth: int
) -> Slot | None:
    """An attribute of the class: as it is, of a narrower class, as a view shows its objects, or with a subframe."""
    parts, schema, span, label = view.parts, view.parts.schema, part.span, part.label.text
    link = made.resolve(sort, part.label, {})
    wanted = schema.sort(target)
    if link is None or wanted is None:
        return None
    if not _fits(view, link, wanted, part):
        return None
    nested = schema.views.get(wanted)
    if nested is not None and nested.parameters and wanted != view.name:
        schema.findings.error("frame", f"{wanted} has parameters, so nothing can lead to it", target.span)
        return None
    if nested is not None and part.subframe is not None:
        schema.findings.error(
            "frame",
            f"{wanted} is a view, which shows its objects itself",
            part.opened,
            rule="a subframe stands at a class",
            hint="leave out one of the two",
        )
        return None
    through = Atom(link.relation, (X, Y), span)
    owner: Body = () if schema.below(sort, link.owner) else (Atom(link.owner, (X,), span),)
    ends: Body = ()
    if schema.known(link.sort) and not schema.below(wanted, link.sort):
        ends = (Atom(link.sort, (Y,), span),)
    if part.subframe is not None:
        return _subframe(view, name, part, relation, link, wanted, (*start, *owner, through), ends, depth)
    if nested is not None:
        own = view.bound if nested.parameters else ()
        ends = (*ends, Atom(wanted, (*own, Y), span))
    elif schema.known(wanted):
        ends = (*ends, Atom(wanted, (Y,), span))
    columns = [*view.columns, ("x", schema.type(sort)), ("y", schema.type(link.sort))]
    parts.declare(view.name, relation, columns, span)
    parts.rule(view.name, Atom(relation, (*view.bound, X, Y)), (*start, *owner, through, *ends), span)
    return _leading(view, part, label, relation, wanted, link.single, depth)


def _fits(view: _View, link: Link, wanted: str, part: Property) -> bool:
    schema = view.parts.schema
    same = schema.type(wanted) == schema.type(link.sort) if not schema.known(link.sort) and not schema.known(wanted) else False
    related = (
        schema.known(link.sort)
        and schema.known(wanted)
        and (schema.below(wanted, link.sort) or (wanted in schema.views and schema.below(link.sort, schema.above(wanted)[-1])))
    )
    if not (same or related):
        rule = f"{link.label} leads to {link.sort}; a view may name a narrower class, or a view of its objects"
        narrower = [name for name in [*schema.classes, *schema.views] if schema.known(link.sort) and schema.below(name, link.sort)]
        schema.findings.error(
            "frame", f"{wanted} is not narrower than {link.sort}", part.span, rule=rule, hint=did_you_mean(wanted, narrower)
        )
    return same or related


def _leading(view: _View, part: Property, label: str, relation: str, sort: str, single: bool, depth: int) -> Slot:
    schema = view.parts.schema
    if part.subframe is not None:
        rule = "a subframe stands at an attribute of the class"
        schema.findings.error("frame", f"{label} is computed, and has no subframe", part.opened, rule=rule, hint="let it lead to a view")
    nested = sort if sort in schema.views else ""
    return Slot(label, relation, schema.type(sort), single, part=nested, of=sort if schema.known(sort) and not nested else "")


def _subframe(
    view: _View, name: str, part: Property, relation: str, link: Link, wanted: str, through: Body, ends: Body, depth: int
) -> Slot | None:
    parts, schema, span, label = view.parts, view.parts.schema, part.span, part.label.text
    if depth >= MAX_DEPTH:
        schema.findings.error(
            "range", f"this subframe is more than {MAX_DEPTH} levels deep", part.opened, rule=f"a frame has at most {MAX_DEPTH} levels"
        )
        return None
    if not schema.known(wanted):
        schema.findings.error("frame", f"{wanted} is a type of values, which have no attributes", part.opened)
        return None
    inner = name + label[0].upper() + label[1:]
    made = parts.formulas(inner)
    made.inner = True
    made.used |= {"x", "y"}
    scope = view.scope(made)
    scope["this"] = Bound(Y, wanted, span)
    assert part.subframe is not None, "of a subframe"
    _refuse_rules(view, part)
    members = (*through, *ends, Atom(wanted, (Y,), span))
    body = _constrained(made, scope, members, part.subframe)
    type_ = schema.type(wanted)
    parts.declare(view.name, inner, [*view.columns, ("x", type_)], span)
    parts.rule(view.name, Atom(inner, (*view.bound, Y)), body, span, made)
    parts.direct(view.name, "output", inner, span)
    parts.declare(view.name, relation, [*view.columns, ("x", view.made[name].type), ("y", type_)], span)
    parts.rule(view.name, Atom(relation, (*view.bound, X, Y)), (*through, Atom(inner, (*view.bound, Y), span)), span)
    _attributes(view, inner, [wanted], part.subframe, depth + 1)
    return Slot(label, relation, type_, link.single, part=inner)


def _refuse_rules(view: _View, part: Property) -> None:
    for labelled in formulas(part.subframe or (), "rule"):
        view.parts.schema.findings.error(
            "frame", "a subframe has no rules", labelled.span, rule="rules derive links and members of classes"
        )
