"""What conditions mean, found by brute force: everything is computed anew by the reference, before and after, and compared.

It knows nothing of changes that are found in proportion to themselves, of views beside conditions, or of executors. A proof is a binding of the variables that a rule names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from vigilog import reference
from vigilog.conditions.support import own_rules
from vigilog.core.delta import Delta, between
from vigilog.core.values import Row
from vigilog.engine.transaction import net_changes
from vigilog.language.conditions import Alert, Trigger, alerts, constraints, triggers
from vigilog.language.parts import names
from vigilog.language.program import Program
from vigilog.language.solving import solve, value
from vigilog.language.syntax import Rule
from vigilog.rewriting.program.separate import as_maintained

State = dict[str, set[Row]]
Event = tuple[Trigger, str, str, Row]  # a trigger puts or takes, a row or a key


class Refusal(Exception):
    """A transaction is refused, with the members of its error that can be known without asking why."""

    def __init__(self, code: str, **members: Any) -> None:
        super().__init__(code)
        self.said = {"code": code, **members}


@dataclass
class Told:
    """What became of a transaction."""

    views: dict[str, Delta] = field(default_factory=dict)
    alerts: list[dict[str, Any]] = field(default_factory=list)
    triggered: dict[str, Delta] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """A base relation in which rows can be looked up."""

    rows: set[Row]

    def among(self, rows: Collection[Row]) -> set[Row]:
        return self.rows & set(rows)

    def having(self, columns: tuple[int, ...], values: Collection[Row]) -> set[Row]:
        return {row for row in self.rows if tuple(row[column] for column in columns) in set(values)}

    def twice(self, columns: tuple[int, ...]) -> Row | None:
        raise AssertionError("keys hold from the beginning")


class Model:
    """A checked program with its base relations; `base` has all rows that are stated."""

    def __init__(self, program: Program, base: Mapping[str, Collection[Row]], most: int = 16) -> None:
        self.program, self.most = program, most
        stated = reference.evaluate(program.with_rules(tuple(rule for rule in program.rules if not rule.body)), {})
        self.rules = program.with_rules(tuple(rule for rule in program.rules if rule.body))
        separated, homes = as_maintained(program, base.keys())
        self.separated = separated
        self.base: State = {name: set(base.get(name, ())) | stated[name] for name in homes}

    def whole(self, base: State) -> State:
        return reference.evaluate(self.rules, base)

    def take(self, transaction: Mapping[str, Any]) -> Told:
        """Applies a transaction. Raises Refusal, or DataError, and then nothing has changed."""
        old, before = self.whole(self.base), self.proofs(self.base)
        wish = self.changed(self.base, transaction)
        base = wish
        waiting: list[tuple[Trigger, set[Row]]] = [(trigger, set()) for trigger in triggers(self.program)]
        state, then = old, self.whole(base)
        events: list[Event] = []
        chain: list[list[str]] = []
        while True:
            for trigger, rows in waiting:
                rows -= state[trigger.relation] - then[trigger.relation]
                rows |= then[trigger.relation] - state[trigger.relation]
            ready = [(trigger, rows) for trigger, rows in waiting if rows]
            if not ready:
                break
            first = min(trigger.priority for trigger, _ in ready)
            turn = [(trigger, set(rows)) for trigger, rows in ready if trigger.priority == first]
            chain.append(sorted(trigger.name for trigger, _ in turn))
            if len(chain) > self.most:
                raise Refusal("cascade", chain=chain)
            asked = [event for trigger, rows in turn for row in rows for event in self.asks(trigger, row)]
            self.agree(asked)
            request: dict[str, dict[str, list[Row]]] = {}
            for trigger, rows in turn:
                request.setdefault(trigger.operation, {}).setdefault(trigger.target, []).extend(rows)
                next(found for other, found in waiting if other is trigger).clear()
            after = self.changed(base, request)
            events += [event for event in asked if self.happened(event, base, after)]
            self.agree(events)
            base, state, then = after, then, self.whole(after)
        broken = {
            one.name: self.new_rows(one.key, old[one.relation], then[one.relation])
            for one in constraints(self.program)
            if one.mode == "enforced"
        }
        named = [name for name, rows in broken.items() if rows]
        if named:
            lists = {name: [list(row) for row in sorted(broken[name])] for name in named}
            others = {name: lists[name][:100] for name in named[1:]}
            more = {"more": len(lists[named[0]]) - 100} if len(lists[named[0]]) > 100 else {}
            raise Refusal("constraint", constraint=named[0], rows=lists[named[0]][:100], **more, **({"others": others} if others else {}))
        after_proofs = self.proofs(base)
        told = Told(
            {name: delta for name in self.program.outputs if (delta := between(old[name], then[name]))},
            sorted(
                (report for alert in alerts(self.program) for report in self.reports(alert, old, then, before, after_proofs)),
                key=lambda said: (said["alert"], said["row"], said["state"]),
            ),
            {name: delta for name in sorted(base) if (delta := between(wish[name], base[name]))},
        )
        self.base = base
        return told

    def changed(self, base: State, transaction: Mapping[str, Any]) -> State:
        changes = net_changes(self.program, {name: Rows(rows) for name, rows in base.items()}, transaction)
        return {name: changes[name].apply(rows) if name in changes else rows for name, rows in base.items()}

    # -- triggers

    def asks(self, trigger: Trigger, row: Row) -> Iterator[Event]:
        if trigger.operation in ("insert", "upsert"):
            yield trigger, "put", "row", row
            if trigger.target in self.program.keys:
                yield trigger, "put", "key", self.key(trigger.target, row)
        elif trigger.operation == "delete":
            yield trigger, "take", "row", row
        else:
            yield trigger, "take", "key", row

    def key(self, relation: str, row: Row) -> Row:
        return tuple(row[column] for column in self.program.keys[relation])

    def happened(self, event: Event, before: State, after: State) -> bool:
        trigger, way, by, row = event
        old, new = before[trigger.target], after[trigger.target]
        changed = new - old if way == "put" else old - new
        if by == "row":
            return row in changed
        return row in {self.key(trigger.target, other) for other in changed} and (
            way == "take" or trigger.operation in ("insert", "upsert")
        )

    def agree(self, events: list[Event]) -> None:
        """Refuses if two triggers disagree. What is found first is told, which the tests do not look at when there are several."""
        for trigger, way, by, row in events:
            for other, other_way, other_by, other_row in events:
                if trigger is other or trigger.target != other.target or by != other_by:
                    continue
                if way == "put" and other_way == "take" and row == other_row:
                    raise Refusal("conflict", triggers=sorted((trigger.name, other.name)), relation=trigger.target, **{by: list(row)})
                if way == other_way == "put" and by == "row" and trigger.target in self.program.keys:
                    same = self.key(trigger.target, row) == self.key(trigger.target, other_row)
                    if same and row != other_row:
                        key = list(self.key(trigger.target, row))
                        raise Refusal("conflict", triggers=sorted((trigger.name, other.name)), relation=trigger.target, key=key)

    # -- constraints and alerts

    def new_rows(self, key: tuple[int, ...], old: set[Row], new: set[Row]) -> set[Row]:
        had = {tuple(row[column] for column in key) for row in old}
        return {row for row in new if tuple(row[column] for column in key) not in had}

    def proofs(self, base: State) -> dict[str, set[tuple[Row, object]]]:
        """For each resatisfiable alert its rows with their proofs."""
        state = self.whole(base)
        found: dict[str, set[tuple[Row, object]]] = {}
        for alert in alerts(self.program):
            if alert.resatisfiable:
                rules = own_rules(self.separated, alert.relation, unfolded=True) if alert.unfold else list(self.rules.rules)
                found[alert.name] = {
                    proof
                    for number, rule in enumerate(rules)
                    for proof in self.bindings(alert, number, rule, state | self.homes(state, base))
                }
                if alert.relation in base and not (alert.unfold and rules):
                    found[alert.name] |= {(row, "stated") for row in base[alert.relation]}
        return found

    def bindings(self, alert: Alert, number: int, rule: Rule, state: State) -> Iterator[tuple[Row, object]]:
        scope = names(rule)
        for place, head in enumerate(rule.heads):
            if head.relation == alert.relation:
                for binding in solve(rule.body, {}, state, scope):
                    row = tuple(value(arg, binding, state, scope) for arg in head.args)
                    if None not in row:
                        yield row, (number, place, frozenset((name, cell) for name, cell in binding.items() if name in scope))  # type: ignore[misc]

    def homes(self, state: State, base: State) -> State:
        """Relations that hold what is stated for others, which unfolded rules may read."""
        return {name: base.get(name.removesuffix("_base"), set()) for name in self.separated.relations if name not in state}

    def reports(self, alert: Alert, old: State, new: State, before: Any, after: Any) -> Iterator[dict[str, Any]]:
        def keys(rows: Collection[Row]) -> dict[Row, set[Row]]:
            found: dict[Row, set[Row]] = {}
            for row in rows:
                found.setdefault(tuple(row[column] for column in alert.key), set()).add(row)
            return found

        then, now = keys(old[alert.relation]), keys(new[alert.relation])
        for key in then.keys() - now.keys():
            yield {"alert": alert.name, "state": "ceased", "row": list(min(then[key]))}
        if not alert.resatisfiable:
            for key in now.keys() - then.keys():
                yield {"alert": alert.name, "state": "satisfied", "row": list(min(now[key]))}
            return
        fresh = keys([row for row, _ in after[alert.name] - before[alert.name]])
        for key, rows in fresh.items():
            proofs = sum(1 for row, _ in after[alert.name] - before[alert.name] if row in rows)
            said = {"alert": alert.name, "state": "again" if key in then else "satisfied", "row": list(min(rows)), "proofs": proofs}
            went, came = then.get(key, set()) - now[key], now[key] - then.get(key, set())
            if key in then and len(went) == len(came) == 1:
                said["old"] = list(next(iter(went)))
            yield said
