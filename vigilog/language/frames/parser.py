"""The text of a frame to its syntax tree. What a frame gets wrong is told at its place, one error a frame; the others are read all the same."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache
from pathlib import Path as File
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, UnexpectedToken, v_args

from vigilog.core.errors import Findings
from vigilog.core.spans import Span
from vigilog.language.frames.cut import Cut
from vigilog.language.frames.syntax import (
    And,
    Attributes,
    Binding,
    Comparison,
    Computed,
    Elision,
    Formula,
    Formulas,
    Frame,
    Implies,
    Isa,
    Labelled,
    Link,
    Member,
    Name,
    Not,
    Or,
    Overlay,
    Parameter,
    Path,
    Property,
    Quantified,
    Target,
)
from vigilog.language.syntax import Constant, Functor, Term, Variable

MAX_NESTING = 100
AGGREGATES = ("count", "sum", "min", "max", "mean")
_INSTANCE = re.compile(r"(\w+)\s+in\s+(\w+)\b", re.IGNORECASE)
_FILLED = re.compile(r"(?:attribute\s+)?(\w+)(?:\s+\w+)?\s*:\s*(\w+|\"[^\"]*\")", re.IGNORECASE)
_CLASSED = re.compile(r"(?:class|view)\s+(\w+)\s+in\s+(\w+)", re.IGNORECASE)
_ELSEWHERE = {
    "queryclass": "query classes; a view frame says the same: View Name isA Class with … end",
    "partof": "the category partof; an attribute links an object to its parts",
    "metaclass": "meta classes",
    "metametaclass": "meta classes",
    "simpleclass": "meta classes",
    "proposition": "meta classes",
}
_ESCAPES = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)")
_RULE = "docs/frames.md shows the syntax of frames"


def parse_frame(cut: Cut, text: str, file: str, findings: Findings) -> Frame | None:
    """The frame of a piece of text; None, and an error is noted, if it is none."""
    places = _Places(text, file)
    if not _whole(cut, places, findings):
        return None
    if _depth(cut.text) > MAX_NESTING:
        span = places.span(cut.start, cut.start + 5)
        findings.error("nesting", f"a formula of this frame nests more than {MAX_NESTING} levels deep", span)
        return None
    try:
        tree = _machine().parse(cut.text)
    except UnexpectedInput as trouble:
        _syntax_error(trouble, cut, places, findings)
        return None
    builder = _Builder(cut, places, findings)
    before = len(findings.errors)
    frame: Frame = builder.transform(tree)
    return frame if len(findings.errors) == before else None


class _Places:
    """From positions in a text to lines and columns."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file

    def span(self, start: int, end: int) -> Span:
        line, column = self._place(start)
        end_line, end_column = self._place(end)
        return Span(self.file, line, column, end_line, end_column)

    def _place(self, position: int) -> tuple[int, int]:
        return self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)


def _whole(cut: Cut, places: _Places, findings: Findings) -> bool:
    """Whether a piece of text is a frame at all, and of a kind that is read."""
    first = cut.text.split(None, 1)[0]
    here = places.span(cut.start, cut.start + len(first))
    if first.lower() == "queryclass":
        findings.error("unsupported", f"Vigilog does not have {_ELSEWHERE['queryclass']}", here, rule=_RULE)
        return False
    instance = _CLASSED.match(cut.text) or _INSTANCE.match(cut.text)
    if instance is not None and instance[1].lower() not in ("class", "view") and instance[2].lower() not in ("class", "view"):
        if (elsewhere := _ELSEWHERE.get(instance[2].lower())) is not None:
            findings.error("unsupported", f"Vigilog does not have {elsewhere}", here, rule=_RULE)
        else:
            rule = "frames say what classes and views are; objects are rows, which transactions insert and delete"
            hint = f"send {_transaction(instance[1], instance[2], cut.text)}"
            findings.error("unsupported", f"{instance[1]} is told as an object of {instance[2]}", here, rule=rule, hint=hint)
        return False
    match cut.trouble:
        case "formula":
            at = places.span(cut.at, cut.at + 1)
            findings.error("syntax", "this formula has no end", at, rule="a formula stands between $ and $", hint="close it with $")
        case "end":
            word = "with" if cut.at != cut.start else first
            at = places.span(cut.at, cut.at + len(word))
            findings.error(
                "syntax", f"this {word} has no end", at, rule="a frame, and each with inside it, is closed by end", hint="write end"
            )
        case "stray":
            at = places.span(cut.at, cut.at + 3)
            findings.error(
                "syntax", "this end closes nothing", at, rule=f"the frame that it stands behind begins at {here}", hint="leave it out"
            )
        case _:
            pass
    return not cut.trouble


