"""`vigilog`: the commands on a data folder."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vigilog.cli import remote
from vigilog.cli.arguments import (
    CascadeOption,
    DataFolder,
    FolderOrAddress,
    NamedOption,
    ProgramPath,
    Strategy,
    TokenOption,
    checked,
    examples,
    interruptible,
    is_address,
    lines_of,
    pairs,
    print_rows,
    to_line,
    warn,
)
from vigilog.cli.progress import progress
from vigilog.conditions import MOST_ROUNDS
from vigilog.core.errors import UsageError, counted

if TYPE_CHECKING:
    from vigilog.executors.watch import Report
    from vigilog.folder.durable import Durable

app = typer.Typer()

RelationArgument = Annotated[str, typer.Argument(metavar="RELATION", help="A base relation.", show_default=False)]


@app.command(epilog=examples("vigilog init graph.dl --data ./data -F facts", "vigilog init graph.dl --data ./data --define"))
def init(
    program: ProgramPath,
    data: Annotated[
        Path, typer.Option("--data", metavar="DIR", help="The data folder; it is made if it is not there.", show_default=False)
    ],
    facts: Annotated[
        Path | None,
        typer.Option(
            "-F", "--facts", metavar="FACTS", help="The folder with the input files to begin with.", show_default="none: it begins empty"
        ),
    ] = None,
    strategy: Annotated[Strategy | None, typer.Option("--strategy", help="How views are kept.", show_default="auto")] = None,
    define: Annotated[bool, typer.Option("--define", help="Change the definitions of a folder that has another program.")] = False,
    warehouse: Annotated[
        str | None, typer.Option(metavar="PLACE", help="Where Spark keeps what is large.", show_default="below the data folder")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="MIB|SHARE",
            help="What base relations in the file together may take, smallest first; others are on Spark.",
            show_default="25% of the machine's memory",
        ),
    ] = None,
    retain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=NUMBER",
            help="What is retained of log and outbox: days=…, transactions=…, bytes=…",
            show_default="transactions=1000000",
        ),
    ] = None,
) -> None:
    """Makes a data folder for a program. If it has another program already, shows what would change; --define changes it."""
    from vigilog.cli.status import residency
    from vigilog.folder.lines import definition_json
    from vigilog.folder.opening import open_program
    from vigilog.store.file import NAME

    given = checked(program).program
    new = not (data / NAME).exists()
    with interruptible(), progress() as shown:
        db = open_program(
            given,
            facts,
            data=data,
            strategy=strategy,
            define=define,
            retain={key: _number(key, value) for key, value in pairs(retain, "--retain").items()} or None,
            warehouse=warehouse,
            memory=int(memory) * 2**20 if memory and memory.isdecimal() else memory,
            report=shown.report,
        )
    with db:
        warn(db)
        if db.redefined:
            print(db.redefined)
            print(to_line(definition_json(db, db.redefinition)))
        print(f"{data}: {counted(len(db.program.relations), 'relation')} and {counted(len(db.program.rules), 'rule')}, transaction {db.tx}")
        if db.large:
            print(residency(db.status()))
        if new and facts is None and db.program.directed("input"):
            print("it begins empty: fill it with vigilog load or tell, or make it with -F FACTS", file=sys.stderr)


@app.command(
    epilog=examples(
        "vigilog load ./data edge edges.parquet",
        "vigilog load ./data edge edges.csv --sync --option delimiter=';'",
        "vigilog load ./data stock sold-out.csv --delete-key",
    )
)
def load(
    data: DataFolder,
    relation: RelationArgument,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A file, folder, address or table.", show_default=False)],
    sync: Annotated[
        bool, typer.Option("--sync", help="Make the relation equal to the source, in one transaction of the differences.")
    ] = False,
    upsert: Annotated[bool, typer.Option("--upsert", help="Let rows take the place of those with their key.")] = False,
    delete_key: Annotated[
        bool, typer.Option("--delete-key", help="Delete the rows with these keys: the source has the columns of the key.")
    ] = False,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Do with each row what it says in this column: insert, delete, upsert, delete_key.", show_default=False
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option as `.input` has them, like IO=json.", show_default=False),
    ] = None,
) -> None:
    """Adds the rows of a source to a base relation, or changes it by them in another way, in one transaction."""
    options = pairs(option, "--option")
    if sum([sync, upsert, delete_key, op is not None]) > 1:
        raise UsageError("--sync, --upsert, --delete-key and --op: it is one of them")
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        before = db.tx
        if sync:
            outcome = db.sync(relation, source, **options)
        else:
            outcome = db.load(relation, source, upsert=upsert, delete_key=delete_key, op=op, **options)
        shown.rest()
        changed = counted(db.book.changed(outcome.tx), "row") if outcome.tx > before else "no row"
        print(f"transaction {outcome.tx}: {changed} of {relation} changed")


@app.command(
    epilog=examples("""vigilog tell ./data '{"insert": {"edge": [["a", "b"]]}}'""", "vigilog tell http://127.0.0.1:8080 - < changes.jsonl")
)
def tell(
    data: FolderOrAddress,
    transaction: Annotated[
        str, typer.Argument(metavar="TRANSACTION", help="A line as `watch` reads it; - reads such lines from standard input.")
    ] = "-",
    token: TokenOption = None,
    cascade: CascadeOption = MOST_ROUNDS,
) -> None:
    """Applies transactions; prints for each, once it is durable, its number and what it changed in the views (of a server, how many rows), as one JSON line."""
    from vigilog.folder import lines as transactions

    refused = False
    given = lines_of(transaction) if transaction == "-" else nullcontext([transaction])
    if is_address(data):
        if cascade != MOST_ROUNDS:
            raise UsageError("a server has its own --cascade: give it to vigilog serve")
        with given as lines:
            refused = not remote.tell(data, token, lines)
    else:
        with progress() as shown, _opened(Path(data), shown.report, cascade) as db, given as lines:
            for answer in transactions.tell(db, shown.idle(lines)):
                shown.rest()
                print(to_line(answer), flush=True)
                refused = refused or "error" in answer
    if refused:
        raise typer.Exit(1)


@app.command(epilog=examples("vigilog view ./data closure", "vigilog view ./data closure --at 17"))
def view(
    data: DataFolder,
    name: Annotated[str, typer.Argument(metavar="VIEW", help="A view or a base relation.", show_default=False)],
    at: Annotated[int | None, typer.Option("--at", min=0, metavar="N", help="As of a transaction.", show_default="now")] = None,
    nested: Annotated[bool, typer.Option("--nested", help="The objects of a view frame, a JSON line each.")] = False,
    named: NamedOption = False,
) -> None:
    """Prints all rows of a view, tab-separated and sorted."""
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        if nested:
            _, objects = db.nested_at(name, at)
            shown.rest()
            for each in objects:
                print(to_line(each))
            return
        rows = db.view(name, at)
        declaration = db.program.relations[name]
        print_rows(declaration.types, rows, shown, declaration.columns if named else None)


@app.command(epilog=examples("vigilog log ./data --since 17"))
def log(
    data: DataFolder,
    since: Annotated[
        int | None,
        typer.Option("--since", min=0, metavar="N", help="Only what came after a transaction.", show_default="all that is retained"),
    ] = None,
) -> None:
    """Prints the transactions, one JSON line each: number, time, kind, and what changed in base relations and in views."""
    from vigilog.folder.lines import logged

    with _opened(data) as db:
        for entry in logged(db, since):
            print(to_line(entry))


@app.command(epilog=examples("vigilog define ./data more.dl"))
def define(
    data: DataFolder,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Declarations, directives and rules.", show_default=False)],
) -> None:
    """Adds relations and rules to a data folder's program, or replaces those it has rules for; prints what views gain and lose by that."""
    from vigilog.folder.lines import definition_json
    from vigilog.language.parser import read_text

    text = read_text(file)
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        changes = db.define(text, str(file))
        shown.rest()
        print(to_line(definition_json(db, changes)))
        warn(db)


