"""Tables as text and Markdown, everything as JSON, bars as a picture: what every benchmark leaves behind."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from bench.targets import Target


@dataclass(frozen=True)
class Table:
    """The first column is text; the others are numbers as text, aligned to the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.columns) for row in self.rows), "a row has a cell for each column"

    def markdown(self) -> str:
        """
        >>> print(Table("Sizes", ("graph", "rows"), [("tree", "12")]).markdown())
        ### Sizes
        <BLANKLINE>
        | graph | rows |
        |---|---:|
        | tree | 12 |
        """
        lines = [f"### {self.title}", "", f"| {' | '.join(self.columns)} |", "|---|" + "---:|" * (len(self.columns) - 1)]
        return "\n".join(lines + [f"| {' | '.join(row)} |" for row in self.rows])

    def show(self, console: Console) -> None:
        """Prints the columns that there is room for, from the left."""
        for shown in range(len(self.columns), 0, -1):
            table = RichTable(title=self.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
            for place, column in enumerate(self.columns[:shown]):
                table.add_column(column, justify="right" if place else "left", no_wrap=True)
            for row in self.rows:
                table.add_row(*row[:shown])
            if console.measure(table, options=console.options.update(width=1000)).maximum <= console.width or shown == 1:
                console.print(table)
                return


def targets_table(targets: Sequence[Target], title: str = "Targets") -> Table:
    rows = [(target.what, target.wanted, target.measured, target.verdict) for target in targets]
    return Table(title, ("what", "wanted", "measured", ""), rows)


def show(tables: Sequence[Table]) -> None:
    """Prints tables as wide as they are, also on a pipe."""
    console = Console(highlight=False, markup=False)
    wide = console if console.is_terminal else Console(highlight=False, markup=False, width=160)
    for table in tables:
        table.show(wide)


def surroundings() -> dict[str, str]:
    """What a number depends on beside the code."""
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    for package in ("duckdb", "pyspark"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    found["system"] = f"{platform.system()} {platform.machine()}"
    found["cores"] = str(os.cpu_count())
    found["load when started"] = f"{os.getloadavg()[0]:.1f}"
    return found


def write(
    folder: Path, name: str, heading: str, notes: Sequence[str], tables: Sequence[Table], data: Mapping[str, Any], around: Mapping[str, str]
) -> None:
    """Writes NAME.md, which shows NAME.png, and NAME.json."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = ", ".join(f"{key} {value}" for key, value in around.items())
    parts = [
        f"# {heading}",
        f"![chart]({name}.png)",
        "\n".join(f"- {note}" for note in notes),
        f"Measured with {machine}.",
        *(t.markdown() for t in tables),
    ]
    (folder / f"{name}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    (folder / f"{name}.json").write_text(
        json.dumps({"surroundings": around, **data}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
