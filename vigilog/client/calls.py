"""The calls by HTTP, each a play: which requests it makes, when it tries again, and what it makes of the answer."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, TypedDict, TypeVar
from urllib.parse import quote

import msgspec

from vigilog.client.answers import Answer, Described, Preview, Receipt
from vigilog.client.columns import fact_text, read_columns
from vigilog.client.effects import Backoff, Lost, Pause, Play, Request, Response
from vigilog.core.delta import Delta
from vigilog.core.errors import ConnectionLost, DataError, UsageError, VigilogError
from vigilog.core.proofs import Proof, read_proof
from vigilog.core.values import Value
from vigilog.core.whynot import WhyNot, read_why_not
from vigilog.protocol import calls as protocol
from vigilog.protocol.calls import NOT_NOW
from vigilog.protocol.messages import plain, read, write

S = TypeVar("S")
Facts = Mapping[str, Iterable[Any]]


def asked(request: Request, *, repeatable: bool = True) -> Play[Response]:
    """The server's answer. It is asked again while it is not there, as long as the client's patience lasts and nothing can happen twice by it."""
    backoff = Backoff()
    while True:
        try:
            response: Response = yield request
        except Lost as lost:
            if lost.sent and not repeatable:
                raise ConnectionLost(f"{lost.reason}; whether it was done is not known") from None
            if backoff.spent >= lost.patience:
                raise ConnectionLost(lost.reason) from None
            yield Pause(backoff.next())
            continue
        if response.status in NOT_NOW and backoff.spent < response.patience:
            yield Pause(max(backoff.next(), min(response.retry_after or 0.0, response.patience)))
            continue
        if response.status >= 300:
            raise refusal(response)
        return response


def refusal(response: Response) -> VigilogError:
    """What a refused call says, as the exception that it is."""
    try:
        reason = read(response.body, protocol.Refused, "refusal").error
    except DataError:
        if response.status in (401, 403):
            return DataError(f"the server refuses this token (status {response.status})", "forbidden")
        return DataError(f"the server answered with status {response.status}, and not as Vigilog does", "message")
    return reason.error()


def answer(request: Request, kind: type[S], *, repeatable: bool = True) -> Play[S]:
    """The server's answer, as what it says."""
    return read((yield from asked(request, repeatable=repeatable)).body, kind, "answer of Vigilog")


def body(content: Any) -> bytes:
    """JSON of values: dates, timestamps and decimals as text."""
    try:
        return write(content)
    except (TypeError, OverflowError, UnicodeEncodeError) as reason:
        raise DataError(f"this cannot be sent: {reason}", "value") from None


class Operations(TypedDict, total=False):
    """What a transaction does, for each relation with which rows; as `watch` reads it."""

    delete: Facts
    insert: Facts
    update: Facts
    upsert: Facts
    delete_key: Facts


Transaction = Operations | Mapping[str, Facts] | bytes  # bytes are JSON already


def _transaction(given: Transaction | None, operations: Operations) -> bytes:
    """A transaction that is given as a whole, or by its operations."""
    if given is not None and operations:
        raise UsageError("a transaction is given as a whole, or by its operations; not both")
    if isinstance(given, bytes):
        return given
    stated: Mapping[str, Any] = operations if given is None else given
    return body({name: _lists(facts) for name, facts in stated.items()})


def _lists(facts: Any) -> Any:
    """Rows may come from anything that can be gone through, as an Answer or a frame's tuples."""
    return {name: list(rows) for name, rows in facts.items()} if isinstance(facts, Mapping) else facts


def tell(transaction: Transaction | None, key: str | None, operations: Operations) -> Play[Receipt]:
    """Commits a transaction. The key makes it happen once, however often it is sent."""
    content, headers = _transaction(transaction, operations), {"Idempotency-Key": key or secrets.token_hex(16)}
    return (yield from _told(Request("POST", "/v1/transactions", body=content, headers=headers)))


def _told(request: Request, *, repeatable: bool = True) -> Play[Receipt]:
    receipt = yield from answer(request, protocol.Receipt, repeatable=repeatable)
    views = {view: (counts.plus, counts.minus) for view, counts in receipt.views.items()}
    return Receipt(receipt.tx, views, tuple(receipt.alerts), plain(receipt.triggered), tuple(receipt.warnings))


def what_if(transaction: Transaction | None, operations: Operations) -> Play[Preview]:
    content = _transaction(transaction, operations)
    columns = {view.name: view.columns for view in (yield from views())}
    preview = yield from answer(Request("POST", "/v1/transactions", (("dry_run", "true"),), content), protocol.Preview)
    deltas = {
        view: Delta(*(frozenset(columns[view].rows(rows)) for rows in (sides.plus, sides.minus))) for view, sides in preview.views.items()
    }
    subscriptions = tuple(map(msgspec.to_builtins, preview.subscriptions))
    return Preview(preview.tx, deltas, columns, subscriptions, tuple(preview.alerts), plain(preview.triggered))


