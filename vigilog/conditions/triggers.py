"""Triggers fire in rounds, until nothing waits.

Rows that enter a trigger's condition wait; one that leaves again before its turn does not. A round: of the triggers for which rows wait, those of the smallest priority fire together, as one change, which is
maintained; what enters by it waits, and so on. Two triggers must not disagree: in one round by what they ask for, across rounds by what they have done.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from vigilog.conditions import MOST_ROUNDS
from vigilog.core.delta import Delta
from vigilog.core.effect import Effect, Part, deltas, together
from vigilog.core.errors import Refused, counted
from vigilog.core.rows import json_rows
from vigilog.core.values import Row, sorted_rows
from vigilog.language.conditions import Trigger
from vigilog.language.program import Program

FurtherChange = dict[str, dict[str, list[Row]]]  # operation, relation, rows


@dataclass(frozen=True)
class Firing:
    """A trigger with the rows that it fires for: what it puts into its target and what it takes out, by rows or by keys."""

    trigger: Trigger
    rows: frozenset[Row]

    @property
    def puts(self) -> bool:
        return self.trigger.operation in ("insert", "upsert")


class Cascade:
    """What the triggers of a program do in one transaction, round after round."""

    def __init__(self, program: Program, triggers: Sequence[Trigger], most: int = MOST_ROUNDS) -> None:
        self.program, self.triggers, self.most = program, triggers, most
        self.places: dict[str, list[int]] = {}  # of the triggers of each condition
        for place, trigger in enumerate(triggers):
            self.places.setdefault(trigger.relation, []).append(place)
        self.waiting: dict[int, set[Row]] = {}  # by the place of a trigger among all
        self.chain: list[list[str]] = []  # who fired, round after round
        self.last: list[Firing] = []
        self.done: dict[str, list[Firing]] = {}  # what was really done to each relation, in all rounds
        self.effects: list[Mapping[str, Part]] = []  # of the rounds

    @property
    def triggered(self) -> dict[str, Delta]:
        """The net effect of all rounds."""
        return deltas(together([Effect(changes) for changes in self.effects]).changes) if self.effects else {}

    def fire(self, change: Effect) -> FurtherChange | None:
        """The next round's change, after one that was maintained; None if nothing waits. Raises Refused if triggers disagree, or have no end."""
        if self.last:
            self.effects.append(change.changes)
            self._note(change.changes)
            self.last = []
        self._wait(change)
        if not self.waiting:
            return None
        first = min([self.triggers[place].priority for place in self.waiting])
        turn = [place for place in sorted(self.waiting) if self.triggers[place].priority == first]
        self.chain.append(sorted([self.triggers[place].name for place in turn]))
        if len(self.chain) > self.most:
            message = f"triggers set each other off for more than {counted(self.most, 'round')}: {self._path()}"
            fired = {name for names in self.chain for name in names}
            conditions = [trigger.relation for trigger in self.triggers if trigger.name in fired]
            refused = Refused(message, "cascade", {"chain": self.chain}, conditions)
            refused.rows = [(self.triggers[place].relation, row) for place in turn for row in sorted_rows(self.waiting[place])]
            raise refused
        self.last = [Firing(self.triggers[place], frozenset(self.waiting.pop(place))) for place in turn]
        for one, other in combinations(self.last, 2):
            self._agree(one, other)
        further: FurtherChange = {}
        for firing in self.last:
            further.setdefault(firing.trigger.operation, {}).setdefault(firing.trigger.target, []).extend(
                sorted_rows(firing.rows) if len(firing.rows) > 1 else firing.rows
            )
        return further

    def broken(self, message: str, target: str, rows: Sequence[Row]) -> Refused:
        """The error for the last round, which gives a relation rows that have one key."""
        guilty = [firing for firing in self.last if firing.trigger.target == target and firing.puts and not firing.rows.isdisjoint(rows)]
        names, conditions = [firing.trigger.name for firing in guilty], [firing.trigger.relation for firing in guilty]
        members = {"triggers": sorted(names), "relation": target}
        refused = Refused(f"{message}, by the trigger {' and '.join(names)}", "key", members, conditions)
        refused.rows = [(firing.trigger.relation, row) for firing in guilty for row in rows if row in firing.rows]
        return refused

    def _wait(self, change: Effect) -> None:
        for relation in change.views:
            for place in self.places.get(relation, ()):
                delta = change.delta(relation)
                left = (self.waiting.get(place, set()) - delta.minus) | delta.plus
                if left:
                    self.waiting[place] = left
                else:
                    self.waiting.pop(place, None)

    def _note(self, changes: Mapping[str, Part]) -> None:
        """Notes what the last round really did."""
        done = []
        for firing in self.last:
            part = changes.get(firing.trigger.target)
            if part is not None:
                did = Firing(firing.trigger, self._did(firing, part if isinstance(part, Delta) else part.here()))
                done += [did] if did.rows else []
        for did in done:
            for earlier in self.done.get(did.trigger.target, ()):
                self._agree(earlier, did)
        for did in done:
            self.done.setdefault(did.trigger.target, []).append(did)

    def _did(self, firing: Firing, delta: Delta) -> frozenset[Row]:
        match firing.trigger.operation:
            case "insert" | "upsert":
                return firing.rows & delta.plus
            case "delete":
                return firing.rows & delta.minus
            case _:
                key = self.program.keys[firing.trigger.target]
                return firing.rows & {_value(row, key) for row in delta.minus}

    def _agree(self, one: Firing, other: Firing) -> None:
        """Refuses two triggers that want, or did, what does not go together."""
        if one.trigger is other.trigger or one.trigger.target != other.trigger.target:
            return
        target = one.trigger.target
        key = self.program.keys.get(target)
        if one.puts and other.puts:
            if key is not None and (clash := _first(_different(one.rows, other.rows, key))) is not None:
                raise self._conflict(one, other, f"give different rows of {target} for the key", "key", clash, key)
        elif one.puts or other.puts:
            puts, takes = (one, other) if one.puts else (other, one)
            if takes.trigger.operation == "delete":
                if (clash := _first(puts.rows & takes.rows)) is not None:
                    raise self._conflict(one, other, f"do not agree whether {target} has", "row", clash)
            elif key is not None and (clash := _first({_value(row, key) for row in puts.rows} & takes.rows)) is not None:
                raise self._conflict(one, other, f"do not agree whether {target} has the key", "key", clash, key)

    def _conflict(self, one: Firing, other: Firing, what: str, kind: str, row: Row, columns: tuple[int, ...] | None = None) -> Refused:
        target = one.trigger.target
        types = self.program.relations[target].types
        chosen = types if columns is None else [types[column] for column in columns]
        names = sorted((one.trigger.name, other.trigger.name))
        shown = list(json_rows(chosen, [row])[0]) if chosen else []
        members: dict[str, Any] = {"triggers": names, "relation": target, kind: shown}
        message = f"the triggers {names[0]} and {names[1]} {what} {json.dumps(shown, ensure_ascii=False)}"
        refused = Refused(message, "conflict", members, [one.trigger.relation, other.trigger.relation])
        refused.rows = [
            (firing.trigger.relation, wanted)
            for firing in sorted((one, other), key=lambda firing: firing.trigger.name)
            for wanted in sorted_rows(firing.rows)
            if wanted == row or (columns is not None and firing.puts and _value(wanted, columns) == row)
        ]
        return refused

    def _path(self) -> str:
        """The chain in a few words: what repeats is not said again."""
        steps = [" and ".join(names) for names in self.chain]
        return " → ".join(steps if len(steps) <= 6 else [*steps[:5], "…"])


def _different(one: frozenset[Row], other: frozenset[Row], key: tuple[int, ...]) -> Iterator[Row]:
    """The keys for which two sets have different rows."""
    rows = {_value(row, key): row for row in one}
    yield from (value for row in other if rows.get(value := _value(row, key), row) != row)


def _value(row: Row, key: tuple[int, ...]) -> Row:
    return tuple([row[column] for column in key])


def _first(rows: Any) -> Row | None:
    return min(rows, default=None)
