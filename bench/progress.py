"""Shows what is being measured: a bar on a terminal, plain lines on a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

console = Console(stderr=True, highlight=False)


class Steps:
    """The steps of a benchmark: `begin` names one and gives a function to tell what it is at, `end` says what came of it."""

    def __init__(self, total: int, bar: Progress | None) -> None:
        self.bar, self.total, self.done = bar, total, 0
        self.task = bar.add_task("", total=total, detail="") if bar else None

    def begin(self, what: str) -> Callable[[str], None]:
        def tell(detail: str) -> None:
            if self.bar and self.task is not None:
                self.bar.update(self.task, description=what, detail=detail)

        tell("")
        return tell

    def end(self, what: str) -> None:
        self.done += 1
        if self.bar and self.task is not None:
            self.bar.update(self.task, completed=self.done)
        console.print(f"[{self.done}/{self.total}] {what}", markup=False, soft_wrap=True)


@contextmanager
def steps(total: int) -> Iterator[Steps]:
    if not console.is_terminal:
        yield Steps(total, None)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[detail]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield Steps(total, bar)
