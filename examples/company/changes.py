"""Small changes as they come in a company, drawn at random from what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from examples.company.data import COURSES, DEPARTMENTS, Row

Operations = dict[str, dict[str, list[Any]]]
Base = Mapping[str, set[Row]]


def happen(base: Base, operations: Operations) -> None:
    """What a transaction does to the base relations."""
    for relation, rows in operations.get("delete", {}).items():
        base[relation].difference_update(rows)
    for relation, pairs in operations.get("update", {}).items():
        base[relation].difference_update(pair["old"] for pair in pairs)
        base[relation].update(pair["new"] for pair in pairs)
    for relation, rows in operations.get("insert", {}).items():
        base[relation].update(rows)


def some_change(random: Random, base: Base, near: Sequence[str]) -> tuple[str, Operations]:
    """Something that may happen, every other time to somebody near, and the transaction that says so."""
    person = {name: (name, department, salary) for name, department, salary in base["person"]}
    name, department, salary = person[random.choice(random.choice([near, sorted(person)]))]
    course, another = random.choice(COURSES), random.choice([other for other in DEPARTMENTS if other != department])
    group = next((group for member, group in base["member"] if member == name), "team 000")
    leader, project = random.choice(sorted(base["leads"]))
    old, junior = (name, department, salary), f"{name} jr."
    changes: list[tuple[str, Operations]] = [
        (f"{name} gets a raise.", {"update": {"person": [{"old": old, "new": (name, department, salary + 3000)}]}}),
        (f"{name} moves to {another}.", {"update": {"person": [{"old": old, "new": (name, another, salary)}]}}),
        (f"{name} leaves {group}, and loses what its badge opens.", {"delete": {"member": [(name, group)]}}),
        (f"{name} joins team 007, too.", {"insert": {"member": [(name, "team 007")]}}),
        (f"The training of {name} for {course} has run out.", {"delete": {"trained": [(name, course)]}}),
        (f"{leader} leads {project} no more.", {"delete": {"leads": [(leader, project)]}}),
        (f"{junior} begins to work for {name}.", {
            "insert": {"person": [(junior, department, 30_000)], "reports_to": [(junior, name)], "member": [(junior, group)]},
        }),
    ]  # fmt: skip
    return random.choice(changes)
