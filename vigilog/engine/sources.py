"""The sources that a program asks: calls are made when they are asked for, once each, and their answers are remembered.

The law: after every transaction, for each call, the arguments that were asked are those that rules ask for, and the answers are what the source gave for them, when it was asked. So everything else is a view of tables, and asks nobody: old states, proofs, recovery.

What rules newly ask for goes to the source in one batch, and the answers are a further change in the same transaction; what nobody asks for any more is forgotten. Answers change by a refresh alone, which asks all of them anew: what is different is its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.rows import json_rows
from vigilog.core.values import Row
from vigilog.domains.domain import Domain, DomainError
from vigilog.domains.opening import opened
from vigilog.engine.outcome import Judge
from vigilog.engine.transaction import Lookup, Transaction
from vigilog.executors.views import Views
from vigilog.language.syntax import Directive, Program

MOST_ROUNDS = 1000  # in which answers lead to new questions, when a database is opened


class Asking(Protocol):
    """A database, as this module sees it."""

    program: Program
    homes: Mapping[str, str]
    base: Mapping[str, Lookup]
    views: Views

    def view(self, name: str) -> set[Row]: ...

    def rows(self, name: str) -> set[Row]: ...


@dataclass(frozen=True)
class Function:
    """A call, as a `.call` says it: `relation` has the answers, `demand` is what rules ask for, `asked` what was asked."""

    relation: str
    domain: str
    function: str
    fixed: tuple[str, ...]
    demand: str
    asked: str
    arity: int  # of its arguments


def functions(program: Program) -> list[Function]:
    """The calls of a program."""
    return [_function(program, directive) for directive in program.directed("call")]


def _function(program: Program, said: Directive) -> Function:
    option = said.option
    fixed = tuple(option[f"fixed{number}"] for number in range(len(option)) if f"fixed{number}" in option)
    arity = program.relations[option["asked"]].arity
    return Function(said.relation, option["domain"], option["function"], fixed, option["demand"], option["asked"], arity)


class Sources(Judge):
    """The domains of a database, and the calls that are remembered."""

    keeper = True

    def __init__(self, db: Asking, calls: Sequence[Function]) -> None:
        self.db, self.calls = db, calls
        self.views = frozenset(call.demand for call in calls)
        self.domains: dict[str, Domain] = {}
        self.made = 0  # calls, since the database was opened
        self.stale: set[str] = set()
        for directive in db.program.directed("domain"):
            prefix = f"{directive.relation}:"
            stated = {
                one.relation.removeprefix(prefix): one.options
                for one in db.program.directives
                if one.kind in ("table", "function") and one.relation.startswith(prefix)
            }
            self.domains[directive.relation] = opened(directive.relation, directive.option, stated)
        self.options = {directive.relation: directive.option for directive in db.program.directed("domain")}

    def begin(self) -> None:
        """Asks what is asked for when a database is opened, and was not remembered; again and again, until nothing is."""
        for _ in range(MOST_ROUNDS):
            moved: dict[str, Delta] = {}
            for call in self.calls:
                wanted, asked = self.db.view(call.demand), self.db.rows(call.asked)
                if new := wanted - asked:
                    moved[self.db.homes[call.asked]] = Delta(plus=frozenset(new))
                    moved[self.db.homes[call.relation]] = Delta(plus=frozenset(self._answers(call, new)) - self.db.rows(call.relation))
            if not moved:
                return
            self.db.views.apply({home: delta for home, delta in moved.items() if delta})
        raise DataError(f"answers of sources lead to new questions for more than {MOST_ROUNDS} rounds", "rounds")

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        deleted: dict[str, list[Any]] = {}
        inserted: dict[str, list[Any]] = {}
        for call in self.calls:
            part = change.views.get(call.demand)
            if part is None:
                continue
            delta = part if isinstance(part, Delta) else part.here()
            if new := delta.plus - self.db.base[call.asked].among(delta.plus):
                inserted[call.asked] = self._json(call.asked, new)
                inserted[call.relation] = self._json(call.relation, self._answers(call, new))
            if gone := self.db.base[call.asked].among(delta.minus):
                deleted[call.asked] = self._json(call.asked, gone)
                columns = tuple(range(call.arity))
                answers = self.db.base[call.relation].having(columns, gone) if columns else self.db.rows(call.relation)
                deleted[call.relation] = self._json(call.relation, answers)
        found = {
            "delete": {name: rows for name, rows in deleted.items() if rows},
            "insert": {name: rows for name, rows in inserted.items() if rows},
        }
        return {operation: told for operation, told in found.items() if told} or None

    def refreshed(self, domains: Any) -> Transaction:
        """What is different now in the answers of some domains that are remembered. Raises DomainError if one is down."""
        if not isinstance(domains, list) or not all(isinstance(name, str) for name in domains):
            raise DataError("refresh takes a list of domains", "json")
        deleted: dict[str, list[Any]] = {}
        inserted: dict[str, list[Any]] = {}
        self.stale -= set(domains)
        for name in domains:
            if name not in self.domains:
                hint = did_you_mean(name, self.domains) or f"there are {', '.join(self.domains) or 'none'}"
                raise DataError(f"there is no domain {name} ({hint})", "domain")
            try:
                news = [(call, self._answers(call, self.db.rows(call.asked))) for call in self.calls if call.domain == name]
            except DomainError:
                if self.options[name].get("down", "refuse") != "stale":
                    raise
                self.stale.add(name)
                continue
            for call, now in news:
                before = self.db.rows(call.relation)
                deleted[call.relation] = self._json(call.relation, before - now)
                inserted[call.relation] = self._json(call.relation, now - before)
        return {
            "delete": {name: rows for name, rows in deleted.items() if rows},
            "insert": {name: rows for name, rows in inserted.items() if rows},
        }

    def _answers(self, call: Function, arguments: Iterable[Row]) -> set[Row]:
        """The rows of some calls: their arguments with each answer."""
        wanted = sorted(arguments)
        self.made += len(wanted)
        try:
            answers = self.domains[call.domain].ask(call.function, call.fixed, wanted)
        except DomainError:
            raise
        except Exception as reason:
            raise DomainError(call.domain, f"{call.function}: {type(reason).__name__}: {reason}") from reason
        return {(*given, *row) for given, rows in zip(wanted, answers, strict=True) for row in rows}

    def _json(self, relation: str, rows: Iterable[Row]) -> list[Any]:
        return [list(row) for row in json_rows(self.db.program.relations[relation].types, list(rows))]
