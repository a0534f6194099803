"""Types: what each variable, constant and functor of a program is.

Every term gets a cell; terms that must be of one type share it. A cell knows the kinds it may still be, and its type once a
declared column or a functor's signature says so. What stays open takes a default: an integer constant is a `number`,
`1.5` a `float`, a quoted constant a `symbol`. Afterwards constants are values of their types.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import assert_never

from vigilog.core.errors import Findings
from vigilog.core.sets import Set
from vigilog.core.values import BOOLEAN, BUILTIN, NUMBER, SYMBOL, Type, Value
from vigilog.language import syntax
from vigilog.language.cells import Cell
from vigilog.language.functors import AGGREGATES, ANY, FUNCTORS, NUMERIC, Signature, apply
from vigilog.language.library import SHAPES
from vigilog.language.named_types import NamedTypes, attributed
from vigilog.language.parts import constraints, names
from vigilog.language.patterns import PATTERN_RULE, refusal
from vigilog.language.program import Program


def elaborate(program: Program, findings: Findings) -> Program:
    """The program with every type filled in; what does not fit is noted in `findings`."""
    declared = Findings()
    types = NamedTypes(program, declared)
    declarations = tuple(attributed(declaration, types, declared) for declaration in program.declarations)
    aggregates = tuple(attributed(definition, types, declared) for definition in program.aggregates)
    findings.items += declared.items
    if declared.errors:
        return program
    typed = replace(program, declarations=declarations, aggregates=aggregates)
    defined: dict[str, syntax.Definition] = {}
    for definition in in_order(aggregates):  # each after those that it is defined by
        rules = tuple(_RuleTypes(typed, types, findings, defined).rule(rule) for rule in definition.rules)
        defined[definition.name] = replace(definition, rules=rules)
    typed = replace(typed, aggregates=tuple(defined[definition.name] for definition in aggregates))
    return typed.with_rules(tuple(_RuleTypes(typed, types, findings, defined).rule(rule) for rule in program.rules))


def in_order(definitions: Sequence[syntax.Definition]) -> list[syntax.Definition]:
    """Aggregates, each after those that it calls; what is in a cycle comes last."""
    ordered: dict[str, syntax.Definition] = {}
    left = list(definitions)
    while left:
        ready = [each for each in left if calls(each) - {each.name} <= ordered.keys()] or left
        ordered |= {each.name: each for each in ready}
        left = [each for each in left if each.name not in ordered]
    return list(ordered.values())


def calls(definition: syntax.Definition) -> set[str]:
    """The program's aggregates that an aggregate is defined by."""
    return {part.op for rule in definition.rules for part in constraints(rule.body) if part.definition is not None}


