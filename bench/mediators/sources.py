"""Programs that ask sources, beside loops that ask the same."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.mediators.shapes import timed
from vigilog.engine.database import Database
from vigilog.folder.opening import open_program

MODULE = """
import hashlib
from pathlib import Path

CHANGED = Path(__file__).with_name("changed")
calls = 0
changed = False


def digest(x: int) -> int:
    global calls, changed
    calls += 1
    if calls % 1000 == 1:
        changed = CHANGED.exists()
    text = str(x).encode()
    for _ in range(300):
        text = hashlib.sha256(text).digest()
    return int.from_bytes(text[:4], "big") + (changed and x == 1)
"""
ASKING = """
.domain m(kind=python, module="source")
.decl n(x: number)
.decl twice(x: number)
.decl d(x: number, y: number)
.output d
d(x, y) :- n(x), in(y, m:digest(x)).
d(x, y) :- twice(x), in(y, m:digest(x)).
.decl late(x: number, y: number)DEFERRED
.output late
late(x, y) :- twice(x), in(y, m:digest(x)).
"""
PLAIN = """
.decl edge(x: number, y: number)
.decl reach(x: number)
.output reach
reach(y) :- edge(x, y), x > 10.
"""


def digest(x: int) -> int:
    """What the module's function does."""
    text = str(x).encode()
    for _ in range(300):
        text = hashlib.sha256(text).digest()
    return int.from_bytes(text[:4], "big")


def calls(quick: bool) -> dict[str, float]:
    """Calls of a Python function, and a refresh of all of them, of which one gives something else."""
    number = 1_000 if quick else 10_000
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "source.py").write_text(MODULE)
        (Path(folder) / "p.dl").write_text(ASKING.replace("DEFERRED", ""))
        rows = [[x] for x in range(number)]
        loops, whole, refreshes, single = [], [], [], []
        made = 0.0
        for _ in range(2 if quick else 5):
            with open_program(Path(folder) / "p.dl", {"twice": [], "n": []}) as db:
                loops.append(timed(lambda: list(map(digest, range(number)))))
                whole.append(timed(partial(db.apply, {"insert": {"n": rows, "twice": rows[: number // 10]}})))
                made = _made(db)
                changed = Path(folder) / "changed"
                changed.touch()
                refreshes.append(timed(partial(db.refresh, "m")))
                changed.unlink()
                single += [timed(partial(db.apply, {"delete": {"twice": [[x]]}})) for x in range(20)]
        middle = len(loops) // 2
        return {
            "distinct arguments": float(number),
            "calls made": made,
            "plain loop": sorted(loops)[middle],
            "transaction": sorted(whole)[middle],
            "refresh, one changed": sorted(refreshes)[middle],
            "one-row transaction": sorted(single)[len(single) // 2],
        }


def _made(db: Database) -> float:
    assert db.sources is not None
    return float(db.sources.made)


def deferred(quick: bool) -> dict[str, float]:
    """What a change of a source does to a deferred relation: nothing, until it is asked for."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "source.py").write_text(MODULE)
        (Path(folder) / "p.dl").write_text(ASKING.replace("DEFERRED", " deferred"))
        with open_program(Path(folder) / "p.dl", {"n": [], "twice": []}) as db:
            db.apply({"insert": {"twice": [[1], [2], [3]]}, "delete": {"n": [[9]]}})
            before, tx = _made(db), db.tx
            (Path(folder) / "changed").touch()
            seen = {row[0]: row[1] for row in db.ask("late(x, y)")}
            return {
                "calls before it is asked": _made(db) - before,
                "transactions": float(db.tx - tx),
                "answers that are new": float(seen[1] == digest(1) + 1),
            }


def without(quick: bool) -> dict[str, float]:
    """A program that has neither domains nor constraints: single rows, taken as now, and straight to the step as before there were mediators."""
    from vigilog.engine.proposal import Proposal, RowChange

    with open_program(PLAIN, {"edge": [(x, x + 1) for x in range(10_000)]}) as db:

        def straight(wish: Any) -> None:
            with db.lock:
                db.propose(Proposal(RowChange(db, wish)))

        ways: dict[str, Callable[[Any], object]] = {"now": db.take, "before": straight}
        found: dict[str, list[float]] = {name: [] for name in ways}
        for x in range(400 if quick else 6_000):
            for name, take in ways.items() if x % 2 else reversed(ways.items()):
                wish: dict[str, Any] = {"insert": {"edge": [[20_000 + x, x]]}}
                found[name].append(timed(partial(take, wish)))
                take({"delete": {"edge": [[20_000 + x, x]]}})
        return {name: sorted(values)[len(values) // 2] for name, values in found.items()}


def imported() -> bool:
    """Whether a program without domains and constraints has z3 imported, in a process of its own."""
    import subprocess
    import sys

    code = (
        f"import sys, vigilog; db = vigilog.open({PLAIN!r}, {{}}); db.take({{'insert': {{'edge': [[11, 2]]}}}}); print('z3' in sys.modules)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "True"
