"""The calls that change the database, or ask it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from msgspec import UNSET
from starlette.requests import Request
from starlette.responses import Response

from vigilog.core.delta import Delta
from vigilog.core.errors import DataError, ProgramError, Refused
from vigilog.core.facts import fact_rows
from vigilog.core.named import objects
from vigilog.core.reports import Report
from vigilog.core.rows import json_rows
from vigilog.core.values import sorted_rows
from vigilog.engine.mediation import FACTS
from vigilog.engine.outcome import Outcome
from vigilog.engine.transaction import Transaction, parse_transaction
from vigilog.folder.positions import remembered
from vigilog.language.goal import parse_atom, parse_goal
from vigilog.language.parser import parse
from vigilog.protocol import calls as protocol
from vigilog.protocol.messages import Sides, columns_of
from vigilog.rewriting.maintenance.strategies.choose import depends_on
from vigilog.service.access import Forbidden, Rights
from vigilog.service.context import Context, answered
from vigilog.service.entrance import rights_of
from vigilog.service.hub import json_sides
from vigilog.service.openapi import REFUSALS, Form, Integers, answers, takes
from vigilog.service.slices import Channel, RowSides, Shape, paired
from vigilog.service.spelling import Manner, read_spelled, spelled
from vigilog.store.log import size

EXAMPLE = {"delete": {"edge": [["b", "c"]]}, "insert": {"edge": [["h", "d"]]}}

MOST_LEVELS = 8  # of rules are looked at to say why something does not hold


def calls(context: Context) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=REFUSALS)
    db, hub, limits = context.db, context.hub, context.limits

    @router.post(
        "/transactions",
        responses=answers(protocol.Receipt, protocol.Preview, protocol.NamedPreview),
        openapi_extra=takes(protocol.Transaction, EXAMPLE),
    )
    async def transactions(
        request: Request,
        dry_run: bool = False,
        integers: Integers = "number",
        rows: Form = "arrays",
        idempotency_key: Annotated[str | None, Header(max_length=200, pattern=r"^[\x21-\x7e][\x20-\x7e]*$")] = None,
    ) -> Response:
        """Applies a transaction, durably, or, as a dry run, tells what it would change and whom that would be sent to."""
        rights, began = rights_of(request), time.perf_counter()
        wish = await hub.read(_wish, await context.body(request), rights, integers)
        if dry_run:
            outcome = await hub.write(_take, wish, None, False, rights)
            return answered(_preview(outcome, rights, integers, rows))
        key = None if idempotency_key is None else f"{rights.name}\n{idempotency_key}"
        outcome = await hub.write(_take, wish, key, True, rights)
        context.metrics.latency.observe(time.perf_counter() - began)
        views = _counts(outcome.deltas) if outcome.deltas or key is None else await hub.read(_noted, outcome.tx)
        shown = {name: counts for name, counts in views.items() if _shown(name, rights)}
        return answered(protocol.Receipt(outcome.tx, shown, *_conditions(outcome, rights, integers)))

    def _take(wish: Transaction, key: str | None, keep: bool, rights: Rights) -> Outcome:
        try:
            return db.take(wish, keep=keep, request=key)
        except Refused as reason:
            raise _refused(reason, rights) from None

    def _refused(reason: Refused, rights: Rights) -> Refused:
        """What a refusal may say to somebody: no rows of what he may not read, in its text neither."""
        message, members = reason.message, _readable(reason.members, reason.conditions, rights)
        for what, template in (("constraint", "{} is violated"), ("relation", "triggers do not agree about {}")):
            if what in members and not rights.may_read(members[what]):
                message = template.format(members[what])
        return Refused(message, reason.code, members)

    def _readable(members: Mapping[str, Any], conditions: Iterable[str], rights: Rights) -> dict[str, Any]:
        """The members of a refusal, or of a violation, without rows of what somebody may not read, and without proofs that show some."""
        shown, constraint = dict(members), members.get("constraint")
        below = {name for condition in conditions for name in depends_on(db.plain, condition) if name in db.program.relations}
        if not rights.may_read(*below):
            shown.pop("why", None)
        if constraint is not None:
            if not rights.may_read(constraint):
                shown = {name: value for name, value in shown.items() if name in ("constraint", "place", "others")}
            if others := {name: rows for name, rows in shown.pop("others", {}).items() if rights.may_read(name)}:
                shown["others"] = others
        elif "relation" in shown and not rights.may_read(shown["relation"]):
            shown = {name: value for name, value in shown.items() if name not in ("row", "key")}
        return shown

    def _conditions(outcome: Outcome, rights: Rights, integers: str) -> tuple[list[dict[str, Any]], dict[str, protocol.Triggered]]:
        """What alerts say of a transaction, and what triggers did, as far as somebody may know it."""
        relations = {alert.name: alert.relation for alert in db.conditions.alerts}
        reports = [report for report in outcome.alerts if rights.may_read(relations[report.alert])]
        triggered = {name: delta for name, delta in sorted(outcome.triggered.items()) if rights.may_read(name)}

        def sides(name: str, delta: Delta) -> protocol.Triggered:
            types = db.program.relations[name].types
            return protocol.Triggered(*(spelled(types, side, integers) for side in json_sides(delta, types)))

        def spelled_report(report: Report) -> dict[str, Any]:
            types = db.program.relations[relations[report.alert]].types
            members = report.json(types)
            return members | {part: spelled(types, [members[part]], integers)[0] for part in ("row", "old") if part in members}

        return [spelled_report(report) for report in reports], {name: sides(name, delta) for name, delta in triggered.items()}

    def _wish(body: bytes, rights: Rights, integers: str) -> Transaction:
        wish = parse_transaction(body)
        named = [by_relation for by_relation in wish.values() if isinstance(by_relation, Mapping)]
        if not wish.keys().isdisjoint(("refresh", "withdraw")):
            rights.require_define()  # they name no relations
        rights.require_write({relation for by_relation in named for relation in by_relation})
        rows = sum(len(given) for by_relation in named for given in by_relation.values() if isinstance(given, list))
        if rows > limits.rows:
            raise DataError(f"a transaction has at most {limits.rows} rows; load more from a file", "size")
        return read_spelled(db.program, wish) if integers == "text" else wish

    def _shown(view: str, rights: Rights) -> bool:
        return view in db.outputs and rights.may_read(view)

    def _noted(tx: int) -> dict[str, protocol.Counts]:
        """What a transaction of the past changed, if that is still known."""
        with db.reading() as state:
            return {view: protocol.Counts(*size(entry)) for _, view, entry in state.log.changes(tx - 1, tx)}

    def _preview(outcome: Outcome, rights: Rights, integers: str, form: str) -> protocol.Preview | protocol.NamedPreview:
        def spelled_sides(shape: Shape, sides: RowSides) -> Sides:
            plus, minus = (shape.told(side, Manner(integers)) for side in sides)
            return Sides(plus, minus, UNSET if shape.constrained else paired(plus, minus, shape.key))

        relations = db.program.relations
        views = {
            name: spelled_sides(hub.shape(name), json_sides(delta, relations[name].types))
            for name, delta in outcome.deltas.items()
            if _shown(name, rights)
        }
        told: list[tuple[Channel, dict[str, Sides]]] = []
        for channel, changes in hub.index.touched(hub.changes_of(outcome, db.program, whole=True)).items():
            if not channel.reporting and rights.may_read(*(relation for view in channel.views for relation in db.reads_of(view))):
                told.append((channel, {label: spelled_sides(channel.shapes[label], sides) for label, sides in changes.items()}))
        rest = _conditions(outcome, rights, integers)
        if form == "objects":
            shown = {name: _by_name(relations[name].columns, sides) for name, sides in views.items()}
            heard = [
                protocol.NamedAddressee(
                    member.number,
                    member.spec.name,
                    {label: _by_name(channel.shapes[label].columns, sides) for label, sides in changes.items()},
                )
                for channel, changes in told
                for member in channel.members
            ]
            return protocol.NamedPreview(outcome.tx, shown, heard, *rest)
        addressees = [
            protocol.Addressee(member.number, member.spec.name, changes) for channel, changes in told for member in channel.members
        ]
        return protocol.Preview(outcome.tx, views, addressees, *rest)

    @router.get("/violations", responses=answers(protocol.Violations))
    async def violations(request: Request) -> Response:
        """The present violations of all constraints, enforced or not, with why."""
        return answered(await hub.write(_violations, rights_of(request)))

    @router.post("/alerts/{alert}/ack", responses=answers(protocol.Acknowledged), openapi_extra=takes(protocol.Acknowledged))
    async def ack(request: Request, alert: str) -> Response:
        """Somebody has seen what an alert reports of a key: sinks and callables are silent about that key until it ceases."""
        rights, seen = rights_of(request), await context.taken(request, protocol.Acknowledged)
        if alert in db.conditions.named:
            rights.require_read([db.conditions.named[alert].relation])
        await hub.write(db.ack, alert, list(seen.row))
        return answered(seen)

    def _violations(rights: Rights) -> protocol.Violations:
        with db.lock:
            own = [violation for violation in db.check() if rights.may_read(violation["constraint"])]
            readable = [_readable(violation, [violation["constraint"]], rights) for violation in own]
            return protocol.Violations(hub.history, db.tx, readable)

    @router.post("/ask", responses=answers(protocol.Rowset, protocol.NamedRowset), openapi_extra=takes(protocol.Question))
    async def ask(request: Request, integers: Integers = "number", rows: Form = "arrays") -> Response:
        """Answers a goal, deriving only what it needs, now or as of a transaction."""
        rights, question = rights_of(request), await context.taken(request, protocol.Question)
        async with hub.first:
            return answered(await hub.read(_ask, question, rights, integers, rows))

    def _ask(question: protocol.Question, rights: Rights, integers: str, form: str) -> protocol.Rowset | protocol.NamedRowset:
        rights.require_read(hub.reads(question.goal))
        if relation := db.beside(question.goal):
            return _beside(relation, question, integers)
        goal = parse_goal(db.program, question.goal)
        types = goal.declaration.types
        if question.at is None or question.at == db.tx:
            with db.reading(goal, allowance=limits.answer) as state:
                tx, rows = state.tx, sorted_rows(state.answers(goal))
        else:
            tx, rows = question.at, db.ask(question.goal, question.at, limits.answer)
        columns, shown = columns_of(goal.columns, types), spelled(types, json_rows(types, rows), integers)
        if form == "objects":
            return protocol.NamedRowset(hub.history, tx, columns, objects(goal.columns, shown))
        return protocol.Rowset(hub.history, tx, columns, shown)

    def _beside(relation: str, question: protocol.Question, integers: str) -> protocol.Rowset:
        """What is asked of constrained relations, and of deferred ones: rows, or facts."""
        types, rows = db.ask_typed(question.goal, question.at, limits.answer, enumerated=question.enumerate)
        declaration = db.program.relations.get(relation)
        tx = db.tx if question.at is None else question.at
        if declaration is None:
            names = db.compiled.late.relations[relation].columns if db.compiled.late is not None else ()
            return protocol.Rowset(hub.history, tx, columns_of(names, types), spelled(types, json_rows(types, rows), integers))
        columns = columns_of(declaration.args, declaration.of)
        if types is not FACTS:
            return protocol.Rowset(hub.history, tx, columns, spelled(types, json_rows(types, rows), integers))
        return protocol.Rowset(hub.history, tx, columns, fact_rows(declaration.args, rows), True)

    @router.get("/why", responses=answers(protocol.Reason))
    async def why(
        request: Request, goal: Annotated[str, Query(max_length=4_000)], depth: Annotated[int, Query(ge=0, le=MOST_LEVELS)] = 1
    ) -> Response:
        """A proof of an atom from base facts; of one that does not hold, why not, down to some levels of rules."""
        rights = rights_of(request)
        async with hub.first:
            return answered(await hub.read(_why, goal, depth, rights))

    def _why(text: str, depth: int, rights: Rights) -> protocol.Reason:
        hub.reads(text)
        if relation := db.beside(text):
            raise DataError(f"{relation} has no rows in tables, so no proofs; its supports: vigilog explain --show supports", "unsupported")
        goal = parse_atom(db.program, text)
        shown = {name for name in depends_on(db.plain, goal.of_atom) | {goal.of_atom} if name in db.program.relations}
        rights.require_read(shown)  # a proof shows rows of all that the atom rests on
        with db.reading(goal, allowance=limits.answer) as state:
            proof = state.why(goal)
            failed = state.why_not(goal, depth) if depth and proof is None else None
            return protocol.Reason(state.tx, proof.json() if proof else None, failed.json() if failed else None)

    @router.get("/program", responses=answers(protocol.Text))
    async def program(request: Request) -> Response:
        """The program, as it is printed."""
        rights_of(request).require_define()
        return answered(protocol.Text(db.tx, await hub.write(db.known_program)))

    @router.post("/definitions", responses=answers(protocol.Receipt), openapi_extra=takes(protocol.Definition))
    async def define(request: Request) -> Response:
        """Adds relations and rules, or replaces those that there are rules for; tells what views gain and lose by that."""
        rights = rights_of(request)
        rights.require_define()
        definition = await context.taken(request, protocol.Definition)
        _check_domains(definition.text, rights)
        return await _redefined(db.define, definition.text, definition.name)

    @router.delete("/definitions/{name}", responses=answers(protocol.Receipt))
    async def drop(request: Request, name: str) -> Response:
        """Removes a relation with its rows or rules."""
        rights_of(request).require_define()
        return await _redefined(db.drop, name)

    async def _redefined(change: Callable[..., object], *what: str) -> Response:
        def changed() -> tuple[int, list[str]]:
            with db.lock:
                change(*what)
                return db.tx, [warning.message for warning in db.warnings]

        tx, warnings = await hub.write(changed)
        return answered(protocol.Receipt(tx, await hub.read(_noted, tx), warnings=warnings))

    @router.post("/loads", responses=answers(protocol.Receipt), openapi_extra=takes(protocol.Load))
    async def load(request: Request) -> Response:
        """Adds the rows of a file, folder or table to a base relation, or makes them equal, in one transaction. It needs the right to change definitions, for the server reads what it is told to."""
        rights = rights_of(request)
        rights.require_define()
        given = await context.taken(request, protocol.Load)
        rights.require_write([given.relation])
        outcome = await hub.write(_load, given)
        return answered(protocol.Receipt(outcome.tx, await hub.read(_noted, outcome.tx) if outcome.far else _counts(outcome.deltas)))

    def _load(given: protocol.Load) -> Outcome:
        if given.sync:
            return db.sync(given.relation, given.source, **given.options)
        return db.load(given.relation, given.source, upsert=given.upsert, delete_key=given.delete_key, op=given.op, **given.options)

    @router.post("/refresh", responses=answers(protocol.Receipt), openapi_extra=takes(protocol.Refresh))
    async def refresh(request: Request) -> Response:
        """Asks domains anew, in a transaction: what is different now in answers that are remembered is its change."""
        rights_of(request).require_define()
        given = await context.taken(request, protocol.Refresh)
        wish = {"refresh": given.domains}
        outcome = await hub.write(lambda: db.take(wish))  # type: ignore[arg-type]  # it names no relations
        return answered(protocol.Receipt(outcome.tx, _counts(outcome.deltas)))

    @router.get("/overrides", responses=answers(protocol.Overrides))
    async def overrides(request: Request) -> Response:
        """The updates of views that were not withdrawn."""
        rights_of(request).require_define()
        tx, updates = await hub.write(lambda: (db.tx, db.overrides()))
        return answered(protocol.Overrides(tx, updates))

    @router.get("/status", response_model=None)
    async def status(request: Request) -> Response:
        """What the database holds, where, and how it is kept; who follows what."""
        rights_of(request).require_define()
        state = await hub.write(db.status)
        following = [
            {
                "id": one.number,
                "name": one.spec.name,
                "token": one.rights.name,
                "tool": one.spec.tool or "",
                "views": list(one.channel.shapes),
                "tx": one.told,
                "behind": one.behind,
            }
            for one in list(hub.subscriptions.values())[:1000]
        ]
        clients = context.gate.clients.json(Counter((one.rights.name, one.spec.tool or "") for one in hub.subscriptions.values()))
        return answered(state.json() | {"subscribers": len(hub.subscriptions), "subscriptions": following, "clients": clients})

    @router.get("/subscriptions", responses=answers(protocol.Subscriptions))
    async def subscriptions(request: Request) -> Response:
        """The named subscriptions of the caller, and how far each has come."""
        rights = rights_of(request)
        notes = await hub.read(remembered, db, rights.name)
        named = [protocol.Named(name, json.loads(note.spec), note.tx, (rights.name, name) in hub.named) for name, note in notes.items()]
        return answered(protocol.Subscriptions(named))

    @router.delete("/subscriptions/{name}", responses=answers(protocol.Cancelled))
    async def cancel(request: Request, name: str) -> Response:
        """Ends a named subscription, and forgets its position."""
        rights = rights_of(request)
        if not await hub.forget(rights, name):
            raise DataError(f"there is no subscription {name}", "unknown-subscription")
        return answered(protocol.Cancelled(name))

    return router


def _check_domains(text: str, rights: Rights) -> None:
    """A domain of a client needs a right of its own, for the server asks it; one that runs code of the server's machine is not a client's to state."""
    try:
        definition = parse(text, "definition")
    except ProgramError:
        return  # which is told when it is defined
    stated = definition.directed("domain")
    if any(one.kind in ("call", "deferred") for one in definition.directives):
        raise Forbidden("calls are made of in(x, d:f(…)), and not stated")
    if stated:
        rights.require_domains()
    if any(one.option.get("kind") == "python" for one in stated):
        raise Forbidden("a domain of Python functions is stated in the program of the server, not by a client")


def _by_name(columns: Sequence[str], sides: Sides) -> protocol.NamedSides:
    pairs = sides.modified or ()
    modified = [protocol.NamedModified(*objects(columns, (pair.old, pair.new))) for pair in pairs]
    plus, minus = ([row if isinstance(row, dict) else objects(columns, [row])[0] for row in side] for side in (sides.plus, sides.minus))
    return protocol.NamedSides(plus, minus, modified or UNSET)


def _counts(deltas: Mapping[str, Delta]) -> dict[str, protocol.Counts]:
    return {name: protocol.Counts(len(delta.plus), len(delta.minus)) for name, delta in deltas.items()}