def views() -> Play[list[Described]]:
    listing = yield from answer(Request("GET", "/v1/views"), protocol.ViewList)
    return [Described(view.view, read_columns(view.columns, view.key, view.constrained), view.strategy or "") for view in listing.views]


def bound(names: Iterable[str], bind: Mapping[str, str]) -> Play[dict[str, Value]]:
    """Values that are written as in a facts file, as those of the views' columns; what is none is left for the server to refuse."""
    if not bind:
        return {}
    all_columns = [view.columns for view in (yield from views()) if view.name in names]
    types = {name: type_ for columns in all_columns for name, type_ in zip(columns.names, columns.types, strict=True)}
    values: dict[str, Value] = dict(bind)
    for column, text in bind.items():
        with suppress(KeyError, ValueError):
            values[column] = types[column].parse(text)
    return values


def view(name: str, bind: Mapping[str, Value] | None = None, at: int | None = None, *, named: bool = False) -> Play[Answer]:
    return (yield from _rows(Request("GET", f"/v1/views/{_part(name)}", _chosen(bind, at)), name if named else ""))


def _chosen(bind: Mapping[str, Value] | None, at: int | None) -> tuple[tuple[str, str], ...]:
    bound = ((f"bind.{column}", fact_text(value)) for column, value in (bind or {}).items())
    return (*bound, *([("at", str(at))] if at is not None else []))


def nested(name: str, bind: Mapping[str, Value] | None = None, at: int | None = None) -> Play[list[dict[str, Any]]]:
    params = ("nested", "true"), *_chosen(bind, at)
    return (yield from answer(Request("GET", f"/v1/views/{_part(name)}", params), protocol.Objects)).objects


def ask(goal: str, at: int | None = None, *, named: bool = False, enumerate: bool = False) -> Play[Answer]:
    question = protocol.Question(goal, at, enumerate)
    return (yield from _rows(Request("POST", "/v1/ask", body=body(question)), "answer" if named else ""))


def _rows(request: Request, named: str) -> Play[Answer]:
    """An answer, of which the rows are NamedTuples, if they have a name."""
    rowset = yield from answer(request, protocol.Rowset)
    columns = read_columns(rowset.columns, (), rowset.constrained)
    rows = columns.rows(rowset.rows)
    return Answer(rowset.tx, columns, tuple(columns.named(rows, named) if named and not columns.constrained else rows), rowset.db)


def why(goal: str) -> Play[Proof | None]:
    reason = yield from answer(Request("GET", "/v1/why", (("goal", goal), ("depth", "0"))), protocol.Reason)
    return None if reason.proof is None else read_proof(reason.proof)


def why_not(goal: str, depth: int) -> Play[WhyNot | None]:
    reason = yield from answer(Request("GET", "/v1/why", (("goal", goal), ("depth", str(depth)))), protocol.Reason)
    return None if reason.why_not is None else read_why_not(reason.why_not)


def violations() -> Play[list[dict[str, Any]]]:
    """The present violations of all constraints."""
    return list((yield from answer(Request("GET", "/v1/violations"), protocol.Violations)).violations)


def acknowledge(alert: str, row: Iterable[Value]) -> Play[None]:
    """Somebody has seen what an alert says of a row."""
    yield from asked(Request("POST", f"/v1/alerts/{_part(alert)}/ack", body=body(protocol.Acknowledged(tuple(row)))))


def program() -> Play[str]:
    return (yield from answer(Request("GET", "/v1/program"), protocol.Text)).text


def define(text: str, name: str = "definition") -> Play[Receipt]:
    return (yield from _told(Request("POST", "/v1/definitions", body=body(protocol.Definition(text, name))), repeatable=False))


def drop(name: str) -> Play[Receipt]:
    return (yield from _told(Request("DELETE", f"/v1/definitions/{_part(name)}"), repeatable=False))


def load(given: protocol.Load) -> Play[Receipt]:
    return (yield from _told(Request("POST", "/v1/loads", body=body(given)), repeatable=False))


def status() -> Play[dict[str, Any]]:
    return (yield from answer(Request("GET", "/v1/status"), dict[str, Any]))


def subscriptions() -> Play[list[dict[str, Any]]]:
    listing = yield from answer(Request("GET", "/v1/subscriptions"), protocol.Subscriptions)
    return list(map(msgspec.to_builtins, listing.subscriptions))


def cancel(name: str) -> Play[None]:
    """Forgets a named subscription; one that is forgotten already is."""
    try:
        yield from asked(Request("DELETE", f"/v1/subscriptions/{_part(name)}"))
    except DataError as error:
        if error.code != "unknown-subscription":
            raise


def _part(name: str) -> str:
    return quote(name, safe="")
