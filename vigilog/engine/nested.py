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
from dataclasses import dataclass
from typing import Any

from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.values import SYMBOL, Row, Type
from vigilog.language.frames.translate import shapes
from vigilog.language.program import Program
from vigilog.protocol.shapes import Part, Shape, Slot

MOST_NESTED = 5_000_000  # objects, references and values that a nested answer may hold

Types = Callable[[str], Sequence[Type]]
ToJson = Callable[[Any], Any]
Nested = dict[str, Any]


def shape_of(program: Program, name: str) -> Shape:
    """The structure of a view frame. Raises DataError if there is no such frame."""
    frames = shapes(program)
    if name not in frames:
        hint = did_you_mean(name, frames) or (f"view frames are {', '.join(frames)}" if frames else "it has no view frames")
        raise DataError(f"there is no view frame {name}; {hint}", "unknown-relation")
    return frames[name]


def nest(shape: Shape, rows: Mapping[str, Iterable[Row]], types: Types, most: int | None = None, integers: str = "number") -> list[Nested]:
    """The objects of a view frame, sorted by id. Raises DataError if they would be too many, each counted as often as it is shown."""
    most = MOST_NESTED if most is None else most
    parts = {name: _Filling(part, shape, rows, types, integers) for name, part in shape.parts.items()}
    keys = sorted(rows[shape.main.relation], key=lambda row: (row[-1:], row)) if shape.parameters else sorted(rows[shape.main.relation])
    if shape.order is None:
        return _unrolled(shape, parts, keys, most)
    if _most_parts(shape, parts) > most and _parts(shape, parts) > most:
        raise _too_large(shape, most)
    for part in shape.order:
        parts[part.relation].fill(parts)
    made = parts[shape.name].made
    return [made[key] for key in keys] if shape.parameters else [made[id] for (id,) in keys]


@dataclass
class _Links:
    """The links of an attribute: what each object leads to, sorted; objects are known by their ids, with parameters by the rows of both."""

    slot: Slot
    ends: dict[Any, list[Any]]
    to_json: ToJson | None
    inner: int  # how many parameters the objects have that it leads to

    def key(self, key: Any, end: Any) -> Any:
        """The key of what a link leads to."""
        return (*key[: self.inner], end) if self.inner else end


class _Filling:
    """The objects of a part, as they are made: all of them by `fill`, after those that they lead to, or one by one by `shown`."""

    def __init__(self, part: Part, shape: Shape, rows: Mapping[str, Iterable[Row]], types: Types, integers: str) -> None:
        self.part = part
        self.keys: list[Any] = list(rows[part.relation]) if part.parameters else [id for (id,) in rows[part.relation]]
        self.to_id = _to_json(types(part.relation)[part.parameters], integers)
        named = enumerate(shape.parameters[: part.parameters])
        self.parameters = [(name, _to_json(types(part.relation)[place], integers) or _as_it_is) for place, (name, _) in named]
        self.made: dict[Any, Nested] = {}
        self.slots = [
            _Links(slot, _ends(rows[slot.relation], part), _to_json(types(slot.relation)[-1], integers), inner.parameters if inner else 0)
            for slot in part.slots
            for inner in [shape.parts.get(slot.part)]
        ]

    def bare(self, key: Any) -> Nested:
        """An object without its attributes."""
        id = key[-1] if self.parameters else key
        nested: Nested = {"id": id if self.to_id is None else self.to_id(id)}
        if self.parameters:
            nested["params"] = {name: to_json(cell) for (name, to_json), cell in zip(self.parameters, key, strict=False)}
        return nested

    def fill(self, parts: Mapping[str, _Filling]) -> None:
        """All objects, an attribute at a time."""
        simple = not self.parameters and self.to_id is None
        self.made = {key: {"id": key} for key in self.keys} if simple else {key: self.bare(key) for key in self.keys}
        for links in self.slots:
            label, single, get = links.slot.label, links.slot.single, links.ends.get
            inner = parts[links.slot.part].made if links.slot.part else None
            for key, nested in self.made.items():
                ends = get(key)
                if ends is None:
                    if not single:
                        nested[label] = []
                    continue
                if inner is not None:
                    ends = [inner[links.key(key, end)] for end in ends] if links.inner else [inner[end] for end in ends]
                elif links.to_json is not None:
                    ends = list(map(links.to_json, ends))
                nested[label] = ends[0] if single else ends

    def shown(self, key: Any, inside: Callable[[str, Any], Nested]) -> Nested:
        """One object; what it leads to is asked for."""
        nested = self.bare(key)
        for links in self.slots:
            ends = links.ends.get(key, [])
            if links.slot.part:
                ends = [inside(links.slot.part, links.key(key, end)) for end in ends]
            elif links.to_json is not None:
                ends = list(map(links.to_json, ends))
            if not links.slot.single:
                nested[links.slot.label] = ends
            elif ends:
                nested[links.slot.label] = ends[0]
        return nested


