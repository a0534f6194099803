"""The sources that a program asks: calls are made when they are asked for, once each, and their answers are remembered.

The law: after every transaction, for each call, the arguments that were asked are those that rules ask for, and the answers are what the source gave for them, when it was asked. So everything else is a view of tables, and asks nobody: old states, proofs, recovery.

What rules newly ask for goes to the source in one batch, and the answers are a further change in the same transaction; what nobody asks for any more is forgotten. Answers change by a refresh alone, which asks all of them anew: what is different is its change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError, did_you_mean
from vigilog.core.proofs import Proof
from vigilog.core.rows import json_rows
from vigilog.core.values import Row
from vigilog.domains.domain import Domain, DomainError
from vigilog.domains.modules import Module
from vigilog.domains.opening import opened
from vigilog.domains.options import seconds
from vigilog.engine.asking import Answers, Inquiry, Trying
from vigilog.engine.outcome import Judge
from vigilog.engine.precedence import precedence, ready
from vigilog.engine.transaction import Lookup, Transaction
from vigilog.executors.views import Views
from vigilog.language.printer import show_term
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Constant, Directive, Negation, Term

MANY = 10_000  # arguments of a Python function that are Spark's workers' to ask with, where Spark keeps the views
MOST_ROUNDS = 1000  # in which answers lead to new questions, when a database is opened


class Asker(Protocol):
    """A database, as this module sees it."""

    program: Program
    plain: Program
    homes: Mapping[str, str]
    base: Mapping[str, Lookup]
    views: Views
    trying: Trying

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

    def __hash__(self) -> int:
        return hash(self.relation)  # of which there is one for each


@dataclass(frozen=True)
class Read:
    """When a domain was last read as a whole: by a clock that only goes forward, and by the one on the wall; and what kept the last refresh from it."""

    began: float = float("-inf")
    at: float = 0.0
    trouble: str = ""


@dataclass(frozen=True)
class SourceStatus:
    """A domain, how many calls of it are remembered, how often it is refreshed, when it last was, and whether its answers are stale, and why."""

    name: str
    kind: str
    calls: int
    refresh: float | None  # seconds
    read_at: float | None  # since 1970, if it was refreshed since the database was opened
    stale: bool
    trouble: str


def functions(program: Program) -> list[Function]:
    """The calls of a program."""
    return [_function(program, directive) for directive in program.directed("call")]


def _function(program: Program, directive: Directive) -> Function:
    option = directive.option
    fixed = tuple(option[f"fixed{number}"] for number in range(len(option)) if f"fixed{number}" in option)
    arity = program.relations[option["asked"]].arity
    return Function(directive.relation, option["domain"], option["function"], fixed, option["demand"], option["asked"], arity)


def domains_of(program: Program) -> dict[str, Domain]:
    """The domains that a program states."""
    domains = {}
    for directive in program.directed("domain"):
        prefix = f"{directive.relation}:"
        stated = {
            one.relation.removeprefix(prefix): one.options
            for one in program.directives
            if one.kind in ("table", "function") and one.relation.startswith(prefix)
        }
        domains[directive.relation] = opened(directive.relation, directive.option, stated)
    return domains


class Sources(Judge):
    """The domains of a database, and the calls that are remembered."""

    keeper = True

    def __init__(self, db: Asker, calls: Sequence[Function], before: Sources | None = None) -> None:
        """Goes on with what is known of sources `before`."""
        self.db, self.calls = db, calls
        self.views = frozenset(call.demand for call in calls)
        self.before = precedence(db.plain, {call.relation: call.demand for call in calls})
        self._open: dict[str, Delta] = {}  # of each call what rules ask for differently, and was not looked at yet
        self.domains = domains_of(db.program)
        self._by_relation = {call.relation: call for call in calls}
        self.made: int = before.made if before else 0  # calls, since the database was opened
        self.read: dict[str, Read] = dict(before.read) if before else {}
        self._marks: dict[str, Read] = {}  # what the transaction under way has found out
        self.options = {directive.relation: directive.option for directive in db.program.directed("domain")}

    @property
    def stale(self) -> set[str]:
        """The domains whose answers are older than their last refresh, because they were down then."""
        return {name for name, read in self.read.items() if read.trouble and name in self.domains}

    def begin(self) -> None:
        """Asks what is asked for when a database is opened, and was not remembered; again and again, until nothing is."""
        for _ in range(MOST_ROUNDS):
            moved: dict[str, Delta] = {}
            wanted = {call.relation: self.db.view(call.demand) - self.db.rows(call.asked) for call in self.calls}
            waiting = [relation for relation, new in wanted.items() if new]
            if not waiting:
                return
            for call in self._ready(waiting):
                new = wanted[call.relation]
                moved[self.db.homes[call.asked]] = Delta(plus=frozenset(new))
                moved[self.db.homes[call.relation]] = Delta(plus=frozenset(self._answers(call, new)) - self.db.rows(call.relation))
            self.db.views.apply({home: delta for home, delta in moved.items() if delta})
        raise DataError(f"answers of sources lead to new questions for more than {MOST_ROUNDS} rounds", "rounds")

    def _ready(self, waiting: Collection[str]) -> list[Function]:
        """The calls that are made next."""
        first = ready(waiting, self.before)
        return [call for call in self.calls if call.relation in first]

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        for call in self.calls:
            if (part := change.views.get(call.demand)) is not None:
                delta = part if isinstance(part, Delta) else part.here()
                self._open[call.relation] = self._open.get(call.relation, Delta()).then(delta)
        while waiting := [relation for relation, delta in self._open.items() if delta]:
            if told := self._turned({call: self._open.pop(call.relation) for call in self._ready(waiting)}):
                return told
        return None

    def _turned(self, demands: Mapping[Function, Delta]) -> Transaction | None:
        """What is asked and answered differently where rules ask for something else."""
        deleted: dict[str, list[Any]] = {}
        inserted: dict[str, list[Any]] = {}
        for call, delta in demands.items():
            if new := delta.plus - self.db.base[call.asked].among(delta.plus):
                inserted[call.asked] = self._json(call.asked, new)
                inserted[call.relation] = self._json(call.relation, self._answers(call, new))
            if gone := self.db.base[call.asked].among(delta.minus):
                deleted[call.asked] = self._json(call.asked, gone)
                columns = tuple(range(call.arity))
                answers = self.db.base[call.relation].having(columns, gone) if columns else self.db.rows(call.relation)
                deleted[call.relation] = self._json(call.relation, answers)
        changes = {
            "delete": {name: rows for name, rows in deleted.items() if rows},
            "insert": {name: rows for name, rows in inserted.items() if rows},
        }
        return {operation: told for operation, told in changes.items() if told} or None

    # -- what proofs rest on

    def told(self, step: Proof) -> Proof:
        """A step of a proof, in which an answer is the call that gave it."""
        match step.asked:
            case _ if step.row is not None and not step.rule and step.relation in self._by_relation:
                types = self.db.program.relations[step.relation].types
                cells = [Constant(value, type_) for value, type_ in zip(step.row, types, strict=True)]
                return replace(step, literal=self._told(step.relation, cells))
            case Negation(literal=Atom(relation=relation, args=args)) if relation in self._by_relation:
                return replace(step, literal=f"!{self._told(relation, args)}")
            case _:
                return step

    def _told(self, relation: str, args: Sequence[Term]) -> str:
        call, texts = self._by_relation[relation], list(map(show_term, args))
        given = ", ".join([*(json.dumps(text, ensure_ascii=False) for text in call.fixed), *texts[: call.arity]])
        columns = self.db.program.relations[relation].columns[call.arity :]
        results = dict(zip(columns, texts[call.arity :], strict=True))
        if {*results.values()} == {"_"} or not results:
            answer = "_"
        else:
            answer = (
                results["value"] if columns == ("value",) else f"({', '.join(f'{column} = {cell}' for column, cell in results.items())})"
            )
        return f"in({answer}, {call.domain}:{call.function}({given}))"

    # -- a refresh

    def refreshed(self, domains: Any) -> Transaction:
        """What is different now in the answers of some domains that are remembered. Raises DomainError if one is down."""
        if not isinstance(domains, list) or not all(isinstance(name, str) for name in domains):
            raise DataError("refresh takes a list of domains", "json")
        deleted: dict[str, list[Any]] = {}
        inserted: dict[str, list[Any]] = {}
        for name in dict.fromkeys(domains):
            if name not in self.domains:
                hint = did_you_mean(name, self.domains) or f"there are {', '.join(self.domains) or 'none'}"
                raise DataError(f"there is no domain {name} ({hint})", "absent")
            for call, now, before in self._news(name):
                deleted[call.relation] = self._json(call.relation, before - now)
                inserted[call.relation] = self._json(call.relation, now - before)
        return {
            "delete": {name: rows for name, rows in deleted.items() if rows},
            "insert": {name: rows for name, rows in inserted.items() if rows},
        }

    def _news(self, name: str) -> list[tuple[Function, set[Row], set[Row]]]:
        """For the calls of a domain the rows that it has now, and those that are remembered. Nothing is new if a later refresh was faster; what was first asked for meanwhile is as new as it is."""
        asked, what = self.db.trying.asked or Inquiry(), ("refresh", name)
        wanted = {call: sorted(self.db.rows(call.asked)) for call in self.calls if call.domain == name} if what not in asked.futures else {}
        try:
            answers: dict[Function, Answers] = asked.answer(what, lambda: {call: self._ask(call, some) for call, some in wanted.items()})
        except DomainError as reason:
            if self.options[name].get("down", "refuse") != "stale":
                raise
            self._marks[name] = replace(self.read.get(name, Read()), trouble=reason.message)
            return []
        began = asked.began[what]
        if began < self.read.get(name, Read()).began:
            return []
        self._marks[name] = Read(began, time.time() - (time.monotonic() - began))
        news = []
        for call, rows_of in answers.items():
            if call in self.calls:
                current = self.db.rows(call.asked)
                whole = rows_of if len(rows_of) == len(current) == len(rows_of.keys() & current) else None
                now = {(*given, *row) for given, rows in rows_of.items() if whole is not None or given in current for row in rows}
                before = self.db.rows(call.relation)
                news.append((call, now, before if whole is not None else {row for row in before if row[: call.arity] in rows_of}))
        return news

    @property
    def intervals(self) -> dict[str, float]:
        """How often domains are refreshed by themselves, in seconds."""
        return {name: seconds(option["refresh"]) for name, option in self.options.items() if "refresh" in option}

    def trouble(self, name: str) -> str:
        """What kept the last refresh of a domain from it."""
        return self.read.get(name, Read()).trouble

    def failed(self, name: str, message: str) -> None:
        """A refresh that nobody has asked for has failed: `status` says why."""
        self.read[name] = replace(self.read.get(name, Read()), trouble=message)

    def settled(self, *, keep: bool) -> None:
        """A transaction has ended."""
        if keep:
            self.read |= self._marks
        self._marks, self._open = {}, {}

    # -- asking

    def _answers(self, call: Function, arguments: Iterable[Row]) -> set[Row]:
        """The rows of some calls: their arguments with each answer. Who is tried does not wait long (`asking.py`)."""
        asked, wanted = self.db.trying.asked, frozenset(arguments)
        if asked is None:
            answers = self._ask(call, sorted(wanted))
        else:
            answers = asked.answers.setdefault(call, {})
            newest = self.read.get(call.domain, Read()).began
            for given in [one for one in wanted if one in answers and asked.read[call, one] < newest]:
                del answers[given]  # a refresh has read the source later than this transaction, and is kept already
            if missing := wanted.difference(answers):
                self._remember(asked, call, missing)
        return {(*given, *row) for given in wanted for row in answers[given]}

    def _remember(self, asked: Inquiry, call: Function, missing: frozenset[Row]) -> None:
        def ask() -> None:
            began = time.monotonic()
            answers = self._ask(call, sorted(missing))
            asked.read.update({(call, given): began for given in answers})
            asked.answers[call].update(answers)

        what = (call, missing)
        if what in asked.futures and asked.futures[what].done() and asked.futures[what].exception() is None:
            asked.forget(what)  # what it gave was too old
        asked.answer(what, ask)

    def _ask(self, call: Function, wanted: Sequence[Row]) -> Answers:
        self.made += len(wanted)
        domain, by_workers = self.domains[call.domain], getattr(self.db.views, "asked_by_workers", None)
        try:
            if by_workers is not None and isinstance(domain, Module) and len(wanted) >= MANY:
                answers = by_workers(domain, call.function, wanted)
            else:
                answers = domain.ask(call.function, call.fixed, wanted)
        except DomainError:
            raise
        except Exception as reason:
            raise DomainError(call.domain, f"{call.function}: {type(reason).__name__}: {reason}") from reason
        return dict(zip(wanted, answers, strict=True))

    def _json(self, relation: str, rows: Iterable[Row]) -> list[Any]:
        return [list(row) for row in json_rows(self.db.program.relations[relation].types, list(rows))]

    def status(self) -> list[SourceStatus]:
        """What there is to say of each domain."""
        statuses = []
        for name, options in self.options.items():
            calls, read = [call for call in self.calls if call.domain == name], self.read.get(name, Read())
            remembered = sum(len(self.db.rows(call.asked)) for call in calls)
            every = self.intervals.get(name)
            statuses.append(SourceStatus(name, options["kind"], remembered, every, read.at or None, bool(read.trouble), read.trouble))
        return statuses
