"""Columns of a source that may be null, as relations of their own: the language has no nulls, and a row that is not there says the same.

`.input employees(optional="manager: number")` makes beside `employees`, which leaves the column out and has a key, a relation of that key and the column. Both are read from the one source.

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show
>>> text = '.decl employees(employee: number, name: symbol) .key employees(employee) .input employees(optional="manager: number")'
>>> print(show(with_optional(parse(text), Findings())))
.decl employees(employee: number, name: symbol)
.decl employees_manager(employee: number, manager: number)
.key employees(employee)
.input employees(optional="manager: number")
.key employees_manager(employee)
.input employees_manager(of="employees")
"""

from __future__ import annotations

import re
from dataclasses import replace

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.values import Value
from vigilog.language.program import Program
from vigilog.language.syntax import Attribute, Declaration, Directive


def parts(option: str) -> list[tuple[str, str]]:
    """Columns and their types, which may be left out.

    >>> parts("manager: number, pay: decimal(6,2), phone")
    [('manager', 'number'), ('pay', 'decimal(6,2)'), ('phone', '')]
    """
    columns = []
    for part in re.split(r",(?![^()]*\))", option):
        name, _, type_ = part.partition(":")
        columns.append((name.strip(), type_.strip()))
    return columns


def blanks(option: str) -> dict[str, str]:
    """The values that `nulls` gives to columns, as a file would say them; none if it says `refuse` or `skip`.

    >>> blanks("manager=0, phone="), blanks("skip")
    ({'manager': '0', 'phone': ''}, {})
    """
    told = [part.partition("=") for part in option.split(",")] if "=" in option else []
    return {key.strip(): value.strip() for key, _, value in told}


def with_optional(program: Program, findings: Findings) -> Program:
    """The program with the relations that `optional` makes, unless it declares them itself."""
    declarations, directives = list(program.declarations), list(program.directives)
    for directive in program.directed("input"):
        owner = program.relations.get(directive.relation)
        if "optional" not in directive.option or owner is None:
            continue
        key = next((tuple(dict(d.options)) for d in program.directed("key") if d.relation == owner.relation), ())
        if not key or not set(key) <= set(owner.columns):
            rule = "a column that may be null is a relation of its own, of the key and the column"
            hint = f"declare a key: .key {owner.relation}({owner.columns[0] if owner.columns else ''})"
            findings.error("input", f"{owner.relation} has no key, which optional needs", directive.span, rule=rule, hint=hint)
            continue
        for column, type_ in parts(directive.option["optional"]):
            if column in owner.columns:
                rule = f"the relation leaves the column out, for it is in {owner.relation}_{column}"
                findings.error("input", f"{owner.relation} has the optional column {column} itself", directive.span, rule=rule)
                continue
            made = _made(owner, key, column, type_, program.relations.get(f"{owner.relation}_{column}"), directive, findings)
            if made is None:
                continue
            if made.relation not in program.relations:
                declarations.append(made)
            stated = {(other.kind, other.relation) for other in directives}
            for new in (
                Directive("key", made.relation, tuple((name, "") for name in key), directive.span),
                Directive("input", made.relation, (("of", owner.relation),), directive.span),
            ):
                if (new.kind, new.relation) not in stated:
                    directives.append(new)
    return replace(program, declarations=tuple(declarations), directives=tuple(directives))


def _made(
    owner: Declaration,
    key: tuple[str, ...],
    column: str,
    type_: str,
    declared: Declaration | None,
    directive: Directive,
    findings: Findings,
) -> Declaration | None:
    """The relation of an optional column: as it is declared, or as it follows from the option."""
    name = f"{owner.relation}_{column}"
    by_name = {attribute.name: attribute for attribute in owner.attributes}
    columns = (*key, column)
    if declared is not None:
        if declared.columns == columns and [a.type_name for a in declared.attributes[:-1]] == [by_name[k].type_name for k in key]:
            return declared
        findings.error("input", f"{name} does not have the columns {', '.join(columns)}, which optional gives it", declared.span)
        return None
    if not type_:
        hint = f'write optional="{column}: number", or declare {name}({", ".join(columns)})'
        findings.error(
            "input", f"the type of the optional column {column} is not said", directive.span, rule="every column has a type", hint=hint
        )
        return None
    return Declaration(name, (*(by_name[k] for k in key), Attribute(column, type_, span=directive.span)), span=directive.span)


def check_nulls(program: Program, findings: Findings) -> None:
    """What `nulls` says of columns, and `of` of relations, in a typed program."""
    for directive in program.directed("input"):
        declaration = program.relations[directive.relation]
        for column, text in blanks(directive.option.get("nulls", "")).items():
            if column not in declaration.columns:
                hint = did_you_mean(column, declaration.columns) or f"its columns are {', '.join(declaration.columns)}"
                findings.error(
                    "input", f"{directive.relation} has no column {column}, to which nulls gives a value", directive.span, hint=hint
                )
                continue
            try:
                declaration.types[declaration.columns.index(column)].parse(text)
            except ValueError as reason:
                findings.error("input", f"nulls gives {directive.relation}.{column} no value of its type: {reason}", directive.span)
        owner = directive.option.get("of")
        named = [name for d in program.directed("input") if d.relation == owner for name, _ in parts(d.option.get("optional", ""))]
        if owner is not None and f"{owner}_{declaration.columns[-1] if declaration.columns else ''}" not in {
            f"{owner}_{name}" for name in named
        }:
            findings.error(
                "input", f".input {owner} says nothing of {directive.relation}", directive.span, hint=f'write .input {owner}(optional="…")'
            )


def blank_values(directive: Directive, declaration: Declaration) -> dict[str, Value]:
    """The values that nulls of columns get."""
    texts = blanks(directive.option.get("nulls", ""))
    return {column: declaration.types[declaration.columns.index(column)].parse(text) for column, text in texts.items()}
