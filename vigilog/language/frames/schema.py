"""What the frames of a program say together: its classes, their attributes, its views. Frames of one class add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.spans import Span
from vigilog.core.values import BUILTIN
from vigilog.language.frames.syntax import Attributes, Elision, Formulas, Frame, Labelled, Name, Overlay, Path, Property, Section
from vigilog.language.program import Program

VALUES = {"Integer": "number", "Real": "float", "String": "symbol", "Boolean": "boolean"}
MAX_DEPTH, MAX_ATTRIBUTES = 20, 100


@dataclass(frozen=True)
class Link:
    """An attribute as formulas see it: the class or view that declares it, the relation of its links, the sort of what they lead to."""

    label: str
    owner: str
    relation: str
    sort: str
    single: bool
    span: Span


@dataclass
class Class:
    name: Name
    parents: list[Name] = field(default_factory=list)
    source: Overlay | None = None
    properties: dict[str, Property] = field(default_factory=dict)
    modifiers: dict[str, set[str]] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    formulas: list[tuple[str, Labelled]] = field(default_factory=list)  # rule or constraint, each


@dataclass
class Schema:
    """Classes and views by name. A sort is one of them, or a type of values."""

    program: Program
    findings: Findings
    classes: dict[str, Class] = field(default_factory=dict)
    views: dict[str, Frame] = field(default_factory=dict)
    shown: dict[str, dict[str, Link]] = field(default_factory=dict)  # the attributes that views have, by view and label
    types: dict[str, str] = field(default_factory=dict)  # of the ids of classes

    # -- sorts

    def known(self, name: str) -> bool:
        return name in self.classes or name in self.views

    def type(self, sort: str) -> str:
        """The type of a sort's values or ids."""
        if sort in self.views:
            return self.type(self.views[sort].parents[0].text) if self.views[sort].parents else "symbol"
        return self.types.get(sort) or VALUES.get(sort, sort)

    def sort(self, name: Name, *, views: bool = True) -> str | None:
        """The sort of a name; an error if there is none."""
        text = name.text
        defined = {definition.name for definition in self.program.types}
        if text in self.classes or (views and text in self.views) or text in VALUES or text in BUILTIN or text in defined:
            return text
        if text.startswith("decimal("):
            return text
        if text in self.views:
            self.findings.error("frame", f"{text} is a view, and a class is needed here", name.span)
            return None
        sorts = [*self.classes, *self.views, *VALUES]
        rule = "a sort is a class, a view, or a type of values: Integer, Real, String, Boolean, or a type of the language"
        self.findings.error("unknown-class", f"there is no class {text}", name.span, rule=rule, hint=did_you_mean(text, sorts))
        return None

    def parents(self, name: str) -> list[Name]:
        parents = self.classes[name].parents if name in self.classes else list(self.views[name].parents)
        return [parent for parent in parents if self.known(parent.text)]

    def above(self, name: str) -> list[str]:
        """A class or view and all that it is, nearest first."""
        names = {name: None}
        for each in found_later(names):
            if self.known(each):
                names.update(dict.fromkeys(parent.text for parent in self.parents(each)))
        return list(names)

    def below(self, narrow: str, wide: str) -> bool:
        return wide in self.above(narrow)

    # -- attributes

    def link(self, sort: str, label: str) -> Link | None:
        """What a label means for objects of a sort."""
        for name in self.above(sort):
            links = self.shown.get(name, {}) if name in self.views else self.classes[name].links if name in self.classes else {}
            if label in links:
                return links[label]
        return None

    def labels(self, sort: str) -> list[str]:
        return [label for name in self.above(sort) if name in self.classes for label in self.classes[name].links]

    def declaring(self, label: str) -> list[Link]:
        """The classes that declare a label first, for objects whose sort is not known."""
        links = {link.relation: link for class_ in self.classes.values() for link in class_.links.values() if link.label == label}
        return list(links.values())


def found_later(growing: Mapping[str, None]) -> Iterator[str]:
    """The keys of a mapping, those that come while it is read, too."""
    position = 0
    while position < len(growing):
        yield list(growing)[position]
        position += 1


def schema(program: Program, findings: Findings) -> Schema:
    """What a program's frames say. What is wrong in one of them is noted, and left out."""
    made = Schema(program, findings)
    for frame in program.frames:
        _note(made, frame)
        for elision in elisions(frame.sections):
            rule = "... and $...$ say nothing: they are how a text that is shown leaves something out"
            findings.warn("elision", "something is left out here", elision.span, rule=rule, hint="write it, or delete the dots")
    _check_parents(made)
    _types(made)
    for class_ in made.classes.values():
        _links(made, class_)
    for class_ in made.classes.values():
        _check_inherited(made, class_)
    return made


