"""What is asked of a benchmark on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True)
class Options:
    quick: bool
    cap: float
    repeats: int
    only: tuple[str, ...]
    contenders: tuple[str, ...] = ()

    @property
    def results(self) -> Path:
        """Where results go. Those of a small or partial run stay apart from those that are kept."""
        return RESULTS / "partial" if self.quick or self.only or self.contenders else RESULTS