def _transaction(name: str, of: str, text: str) -> str:
    rows: dict[str, Any] = {of: [[name]]}
    for label, value in _FILLED.findall(text.partition("with")[2]):
        rows.setdefault(f"{of}_{label}", []).append([name, int(value) if value.isdigit() else value.strip('"')])
    return json.dumps({"insert": rows})


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|([()])|\b(?:not|forall|exists)\b|==>', text):
        depth += {"(": 1, ")": -1}.get(token[1], 0)
        deepest = max(deepest, depth)
    chained = max((len(re.findall(r"\b(?:not|forall|exists)\b|==>", part)) for part in text.split("$")), default=0)
    return max(deepest, chained)


def _syntax_error(trouble: UnexpectedInput, cut: Cut, places: _Places, findings: Findings) -> None:
    token = trouble.token if isinstance(trouble, UnexpectedToken) and trouble.token.type != "$END" else None
    start = cut.start + (trouble.pos_in_stream or 0)
    shown = str(token) if token is not None else cut.text[trouble.pos_in_stream or 0 : (trouble.pos_in_stream or 0) + 1]
    span = places.span(start, start + max(1, len(shown)))
    if (elsewhere := _ELSEWHERE.get(shown.lower())) is not None:
        findings.error("unsupported", f"Vigilog does not have {elsewhere}", span, rule=_RULE)
        return
    expected = _expected(trouble)
    findings.error("syntax", f"'{shown}' cannot stand here", span, rule=_RULE, hint=f"{expected} could" if expected else "")


_SHOWN = {
    "NAME": "a name",
    "STRING": "a text in quotes",
    "INTEGER": "a number",
    "FLOAT": "",
    "DECIMAL": "",
    "PARAMETER": "",
    "ELISION": "",
    "MINUS": "-",
    "PLUS": "+",
    "TIMES": "*",
    "COMPARE": "a comparison",
    "LPAR": "(",
    "RPAR": ")",
    "COMMA": ",",
    "COLON": ":",
    "SEMICOLON": "",
    "SLASH": "/",
    "DOT": "",
    "DOLLAR": "$",
    "ISA": "isA",
    "__ANON_0": "==>",
    "__ANON_1": "<==>",
}


def _expected(trouble: UnexpectedInput) -> str:
    wanted = getattr(trouble, "accepts", None) or getattr(trouble, "expected", None) or getattr(trouble, "allowed", None) or ()
    shown = sorted({_SHOWN.get(name, name.lower()) for name in wanted} - {""})
    return f"{', '.join(shown[:-1])} or {shown[-1]}" if len(shown) > 1 else "".join(shown)