def _ends(rows: Iterable[Row], part: Part) -> dict[Any, list[Any]]:
    by_key: dict[Any, list[Any]] = defaultdict(list)
    if part.parameters:
        for row in rows:
            by_key[row[:-1]].append(row[-1])
    else:
        for x, y in rows:
            by_key[x].append(y)
    for ends in by_key.values():
        if len(ends) > 1:
            ends.sort()
    return by_key


def _as_it_is(value: Any) -> Any:
    return value


def _to_json(type_: Type, integers: str) -> ToJson | None:
    """How a value is written in JSON; None if as it is."""
    if integers == "text" and (spelled := type_.spelled) is not None:
        return lambda value: spelled(type_.to_json(value))
    return None if type_.kind in ("symbol", "number", "unsigned", "boolean") else type_.to_json


def _most_parts(shape: Shape, parts: Mapping[str, _Filling]) -> int:
    """A bound of what is shown, which is soon found: as if each object had as many links as that with most of them."""
    assert shape.order is not None, "of a structure that is not recursive"
    most: dict[str, int] = {}
    for part in shape.order:
        widest = [(max(map(len, links.ends.values()), default=0), most.get(links.slot.part, 1)) for links in parts[part.relation].slots]
        most[part.relation] = 1 + sum(width * inside for width, inside in widest)
    linked = [(sum(map(len, links.ends.values())), most.get(links.slot.part, 1)) for links in parts[shape.name].slots]
    return len(parts[shape.name].keys) + sum(number * inside for number, inside in linked)


def _parts(shape: Shape, parts: Mapping[str, _Filling]) -> int:
    """How much is shown: each object, and what is inside it, wherever it is."""
    assert shape.order is not None, "of a structure that is not recursive"
    sizes: dict[str, dict[Any, int]] = {}
    for part in shape.order:
        counts = sizes[part.relation] = dict.fromkeys(parts[part.relation].keys, 1)
        for links in parts[part.relation].slots:
            inner = sizes.get(links.slot.part)
            for key, ends in links.ends.items():
                counts[key] += len(ends) if inner is None else sum(inner[links.key(key, end)] for end in ends)
    return sum(sizes[shape.name].values())


def _unrolled(shape: Shape, parts: Mapping[str, _Filling], keys: list[Row], most: int) -> list[Nested]:
    """Objects of a recursive structure: one that is inside itself is a reference there."""
    left, around = most, set[tuple[str, Any]]()

    def unrolled(name: str, key: Any) -> Nested:
        nonlocal left
        here = name, key
        if here in around:
            return {"ref": parts[name].bare(key)["id"]}
        left -= 1 + sum(len(links.ends.get(key, ())) for links in parts[name].slots if not links.slot.part)
        if left < 0 or len(around) > DEEPEST:
            raise _too_large(shape, most)
        around.add(here)
        try:
            return parts[name].shown(key, unrolled)
        finally:
            around.discard(here)

    return [unrolled(shape.name, key if shape.parameters else key[0]) for key in keys]


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
