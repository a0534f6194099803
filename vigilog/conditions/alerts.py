"""What alerts report of a transaction, from the changes of views alone.

A key that comes to hold is `satisfied`, one that holds no more has `ceased`. Where new proofs are reported, too, a key that has some and held before is satisfied `again`. Each key is reported once for a transaction: old and
new are the states before and after all of it. (Harrison & Dietrich 1992, Figure 4; that a key is provable is asked of the condition, not of one of its rules.)

>>> from vigilog.core.delta import Delta
>>> from vigilog.core.spans import NOWHERE
>>> alert = Alert("low", "low", (0,), False, False, "", "", 0, 0, 0, NOWHERE)
>>> change = {"low": Delta(frozenset({("nut", 1), ("pin", 2)}), frozenset({("nut", 3)})), "low_by_item": Delta(frozenset({("pin",)}))}
>>> [(report.state, report.row) for report in reports(alert, 2, Support({("low", (0,)): "low_by_item"}), Effect(views=change))]
[('satisfied', ('pin', 2))]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from vigilog.conditions.support import Support
from vigilog.core.effect import Effect
from vigilog.core.reports import AGAIN, CEASED, SATISFIED, Report
from vigilog.core.values import Row
from vigilog.language.conditions import Alert


def reports(alert: Alert, width: int, support: Support, net: Effect, *, defining: bool = False) -> Iterator[Report]:
    """What an alert on a relation with so many columns says of a transaction. Proofs by other rules, which a definition has brought, are not new ones."""
    keys = net.delta(support.keys[alert.relation, alert.key])
    proofs = _proofs(alert, width, support, net) if alert.resatisfiable else {}
    if not keys and not proofs:
        return
    change = net.delta(alert.relation)
    came, went = by_key(alert.key, change.plus), by_key(alert.key, change.minus)
    for key in keys.minus:
        yield Report(alert.name, CEASED, min(went[key]))
    if not alert.resatisfiable:
        for key in keys.plus:
            yield Report(alert.name, SATISFIED, min(came[key]))
        return
    for key in keys.plus:
        proved = proofs.get(key, {})
        row = min(proved or came[key])
        number = sum(map(len, proved.values())) or 1
        yield Report(alert.name, SATISFIED, row, proofs=number, proof=min(proved[row]) if proved else None)
    for key, proved in () if defining else proofs.items():
        if key not in keys.plus:
            one_for_one, row = len(came.get(key, ())) == len(went.get(key, ())) == 1, min(proved)
            old = went[key][0] if one_for_one else None
            yield Report(alert.name, AGAIN, row, old, sum(map(len, proved.values())), proof=min(proved[row]))


def _proofs(alert: Alert, width: int, support: Support, net: Effect) -> dict[Row, dict[Row, list[tuple[str, Row]]]]:
    """For each key that has new proofs, those of each row: bindings, with the views that have them."""
    proofs: dict[Row, dict[Row, list[tuple[str, Row]]]] = {}
    for view in support.proofs[alert.relation, alert.unfold]:
        for binding in net.delta(view).plus:
            row = binding[:width]
            proofs.setdefault(tuple([row[place] for place in alert.key]), {}).setdefault(row, []).append((view, binding))
    return proofs


def by_key(key: tuple[int, ...], rows: Iterable[Row]) -> dict[Row, list[Row]]:
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple([row[place] for place in key]), []).append(row)
    return groups
