"""Finds frames in the text of a program, and cuts them out, so that their words are names everywhere else.

A frame begins with `class` or `view` and a second name. Two names stand side by side nowhere else in a statement; between statements they may, as in
`.input class` before `view(x) :- …`, so a word behind a directive's, or behind `,` `=` `|` `<:` `:`, begins none.

>>> cut = cut_frames('.decl view(x: symbol)\\nclass C with attribute end_: D end\\nview(x) :- C(x).')
>>> [frame.text for frame in cut.frames], cut.rest.split("\\n")[1].strip(), cut.rest.split("\\n")[2]
(['class C with attribute end_: D end'], '', 'view(x) :- C(x).')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_IN = re.compile(r"in\s")
_SAID = re.compile(r"\{\*|\b(?:class|view|queryclass)\b|\bin\s+[A-Za-z_]", re.IGNORECASE)
_COMMENT = r"//[^\n]*|/\*(?:.|\n)*?\*/"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OPERATORS = r"(?:band|bor|bxor|bshl|bshru?|land|lor|lxor)\b"
_BEGIN = re.compile(
    rf"""(?P<comment>{_COMMENT})|"(?:[^"\\\n]|\\.)*"|(?P<telos>\{{\*(?:.|\n)*?\*\}})|
    (?<![\w?])(?P<begin>(?:class|view|queryclass)\b(?:\s|{_COMMENT})+(?!{_OPERATORS}){_NAME}|{_NAME}\s+in\s+{_NAME})""",
    re.IGNORECASE | re.VERBOSE,
)
_WITHIN = re.compile(
    rf"""(?P<comment>{_COMMENT}|\{{\*(?:.|\n)*?\*\}})|"(?:[^"\\\n]|\\.)*"|(?P<formula>\$[^$]*\$)|(?P<open>\$)|
    (?P<directive>(?<![\w.])\.[A-Za-z]+\b)|(?P<next>(?<![:\w]\s)(?<![:\w])(?:class|view)\b\s+(?!(?:from|with|isa|in|end)\b){_NAME}(?!\s*:))|
    (?P<word>\b(?:with|end)\b(?!\s*:))""",
    re.IGNORECASE | re.VERBOSE,
)
_DIRECTED = re.compile(r"(?:\.[A-Za-z_]+|[,=|:])$")
_STRAY = re.compile(rf"(?:\s|{_COMMENT})*\bend\b(?!\s*\()", re.IGNORECASE)


@dataclass(frozen=True)
class Cut:
    """A frame's text, and where it begins; `trouble` says what keeps it from being one, at a place."""

    text: str
    start: int
    trouble: str = ""
    at: int = 0


@dataclass
class CutText:
    """`rest` is the text without its frames: blanks are in their place, so that all places stay."""

    rest: str
    frames: list[Cut] = field(default_factory=list)


def cut_frames(text: str) -> CutText:
    if not _maybe(text):
        return CutText(text)
    cuts = list(_frames(text))
    parts, position = [], 0
    for piece in cuts:
        parts += [text[position : piece.start], re.sub(r"[^\n]", " ", piece.text)]
        position = piece.start + len(piece.text)
    return CutText("".join([*parts, text[position:]]), [piece for piece in cuts if not piece.text.startswith("{*")])


def _maybe(text: str) -> bool:
    """Whether there may be frames. Most programs have none of these words, which costs them next to nothing, and are not looked at further."""
    lowered = text.lower()
    words = "class" in lowered or "view" in lowered or "{*" in lowered or _IN.search(lowered) is not None
    return words and _SAID.search(text) is not None


def _frames(text: str) -> Iterator[Cut]:
    position, comments = 0, dict[int, int]()
    while (token := _BEGIN.search(text, position)) is not None:
        position = token.end()
        if token["comment"] is not None:
            comments[token.end()] = token.start()
        elif token["telos"] is not None:  # a comment of ConceptBase, between frames
            comments[token.end()] = token.start()
            yield Cut(token[0], token.start())
        elif token["begin"] is not None:
            if _DIRECTED.search(_before(text, token.start(), comments)):
                position = re.compile(_NAME).match(text, token.start()).end()  # type: ignore[union-attr]  # it begins with a name
                continue
            cut = _frame(text, token.start(), token.end())
            yield cut
            position = cut.start + len(cut.text)


def _before(text: str, position: int, comments: dict[int, int]) -> str:
    """The last token before a position, with a little more before it."""
    while True:
        while position and text[position - 1].isspace():
            position -= 1
        if position not in comments:
            return text[max(0, position - 80) : position]
        position = comments[position]


def _frame(text: str, start: int, position: int) -> Cut:
    """The frame that begins at `start`: each `with` but the first needs an `end` more."""
    opened: list[int] = []
    while (token := _WITHIN.search(text, position)) is not None:
        position = token.end()
        match token.lastgroup:
            case "open":
                return Cut(text[start:], start, "formula", token.start())
            case "directive" | "next":
                return Cut(text[start : token.start()], start, "end", opened[-1] if opened else start)
            case "word" if token[0].lower() == "with":
                opened.append(token.start())
            case "word" if len(opened) > 1:
                opened.pop()
            case "word":
                if (stray := _STRAY.match(text, position)) is not None:
                    return Cut(text[start : stray.end()], start, "stray", stray.end() - len("end"))
                return Cut(text[start:position], start)
            case _:
                pass  # a comment, a string, a whole formula
    return Cut(text[start:], start, "end", opened[-1] if opened else start)
