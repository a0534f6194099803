"""Patterns: what `match` takes for a regular expression.

A pattern is one of RE2's, and matches all of a text, in time linear in its length. RE2 has no part that would need more: no back references and no
look-around. A `.` matches any character, `\\d` and its kin ASCII ones.

Linear is the text times the pattern: each byte may take as many steps as the compiled pattern has. Nothing can stop RE2 within a text, so a pair that
may take too many steps has no answer, whoever evaluates it.

>>> matches("[[:digit:]]+", "12"), matches("(a+)+b", "a" * 10_000), matches("(", "a")
(True, False, None)
>>> matches(".*(a|b|aa).{900}", "ab" * 50_000), matches("a" * (MOST_LENGTH + 1), "a")
(None, None)
>>> refusal("(a)\\\\1").message
'this pattern has a back reference, \\\\1'
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

MOST_KEPT = 128  # patterns that are kept compiled
MOST_LENGTH = 2**12  # bytes of one; RE2 compiles the longest in some tenths of a second, in which nobody else has the interpreter
MOST_MEMORY = 2**21  # bytes that one of them may take; one that needs more is none
MOST_STEPS = 2**28  # bytes of a text times instructions of a pattern: a second, or a few

PATTERN_RULE = "match takes the syntax of RE2, which needs time linear in the text: no back references, no look-around"


@dataclass(frozen=True)
class Refusal:
    """Why a text is no pattern, and what to write instead."""

    message: str
    hint: str = ""


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern matches all of a text; None if it is none, or that may take too long."""
    compiled = _compiled(pattern)
    if isinstance(compiled, str):
        return None
    read = text.encode()
    return None if len(read) * compiled.programsize > MOST_STEPS else compiled.fullmatch(read) is not None


def refusal(pattern: str) -> Refusal | None:
    """Why a text is no pattern; None if it is one."""
    reason = _compiled(pattern)
    if not isinstance(reason, str):
        return None
    for wording, name, hint in _ELSEWHERE:
        if match := re.search(wording, reason):
            return Refusal(f"this pattern has {name}, {match[1]}", hint)
    return Refusal(f"this is no regular expression: {reason}")


@lru_cache(maxsize=MOST_KEPT)
def _compiled(pattern: str) -> Any:
    """RE2's form of a pattern, or its reason against it."""
    try:
        import re2  # late: only `match` needs it, on Spark's workers, too
    except ImportError:
        raise RuntimeError("match needs the package google-re2, on Spark's workers, too: pip install google-re2") from None
    if len(pattern) > MOST_LENGTH or len(pattern.encode(errors="replace")) > MOST_LENGTH:
        return f"it has more than {MOST_LENGTH:,} bytes"
    options = re2.Options()
    options.log_errors, options.dot_nl, options.never_capture, options.max_mem = False, True, True, MOST_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        return str(error.args[0], errors="replace")
    except UnicodeError:
        return "it is no Unicode text"


_APART = 'say it by a literal of its own: match(".*b.*", s) for (?=.*b), !match(".*b.*", s) for (?!.*b)'

# What other engines have and RE2 stops at: how RE2 says it, what it is called, what to write instead.
_ELSEWHERE = (
    (r": (\(\?[=!])", "a look-ahead", _APART),
    (r": (\(\?<[=!])", "a look-behind", _APART),
    (r": (\\[1-9kg]|\(\?P)$", "a back reference", "take the parts of the text by substr, and compare these"),
    (r": (\(\?\()", "a condition", "write both ways, with | between them"),
    (r": (\(\?>)", "an atomic group", "write (?:, for nothing is tried twice"),
    (r": ([*+?]\+|\{.*\}\+)", "a possessive repetition", "leave out its last +, for nothing is tried twice"),
    (r": (\(\?[a-zA-Z])$", "a flag of other engines", "the flags are i (any case), m (^ and $ at each line), s and U (shortest first)"),
    (r": (\\Z)", "an end of other engines", "leave it out, for match takes all of the text; or write \\z"),
    (r": (\\[uU])", "a character of other engines", "write \\x{20ac} for the character U+20AC"),
    (r"size: (.*)", "a repetition that is too long, or ends before it begins", "at most 1000 times, what repeats inside it included"),
)
