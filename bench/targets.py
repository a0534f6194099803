"""What must be reached, and whether it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    what: str
    wanted: str
    measured: str
    verdict: str


def at_most(what: str, value: float, bound: float, unit: str = "") -> Target:
    """
    >>> at_most("jobs", 13, 12).verdict
    'MISSED'
    """
    return Target(what, f"≤ {bound:g}{unit}", f"{value:.3g}{unit}", "reached" if value <= bound else "MISSED")


def at_least(what: str, value: float, bound: float, unit: str = "", more: bool = False) -> Target:
    """`more` if the true value is known only to be larger, which may leave it open.

    >>> at_least("ratio", 2, 3, more=True).verdict
    'undecided'
    """
    verdict = "reached" if value >= bound else "undecided" if more else "MISSED"
    return Target(what, f"≥ {bound:g}{unit}", f"{'> ' if more else ''}{value:.3g}{unit}", verdict)
