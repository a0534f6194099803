"""Finds proofs of rows, from base facts, whether or not their relations are stored.

What a row can follow from is derived on demand. Work tables number their rows as they come, and the machine notes how far each table had come after each step; so every row was first
derived from rows of earlier steps, and a proof that goes back only in time comes to an end.

Where a relation keeps the best (`language/improving.py`), its candidates are derived, but only those that it has: it is stored, so each rule is guarded by the relation itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from vigilog.core.proofs import Proof
from vigilog.core.values import Row
from vigilog.executors.embedded.demand import DemandMachine, RoundPlan
from vigilog.executors.embedded.statements import TableSource, WorkLayout, expected
from vigilog.executors.embedded.tables import Tables, quote
from vigilog.language import syntax
from vigilog.language.improving import Best
from vigilog.language.parts import atoms, map_terms, names, rename_literal, variables
from vigilog.language.printer import show_literal, show_statement
from vigilog.language.program import Program
from vigilog.language.strata import components
from vigilog.planning.dialect import Parameters
from vigilog.planning.select import Choice, select
from vigilog.planning.sqlite import decoder, encoder
from vigilog.rewriting.demand.magic import MagicProgram, magic
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.normalize import flat

INSTANCE = "instance of a rule"


@dataclass(frozen=True)
class _Instances:
    """A statement that gives values for these variables."""

    sql: str
    parameters: Parameters
    shown: Sequence[syntax.Variable]


class Reasoner:
    """Proofs over the tables of a plain program's base relations."""

    def __init__(self, program: Program, tables: Tables, rows: Mapping[str, int]) -> None:
        self.program, self.guards = guarded(provable(program))
        self.tables, self.sizes = tables, rows
        self.derived = {rule.head.relation for rule in program.rules}
        self.machines: dict[str, tuple[DemandMachine, RoundPlan, str]] = {}
        self.statements: dict[object, _Instances] = {}

    def proofs(self, relation: str, rows: Sequence[Row]) -> list[Proof | None]:
        """For each row of a relation a proof of it, None if it has none."""
        if relation not in self.derived:
            table = self.tables.contents(relation)
            return [Proof(_fact(self.program, relation, row), relation=relation, row=row) if table.among([row]) else None for row in rows]
        machine, plan, question = self._machine(relation)
        machine.trace = []
        try:
            machine.seed(question, rows)
            machine.run(plan)
            search = _Search(self, machine)
            return [search.proof(relation, row) for row in rows]
        finally:
            machine.clear()

    def said(self, literal: syntax.Literal) -> syntax.Literal:
        """What a proof says of a literal without variables: for a guard, that there is nothing better."""
        if not (isinstance(literal, syntax.Atom) and literal.relation in self.guards):
            return literal
        relation, best = self.guards[literal.relation]
        attribute = self.program.relations[relation].attributes[best.column]
        value = syntax.Variable(attribute.name, attribute.type)
        ranged = replace(literal, relation=relation, args=(*literal.args[: best.column], value, *literal.args[best.column + 1 :]))
        return syntax.Builtin("=", (literal.args[best.column], syntax.Aggregate(best.op, value, (ranged,), attribute.type)))

    def _machine(self, relation: str) -> tuple[DemandMachine, RoundPlan, str]:
        if relation not in self.machines:
            asked, question = questions(self.program, relation)
            read = {
                name: self.guards[name][0] if name in self.guards else name for name in self.program.relations if name not in self.derived
            }
            sources = {name: TableSource(held, self.tables.layout.tables[held]) for name, held in read.items()}
            machine = DemandMachine(asked.program, asked.levels, self.tables, sources, aside=True)
            self.machines[relation] = machine, machine.plan([question], self.sizes), question
        return self.machines[relation]