@app.command(epilog=examples("vigilog drop ./data closure"))
def drop(
    data: DataFolder,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A relation that no other is derived from.", show_default=False)],
) -> None:
    """Removes a relation with its rows or rules from a data folder's program."""
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        db.drop(name)
        shown.rest()
        print(f"transaction {db.tx}: {name} is dropped")


@app.command(epilog=examples("vigilog compact ./data", "vigilog compact ./data edge"))
def compact(
    data: DataFolder,
    relations: Annotated[
        list[str] | None, typer.Argument(metavar="RELATION", help="Base relations; by default all.", show_default=False)
    ] = None,
) -> None:
    """Writes new Parquet snapshots of base relations, by Spark, as of now."""
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        written = db.compact(relations or None)
    for name, rows in written.items():
        print(f"{name}\t{rows}")


@app.command(epilog=examples("vigilog verify ./data", "vigilog verify ./data --by spark"))
def verify(
    data: DataFolder,
    by: Annotated[
        str, typer.Option("--by", metavar="WAY", help="How to compute anew: reference, embedded (SQLite), duckdb, spark, or by size.")
    ] = "auto",
) -> None:
    """Computes everything anew from the base and compares it with all that is kept. Exit status 1 if something differs."""
    with interruptible(), progress() as shown, _opened(data, shown.report) as db:
        verified = db.verify(by)
    for what in verified.checked:
        print(f"ok    {what}")
    for problem in verified.problems:
        print(f"WRONG {problem}")
    print(f"{counted(len(verified.checked), 'part')} as they should be, {counted(len(verified.problems), 'problem')} (by {verified.by})")
    if not verified.fine:
        raise typer.Exit(1)


