"""A short story: a program, a few transactions, and what each changed in every view."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

import vigilog
from vigilog.core.delta import Delta
from vigilog.core.errors import VigilogError

PROGRAM = Path(__file__).with_name("company.dl")

FACTS: dict[str, list[tuple[Any, ...]]] = {
    "employee": [("ada", "board", 900), ("ben", "lab", 500), ("cleo", "lab", 400), ("dan", "shop", 300)],
    "manages": [("ada", "ben"), ("ben", "cleo"), ("ada", "dan")],
    "badge": [("ada", "office"), ("ben", "lab"), ("cleo", "lab")],
}

STORY: list[tuple[str, dict[str, dict[str, list[Any]]]]] = [
    ("Dan gets a badge.", {"insert": {"badge": [("dan", "shop")]}}),
    ("Cleo moves to the shop, under Dan.", {
        "update": {"employee": [{"old": ("cleo", "lab", 400), "new": ("cleo", "shop", 400)}]},
        "delete": {"manages": [("ben", "cleo")]},
        "insert": {"manages": [("dan", "cleo")]},
    }),
    ("Nothing really changes: a row that is there is inserted, one that is not is deleted.", {
        "insert": {"badge": [("dan", "shop")]}, "delete": {"badge": [("eve", "lab")]},
    }),
    ("A salary that is no number is refused, and nothing of the transaction happens.", {
        "insert": {"employee": [("eve", "lab", "much")]}, "delete": {"badge": [("ada", "office")]},
    }),
    ("Dan gets a raise.", {"update": {"employee": [{"old": ("dan", "shop", 300), "new": ("dan", "shop", 450)}]}}),
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="play the story once and exit (what it does now in any case)")
    parser.parse_args()
    console = Console()
    console.rule("The program: examples/company.dl")
    console.print(Syntax(PROGRAM.read_text(encoding="utf-8"), "prolog", background_color="default"))
    database = vigilog.open(PROGRAM, FACTS)
    console.rule("The first answer")
    copies = {name: database.view(name) for name in database.program.outputs}
    for name, rows in copies.items():
        _show(console, name, Delta(plus=frozenset(rows)))
    for number, (event, transaction) in enumerate(STORY, start=1):
        console.rule(f"Transaction {number}")
        console.print(event)
        try:
            changes = database.apply(transaction)
        except VigilogError as error:
            console.print(f"[red]refused[/red] ({error.code}): {error}")
            continue
        if not changes:
            console.print("[dim]no view changed[/dim]")
        for name, delta in changes.items():
            copies[name] = delta.apply(copies[name])
            _show(console, name, delta)
    console.rule("Is every copy still right?")
    base = {name: database.rows(name) for name in database.homes}
    again = vigilog.evaluate(PROGRAM, base)
    right = all(copies[name] == again[name] for name in copies)
    console.print("[green]yes: each copy, kept by changes alone, equals the view computed anew[/green]" if right else "[red]no[/red]")
    if not right:
        raise SystemExit(1)


def _show(console: Console, name: str, delta: Delta) -> None:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for sign, rows, style in (("+", delta.plus, "green"), ("-", delta.minus, "red")):
        for row in sorted(rows):
            table.add_row(f"[{style}]{sign}[/{style}]", name, *(str(cell) for cell in row))
    console.print(table)


if __name__ == "__main__":
    main()
