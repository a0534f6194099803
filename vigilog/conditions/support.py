"""Views beside a condition's own, whose changes say all that is to be known of it (docs/decisions/003-conditions.md).

Which keys hold is a projection; what proves a row is a binding of the variables that a rule names:

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = '''.decl stock, minimum, low(item: symbol, n: number) low(i, n) :- stock(i, n), minimum(i, m), n < m.
... .alert low(key=item, mode=resatisfiable)'''
>>> program, support = supported(check(text).program)
>>> print("\\n".join(show_statement(rule) for rule in program.rules[1:]))
low_by_item(item) :- low(item, _).
low_proof_1(i, n, m) :- stock(i, n), minimum(i, m), n < m.
>>> support.keys, support.proofs
({('low', (0,)): 'low_by_item'}, {('low', False): ('low_proof_1',)})
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from vigilog.language.conditions import ENFORCED, Alert, Integrity, alerts, constraints
from vigilog.language.parts import names
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Declaration, Rule, Variable, Wildcard
from vigilog.rewriting.maintenance.counting import Bindings, bindings
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.normalize import ways
from vigilog.rewriting.program.relevant import relevant
from vigilog.rewriting.program.unfold import unfold


@dataclass(frozen=True)
class Support:
    """What the views beside conditions are called: those of the keys of a relation, and those of its proofs, as its own rules give them or as the unfolded ones do.

    Where a relation is its own keys, or its rows are their own proofs, it is named itself.
    """

    keys: Mapping[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    proofs: Mapping[tuple[str, bool], tuple[str, ...]] = field(default_factory=dict)

    @property
    def views(self) -> frozenset[str]:
        return frozenset(self.keys.values()).union(*self.proofs.values())


def supported(program: Program) -> tuple[Program, Support]:
    """A checked program, with what is stated kept apart from what is derived, and the views that its conditions need."""
    naming = Naming(program.relations)
    keys: dict[tuple[str, tuple[int, ...]], str] = {}
    proofs: dict[tuple[str, bool], tuple[str, ...]] = {}
    declarations: list[Declaration] = []
    rules: list[Rule] = []
    watched = alerts(program)
    keyed: list[Alert | Integrity] = [*watched, *(constraint for constraint in constraints(program) if constraint.mode == ENFORCED)]
    for condition in keyed:
        if (condition.relation, condition.key) not in keys:
            keys[condition.relation, condition.key] = name = _keys_name(program, condition, naming)
            if name != condition.relation:
                declarations.append(_projected(program, condition, name))
                rules.append(_projection(program, condition, name))
    for alert in watched:
        if alert.resatisfiable and (alert.relation, alert.unfold) not in proofs:
            parts = [*_proofs(program, alert, naming)]
            declared = {part.declaration.relation: part.declaration for part in parts}
            declarations += declared.values()
            rules += [part.rule for part in parts]
            proofs[alert.relation, alert.unfold] = tuple(declared) or (alert.relation,)
    made = replace(program, declarations=(*program.declarations, *declarations), rules=(*program.rules, *rules))
    return made, Support(keys, proofs)


def _keys_name(program: Program, condition: Alert | Integrity, naming: Naming) -> str:
    columns = program.relations[condition.relation].columns
    whole = len(condition.key) == len(columns)
    return condition.relation if whole else naming(condition.relation, "by", *(columns[place] for place in condition.key))


def _projected(program: Program, condition: Alert | Integrity, name: str) -> Declaration:
    attributes = program.relations[condition.relation].attributes
    return Declaration(name, tuple(attributes[place] for place in condition.key), span=condition.span)


def _projection(program: Program, condition: Alert | Integrity, name: str) -> Rule:
    attributes = program.relations[condition.relation].attributes
    columns = [Variable(attribute.name, attribute.type) for attribute in attributes]
    args = tuple(column if place in condition.key else Wildcard(column.type) for place, column in enumerate(columns))
    head = Atom(name, tuple(columns[place] for place in condition.key))
    return Rule((head,), (Atom(condition.relation, args),), condition.span)


def _proofs(program: Program, alert: Alert, naming: Naming) -> Iterator[Bindings]:
    """The bindings of a condition's rules; none if each of its rows is a proof. The ways of one rule that bind the same variables share a relation, for they are bindings of one rule."""
    groups: dict[object, list[Rule]] = {}
    for number, rule in enumerate(own_rules(program, alert.relation, unfolded=alert.unfold)):
        written = replace(rule, origin=None) if alert.unfold else rule  # what a proof shows
        groups.setdefault(number if alert.unfold else (id(rule.origin), frozenset(names(rule))), []).append(written)
    if not groups or (len(groups) == 1 and all(map(_says_all, *groups.values()))):
        return
    stem = f"{alert.relation}_unfolded_proof" if alert.unfold else f"{alert.relation}_proof"
    for ways_ in groups.values():
        made = list(bindings((rule.derive(replace(rule.head, relation=stem), body=rule.body) for rule in ways_), naming))
        for part in made:
            shared = sorted(map(str, part.rule.head.args)) == sorted(map(str, made[0].rule.head.args))
            yield (
                replace(part, declaration=made[0].declaration, rule=part.rule.derive(made[0].rule.head, body=part.rule.body))
                if shared
                else part
            )


def own_rules(program: Program, relation: str, *, unfolded: bool) -> list[Rule]:
    """The rules of a relation, as they are written, a rule with `;` being one for each way; or unfolded, down to what is recursive, negated or aggregated."""
    if unfolded:
        program = relevant(program.with_rules(tuple(way for rule in program.rules for way in ways(program, rule))), [relation])
        program = unfold(program, [name for name in program.relations if name != relation])
        return [rule for rule in program.rules if rule.head.relation == relation]
    heading = (rule for rule in program.rules if any(head.relation == relation for head in rule.heads))
    return [way for rule in heading for way in ways(program, rule) if way.head.relation == relation]


def _says_all(rule: Rule) -> bool:
    """Whether each row of the head is one binding of the variables that the rule names."""
    return names(rule) <= {arg.name for arg in rule.head.args if isinstance(arg, Variable)}
