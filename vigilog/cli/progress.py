"""Shows long work: its stage, how much of it is done, and how long the rest will take.

On a terminal it is one line on standard error, which comes when work has taken a moment, and goes when it is over. Elsewhere nothing is shown. The environment variable `VIGILOG_PROGRESS` is `lines`
for plain lines, as a log wants them, wherever they go, or `none`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vigilog.executors.watch import Report, Stage

T = TypeVar("T")
TICK = 0.25  # seconds between two looks at what is going on
MOMENT = 0.5  # seconds that work takes before a terminal shows it
WHILE, AGAIN = 1.0, 10.0  # seconds that a stage takes before it has a plain line, and between two of these


class Progress:
    """Where long work is reported to. This one shows nothing: nobody is watching, so `report` is None."""

    report: Report | None = None

    def rest(self) -> None:
        """Nothing is going on now: what comes next on the terminal is not ours."""

    def idle(self, lines: Iterable[T]) -> Iterator[T]:
        """The same lines; while the next is waited for, nothing is going on."""
        self.rest()
        for line in lines:
            yield line
            self.rest()

    def end(self) -> None:
        """No more comes."""


class Shown(Progress):
    """A report only notes the stage. A thread of its own looks at it now and then, and shows it."""

    def __init__(self) -> None:
        self.report = self._report
        self.stage: Stage | None = None
        self.since = self.began = 0.0  # when work began, and the stage of this name
        self.lock, self.over = threading.RLock(), threading.Event()
        self.thread: threading.Thread | None = None

    def _report(self, stage: Stage) -> None:
        with self.lock:
            if self.stage is None or self.stage.name != stage.name:
                self.began = time.monotonic()
                self.since = self.began if self.stage is None else self.since
            self.stage = stage
            if self.thread is None:
                self.thread = threading.Thread(target=self._look, name="progress", daemon=True)
                self.thread.start()

    def _look(self) -> None:
        while not self.over.wait(TICK):
            with self.lock:
                if self.stage is not None:
                    self.show(self.stage, time.monotonic())

    def rest(self) -> None:
        with self.lock:
            self.stage = None

    def end(self) -> None:
        self.over.set()
        self.rest()

    def show(self, stage: Stage, now: float) -> None:
        raise NotImplementedError


class Lines(Shown):
    """One line for a stage that takes a while, and more as it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.told = (0.0, 0.0)  # which stage had the last line, by when it began, and when that was

    def show(self, stage: Stage, now: float) -> None:
        began, at = self.told
        if now - self.began >= WHILE if began != self.began else now - at >= AGAIN:
            self.told = self.began, now
            print(f"{stage.name}: {stage.detail}" if stage.detail else stage.name, file=sys.stderr, flush=True)


class Line(Shown):
    """A line that is drawn again and again, and goes without a trace."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Any = None  # what draws it, while it is there
        self.before: Stage | None = None  # what it shows

    def show(self, stage: Stage, now: float) -> None:
        if now - self.since < MOMENT:
            return
        if self.drawn is None:
            self.drawn = _drawing()
            self.drawn.start()
        before, self.before = self.before, stage
        if before is None or (stage.name, stage.unit) != (before.name, before.unit) or stage.done < before.done:
            for task in self.drawn.task_ids:
                self.drawn.remove_task(task)
            self.drawn.add_task(stage.name, total=stage.total, completed=stage.done, detail=stage.detail, began=self.began)
        else:
            self.drawn.update(self.drawn.task_ids[0], total=stage.total, completed=stage.done, detail=stage.detail)
        self.drawn.refresh()

    def rest(self) -> None:
        with self.lock:
            if self.drawn is not None:
                self.drawn.stop()
            self.stage = self.drawn = self.before = None


def _drawing() -> Any:
    """What draws a line: name, bar, numbers, and the time that is left, or else that it has taken. Standard output is left alone, for rows go there."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Time(ProgressColumn):
        def render(self, task: Task) -> Text:
            left = task.time_remaining
            seconds = int(time.monotonic() - task.fields["began"] if left is None else left)
            clock = f"{seconds // 60}:{seconds % 60:02}"
            return Text(clock if left is None else f"{clock} left")

    name = TextColumn("{task.description}", markup=False, table_column=Column(max_width=24, no_wrap=True, overflow="ellipsis"))
    detail = TextColumn("{task.fields[detail]}", markup=False, table_column=Column(no_wrap=True))
    columns = (name, BarColumn(bar_width=12), detail, Time(Column(no_wrap=True)))
    return Progress(
        *columns, console=Console(stderr=True), transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    )


@contextmanager
def progress() -> Iterator[Progress]:
    """Where to report long work to, while it lasts."""
    wanted = os.environ.get("VIGILOG_PROGRESS", "")
    shown = Lines() if wanted == "lines" else Line() if wanted != "none" and sys.stderr.isatty() else Progress()
    try:
        yield shown
    finally:
        shown.end()
