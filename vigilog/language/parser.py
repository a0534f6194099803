"""Text to syntax tree.

The grammar is `grammar.lark`. A syntax error does not end the parse: it is noted, the text up to the end of the statement is
skipped, and the parser goes on, so that all syntax errors of a file are told together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, UnexpectedInput
from lark.lexer import BasicLexer, LexerState
from lark.utils import TextSlice

from vigilog.core.errors import DataError, Findings
from vigilog.language.builder import Builder
from vigilog.language.frames.cut import cut_frames
from vigilog.language.frames.parser import parse_frame
from vigilog.language.program import Program
from vigilog.language.slips import adjacent
from vigilog.language.syntax import Declaration, Definition, Directive, Ignored, Rule, TypeDefinition
from vigilog.language.syntax_errors import NEW_STATEMENT

WORDS = ("constrained", "updatable", "deferred")


def parse(text: str, name: str = "program") -> Program:
    """The program a text says. Raises ProgramError with all its syntax errors.

    >>> parse("p(x) :- q(x, _), !r(x).").rules[0].heads[0].relation
    'p'
    """
    findings = Findings()
    cut = cut_frames(text)
    lark, lexer, builder = _machine()
    with builder.lock:
        statements = builder._begin(name, findings)
        read = lexer.lex(LexerState(TextSlice.cast_from(cut.rest)), None)
        tokens = [token for token in read if not builder._refuses(token)]
        tokens = list(_qualified(tokens)) if any(word in text for word in WORDS) else tokens
        position = 0
        while position <= len(tokens):
            position = _parse_from(lark, tokens, position, builder)
    frames = tuple(frame for part in cut.frames if (frame := parse_frame(part, text, name, findings)) is not None)
    findings.raise_errors(text)

    def kept(kind: type) -> tuple[Any, ...]:
        return tuple(statement for statement in statements if isinstance(statement, kind))

    return Program(
        kept(TypeDefinition), kept(Declaration), kept(Directive), kept(Rule), {name: text}, kept(Ignored), kept(Definition), frames
    )


def read_program(path: str | Path) -> Program:
    return parse(read_text(path), str(path))


def read_text(path: str | Path) -> str:
    """The text of a program file, or a DataError that says why there is none."""
    try:
        data = Path(path).read_bytes()
    except OSError as reason:
        raise DataError(f"{path}: cannot be read: {reason.strerror}", "unreadable") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = data.count(b"\n", 0, reason.start) + 1
        raise DataError(f"{path}:{line}: is not UTF-8 text (byte {data[reason.start]:#04x})", "encoding") from None


def _qualified(tokens: list[Token]) -> Iterator[Token]:
    """The tokens, of which `constrained`, `updatable` and `deferred` are qualifiers behind the `)` of a `.decl`, and names everywhere else."""
    depth = 0
    inside = behind = False  # a declaration's columns
    for place, token in enumerate(tokens, start=1):
        if behind and token.type == "NAME" and token in WORDS and (place == len(tokens) or tokens[place].type != "LPAR"):
            token = Token.new_borrow_pos("QUALIFIER", token.value, token)
        depth += {"LPAR": 1, "RPAR": -1}.get(token.type, 0) if inside else 0
        behind = (behind and token.type == "QUALIFIER") or (inside and token.type == "RPAR" and not depth)
        inside = token.type == "DECL" or (inside and not behind and token.type not in NEW_STATEMENT)
        depth = depth if inside else 0
        yield token


def _parse_from(lark: Lark, tokens: list[Token], position: int, builder: Builder) -> int:
    """Parses up to the end or the next error; gives the place from which to go on, behind the end if there is none."""
    parser = lark.parse_interactive(start="program")
    for index in range(position, len(tokens) + 1):
        try:
            if index < len(tokens):
                parser.feed_token(tokens[index])
            else:
                parser.feed_eof(tokens[-1] if tokens else None)  # type: ignore[no-untyped-call]  # lark's own
        except UnexpectedInput:
            builder._syntax_error(tokens, index)
            begins = index < len(tokens) and tokens[index].type in NEW_STATEMENT and tokens[index].type != "REFUSED_DIRECTIVE"
            return index if begins and index > position else _next_statement(tokens, index)
    return len(tokens) + 1


def _next_statement(tokens: list[Token], index: int) -> int:
    """Where the next statement begins after an error at `index`: behind a full stop, or at a directive."""
    depth = 0
    start = index + 1 if index < len(tokens) and tokens[index] == "." else index
    for position in range(start, len(tokens)):
        token = tokens[position]
        if position > index and token.type in NEW_STATEMENT and depth <= 0:
            return position
        depth += {"LBRACE": 1, "RBRACE": -1}.get(token.type, 0)
        if token.type == "DOT" and depth <= 0:
            return position if position > index and _begins_directive(tokens, position) else position + 1
        if token.type == "RBRACE" and depth == 0 and tokens[index].type == "REFUSED_DIRECTIVE":
            return position + 1
    return len(tokens) + 1


def _begins_directive(tokens: list[Token], position: int) -> bool:
    """Whether a full stop is the beginning of a word like `.unknown`, with a blank before it and none behind it."""
    before, behind = tokens[position - 1], tokens[position + 1 : position + 2]
    return any(token.type == "NAME" and adjacent(tokens[position], token) for token in behind) and not adjacent(before, tokens[position])


@cache
def _machine() -> tuple[Lark, BasicLexer, Builder]:
    builder = Builder()
    grammar = Path(__file__).with_name("grammar.lark").read_text(encoding="utf-8")
    lark = Lark(grammar, start=["program", "refused"], parser="lalr", lexer="basic", transformer=builder)
    return lark, BasicLexer(lark.lexer_conf), builder  # its own `lex` would make a lexer for each text
