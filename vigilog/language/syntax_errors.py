"""What is wrong with a text that cannot be parsed, token by token: told by name, where it is something people write."""

from __future__ import annotations

import re
from typing import Any

from lark import Token

from vigilog.core.errors import Findings, did_you_mean
from vigilog.core.spans import Span
from vigilog.language import refused
from vigilog.language.slips import DIRECTIVE, KEYWORDS, adjacent, behind_directive, number_slip, slip, statement_start

DIRECTIVES = (
    ".decl",
    ".type",
    ".input",
    ".output",
    ".printsize",
    ".limitsize",
    ".key",
    ".alert",
    ".constraint",
    ".trigger",
    ".aggregate",
    ".domain",
    ".table",
    ".function",
    ".pragma",
    ".plan",
)
_TOLD = ("REFUSED_DIRECTIVE", "REFUSED_CHARACTER", "UNCLOSED_STRING", "NO_NUMBER")
NEW_STATEMENT = (*DIRECTIVE, "REFUSED_DIRECTIVE")
_PREPROCESSED = re.compile(r"#\s*(include|define|undef|ifdef|ifndef|if|else|elif|endif|pragma|line|error)\b")


class SyntaxErrors:
    """Places of tokens and nodes, and what is told of those that no grammar rule takes."""

    file: str
    findings: Findings

    def _span(self, first: Any, last: Any = None) -> Span:
        start, end = self._token_span(first), self._token_span(first if last is None else last)
        return start.to(end)

    def _token_span(self, part: Any) -> Span:
        if isinstance(part, Token):
            line, column = part.line or 1, part.column or 1
            return Span(self.file, line, column, part.end_line or line, part.end_column or column)
        span = part.span
        assert isinstance(span, Span)
        return span

    def _refuses(self, token: Token) -> bool:
        """Notes what is wrong with a token by itself. True if the parser need not see it."""
        if token.type == "PREPROCESSOR":
            self._unsupported("the C preprocessor", token, "" if _PREPROCESSED.match(token) else "a comment begins with //")
            return True
        if token.type == "REFUSED_DIRECTIVE":
            self._unsupported(refused.DIRECTIVES[str(token)], token)
        elif token.type == "REFUSED_CHARACTER":
            if token != "]":  # told at its [
                self._unsupported(refused.CHARACTERS[str(token)], token)
        elif token.type == "NO_NUMBER":
            self.findings.error("syntax", f"{token} is no number", self._span(token), hint=number_slip(str(token)))
        elif token.type == "UNCLOSED_STRING":
            self.findings.error(
                "syntax", "this string has no end", self._span(token), rule="a string ends on its line", hint='close it with "'
            )
        elif token.type == "UNCLOSED_COMMENT":
            self.findings.error("syntax", "this comment has no end", self._span(token), hint="close it with */")
            return True
        elif token.type == "QUALIFIER" and str(token) in refused.QUALIFIERS:
            self._unsupported(refused.QUALIFIERS[str(token)], token)
        return False

    def _unsupported(self, what: str, part: Any, hint: str = "") -> None:
        self.findings.error(
            "unsupported",
            f"Vigilog does not have {what}",
            self._span(part),
            rule="the language is Soufflé's core; docs/language.md lists it",
            hint=hint,
        )

    def _syntax_error(self, tokens: list[Token], index: int) -> None:
        if not tokens:
            return
        begin = statement_start(tokens, index)
        statement, start = tokens[begin : index + 1], behind_directive(tokens, begin, index)
        if index == len(tokens):
            if (meant := slip(tokens, index, start)) is not None:
                self.findings.error("syntax", meant.message, self._span(meant.first, meant.last), hint=meant.hint)
            else:
                self.findings.error("syntax", "the text ends in the middle of a statement", self._span(tokens[-1]), hint=_ending(tokens))
            return
        token = tokens[index]
        if any(part.type in _TOLD or str(part) in refused.QUALIFIERS for part in statement):
            return  # told already, by name
        before = tokens[index - 1] if index > start else None
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        if token == "." and following is not None and following.type == "NAME" and adjacent(token, following):
            word = f".{following}"
            if before is not None and before.type == "NAME" and adjacent(before, token):
                self._unsupported("qualified names (components)", token)
            else:
                hint = did_you_mean(word, DIRECTIVES) or f"directives are {', '.join(DIRECTIVES)}"
                self.findings.error("syntax", f"there is no directive {word}", self._span(token, following), hint=hint)
        elif token == "{" and statement[0].type == "TYPE":
            self._unsupported("algebraic data types", token)
        elif token == "<=" and before == ")":
            self._unsupported("subsumption", token)
        elif before is not None and before.type == "AGGREGATE" and token.type in KEYWORDS:
            self.findings.error(
                "duplicate", f"{token} is an aggregate already", self._span(token), rule="an aggregate has a name of its own"
            )
        elif (meant := slip(tokens, index, start)) is not None:
            self.findings.error("syntax", meant.message, self._span(meant.first, meant.last), hint=meant.hint)
        elif before is not None and token.type in NEW_STATEMENT:
            self.findings.error(
                "syntax",
                f"'{token}' begins a new statement, but the one before it has no end",
                self._span(token),
                hint="end it with a full stop",
            )
        else:
            message = f"'{token}' cannot stand here" + (f", after '{before}'" if before is not None else "")
            self.findings.error("syntax", message, self._span(token), hint=_hint(token, before))


def _ending(tokens: list[Token]) -> str:
    """What would end a statement that the text's end cuts off."""
    closing = {"(": ")", "{": "}"}
    open_: list[str] = []
    for token in tokens:
        if str(token) in closing:
            open_.append(closing[str(token)])
        elif open_ and str(token) == open_[-1]:
            open_.pop()
        elif token.type in NEW_STATEMENT or str(token) == ".":
            open_ = []
    if open_:
        return f"close what is open: {''.join(reversed(open_))}"
    start = next((t for t in reversed(tokens) if t.type in NEW_STATEMENT or str(t) == "."), None)
    return "a declaration is written .decl name(column: type)" if start is not None and start.type == "DECL" else "end it with a full stop"


def _hint(token: Token, before: Token | None) -> str:
    if token.type == "NAME" and before is not None and before == ")":
        return "a full stop or a comma is missing before it"
    return ""
