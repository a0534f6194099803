"""What is asked of a benchmark on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Options:
    quick: bool
    cap: float
    repeats: int
    only: tuple[str, ...]

    @classmethod
    def of(cls, quick: bool, cap: float | None, repeats: int | None, only: Sequence[str] | None) -> Options:
        return cls(quick, cap or (5.0 if quick else 60.0), repeats or (1 if quick else 5), tuple(only or ()))

    @property
    def results(self) -> Path:
        """Where results go. Those of a small or partial run stay apart from those that are kept."""
        return RESULTS / "partial" if self.quick or self.only else RESULTS
