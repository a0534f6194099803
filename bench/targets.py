"""What must be reached, and whether it was."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """`margin` is how many times better the measured value is than the wanted one; None where one of them is nothing."""

    what: str
    wanted: str
    measured: str
    verdict: str
    margin: float | None = None


def number(value: float) -> str:
    """
    >>> number(0.03141), number(31.41), number(3141.6)
    ('0.0314', '31.4', '3,142')
    """
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"


def at_most(what: str, value: float, bound: float, unit: str = "") -> Target:
    """
    >>> at_most("jobs", 13, 12).verdict
    'MISSED'
    """
    return Target(what, f"≤ {bound:,g}{unit}", f"{number(value)}{unit}", "reached" if value <= bound else "MISSED", _times(bound, value))


def at_least(what: str, value: float, bound: float, unit: str = "", more: bool = False) -> Target:
    """`more` if the true value is known only to be larger, which may leave it open.

    >>> at_least("ratio", 2, 3, more=True).verdict
    'undecided'
    """
    verdict = "reached" if value >= bound else "undecided" if more else "MISSED"
    return Target(what, f"≥ {bound:,g}{unit}", f"{'> ' if more else ''}{number(value)}{unit}", verdict, _times(value, bound))


def _times(one: float, other: float) -> float | None:
    return one / other if one > 0 and other > 0 else None
