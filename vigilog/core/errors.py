"""Every way in which Vigilog says no.

VigilogError                 whatever a user can cause; a code and a sentence, never a traceback
├── ProgramError             the program is refused; all findings of a stage together, each with its place
├── DataError                a source or a row is refused, with file and row
│   └── Refused              a transaction is refused by a constraint, or by triggers, with what they say of it
├── Stopped                  an evaluation was stopped by its bounds: rounds, time, the user
├── UsageError               what was asked for makes no sense together; the command line exits with 2
├── ConnectionLost           a server cannot be reached, or was lost before it answered
├── NotInstalled             what was asked for needs packages that this installation does not have
└── SparkUnavailable         Spark is needed and cannot start

An internal mistake is an AssertionError that names the broken invariant; it is a bug and shows as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from heapq import nlargest
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from vigilog.core.spans import Span, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class VigilogError(Exception):
    """Something the user can put right. `code` is stable; the message is for people."""

    code = "error"

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code:
            self.code = code

    def __str__(self) -> str:
        return self.message

    def json(self) -> dict[str, Any]:
        """The error as answers tell it."""
        return {"code": self.code, "message": self.message}


class DataError(VigilogError):
    code = "data"


class Refused(DataError):
    """A transaction was refused by what it would have done. `members` say more than the message does: which constraint, which rows, why.

    Where somebody asks for the cause: the conditions that refused it, proofs of their rows, and what it had changed in base relations until then.
    """

    def __init__(
        self, message: str, code: str, members: Mapping[str, Any], conditions: Sequence[str] = (), proofs: Sequence[Any] = ()
    ) -> None:
        super().__init__(message, code)
        self.members, self.conditions, self.proofs = members, conditions, proofs
        self.changes: Mapping[str, Any] = {}
        self.rows: Sequence[tuple[str, Any]] = ()  # of conditions, whose proofs say why, where they are not found yet

    def json(self) -> dict[str, Any]:
        return {**super().json(), **self.members}


class Stopped(VigilogError):
    code = "stopped"


class UsageError(VigilogError):
    code = "usage"


class ConnectionLost(VigilogError):
    code = "connection"


class NotInstalled(VigilogError):
    code = "not-installed"


class SparkUnavailable(VigilogError):
    code = "spark"


@dataclass(frozen=True)
class Finding:
    """One thing wrong (or, as a warning, doubtful) in a program: what, where, the rule behind it, how to mend it."""

    code: str
    message: str
    span: Span
    rule: str = ""
    hint: str = ""
    warning: bool = False

    def render(self, source: str) -> str:
        kind = "warning" if self.warning else "error"
        parts = [f"{self.span}: {kind}[{self.code}]: {self.message}", excerpt(source, self.span)]
        parts += [f"  rule: {self.rule}"] if self.rule else []
        parts += [f"  fix:  {self.hint}"] if self.hint else []
        return "\n".join(part for part in parts if part).translate(_VISIBLE)


@dataclass
class Findings:
    """Collects what a stage finds, so that all of it is told at once."""

    items: list[Finding] = field(default_factory=list)

    def error(self, code: str, message: str, span: Span, *, rule: str = "", hint: str = "") -> None:
        self.items.append(Finding(code, message, span, rule, hint))

    def warn(self, code: str, message: str, span: Span, *, rule: str = "", hint: str = "") -> None:
        self.items.append(Finding(code, message, span, rule, hint, warning=True))

    @property
    def errors(self) -> list[Finding]:
        """What is wrong, once for each place: rules that a rule has become have its mistakes, too."""
        return list({(item.code, item.span, item.rule, item.hint): item for item in self.items if not item.warning}.values())

    @property
    def warnings(self) -> list[Finding]:
        return [item for item in self.items if item.warning]

    def raise_errors(self, source: str | Mapping[str, str]) -> None:
        if self.errors:
            raise ProgramError(self.errors, source)


MOST_SHOWN = 200
_VISIBLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {0x7F: "\u2421"}  # control characters, shown


class ProgramError(VigilogError):
    """A program is refused. `findings` has one entry for each error, in the order of the text, or of the texts, each by the name that places have for it."""

    code = "program"

    def __init__(self, findings: Sequence[Finding], source: str | Mapping[str, str]) -> None:
        self.findings = sorted(findings, key=lambda one: (one.span.file, one.span.line, one.span.column))
        texts = {finding.span.file: source for finding in findings} if isinstance(source, str) else source
        shown = [finding.render(texts.get(finding.span.file, "")) for finding in self.findings[:MOST_SHOWN]]
        more = len(self.findings) - len(shown)
        super().__init__("\n".join([*shown, f"… and {counted(more, 'more error')}"] if more else shown))


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """A hint with the nearest known name, or nothing.

    >>> did_you_mean("clsure", ["edge", "closure"])
    'did you mean closure?'
    """
    names = [other for other in names if abs(len(other) - len(name)) <= 3][:500]
    near = get_close_matches(name, nlargest(20, names, key=lambda other: _shared(name, other)), n=1, cutoff=0.6)
    near = near or [other for other in names if other.lower() == name.lower()]
    return f"did you mean {near[0]}?" if near else ""


def _shared(one: str, other: str) -> int:
    """How many characters two names share at their beginning and at their end."""
    return len(commonprefix([one, other])) + len(commonprefix([one[::-1], other[::-1]]))  # noqa: RUF071  # characters are meant
