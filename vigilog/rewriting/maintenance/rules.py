"""What a change of a rule's body does to its head, as rules.

(Staudt & Jarke 1996, section 3.1; negation as in section 4.2.) For a rule `p :- r_1, …, r_n`, with `r` for the old state, `r_new` for the new one, `r_del` and `r_ins` for what a relation loses and gains,

* (D) `p_del` are rows that lost a proof: one literal is among what no longer holds, the others held before;
* (R) `p_red` are those of them that have a proof in the new state;
* (I) `p_ins` are rows with a new proof: one literal is among what did not hold, the others hold now.

Everything that finds changes is made of these: what is run for stored views (`plan.py`), what is run for others (`external.py`), and the algorithms as the paper prints them (`rewriting/paper/`).

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = ".decl e(x: number) .decl d(x: number) .decl p(x: number) p(x) :- e(x), !d(x)."
>>> states = {name: States(f"{name}_new", f"{name}_del", f"{name}_ins") for name in "edp"}
>>> [rule] = check(text).program.rules
>>> print("\\n".join(show_statement(variant.rule) for find in (deletions, insertions) for variant in find(rule, states)))
p_del(x) :- e_del(x), !d(x).
p_del(x) :- e(x), d_ins(x).
p_ins(x) :- e_ins(x), !d_new(x).
p_ins(x) :- e_new(x), d_del(x).
>>> print(show_statement(rederivation(rule, states, "p_red").rule))
p_red(x) :- p_del(x), e_new(x), !d_new(x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from vigilog.language import syntax
from vigilog.language.improving import Best
from vigilog.language.parts import names
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by
from vigilog.rewriting.maintenance.states import States, literal_in_new
from vigilog.rewriting.maintenance.touched import touched
from vigilog.rewriting.program.normalize import flat


@dataclass(frozen=True)
class Variant:
    """A rule for a change, and the place of the literal in its body that changed."""

    rule: syntax.Rule
    changed: int

    @property
    def first(self) -> syntax.Atom:
        literal = self.rule.body[self.changed]
        assert isinstance(literal, syntax.Atom), "what changed is read from a relation"
        return literal


def deletions(rule: syntax.Rule, states: Mapping[str, States], *, stored: bool = False) -> Iterator[Variant]:
    """(D): a rule for each literal that may have stopped to hold, and for each change in an aggregate. Of a stored view the rows of the groups that are touched are read, not computed."""
    head = replace(rule.head, relation=states[rule.head.relation].lost)
    for place, literal in enumerate(rule.body):
        match literal:
            case syntax.Atom():
                yield _variant(rule, head, rule.body, place, replace(literal, relation=states[literal.relation].lost))
            case syntax.Negation(literal=syntax.Atom() as atom):
                yield _variant(rule, head, rule.body, place, replace(atom, relation=states[atom.relation].gained))
            case syntax.Negation() | syntax.Builtin() | syntax.Truth():
                pass
            case syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("plain rules have no disjunctions outside aggregates, and no setof")
            case _:
                assert_never(literal)
    for prefix in touched(rule, states):
        yield _read_off(rule, head, prefix) if stored else Variant(rule.derive(head, body=(*prefix, *rule.body)), 0)


def insertions(rule: syntax.Rule, states: Mapping[str, States]) -> Iterator[Variant]:
    """(I): a rule for each literal that may have begun to hold, and for each change in an aggregate."""
    head = replace(rule.head, relation=states[rule.head.relation].gained)
    body = tuple(literal_in_new(literal, states) for literal in rule.body)
    for place, literal in enumerate(rule.body):
        match literal:
            case syntax.Atom():
                yield _variant(rule, head, body, place, replace(literal, relation=states[literal.relation].gained))
            case syntax.Negation(literal=syntax.Atom() as atom):
                yield _variant(rule, head, body, place, replace(atom, relation=states[atom.relation].lost))
            case syntax.Negation() | syntax.Builtin() | syntax.Truth():
                pass
            case syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("plain rules have no disjunctions outside aggregates, and no setof")
            case _:
                assert_never(literal)
    for prefix in touched(rule, states):
        yield Variant(rule.derive(head, body=(*prefix, *body)), 0)


def rederivation(rule: syntax.Rule, states: Mapping[str, States], red: str) -> Variant:
    """(R): what may be lost and has a proof in the new state."""
    body = (literal_in_new(literal, states) for literal in rule.body)
    deleted, equalities = flat(replace(rule.head, relation=states[rule.head.relation].lost), names(rule, into_aggregates=True))
    return Variant(rule.derive(replace(rule.head, relation=red), body=(deleted, *body, *equalities)), 0)


def seeking(rule: syntax.Rule, states: Mapping[str, States], best: Best | None) -> Variant:
    """(R) where the best is kept: what a rule gives in the new state for the keys of rows that may be lost."""
    body = (literal_in_new(literal, states) for literal in rule.body)
    own = states[rule.head.relation]
    deleted, equalities = flat(replace(rule.head, relation=own.lost), names(rule, into_aggregates=True))
    if best is not None:
        args = (syntax.Wildcard(arg.type) if place == best.column else arg for place, arg in enumerate(deleted.args))
        deleted = replace(deleted, args=tuple(args))
    return Variant(rule.derive(replace(rule.head, relation=own.gained), body=(deleted, *body, *equalities)), 0)


def new_state(origin: syntax.Rule, program: Program, name: str, states: Mapping[str, States]) -> tuple[syntax.Rule, syntax.Rule]:
    """(N′, N″): the new state of a relation by what it lost and gained."""
    old, new, lost, gained = (row(program.relations[name], relation) for relation in (name, *states[name].names))
    return origin.derive(new, body=(old, syntax.Negation(lost))), origin.derive(new, body=(gained,))


def row(declaration: syntax.Declaration, relation: str) -> syntax.Atom:
    """The atom for any row of a relation with the columns of a declaration."""
    return syntax.Atom(relation, tuple(syntax.Variable(attribute.name, attribute.type) for attribute in declaration.attributes))


def _variant(rule: syntax.Rule, head: syntax.Atom, body: tuple[syntax.Literal, ...], place: int, change: syntax.Atom) -> Variant:
    """The rule with a change instead of a literal. A negated literal with `_` says more than the change does, so it stays behind it."""
    negated = isinstance(body[place], syntax.Negation) and any(isinstance(arg, syntax.Wildcard) for arg in change.args)
    return Variant(rule.derive(head, body=(*body[:place], change, *body[place if negated else place + 1 :])), place)


def _read_off(rule: syntax.Rule, head: syntax.Atom, prefix: tuple[syntax.Literal, ...]) -> Variant:
    """The rows of a stored view in groups that a prefix binds. What no atom of the rule says about them, they say themselves."""
    flattened, equalities = flat(head, names(rule, into_aggregates=True).union(*map(names, prefix)))
    scope, row = names(rule) | names(flattened), replace(flattened, relation=rule.head.relation)
    parts = [*prefix, *(literal for literal in rule.body if isinstance(literal, syntax.Atom) or _compares(literal)), *equalities, row]
    while True:
        bound = grounded_by(tuple(parts), set(), scope)
        kept = [part for part in parts if names(part) <= bound]
        if len(kept) == len(parts):
            return Variant(rule.derive(flattened, body=tuple(parts)), 0)
        parts = kept


def _compares(literal: syntax.Literal) -> bool:
    return isinstance(literal, syntax.Builtin) and not any(isinstance(arg, syntax.Aggregate) for arg in literal.args)
