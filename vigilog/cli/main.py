"""`vigilog`: the commands."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vigilog import __version__
from vigilog.cli import data, remote, service
from vigilog.cli.arguments import (
    BY_FIT,
    CascadeOption,
    Deletion,
    Engine,
    EngineOption,
    FactsOption,
    GoalArgument,
    NamedOption,
    ProgramFactsOption,
    ProgramFolderOrAddress,
    ProgramOrFolder,
    ProgramPath,
    StrategyOption,
    TokenOption,
    bounded,
    checked,
    examples,
    interruptible,
    is_address,
    is_folder,
    lines_of,
    opened,
    print_rows,
    to_line,
    told_refusal,
)
from vigilog.cli.progress import progress
from vigilog.conditions import MOST_ROUNDS
from vigilog.core.errors import ProgramError, UsageError, VigilogError, counted
from vigilog.explain.show import Show

if TYPE_CHECKING:
    from vigilog.core.proofs import Proof
    from vigilog.core.whynot import WhyNot
    from vigilog.engine.database import Database
    from vigilog.engine.evaluate import Finished

app = typer.Typer(
    name="vigilog",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"vigilog {__version__}")
        raise typer.Exit


@app.callback(epilog=examples("vigilog run graph.dl -F facts -D out", "vigilog run --help"))
def options(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")] = False,
) -> None:
    """Derives views from data by rules, and tells every holder of a copy exactly what changed."""


@app.command(epilog=examples("vigilog check graph.dl"))
def check(program: ProgramPath) -> None:
    """Checks a program: prints every error and warning with its place, the rule behind it and the fix."""
    from vigilog.engine.extension import extended
    from vigilog.rewriting.passes import rewrite

    definitions = checked(program).program
    extension = extended(definitions)
    for warning in extension.warnings:
        print(warning.render(definitions.texts[warning.span.file]), file=sys.stderr)
    rewrite(extension.ordinary)
    relations, rules = len(definitions.relations), len(definitions.rules)
    print(f"{program}: {counted(relations, 'relation')} and {counted(rules, 'rule')}, no errors")


@app.command(
    epilog=examples(
        "vigilog run graph.dl -F facts -D out",
        "vigilog run graph.dl -D - --engine spark --verbose",
        "vigilog run graph.dl --engine duckdb --memory 4000 --spill /data/spilled",
    )
)
def run(
    program: ProgramPath,
    facts: FactsOption = Path(),
    out: Annotated[str, typer.Option("-D", "--out", metavar="OUT", help="The folder for results; - prints them.")] = ".",
    engine: EngineOption = Engine.auto,
    max_rounds: Annotated[int | None, typer.Option(min=1, help="Stop a recursion that takes more rounds.", show_default="no bound")] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after so many seconds.", show_default="no bound")
    ] = None,
    memory: Annotated[
        int | None,
        typer.Option("--memory", min=1, metavar="MIB", help="DuckDB takes no more memory.", show_default="half of the machine's"),
    ] = None,
    spill: Annotated[
        Path | None,
        typer.Option("--spill", metavar="DIR", help="Where DuckDB puts what does not fit.", show_default="the folder for temporary files"),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say which executor ran, why, and what it cost.")] = False,
) -> None:
    """Evaluates a program: reads FACTS/<relation>.facts, writes OUT/<relation>.csv, tab-separated and sorted."""
    from vigilog.engine import evaluate
    from vigilog.executors.duckdb import settings
    from vigilog.executors.watch import Watch

    given = checked(program, facts).program
    if not given.outputs and not given.directed("printsize"):
        print(f"warning: {program} has no .output and no .printsize, so there is nothing to show", file=sys.stderr)
    settings.state(memory, spill)
    with interruptible(), progress() as shown:
        watch = Watch(max_rounds, timeout, shown.report)
        with bounded(watch):
            finished = evaluate.run(given, facts, None if out == "-" else Path(out), engine.value, watch)
    _print(finished)
    print(end="", flush=True)
    if finished.chosen.amiss:
        print(f"warning: {finished.chosen.reason}", file=sys.stderr)
    if verbose:
        stats = finished.stats
        cost = f"{stats.ms:.0f} ms, {counted(stats.rounds, 'round')}, {counted(stats.derived, 'row')} derived"
        print(f"engine: {finished.chosen.engine} ({finished.chosen.reason}); {cost}", file=sys.stderr)
    if finished.stats.undefined:
        print(
            f"warning: {counted(finished.stats.undefined, 'evaluation')} had no value (overflow, division by zero, no number, …); their literals count as false",
            file=sys.stderr,
        )


@app.command(epilog=examples("""echo '{"insert": {"edge": [["a", "b"]]}}' | vigilog watch graph.dl"""))
def watch(
    program: ProgramPath,
    facts: FactsOption = Path(),
    changes: Annotated[str, typer.Option(metavar="FILE", help="A file with one transaction a line; - reads standard input.")] = "-",
    engine: EngineOption = Engine.auto,
    strategy: StrategyOption = BY_FIT,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="First print each whole view as plus, with tx 0.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Add what each transaction cost.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Add a proof for each row that came, and a broken one for each that went.")] = False,
    nested: Annotated[bool, typer.Option("--nested", help="Add the nested objects of view frames that changed.")] = False,
    named: NamedOption = False,
    budget: Annotated[
        int | None, typer.Option(min=0, metavar="ROWS", help="Recompute rather than derive more rows on demand.", show_default="by cost")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a transaction rather than recompute.")] = False,
    deletion: Annotated[
        Deletion, typer.Option("--deletion", help="How constrained relations lose facts.", show_default="by fit")
    ] = Deletion.auto,
    cascade: CascadeOption = MOST_ROUNDS,
) -> None:
    """Reads one transaction a line, prints what each changed in the views: one JSON line for each, at once."""
    from vigilog.core.named import named_answer
    from vigilog.engine import watch as transactions
    from vigilog.folder.opening import open_program

    given, refused = checked(program, facts).program, False
    with progress() as shown:
        report = shown.report
        database = open_program(
            given,
            facts,
            strategy=strategy,
            engine=engine.value,
            budget=budget,
            strict=strict,
            report=report,
            cascade=cascade,
            deletion=deletion,
        )
        with database, lines_of(changes) as lines:
            for answer in transactions.watch(database, shown.idle(lines), snapshot=snapshot, stats=stats, why=why, nested=nested):
                shown.rest()
                print(to_line(named_answer(answer, database.columns) if named else answer), flush=True)
                refused = refused or "error" in answer
    if refused:
        raise typer.Exit(1)


@app.command(epilog=examples("""vigilog ask graph.dl -F facts 'closure("a", y)'""", "vigilog ask ./data 'edge(x, y), !edge(y, x)' --at 17"))
def ask(
    program: ProgramFolderOrAddress,
    goal: GoalArgument,
    facts: ProgramFactsOption = None,
    at: Annotated[
        int | None, typer.Option("--at", min=0, metavar="N", help="As of a transaction of a data folder.", show_default="now")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Say what the answer cost, on standard error.")] = False,
    enumerated: Annotated[bool, typer.Option("--enumerate", help="Of a constrained relation: its rows, if they have an end.")] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Whether all instances of an atom hold, like 'b(x) :- x >= 7.'; else one that does not.")
    ] = False,
    named: NamedOption = False,
    token: TokenOption = None,
) -> None:
    """Answers a goal, deriving only what it needs: an atom's rows, or the values of several literals' variables."""
    if is_address(program):
        _without(facts, stats)
        if every:
            raise UsageError("--all is for a program or a data folder")
        remote.ask(program, token, goal, at, enumerated, named=named)
        return
    from vigilog.folder.durable import Durable

    if at is not None and not is_folder(Path(program)):
        raise UsageError("--at needs a data folder or a server: a program alone has no past")
    with progress() as shown, opened(Path(program), facts, "external", shown.report) as database:
        if every:
            _ask_all(database, goal)
            return
        if enumerated and database.beside(goal) not in database.program.constrained:
            raise UsageError("--enumerate is for an atom of a constrained relation")
        past = {"at": at} if isinstance(database, Durable) else {}
        types, rows = database.ask_typed(goal, enumerated=enumerated, **past)
        columns = database.columns_of(goal) if named else None
        if columns and database.beside(goal) in database.program.constrained:
            from vigilog.engine.mediation import FACTS

            columns = ("where",) if types is FACTS else columns
        print_rows(types, rows, shown, columns if columns and len(columns) == len(types) else None)
        if stats:
            asker = database.stats
            print(f"{counted(asker.derived, 'row')} derived in {counted(asker.rounds, 'round')}", file=sys.stderr)


def _ask_all(database: Database, goal: str) -> None:
    """Whether all instances of an atom hold."""
    if database.mediation is None:
        raise UsageError("--all is for an atom of a constrained relation")
    instance = database.mediation.holds(goal)
    if isinstance(instance, tuple):
        print(f"false: ({', '.join(map(str, instance))}) does not hold")
    else:
        print("true")


@app.command(
    epilog=examples("""vigilog why graph.dl -F facts 'closure("e", "c")'""", """vigilog why ./data 'closure("c", "e")' --depth 2""")
)
def why(
    program: ProgramFolderOrAddress,
    goal: GoalArgument,
    facts: ProgramFactsOption = None,
    depth: Annotated[int, typer.Option(min=0, max=8, metavar="N", help="How many levels of rules to look at for what does not hold.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    token: TokenOption = None,
) -> None:
    """Shows a proof of an atom from base facts, with the rules' places. Of an atom with variables, the first row that holds; of one that does not hold, what each rule lacks."""
    reason: Proof | WhyNot | None
    if is_address(program):
        _without(facts)
        reason = remote.why(program, token, goal, depth)
    else:
        with progress() as shown, opened(Path(program), facts, "external", shown.report) as database:
            reason = database.why(goal) or (database.why_not(goal, depth) if depth else None)
    if as_json:
        print(json.dumps(reason.json() if reason else None, ensure_ascii=False))
    else:
        print(reason.text() if reason else f"{goal.strip()} does not hold")


