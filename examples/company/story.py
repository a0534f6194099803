"""The story that the demo tells."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import date

from examples.company.changes import some_change
from examples.company.data import Company
from examples.company.stage import Stage, chapter

PAUSE = 3.0  # seconds between two changes, after the story


def tell(stage: Stage, company: Company) -> None:
    """What happens: a row, a team, something that is refused, a batch, the death of the server."""
    console = stage.console
    boss, newcomer = company.people[12], company.people[200]
    below = company.below(boss)
    name, course = next(row for row in company.rows["trained"] if row[0] in below and row[1] in company.wanted[row[0]])
    old = next(row for row in company.rows["person"] if row[0] == name)

    chapter(console, "Who holds what")
    console.print(f"The server is process {stage.server.process.pid}, at {stage.url}. Each client is one, too: examples/client.py.")
    stage.hold("payroll", "payroll")
    stage.hold("office", "above", {"boss": boss})
    stage.hold("safety", f'untrained(n, r, c), above("{boss}", n)')
    stage.hold("rooms", "visits")
    for holder in stage.holders:
        console.print(f"{holder.name:>11} holds {holder}", style="dim")
    with console.status("first answers …"):
        stage.follow(0)

    chapter(console, "One row")
    stage.tell(f"The training of {name} for {course} has run out.", {"delete": {"trained": [(name, course)]}})
    stage.why(f'untrained("{name}", r, "{course}")')
    chapter(console, "A team moves")
    moved = next(row for row in company.rows["reports_to"] if row[0] == newcomer)
    stage.tell(f"{newcomer} and all below work for {boss} now.", {"update": {"reports_to": [{"old": moved, "new": (newcomer, boss)}]}})
    chapter(console, "Refused")
    stage.tell(
        f"{name} is to be in two departments, and loses a badge.",
        {"insert": {"person": [(name, "Kitchen", 1)]}, "delete": {"member": [(name, company.team[name])]}},
    )
    chapter(console, "A large batch")
    stage.load("The doors hand in the visits of February.", "visit", company.visits(60_000, date(2026, 2, 1)))
    chapter(console, "kill -9")
    stage.kill(
        f"{name} gets a raise, while nobody is there to note it.", {"update": {"person": [{"old": old, "new": (*old[:2], old[2] + 5000)}]}}
    )
    chapter(console, "And on")
    stage.tell(f"{name} was trained again.", {"insert": {"trained": [(name, course)]}})


def go_on(stage: Stage, company: Company, page: str) -> None:
    """Says where to connect, and goes on slowly until Ctrl-C."""
    console = stage.console
    chapter(console, "It goes on, until Ctrl-C")
    boss = company.people[12]
    near = sorted(company.below(boss))
    for word, line in {
        "page": f"{page}/page.html?server={stage.url}&view=payroll",
        "follow": f"./run vigilog subscribe {stage.url} payroll",
        "hold": f".venv/bin/python -m examples.client {stage.url} above --bind 'boss={boss}'",
        "tell": f"""./run vigilog tell {stage.url} '{{"insert": {{"person": [["Eve Newcome", "Space", 42]]}}}}'""",
        "ask": f"curl -G {stage.url}/v1/views/above --data-urlencode 'bind.boss={boss}'",
        "more": f"{stage.url}/openapi.json, {stage.url}/metrics",
    }.items():
        console.print(f"{word:>11}   {line}", markup=False, soft_wrap=True)
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(PAUSE)
            console.print()
            stage.tell(*some_change(company.random, stage.base, near))
    with console.status("ending …"):
        stage.ending.close()
    console.print("\nAll processes have ended.")
