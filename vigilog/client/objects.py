"""Objects of a view frame in the client's memory: one for each frame and database object, shared between parents, patched in place.

The law: after each change the objects are those that a first extraction would make anew, and an object that was there before is the same object.

>>> from vigilog.core.delta import Delta
>>> from vigilog.protocol.shapes import Part, Shape, Slot
>>> emp = Part("Emp", "symbol", (Slot("dept", "Emp_dept", "symbol", part="EmpDept"),))
>>> dept = Part("EmpDept", "symbol", (Slot("head", "EmpDept_head", "symbol", of="Manager"),))
>>> graph = Graph(Shape("Emp", (), {"Emp": emp, "EmpDept": dept}))
>>> def told(**plus):
...     return {name: Delta(plus=frozenset(rows)) for name, rows in plus.items()}
>>> events = graph.apply(told(Emp={("ann",), ("bob",)}, EmpDept={("d1",)}, Emp_dept={("ann", "d1"), ("bob", "d1")}))
>>> ann, bob = graph.objects["ann"], graph.objects["bob"]
>>> ann.dept == bob.dept, [event.kind for event in events]
(True, ['create', 'create', 'create', 'link', 'link'])
>>> _ = graph.apply({"Emp": Delta(minus=frozenset({("ann",)})), "Emp_dept": Delta(minus=frozenset({("ann", "d1")}))})
>>> ann.alive, ann.dept, [each.id for each in bob.dept]
(False, set(), ['d1'])
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import kwlist
from types import MappingProxyType
from typing import Any, ClassVar

from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError
from vigilog.core.values import Row, sorted_rows
from vigilog.protocol.shapes import Part, Shape, Slot

OWN = ("alive", "id", "labels", "params")  # what objects have beside their attributes
TYPES = (
    "ClassVar",
    "Decimal",
    "ObjectName",
    "bool",
    "datetime",
    "float",
    "frozenset",
    "int",
    "set",
    "str",
    "tuple",
)  # in generated classes
TAKEN = (*OWN, *TYPES, *kwlist)


def attribute_names(labels: Iterable[str]) -> dict[str, str]:
    """What attributes of a class are called in Python: their labels, unless these mean something there.

    >>> attribute_names(["dept", "class", "alive", "alive_", "__init__"])
    {'dept': 'dept', 'class': 'class_', 'alive': 'alive__', 'alive_': 'alive_', '__init__': 'init__'}
    """
    labels = list(labels)
    names: dict[str, str] = {}
    for label in labels:
        name = label.lstrip("_") if label.startswith("__") else label
        while name in TAKEN or (name != label and name in labels) or name in names.values():
            name += "_"
        names[label] = name
    return names


class Object:
    """What is known of a database object; when it is deleted it keeps its id, is not `alive`, and its sets are empty."""

    __slots__ = ("alive", "id", "params")
    labels: ClassVar[tuple[tuple[str, bool], ...]] = ()  # attributes, and which of them are single

    def __init__(self, id: Any, params: Row = ()) -> None:
        self.id, self.params, self.alive = id, params, True
        for name, single in self.labels:
            setattr(self, name, None if single else set())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}{'' if self.alive else ', deleted'}>"


class View(Object):
    """An object of a view frame itself."""

    __slots__ = ()


class SubView(Object):
    """An object of a subframe, or of a view inside a view."""

    __slots__ = ()


class ObjectName:
    """A plain reference to an object: its id. There is one for each id, and it lives while something is linked to it."""

    __slots__ = ("alive", "id", "links")

    def __init__(self, id: Any) -> None:
        self.id, self.alive, self.links = id, True, 0

    def __repr__(self) -> str:
        return f"<ObjectName {self.id}>"


class _ById(Mapping[Any, Object]):
    """Objects by their ids, as they are now. Who goes through them goes through those that there were at the beginning."""

    def __init__(self, rows: Mapping[Row, Object]) -> None:
        self._rows = rows

    def __getitem__(self, id: Any) -> Object:
        try:
            return self._rows[(id,)]
        except KeyError:
            raise KeyError(id) from None

    def __iter__(self) -> Iterator[Any]:
        return iter([id for (id,) in list(self._rows)])

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class Event:
    """What became of an object, or of a link of it, by a transaction: `unlink`, `delete`, `create` or `link`, called in this order."""

    kind: str
    object: Object
    label: str = ""
    other: Any = None


class Graph:
    """The objects of a view frame. Classes that are generated are given by their parts' names; others are made."""

    def __init__(self, shape: Shape, classes: Mapping[str, type[Object]] | None = None) -> None:
        self.shape = shape
        self.classes = {name: (classes or {}).get(name) or _made(shape, part) for name, part in shape.parts.items()}
        self.parts: dict[str, dict[Row, Object]] = {name: {} for name in shape.parts}
        self.names: dict[Any, ObjectName] = {}
        main = self.parts[shape.name]
        self.objects: Mapping[Any, Object] = MappingProxyType(main) if shape.parameters else _ById(main)
        self._slots = [
            (name, slot, attribute)
            for name, part in shape.parts.items()
            for slot, attribute in zip(part.slots, attribute_names(slot.label for slot in part.slots).values(), strict=True)
        ]

    # -- rows to objects

    def apply(self, deltas: Mapping[str, Delta]) -> list[Event]:
        """Patches the objects by all of a change; gives what happened, in the order in which it is told."""
        told: dict[str, list[Event]] = {"unlink": [], "delete": [], "create": [], "link": []}
        for name, part in self.shape.parts.items():
            for row in sorted_rows(deltas.get(part.relation, Delta()).plus):
                made = self.parts[name][row] = self.classes[name](row[-1], row[:-1])
                told["create"].append(Event("create", made))
        for name, slot, attribute in self._slots:
            delta = deltas.get(slot.relation)
            if delta is not None:
                told["unlink"] += [self._unlink(name, slot, attribute, row) for row in sorted_rows(delta.minus)]
                told["link"] += [self._link(name, slot, attribute, row) for row in sorted_rows(delta.plus)]
        for name, part in self.shape.parts.items():
            for row in sorted_rows(deltas.get(part.relation, Delta()).minus):
                gone = self.parts[name].pop(row)
                gone.alive = False
                told["delete"].append(Event("delete", gone))
        for id in [id for id, each in self._touched(told).items() if not each.links]:
            self.names.pop(id).alive = False
        return [event for kind in ("unlink", "delete", "create", "link") for event in told[kind]]

    def replace(self, rows: Mapping[str, frozenset[Row]]) -> list[Event]:
        """Goes over to a new first answer: the difference is applied as one change."""
        before = dict(self.rows())
        return self.apply({relation: between(before.get(relation, set()), new) for relation, new in rows.items()})

    def rows(self) -> Iterator[tuple[str, set[Row]]]:
        """The relations that the objects are made of."""
        for name, part in self.shape.parts.items():
            yield part.relation, set(self.parts[name])
        for name, slot, attribute in self._slots:
            values = ((key, getattr(each, attribute)) for key, each in self.parts[name].items())
            yield slot.relation, {(*key, _id(end)) for key, value in values for end in _ends(value, slot)}

    def _touched(self, told: Mapping[str, Sequence[Event]]) -> dict[Any, ObjectName]:
        """The plain references that lost a link."""
        return {event.other.id: event.other for event in told["unlink"] if isinstance(event.other, ObjectName)}

    def _link(self, name: str, slot: Slot, label: str, row: Row) -> Event:
        source = self._source(name, slot, row)
        end = self._end(slot, row)
        if isinstance(end, ObjectName):
            end.links += 1
        if slot.single:
            setattr(source, label, end)
        else:
            getattr(source, label).add(end)
        return Event("link", source, label, end)

    def _unlink(self, name: str, slot: Slot, label: str, row: Row) -> Event:
        source = self._source(name, slot, row)
        end = self._end(slot, row)
        if isinstance(end, ObjectName):
            end.links -= 1
        if not slot.single:
            getattr(source, label).discard(end)
        elif getattr(source, label) == end:
            setattr(source, label, None)
        return Event("unlink", source, label, end)

    def _source(self, name: str, slot: Slot, row: Row) -> Object:
        try:
            return self.parts[name][row[:-1]]
        except KeyError:
            raise DataError(f"{slot.relation} links an object that {name} does not have", "message") from None

    def _end(self, slot: Slot, row: Row) -> Any:
        inner = self.shape.parts.get(slot.part)
        if inner is not None:
            return self.parts[slot.part][(*row[: inner.parameters], row[-1])]
        if slot.of:
            if row[-1] not in self.names:
                self.names[row[-1]] = ObjectName(row[-1])
            return self.names[row[-1]]
        return row[-1]


def _ends(value: Any, slot: Slot) -> Sequence[Any]:
    if not slot.single:
        return tuple(value)
    return () if value is None else (value,)


def _id(end: Any) -> Any:
    return end.id if isinstance(end, Object | ObjectName) else end


def _made(shape: Shape, part: Part) -> type[Object]:
    """A class for a part, where none was generated."""
    base = View if part.relation == shape.name else SubView
    names = attribute_names(slot.label for slot in part.slots)
    labels = tuple((names[slot.label], slot.single) for slot in part.slots)
    return type(part.relation, (base,), {"__slots__": tuple(name for name, _ in labels), "labels": labels})
