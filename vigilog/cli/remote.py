"""`vigilog`: the commands that speak to a server, or do the same with what this process opens."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vigilog.cli.arguments import (
    FolderOrAddress,
    NamedOption,
    ProgramFactsOption,
    ProgramFolderOrAddress,
    TokenOption,
    examples,
    is_address,
    opened,
    pairs,
    print_rows,
    to_line,
    told_refusal,
)
from vigilog.cli.progress import Progress, progress
from vigilog.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from vigilog.client import Client, Columns, Event
    from vigilog.client.synchronous import Changes
    from vigilog.core.proofs import Proof
    from vigilog.core.whynot import WhyNot

app = typer.Typer()


def connect(url: str, token: str | None) -> Client:
    """A client; what it needs is loaded only now, for most commands do without."""
    from vigilog import client

    return client.connect(url, token, tool="vigilog")


class Precision(StrEnum):
    rows = "rows"
    counts = "counts"
    signal = "signal"


@app.command(
    epilog=examples(
        "vigilog subscribe http://127.0.0.1:8080 closure --bind x=a",
        "vigilog subscribe http://127.0.0.1:8080 closure degree --every 1 --coalesce",
        "vigilog subscribe ./data closure --from 17",
        "vigilog subscribe http://127.0.0.1:8080 shortage --alert --name pager",
    )
)
def subscribe(
    place: ProgramFolderOrAddress,
    view: Annotated[list[str], typer.Argument(metavar="VIEW", help="A view, several that change together, or a goal.", show_default=False)],
    bind: Annotated[
        list[str] | None, typer.Option("--bind", metavar="COLUMN=VALUE", help="Only rows with this value.", show_default=False)
    ] = None,
    since: Annotated[
        int | None, typer.Option("--from", min=0, metavar="N", help="What came after a transaction.", show_default="a first answer")
    ] = None,
    db: Annotated[str | None, typer.Option("--db", metavar="ID", help="The history that --from belongs to.", show_default=False)] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Go on where this name has left off; what was printed is acknowledged.", show_default=False),
    ] = None,
    every: Annotated[float | None, typer.Option(metavar="SECONDS", help="At most so often.", show_default="at once")] = None,
    changes: Annotated[
        int | None, typer.Option(metavar="K", help="Wait for so many changes, or until --within.", show_default="at once")
    ] = None,
    within: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long to wait for --changes.", show_default=False)] = None,
    coalesce: Annotated[bool, typer.Option("--coalesce", help="One message for the net effect of the interval.")] = False,
    precision: Annotated[Precision, typer.Option(help="Rows, numbers of rows, or only that something changed.")] = Precision.rows,
    max_staleness: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Say so if changes come later than that.", show_default=False)
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Only the first answer.")] = False,
    alert: Annotated[bool, typer.Option("--alert", help="VIEW is an alert of a server: the rows that hold, then each report.")] = False,
    as_json: Annotated[bool, typer.Option("--json/--text", help="A JSON line a message, or a line a row.")] = True,
    named: NamedOption = False,
    facts: ProgramFactsOption = None,
    token: TokenOption = None,
) -> None:
    """Prints a view and then its changes, one JSON line a message, until Ctrl-C.

    Of a server, over lost connections; of a data folder that this process opens, what its streams bring.
    """
    quality: dict[str, Any] = {
        "every": every,
        "changes": changes,
        "within": within,
        "coalesce": coalesce,
        "precision": precision.value,
        "max_staleness": max_staleness,
    }
    bound = pairs(bind, "--bind")
    if named and not as_json:
        raise UsageError("--named tells rows as JSON, --text does not")
    with suppress(KeyboardInterrupt):
        if is_address(place):
            if facts is not None:
                raise UsageError("a server has its data; -F goes with a program")
            if once and (since is not None or name):
                raise UsageError("--once prints a first answer, which --from and --name leave out")
            with connect(place, token) as client:
                _follow(
                    client, view, bound, alert=alert, once=once, as_json=as_json, objects=named, since=since, db=db, name=name, **quality
                )
            return
        if alert:
            raise UsageError("only a server has --alert; vigilog log shows what alerts have reported")
        if name or db or coalesce or precision is not Precision.rows or any((every, changes, within, max_staleness)) or not as_json:
            raise UsageError("only a server has --name, --db, --text and qualities of service")
        from vigilog.core.named import named_answer
        from vigilog.folder.following import subscribed

        with progress() as shown, opened(Path(place), facts, "auto", shown.report) as database:
            for answer in subscribed(database, view, bound, since, once=once):
                shown.rest()
                print(to_line(named_answer(answer, database.columns) if named else answer), flush=True)


def _follow(
    client: Client, view: list[str], bound: dict[str, str], *, alert: bool, once: bool, as_json: bool, objects: bool, **wishes: Any
) -> None:
    from vigilog.client import Alert, Change, Disconnected, Snapshot

    what = view if len(view) > 1 else view[0]
    bind: dict[str, Any] = {**client.bound(view, bound)}
    try:
        following = _followed(client, what, bind, alert=alert, **wishes)
    except DataError as error:
        if not alert or error.code != "type":
            raise
        following = _followed(client, what, {column: _value(text) for column, text in bound.items()}, alert=alert, **wishes)
    with following as changes:
        last: Event | None = None
        try:
            for event in changes.events():
                if isinstance(event, Disconnected) and not isinstance(last, Disconnected):
                    print(f"{event.reason}; trying again", file=sys.stderr)
                _print(event, changes.columns, as_json=as_json, objects=objects)
                last = event
                sys.stdout.flush()
                if once and isinstance(event, Snapshot):
                    break
        finally:  # Ctrl-C may come when a line is out and not yet acknowledged, which the next event does
            sys.stdout.flush()
            if wishes["name"] and (isinstance(last, Change | Snapshot) or (isinstance(last, Alert) and not last.left)):
                changes.ack(last.tx)


def _followed(client: Client, what: str | list[str], bind: dict[str, Any], *, alert: bool, **wishes: Any) -> Changes:
    if not alert:
        return client.subscribe(what, bind=bind, **wishes)
    if not isinstance(what, str):
        raise UsageError("one alert at a time is followed")
    return client.alerts(what, bind=bind, **wishes)


def _value(text: str) -> Any:
    """A cell of a relation that is no view, of whose columns a client knows nothing: what it looks like."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _print(event: Event, columns: Mapping[str, Columns], *, as_json: bool, objects: bool) -> None:
    from vigilog.client.lines import line, text_lines
    from vigilog.core.named import named_answer

    if not as_json:
        for text in text_lines(event, columns):
            print(text)
    elif (answer := line(event, columns)) is not None:
        print(to_line(named_answer(answer, {name: own.names for name, own in columns.items()}) if objects else answer))


