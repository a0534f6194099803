"""The structure of a view frame: which relations it consists of, and how their rows make up objects.

Servers nest answers by it, and tell it to clients, which build and patch objects by it.

>>> dept = Slot("dept", "Emp_dept", "symbol", part="EmpDept")
>>> head = Slot("head", "EmpDept_head", "symbol", of="Manager")
>>> shape = Shape("Emp", (), {"Emp": Part("Emp", "symbol", (dept,)), "EmpDept": Part("EmpDept", "symbol", (head,))})
>>> shape.relations, shape.recursive, Shape.from_json(shape.json()) == shape
(('Emp', 'Emp_dept', 'EmpDept', 'EmpDept_head'), False, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Slot:
    """An attribute: the relation of its links, and what they lead to: objects of a part, plain references to objects `of` a class, or values."""

    label: str
    relation: str
    type: str
    single: bool = False
    part: str = ""
    of: str = ""


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
        found: list[str] = []
        for part in self.parts.values():
            found += [part.relation, *(slot.relation for slot in part.slots)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def recursive(self) -> bool:
        """Whether an object may be inside itself."""
        return self.order is None

    @cached_property
    def order(self) -> tuple[Part, ...] | None:
        """The parts, innermost first; None if there is no such order."""
        found: list[str] = []
        while len(found) < len(self.parts):
            ready = [name for name, part in self.parts.items() if name not in found and all(s.part in found for s in part.slots if s.part)]
            if not ready:
                return None
            found += ready
        return tuple(self.parts[name] for name in found)

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