def elisions(sections: Iterable[Section | Elision]) -> Iterator[Elision]:
    for section in sections:
        match section:
            case Elision():
                yield section
            case Attributes():
                for part in section.properties:
                    yield from [part] if isinstance(part, Elision) else elisions(part.subframe or ())
            case Formulas():
                for entry in section.formulas:
                    formula = entry if isinstance(entry, Elision) else entry.formula
                    yield from [formula] if isinstance(formula, Elision) else []


def properties(sections: Iterable[Section | Elision]) -> Iterator[tuple[Property, tuple[str, ...]]]:
    for section in sections:
        if isinstance(section, Attributes):
            yield from ((part, section.modifiers) for part in section.properties if not isinstance(part, Elision))


def formulas(sections: Iterable[Section | Elision], kind: str) -> Iterator[Labelled]:
    for section in sections:
        if isinstance(section, Formulas) and section.kind == kind:
            yield from (entry for entry in section.formulas if not isinstance(entry, Elision))


def _note(made: Schema, frame: Frame) -> None:
    name, findings = frame.name, made.findings
    if name.text in VALUES or name.text in BUILTIN:
        findings.error("reserved", f"{name} is a type of values, so no frame can be called that", name.span, hint="take another name")
        return
    other = made.views.get(name.text) if frame.kind == "class" else made.classes.get(name.text) or made.views.get(name.text)
    if other is not None:
        rule = f"the first is at {other.name.span}; a class may have several frames, a view has one"
        findings.error("duplicate", f"{name} has a frame already", name.span, rule=rule)
        return
    if frame.kind == "view":
        made.views[name.text] = frame
        return
    if frame.parameters:
        findings.error("frame", f"{name} is a class, and has no parameters", frame.parameters[0].name.span, rule="parameters are of views")
    class_ = made.classes.setdefault(name.text, Class(name))
    class_.parents += [parent for parent in frame.parents if parent not in class_.parents]
    if frame.source is not None:
        if class_.source is not None and class_.source != frame.source:
            rule = f"a class has one source; the first is at {class_.source.relation.span}"
            findings.error("duplicate", f"{name} is read from two places", frame.source.relation.span, rule=rule)
        class_.source = class_.source or frame.source
    for part, modifiers in properties(frame.sections):
        _note_property(made, class_, part, modifiers)
    for kind in ("rule", "constraint"):
        class_.formulas += [(kind, labelled) for labelled in formulas(frame.sections, kind)]


def _note_property(made: Schema, class_: Class, part: Property, modifiers: tuple[str, ...]) -> None:
    label = part.label.text
    check_label(part, made.findings)
    if not isinstance(part.target, Name) or part.subframe is not None:
        what = "a subframe" if part.subframe is not None else "computed"
        rule = "subframes and computed attributes are parts of views"
        hint = "derive its links by a rule" if part.subframe is None else ""
        made.findings.error("frame", f"{label} of the class {class_.name} is {what}", part.span, rule=rule, hint=hint)
        return
    first = class_.properties.get(label)
    if first is not None and (first != part or class_.modifiers[label] != set(modifiers)):
        rule = f"frames of one class add up, and may not contradict each other; the first is at {first.span}"
        made.findings.error("duplicate", f"{class_.name} has two attributes {label} that differ", part.span, rule=rule)
        return
    class_.properties.setdefault(label, part)
    class_.modifiers.setdefault(label, set(modifiers))
    if len(class_.properties) == MAX_ATTRIBUTES + 1:
        made.findings.error("range", f"{class_.name} has more than {MAX_ATTRIBUTES} attributes", part.span)


def check_label(part: Property, findings: Findings) -> None:
    if part.label.text == "id":
        rule = "id is what tells an object from others"
        findings.error("reserved", "no attribute can be called id", part.label.span, rule=rule, hint="take another name")


def _check_parents(made: Schema) -> None:
    for name in [*made.classes, *made.views]:
        kind = "class" if name in made.classes else "view"
        for parent in made.classes[name].parents if kind == "class" else made.views[name].parents:
            if kind == "class" and parent.text in made.views:
                rule = "a class is told, and a view is derived"
                made.findings.error("frame", f"the class {name} cannot be a view", parent.span, rule=rule)
            elif not made.known(parent.text):
                hint = did_you_mean(parent.text, [*made.classes, *made.views])
                made.findings.error("unknown-class", f"there is no class {parent}", parent.span, hint=hint)
    for name in [*made.classes, *made.views]:
        cycle = _cycle(made, name)
        if cycle:
            span = (made.classes.get(name) or made.views[name]).name.span
            made.findings.error("isa-cycle", f"isA goes in a circle: {' isA '.join(cycle)}", span, hint="take one of them out")
            made.findings.raise_errors(made.program.texts)


