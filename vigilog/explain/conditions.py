"""Shows what is done with the changes of views: each condition as it is written, unfolded, and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from vigilog.conditions.conditions import Conditions, conditions_of
from vigilog.conditions.support import own_rules
from vigilog.core.errors import counted
from vigilog.language.conditions import DEFERRED, ENFORCED, Alert, Integrity
from vigilog.language.parts import atoms
from vigilog.language.printer import show_constant
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Constant, Rule
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.separate import as_maintained
from vigilog.rewriting.sections import Section, section, show_sections


def explain_conditions(program: Program, view: str | None = None) -> str:
    """The conditions of a checked program, or those on one relation, as a program that parses again."""
    separated, _ = as_maintained(program)
    made, conditions = conditions_of(program, separated)
    shown = [name for name in conditions.relations if view in (None, name)]
    if not shown:
        return "// there are no conditions"
    naming = Naming(made.relations)
    return show_sections([part for name in shown for part in _sections(made, conditions, name, naming)])


def _sections(made: Program, conditions: Conditions, relation: str, naming: Naming) -> Iterator[Section]:
    """A condition as it is written, with what it does; unfolded; and the views beside it."""
    written = [rule.derive(head, body=rule.body) for rule in made.rules for head in rule.heads if head.relation == relation]
    unfolded = own_rules(made, relation, unfolded=True) if written else []
    title = "; ".join([relation, *_does(conditions, relation)])
    declarations = dict(made.relations)
    yield (
        section(title, written, declarations)
        if written
        else Section(f"{title} (a base relation)", replace(made, declarations=(made.relations[relation],), directives=(), rules=()))
    )
    if unfolded:
        name = naming(relation, "unfolded")
        declarations[name] = replace(made.relations[relation], relation=name)
        rules = [rule.derive(replace(rule.head, relation=name), body=rule.body) for rule in unfolded]
        yield section(f"{relation}, unfolded, is indexed by {', '.join(_indexed(unfolded)) or 'nothing'}", rules, declarations)
    beside = _beside(conditions, relation)
    rules = [rule for rule in made.rules if rule.heads[0].relation in beside]
    if rules:
        yield section(f"{relation}: keys that hold, and proofs", rules, declarations)


def _does(conditions: Conditions, relation: str) -> Iterator[str]:
    for alert in conditions.alerts:
        if alert.relation == relation:
            yield _alert(conditions, alert)
    for constraint in conditions.constraints:
        if constraint.relation == relation:
            enforced = f"enforced, priority {constraint.priority}" if constraint.mode == ENFORCED else f"{constraint.mode}"
            yield f"constraint ({enforced}{_by(conditions, constraint) if constraint.mode != DEFERRED else ''})"
    for trigger in conditions.triggers:
        if trigger.relation == relation:
            yield f"trigger: {trigger.operation} {trigger.target}, priority {trigger.priority}"


def _alert(conditions: Conditions, alert: Alert) -> str:
    mode = "resatisfiable" if alert.resatisfiable else "nonresatisfiable"
    times = [
        f"{word} {counted(number, 'second')}"
        for word, number in (("for", alert.wait), ("keep", alert.keep), ("every", alert.every))
        if number
    ]
    return f"alert {alert.name} ({', '.join([mode + _by(conditions, alert), *(['unfolded'] if alert.unfold else []), *times])})"


def _by(conditions: Conditions, condition: Alert | Integrity) -> str:
    columns = conditions.program.relations[condition.relation].columns
    return f", by {', '.join(columns[place] for place in condition.key)}" if len(condition.key) < len(columns) else ""


def _indexed(rules: list[Rule]) -> list[str]:
    """The relations whose changes concern some rules, with the constants that a row must have."""
    patterns: dict[str, None] = {}
    for rule in rules:
        for atom, _ in atoms(rule.body):
            patterns.setdefault(_pattern(atom))
    return sorted(patterns)


def _pattern(atom: Atom) -> str:
    if not any(isinstance(arg, Constant) for arg in atom.args):
        return atom.relation
    cells = (show_constant(arg.value, unsigned=arg.unsigned) if isinstance(arg, Constant) else "_" for arg in atom.args)
    return f"{atom.relation}({', '.join(cells)})"


def _beside(conditions: Conditions, relation: str) -> set[str]:
    """The views that are there for a condition alone."""
    support = conditions.support
    views = {name for (own, _), name in support.keys.items() if own == relation}
    return views.union(*(names for (own, _), names in support.proofs.items() if own == relation)) - {relation}