class _Search:
    """The proofs among the rows that a machine has derived."""

    def __init__(self, reasoner: Reasoner, machine: DemandMachine) -> None:
        self.reasoner, self.program, self.machine = reasoner, reasoner.program, machine
        self.rules: dict[str, list[syntax.Rule]] = {}
        for rule in self.program.rules:
            self.rules.setdefault(rule.head.relation, []).append(rule)
        self.reached: dict[str, list[tuple[int, int]]] = {}  # how many rows a relation had after which step
        for step, (relation, size) in enumerate(machine.trace or ()):
            self.reached.setdefault(relation, []).append((size, step))
        self.proofs: dict[tuple[str, Row], Proof] = {}
        self.chosen: dict[tuple[str, Row], tuple[syntax.Rule, list[syntax.Literal]]] = {}

    def proof(self, relation: str, row: Row) -> Proof | None:
        """A proof of a row, made of proofs of rows that were derived before it; without recursion, for proofs can be deep."""
        if self.number(relation, row) is None:
            return None
        waiting = [(relation, row)]
        while waiting:
            goal = waiting[-1]
            rule, body = self.instance(*goal)
            needed = [(atom.relation, _row(atom)) for atom in body if isinstance(atom, syntax.Atom)]
            missing = [fact for fact in needed if fact[0] in self.reasoner.derived and fact not in self.proofs]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if goal in self.proofs:
                continue
            fact = _fact(self.program, *goal)
            because = tuple(self.reason(literal) for literal in body)
            self.proofs[goal] = Proof(fact, show_statement(rule.source), str(rule.source.span), because, *goal)
        return self.proofs[relation, row]

    def instance(self, relation: str, row: Row) -> tuple[syntax.Rule, list[syntax.Literal]]:
        """A rule, and its body without variables, that gives a row from rows derived before it."""
        if (relation, row) not in self.chosen:
            number = self.number(relation, row)
            assert number is not None, "only rows that were derived are proved"
            self.chosen[relation, row] = next(self._instances_of(relation, number))
        return self.chosen[relation, row]

    def _instances_of(self, relation: str, number: int) -> Iterator[tuple[syntax.Rule, list[syntax.Literal]]]:
        for rule in self.rules[relation]:
            for bindings in self.bindings(rule, number):
                body = [self.reasoner.said(rename_literal(literal, bindings)) for literal in rule.body]
                if all(self.earlier(literal, relation, number) for literal in body if isinstance(literal, syntax.Atom)):
                    yield rule, body

    def reason(self, literal: syntax.Literal) -> Proof:
        """Why a literal of a rule's instance holds."""
        if isinstance(literal, syntax.Atom):
            row = _row(literal)
            if literal.relation in self.reasoner.derived:
                return self.proofs[literal.relation, row]
            return Proof(_fact(self.program, literal.relation, row), relation=literal.relation, row=row)
        return Proof(show_literal(literal), asked=literal if any(True for _ in atoms((literal,))) else None)

    def earlier(self, atom: syntax.Atom, relation: str, number: int) -> bool:
        """Whether an atom's row was derived before another row."""
        if atom.relation not in self.reasoner.derived:
            return True
        own = self.number(atom.relation, _row(atom))
        return own is not None and self.step(atom.relation, own) < self.step(relation, number)

    def number(self, relation: str, row: Row) -> int | None:
        """The number of a row in its work table."""
        layout = self.machine.layout
        where = " AND ".join(f"{column} = ?" for column in layout.columns[relation])
        encoders = [encoder(type_) for type_ in layout.types[relation]]
        stored = tuple([e(v) if e else v for e, v in zip(encoders, row, strict=True)]) if row else (1,)
        entry = self.machine.tables.execute(f"SELECT rowid FROM {quote(layout.tables[relation])} WHERE {where}", stored).fetchone()
        return None if entry is None else int(entry[0])

    def step(self, relation: str, number: int) -> int:
        """The step in which a row was derived."""
        sizes = self.reached[relation]
        return sizes[bisect_left(sizes, (number, -1))][1]

    def bindings(self, rule: syntax.Rule, number: int) -> Iterator[dict[str, syntax.Term]]:
        """The values of a rule's variables in its instances that give a row."""
        statements, sizes = self.reasoner.statements, self.machine.sizes
        grown = tuple(sizes.get(atom.relation, 0).bit_length() for atom in rule.body if isinstance(atom, syntax.Atom))
        key = self.machine.layout.label, id(rule), grown
        if key not in statements:
            statements[key] = self._instances(rule)
        statement = statements[key]
        for cells in self.machine.tables.execute(statement.sql, {**statement.parameters, "since": number - 1, "until": number}):
            bound: dict[str, syntax.Term] = {}
            for variable, cell in zip(statement.shown, cells, strict=False):
                assert variable.type is not None, "checked programs are typed"
                decode = decoder(variable.type)
                bound[variable.name] = syntax.Constant(
                    decode(cell) if decode else cell, variable.type, unsigned=variable.type.kind == "unsigned"
                )
            yield bound

    def _instances(self, rule: syntax.Rule) -> _Instances:
        """A statement for the instances of a rule that give one row of its relation.

        What was derived for a question has the question's values in its columns, so looking there by one of them may find everything.
        """
        shown = list({variable.name: variable for literal in (rule.head, *rule.body) for variable in variables(literal)}.values())
        attributes = tuple(syntax.Attribute(variable.name, "", variable.type) for variable in shown)
        machine = self.machine
        program = replace(
            machine.layout.program, declarations=(*machine.layout.program.declarations, syntax.Declaration(INSTANCE, attributes))
        )
        layout = WorkLayout(program, machine.tables, machine.sources, machine.layout.label)
        row, equalities = flat(rule.head, names(rule, into_aggregates=True))
        asking = rule.derive(syntax.Atom(INSTANCE, tuple(shown)), body=(row, *rule.body, *equalities))
        rows = expected(machine.layout, self.reasoner.sizes) | {relation: size * size for relation, size in machine.sizes.items()}
        chosen = select(asking, layout, machine.tables.dialect, Choice(first=0, window="rowid", rows=rows))
        machine.serve(chosen.searches)
        return _Instances(chosen.text, chosen.parameters, shown)


