"""What alerts tell, and how it is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vigilog.core.rows import json_rows
from vigilog.core.values import Row, Type

ALERT = "alert:"  # before the name of an alert, where the names of views stand, too: in the outbox
SATISFIED, CEASED, AGAIN = "satisfied", "ceased", "again"


@dataclass(frozen=True)
class Report:
    """What an alert says of one key: that it holds now, holds no more, or holds by new proofs.

    `row` is the first of those that came, or went; `old` is the one whose place it took, if one did; `proofs` are counted where new ones are reported.
    """

    alert: str
    state: str
    row: Row
    old: Row | None = None
    proofs: int | None = None
    message: str = ""
    severity: str = ""
    at: float = 0.0  # when it was made, where that is kept,
    seen: bool = False  # and whether somebody had acknowledged its key
    proof: tuple[str, Row] | None = field(default=None, compare=False)  # the first new one of its row, in the view of proofs that has it

    def json(self, types: Sequence[Type]) -> dict[str, Any]:
        """The report as `watch` prints it."""
        fields: dict[str, Any] = {"alert": self.alert, "state": self.state, "row": _row(types, self.row)}
        if self.old is not None:
            fields["old"] = _row(types, self.old)
        if self.proofs is not None:
            fields["proofs"] = self.proofs
        return fields | {name: text for name in ("message", "severity") if (text := getattr(self, name))}


def outbox_entry(types: Sequence[Type], report: Report) -> list[Any]:
    """A report as the outbox has it: the cells of its row, by which it can be found, and all that it says, as JSON.

    >>> from vigilog.core.values import SYMBOL
    >>> outbox_entry([SYMBOL], Report("low", SATISFIED, ("nut",)))
    ['nut', '{"alert": "low", "state": "satisfied", "row": ["nut"]}']
    """
    stamp = ({"at": report.at} if report.at else {}) | ({"seen": True} if report.seen else {})
    return [*_row(types, report.row), json.dumps(report.json(types) | stamp, ensure_ascii=False)]


def _row(types: Sequence[Type], row: Row) -> list[Any]:
    return list(json_rows(types, [row])[0]) if types else []
