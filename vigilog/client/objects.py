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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from vigilog.core.delta import Delta, between
from vigilog.core.errors import DataError
from vigilog.core.values import Row, sorted_rows
from vigilog.protocol.shapes import Part, Shape, Slot

TAKEN = ("id", "alive", "params")  # what objects have beside their attributes


def attribute_name(label: str) -> str:
    """What an attribute is called in Python: its label, unless that is taken or a word of the language.

    >>> attribute_name("dept"), attribute_name("class"), attribute_name("alive")
    ('dept', 'class_', 'alive_')
    """
    from keyword import iskeyword

    return f"{label}_" if label in TAKEN or iskeyword(label) else label


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

    @property
    def objects(self) -> dict[Any, Object]:
        """The main objects by id; of a view with parameters by parameters and id."""
        main = self.parts[self.shape.name]
        return dict(main) if self.shape.parameters else {key[0]: each for key, each in main.items()}

    # -- rows to objects

    def apply(self, deltas: Mapping[str, Delta]) -> list[Event]:
        """Patches the objects by all of a change; gives what happened, in the order in which it is told."""
        told: dict[str, list[Event]] = {"unlink": [], "delete": [], "create": [], "link": []}
        for name, part in self.shape.parts.items():
            for row in sorted_rows(deltas.get(part.relation, Delta()).plus):
                made = self.parts[name][row] = self.classes[name](row[-1], row[:-1])
                told["create"].append(Event("create", made))
        for name, slot in self._slots():
            delta = deltas.get(slot.relation)
            if delta is not None:
                told["unlink"] += [self._unlink(name, slot, row) for row in sorted_rows(delta.minus)]
                told["link"] += [self._link(name, slot, row) for row in sorted_rows(delta.plus)]
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
        known = dict(self.rows())
        return self.apply({relation: between(known.get(relation, set()), new) for relation, new in rows.items()})

    def rows(self) -> Iterator[tuple[str, set[Row]]]:
        """The relations that the objects are made of."""
        for name, part in self.shape.parts.items():
            yield part.relation, set(self.parts[name])
            for slot in part.slots:
                yield slot.relation, {(*key, _id(end)) for key, each in self.parts[name].items() for end in _ends(each, slot)}

    def _slots(self) -> Iterator[tuple[str, Slot]]:
        for name, part in self.shape.parts.items():
            for slot in part.slots:
                yield name, slot

    def _touched(self, told: Mapping[str, Sequence[Event]]) -> dict[Any, ObjectName]:
        """The plain references that lost a link."""
        return {event.other.id: event.other for event in told["unlink"] if isinstance(event.other, ObjectName)}

    def _link(self, name: str, slot: Slot, row: Row) -> Event:
        source, label = self._source(name, slot, row), attribute_name(slot.label)
        end = self._end(slot, row)
        if isinstance(end, ObjectName):
            end.links += 1
        if slot.single:
            setattr(source, label, end)
        else:
            getattr(source, label).add(end)
        return Event("link", source, label, end)

    def _unlink(self, name: str, slot: Slot, row: Row) -> Event:
        source, label = self._source(name, slot, row), attribute_name(slot.label)
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


def _ends(each: Object, slot: Slot) -> Sequence[Any]:
    found = getattr(each, attribute_name(slot.label))
    if not slot.single:
        return tuple(found)
    return () if found is None else (found,)


def _id(end: Any) -> Any:
    return end.id if isinstance(end, Object | ObjectName) else end


def _made(shape: Shape, part: Part) -> type[Object]:
    """A class for a part, where none was generated."""
    base = View if part.relation == shape.name else SubView
    labels = tuple((attribute_name(slot.label), slot.single) for slot in part.slots)
    return type(part.relation, (base,), {"__slots__": tuple(name for name, _ in labels), "labels": labels})