def _cycle(made: Schema, name: str) -> list[str]:
    path, seen = [[name]], {name}
    while path:
        here = path.pop()
        for parent in made.parents(here[-1]):
            if parent.text == name:
                return [*here, name]
            if parent.text not in seen:
                seen.add(parent.text)
                path.append([*here, parent.text])
    return []


def _types(made: Schema) -> None:
    """The types of ids: symbols, or what the column of the table is; the same for all that isA joins."""
    group = {name: {name} for name in made.classes}
    for name, class_ in made.classes.items():
        for parent in class_.parents:
            if parent.text in group and group[parent.text] is not group[name]:
                group[name] |= group[parent.text]
                for member in list(group[name]):
                    group[member] = group[name]
    types: dict[int, tuple[str, Class]] = {}
    for name, class_ in made.classes.items():
        type_ = _column_type(made, class_)
        if type_ is None:
            continue
        first, by = types.setdefault(id(group[name]), (type_, class_))
        if first != type_:
            rule = "objects of a class, of what it is, and of what is it, have ids of one type"
            message = f"the ids of {name} are of type {type_}, and those of {by.name} of type {first}"
            made.findings.error("type", message, class_.name.span, rule=rule)
    made.types.update({name: types[id(group[name])][0] if id(group[name]) in types else "symbol" for name in made.classes})


def _column_type(made: Schema, class_: Class) -> str | None:
    if class_.source is None:
        return None
    column = table_column(made, class_, class_.source.column)
    return (
        None
        if column is None
        else base_type(made.program, made.program.relations[class_.source.relation.text].attributes[column].type_name)
    )


def table_column(made: Schema, class_: Class, column: Name) -> int | None:
    """The place of a column in the relation that a class is laid over."""
    assert class_.source is not None, "only a class that is laid over a relation reads columns"
    relation = class_.source.relation
    if relation.text not in made.program.relations:
        hint = did_you_mean(relation.text, made.program.relations) or f"declare it: .decl {relation}(…)"
        made.findings.error("unknown-relation", f"there is no relation {relation}", relation.span, hint=hint)
        return None
    columns = made.program.relations[relation.text].columns
    if column.text not in columns:
        hint = did_you_mean(column.text, columns) or f"its columns are {', '.join(columns)}"
        made.findings.error("unknown-column", f"{relation} has no column {column}", column.span, hint=hint)
        return None
    return columns.index(column.text)


def base_type(program: Program, name: str) -> str:
    defined = {definition.name: definition for definition in program.types}
    for _ in defined:
        name = defined[name].members[0] if name in defined else name
    return name


def _links(made: Schema, class_: Class) -> None:
    """A class's own attributes; one that it inherits, and names again, keeps its relation."""
    above = [name for name in made.above(class_.name.text)[1:] if name in made.classes]
    for label, part in class_.properties.items():
        assert isinstance(part.target, Name), "of a class"
        sort = made.sort(part.target, views=False)
        if sort is None:
            continue
        first = next((name for name in reversed(above) if label in made.classes[name].properties), None)
        owner = class_ if first is None else made.classes[first]
        relation = f"{owner.name}_{label}"
        single = "single" in owner.modifiers[label]
        class_.links[label] = Link(label, class_.name.text, relation, sort, single, part.span)
        if first is not None:
            _check_redeclared(made, class_, part, sort, owner)


def _check_redeclared(made: Schema, class_: Class, part: Property, sort: str, owner: Class) -> None:
    label = part.label.text
    wider = owner.properties[label].target
    assert isinstance(wider, Name), "of a class"
    if sort != wider.text and not (made.known(sort) and made.below(sort, wider.text)):
        rule = (
            f"an attribute that is inherited may be declared again with a narrower class; {owner.name} has {label}: {wider} at {wider.span}"
        )
        made.findings.error("frame", f"{sort} is not narrower than {wider}", part.span, rule=rule)
    if "single" in class_.modifiers[label] and "single" not in owner.modifiers[label]:
        rule = f"the links of {label} are all in {owner.name}_{label}, and its key is for all of them"
        made.findings.error("frame", f"{label} is single for {class_.name} only", part.span, rule=rule, hint=f"say so in {owner.name}")


def _check_inherited(made: Schema, class_: Class) -> None:
    """A label has one meaning: none that two unrelated classes declare is inherited from both."""
    first: dict[str, Link] = {}
    for name in made.above(class_.name.text):
        for label, link in made.classes[name].links.items() if name in made.classes else ():
            other = first.setdefault(label, link)
            if other.relation != link.relation:
                rule = f"{other.owner} declares it at {other.span}, {link.owner} at {link.span}"
                hint = "give one of the two another name"
                made.findings.error("frame", f"{class_.name} inherits two attributes {label}", class_.name.span, rule=rule, hint=hint)


def is_path(part: Property) -> bool:
    return isinstance(part.target, Path)
