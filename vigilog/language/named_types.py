"""The types that a program names: by `.type`, built in, or made of others."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.type_names import type_named
from vigilog.core.values import BUILTIN, NUMBER, Type, decimal_type
from vigilog.language.program import Program
from vigilog.language.syntax import Attribute, Declaration, Definition, TypeDefinition

_ELSEWHERE = {  # what other languages call our types
    **dict.fromkeys(("int", "integer", "bigint", "long", "i64", "int64"), "number"),
    **dict.fromkeys(("uint", "u64", "uint64"), "unsigned"),
    **dict.fromkeys(("string", "str", "text", "varchar", "char"), "symbol"),
    **dict.fromkeys(("double", "real", "f64", "float64"), "float"),
    **dict.fromkeys(("datetime", "time"), "timestamp"),
    **dict.fromkeys(("numeric", "money"), "decimal(p,s)"),
    "bool": "boolean",
}
_DECIMAL_NAME = re.compile(r"decimal\((\d+),(\d+)\)")


class NamedTypes:
    """The types a program declares by `.type`: the built-in type behind each, and which is part of which."""

    def __init__(self, program: Program, findings: Findings) -> None:
        self.defined: dict[str, TypeDefinition] = {}
        self.bases: dict[str, Type] = {}
        self.parts: dict[tuple[str, str], bool] = {}
        for definition in program.types:
            if definition.name in (*BUILTIN, "decimal", "set"):
                findings.error("duplicate", f"{definition.name} is a built-in type", definition.span)
            elif definition.name in self.defined:
                findings.error("duplicate", f"the type {definition.name} is defined twice", definition.span)
            else:
                self.defined[definition.name] = definition
        for definition in self.defined.values():
            self._check(definition, findings)

    def _check(self, definition: TypeDefinition, findings: Findings) -> None:
        bases = {}
        for member in definition.members:
            try:
                bases[member] = self.base(member)
            except KeyError:
                if member not in self.defined:  # else noted with that type
                    self.unknown(member, definition, findings)
                return
            except RecursionError:
                findings.error("type", f"the type {definition.name} is defined by itself", definition.span)
                return
        if len(set(bases.values())) > 1:
            parts = ", ".join(f"{member} is a {base}" for member, base in bases.items())
            findings.error(
                "type", f"the parts of {definition.name} are of different kinds: {parts}", definition.span, rule="a union has one base type"
            )

    def unknown(self, name: str, place: TypeDefinition | Attribute, findings: Findings) -> None:
        if name.startswith(("set<", "(")):
            self.unknown_part(name, place, findings)
            return
        type_names = [*BUILTIN, "decimal(p,s)", "set<…>", *self.defined]
        hint = did_you_mean(_ELSEWHERE.get(name.lower(), name), type_names) or f"types are {', '.join(type_names)}"
        match = _DECIMAL_NAME.fullmatch(name)
        if match:
            findings.error(
                "range",
                f"there is no type {name}",
                place.span,
                rule="a decimal has 1 to 18 digits, and no more of them after the point than in all",
            )
        else:
            findings.error("unknown-type", f"there is no type {name}", place.span, hint=hint)

    def unknown_part(self, name: str, place: TypeDefinition | Attribute, findings: Findings) -> None:
        """Says what is wrong with a type that is made of others."""

        def named(part: str) -> Type:
            try:
                return self.base(part)
            except KeyError:
                if part not in self.defined:
                    self.unknown(part, place, findings)
                return NUMBER

        try:
            type_named(name, named)
        except ValueError as reason:
            findings.error("limit" if "nest" in str(reason) else "unknown-type", str(reason), place.span)

    def base(self, name: str) -> Type:
        """The built-in type behind a name. Raises KeyError for an unknown name, RecursionError for a circle."""
        path = [name]
        while path[-1] in self.defined and path[-1] not in self.bases:
            path.append(self.defined[path[-1]].members[0])
            if path[-1] in path[:-1]:
                raise RecursionError
        base = self.bases.get(path[-1]) or self.built_in(path[-1])
        for step in path:
            self.bases[step] = base
        return base

    def built_in(self, name: str) -> Type:
        if not name.startswith(("set<", "(")):
            return _built_in(name)
        try:
            return type_named(name, self.base)
        except ValueError:
            raise KeyError(name) from None

    def part_of(self, name: str, whole: str) -> bool:
        """Whether every value of type `name` is one of type `whole`."""
        key = (name, whole)
        if key not in self.parts:
            self.parts[key] = name == whole  # what a circle would find
            self.parts[key] = name == whole or self._within(name, whole)
        return self.parts[key]

    def _within(self, name: str, whole: str) -> bool:
        target = self.defined.get(whole)
        if target is not None and not target.subtype and any(self.part_of(name, member) for member in target.members):
            return True
        if name.startswith(("set<", "(")) and whole.startswith(name[0]):
            return self.built_in(name) == self.built_in(whole)  # parts that have names of their own are taken for what is behind them
        own = self.defined.get(name)
        return own is not None and all(self.part_of(member, whole) for member in own.members)


def _built_in(name: str) -> Type:
    match = _DECIMAL_NAME.fullmatch(name)
    if not match:
        return BUILTIN[name]
    try:
        return decimal_type(int(match[1]), int(match[2]))
    except ValueError:
        raise KeyError(name) from None


_Attributed = TypeVar("_Attributed", Declaration, Definition)


def attributed(declaration: _Attributed, types: NamedTypes, findings: Findings) -> _Attributed:
    attributes = []
    for attribute in declaration.attributes:
        try:
            attributes.append(replace(attribute, type=types.base(attribute.type_name)))
        except KeyError:
            if attribute.type_name not in types.defined:  # else noted with the type's own definition
                types.unknown(attribute.type_name, attribute, findings)
        except RecursionError:
            pass  # noted with the type's own definition
    return replace(declaration, attributes=tuple(attributes))
