"""Reports that wait: `for` says how long a key must hold before that is reported, `keep` how long it must be gone.

What waits is all the state there is: a key that holds and does not wait was reported. It is turned with each transaction, and what is due is a transaction of its own.

>>> from vigilog.core.spans import NOWHERE
>>> alert = Alert("low", "low", (0,), False, False, "", "", 0, 60, 0, NOWHERE)
>>> reported, changed = turn({"low": alert}, {}, [Report("low", SATISFIED, ("nut",))], now=100.0)
>>> reported, changed[("low", ("nut",))].since
([], 100.0)
>>> [report.state for report in due({"low": alert}, changed, now=160.0)[0]]
['satisfied']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from vigilog.core.reports import AGAIN, CEASED, SATISFIED, Report
from vigilog.core.values import Row
from vigilog.language.conditions import Alert

Key = tuple[str, Row]  # an alert, and the key that it is about


@dataclass(frozen=True)
class Waiting:
    """A report that is not made yet, and since when it could have been."""

    report: Report
    since: float


Turned = tuple[list[Report], dict[Key, Waiting | None]]  # what is reported, and what waits from now on, or no more


def turn(alerts: Mapping[str, Alert], waiting: Mapping[Key, Waiting], reports: Iterable[Report], now: float) -> Turned:
    """What is reported of a transaction at once."""
    reported: list[Report] = []
    changed: dict[Key, Waiting | None] = {}
    for report in reports:
        alert = alerts[report.alert]
        key = alert.name, tuple([report.row[place] for place in alert.key])
        before = waiting.get(key)
        if before is None and not (alert.wait if report.state == SATISFIED else alert.keep if report.state == CEASED else 0):
            reported.append(report)
        elif before is None:
            changed[key] = Waiting(report, now)
        elif report.state == AGAIN:  # before it is reported that the key holds, there is nothing to be satisfied again
            changed[key] = (
                replace(before, report=replace(report, state=SATISFIED, old=None)) if before.report.state == SATISFIED else before
            )
        else:  # it is as it was reported last
            changed[key] = None
    return reported, changed


def due(alerts: Mapping[str, Alert], waiting: Mapping[Key, Waiting], now: float) -> Turned:
    """What has waited long enough; what belongs to no alert any more waits no longer."""
    reported: list[Report] = []
    changed: dict[Key, Waiting | None] = {}
    for key, held in waiting.items():
        alert = alerts.get(key[0])
        if alert is None or held.since + _wait(alert, held.report) <= now:
            changed[key] = None
            reported += [held.report] if alert is not None else []
    return sorted(reported, key=lambda report: (report.alert, report.row, report.state)), changed


def next_due(alerts: Mapping[str, Alert], waiting: Mapping[Key, Waiting]) -> float | None:
    """When the next report falls due."""
    return min((falls_due(alerts, key, held) for key, held in waiting.items()), default=None)


def falls_due(alerts: Mapping[str, Alert], key: Key, held: Waiting) -> float:
    """When a report falls due; what belongs to no alert any more is due at once, to be forgotten."""
    return held.since + _wait(alerts[key[0]], held.report) if key[0] in alerts else 0.0


def _wait(alert: Alert, report: Report) -> int:
    return alert.keep if report.state == CEASED else alert.wait
