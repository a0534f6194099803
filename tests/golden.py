"""Golden cases: one text file each, with a program, its facts, and what must come out. See CONTRIBUTING.md for the format."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
CHANGES = Path(__file__).parent / "changes"
_SECTION = re.compile(r"--- (\w+) ?(.*)")

GRAPH = """\
.decl edge(x: symbol, y: symbol)
.input edge
.decl closure(x: symbol, y: symbol)
.output closure
closure(x, y) :- edge(x, y).
closure(x, y) :- edge(x, z), closure(z, y).
"""  # the program of the first page, which many tests change


@dataclass
class Step:
    """A transaction as `watch` reads it, and what becomes of it: the rows that views gain and lose by it, as `+view<TAB>cells` and `-view<TAB>cells`; what
    alerts say, as `alert JSON`; what triggers do, as `triggered +relation<TAB>cells`; or `error code`, with the members of the error that say more, as JSON."""

    transaction: str
    expect: list[str]

    @property
    def refused(self) -> bool:
        return bool(self.expect) and self.expect[0].startswith("error ")

    @property
    def triggered(self) -> list[tuple[str, str, list[str]]]:
        """What triggers do: a sign, a relation, cells."""
        said = (line.removeprefix("triggered ").split("\t") for line in self.expect if line.startswith("triggered "))
        return [(first[0], first[1:], cells) for first, *cells in said]


@dataclass
class Case:
    """A golden case. Rows are lines of tab-separated text, as in files."""

    path: Path
    about: str = ""
    program: str = ""
    facts: dict[str, list[str]] = field(default_factory=dict)
    expect: dict[str, list[str]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    undefined: bool = False

    def __str__(self) -> str:
        return self.path.stem

    def write_facts(self, folder: Path) -> None:
        for relation, lines in self.facts.items():
            (folder / f"{relation}.facts").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")


def read_case(path: Path) -> Case:
    case = Case(path)
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        section = _SECTION.fullmatch(line)
        if section is None:
            lines.append(line)
            continue
        _close(case, lines)
        kind, name = section[1], section[2]
        lines = []
        if kind in ("facts", "expect"):
            getattr(case, kind)[name] = lines
        elif kind == "change":
            case.steps.append(Step(name, lines))
        elif kind == "undefined":
            case.undefined = True
        elif kind == "program":
            case.program = "?"
        else:
            raise ValueError(f"{path}: there is no section {kind}")
    _close(case, lines)
    return case


def _close(case: Case, lines: list[str]) -> None:
    if lines and lines[-1] == "":
        lines.pop()
    if case.program == "?":
        case.program = "\n".join(lines) + "\n"
    elif not case.program:
        case.about = "\n".join(lines)


def cases(folder: Path = PROGRAMS) -> list[Case]:
    return [read_case(path) for path in sorted(folder.glob("*.case"))]
