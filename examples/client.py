"""Holds a copy of a view, and says what it gains and loses.

    python -m examples.client http://127.0.0.1:8080 payroll
    python -m examples.client http://127.0.0.1:8080 above --bind "boss=Ada Holdahl"
    python -m examples.client http://127.0.0.1:8080 'untrained(n, r, "Lasers"), above("Ada Holdahl", n)'

It goes on until its input ends (Ctrl-D). A number there is a transaction: it says so when its copy has come so far, and writes the copy to a file, if it is to.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from vigilog.client import Change, connect
from vigilog.core.errors import VigilogError
from vigilog.core.values import Row

MOST = 6  # rows that are shown of a change
console = Console(highlight=False)


def show(change: Change) -> None:
    """What came and what went, by the rows' order, so that what replaces each other stands together."""
    rows = [(row, "+", "green") for row in change.plus] + [(row, "-", "red") for row in change.minus]
    table = Table.grid(padding=(0, 2, 0, 0))
    for row, sign, style in sorted(rows)[:MOST]:
        table.add_row(sign, *cells(row), style=style)
    console.print(f"[bold]transaction {change.tx}[/bold]  gained {len(change.plus):,}, lost {len(change.minus):,}")
    console.print(table)
    if len(rows) > MOST:
        console.print(f"[dim]… and {len(rows) - MOST:,} more[/dim]")


def cells(row: Row) -> list[str]:
    return [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", help="its address")
    parser.add_argument("view", help="a view, or a goal")
    parser.add_argument("--bind", action="append", default=[], metavar="COLUMN=VALUE", help="only rows with this value")
    parser.add_argument("--copy", type=Path, metavar="FILE", help="where to write the copy, as Parquet")
    given = parser.parse_args()
    bind = dict(part.split("=", 1) for part in given.bind)
    try:
        with connect(given.server) as client, client.enroll(given.view, bind=bind, on_change=show) as view:
            console.print(f"holds {len(view):,} rows as of transaction {view.position}")
            for line in sys.stdin:
                view.wait_for(int(line))
                if given.copy:
                    pq.write_table(view.to_arrow(), given.copy)
                console.print(f"at {view.position}")
    except VigilogError as error:
        sys.exit(f"{error.code}: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