@app.command("what-if", epilog=examples("""vigilog what-if graph.dl -F facts '{"insert": {"edge": [["g", "a"]]}}'"""))
def what_if(
    program: ProgramFolderOrAddress,
    transaction: Annotated[
        str, typer.Argument(metavar="TRANSACTION", help="A line as `watch` reads it; - reads standard input.", show_default=False)
    ],
    facts: ProgramFactsOption = None,
    strategy: StrategyOption = BY_FIT,
    token: TokenOption = None,
) -> None:
    """Tells what a transaction would change in the views; nothing is applied."""
    if is_address(program):
        _without(facts)
        remote.what_if(program, token, sys.stdin.read() if transaction == "-" else transaction)
        return
    from vigilog.engine.transaction import parse_transaction
    from vigilog.engine.watch import outcome_json

    given = parse_transaction(sys.stdin.read() if transaction == "-" else transaction)
    with progress() as shown, opened(Path(program), facts, strategy, shown.report) as database:
        with told_refusal():
            outcome = database.take(given, keep=False)
        shown.rest()
        print(to_line(outcome_json(database.program, outcome)))


@app.command(
    epilog=examples(
        "vigilog explain graph.dl --show maintenance",
        "vigilog explain graph.dl --show sql --view closure",
        "vigilog explain ./data --show strategy",
    )
)
def explain(
    program: ProgramOrFolder,
    show: Annotated[
        Show,
        typer.Option(
            metavar="WHAT",
            help=f"One of {', '.join(Show)}: the plain rules; their strata; maintenance as it is run; the paper's form of it, for stored views and, by rederivation, for external ones; "
            "queries for each pattern of known columns; the strategy of each view and why; SQL; how the objects of view frames are nested; the atoms of constrained relations with their supports; what is done with the changes of views.",
        ),
    ] = Show.rules,
    view: Annotated[str | None, typer.Option(metavar="V", help="Only what this relation needs.", show_default="everything")] = None,
    engine: EngineOption = Engine.embedded,
    strategy: StrategyOption = BY_FIT,
) -> None:
    """Shows what becomes of a program, as programs that parse again, or as SQL."""
    from vigilog.explain.explain import explained, supports

    if is_folder(program):
        with opened(program, None, strategy) as database:
            if show is Show.supports:
                print(supports(database))
                return
            given, strategies = database.program, database.strategies
    else:
        given, strategies = checked(program).program, None
    if view is not None and view not in given.relations:
        raise UsageError(f"there is no relation {view} in {program}")
    print(explained(given, show, view, engine.value, strategies or strategy))


