"""Types: what each variable, constant and functor of a program is.

Every term gets a cell; terms that must be of one type share it. A cell knows the kinds it may still be, and its type once a
declared column or a functor's signature says so. What stays open takes a default: an integer constant is a `number`,
`1.5` a `float`, a quoted constant a `symbol`. Afterwards constants are values of their types.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import assert_never

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.values import BOOLEAN, BUILTIN, FLOAT, NUMBER, SYMBOL, Type, Value, decimal_type
from vigilog.language.functors import AGGREGATES, ANY, FUNCTORS, INTEGERS, NUMERIC, Signature
from vigilog.language.patterns import PATTERN_RULE, refusal
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Attribute,
    Constant,
    Constraint,
    Declaration,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Truth,
    TypeDefinition,
    Variable,
    Wildcard,
    names,
)

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


def elaborate(program: Program, findings: Findings) -> Program:
    """The program with every type filled in; what does not fit is noted in `findings`."""
    declared = Findings()
    types = _NamedTypes(program, declared)
    declarations = tuple(_declaration(declaration, types, declared) for declaration in program.declarations)
    findings.items += declared.items
    if declared.errors:
        return program
    typed = replace(program, declarations=declarations)
    return typed.with_rules(tuple(_RuleTypes(typed, types, findings).rule(rule) for rule in program.rules))


class _NamedTypes:
    """The types a program declares by `.type`: the built-in type behind each, and which is part of which."""

    def __init__(self, program: Program, findings: Findings) -> None:
        self.defined: dict[str, TypeDefinition] = {}
        self.bases: dict[str, Type] = {}
        self.parts: dict[tuple[str, str], bool] = {}
        for definition in program.types:
            if definition.name in BUILTIN or definition.name == "decimal":
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
        known = [*BUILTIN, "decimal(p,s)", *self.defined]
        hint = did_you_mean(_ELSEWHERE.get(name.lower(), name), known) or f"types are {', '.join(known)}"
        found = _DECIMAL_NAME.fullmatch(name)
        if found:
            findings.error(
                "range",
                f"there is no type {name}",
                place.span,
                rule="a decimal has 1 to 18 digits, and no more of them after the point than in all",
            )
        else:
            findings.error("unknown-type", f"there is no type {name}", place.span, hint=hint)

    def base(self, name: str) -> Type:
        """The built-in type behind a name. Raises KeyError for an unknown name, RecursionError for a circle."""
        path = [name]
        while path[-1] in self.defined and path[-1] not in self.bases:
            path.append(self.defined[path[-1]].members[0])
            if path[-1] in path[:-1]:
                raise RecursionError
        found = self.bases.get(path[-1]) or _built_in(path[-1])
        for step in path:
            self.bases[step] = found
        return found

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
        own = self.defined.get(name)
        return own is not None and all(self.part_of(member, whole) for member in own.members)


def _built_in(name: str) -> Type:
    found = _DECIMAL_NAME.fullmatch(name)
    if not found:
        return BUILTIN[name]
    try:
        return decimal_type(int(found[1]), int(found[2]))
    except ValueError:
        raise KeyError(name) from None


def _declaration(declaration: Declaration, types: _NamedTypes, findings: Findings) -> Declaration:
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


@dataclass
class _Cell:
    """What is known of the type of some terms; joined cells lead to one."""

    kinds: frozenset[str]
    type: Type | None = None
    reason: str = ""
    joined: _Cell | None = None
    broken: bool = False  # an error was told already; no other follows from it

    def root(self) -> _Cell:
        cell = self
        while cell.joined is not None:
            cell = cell.joined
        return cell

    def resolved(self) -> Type:
        cell = self.root()
        if cell.type is not None:
            return cell.type
        return next((t for t in (NUMBER, FLOAT, SYMBOL, *BUILTIN.values()) if t.kind in cell.kinds), SYMBOL)

    def __str__(self) -> str:
        cell = self.root()
        if cell.type is not None:
            return f"a {cell.type}" + (f" ({cell.reason})" if cell.reason else "")
        return {
            frozenset({"symbol", "date", "timestamp"}): "text in quotes",
            frozenset({"float", "decimal"}): "a number with a point or an exponent",
            ANY: "of any type",
            NUMERIC: "numeric",
            INTEGERS: "an integer",
        }.get(cell.kinds, "a " + " or ".join(sorted(cell.kinds)))


class _RuleTypes:
    """Types of one rule. Scopes are nested: a variable belongs to the outermost scope that names it."""

    def __init__(self, program: Program, types: _NamedTypes, findings: Findings) -> None:
        self.program, self.types, self.findings = program, types, findings
        self.cells: dict[int, _Cell] = {}
        self.scopes: list[tuple[set[str], dict[str, _Cell]]] = []

    def rule(self, rule: Rule) -> Rule:
        self.scopes.append((names(rule), {}))
        before = len(self.findings.errors)
        self.body(rule.body)
        for head in rule.heads:
            self.atom(head)
        for head in rule.heads:
            self.named_types(rule, head)
        if len(self.findings.errors) > before:
            return rule
        heads = tuple(replace(head, args=self.typed_args(head.args)) for head in rule.heads)
        return replace(rule, heads=heads, body=self.typed_body(rule.body))

    # -- first way: constraints between cells

    def body(self, body: tuple[Literal, ...]) -> None:
        """Atoms first: what a column says of a variable is what the rest is measured by."""
        for literal in body:
            if isinstance(literal, Atom):
                self.atom(literal)
        for literal in body:
            match literal:
                case Negation():
                    self.body((literal.literal,))
                case Constraint(op="match" | "contains"):
                    for arg in literal.args:
                        self.join(self.term(arg), _Cell(frozenset({"symbol"}), SYMBOL, f"{literal.op} takes symbols"), arg)
                case Constraint():
                    left, right = literal.args
                    self.join(self.term(right), self.term(left), right)
                case Disjunction():
                    for branch in literal.branches:
                        self.body(branch)
                case Atom() | Truth():
                    pass
                case _:
                    assert_never(literal)

    def atom(self, atom: Atom) -> None:
        for attribute, arg in zip(self.program.relations[atom.relation].attributes, atom.args, strict=True):
            reason = f"column {attribute.name} of {atom.relation}"
            self.join(self.term(arg), _Cell(ANY, attribute.type, reason), arg)

    def term(self, term: Term) -> _Cell:
        cell = self._term(term)
        self.cells[id(term)] = cell
        return cell

    def _term(self, term: Term) -> _Cell:
        match term:
            case Variable():
                for visible, cells in self.scopes:
                    if term.name in visible:
                        return cells.setdefault(term.name, _Cell(ANY))
                return _Cell(ANY)
            case Wildcard():
                return _Cell(ANY)
            case Constant():
                return _constant_cell(term)
            case Functor():
                return self.signature(FUNCTORS[term.name], term.name, term.args)
            case Aggregate():
                inner = names_of_scope(term)
                self.scopes.append((inner, {}))
                self.body(term.body)
                cell = self.signature(AGGREGATES[term.op].signature, term.op, () if term.target is None else (term.target,))
                self.scopes.pop()
                return cell
            case _:
                assert_never(term)

    def signature(self, signature: Signature, name: str, args: tuple[Term, ...]) -> _Cell:
        own = _Cell(signature.kinds)
        for index, arg in enumerate(args):
            wanted = signature.argument(index)
            if wanted is None:
                self.join(self.term(arg), own, arg, name)
            elif isinstance(wanted, Type):
                self.join(self.term(arg), _Cell(ANY, wanted, f"argument {index + 1} of {name}"), arg)
            else:
                self.join(self.term(arg), _Cell(wanted), arg, name)
        return own if signature.result is None else _Cell(ANY, signature.result, f"the result of {name}")

    def join(self, first: _Cell, second: _Cell, place: Term, functor: str = "") -> None:
        first, second = first.root(), second.root()
        if first is second or first.broken or second.broken:
            return
        kinds = first.kinds & second.kinds
        type_ = first.type or second.type
        clash = first.type is not None and second.type is not None and first.type != second.type
        if clash or not kinds or (type_ is not None and type_.kind not in kinds):
            where = f" by {functor}" if functor else ""
            what = f"{place.name} is" if isinstance(place, Variable) else "this is"
            rule = "both sides of a comparison, and all places of a variable, have one type"
            self.findings.error(
                "type", f"{what} {first}, but {second} is needed here{where}", place.span, rule=rule, hint=_conversion(first, second)
            )
            second.broken = True
            return
        first.joined = second
        second.kinds, second.type = kinds, type_
        second.reason = second.reason or first.reason

    def named_types(self, rule: Rule, head: Atom) -> None:
        """A head's column of a named type takes only variables that come from that type or a part of it."""
        if not self.types.defined:
            return
        for attribute, arg in zip(self.program.relations[head.relation].attributes, head.args, strict=True):
            if not isinstance(arg, Variable):
                continue
            sources = set(self.sources(arg.name, rule.body))
            if sources and not any(self.types.part_of(source, attribute.type_name) for source in sources):
                found = " and ".join(sorted(sources))
                message = f"{arg.name} is a {found}, but column {attribute.name} of {head.relation} takes a {attribute.type_name}"
                self.findings.error(
                    "type", message, arg.span, rule="a subtype goes where its base type is asked for, not the other way round"
                )

    def sources(self, name: str, body: tuple[Literal, ...]) -> Iterator[str]:
        for literal in body:
            match literal:
                case Atom():
                    attributes = self.program.relations[literal.relation].attributes
                    for attribute, arg in zip(attributes, literal.args, strict=True):
                        if isinstance(arg, Variable) and arg.name == name:
                            yield attribute.type_name
                case Disjunction():
                    for branch in literal.branches:
                        yield from self.sources(name, branch)
                case Negation() | Constraint() | Truth():
                    pass
                case _:
                    assert_never(literal)

    # -- second way: the tree again, with its types

    def typed_body(self, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
        return tuple(self.typed_literal(literal) for literal in body)

    def typed_literal(self, literal: Literal) -> Literal:
        match literal:
            case Negation():
                inner = self.typed_literal(literal.literal)
                assert isinstance(inner, Atom | Constraint)
                return replace(literal, literal=inner)
            case Disjunction():
                return replace(literal, branches=tuple(self.typed_body(branch) for branch in literal.branches))
            case Truth():
                return literal
            case Atom() | Constraint():
                pass
            case _:
                assert_never(literal)
        typed = replace(literal, args=self.typed_args(literal.args))
        match typed:
            case Constraint(op="match", args=(Constant(value=str(text), span=span), *_)) if refused := refusal(text):
                self.findings.error("pattern", refused.message, span, rule=PATTERN_RULE, hint=refused.hint)
        return typed

    def typed_args(self, args: tuple[Term, ...]) -> tuple[Term, ...]:
        return tuple(self.typed(arg) for arg in args)

    def typed(self, term: Term) -> Term:
        type_ = self.cells[id(term)].resolved()
        match term:
            case Constant():
                return replace(term, value=self.constant(term, type_), type=type_, unsigned=type_.kind == "unsigned")
            case Functor():
                args = self.typed_args(term.args)
                if term.name in ("/", "%") and isinstance(args[1], Constant) and args[1].value == 0:
                    rule = "division by zero has no value, so this could never hold"
                    self.findings.error("division-by-zero", "this divides by the constant 0", term.span, rule=rule)
                return replace(term, args=args, type=type_)
            case Aggregate():
                target = None if term.target is None else self.typed(term.target)
                return replace(term, target=target, body=self.typed_body(term.body), type=type_)
            case Variable() | Wildcard():
                return replace(term, type=type_)
            case _:
                assert_never(term)

    def constant(self, constant: Constant, type_: Type) -> Value:
        value: object = constant.value
        try:
            if isinstance(value, str):
                return type_.parse(value)
            return type_.check(value)
        except ValueError as reason:
            self.findings.error("range", str(reason), constant.span)
            return 0


def names_of_scope(aggregate: Aggregate) -> set[str]:
    """The variables that stand in an aggregate itself, not in aggregates inside it."""
    found: set[str] = set() if aggregate.target is None else names(aggregate.target)
    for literal in aggregate.body:
        found |= names(literal)
    return found


def _constant_cell(constant: Constant) -> _Cell:
    match constant.value:
        case bool():
            return _Cell(ANY, BOOLEAN)
        case int() if constant.unsigned:
            return _Cell(frozenset({"unsigned"}), BUILTIN["unsigned"])
        case int():
            return _Cell(NUMERIC)
        case Decimal() | float():
            return _Cell(frozenset({"float", "decimal"}))
        case str() | datetime.date():
            return _Cell(frozenset({"symbol", "date", "timestamp"}))
        case _:
            assert_never(constant.value)


def _conversion(first: _Cell, second: _Cell) -> str:
    wanted = second.root().type
    if wanted is None or first.root().type is None:
        return ""
    functor = {"number": "to_number", "unsigned": "to_unsigned", "float": "to_float", "symbol": "to_string"}.get(wanted.kind)
    return f"convert it with {functor}(…)" if functor else ""


__all__ = ["elaborate", "names_of_scope", "Wildcard"]
