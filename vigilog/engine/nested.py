"""First extraction (Staudt, Jarke, Quix 1996, section 3.2): flat relations to nested objects, innermost first.

Each part is outer-joined with its attributes and nested into pairs of an object and its property sets:

>>> from vigilog.protocol.shapes import Part, Shape, Slot
>>> emp = Part("Emp", "symbol", (Slot("dept", "Emp_dept", "symbol", part="EmpDept"),))
>>> dept = Part("EmpDept", "symbol", (Slot("head", "EmpDept_head", "symbol", of="Manager"),))
>>> rows = {"Emp": [("ann",), ("eve",)], "Emp_dept": [("ann", "d1")], "EmpDept": [("d1",)], "EmpDept_head": []}
>>> for each in nest(Shape("Emp", (), {"Emp": emp, "EmpDept": dept}), rows, lambda relation: (SYMBOL,) * 2):
...     print(each)
{'id': 'ann', 'dept': [{'id': 'd1', 'head': []}]}
{'id': 'eve', 'dept': []}
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.values import SYMBOL, Row, Type
from vigilog.language.frames.translate import shapes
from vigilog.language.syntax import Program
from vigilog.protocol.shapes import Part, Shape

MOST_NESTED = 5_000_000  # objects, references and values that a nested answer may hold

Types = Callable[[str], Sequence[Type]]
Nested = dict[str, Any]


def shape_of(program: Program, name: str) -> Shape:
    """The structure of a view frame. Raises DataError if there is no such frame."""
    known = shapes(program)
    if name not in known:
        hint = did_you_mean(name, known) or (f"view frames are {', '.join(known)}" if known else "it has no view frames")
        raise DataError(f"there is no view frame {name}; {hint}", "unknown-relation")
    return known[name]


def nest(shape: Shape, rows: Mapping[str, Iterable[Row]], types: Types, most: int | None = None, integers: str = "number") -> list[Nested]:
    """The objects of a view frame, sorted by id. Raises DataError if they would be too many, each counted as often as it is shown."""
    most = MOST_NESTED if most is None else most
    links = {slot.relation: _links(rows[slot.relation]) for part in shape.parts.values() for slot in part.slots}
    keys = sorted(rows[shape.main.relation], key=lambda row: (row[-1:], row))
    if shape.order is None:
        return _unrolled(shape, keys, links, types, most, integers)
    made: dict[str, dict[Row, Nested]] = {}
    sizes: dict[str, dict[Row, int]] = {}
    for part in shape.order:
        sizes[part.relation] = _sizes(shape, part, rows[part.relation], links, sizes)
    if sum(sizes[shape.main.relation].values()) > most:
        raise _too_large(shape, most)
    for part in shape.order:
        found = made[part.relation] = {}
        fill = _filler(shape, part, links, types, integers)
        inner = {name: made[name].get for name in made}
        for key in rows[part.relation]:
            found[key] = fill(key, inner)
    return [made[shape.main.relation][key] for key in keys]


def _links(rows: Iterable[Row]) -> dict[Row, list[Any]]:
    """What an object's links of one attribute lead to, sorted; objects are known by their parameters and ids."""
    found: dict[Row, list[Any]] = defaultdict(list)
    for row in rows:
        found[row[:-1]].append(row[-1])
    for ends in found.values():
        ends.sort()
    return found


def _sizes(
    shape: Shape, part: Part, keys: Iterable[Row], links: Mapping[str, Mapping[Row, list[Any]]], sizes: Mapping[str, Mapping[Row, int]]
) -> dict[Row, int]:
    """How much each object of a part shows: itself, and what is inside it."""
    found = dict.fromkeys(keys, 1)
    for slot in part.slots:
        inner = shape.parts.get(slot.part)
        for key, ends in links[slot.relation].items():
            if inner is None:
                found[key] += len(ends)
            else:
                inside, known = key[: inner.parameters], sizes[slot.part]
                found[key] += sum([known[(*inside, end)] for end in ends])
    return found


Inner = Callable[[Row], Any]


