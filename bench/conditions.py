"""`bench conditions`: what alerts, constraints and triggers cost beside views that nobody does anything with.

All that is compared runs in turns in one process, and the median of the turns counts; so a ratio does not depend on how busy the machine is.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from bench.experiments import Experiments
from bench.graphs import SEED
from bench.options import Options
from bench.targets import Target, at_least, at_most
from bench.triggers import on_postgres
from bench.watch.recompute import DuckdbRecomputed
from bench.watch.workloads import Change, workloads
from vigilog.core.errors import Refused
from vigilog.engine.database import Database
from vigilog.folder.opening import open_program

NOTES = (
    "Times are medians of single transactions, in milliseconds, in memory; what is compared takes turns within one process.",
    "*Integrity*: 80 views over employees, departments and managers; *watched* they are outputs, *enforced* they are constraints, while an employee who violates nothing leaves and returns; *by triggers of PostgreSQL* a server on this machine, which never waits for its disk, runs the same 80 checks, written by hand for the rows that change "
    "(they refuse the same). *W4* are the changes "
    "of `bench watch`, some of which violate constraints; *DuckDB* evaluates the 80 queries again and compares them with the last answer.",
    "*Constants*: alerts on one relation, each of which wants another sensor's readings; a row comes that concerns none of them, or some.",
    "*Modes*: a join of two relations without an alert, with one by key, and with one that counts proofs.",
    "*Cascade*: ten rounds of triggers in one transaction, beside the same ten changes as ten transactions.",
)

Turn = Callable[[int], object]


def main(options: Options) -> int:
    return Experiments(
        "Conditions",
        "ms",
        NOTES,
        {
            "integrity": integrity,
            "constants": constants,
            "modes": modes,
            "cascade": cascade,
        },
        judge,
    ).run(options)


def in_turns(turns: Mapping[str, Turn], times: int, warm: int = 10) -> dict[str, float]:
    """The median milliseconds of each, taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in turns}
    for number_ in range(times + warm):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn(number_)
            found[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(values[warm:]) for name, values in found.items()}


