"""What docs/service.md says is what the server does."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from vigilog.cli.service import _limits
from vigilog.core.errors import UsageError
from vigilog.service.limits import Limits

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")


def test_the_table_of_limits() -> None:
    said = {name: float(number) for name, number in re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE, re.MULTILINE)}
    assert said == {field.name: float(getattr(Limits(), field.name)) for field in dataclasses.fields(Limits)}


def test_limits_are_numbers_of_what_there_is() -> None:
    assert _limits({"progress": "0.2", "rows": "7"}) == Limits(progress=0.2, rows=7)
    for given in ({"prgress": "1"}, {"rows": "many"}, {"rows": "0.5"}, {"seconds": "-1"}, {"rate": "0"}, {"seconds": "nan"}):
        with pytest.raises(UsageError, match="--limit"):
            _limits(given)