def _filler(
    shape: Shape, part: Part, links: Mapping[str, Mapping[Row, list[Any]]], types: Types, integers: str
) -> Callable[[Row, Mapping[str, Inner]], Nested]:
    """Makes an object of a part from its key; what its attributes lead to is asked for."""
    to_id = _to_json(types(part.relation)[part.parameters], integers)
    named = enumerate(shape.parameters[: part.parameters])
    parameters = [(name, _to_json(types(part.relation)[place], integers) or _as_it_is) for place, (name, _) in named]
    slots = [
        (slot.label, slot.single, slot.part, links[slot.relation], _to_json(types(slot.relation)[-1], integers), shape.parts.get(slot.part))
        for slot in part.slots
    ]

    def fill(key: Row, inner: Mapping[str, Inner]) -> Nested:
        found: Nested = {"id": key[-1] if to_id is None else to_id(key[-1])}
        if parameters:
            found["params"] = {name: to_json(cell) for (name, to_json), cell in zip(parameters, key, strict=False)}
        for label, single, name, ends, to_json, nested in slots:
            shown: list[Any] | None = ends.get(key)
            if shown is None:
                if not single:
                    found[label] = []
                continue
            if nested is not None:
                ask, inside = inner[name], key[: nested.parameters]
                shown = [ask((*inside, end)) for end in shown]
            elif to_json is not None:
                shown = list(map(to_json, shown))
            found[label] = shown[0] if single else shown
        return found

    return fill


def _as_it_is(value: Any) -> Any:
    return value


def _to_json(type_: Type, integers: str) -> Callable[[Any], Any] | None:
    """How a value is written in JSON; None if as it is."""
    if integers == "text" and (spelled := type_.spelled) is not None:
        return lambda value: spelled(type_.to_json(value))
    return None if type_.kind in ("symbol", "number", "unsigned", "boolean") else type_.to_json


def _unrolled(
    shape: Shape, keys: list[Row], links: Mapping[str, Mapping[Row, list[Any]]], types: Types, most: int, integers: str
) -> list[Nested]:
    """Objects of a recursive structure: one that is inside itself is a reference there."""
    fillers = {name: _filler(shape, part, links, types, integers) for name, part in shape.parts.items()}
    ids = {name: _to_json(types(part.relation)[part.parameters], integers) or _as_it_is for name, part in shape.parts.items()}
    left, around = most, set[tuple[str, Row]]()

    def unrolled(name: str, key: Row) -> Nested:
        nonlocal left
        here = name, key
        if here in around:
            return {"ref": ids[name](key[-1])}
        left -= 1 + sum(len(links[slot.relation].get(key, ())) for slot in shape.parts[name].slots if not slot.part)
        if left < 0 or len(around) > DEEPEST:
            raise _too_large(shape, most)
        around.add(here)
        try:
            return fillers[name](key, inner)
        finally:
            around.discard(here)

    inner: dict[str, Inner] = {name: partial(unrolled, name) for name in shape.parts}
    return [unrolled(shape.name, key) for key in keys]


DEEPEST = 200  # levels that JSON is nested, which a recursive structure could exceed; readers of JSON have such bounds


def _too_large(shape: Shape, most: int) -> DataError:
    message = f"the nested answer of {shape.name} has more than {most} parts, or more than {DEEPEST} levels, for shared parts are shown wherever they are"
    return DataError(f"{message}; ask for its relations ({', '.join(shape.relations)}), or follow its objects", "large")


def extraction(shape: Shape) -> str:
    """The steps of the first extraction, in words."""
    if shape.order is None:
        return f"// {shape.name} is recursive in structure: its objects are found from the outside, and one inside itself is a reference"
    steps = []
    for number, part in enumerate(shape.order, start=1):
        joined = "".join(f" ⟕ {slot.relation}" for slot in part.slots)
        inside = "".join(f", {slot.label} by {slot.part}" for slot in part.slots if slot.part)
        labels = ", ".join(slot.label for slot in part.slots)
        nested = f"nest {part.relation}(id, {{{labels}}})" if labels else f"nest {part.relation}(id)"
        steps.append(f"{number}. {nested} = {part.relation}{joined}{inside}")
    return "\n".join([f"// {shape.name}: innermost first, each part outer-joined with its attributes and nested", *steps])


__all__ = ["DEEPEST", "MOST_NESTED", "SYMBOL", "extraction", "nest", "shape_of"]