class Language(StrEnum):
    python = "python"
    typescript = "typescript"


@app.command(
    epilog=examples(
        "vigilog codegen staff.dl --lang python -o staff_objects.py",
        "vigilog codegen staff.dl --lang typescript --bigint -o staff_objects.ts",
    )
)
def codegen(
    program: ProgramPath,
    lang: Annotated[Language, typer.Option("--lang", help="The language of the classes.")] = Language.python,
    out: Annotated[str, typer.Option("-o", "--out", metavar="FILE", help="The file to write; - prints.")] = "-",
    bigint: Annotated[bool, typer.Option("--bigint", help="In TypeScript integers are bigint, not number.")] = False,
) -> None:
    """Writes client classes for the view frames of a program: one for each frame and subframe, and one that keeps their objects."""
    from vigilog.codegen.python import python
    from vigilog.codegen.typescript import typescript
    from vigilog.files.writer import staged
    from vigilog.language.frames.translate import shapes

    frames = shapes(checked(program).program)
    if not frames:
        raise UsageError(f"{program} has no view frames")
    if bigint and lang is Language.python:
        raise UsageError("--bigint is about TypeScript; integers of Python are exact")
    text = python(frames, program.name) if lang is Language.python else typescript(frames, program.name, "bigint" if bigint else "number")
    if out == "-":
        print(text, end="")
        return
    with staged() as stage:
        stage.path(Path(out)).write_text(text, encoding="utf-8")


