"""Exact changes of relations that are not stored, as rules.

The database is read in both of its states: `r` is the old one, `r_new` the new one, `r_del` and `r_ins` are the net change of a table. For a rule `p :- r_1, …, r_n`

* (D) `p_del` are rows of the old `p` that lost a proof: one literal is among what was lost, the others held before;
* (I) `p_ins` are rows of the new `p` with a new proof: one literal is among what was gained, the others hold now;
* (E) what lost a proof and is not in `p_new` is lost, `p_minus`; what has a new proof and was not in `p` is gained, `p_plus`.

`p` and `p_new` are derived on demand (`demand.py`). Only what is really lost or gained is followed further, in a recursion as well: a row that keeps another proof takes nothing with it.
That is where this differs from Staudt & Jarke's algorithm (`rederive.py`), which first deletes all that could be lost and then derives again what need not have been.
Where each row has a single proof, there is nothing to ask: what loses its proof is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from vigilog.language.safety import grounded_by
from vigilog.language.strata import components
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constraint,
    Declaration,
    Disjunction,
    Literal,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
    Wildcard,
    aggregates,
    atoms,
    names,
    rename,
    rename_literal,
    variables,
)
from vigilog.rewriting.demand import Demand
from vigilog.rewriting.magic import definitions_of, levels
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.states import States


@dataclass(frozen=True)
class External:
    """The rules, what each relation of the program is called in them, and the order of what is on demand."""

    program: Program
    states: Mapping[str, States]
    levels: Mapping[str, int]
    tables: frozenset[str]  # relations that are stored, with their net changes at hand


def external(program: Program, stored: Iterable[str] = ()) -> External:
    """The rules that find the changes of all derived relations that are not stored."""
    naming = Naming(program.relations)
    old = definitions_of(program, stored)
    tables = frozenset(program.relations.keys() - old.keys())
    states = {
        name: States(
            naming(name, "new"), naming(name, "del" if name in tables else "minus"), naming(name, "ins" if name in tables else "plus")
        )
        for name in program.relations
    }
    new = {states[name].new: [_in_new(rule, states) for rule in rules] for name, rules in old.items()}
    demand = Demand({**old, **new}, naming)
    for name, rules in old.items():
        certain = _single_proof(name, rules)
        lost = states[name].lost if certain else naming(name, "del")
        gained = states[name].gained if certain else naming(name, "ins")
        for rule in rules:
            for seed, rest in _losing(rule, states):
                demand.chain(rule, replace(rule.head, relation=lost), seed, rest)
            for seed, rest in _gaining(rule, states):
                demand.chain(rule, replace(rule.head, relation=gained), seed, rest)
        if not certain:
            _decide(program.relations[name], rules[0], (lost, states[name].lost, states[name].new), demand)
            _decide(program.relations[name], rules[0], (gained, states[name].gained, name), demand)
    demand.finish()
    declarations = dict(program.relations)
    for name, declaration in program.relations.items():
        made = {states[name].new, states[name].lost, states[name].gained}
        if name in old:
            made |= {naming(name, "del"), naming(name, "ins")}
        declarations |= {other: replace(declaration, relation=other) for other in sorted(made)}
    declarations |= demand.declarations
    level = levels(program)
    both = {**{name: level[name] for name in old}, **{states[name].new: level[name] for name in old}}
    rewritten = replace(program, declarations=tuple(declarations.values()), directives=(), rules=tuple(demand.rules))
    return External(rewritten, states, both, tables)


def _decide(declaration: Declaration, origin: Rule, parts: tuple[str, str, str], demand: Demand) -> None:
    """(E): candidates that the other state does not have are changes; so that state is asked for them."""
    candidate, changed, other = parts
    columns = tuple(Variable(attribute.name, attribute.type) for attribute in declaration.attributes)
    found = Atom(candidate, columns)
    pattern = demand.cheap_pattern(other)
    asked = demand.question(other, pattern, (column for column, mark in zip(columns, pattern, strict=True) if mark == "b"))
    demand.add(origin.derive(asked, body=(found,)))
    demand.add(origin.derive(Atom(changed, columns), body=(found, Negation(Atom(other, columns)))))


def _single_proof(name: str, rules: Sequence[Rule]) -> bool:
    """Whether no row can have two proofs: there is one rule, and a row of the head says what all its variables are."""
    if len(rules) > 1 or any(True for literal in rules[0].body for _ in aggregates(literal)):
        return False
    rule = rules[0]
    positive = [literal for literal in rule.body if isinstance(literal, Atom)]
    if any(atom.relation == name for atom, _ in atoms(rule.body)) or any(
        isinstance(arg, Wildcard) for atom in positive for arg in atom.args
    ):
        return False
    shown = {arg.name for arg in rule.head.args if isinstance(arg, Variable)}
    equalities = tuple(literal for literal in rule.body if isinstance(literal, Constraint) and literal.op == "=")
    return names(rule) <= grounded_by(equalities, shown, names(rule))


# -- which literal changed

Split = tuple[list[Literal], list[Literal]]


def _losing(rule: Rule, states: Mapping[str, States]) -> Iterator[Split]:
    """What to read first, and the rest, for each way in which a proof can have been lost."""
    for index, literal in enumerate(rule.body):
        others = [part for place, part in enumerate(rule.body) if place != index]
        match literal:
            case Atom():
                yield [replace(literal, relation=states[literal.relation].lost)], others
            case Negation(literal=Atom() as atom):
                yield [replace(atom, relation=states[atom.relation].gained)], [*others, literal] if _open(atom) else others
    for seed, rest in _touched(rule, states):
        yield seed, [*rest, *rule.body]


def _gaining(rule: Rule, states: Mapping[str, States]) -> Iterator[Split]:
    """What to read first, and the rest, for each way in which a proof can have come."""
    body = _in_new(rule, states).body
    for index, literal in enumerate(rule.body):
        others = [part for place, part in enumerate(body) if place != index]
        match literal:
            case Atom():
                yield [replace(literal, relation=states[literal.relation].gained)], others
            case Negation(literal=Atom() as atom):
                yield [replace(atom, relation=states[atom.relation].lost)], [*others, body[index]] if _open(atom) else others
    for seed, rest in _touched(rule, states):
        yield seed, [*rest, *body]


def _open(atom: Atom) -> bool:
    return any(isinstance(arg, Wildcard) for arg in atom.args)


def _touched(rule: Rule, states: Mapping[str, States]) -> Iterator[Split]:
    """For each change inside an aggregate: what binds the groups it touches."""
    fresh = (f"t{number}" for number in count() if f"t{number}" not in names(rule, into_aggregates=True))
    scope = names(rule)
    for literal in rule.body:
        match literal:
            case Constraint(args=(_, Aggregate() as aggregate)):
                for way in _ways(aggregate):
                    for atom, _ in atoms(way):
                        others = [part for part in way if isinstance(part, Atom) and part is not atom]
                        for change, rest in (
                            (states[atom.relation].lost, others),
                            (states[atom.relation].gained, others),
                            (states[atom.relation].lost, [_literal_in_new(part, states) for part in others]),
                            (states[atom.relation].gained, [_literal_in_new(part, states) for part in others]),
                        )[: 4 if others else 2]:
                            yield _apart([replace(atom, relation=change)], rest, scope, fresh)


def _apart(seed: list[Atom], rest: Sequence[Literal], scope: set[str], fresh: Iterator[str]) -> Split:
    """The literals with new names for variables that are local to their aggregate."""
    found = {variable.name: variable for literal in (*seed, *rest) for variable in variables(literal) if variable.name not in scope}
    renamed: dict[str, Term] = {name: replace(variable, name=next(fresh)) for name, variable in found.items()}
    return [rename_literal(literal, renamed) for literal in seed], [rename_literal(literal, renamed) for literal in rest]


def _ways(aggregate: Aggregate) -> tuple[tuple[Literal, ...], ...]:
    match aggregate.body:
        case (Disjunction(branches=branches),):
            return branches
    return (aggregate.body,)


# -- the new state


def _in_new(rule: Rule, states: Mapping[str, States]) -> Rule:
    head = replace(rule.head, relation=states[rule.head.relation].new)
    return rule.derive(head, body=tuple(_literal_in_new(literal, states) for literal in rule.body))


def _literal_in_new(literal: Literal, states: Mapping[str, States]) -> Literal:
    """The literal with every atom read in the new state."""

    def term(part: Term) -> Term:
        if isinstance(part, Aggregate):
            target = None if part.target is None else term(part.target)
            return replace(part, target=target, body=tuple(_literal_in_new(inner, states) for inner in part.body))
        return rename(part, {})

    match literal:
        case Atom():
            return replace(literal, relation=states[literal.relation].new)
        case Negation():
            inner = _literal_in_new(literal.literal, states)
            assert isinstance(inner, Atom | Constraint), "only atoms and tests are negated"
            return replace(literal, literal=inner)
        case Constraint():
            return replace(literal, args=tuple(term(arg) for arg in literal.args))
        case Disjunction():
            return replace(literal, branches=tuple(tuple(_literal_in_new(part, states) for part in branch) for branch in literal.branches))
    return literal


def recursive_relations(program: Program) -> set[str]:
    return {name for component in components(program) if component.recursive for name in component.relations}
