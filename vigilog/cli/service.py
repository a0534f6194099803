"""`vigilog`: the server and its tokens."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vigilog.cli.arguments import CascadeOption, ProgramFactsOption, Strategy, checked, examples, interruptible, pairs, warn
from vigilog.cli.progress import progress
from vigilog.conditions import MOST_ROUNDS
from vigilog.core.errors import UsageError

if TYPE_CHECKING:
    from vigilog.service.limits import Limits

app = typer.Typer()


@app.command(
    epilog=examples(
        "vigilog serve graph.dl --data ./data",
        "vigilog serve --data ./data --port 9000",
        "vigilog serve --data ./data --host 0.0.0.0 --tokens tokens.json \\\n      --certificate host.pem --key host.key",
    )
)
def serve(
    data: Annotated[
        Path,
        typer.Option("--data", metavar="DIR", help="The data folder; with a program, it is made if it is not there.", show_default=False),
    ],
    program: Annotated[
        Path | None, typer.Argument(metavar="[PROGRAM]", help="The program; left out, the one that the folder has.", show_default=False)
    ] = None,
    facts: ProgramFactsOption = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other than on this machine only with --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Who may do what (see `vigilog token`).", show_default="everybody, on this machine")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="A TLS certificate, PEM.", show_default="none")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.", show_default="none")] = None,
    origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Pages from there may call the server, too.", show_default="none")
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option(metavar="NAME=NUMBER", help="A limit of docs/service.md.", show_default="those there")
    ] = None,
    strategy: Annotated[
        Strategy | None, typer.Option("--strategy", help="How views of a new folder are kept.", show_default="auto")
    ] = None,
    define: Annotated[bool, typer.Option("--define", help="Change the definitions of a folder that has another program.")] = False,
    python: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE", help="Definitions may have aggregates by classes of this module.", show_default="those of the program"
        ),
    ] = None,
    alerts: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what alerts report into a file, a JSON line each.", show_default="none")
    ] = None,
    cascade: CascadeOption = MOST_ROUNDS,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Start Spark in the background, so that it is there when it is needed.")
    ] = True,
) -> None:
    """Serves a data folder: transactions, questions, and subscriptions that tell every client what changed in its views."""
    from vigilog.core.extras import SERVER

    SERVER.need()
    from vigilog.folder.opening import open_program
    from vigilog.language.classes import seal
    from vigilog.service.server import Settings, leave, serve

    settings = Settings(host, port, tokens, certificate, key, frozenset(origin or ()), spark, _limits(pairs(limit, "--limit")))
    with interruptible(), progress() as shown:
        db = open_program(
            None if program is None else checked(program).program,
            facts,
            data=data,
            strategy=strategy,
            define=define,
            report=shown.report,
            cascade=cascade,
        )
    seal({*(python or ())})
    with db:
        warn(db)
        if alerts is not None:
            db.sink("alert:*", "file", str(alerts), name="--alerts")
        serve(db, settings, lambda address: print(f"Serving {data} at {address} (transaction {db.tx}). Ctrl-C stops.", flush=True))
    leave()


def _limits(given: dict[str, str]) -> Limits:
    from vigilog.service.limits import Limits

    types = {field.name: field.type for field in dataclasses.fields(Limits)}
    values: dict[str, float] = {}
    for name, text in given.items():
        if name not in types:
            raise UsageError(f"--limit {name}: there are {', '.join(types)}")
        try:
            values[name] = int(text) if types[name] == "int" else float(text)
        except ValueError:
            raise UsageError(f"--limit {name}={text}: {text} is no {'integer' if types[name] == 'int' else 'number'}") from None
        if not 0 < values[name] < float("inf"):
            raise UsageError(f"--limit {name}={text}: a limit is above 0")
    return Limits(**values)  # type: ignore[arg-type]  # each is of its field's type


@app.command(
    epilog=examples(
        "vigilog token tokens.json shop --read closure --write edge", "vigilog token tokens.json admin --read '*' --write '*' --define"
    )
)
def token(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of tokens; it is made if it is not there.", show_default=False)],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whom the token is for.", show_default=False)],
    read: Annotated[
        list[str] | None, typer.Option(metavar="VIEW", help="A view or relation that it may read; * is all.", show_default="none")
    ] = None,
    write: Annotated[
        list[str] | None, typer.Option(metavar="RELATION", help="A base relation that it may write; * is all.", show_default="none")
    ] = None,
    define: Annotated[bool, typer.Option("--define", help="It may change definitions, load files and see the status.")] = False,
    domains: Annotated[bool, typer.Option("--domains", help="Its definitions may state domains, of any kind but python.")] = False,
) -> None:
    """Makes a token for a server: adds its hash and rights to a file, and prints it. It is kept nowhere else."""
    from vigilog.service.access import add_token

    print(add_token(file, name, read or (), write or (), define=define, domains=domains))
