"""How much a run of the tests tries, and which part of it.

There are three sizes: `./run test --quick` for the inner loop, `./run test`, and `./run test --long` for a night. Cases multiply
with treatments (executors, strategies, budgets), so only a long run tries every case under every treatment. Any other takes one
treatment for a case, or none, by a hash of the case's name and of the commit. So each commit tries others, in the course of time
every case meets every treatment, and a new case moves no other.

>>> treated(["closure", "negation"], ["external", "counted"], commit="a") == treated(["closure"], ["external", "counted"], commit="a") + \\
...     treated(["negation"], ["external", "counted"], commit="a")
True
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from hypothesis import HealthCheck, settings

Case = TypeVar("Case")
Treatment = TypeVar("Treatment")

AMOUNTS = {"quick": Fraction(1, 10), "usual": Fraction(1), "long": Fraction(20)}  # of what a test states
UNKNOWN = "no commit"  # where there is no git, as in a source archive


def _commit() -> str:
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    except OSError:
        return UNKNOWN
    return found.stdout.strip() or UNKNOWN


SIZE = os.environ.get("VIGILOG_TESTS", "usual")
COMMIT = os.environ.setdefault("VIGILOG_COMMIT", _commit())  # all processes of a run have the same
assert SIZE in AMOUNTS, f"VIGILOG_TESTS is one of {', '.join(AMOUNTS)}"


def amount(usual: int, size: str = SIZE) -> int:
    """How often something random is tried that is usually tried so often."""
    return max(1, int(usual * AMOUNTS[size]))


def examples(usual: int, *unchecked: HealthCheck) -> settings:
    """The settings of a property that is usually tried with so many random examples."""
    from hypothesis import (  # here, for processes that are started with warnings as errors: pytest wants to load it first
        HealthCheck,
        settings,
    )

    calm = [HealthCheck.too_slow, HealthCheck.data_too_large, *unchecked]
    return settings(max_examples=amount(usual), deadline=None, suppress_health_check=calm)


def treated(
    cases: Iterable[Case], treatments: Sequence[Treatment], *, part: float = 1, size: str = SIZE, commit: str = COMMIT
) -> list[tuple[Case, Treatment]]:
    """The cases of this run with their treatments: a `part` of the cases, each under one; in a long run all under all. The text of a case is its name."""
    if size == "long":
        return [(case, treatment) for case in cases for treatment in treatments]
    return [(case, _one_of(treatments, case, commit)) for case in cases if _number(case, commit) < part]


def taken(cases: Iterable[Case], part: float, *, size: str = SIZE, commit: str = COMMIT) -> list[Case]:
    """In the inner loop a part of the cases, where all take long; otherwise all."""
    return [case for case in cases if size != "quick" or _number(case, commit) < part]


def _one_of(treatments: Sequence[Treatment], case: object, commit: str) -> Treatment:
    return min(treatments, key=lambda treatment: _number(f"{case} {treatment}", commit))


def _number(name: object, commit: str) -> float:
    """A number from 0 to 1 that looks random, and is the same whenever a name and a commit are."""
    return int.from_bytes(sha256(f"{name} {commit}".encode()).digest()[:6]) / 2**48
