"""Writes the generated pages: errors.md and cli.md. A test fails if they are not up to date.

./run docs
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from typer.testing import CliRunner

from vigilog.cli.main import app
from vigilog.core.codes import SECTIONS

DOCS = Path(__file__).parent
FAIL = DOCS.parent / "tests" / "fail"
COMMANDS = tuple(command.name or command.callback.__name__ for command in app.registered_commands if command.callback)


def errors() -> str:
    """Every code, with an example where a program shows one."""
    parts = [
        "# Errors",
        "",
        "Generated from `vigilog/core/codes.py` and the programs in `tests/fail`. Codes are stable; texts may get better.",
    ]
    for title, codes in SECTIONS.items():
        parts += ["", f"## {title}", ""]
        for code, meaning in codes.items():
            parts += [f"### `{code}`", "", textwrap.fill(meaning, 120, break_long_words=False, break_on_hyphens=False), ""]
            example = _example(code) if title in ("Errors in a program", "Warnings") else None
            if example:
                parts += ["```", example.rstrip(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def _example(code: str) -> str | None:
    for path in sorted(FAIL.glob("*.dl"), key=lambda path: (path.stem != code, path.stem)):
        first = path.read_text(encoding="utf-8").split("\n")[0]
        if re.fullmatch(rf"// (code|warns): {code}", first) and path.with_suffix(".txt").exists():
            return path.with_suffix(".txt").read_text(encoding="utf-8")
    return None


def cli() -> str:
    """The help of every command."""
    parts = [
        "# Command line",
        "",
        "Generated from `vigilog --help`. Exit status: 0 done, 1 the input was refused, 2 wrong usage, 130 interrupted.",
        "`vigilog --install-completion` lets the shell complete commands, options and their values.",
        "",
        "Long work shows its stage on standard error, if that is a terminal: rows, rounds, Spark's tasks, and, where the",
        "total is known, the time that is left. `VIGILOG_PROGRESS=lines` prints plain lines instead, for a log;",
        "`VIGILOG_PROGRESS=none` prints nothing.",
        "",
    ]
    runner = CliRunner()
    for command in ((), *((name,) for name in COMMANDS)):
        text = runner.invoke(app, [*command, "--help"], prog_name="vigilog", terminal_width=110).output
        parts += [f"## {' '.join(('vigilog', *command))}", "", "```", text.strip(), "```", ""]
    return "\n".join(parts).rstrip() + "\n"


PAGES = {"errors.md": errors, "cli.md": cli}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
