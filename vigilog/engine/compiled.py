"""A program as transactions see it: what is base, what is derived, how each view is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.conditions.conditions import Conditions, conditions_of
from vigilog.core.errors import Finding, ProgramError
from vigilog.core.values import Row
from vigilog.engine.deferred import deferred_program
from vigilog.engine.extension import Extension, extended
from vigilog.language.parts import atoms, definitions, is_fact
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.language.strata import components
from vigilog.language.syntax import Constant, Declaration
from vigilog.rewriting.maintenance.plan import Plan, plan
from vigilog.rewriting.maintenance.strategies import AUTO, EXTERNAL
from vigilog.rewriting.maintenance.strategies.choose import Decision, decide, depends_on, grouped_relations, kept_relations
from vigilog.rewriting.passes import rewrite
from vigilog.rewriting.program.separate import as_maintained


@dataclass(frozen=True)
class Compiled:
    """`program` is as written, less the rows that it states, which are `stated`. `plain` is what is maintained; in it a base relation's rows are at `homes`."""

    program: Program
    stated: Mapping[str, set[Row]]
    homes: Mapping[str, str]
    plain: Program
    wanted: str  # the strategy that is wished for
    strategies: dict[str, Decision]
    extension: Extension
    late: Program | None = None  # the rules of relations that are only asked
    conditions: Conditions = field(default_factory=Conditions)
    watched: frozenset[str] = frozenset()  # relations whose changes judges want to see
    queries: frozenset[str] = frozenset()  # outputs that clients have brought: nothing is kept for them

    @property
    def told(self) -> tuple[str, ...]:
        """The relations whose changes are found: the program's outputs, and what is watched besides. Queries are found apart."""
        outputs = tuple(name for name in self.program.outputs if name not in self.queries and name in self.plain.relations)
        watched = self.watched | self.conditions.views
        return (*outputs, *sorted(name for name in watched if name in self.plain.relations and name not in outputs))

    @cached_property
    def plan(self) -> Plan:
        """What is kept, and how it changes."""
        kept, grouped = kept_relations(self.plain, self.strategies), grouped_relations(self.plain, self.strategies)
        return plan(self.plain, self.told, kept, grouped)

    @property
    def stored(self) -> Collection[str]:
        return self.plan.kept.keys()

    def watching(self, relations: Collection[str]) -> Compiled:
        """The same program, of which judges want to see the changes of these relations."""
        made = replace(self, watched=frozenset(relations))
        return replace(made, strategies=decide(self.plain, made.told, self.wanted) | self._supporting() | self.strategies)

    def _supporting(self) -> dict[str, Decision]:
        """The strategy of views that only conditions need: `auto` keeps nothing of them."""
        reason = "it says which keys of a condition hold, or what proves them; its changes follow from the condition's own relations"
        own = self.conditions.support.views - self.program.relations.keys()
        return {name: Decision(EXTERNAL, reason) for name in own if name in self.plain.relations} if self.wanted == AUTO else {}

    def with_strategies(self, changed: Mapping[str, Decision]) -> Compiled:
        return replace(self, strategies={**self.strategies, **changed})

    def fingerprints(self) -> dict[str, str]:
        """For each relation of the plain program what tells its meaning, and how it is kept, from any other: equal ones have equal rows over equal bases."""
        kept, relations = self.plan.kept, self.plain.relations
        derived = components(self.plain)
        inside = {name for component in derived for name in component.relations}
        digests = {name: _digest(name, relations[name], []) for name in relations if name not in inside}
        for component in derived:
            below = sorted({atom.relation for rule in component.rules for atom, _ in atoms(rule.body)} - set(component.relations))
            parts = sorted(show_statement(rule) for rule in component.rules) + [digests[name] for name in below]
            for definition in definitions(component.rules).values():
                parts += [show_statement(definition), *map(show_statement, definition.rules), definition.text]
            for name in component.relations:
                digests[name] = _digest(name, relations[name], [kept[name].name if name in kept else "", *parts])
        for view, counted in self.plan.counting.counted.items():
            digests[counted.numbers] = _digest(counted.numbers, self.plan.beside[counted.numbers], [digests[view]])
        for group in self.plan.groups:  # by what the program says, whatever else is kept
            rows = sorted(show_statement(rule) for rule in self.plan.whole.rules if rule.head.relation == group.rows.relation)
            below = sorted(depends_on(self.plan.whole, group.rows.relation) & digests.keys())
            parts = [show_statement(group.definition), f"{group.parts} {group.own}", *rows, *(digests[name] for name in below)]
            digests |= {declaration.relation: _digest(declaration.relation, declaration, parts) for declaration in group.kept}
        return digests


def compiled(
    program: Program, given: Collection[str], strategy: str, watched: Collection[str] = (), queries: Collection[str] = ()
) -> Compiled:
    """Prepares a checked program; the relations in `given` have rows of their own, whatever the program says. Of those `watched` judges want to see the changes; `queries` are outputs that clients have brought."""
    ensure_maintained(program)
    extension = extended(program)
    bare = extension.shown.with_rules(tuple(rule for rule in extension.shown.rules if not is_fact(rule)))
    separated, homes = as_maintained(extension.ordinary, given)
    supported, conditions = conditions_of(bare, separated)
    plain = rewrite(supported)
    own = [name for name in bare.outputs if name not in queries and name in plain.relations]
    late = deferred_program(program, program.relations)
    made = Compiled(
        bare,
        _stated(extension.ordinary),
        homes,
        plain,
        strategy,
        decide(plain, own, strategy),
        extension,
        late,
        conditions,
        queries=frozenset(queries),
    )
    asked = [directive.option["demand"] for directive in program.directed("call")]
    return made.watching([*watched, *asked, *(extension.mediated.read if extension.mediated else ())])


def ensure_maintained(program: Program) -> None:
    """Raises ProgramError if a checked program says what is for a single evaluation only."""
    rule = "a recursion that is cut off is no view that could be kept as rows change, or asked"
    hint = "bound the recursion by its rules (x < 100)"
    findings = [
        Finding("unsupported", f".limitsize {directive.relation} is for vigilog run alone", directive.span, rule=rule, hint=hint)
        for directive in program.directed("limitsize")
    ]
    if findings:
        raise ProgramError(findings, program.texts)


def _digest(name: str, declaration: Declaration, parts: list[str]) -> str:
    columns = [f"{column}: {type_}" for column, type_ in zip(declaration.columns, declaration.types, strict=True)]
    return hashlib.sha256("\n".join([name, *columns, *parts]).encode()).hexdigest()[:16]


def _stated(program: Program) -> dict[str, set[Row]]:
    """The rows that the program itself states."""
    rows: dict[str, set[Row]] = {}
    for rule in program.rules:
        for head in rule.heads if is_fact(rule) else ():
            rows.setdefault(head.relation, set()).add(tuple(arg.value for arg in head.args if isinstance(arg, Constant)))
    return rows