def provable(program: Program) -> Program:
    """A plain program whose proofs can say which rows they rest on."""
    return replace(program, rules=tuple(_named(rule) for rule in program.rules))


def guarded(program: Program) -> tuple[Program, dict[str, tuple[str, Best]]]:
    """A provable program in which relations that keep the best have the rules of their candidates, each with an atom that says that the relation has the row; and the relations that such atoms
    are of, and what these keep."""
    through = [component for component in components(program) if component.best]
    if not through:
        return program, {}
    naming, kept = Naming(program.relations), {name: best for component in through for name, best in component.best.items()}
    own = frozenset(name for component in through for name in component.relations)
    guards = {name: naming(name, "kept") for name in sorted(kept)}
    rules = [rule for rule in program.rules if rule.head.relation not in own]
    for rule in (rule for component in through for rule in component.candidates.rules):
        if rule.head.relation in guards:
            row, equalities = flat(rule.head, names(rule, into_aggregates=True))
            rule = rule.derive(rule.head, body=(*rule.body, *equalities, replace(row, relation=guards[row.relation])))
        rules.append(rule)
    declarations = (replace(program.relations[name], relation=guard) for name, guard in guards.items())
    made = replace(program, declarations=(*program.declarations, *declarations), rules=tuple(map(_named, rules)))
    return made, {guard: (name, kept[name]) for name, guard in guards.items()}


def questions(program: Program, relation: str) -> tuple[MagicProgram, str]:
    """What proofs of single rows of a relation are looked for among, on demand; and the relation that these rows are put into."""
    pattern = "b" * program.relations[relation].arity
    asked = magic(program, [(relation, pattern)], factoring=False)
    return asked, asked.questions[relation, pattern]


def _named(rule: syntax.Rule) -> syntax.Rule:
    """The rule with variables for `_` in its atoms, so that a proof can say which rows they were."""
    fresh = (name for name in (f"v{number}" for number in count(1)) if name not in names(rule, into_aggregates=True))

    def named(arg: syntax.Term) -> syntax.Term:
        return syntax.Variable(next(fresh), arg.type) if isinstance(arg, syntax.Wildcard) else arg

    return rule.derive(rule.head, body=tuple(map_terms(part, named) if isinstance(part, syntax.Atom) else part for part in rule.body))


def _row(atom: syntax.Atom) -> Row:
    """The row that an atom without variables names."""
    return tuple(arg.value for arg in atom.args if isinstance(arg, syntax.Constant))


def _fact(program: Program, relation: str, row: Row) -> str:
    types = program.relations[relation].types
    return show_literal(syntax.Atom(relation, tuple(syntax.Constant(value, type_) for value, type_ in zip(row, types, strict=True))))