class _RuleTypes:
    """Types of one rule. Scopes are nested: a variable belongs to the outermost scope that names it."""

    def __init__(self, program: Program, types: NamedTypes, findings: Findings, definitions: Mapping[str, syntax.Definition]) -> None:
        self.program, self.types, self.findings, self.definitions = program, types, findings, definitions
        self.cells: dict[int, Cell] = {}
        self.scopes: list[tuple[set[str], dict[str, Cell]]] = []

    def rule(self, rule: syntax.Rule) -> syntax.Rule:
        self.scopes.append((names(rule), {}))
        before = len(self.findings.errors)
        defined = rule.heads[0].relation not in self.program.relations  # an aggregate, whose head says most
        for head in rule.heads if defined else ():
            self.atom(head)
        self.body(rule.body)
        for head in () if defined else rule.heads:
            self.atom(head)
            self.named_types(rule, head)
        if len(self.findings.errors) > before:
            return rule
        heads = tuple(replace(head, args=self.typed_args(head.args)) for head in rule.heads)
        return replace(rule, heads=heads, body=self.typed_body(rule.body))

    # -- first way: constraints between cells

    def body(self, body: tuple[syntax.Literal, ...]) -> None:
        """Atoms first: what a column says of a variable is what the rest is measured by."""
        for literal in body:
            if isinstance(literal, syntax.Atom):
                self.atom(literal)
        for literal in body:
            match literal:
                case syntax.Negation():
                    self.body((literal.literal,))
                case syntax.Builtin() if (use := syntax.usage(literal)) is not None:
                    continue
                case syntax.Builtin(op="match" | "contains"):
                    for arg in literal.args:
                        self.join(self.term(arg), Cell(frozenset({"symbol"}), SYMBOL, f"{literal.op} takes symbols"), arg)
                case syntax.Builtin():
                    left, right = literal.args
                    self.join(self.term(right), self.term(left), right)
                case syntax.Disjunction():
                    for branch in literal.branches:
                        self.body(branch)
                case syntax.SetOf():
                    self.scopes.append((names_within(literal), {}))
                    self.body(literal.body)
                    collected = Cell(frozenset({"set"}), None, "", [self.term(literal.target)])
                    self.scopes.pop()
                    self.join(self.term(literal.result), collected, literal.result)
                case syntax.Atom() | syntax.Truth():
                    pass
                case _:
                    assert_never(literal)
        for literal in body:
            if isinstance(literal, syntax.Builtin) and (use := syntax.usage(literal)) is not None:
                self.used(literal, use)

    def used(self, literal: syntax.Builtin, use: syntax.Usage) -> None:
        """Types of `member` and of aggregates over sets; last, for which component there is must be known by then."""
        if literal.definition is not None:
            for attribute, arg in zip(self.attributes(literal.op), literal.args, strict=True):
                self.join(self.term(arg), Cell.of(attribute.type, f"argument {attribute.name} of {literal.op}"), arg)
            return
        element = Cell(ANY)
        collected = use.given[0]
        self.join(self.term(collected), Cell(frozenset({"set"}), None, "", [element]), collected, literal.op)
        if literal.op == "member":
            self.join(self.term(use.results[0]), element, use.results[0])
            return
        shape, value = SHAPES[literal.op], self.component(literal, element, use.component)
        self.join(value, Cell(shape.kinds), collected, literal.op)
        for parameter in use.given[1:]:
            self.join(self.term(parameter), Cell.of(shape.parameter, f"argument 2 of {literal.op}"), parameter)
        result = Cell(frozenset({"set"}), None, "", [value]) if shape.collects else value
        result = result if shape.result is None else Cell.of(shape.result, f"the result of {literal.op}")
        self.join(self.term(use.results[0]), result, use.results[0], literal.op)

    def component(self, literal: syntax.Builtin, element: Cell, place: syntax.Term | None) -> Cell:
        """The component that an aggregate takes of the elements; the elements themselves if it takes none."""
        if place is None:
            return element
        self.join(self.term(place), Cell.of(NUMBER), place)
        parts = element.root().parts if element.root().kinds == {"tuple"} else None
        rule = "the last argument is the number of a component of the set's tuples, from 1"
        if not isinstance(place, syntax.Constant) or not isinstance(place.value, int):
            self.findings.error("type", "a component is a number that is written out", place.span, rule=rule)
        elif parts is None:
            self.findings.error(
                "type", f"the elements of this set are no tuples, so they have no component {place.value}", place.span, rule=rule
            )
        elif not 1 <= place.value <= len(parts):
            self.findings.error(
                "range", f"there is no component {place.value}; the tuples of this set have {len(parts)}", place.span, rule=rule
            )
        else:
            return parts[place.value - 1]
        return Cell(ANY, broken=True)

    def attributes(self, relation: str) -> tuple[syntax.Attribute, ...]:
        if relation in self.program.relations:
            return self.program.relations[relation].attributes
        return next(definition.attributes for definition in self.program.aggregates if definition.name == relation)

    def atom(self, atom: syntax.Atom) -> None:
        for attribute, arg in zip(self.attributes(atom.relation), atom.args, strict=True):
            reason = f"column {attribute.name} of {atom.relation}"
            self.join(self.term(arg), Cell.of(attribute.type, reason), arg)

    def term(self, term: syntax.Term) -> Cell:
        cell = self._term(term)
        self.cells[id(term)] = cell
        return cell

    def _term(self, term: syntax.Term) -> Cell:
        match term:
            case syntax.Variable():
                for visible, cells in self.scopes:
                    if term.name in visible:
                        return cells.setdefault(term.name, Cell(ANY))
                return Cell(ANY)
            case syntax.Wildcard():
                return Cell(ANY)
            case syntax.Constant():
                return _constant_cell(term)
            case syntax.Functor(name="()"):
                return Cell(frozenset({"tuple"}), parts=[self.term(arg) for arg in term.args])
            case syntax.Functor(name="{}"):
                element = Cell(ANY)
                for arg in term.args:
                    self.join(self.term(arg), element, arg)
                return Cell(frozenset({"set"}), parts=[element])
            case syntax.Functor(name="{|}", args=(added, rest)):
                whole = Cell(frozenset({"set"}), parts=[self.term(added)])
                self.join(self.term(rest), whole, rest)
                return whole
            case syntax.Functor():
                return self.signature(FUNCTORS[term.name], term.name, term.args)
            case syntax.Aggregate():
                inner = names_of_scope(term)
                self.scopes.append((inner, {}))
                self.body(term.body)
                cell = self.signature(AGGREGATES[term.op].signature, term.op, () if term.target is None else (term.target,))
                if term.op == "setof":
                    cell = Cell(frozenset({"set"}), parts=[cell])
                self.scopes.pop()
                return cell
            case _:
                assert_never(term)

    def signature(self, signature: Signature, name: str, args: tuple[syntax.Term, ...]) -> Cell:
        own = Cell(signature.kinds)
        for index, arg in enumerate(args):
            wanted = signature.argument(index)
            if wanted is None:
                self.join(self.term(arg), own, arg, name)
            elif isinstance(wanted, Type):
                self.join(self.term(arg), Cell(ANY, wanted, f"argument {index + 1} of {name}"), arg)
            else:
                self.join(self.term(arg), Cell(wanted), arg, name)
        return own if signature.result is None else Cell(ANY, signature.result, f"the result of {name}")

    def join(self, first: Cell, second: Cell, place: syntax.Term, functor: str = "") -> None:
        first, second = first.root(), second.root()
        if first is second or first.broken or second.broken:
            return
        kinds = first.kinds & second.kinds
        type_ = first.type or second.type
        if first.parts is not None and second.parts is not None and kinds and len(first.parts) == len(second.parts):
            for one, other in zip(first.parts, second.parts, strict=True):
                self.join(one, other, place, functor)
            first.joined = second.root() if first is not second.root() else None
            return
        clash = first.type is not None and second.type is not None and first.type != second.type
        clash = clash or (first.parts is not None and second.parts is not None)
        if clash or not kinds or (type_ is not None and type_.kind not in kinds):
            where = f" by {functor}" if functor else ""
            what = f"{place.name} is" if isinstance(place, syntax.Variable) else "this is"
            rule = "both sides of a comparison, and all places of a variable, have one type"
            self.findings.error(
                "type", f"{what} {first}, but {second} is needed here{where}", place.span, rule=rule, hint=_conversion(first, second)
            )
            second.broken = True
            return
        first.joined = second
        second.kinds, second.type, second.parts = kinds, type_, first.parts if second.parts is None else second.parts
        second.reason = second.reason or first.reason

    def named_types(self, rule: syntax.Rule, head: syntax.Atom) -> None:
        """A head's column of a named type takes only variables that come from that type or a part of it."""
        if not self.types.defined:
            return
        for attribute, arg in zip(self.program.relations[head.relation].attributes, head.args, strict=True):
            if not isinstance(arg, syntax.Variable):
                continue
            sources = set(self.sources(arg.name, rule.body))
            if sources and not any(self.types.part_of(source, attribute.type_name) for source in sources):
                given = " and ".join(sorted(sources))
                message = f"{arg.name} is a {given}, but column {attribute.name} of {head.relation} takes a {attribute.type_name}"
                self.findings.error(
                    "type", message, arg.span, rule="a subtype goes where its base type is asked for, not the other way round"
                )

    def sources(self, name: str, body: tuple[syntax.Literal, ...]) -> Iterator[str]:
        for literal in body:
            match literal:
                case syntax.Atom():
                    attributes = self.program.relations[literal.relation].attributes
                    for attribute, arg in zip(attributes, literal.args, strict=True):
                        if isinstance(arg, syntax.Variable) and arg.name == name:
                            yield attribute.type_name
                case syntax.Disjunction():
                    for branch in literal.branches:
                        yield from self.sources(name, branch)
                case syntax.SetOf():
                    yield from self.sources(name, literal.body)
                case syntax.Negation() | syntax.Builtin() | syntax.Truth():
                    pass
                case _:
                    assert_never(literal)

    # -- second way: the tree again, with its types

    def typed_body(self, body: tuple[syntax.Literal, ...]) -> tuple[syntax.Literal, ...]:
        return tuple(self.typed_literal(literal) for literal in body)

    def typed_literal(self, literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Negation():
                inner = self.typed_literal(literal.literal)
                assert isinstance(inner, syntax.Atom | syntax.Builtin)
                return replace(literal, literal=inner)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(self.typed_body(branch) for branch in literal.branches))
            case syntax.Truth():
                return literal
            case syntax.SetOf():
                typed_body, result = self.typed_body(literal.body), self.typed(literal.result)
                return replace(literal, target=self.typed(literal.target), body=typed_body, result=result)
            case syntax.Atom() | syntax.Builtin():
                pass
            case _:
                assert_never(literal)
        typed = replace(literal, args=self.typed_args(literal.args))
        if isinstance(typed, syntax.Builtin) and typed.definition is not None:
            typed = replace(typed, definition=self.definitions.get(typed.op, typed.definition))
        match typed:
            case syntax.Builtin(op="match", args=(syntax.Constant(value=str(text), span=span), *_)) if refused := refusal(text):
                self.findings.error("pattern", refused.message, span, rule=PATTERN_RULE, hint=refused.hint)
        return typed

    def typed_args(self, args: tuple[syntax.Term, ...]) -> tuple[syntax.Term, ...]:
        return tuple(self.typed(arg) for arg in args)

    def typed(self, term: syntax.Term) -> syntax.Term:
        type_ = self.cells[id(term)].resolved()
        match term:
            case syntax.Constant():
                return replace(term, value=self.constant(term, type_), type=type_, unsigned=type_.kind == "unsigned")
            case syntax.Functor():
                args = self.typed_args(term.args)
                if term.name in ("/", "%") and isinstance(args[1], syntax.Constant) and args[1].value == 0:
                    rule = "division by zero has no value, so this could never hold"
                    self.findings.error("division-by-zero", "this divides by the constant 0", term.span, rule=rule)
                if term.name in ("()", "{}") and all(isinstance(arg, syntax.Constant) for arg in args):
                    value = apply(term.name, type_, (), [arg.value for arg in args if isinstance(arg, syntax.Constant)])
                    assert value is not None, "a set or a tuple of constants has a value"
                    return syntax.Constant(value, type_, span=term.span)
                return replace(term, args=args, type=type_)
            case syntax.Aggregate():
                target = None if term.target is None else self.typed(term.target)
                return replace(term, target=target, body=self.typed_body(term.body), type=type_)
            case syntax.Variable() | syntax.Wildcard():
                return replace(term, type=type_)
            case _:
                assert_never(term)

    def constant(self, constant: syntax.Constant, type_: Type) -> Value:
        value: object = constant.value
        try:
            if isinstance(value, str) and not type_.parts:
                return type_.parse(value)
            return type_.check(value)
        except ValueError as reason:
            self.findings.error("range", str(reason), constant.span)
            return 0


