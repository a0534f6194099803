"""Small changes as they come in a company, drawn at random from what there is."""

from __future__ import annotations

from collections.abc import Mapping
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


def some_change(random: Random, base: Base) -> tuple[str, Operations]:
    """Something that may happen, and the transaction that says so."""
    name, department, salary = random.choice(sorted(base["person"]))
    course, raised = random.choice(COURSES), salary + 1000 * random.randint(1, 9)
    another = random.choice([other for other in DEPARTMENTS if other != department])
    group = next((group for member, group in base["member"] if member == name), "team 000")
    leader, project = random.choice(sorted(base["leads"]))
    changes: list[tuple[str, Operations]] = [
        (f"{name} gets a raise.", {"update": {"person": [{"old": (name, department, salary), "new": (name, department, raised)}]}}),
        (f"{name} moves to {another}.", {"update": {"person": [{"old": (name, department, salary), "new": (name, another, salary)}]}}),
        (f"{name} leaves {group}; the badge opens nothing of it any more.", {"delete": {"member": [(name, group)]}}),
        (f"{name} joins team 007, too.", {"insert": {"member": [(name, "team 007")]}}),
        (f"The training of {name} for {course} has run out.", {"delete": {"trained": [(name, course)]}}),
        (f"{name} was trained for {course}.", {"insert": {"trained": [(name, course)]}}),
        (f"{leader} leads {project} no more.", {"delete": {"leads": [(leader, project)]}}),
    ]  # fmt: skip
    return random.choice(changes)
