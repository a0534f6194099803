"""Answers goals on SQLite, deriving only what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from vigilog.core.values import Row
from vigilog.executors.embedded.demand import DemandMachine, Plan
from vigilog.executors.embedded.tables import Tables
from vigilog.language.goal import Goal
from vigilog.language.syntax import Program
from vigilog.rewriting.magic import magic
from vigilog.rewriting.normalize import normalize


class Asker:
    """A plain program whose base relations, and those `stored`, are tables."""

    def __init__(self, program: Program, stored: Iterable[str], tables: Tables, rows: Mapping[str, int]) -> None:
        self.program, self.stored, self.tables, self.sizes = program, frozenset(stored), tables, rows
        self.machines: dict[Goal, tuple[DemandMachine, Plan, str]] = {}
        self.derived = self.rounds = 0

    def answers(self, goal: Goal) -> list[Row]:
        machine = self.derive(goal)
        try:
            return machine.rows(goal.declaration.relation)
        finally:
            self.derived, self.rounds = machine.derived, machine.rounds
            machine.clear()

    def derive(self, goal: Goal) -> DemandMachine:
        """The work tables with everything the goal needs; clear them afterwards."""
        if goal not in self.machines:
            relation = goal.declaration.relation
            plain = normalize(replace(self.program, declarations=(*self.program.declarations, goal.declaration), rules=(goal.rule,)))
            asking = replace(plain, rules=(*self.program.rules, *plain.rules))
            pattern = "f" * goal.declaration.arity
            asked = magic(asking, [(relation, pattern)], self.stored)
            derived = {rule.head.relation for rule in asking.rules} - self.stored
            physical = {name: (name, self.tables.layout.tables[name]) for name in self.program.relations if name not in derived}
            machine = DemandMachine(asked.program, asked.levels, self.tables, physical)
            question = asked.questions[relation, pattern]
            self.machines[goal] = machine, machine.plan([question], {}, self.sizes), question
        machine, plan, question = self.machines[goal]
        machine.seed(question, [()])
        machine.run(plan)
        return machine
