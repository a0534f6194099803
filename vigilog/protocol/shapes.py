"""The structure of a view frame: which relations it consists of, and how their rows make up objects.

Servers nest answers by it, and tell it to clients, which build and patch objects by it.

>>> dept = Slot("dept", "Emp_dept", "symbol", part="EmpDept")
>>> head = Slot("head", "EmpDept_head", "symbol", of="Manager")
>>> shape = Shape("Emp", (), {"Emp": Part("Emp", "symbol", (dept,)), "EmpDept": Part("EmpDept", "symbol", (head,))})
>>> differences({"Emp": {"id": "symbol", "dept": "symbol"}}, shape.structure)
'Emp.dept is set of EmpDept now, and was symbol; EmpDept is new'
>>> shape.relations, shape.recursive, Shape.from_json(shape.json()) == shape
(('Emp', 'Emp_dept', 'EmpDept', 'EmpDept_head'), False, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vigilog.core.errors import DataError


@dataclass(frozen=True)
class Slot:
    """An attribute: the relation of its links, and what they lead to: objects of a part, plain references to objects `of` a class, or values."""

    label: str
    relation: str
    type: str
    single: bool = False
    part: str = ""
    of: str = ""

    @property
    def told(self) -> str:
        """What it leads to, in words by which structures are compared: `set of EmpDept`, `number`."""
        target = self.part or (f"{self.of} ({self.type})" if self.of else self.type)
        return target if self.single else f"set of {target}"


@dataclass(frozen=True)
class Part:
    """A frame or subframe: the relation of its objects, the type of their ids, their attributes. Its relations begin with so many parameters."""

    relation: str
    type: str
    slots: tuple[Slot, ...] = ()
    parameters: int = 0


@dataclass(frozen=True)
class Shape:
    """A view frame. Its main part comes first."""

    name: str
    parameters: tuple[tuple[str, str], ...]  # names and types
    parts: Mapping[str, Part]

    @cached_property
    def main(self) -> Part:
        return self.parts[self.name]

    @cached_property
    def relations(self) -> tuple[str, ...]:
        relations: list[str] = []
        for part in self.parts.values():
            relations += [part.relation, *(slot.relation for slot in part.slots)]
        return tuple(dict.fromkeys(relations))

    @cached_property
    def recursive(self) -> bool:
        """Whether an object may be inside itself."""
        return self.order is None

    @cached_property
    def order(self) -> tuple[Part, ...] | None:
        """The parts, innermost first; None if there is no such order."""
        ordered: list[str] = []
        while len(ordered) < len(self.parts):
            ready = [
                name for name, part in self.parts.items() if name not in ordered and all(s.part in ordered for s in part.slots if s.part)
            ]
            if not ready:
                return None
            ordered += ready
        return tuple(self.parts[name] for name in ordered)

    @cached_property
    def structure(self) -> dict[str, dict[str, str]]:
        """What is known of the objects of each part, by names, in words: its id, parameters, attributes."""
        parts = {name: {"id": part.type, **{slot.label: slot.told for slot in part.slots}} for name, part in self.parts.items()}
        return {self.name: {**parts.pop(self.name), **{f"~{name}": type_ for name, type_ in self.parameters}}, **parts}

    def bound(self, bind: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
        """What the columns of each relation are bound to by values of parameters, which are the first. Raises DataError for what is no parameter."""
        parameters = [name for name, _ in self.parameters]
        if strange := [name for name in bind if name not in parameters]:
            rule = f"its parameters are {', '.join(parameters)}" if parameters else "it has none"
            raise DataError(f"{self.name} has no parameter {strange[0]}; {rule}", "column")
        values = {parameters.index(name): value for name, value in bind.items()}
        with_parameters = [part for part in self.parts.values() if part.parameters]
        bound = {name for part in with_parameters for name in (part.relation, *(slot.relation for slot in part.slots))}
        return {name: values if name in bound else {} for name in self.relations}

    def json(self) -> dict[str, Any]:
        parts = [
            {
                "relation": part.relation,
                "type": part.type,
                "parameters": part.parameters,
                "attributes": [{key: value for key, value in vars(slot).items() if value} for slot in part.slots],
            }
            for part in self.parts.values()
        ]
        parameters = [{"name": name, "type": type_} for name, type_ in self.parameters]
        return {"name": self.name, "parameters": parameters, "parts": parts}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Shape:
        parts = {
            part["relation"]: Part(
                part["relation"], part["type"], tuple(Slot(**slot) for slot in part["attributes"]), part.get("parameters", 0)
            )
            for part in told["parts"]
        }
        return cls(told["name"], tuple((each["name"], each["type"]) for each in told["parameters"]), parts)


Structure = Mapping[str, Mapping[str, str]]


def differences(old: Structure, new: Structure) -> str:
    """What a structure has that another has not; nothing if they are the same."""
    changes = []
    for part in dict.fromkeys([*old, *new]):
        if part not in old or part not in new:
            changes.append(f"{part} is {'new' if part in new else 'gone'}")
            continue
        for label in dict.fromkeys([*old[part], *new[part]]):
            before, after = old[part].get(label), new[part].get(label)
            if before is None:
                changes.append(f"{part}.{label} is new: {after}")
            elif after is None:
                changes.append(f"{part}.{label} is gone")
            elif before != after:
                changes.append(f"{part}.{label} is {after} now, and was {before}")
    return "; ".join(changes)
