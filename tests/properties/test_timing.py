"""Random changes at random times: what `for` and `keep` report is what a model of two lines says, over restarts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.treatments import SIZE
from vigilog.folder.alerts import Clock
from vigilog.folder.durable import Durable
from vigilog.folder.opening import open_program

SEEDS = {"quick": 4, "long": 200}.get(SIZE, 25)
STEPS = 40


class Model:
    """A key is as it was reported last, or it is otherwise since some time: that is reported when it was so long enough."""

    def __init__(self, wait: int, keep: int) -> None:
        self.wait, self.keep = wait, keep
        self.reported: set[int] = set()
        self.since: dict[int, float] = {}

    def turn(self, holding: set[int], now: float) -> set[tuple[str, int]]:
        """A transaction has led to these keys; what need not wait is reported with it."""
        otherwise = holding ^ self.reported
        self.since = {key: self.since.get(key, now) for key in otherwise}
        return self.due({key for key in otherwise if not self._wait(key)}, now)

    def due(self, keys: set[int] | None, now: float) -> set[tuple[str, int]]:
        ripe = {key for key, since in self.since.items() if (keys is None or key in keys) and since + self._wait(key) <= now}
        told = {("ceased" if key in self.reported else "satisfied", key) for key in ripe}
        self.reported ^= ripe
        self.since = {key: since for key, since in self.since.items() if key not in ripe}
        return told

    def _wait(self, key: int) -> int:
        return self.keep if key in self.reported else self.wait


@pytest.mark.parametrize("seed", range(SEEDS))
def test_time_is_kept(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    wait, keep = chance.choice([(0, 5), (5, 0), (5, 9), (9, 5), (1, 1)])
    program = f".decl a(k: number, v: number)\n.decl p(k: number, v: number)\np(k, v) :- a(k, v), v > 2.\n.alert p(key=k, for={wait}, keep={keep})\n"
    now = [1_000.0]
    monkeypatch.setattr(Durable, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(Clock, "start", lambda self: None)  # nobody looks at the clock but the test
    model, rows = Model(wait, keep), set[tuple[int, int]]()
    db = open_program(program, data=tmp_path / "data")
    try:
        for _ in range(STEPS):
            now[0] += chance.choice([0, 1, 2, 4, 8])
            choice = chance.random()
            if choice < 0.1:
                db.close()
                db = open_program(data=tmp_path / "data")
            elif choice < 0.4:
                outcome = db.due()
                assert told(outcome.alerts if outcome else ()) == model.due(None, now[0])
            else:
                plus = {(chance.randint(0, 2), chance.randint(0, 5)) for _ in range(chance.randint(0, 2))}
                minus = set(chance.sample(sorted(rows), min(len(rows), chance.randint(0, 2)))) - plus
                rows = rows - minus | plus
                before = db.tx
                outcome = db.take({"insert": {"a": sorted(plus)}, "delete": {"a": sorted(minus)}})
                late = [said for tx, said in db.reports(before) if tx < outcome.tx or not outcome.changes]
                assert {(said["state"], said["row"][0]) for said in late} == model.due(None, now[0]), "what was due comes first"
                assert told(outcome.alerts) == model.turn({key for key, value in rows if value > 2}, now[0])
    finally:
        db.close()


def told(reports: Any) -> set[tuple[str, int]]:
    found = [(report.state, report.row[0]) for report in reports]
    assert len(found) == len(set(found)), "nothing is reported twice"
    return set(found)