def integrity(quick: bool) -> dict[str, float]:
    workload = next(one for one in workloads(quick) if one.name == "integrity")
    facts = workload.facts()
    watched = workload.program.text
    enforced = watched.replace(".output", ".constraint")
    staff = sorted(facts["employee"])[:: max(1, len(facts["employee"]) // 50)]
    with open_program(watched, facts) as one, open_program(enforced, facts) as other, on_postgres(workload, facts) as postgres:

        def changing(apply: Callable[[Any], object]) -> Turn:
            def turn(number_: int) -> None:
                row = staff[number_ // 2 % len(staff)]
                apply({"insert" if number_ % 2 else "delete": {"employee": [row]}})

            return turn

        staff = [row for row in staff if not one.apply({"delete": {"employee": [row]}}, dry_run=True)]  # who violates nothing can return
        turns = {"watched": changing(one.take), "enforced": changing(other.take)}
        (series,) = workload.series(facts)
        if postgres is not None:
            for change in series.changes[:200:2]:  # they are the same checks; every other change undoes the one before
                assert postgres.refuses(change) == refuses(other, change), change
            turns["enforced by triggers of PostgreSQL"] = changing(postgres.apply)
        found = in_turns(turns, 10 if quick else 200)
        duck = DuckdbRecomputed(workload, facts)

        def as_w4(apply: Callable[[Any], object]) -> Turn:
            return lambda number_: apply(series.changes[number_ % len(series.changes)])

        found |= in_turns({"W4, watched": as_w4(one.take)}, len(series.changes) - 20, 20)
        found |= in_turns({"W4, DuckDB": as_w4(duck.apply)}, 4 if quick else 20, 4)
        duck.close()
    return found


def refuses(db: Database, change: Change) -> bool:
    """Whether a transaction would be refused."""
    try:
        db.apply(change, dry_run=True)
    except Refused:
        return True
    return False


def sensors(alerts: int) -> Database:
    lines = [".decl reading(sensor: number, value: number)"]
    for place in range(alerts):
        lines += [
            f".decl high{place}(value: number)",
            f"high{place}(v) :- reading({place % 1000}, v), v > {place % 7}.",
            f".alert high{place}",
        ]
    return open_program("\n".join(lines) + "\n", {"reading": [(sensor, value) for sensor in range(1000) for value in range(3)]})


def constants(quick: bool) -> dict[str, float]:
    sizes = (10, 100) if quick else (10, 100, 1000)
    opened = {size: sensors(size) for size in sizes}

    def none(db: Database) -> Turn:
        return lambda number_: db.take({"insert" if number_ % 2 == 0 else "delete": {"reading": [(5000, 9)]}})

    def some(db: Database, concerned: int) -> Turn:
        rows = [(sensor, 9) for sensor in range(concerned)]
        return lambda number_: db.take({"insert" if number_ % 2 == 0 else "delete": {"reading": rows}})

    turns = {f"{size} alerts, none concerned": none(db) for size, db in opened.items()}
    turns |= {f"{sizes[-1]} alerts, {concerned} concerned": some(opened[sizes[-1]], concerned) for concerned in (1, 10, 100)}
    found = in_turns(turns, 20 if quick else 300)
    for db in opened.values():
        db.close()
    return found


VIEW = """
.decl stock(item: number, level: number)
.decl minimum(item: number, level: number)
.decl shortage(item: number, level: number)
.output shortage
shortage(i, n) :- stock(i, n), minimum(i, m), n < m.
"""


def modes(quick: bool) -> dict[str, float]:
    items = 1_000 if quick else 100_000
    facts = {"stock": [(item, item % 10) for item in range(items)], "minimum": [(item, 5) for item in range(items)]}
    alerts = {"no alert": "", "by key": ".alert shortage(key=item)\n", "resatisfiable": ".alert shortage(key=item, mode=resatisfiable)\n"}
    opened = {name: open_program(VIEW + alert, facts) for name, alert in alerts.items()}

    def turn(db: Database) -> Turn:
        def change(number_: int) -> None:
            item = SEED * (number_ // 2) % items
            old, new = [(item, item % 10)], [(item, -1)]
            db.take({"delete": {"stock": old if number_ % 2 == 0 else new}, "insert": {"stock": new if number_ % 2 == 0 else old}})

        return change

    found = in_turns({name: turn(db) for name, db in opened.items()}, 20 if quick else 500)
    for db in opened.values():
        db.close()
    return found


def cascade(quick: bool) -> dict[str, float]:
    rules = [".decl r0(x: number)"]
    for place in range(10):
        rules += [f".decl r{place + 1}(x: number)", f".decl c{place}(x: number)", f"c{place}(x) :- r{place}(x), x >= 0."]
    triggers = [f".trigger c{place}(insert=r{place + 1})" for place in range(10)]
    rows = {f"r{place}": [(value,) for value in range(1000)] for place in range(11)}
    plain = open_program("\n".join([*rules, *(f".output c{place}" for place in range(10))]) + "\n", rows)
    fired = open_program("\n".join([*rules, *triggers]) + "\n", rows)

    def one_by_one(number_: int) -> None:
        for place in range(11):
            plain.take({"insert": {f"r{place}": [(5_000 + number_,)]}})

    turns: dict[str, Turn] = {
        "eleven transactions": one_by_one,
        "ten rounds": lambda number_: fired.take({"insert": {"r0": [(5_000 + number_,)]}}),
    }
    found = in_turns(turns, 10 if quick else 200)
    plain.close()
    fired.close()
    return found


def judge(found: Mapping[str, Mapping[str, float]]) -> list[Target]:
    targets = []
    if "integrity" in found:
        own = found["integrity"]
        targets.append(at_least("80 integrity views, one row: DuckDB ÷ watched", own["W4, DuckDB"] / own["W4, watched"], 200, "×"))
        targets.append(at_most("80 constraints: enforced ÷ watched", own["enforced"] / own["watched"], 1.1, "×"))
    if "constants" in found:
        own = found["constants"]
        none = [value for name, value in own.items() if "none" in name]
        targets.append(at_most("a row that concerns no alert: most alerts ÷ 10 alerts", none[-1] / none[0], 1.5, "×"))
    if "modes" in found:
        own = found["modes"]
        targets.append(at_most("an alert by key ÷ its view alone", own["by key"] / own["no alert"], 2, "×"))
        targets.append(at_most("a resatisfiable alert ÷ its view alone", own["resatisfiable"] / own["no alert"], 3, "×"))
    if "cascade" in found:
        own = found["cascade"]
        targets.append(at_most("ten rounds of triggers ÷ as many transactions", own["ten rounds"] / own["eleven transactions"], 1, "×"))
    return targets
