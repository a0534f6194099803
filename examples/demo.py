"""The whole story in small: a company is loaded through Spark and served; clients in other processes hold views of it, and keep them right, whatever happens."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from examples.company import story
from examples.company.data import Company, write
from examples.company.load import PROGRAM
from examples.company.processes import Ended, Process
from examples.company.stage import Stage, chapter
from examples.company.truth import verify
from vigilog.core.errors import VigilogError


def main() -> None:
    parser = argparse.ArgumentParser(prog="./run demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="play the story, and exit; otherwise it goes on slowly until Ctrl-C")
    parser.add_argument("--data", type=Path, metavar="DIR", help="a new folder for all that is written, to keep it")
    given = parser.parse_args()
    console = Console(highlight=False)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda *_: sys.exit(1))
    try:
        with _folder(given.data) as folder:
            play(console, folder, once=given.once)
    except KeyboardInterrupt:
        console.print("\nInterrupted. All processes have ended.")
        sys.exit(130)
    except (Ended, VigilogError, OSError) as error:
        console.print(f"[red]The demo failed.[/red] {error}")
        sys.exit(1)


def play(console: Console, folder: Path, *, once: bool) -> None:
    began = time.monotonic()
    company = _loaded(console, folder)
    with _page() as page, Stage(console, folder, {name: set(rows) for name, rows in company.rows.items()}, [page]) as stage:
        story.tell(stage, company)
        chapter(console, "Is every copy right?")
        if not verify(stage):
            raise Ended("A copy differs from the truth: see the table above.")
        console.print(
            f"[green]Yes: every copy, kept by changes alone, equals the view computed anew.[/green] ({time.monotonic() - began:.0f} s)"
        )
        if not once:
            story.go_on(stage, company, page)


def _loaded(console: Console, folder: Path) -> Company:
    """Makes the company, and a data folder of it."""
    chapter(console, "A company")
    company, facts = Company(), folder / "facts"
    facts.mkdir()
    sizes = write(facts, company.rows)
    console.print(f"{sum(sizes.values()):,} rows, as Parquet: " + ", ".join(f"{name} {rows:,}" for name, rows in sizes.items()))
    rules = [line for line in PROGRAM.read_text(encoding="utf-8").splitlines()[1:] if not line.startswith(".")]
    console.print("Its views, as examples/company/company.dl defines them:\n")
    for line in "\n".join(rules).strip().splitlines():
        console.print(f"  {line}", style="dim" if line.startswith("//") else "")
    began = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=30), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn())
    loading = Process(folder, "load", ["examples.company.load", str(facts), str(folder / "data")])
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("Spark starts", total=1.2 * sum(sizes.values()))
            reading = ""
            for line in loading.lines():
                bar.update(task, description=line, advance=sizes.get(reading, 0))
                reading = line.removeprefix("reading ")
    finally:
        loading.kill()
    console.print()
    console.print(
        f"Loaded through Spark in {time.monotonic() - began:.0f} s. All is in SQLite now but for the visits, which stay with Spark."
    )
    return company


@contextmanager
def _folder(wanted: Path | None) -> Iterator[Path]:
    """A folder that is gone afterwards, unless it is wanted."""
    if wanted is None:
        with TemporaryDirectory(prefix="vigilog-demo-") as found:
            yield Path(found)
        return
    wanted.mkdir(parents=True, exist_ok=True)
    if any(wanted.iterdir()):
        raise Ended(
            f"{wanted} is not empty. A database that an earlier demo left there is served by: vigilog serve --data {wanted / 'data'}"
        )
    yield wanted.absolute()


@contextmanager
def _page() -> Iterator[str]:
    """Serves the page that shows a view; gives its origin."""
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(Path(__file__).parent))) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


if __name__ == "__main__":
    main()