@app.command(epilog=examples("vigilog status ./data"))
def status(data: DataFolder, as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False) -> None:
    """Shows what a data folder holds, where, and how it is kept."""
    from vigilog.cli.status import status_text

    with _opened(data) as db:
        state = db.status()
    print(json.dumps(state.json(), ensure_ascii=False) if as_json else status_text(state))


@app.command(epilog=examples("vigilog refresh ./data phones", "vigilog refresh ./data phones faces"))
def refresh(
    data: DataFolder,
    domain: Annotated[list[str], typer.Argument(metavar="DOMAIN", help="Domains to ask, in one transaction.", show_default=False)],
) -> None:
    """Asks sources anew: what is different now in answers that are remembered changes the views."""
    from vigilog.engine.watch import delta_json

    with _opened(data) as db:
        outcome = db.take({"refresh": domain})  # type: ignore[dict-item]  # it names no relations
        views = {name: delta_json(db.program, name, delta) for name, delta in outcome.deltas.items()}
        print(to_line({"tx": outcome.tx, "views": views}))


@app.command(epilog=examples("vigilog overrides ./data"))
def overrides(data: DataFolder) -> None:
    """Lists the updates of views that were not withdrawn, one a line: by its number one is withdrawn ({"withdraw": [number]})."""
    with _opened(data) as db:
        for update in db.overrides():
            print(to_line(update))


@app.command(epilog=examples("vigilog backup ./data ./backup-monday"))
def backup(
    data: DataFolder,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A new folder.", show_default=False)],
) -> None:
    """Copies a data folder as it is now, while others may go on with it."""
    from vigilog.folder import backup as copies

    with interruptible(), progress() as shown:
        last = copies.backup(data, target, shown.report)
    print(f"{target}: a copy of {data} as of transaction {last}")


@app.command(epilog=examples("vigilog restore ./backup-monday ./data"))
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `backup` made.", show_default=False)],
    data: Annotated[Path, typer.Argument(metavar="DIR", help="A new data folder.", show_default=False)],
) -> None:
    """Makes a data folder from a backup. It begins a new history."""
    from vigilog.folder import backup as copies

    with interruptible(), progress() as shown:
        history = copies.restore(source, data, shown.report)
    print(f"{data}: restored from {source}, history {history}")


def _opened(data: Path, report: Report | None = None, cascade: int = MOST_ROUNDS) -> Durable:
    from vigilog.folder.opening import open_program

    return open_program(data=data, report=report, cascade=cascade)


def _number(key: str, value: str) -> float:
    if key not in ("days", "transactions", "bytes"):
        raise UsageError(f"--retain {key}: there are days, transactions and bytes")
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--retain {key}={value}: {value} is no number") from None
