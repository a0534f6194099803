"""The page about frames: its program, its transaction and its rules are what it says they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

from vigilog.engine.database import Database
from vigilog.engine.watch import watch
from vigilog.language.check import check
from vigilog.language.printer import show_statement

PAGE = (Path(__file__).parents[2] / "docs" / "frames.md").read_text(encoding="utf-8")


def test_the_page_about_frames_runs() -> None:
    text = re.findall(r"```dl\n(.*?)```", PAGE, re.DOTALL)[0]
    checked = check(text)
    assert not checked.warnings
    said = re.findall(r"```\n\$ vigilog watch staff.dl --nested\n(.*?)\n(.*?)\n```", PAGE)[0]
    with Database(checked.program, {}) as database:
        answers = list(watch(database, [said[0]], nested=True))
    assert answers == [json.loads(said[1])]
    rules = re.findall(r"```\n(Emp\(x\) :-.*?)\n```", PAGE, re.DOTALL)[0].split("\n")
    assert set(rules) <= {show_statement(rule) for rule in checked.program.rules}
