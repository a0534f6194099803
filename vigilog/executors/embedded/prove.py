"""Looks for another proof of rows that lost one, before anything is deleted.

A row that lost a proof and has another keeps its place, and takes nothing with it. For a recursive relation the rows that support each other are many: without the search,
one deleted edge takes a whole strongly connected component apart, only for it to be put together again. (The idea of Backward/Forward: Motik et al. 2015.)

The question is put to the new state of what lies below, on demand, by whichever columns have the fewest distinct values among the rows in doubt, and with a bound on the work: if a
question takes too long, the next one is tried, and then each with twice the bound. What was proved by then counts in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from vigilog.executors.embedded.demand import DemandMachine, OverBudget, RoundPlan
from vigilog.executors.embedded.statements import TableSource, WorkTables
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.strata import Component
from vigilog.rewriting.demand.magic import linear_patterns, magic

FIRST_BOUND = 500
LEAST_COST = 10.0  # rows that a question is expected to take, until one was asked
BOUND_BY_ROWS = 50  # at most so many rows are derived for each row in doubt, in all


class Prover:
    """Proofs of rows of one recursive component, from what is below it and its own rules."""

    def __init__(
        self, program: Program, component: Component, tables: Tables, rows: Mapping[str, int], work: WorkTables, filled: Collection[str]
    ) -> None:
        self.tables, self.filled = tables, filled
        own = replace(program, rules=component.rules)
        full = {relation: "b" * max(program.relations[relation].arity, 0) for relation in component.relations}
        self.patterns = {relation: linear_patterns(own, relation) or [full[relation]] for relation in component.relations}
        goals = [(relation, pattern) for relation, patterns in self.patterns.items() for pattern in patterns]
        asked = magic(own, goals)
        below = {atom.relation for rule in component.rules for atom, _ in atoms(rule.body)} - set(component.relations)
        sources = {name: TableSource(name, tables.layout.tables[name], work(name, "minus")) for name in sorted(below)}
        self.machine = DemandMachine(asked.program, asked.levels, tables, sources)
        self.questions = asked.questions
        self.plans: dict[tuple[str, str], RoundPlan] = {goal: self.machine.plan([asked.questions[goal]], rows) for goal in goals}
        self.used = self.tired = False
        self.spent: dict[tuple[str, str], int] = {}

    def prove(self, relation: str, doubtful: str, number: int) -> None:
        """Tries to prove the rows of a table; those proved are in `proved`."""
        if self.tired:
            return
        self.used = True
        bound, most = FIRST_BOUND, FIRST_BOUND + BOUND_BY_ROWS * number
        goals = [(relation, pattern) for pattern in self.patterns[relation]]
        while bound <= most:
            expected = {goal: self._expected(goal, doubtful) for goal in goals}
            for goal in sorted(goals, key=expected.__getitem__):
                if expected[goal] <= bound and self._try(goal, doubtful, bound):
                    return
            bound *= 2
        self.tired = True

    def proved(self, relation: str) -> str:
        """The table of rows that have a proof."""
        return quote(self.machine.layout.tables[relation])

    def warm(self) -> None:
        for plan in self.plans.values():
            self.machine.warm(plan)

    def clear(self) -> None:
        if self.used:
            self.machine.clear()
        self.used = self.tired = False
        self.spent = {}

    def _try(self, goal: tuple[str, str], doubtful: str, bound: int) -> bool:
        """Asks for the rows by some columns; whether that came to an end within the bound."""
        question = self.questions[goal]
        table, machine = quote(self.machine.layout.tables[question]), self.machine
        added = self.tables.execute(f"INSERT OR IGNORE INTO {table} SELECT DISTINCT {self._known(goal)} FROM {doubtful}").rowcount
        machine.sizes[question] = machine.sizes.get(question, 0) + added
        before = machine.derived
        machine.budget = before + bound
        try:
            machine.run(self.plans[goal], changed=self.filled)
        except OverBudget:
            return False
        finally:
            self.spent[goal] = self.spent.get(goal, 0) + machine.derived - before
        return True

    def _expected(self, goal: tuple[str, str], doubtful: str) -> float:
        """What it would cost to ask in this way: new questions times what one has cost so far."""
        if len(self.patterns[goal[0]]) == 1:
            return 0
        question = self.questions[goal]
        table = quote(self.machine.layout.tables[question])
        new = f"SELECT {self._known(goal)} FROM {doubtful} EXCEPT SELECT * FROM {table}"
        (number,) = self.tables.execute(f"SELECT count(*) FROM ({new})").fetchone()
        asked = self.machine.sizes.get(question, 0)
        return float(number) * (self.spent[goal] / asked if asked else LEAST_COST)

    def _known(self, goal: tuple[str, str]) -> str:
        relation, pattern = goal
        columns = self.tables.layout.columns[relation]
        return ", ".join(quote(column) for column, mark in zip(columns, pattern or "b", strict=True) if mark == "b")