@cache
def _machine() -> Lark:
    grammar = File(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=True)


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    """One method for each rule of `grammar.lark`."""

    def __init__(self, cut: Cut, places: _Places, findings: Findings) -> None:
        super().__init__()
        self.cut, self.places, self.findings = cut, places, findings

    def _span(self, part: Any) -> Span:
        """The place of a token or of what a rule has read."""
        start, end = part.start_pos, part.end_pos
        return self.places.span(self.cut.start + (start or 0), self.cut.start + (end or start or 0))

    def _name(self, token: Token) -> Name:
        return Name(str(token), self._span(token))

    # -- frames

    def start(self, meta: Any, parts: list[Any]) -> Frame:
        kind, name, parameters, parents, source = parts[0]
        sections = tuple(part for part in parts[1:] if part is not None and not isinstance(part, Token))
        return Frame(kind, name, tuple(parameters or ()), tuple(parents or ()), source, sections, self._span(meta))

    def header(self, meta: Any, parts: list[Any]) -> tuple[Any, ...]:
        kind, name, parameters, parents, source = parts
        return kind.lower(), self._name(name), parameters, parents, source

    def telos_header(self, meta: Any, parts: list[Any]) -> tuple[Any, ...]:
        name, _, kind, parents, source = parts
        return kind.lower(), self._name(name), None, parents, source

    def parameters(self, meta: Any, parts: list[Any]) -> list[Any]:
        return parts

    def parameter(self, meta: Any, parts: list[Any]) -> Parameter:
        return Parameter(self._name(parts[0]), parts[1])

    def parents(self, meta: Any, parts: list[Any]) -> list[Name]:
        return [self._name(part) for part in parts[1:]]

    def source(self, meta: Any, parts: list[Any]) -> Overlay:
        return Overlay(self._name(parts[1]), self._name(parts[2]))

    def attributes(self, meta: Any, parts: list[Any]) -> Attributes:
        modifiers = tuple(dict.fromkeys(part for part in parts[1:] if isinstance(part, str)))
        return Attributes(modifiers, tuple(part for part in parts[1:] if not isinstance(part, str)))

    def modifier(self, meta: Any, parts: list[Any]) -> str:
        return str(parts[0]).lower()

    def rules(self, meta: Any, parts: list[Any]) -> Formulas:
        return Formulas("rule", tuple(parts[1:]))

    def constraints(self, meta: Any, parts: list[Any]) -> Formulas:
        return Formulas("constraint", tuple(parts[1:]))

    def elision(self, meta: Any, parts: list[Any]) -> Elision:
        return Elision(self._span(meta))

    def property(self, meta: Any, parts: list[Any]) -> Property:
        label, target, _, source, inner = parts
        sections, opened = inner if inner is not None else (None, self._span(label))
        read = None if source is None else self._name(source)
        return Property(self._name(label), target, read, sections, self._span(label).to(_place(target)), opened)

    def subframe(self, meta: Any, parts: list[Any]) -> tuple[tuple[Any, ...], Span]:
        return tuple(part for part in parts if not isinstance(part, Token)), self._span(parts[0])

    def plain_target(self, meta: Any, parts: list[Any]) -> Name:
        return parts[0]  # type: ignore[no-any-return]  # a sort is a name

    def sort(self, meta: Any, parts: list[Any]) -> Name:
        return Name("".join(str(parts[0]).split()), self._span(meta))

    def path_target(self, meta: Any, parts: list[Any]) -> Path:
        return Path(tuple(map(self._name, parts)))

    def computed_target(self, meta: Any, parts: list[Any]) -> Computed:
        op, _, label = parts
        if op.lower() not in AGGREGATES:
            self.findings.error("syntax", f"there is no aggregate {op}", self._span(op), hint=f"there are {', '.join(AGGREGATES)}")
        return Computed(op.lower(), self._name(label))

    def labelled(self, meta: Any, parts: list[Any]) -> Labelled:
        label, formula = parts
        return Labelled("" if label is None else str(label), formula, self._span(meta))

    # -- formulas

    def implication(self, meta: Any, parts: list[Any]) -> Implies:
        return Implies(parts[0], parts[1], span=self._span(meta))

    def equivalence(self, meta: Any, parts: list[Any]) -> Implies:
        return Implies(parts[0], parts[1], both=True, span=self._span(meta))

    def disjunction(self, meta: Any, parts: list[Any]) -> Or:
        return Or(_formulas(parts, Or), self._span(meta))

    def conjunction(self, meta: Any, parts: list[Any]) -> And:
        return And(_formulas(parts, And), self._span(meta))

    def denied(self, meta: Any, parts: list[Any]) -> Not:
        return Not(parts[1], self._span(meta))

    def quantified(self, meta: Any, parts: list[Any]) -> Quantified:
        return Quantified(str(parts[0]).lower() == "forall", tuple(parts[1:-1]), parts[-1], self._span(meta))

    def binding(self, meta: Any, parts: list[Any]) -> Binding:
        return Binding(tuple(self._name(part) for part in parts[:-1]), parts[-1])

    def member(self, meta: Any, parts: list[Any]) -> Member:
        return Member(parts[0], self._name(parts[2]), self._span(meta))

    def member_of(self, meta: Any, parts: list[Any]) -> Member:
        return Member(parts[1], self._name(parts[2]), self._span(meta))

    def isa(self, meta: Any, parts: list[Any]) -> Isa:
        return Isa(self._name(parts[0]), self._name(parts[2]), self._span(meta))

    def isa_of(self, meta: Any, parts: list[Any]) -> Isa:
        return Isa(self._name(parts[1]), self._name(parts[2]), self._span(meta))

    def link(self, meta: Any, parts: list[Any]) -> Link:
        return Link(parts[0], parts[1], parts[2], self._span(meta))

    def link_of(self, meta: Any, parts: list[Any]) -> Link:
        if str(parts[0]).lower() != "a":
            hint = "literals are (x in C), (x m y), (c isA d), In(x, C), A(x, m, y), Isa(c, d), and comparisons (s < t)"
            self.findings.error("syntax", f"there is no literal {parts[0]}(…)", self._span(parts[0]), hint=hint)
        return Link(parts[1], parts[2], parts[3], self._span(meta))

    def path(self, meta: Any, parts: list[Any]) -> tuple[Name, ...]:
        return tuple(map(self._name, parts))

    def object(self, meta: Any, parts: list[Any]) -> Variable | Constant:
        term = self._value(parts[-1])
        if len(parts) == 2 and isinstance(term, Constant):
            assert not isinstance(term.value, str | bool), "a minus stands before a number"
            return Constant(-term.value, span=self._span(meta))  # type: ignore[operator]  # of a number
        return term

    def value(self, meta: Any, parts: list[Any]) -> Variable | Constant:
        return self._value(parts[0])

    def _value(self, token: Token) -> Variable | Constant:
        span = self._span(token)
        match token.type:
            case "STRING":
                return Constant(_unescaped(str(token)), span=span)
            case "INTEGER":
                return Constant(int(token), span=span)
            case "FLOAT":
                return Constant(Decimal(str(token)), span=span)
            case _ if token in ("true", "false"):
                return Constant(token == "true", span=span)
            case _:
                return Variable(str(token), span=span)

    def operation(self, meta: Any, parts: list[Any]) -> Term:
        term: Term = parts[0]
        for sign, right in zip(parts[1::2], parts[2::2], strict=True):
            term = Functor(str(sign), (term, right), span=self._span(meta))
        return term

    def negative(self, meta: Any, parts: list[Any]) -> Term:
        match parts[-1]:
            case _ if len(parts) == 1:
                return parts[0]  # type: ignore[no-any-return]  # a term
            case Constant(value=int() | Decimal() as value) if not isinstance(value, bool):
                return Constant(-value, span=self._span(meta))
            case term:
                return Functor("neg", (term,), span=self._span(meta))

    def comparison(self, meta: Any, parts: list[Any]) -> Comparison:
        op = "!=" if parts[1] == "<>" else str(parts[1])
        return Comparison(op, parts[0], parts[2], self._span(meta))


def _formulas(parts: list[Any], kind: type[And] | type[Or]) -> tuple[Formula, ...]:
    """The operands, one level of a chain: `(a and b) and c` reads as `a and b and c`."""
    kept = [part for part in parts if not isinstance(part, Token)]
    return tuple(inner for part in kept for inner in (part.parts if isinstance(part, kind) else (part,)))


def _place(target: Target) -> Span:
    match target:
        case Name():
            return target.span
        case Path():
            return target.labels[-1].span
        case Computed():
            return target.of.span


def _unescaped(text: str) -> str:
    def character(escape: re.Match[str]) -> str:
        body = escape[1]
        return chr(int(body[1:], 16)) if len(body) > 1 else _ESCAPES.get(body, body)

    return _ESCAPE.sub(character, text[1:-1])