def names_of_scope(aggregate: syntax.Aggregate) -> set[str]:
    """The variables that stand in an aggregate itself, not in aggregates inside it."""
    scope: set[str] = set() if aggregate.target is None else names(aggregate.target)
    for literal in aggregate.body:
        scope |= names(literal)
    return scope


def names_within(literal: syntax.SetOf) -> set[str]:
    """The variables that stand in a setof itself, its own among them."""
    return set[str]().union(names(literal.target), names(literal.result), *map(names, literal.body))


def _constant_cell(constant: syntax.Constant) -> Cell:
    match constant.value:
        case Set() | tuple():
            assert constant.type is not None, "such a constant was typed before"
            return Cell.of(constant.type)
        case bool():
            return Cell(ANY, BOOLEAN)
        case int() if constant.unsigned:
            return Cell(frozenset({"unsigned"}), BUILTIN["unsigned"])
        case int():
            return Cell(NUMERIC)
        case Decimal() | float():
            return Cell(frozenset({"float", "decimal"}))
        case str() | datetime.date():
            return Cell(frozenset({"symbol", "date", "timestamp"}))
        case _:
            assert_never(constant.value)


def _conversion(first: Cell, second: Cell) -> str:
    wanted = second.root().type
    if wanted is None or first.root().type is None:
        return ""
    functor = {"number": "to_number", "unsigned": "to_unsigned", "float": "to_float", "symbol": "to_string"}.get(wanted.kind)
    return f"convert it with {functor}(…)" if functor else ""
