"""Syntax tree to text. What is printed parses to the same tree.

>>> from vigilog.language.parser import parse
>>> print(show(parse('p(x,"a\\\\n"):-q(x,_),(r(x);!s(x)),x=(1+2)*3.')))
p(x, "a\\n") :- q(x, _), (r(x) ; !s(x)), x = (1 + 2) * 3.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import assert_never

from vigilog.core.sets import Set
from vigilog.core.values import SYMBOL, Value
from vigilog.language import syntax
from vigilog.language.builder import PRECEDENCE
from vigilog.language.conditions import CONDITIONS
from vigilog.language.frames.syntax import Frame
from vigilog.language.options import FORMATS
from vigilog.language.program import Program

_WORD = re.compile(r"(?!(count|sum|min|max|mean|[bl]?(or|xor|and|not)|bshru?|bshl)$)[a-z][a-z_]*")  # what is read as a name
_UNARY, _POWER, _PRIMARY = 90, 95, 99
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def show(program: Program) -> str:
    """The whole program, one statement a line."""
    return "\n".join(show_statement(part) for part in said(program))


def said(program: Program) -> tuple[syntax.Statement, ...]:
    """What a program says itself: all of it, but not again what its frames say."""
    derived: tuple[syntax.Declaration | syntax.Directive | syntax.Rule, ...] = (*program.declarations, *program.directives, *program.rules)
    defined: list[syntax.Statement] = []
    for definition in program.aggregates:
        defined += [definition, *definition.rules]
    own = [part for part in derived if not (program.frames and part.frame)]
    plain = [part for part in own if not isinstance(part, syntax.Rule)]
    return *program.types, *plain, *program.ignored, *defined, *program.frames, *(part for part in own if isinstance(part, syntax.Rule))


def show_statement(part: syntax.Statement) -> str:
    match part:
        case syntax.TypeDefinition():
            return f".type {part.name} {'<:' if part.subtype else '='} {' | '.join(part.members)}"
        case syntax.Declaration():
            columns = ", ".join(f"{attribute.name}: {attribute.type_name}" for attribute in part.attributes)
            return " ".join([f".decl {part.relation}({columns})", *part.qualifiers])
        case syntax.Directive(kind="table"):
            return f".table {part.relation}({', '.join(f'{column}: {type_}' for column, type_ in part.options)})"
        case syntax.Directive(kind="function"):
            names = [f"{column}: {type_}" for column, type_ in part.options]
            split = part.options.index(("->", ""))
            return f".function {part.relation}({', '.join(names[:split])}) -> ({', '.join(names[split + 1 :])})"
        case syntax.Directive(kind="key"):
            return f".key {part.relation}({', '.join(column for column, _ in part.options)})"
        case syntax.Directive():
            words = part.kind in CONDITIONS  # of others the text in a data folder is as it always was
            options = ", ".join(f"{key}={value if words and _WORD.fullmatch(value) else _option(value)}" for key, value in part.options)
            return f".{part.kind} {part.relation}" + (f"({options})" if options else "")
        case syntax.Definition():
            columns = ", ".join(f"{attribute.name}: {attribute.type_name}" for attribute in part.attributes)
            return f".aggregate {part.name}({columns})" + (f" python={show_constant(part.python)}" if part.python else "")
        case syntax.Ignored():
            return part.text
        case Frame():
            from vigilog.language.frames.printer import show_frame  # which shows its terms by what is below

            return show_frame(part)
        case syntax.Rule():
            heads = ", ".join(show_literal(head) for head in part.heads)
            return f"{heads} :- {show_body(part.body)}." if part.body else f"{heads}."
        case _:
            assert_never(part)


def show_body(body: tuple[syntax.Literal, ...]) -> str:
    if not body:
        return "true"
    return ", ".join(show_literal(literal) for literal in body)


def show_literal(literal: syntax.Literal) -> str:
    match literal:
        case syntax.Atom():
            return f"{literal.relation}({', '.join(show_term(arg) for arg in literal.args)})"
        case syntax.Negation():
            return f"!{show_literal(literal.literal)}"
        case syntax.Truth():
            return "true" if literal.value else "false"
        case syntax.Disjunction():
            return f"({' ; '.join(show_body(branch) for branch in literal.branches)})"
        case syntax.SetOf():
            body = show_body(literal.body)
            plain = len(literal.body) == 1 and isinstance(literal.body[0], syntax.Atom | syntax.SetOf)
            return f"setof({show_term(literal.target)}, {body if plain else f'({body})'}, {show_term(literal.result)})"
        case syntax.Builtin() if literal.op not in syntax.COMPARISONS:
            return f"{literal.op}({', '.join(show_term(arg) for arg in literal.args)})"
        case syntax.Builtin():
            left, right = literal.args
            return f"{show_term(left)} {literal.op} {show_term(right)}"
        case _:
            assert_never(literal)


def show_term(term: syntax.Term, outer: int = 0) -> str:
    """The term; in parentheses if its operator binds less than `outer`."""
    text, level = _term(term)
    return f"({text})" if level < outer else text


def _term(term: syntax.Term) -> tuple[str, int]:
    match term:
        case syntax.Variable():
            return term.name, _PRIMARY
        case syntax.Constant():
            text = show_constant(term.value, unsigned=term.unsigned)
            return text, _UNARY if text.startswith("-") else _PRIMARY
        case syntax.Aggregate():
            target = "" if term.target is None else show_term(term.target) + " "
            if isinstance(term.target, syntax.Functor) and term.target.name == "()":
                target = f"({target[:-1]}) "  # op(a, b) would be a call
            return f"{term.op} {target}: {{ {show_body(term.body)} }}", _PRIMARY
        case syntax.Functor(name="neg" | "bnot" | "lnot", args=(operand,)):
            inner = show_term(operand, _UNARY)
            sign = "-" if term.name == "neg" else f"{term.name} "
            return (f"-({inner})" if term.name == "neg" and isinstance(operand, syntax.Constant) else sign + inner), _UNARY
        case syntax.Functor(name="^", args=(base, exponent)):
            return f"{show_term(base, _PRIMARY)} ^ {show_term(exponent, _UNARY)}", _POWER
        case syntax.Functor(args=(left, right)) if term.name in PRECEDENCE:
            level = PRECEDENCE[term.name]
            return f"{show_term(left, level)} {term.name} {show_term(right, level + 1)}", level
        case syntax.Functor(name="()"):
            return f"({', '.join(show_term(arg) for arg in term.args)})", _PRIMARY
        case syntax.Functor(name="{}"):
            return f"{{{', '.join(show_term(arg) for arg in term.args)}}}", _PRIMARY
        case syntax.Functor(name="{|}", args=(element, rest)):
            return f"{{{show_term(element)} | {show_term(rest)}}}", _PRIMARY
        case syntax.Functor():
            return f"{term.name}({', '.join(show_term(arg) for arg in term.args)})", _PRIMARY
        case syntax.Wildcard():
            return "_", _PRIMARY
        case _:
            assert_never(term)


def show_constant(value: Value, *, unsigned: bool = False) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value}u" if unsigned else str(value)
        case float() | Decimal():
            text = f"{value:f}" if isinstance(value, Decimal) and -30 < value.adjusted() < 30 else str(value).replace("E", "e")
            return text if "." in text or "e" in text else f"{text}.0"
        case str():
            return f'"{"".join(_escaped(character) for character in value)}"'
        case datetime.date():
            return f'"{value.isoformat()}"'
        case Set():
            return f"{{{', '.join(map(show_constant, value))}}}"
        case tuple():
            return f"({', '.join(map(show_constant, value))})"
        case _:
            assert_never(value)


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"


def _option(value: str) -> str:
    plain = value in ("true", "false") or (value.isdigit() and value.isascii()) or value in (*FORMATS, "empty")
    return value if plain else show_constant(SYMBOL.check(value))