def _without(facts: Path | None, stats: bool = False) -> None:
    if facts is not None or stats:
        raise UsageError("a server has its data and its own statistics; -F and --stats go with a program or a data folder")


def _print(finished: Finished) -> None:
    for relation, size in finished.sizes:
        print(f"{relation}\t{size}")
    for relation, lines in finished.printed:
        print(f"---------------\n{relation}\n===============\n{lines}===============")


def main() -> None:
    """Runs a command. Exit status: 0 done, 1 the input was refused, 2 wrong usage, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        app()
    except UsageError as error:
        _fail(error, 2)
    except VigilogError as error:
        _fail(error, 130 if error.code == "interrupted" else 1)
    except OSError as error:  # of standard output: all other files are looked after where they are used
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            print(f"error[unwritable]: standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)


def _fail(error: VigilogError, status: int) -> None:
    print(error if isinstance(error, ProgramError) else f"error[{error.code}]: {error}", file=sys.stderr)
    sys.exit(status)


app.registered_commands += data.app.registered_commands + service.app.registered_commands + remote.app.registered_commands
for command in app.registered_commands:  # in the list of commands each has its whole first sentence; by itself a long one would be cut off
    command.short_help = re.split(r"(?<=\.)\s", (command.callback and command.callback.__doc__) or "")[0]

if __name__ == "__main__":
    main()
