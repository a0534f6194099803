"""The law-enforcement mediator tells its story: what each event changes, and that nothing else does."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.law.story import made, main, played
from vigilog.folder.opening import open_program

STORY = [
    {"seenwith": ("Jane Doe", "")},  # she lives too far away
    {"seenwith": ("", "John"), "swlndc": ("", "John"), "suspect": ("", "John")},
    {"seenwith": ("", "Ed"), "swlndc": ("", "Ed")},  # John stays out, though photographs show him again
    {"swlndc": ("Jane Doe", "")},
    {"seenwith": ("Ed, John", ""), "swlndc": ("Ed, John", ""), "suspect": ("Ed", "")},
]


def test_the_story(tmp_path: Path) -> None:
    with open_program(made(tmp_path), tmp_path) as db:
        assert {view: {row[1] for row in db.view(view)} for view in db.program.outputs} == {
            "seenwith": {"Ed", "John"},
            "swlndc": {"Ed", "John"},
            "suspect": {"John"},
        }
        told = [
            {
                view: tuple(", ".join(sorted(str(row[1]) for row in side)) for side in (delta.plus, delta.minus))
                for view, delta in changes.items()
            }
            for _, changes in played(tmp_path, db)
        ]
        assert told == STORY


def test_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert "+ suspect: Ed" in capsys.readouterr().out
