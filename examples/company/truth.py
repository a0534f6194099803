"""Whether every copy is right."""

from __future__ import annotations

from rich.table import Table

import vigilog
from examples.company.data import Row
from examples.company.load import PROGRAM
from examples.company.processes import Holder
from examples.company.stage import Stage


def verify(stage: Stage) -> bool:
    """Compares each client's copy with the view as the server has it, and with what follows from the base relations by the rules alone."""
    with stage.console.status("asking the server, and computing everything anew …"):
        anew = vigilog.evaluate(_program(stage.holders), stage.base)
        table = Table("client", "holds", "rows", "the server says", "computed anew", box=None, padding=(0, 2, 0, 0))
        right = True
        for holder in stage.holders:
            copy, computed = holder.rows(), {row for row in anew[holder.name_of_view] if _is_bound(holder, row)}
            asked = set(stage.client.ask(holder.view) if holder.is_goal else stage.client.view(holder.view, holder.bind))
            right = right and copy == asked == computed
            table.add_row(holder.name, str(holder), f"{len(copy):,}", _verdict(copy, asked), _verdict(copy, computed))
    stage.console.print(table)
    return right


def _program(holders: list[Holder]) -> str:
    """The program, with the goals that are followed as views of it."""
    goals = "".join(
        f".decl query(n: symbol, r: symbol, c: symbol)\n.output query\nquery(n, r, c) :- {one.view}.\n" for one in holders if one.is_goal
    )
    return f"{PROGRAM.read_text(encoding='utf-8')}\n{goals}"


def _is_bound(holder: Holder, row: Row) -> bool:
    return all(row[0] == value for value in holder.bind.values())  # `boss`, the first column of `above`


def _verdict(copy: set[Row], truth: set[Row]) -> str:
    return "[green]equal[/green]" if copy == truth else f"[red]{len(truth - copy):,} missing, {len(copy - truth):,} too many[/red]"
