"""Places in a text, and how they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from vigilog.core.secrets import masked


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands: lines and columns count from 1, `end_column` is just behind it."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def to(self, other: Span) -> Span:
        return Span(self.file, self.line, self.column, other.end_line, other.end_column)


NOWHERE = Span("", 0, 0, 0, 0)


@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def excerpt(text: str, span: Span, width: int = 100) -> str:
    """The line a span begins on, with carets below it.

    >>> print(excerpt("p(x) :- q(y).", Span("f", 1, 3, 1, 4)))
      p(x) :- q(y).
        ^
    """
    lines = _lines(text)
    if not 1 <= span.line <= len(lines):
        return ""
    line = masked(lines[span.line - 1].rstrip("\r"))
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    shift = max(0, start - width // 2) if len(line) > width else 0
    shown = line[shift : shift + width]
    margin = "".join("\t" if character == "\t" else " " for character in shown[: start - shift])
    carets = "^" * max(1, min(end, shift + width) - start)
    return f"  {shown}\n  {margin}{carets}"