def ask(url: str, token: str | None, goal: str, at: int | None, enumerated: bool = False, *, named: bool = False) -> None:
    with connect(url, token) as client:
        answer = client.ask(goal, at, enumerate=enumerated)
    if answer.columns.constrained:
        for _, conditions in answer:
            print(conditions)
        return
    print_rows(answer.columns.types, answer, Progress(), answer.columns.names if named else None)


def why(url: str, token: str | None, goal: str, depth: int) -> Proof | WhyNot | None:
    with connect(url, token) as client:
        return client.why(goal) or (client.why_not(goal, depth) if depth else None)


def what_if(url: str, token: str | None, transaction: str) -> None:
    from vigilog.client.lines import conditions_json, views_json

    with connect(url, token) as client, told_refusal():
        preview = client.what_if(transaction.encode())
    print(to_line({"views": views_json(preview.columns, preview.views), **conditions_json(preview)}))


@app.command(epilog=examples("vigilog violations stock.dl -F facts", "vigilog violations http://127.0.0.1:8080"))
def violations(place: ProgramFolderOrAddress, facts: ProgramFactsOption = None, token: TokenOption = None) -> None:
    """Lists the present violations of all constraints, one JSON line for each that has some, with why. Exit status 1 if there are any."""
    if is_address(place):
        if facts is not None:
            raise UsageError("a server has its data; -F goes with a program")
        with connect(place, token) as client:
            present = client.violations()
    else:
        with progress() as shown, opened(Path(place), facts, "auto", shown.report) as database:
            present = database.check()
    for violation in present:
        print(to_line(violation))
    if present:
        raise typer.Exit(1)


@app.command(epilog=examples("""vigilog ack ./data shortage '["nut"]'""", """vigilog ack http://127.0.0.1:8080 shortage '["nut", 3]'"""))
def ack(
    place: FolderOrAddress,
    alert: Annotated[str, typer.Argument(metavar="ALERT", help="The alert's name.", show_default=False)],
    row: Annotated[str, typer.Argument(metavar="ROW", help="A row as JSON, or the values of the alert's key.", show_default=False)],
    token: TokenOption = None,
) -> None:
    """Says that somebody has seen what an alert reports of a key: sinks are silent about that key until it ceases."""
    try:
        cells = json.loads(row)
    except ValueError as reason:
        raise DataError(f"{row} is no row as JSON: {reason}", "json") from None
    if not isinstance(cells, list):
        raise DataError('a row is a list, like ["nut", 3]', "json")
    if is_address(place):
        with connect(place, token) as client:
            client.acknowledge(alert, cells)
        return
    from vigilog.folder.opening import open_program

    with open_program(data=Path(place)) as database:
        database.ack(alert, cells)


def tell(url: str, token: str | None, lines: Iterable[str | bytes]) -> bool:
    """Whether all lines were taken."""
    from vigilog.client.lines import told

    fine = True
    with connect(url, token) as client:
        for answer in told(client, lines):
            print(to_line(answer), flush=True)
            fine = fine and "error" not in answer
    return fine
