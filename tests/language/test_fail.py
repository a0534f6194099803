"""Every program in fail/ is refused, or warned about, with the codes its first line names and the text in its .txt file.

To accept new texts: VIGILOG_ACCEPT=1 ./run test tests/language/test_fail.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from vigilog.core.errors import ProgramError
from vigilog.engine.extension import extended
from vigilog.language.check import check
from vigilog.rewriting.passes import rewrite

FAIL = Path(__file__).parents[1] / "fail"
PROGRAMS = sorted(FAIL.glob("*.dl"))


def told(path: Path) -> tuple[list[str], str]:
    """The codes found in a program, and the whole text told."""
    text = path.read_text(encoding="utf-8")
    try:
        checked = check(text, path.name)
        extension = extended(checked.program)
        rewrite(extension.ordinary)
        findings = [*checked.warnings, *extension.warnings]
    except ProgramError as error:
        findings = error.findings
    return [finding.code for finding in findings], "\n".join(finding.render(text) for finding in findings) + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_is_told(path: Path) -> None:
    wanted = re.match(r"// (?:code|warns): (.*)", path.read_text(encoding="utf-8"))
    assert wanted, "the first line names the codes"
    codes, text = told(path)
    assert codes == wanted[1].strip().split(", ")
    snapshot = path.with_suffix(".txt")
    if os.environ.get("VIGILOG_ACCEPT"):
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


def test_no_snapshot_is_an_orphan() -> None:
    assert {path.stem for path in FAIL.glob("*.txt")} == {path.stem for path in PROGRAMS}
