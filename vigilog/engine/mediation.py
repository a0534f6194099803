"""The constrained relations of a database: kept beside its tables, in the same transactions.

A change comes from the tables (rows that clauses read, updates that were told); what it does to constrained relations goes back to the tables as a change of boxes, in the same transaction, and to those who are told as regions. If the transaction is
not kept, all of it is taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from vigilog.core.delta import Delta
from vigilog.core.effect import Effect
from vigilog.core.errors import DataError, UsageError
from vigilog.core.rows import json_rows
from vigilog.core.runs import axis
from vigilog.core.values import SYMBOL, Row, Type
from vigilog.engine.extension import Extension
from vigilog.engine.outcome import Judge
from vigilog.engine.transaction import Transaction
from vigilog.executors.views import Views
from vigilog.language.program import Program as Rules
from vigilog.mediators import boxes
from vigilog.mediators.asking import answers, counterexample, read_atom, rows
from vigilog.mediators.canonical import canonical
from vigilog.mediators.clauses import fact_of
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.facts import parsed_where, where
from vigilog.mediators.fitted import Parts, fitting
from vigilog.mediators.program import Mediated
from vigilog.mediators.recompute import Recomputed
from vigilog.mediators.regions import implied, joined, minus
from vigilog.mediators.sets import Sets
from vigilog.mediators.solver import Solver
from vigilog.mediators.straight import NotGround, Straight
from vigilog.mediators.updates import Update, decided
from vigilog.mediators.view import Algorithm, Change, Difference, Fact, Program, Work

FACTS = (SYMBOL,)  # the types of an answer whose rows are texts of facts: this very tuple
DELETIONS = ("auto", "straight", "dred", "recompute")


class MediatedDatabase(Protocol):
    """A database, as the mediation sees it."""

    program: Rules
    homes: Mapping[str, str]
    views: Views

    @property
    def extension(self) -> Extension: ...

    def view(self, name: str) -> set[Row]: ...

    def rows(self, name: str) -> set[Row]: ...


class Mediation(Judge):
    """A view of constrained relations, and how it stands since the last transaction."""

    keeper = True

    def __init__(self, db: MediatedDatabase, parts: Mediated, deletion: str = "auto") -> None:
        if deletion not in DELETIONS:
            raise UsageError(f"there is no way of deletion {deletion}; there are {', '.join(DELETIONS)}")
        self.db, self.parts, self.deletion = db, parts, deletion
        self.views = parts.read
        self.solver, self.program = Solver(), Program(parts.clauses)
        self.columns = {part.relation: part.columns for clause in parts.clauses for part in clause.body if part.relation in parts.read}
        self.updates: dict[str, dict[int, Update]] = {}
        self.differences: dict[str, Difference] = {}
        self.told: dict[str, set[Row]] = {}  # the boxes that the tables have
        self.solved = {"own": 0, "z3": 0}  # conditions that the last transaction asked about
        self.work = Work()  # what it touched
        self._counted: tuple[int, int] | None = None  # conditions that were asked about before it
        self.algorithm = self._begun()
        self._fill()
        self._before = (self.algorithm, self._copied(), dict(self.told))

    # -- the beginning

    def _begun(self) -> Algorithm:
        """The view, computed from what the tables have."""
        return self._made(self._stated())

    def _stated(self) -> Change:
        """What the tables have."""
        change = Change()
        for relation in self.parts.read:
            change.stated[relation] = {row: [self._fact(relation, row)] for row in self.db.view(relation)}
        for relation, listed in self.parts.updates.items():
            self.updates[relation] = {row[0]: self._update(relation, row) for row in self.db.rows(listed)}  # type: ignore[misc]  # its id
            self._decide(change, relation)
        return change

    def _made(self, change: Change) -> Algorithm:
        if self.deletion == "recompute":
            return Recomputed(self.program, self.solver, change)
        if self.deletion == "dred":
            return Sets(self.program, self.solver, change)
        if self.deletion == "auto":
            return fitting(self.program, self.solver, change)
        try:
            return Straight(self.program, self.solver, change)
        except NotGround:
            raise UsageError("straight deletion needs supports, and a recursion here is over facts that are not ground") from None

    def _fill(self) -> None:
        """The boxes in the tables are those of the view."""
        moved = {}
        for name in (*self.parts.inside.values(), *self.parts.outside.values()):
            there, wanted = self.db.rows(name), self._boxes(name)
            self.told[name] = wanted
            if there != wanted:
                moved[self.db.homes[name]] = Delta(frozenset(wanted - there), frozenset(there - wanted))
        if moved:
            self.db.views.apply(moved)

    def _fact(self, relation: str, row: Row) -> Conjunction:
        types = [axis(type_).all for type_ in self.db.program.relations[relation].types]
        return fact_of(self.columns[relation], types, row)

    def _update(self, relation: str, row: Row) -> Update:
        number, _, insert, text = row
        return Update(int(number), bool(insert), tuple(parsed_where(str(text), self.parts.columns(relation))))  # type: ignore[arg-type]

    def _decide(self, change: Change, relation: str, withdrawn: Iterable[int] = ()) -> None:
        came, change.out[relation] = decided(self.updates[relation].values(), self.solver)
        stated: dict[Fact, list[Conjunction]] = {("update", number): [] for number in withdrawn}
        stated |= {("update", one.number): came.get(one.number, []) for one in self.updates[relation].values() if one.insert}
        change.stated[relation] = stated

    def _boxes(self, name: str) -> set[Row]:
        relation = next(one for tables in (self.parts.inside, self.parts.outside) for one, box in tables.items() if box == name)
        region = self.algorithm.region(relation)
        if name in self.parts.outside.values():
            region = minus([Conjunction(self.parts.all_of(relation))], region, self.solver)
        return boxes.rows(canonical(region, self.solver))

    # -- a transaction

    def fire(self, change: Effect, net: Effect) -> Transaction | None:
        if self._counted is None:
            self._counted, self.work = (self.solver.own, self.solver.asked), Work()
        wanted = Change()
        for relation in self.parts.read:
            part = change.views.get(relation)
            if part is not None:
                delta = part if isinstance(part, Delta) else part.here()
                gone: dict[Fact, list[Conjunction]] = {row: [] for row in delta.minus}
                wanted.stated[relation] = gone | {row: [self._fact(relation, row)] for row in delta.plus}
        for relation, listed in self.parts.updates.items():
            part = change.changes.get(listed)
            if isinstance(part, Delta) and part:
                for row in part.minus:
                    del self.updates[relation][row[0]]  # type: ignore[arg-type]  # its id
                self.updates[relation] |= {row[0]: self._update(relation, row) for row in part.plus}  # type: ignore[misc]
                self._decide(wanted, relation, [row[0] for row in part.minus if row[2]])  # type: ignore[misc]  # its id
        if not wanted.stated and not wanted.out:
            return None
        try:
            self.differences = self.algorithm.change(wanted)
        except NotGround:
            self._begin_again()
        self.work = self.work + self.algorithm.work
        return self._boxed()

    def _begin_again(self) -> None:
        """Supports have come to an end: the view goes on as sets."""
        self.algorithm.undo()
        old = self.algorithm
        self.algorithm = Recomputed(self.program, self.solver, Change())
        self.algorithm = self._begun()
        for relation in self.parts.updates:
            before, now = old.region(relation), self.algorithm.region(relation)
            difference = Difference(minus(now, before, self.solver), minus(before, now, self.solver))
            if difference:
                self.differences[relation] = difference

    def _boxed(self) -> Transaction | None:
        """What changes in the tables of boxes."""
        changes: dict[str, dict[str, Any]] = {"delete": {}, "insert": {}}
        for tables in (self.parts.inside, self.parts.outside):
            for relation, name in tables.items():
                if relation in self.differences:
                    wanted = self._boxes(name)
                    for operation, boxed in (("delete", self.told[name] - wanted), ("insert", wanted - self.told[name])):
                        if boxed:
                            changes[operation][name] = [list(row) for row in json_rows(self.db.program.relations[name].types, list(boxed))]
                    self.told[name] = wanted
        return {operation: told for operation, told in changes.items() if told} or None

    def complete(self, net: Effect) -> Effect:
        """What a transaction did, with what it did to constrained relations."""
        if not self.differences:
            return net
        views = {name: self._texts(difference) for name, difference in self.differences.items() if name in self.parts.updates}
        return Effect(net.changes, {**net.views, **{name: delta for name, delta in views.items() if delta}}, net.redeclared)

    def _texts(self, difference: Difference) -> Delta:
        sides = [frozenset((where(part),) for part in canonical(side, self.solver)) for side in (difference.plus, difference.minus)]
        return Delta(*sides)

    def settled(self, *, keep: bool) -> None:
        """A transaction has ended."""
        own, asked = self._counted or (self.solver.own, self.solver.asked)
        self.solved, self._counted = {"own": self.solver.own - own, "z3": self.solver.asked - asked}, None
        if keep:
            self.algorithm.keep()
            self._before = (self.algorithm, self._copied(), dict(self.told))
        else:
            self.algorithm.undo()
            self.algorithm, self.updates, self.told = self._before[0], self._before[1], self._before[2]
            self._before = (self.algorithm, self._copied(), dict(self.told))
        self.differences = {}

    def _copied(self) -> dict[str, dict[int, Update]]:
        return {relation: dict(updates) for relation, updates in self.updates.items()}

    # -- answers

    def of(self, relation: str) -> Algorithm:
        """The algorithm that keeps a relation."""
        return self.algorithm.owner[relation] if isinstance(self.algorithm, Parts) else self.algorithm

    def recomputed(self) -> Algorithm:
        """The view as it follows from the tables by the plainest algorithm; nothing is changed."""
        return Recomputed(self.program, Solver(), self._stated())

    def region_of(self, relation: str, texts: Iterable[str]) -> list[Conjunction]:
        """The region that texts of facts stand for."""
        columns = self.parts.columns(relation)
        return [part for text in texts for part in parsed_where(text, columns)]

    def anew(self) -> Mediation:
        """The facts as they follow from the tables, which may be in a state of the past just now."""
        return Mediation(self.db, self.parts, self.deletion)

    def facts(self, relation: str) -> list[Conjunction]:
        """The facts of a relation, less those that one other implies."""
        parts = (
            joined(self.algorithm.region(relation))
            if not isinstance(self.of(relation), Straight)
            else list(dict.fromkeys(self.algorithm.region(relation)))
        )
        facts: list[Conjunction] = []
        for index, part in enumerate(parts):
            others = [*facts, *parts[index + 1 :]]
            if not any(implied(part, [other], self.solver) for other in others):
                facts.append(part)
        return sorted(facts, key=where)

    def texts(self, relation: str) -> set[Row]:
        return {(where(part),) for part in self.facts(relation)}

    def region(self, relation: str) -> list[Row]:
        """The same in maximal runs, of which no two have an instance in common: what a copy that counts begins with."""
        return [(where(part),) for part in canonical(self.algorithm.region(relation), self.solver)]

    def asked(self, goal: str, *, enumerated: bool = False) -> tuple[tuple[Type, ...], list[Row]] | None:
        """The answers to a goal that is an atom of a constrained relation: rows if it binds all columns, or they are to be enumerated, else texts of facts. None if the goal is another."""
        rule = read_atom(goal)
        if rule is None or rule.head.relation not in self.parts.updates:
            return None
        relation = rule.head.relation
        columns = self.parts.columns(relation)
        parts = answers(self.facts(relation), rule, columns, self.solver)
        if enumerated or all(part.row is not None for part in parts):
            return tuple(columns.values()), sorted(rows(parts))
        return FACTS, sorted({(where(part),) for part in parts})

    def holds(self, goal: str) -> Row | bool:
        """Whether all instances of an atom with conditions hold; if not, one that does not."""
        rule = read_atom(goal)
        if rule is None or rule.head.relation not in self.parts.updates:
            raise DataError("what is asked for all is an atom of a constrained relation, like b(x) :- x >= 7.", "goal")
        relation = rule.head.relation
        row = counterexample(self.algorithm.region(relation), rule, self.parts.columns(relation), self.solver)
        return True if row is None else row

    def supports(self) -> str:
        """The atoms of the view as rules, each with its support."""
        order = {name: place for place, name in enumerate(self.parts.program.relations)}
        kept = {id(one): one for name in self.parts.updates if isinstance(one := self.of(name), Straight)}
        pairs = [pair for one in kept.values() for pair in one.supports()]
        ordered = sorted(pairs, key=lambda pair: (order[pair[0].relation], pair[0].number))
        sets = [name for name in order if name in self.parts.updates and not isinstance(self.of(name), Straight)]
        why = "supports have no end where a recursion is over facts that are not ground"
        return "\n".join(
            [f"// {name} is kept as a set: {why}" for name in sets]
            + [
                f"{atom.relation}({', '.join(self.parts.columns(atom.relation))}) :- {where(part)}. // {support}"
                for atom, support in ordered
                for part in atom.parts
            ]
        )
