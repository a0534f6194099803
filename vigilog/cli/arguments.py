"""What several commands share: their arguments, and how they read and print.

A command imports what it needs when it is called, so that `--version`, `--help` and completion, which need nothing, come at once.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vigilog.core.errors import DataError, Refused, Stopped, UsageError
from vigilog.rewriting.maintenance.strategies import AUTO, STRATEGIES

if TYPE_CHECKING:
    from vigilog.cli.progress import Progress
    from vigilog.core.values import Row, Type
    from vigilog.engine.database import Database
    from vigilog.executors.watch import Report, Watch
    from vigilog.folder.durable import Durable
    from vigilog.language.check import Checked

GRACE = 1.0  # seconds that what looks at the clock has to end by itself


if TYPE_CHECKING:
    Strategy = str
else:
    Strategy = StrEnum("Strategy", {name: name for name in (AUTO, *STRATEGIES)})  # one that is added there is known here
BY_FIT = Strategy(AUTO)


class Deletion(StrEnum):
    auto = "auto"
    straight = "straight"
    dred = "dred"
    recompute = "recompute"


class Engine(StrEnum):
    auto = "auto"
    embedded = "embedded"
    duckdb = "duckdb"
    spark = "spark"


# What cannot be read is told as an error of the input, with its reason, not as wrong usage: `readable` is what is checked beforehand.
ProgramPath = Annotated[Path, typer.Argument(metavar="PROGRAM", help="The program's file.", show_default=False, readable=False)]
ProgramOrFolder = Annotated[
    Path, typer.Argument(metavar="PROGRAM|DIR", help="A program's file, or a data folder.", show_default=False, readable=False)
]
DataFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The data folder.", show_default=False, readable=False)]
ProgramFolderOrAddress = Annotated[
    str, typer.Argument(metavar="PROGRAM|DIR|URL", help="A program's file, a data folder, or a server's address.", show_default=False)
]
FolderOrAddress = Annotated[str, typer.Argument(metavar="DIR|URL", help="The data folder, or a server's address.", show_default=False)]
TokenOption = Annotated[
    str | None, typer.Option("--token", envvar="VIGILOG_TOKEN", metavar="TOKEN", help="For a server that wants one.", show_default=False)
]
NamedOption = Annotated[bool, typer.Option("--named", help="Rows as JSON objects, by the names of their columns.")]
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="Which executor: embedded (SQLite), duckdb, spark, or by size and kind of the input.")
]
FactsOption = Annotated[Path, typer.Option("-F", "--facts", metavar="FACTS", help="The folder with the input files.", readable=False)]
ProgramFactsOption = Annotated[
    Path | None,
    typer.Option("-F", "--facts", metavar="FACTS", help="The folder with the input files of a program.", show_default=".", readable=False),
]
GoalArgument = Annotated[
    str, typer.Argument(metavar="GOAL", help="An atom like 'closure(\"a\", y)', or several literals.", show_default=False)
]
StrategyOption = Annotated[
    Strategy,
    typer.Option(
        "--strategy",
        help="How views are kept: not at all, stored, stored with counts, only the state of what they aggregate, or as fits each.",
    ),
]
CascadeOption = Annotated[
    int, typer.Option("--cascade", min=0, metavar="N", help="So many rounds of triggers may follow from a transaction.")
]


def is_address(place: str) -> bool:
    """Whether a server is meant, and not a file or a folder."""
    return place.startswith(("http://", "https://"))


def examples(*commands: str) -> str:
    """The end of a command's help, one example a line."""
    return "\n".join(["\b", "Example:" if len(commands) == 1 else "Examples:", *(f"  {command}" for command in commands)])


def checked(path: Path, facts: Path | None = None) -> Checked:
    """A program's file, checked; its warnings are told. Its domains are in the facts folder, or beside it."""
    from vigilog.language.calls import with_places
    from vigilog.language.check import check
    from vigilog.language.parser import read_program

    verdict = check(with_places(read_program(path), facts or Path(), path.parent))
    for warning in verdict.warnings:
        print(warning.render(verdict.program.texts[warning.span.file]), file=sys.stderr)
    return verdict


def warn(db: Durable) -> None:
    """Says what is doubtful in a definition."""
    for warning in db.warnings:
        print(warning.render(db.program.texts.get(warning.span.file, "")), file=sys.stderr)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C as an error like others, before the command line's framework sees it."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped("nothing was written", "interrupted") from None


@contextmanager
def bounded(watch: Watch) -> Iterator[None]:
    """Ends, soon after the time is over, also what looks at no clock, like a single `match`: an alarm stops it as Ctrl-C would."""
    if watch.timeout is None or not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, watch.timeout + GRACE)
    try:
        yield
    except KeyboardInterrupt:
        raise watch.timed_out() if watch.expired else KeyboardInterrupt from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def lines_of(changes: str) -> Iterator[Iterable[str | bytes]]:
    """Lines as bytes, so that one that is no text is refused like others."""
    if changes == "-":
        yield getattr(sys.stdin, "buffer", sys.stdin)
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(Path(changes).open("rb"))
        except OSError as reason:
            raise DataError(f"{changes}: cannot be read: {reason.strerror}", "unreadable") from None
        yield file


def print_rows(types: tuple[Type, ...], rows: Collection[Row], shown: Progress, columns: Sequence[str] | None = None) -> None:
    """Rows, tab-separated and sorted; the one row without columns is `true`. With the names of columns, each is an object of JSON."""
    from vigilog.core.values import row_text, sorted_rows
    from vigilog.executors.watch import Watch

    watch = Watch(report=shown.report)
    watch.begin("sorting", len(rows))
    ordered: Iterable[Row] = sorted_rows(rows)
    if sys.stdout.isatty():
        shown.rest()  # the rows themselves show how far it is
    else:
        watch.begin("printing", len(rows))
        ordered = watch.counted(ordered, len(rows))
    if columns is not None:
        convert = [type_.to_json for type_ in types]
        for row in ordered:
            print(to_line({name: each(cell) for name, each, cell in zip(columns, convert, row, strict=True)}))
        return
    for row in ordered:
        print("\t".join(row_text(types, row)) if row else "true")


@contextmanager
def told_refusal() -> Iterator[None]:
    """What would refuse a transaction is an answer, too: it is printed with all its members, beside the message on standard error."""
    try:
        yield
    except Refused as refused:
        print(to_line({"error": refused.json()}), flush=True)
        raise


def to_line(answer: dict[str, Any]) -> str:
    """An answer as one line of JSON, for readers that take other characters for the end of a line, too."""
    return json.dumps(answer, ensure_ascii=False).translate(_ENDS_OF_LINES)


_ENDS_OF_LINES = {ord(character): f"\\u{ord(character):04x}" for character in "\x7f\x85\u2028\u2029"}


def is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # its name is too long, or not one at all
        return False


def opened(path: Path, facts: Path | None, strategy: str, report: Report | None = None) -> Database:
    """A program with its facts, or a data folder, which remembers how its views are kept."""
    from vigilog.folder.opening import open_program

    if not is_folder(path):
        return open_program(checked(path, facts).program, facts or Path(), strategy=strategy, report=report)
    if facts is not None:
        raise UsageError(f"{path} is a data folder, which has its data; -F goes with a program")
    return open_program(data=path, report=report)


def pairs(given: list[str] | None, option: str) -> dict[str, str]:
    parts = [part.partition("=") for part in given or ()]
    wrong = [key for key, sign, _ in parts if not sign or not key]
    if wrong:
        raise UsageError(f"{option} {wrong[0]}: it must be like key=value")
    return {key: value for key, _, value in parts}
