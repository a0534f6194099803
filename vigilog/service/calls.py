"""The calls that change the database, or ask it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError
from vigilog.core.values import Type, sorted_rows
from vigilog.engine.step import Outcome
from vigilog.engine.subscribers import remembered
from vigilog.engine.transaction import Transaction, parse_transaction
from vigilog.engine.watch import delta_json
from vigilog.language.goal import parse_atom, parse_goal
from vigilog.planning.strategy import depends_on
from vigilog.service import models
from vigilog.service.access import Rights
from vigilog.service.context import REFUSALS, Context, answered
from vigilog.service.entrance import rights_of
from vigilog.service.slices import spelled

MOST_LEVELS = 8  # of rules are looked at to say why something does not hold


def calls(context: Context) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=REFUSALS)
    db, hub, limits = context.db, context.hub, context.limits

    @router.post("/transactions", response_model=models.Told, openapi_extra=models.TRANSACTION)
    async def transactions(
        request: Request,
        dry_run: bool = False,
        integers: Annotated[str, Query(pattern="^(number|text)$")] = "number",
        idempotency_key: Annotated[str | None, Header(max_length=200, pattern=r"^[\x21-\x7e][\x20-\x7e]*$")] = None,
    ) -> Response:
        """Applies a transaction, durably, or, as a dry run, tells what it would change and whom that would be sent to."""
        rights, began = rights_of(request), time.perf_counter()
        wish = await hub.read(_wish, await context.body(request), rights)
        if dry_run:
            outcome = await hub.write(lambda: db.take(wish, keep=False))
            return answered(_preview(outcome, rights, integers))
        key = None if idempotency_key is None else f"{rights.name}\n{idempotency_key}"
        outcome = await hub.write(lambda: db.take(wish, request=key))
        context.metrics.latency.observe(time.perf_counter() - began)
        views = _counts(outcome.deltas) if outcome.deltas or key is None else await hub.read(_noted, outcome.tx)
        return answered({"tx": outcome.tx, "views": {name: found for name, found in views.items() if _shown(name, rights)}})

    def _wish(body: bytes, rights: Rights) -> Transaction:
        wish = parse_transaction(body)
        named = [by_relation for by_relation in wish.values() if isinstance(by_relation, Mapping)]
        rights.require_write({relation for by_relation in named for relation in by_relation})
        rows = sum(len(given) for by_relation in named for given in by_relation.values() if isinstance(given, list))
        if rows > limits.rows:
            raise DataError(f"a transaction has at most {limits.rows} rows; load more from a file", "size")
        return wish

    def _shown(view: str, rights: Rights) -> bool:
        return view in db.outputs and rights.may_read(view)

    def _noted(tx: int) -> dict[str, Any]:
        """What a transaction of the past changed, if that is still known."""
        with db.reading() as state:
            said = {view: said for _, view, said in state.log.changes(tx - 1, tx)}
        return {
            view: {side: part["rows"] if isinstance(part := entry.get(side, []), dict) else len(part) for side in ("plus", "minus")}
            for view, entry in said.items()
        }

    def _preview(outcome: Outcome, rights: Rights, integers: str) -> dict[str, Any]:
        views = {
            name: _spelled(db.program.relations[name].types, delta_json(db.program, name, delta), integers)
            for name, delta in outcome.deltas.items()
            if _shown(name, rights)
        }
        told = []
        for channel, sides in hub.index.touched(hub.changes_of(outcome, db.program)).items():
            if rights.may_read(*(relation for view in channel.views for relation in db.reads_of(view))):
                shown = {
                    label: _spelled(channel.shapes[label].types, {"plus": plus, "minus": minus}, integers)
                    for label, (plus, minus) in sides.items()
                }
                told += [{"id": member.number, "name": member.spec.name, "views": shown} for member in channel.members]
        return {"tx": outcome.tx, "views": views, "subscriptions": told}

    @router.post("/ask", response_model=models.Rowset)
    async def ask(
        request: Request, question: models.Question, integers: Annotated[str, Query(pattern="^(number|text)$")] = "number"
    ) -> Response:
        """Answers a goal, deriving only what it needs, now or as of a transaction."""
        rights = rights_of(request)
        async with hub.first:
            return answered(await hub.read(_ask, question, rights, integers))

    def _ask(question: models.Question, rights: Rights, integers: str) -> dict[str, Any]:
        rights.require_read(hub.reads(question.goal))
        goal = parse_goal(db.program, question.goal)
        types = goal.declaration.types
        if question.at is None or question.at == db.tx:
            with db.reading(goal, seconds=limits.seconds, budget=limits.derived) as state:
                tx, rows = state.tx, sorted_rows(state.answers(goal))
        else:
            tx, rows = question.at, db.ask(question.goal, question.at, limits.seconds)
        columns = [{"name": name, "type": str(type_)} for name, type_ in zip(goal.columns, types, strict=True)]
        shown = [[type_.to_json(cell) for type_, cell in zip(types, row, strict=True)] for row in rows]
        return {"db": hub.history, "tx": tx, "columns": columns, "rows": spelled(types, shown, integers)}  # type: ignore[arg-type]  # lists do, too

    @router.get("/why", response_model=models.Reason)
    async def why(
        request: Request, goal: Annotated[str, Query(max_length=4_000)], depth: Annotated[int, Query(ge=0, le=MOST_LEVELS)] = 1
    ) -> Response:
        """A proof of an atom from base facts; of one that does not hold, why not, down to some levels of rules."""
        rights = rights_of(request)
        async with hub.first:
            return answered(await hub.read(_why, goal, depth, rights))

    def _why(text: str, depth: int, rights: Rights) -> dict[str, Any]:
        hub.reads(text)
        goal = parse_atom(db.program, text)
        shown = {name for name in depends_on(db.plain, goal.of_atom) | {goal.of_atom} if name in db.program.relations}
        rights.require_read(shown)  # a proof shows rows of all that the atom rests on
        with db.reading(goal, seconds=limits.seconds, budget=limits.derived) as state:
            proof = state.why(goal)
            failed = state.why_not(goal, depth) if depth and proof is None else None
            return {"tx": state.tx, "proof": proof and proof.json(), "why_not": failed and failed.json()}

    @router.get("/program", response_model=models.Text)
    async def program(request: Request) -> Response:
        """The program, as it is printed."""
        rights_of(request).require_define()
        return answered({"tx": db.tx, "text": await hub.write(db.known_program)})

    @router.post("/definitions", response_model=models.Told)
    async def define(request: Request, definition: models.Definition) -> Response:
        """Adds relations and rules, or replaces those that there are rules for; tells what views gain and lose by that."""
        rights_of(request).require_define()
        tx = await hub.write(lambda: _changed(db.define, definition.text, definition.name))
        return answered({"tx": tx, "views": await hub.read(_noted, tx)})

    @router.delete("/definitions/{name}", response_model=models.Told)
    async def drop(request: Request, name: str) -> Response:
        """Removes a relation with its rows or rules."""
        rights_of(request).require_define()
        tx = await hub.write(lambda: _changed(db.drop, name))
        return answered({"tx": tx, "views": await hub.read(_noted, tx)})

    def _changed(change: Callable[..., object], *what: str) -> int:
        with db.lock:
            change(*what)
            return db.tx

    @router.post("/loads", response_model=models.Told)
    async def load(request: Request, given: models.Load) -> Response:
        """Adds the rows of a file, folder or table to a base relation, or makes them equal, in one transaction. It needs the right to change definitions, for the server reads what it is told to."""
        rights = rights_of(request)
        rights.require_define()
        rights.require_write([given.relation])
        outcome = await hub.write(_load, given)
        return answered({"tx": outcome.tx, "views": await hub.read(_noted, outcome.tx) if outcome.far else _counts(outcome.deltas)})

    def _load(given: models.Load) -> Outcome:
        if given.sync:
            return db.sync(given.relation, given.source, **given.options)
        return db.load(given.relation, given.source, upsert=given.upsert, delete_key=given.delete_key, op=given.op, **given.options)

    @router.get("/status", response_model=None)
    async def status(request: Request) -> Response:
        """What the database holds, where, and how it is kept; who follows what."""
        rights_of(request).require_define()
        found = await hub.write(db.status)
        following = [
            {
                "id": one.number,
                "name": one.spec.name,
                "token": one.rights.name,
                "views": list(one.channel.shapes),
                "tx": one.told,
                "behind": one.behind,
            }
            for one in list(hub.subscriptions.values())[:1000]
        ]
        return answered(found.json() | {"subscribers": len(hub.subscriptions), "subscriptions": following})

    @router.get("/subscriptions", response_model=models.Subscriptions)
    async def subscriptions(request: Request) -> Response:
        """The named subscriptions of the caller, and how far each has come."""
        rights = rights_of(request)
        known = await hub.read(remembered, db, rights.name)
        shown = [
            {"name": name, "spec": json.loads(found.spec), "tx": found.tx, "connected": (rights.name, name) in hub.named}
            for name, found in known.items()
        ]
        return answered({"subscriptions": shown})

    @router.delete("/subscriptions/{name}", response_model=models.Cancelled)
    async def cancel(request: Request, name: str) -> Response:
        """Ends a named subscription, and forgets its position."""
        rights = rights_of(request)
        if not await hub.forget(rights, name):
            raise DataError(f"there is no subscription {name}", "unknown-subscription")
        return answered({"cancelled": name})

    return router


def _counts(deltas: Mapping[str, Delta]) -> dict[str, Any]:
    return {name: {"plus": len(delta.plus), "minus": len(delta.minus)} for name, delta in deltas.items()}


def _spelled(types: Sequence[Type], change: Mapping[str, Any], integers: str) -> dict[str, Any]:
    """A change with its integers as text, if that is wished."""
    pairs = [dict(zip(pair, spelled(types, list(pair.values()), integers), strict=True)) for pair in change.get("modified", ())]
    return {side: spelled(types, change[side], integers) for side in ("plus", "minus")} | ({"modified": pairs} if pairs else {})
