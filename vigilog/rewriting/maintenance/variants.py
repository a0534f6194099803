"""What a change of a rule's body does to its head, as rules.

For a plain rule `p :- body` and relations that changed, variants come out:

* *losing* ones find rows of `p` that may have lost a proof, because some literal stopped holding. They may find too many, never too few; each is a row of `p` as it was,
  and is then tried for another proof (`proving`).
* *gaining* ones find rows with a new proof: some literal began to hold, and all of them hold now.

They are read when the relations below `p` are in their new state already and their net changes are at hand. A literal that held before therefore holds in the new state, or is among what was
lost. A variant says for each literal of its body where to read it. (Staudt & Jarke 1996, section 3: the rules D, R and I, with `r` and `r_new` read from one table.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, product
from typing import assert_never

from vigilog.language.safety import grounded_by, needs
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constraint,
    Disjunction,
    Literal,
    Negation,
    Rule,
    Term,
    Truth,
    Variable,
    atoms,
    names,
    rename_literal,
    variables,
)
from vigilog.rewriting.maintenance.states import Change
from vigilog.rewriting.maintenance.touched import groundable

NEW = "new"  # the relation as it is now
LOST, GAINED = "lost", "gained"  # its net change
RECENT = "recent"  # rows of the component itself that the last round found
CANDIDATE = "candidate"  # rows of the head's relation that are to be tried


Changes = Mapping[str, Change]
Sourced = tuple[Literal, str]


@dataclass(frozen=True)
class Variant:
    """A rule, for each place of its body the source it is read from, and the place that is read first."""

    rule: Rule
    sources: tuple[str, ...]
    first: int


def losing(rule: Rule, changes: Changes, recent: int | None = None) -> Iterator[Variant]:
    """Finds rows of the head's relation that may have lost a proof: through a change, or through the recent rows at a place.

    Proofs of recent rows that a change took part in need not be looked for: those of the change have found them, for the component is still as it was.
    """
    choices = [list(_before(literal, changes)) for literal in rule.body]
    if recent is not None:
        choices = [ways[:1] if index != recent else [(rule.body[recent], RECENT)] for index, ways in enumerate(choices)]
    for chosen in product(*choices):
        if any(source in (LOST, GAINED, RECENT) for _, source in chosen):
            parts = [(literal, source) for literal, source in chosen if literal is not None]
            certain = len(parts) == len(chosen) and all(_surely_before(part, changes) for part in parts)
            yield _variant(rule, rule.head, parts) if certain else _matching(rule, parts)
    if recent is None:
        kept = [(literal, NEW) for literal in rule.body if not _changed(literal, changes) or isinstance(literal, Atom)]
        for prefix in _touched(rule, changes):
            yield _matching(rule, [*prefix, *kept])


def gaining(rule: Rule, changes: Changes, recent: int | None = None) -> Iterator[Variant]:
    """Finds rows that the head's relation does not have, and that have a new proof."""
    new = [(literal, NEW) for literal in rule.body]
    unknown = (Negation(rule.head), NEW)
    if recent is not None:
        yield _variant(rule, rule.head, [(part, RECENT if index == recent else NEW) for index, part in enumerate(rule.body)] + [unknown])
        return
    for index, literal in enumerate(rule.body):
        match literal:
            case Atom() if literal.relation in changes and changes[literal.relation].gained:
                yield _variant(
                    rule, rule.head, [(part, GAINED if place == index else NEW) for place, (part, _) in enumerate(new)] + [unknown]
                )
            case Negation(literal=Atom() as atom) if atom.relation in changes and changes[atom.relation].lost:
                yield _variant(rule, rule.head, [(atom, LOST), *new, unknown])
            case Atom() | Negation() | Constraint() | Truth():
                pass
            case Disjunction():
                raise AssertionError("plain rules have no disjunctions outside aggregates")
            case _:
                assert_never(literal)
    for prefix in _touched(rule, changes):
        yield _variant(rule, rule.head, [*prefix, *new, unknown])


def proving(rule: Rule, recent: int | None = None) -> Variant:
    """Finds candidates that the rule proves now; with a place, only those whose proof uses a recent row there."""
    candidate = (rule.head, CANDIDATE)
    body = [(part, RECENT if index == recent else NEW) for index, part in enumerate(rule.body)]
    return _variant(rule, rule.head, [*body, candidate] if recent is not None else [candidate, *body])


def reads(rule: Rule) -> set[str]:
    """All relations a rule reads, those inside aggregates included."""
    return {atom.relation for atom, _ in atoms(rule.body)}


# -- the parts of a variant


def _before(literal: Literal, changes: Changes) -> Iterator[tuple[Literal | None, str]]:
    """The ways in which a literal can have held before; None where that is no longer to be seen."""
    match literal:
        case Atom():
            yield literal, NEW
            if literal.relation in changes and changes[literal.relation].lost:
                yield literal, LOST
        case Negation(literal=Atom() as atom) if _changed(literal, changes):
            yield None, NEW
            if changes[atom.relation].gained:
                yield atom, GAINED
        case Negation() | Constraint() | Truth():  # where it changed, an aggregate whose value was another one
            yield None if _changed(literal, changes) else literal, NEW
        case Disjunction():
            raise AssertionError("plain rules have no disjunctions outside aggregates")
        case _:
            assert_never(literal)


def _surely_before(part: Sourced, changes: Changes) -> bool:
    """Whether a literal held before as it is read now; where all did, the head was a row before. Of a gained row `q(x, 2)` that is not said: before, `!q(x, _)` may have been false for another."""
    match part:
        case Atom(relation=relation), source if source == NEW:
            return not (relation in changes and changes[relation].gained)
        case _, source:
            return source != GAINED


def _changed(literal: Literal, changes: Changes) -> bool:
    return any(atom.relation in changes for atom, _ in atoms((literal,)))


def _touched(rule: Rule, changes: Changes) -> Iterator[list[Sourced]]:
    """For each change inside an aggregate of the rule: literals that bind the groups it touches, and perhaps some more."""
    fresh = (f"t{number}" for number in count() if f"t{number}" not in names(rule, into_aggregates=True))
    scope = names(rule)
    for literal in rule.body:
        match literal:
            case Constraint(args=(Variable(), Aggregate() as aggregate)):
                for way in _ways(aggregate):
                    for prefix in _touched_way(way, changes):
                        yield _apart(prefix, scope, fresh)
            case Atom() | Negation() | Constraint() | Truth():
                pass
            case Disjunction():
                raise AssertionError("plain rules have no disjunctions outside aggregates")
            case _:
                assert_never(literal)


def _ways(aggregate: Aggregate) -> tuple[tuple[Literal, ...], ...]:
    match aggregate.body:
        case (Disjunction(branches=branches),):
            return branches
        case body:
            return (body,)


def _touched_way(way: tuple[Literal, ...], changes: Changes) -> Iterator[list[Sourced]]:
    steady = [part for part in way if isinstance(part, Atom) and not (part.relation in changes and changes[part.relation].lost)]
    for atom, _ in atoms(way):
        change = changes.get(atom.relation)
        others = [(part, NEW) for part in steady if part is not atom]
        if change is not None and change.lost:
            yield [(atom, LOST), *others]
        if change is not None and change.gained:
            yield [(atom, GAINED), *others]


def _apart(prefix: list[Sourced], scope: set[str], fresh: Iterator[str]) -> list[Sourced]:
    """The literals with new names for variables that are local to their aggregate."""
    literals = groundable((literal for literal, _ in prefix), scope)
    prefix = [(literal, source) for literal, (_, source) in zip(literals, prefix, strict=True)]
    found = {variable.name: variable for literal, _ in prefix for variable in variables(literal) if variable.name not in scope}
    renamed: dict[str, Term] = {name: replace(variable, name=next(fresh)) for name, variable in found.items()}
    return [(rename_literal(literal, renamed), source) for literal, source in prefix]


def _matching(rule: Rule, parts: list[Sourced]) -> Variant:
    """The variant whose heads are rows of the head's relation as it was; what the parts leave open is taken from these rows."""
    parts = _grounded(parts, names(rule))
    scope = names(rule)
    bound = grounded_by(tuple(literal for literal, _ in parts), set(), scope)
    args: list[Term] = []
    for place, arg in enumerate(rule.head.args):
        known = needs(arg, scope) <= bound
        args.append(arg if known else Variable(f"h{place} of {rule.head.relation}", arg.type))
    row = replace(rule.head, args=tuple(args))
    return _variant(rule, row, [*parts, (row, NEW)])


def _grounded(parts: list[Sourced], scope: set[str]) -> list[Sourced]:
    """The parts without those whose variables nothing binds any more."""
    while True:
        bound = grounded_by(tuple(literal for literal, _ in parts), set(), scope)
        kept = [part for part in parts if names(part[0]) <= bound]
        if len(kept) == len(parts):
            return kept
        parts = kept


def _variant(rule: Rule, head: Atom, parts: Iterable[Sourced]) -> Variant:
    parts = list(parts)
    sources = tuple(source for _, source in parts)
    first = min(range(len(parts)), key=lambda place: _ORDER[sources[place]])
    return Variant(rule.derive(head, body=tuple(literal for literal, _ in parts)), sources, first)


_ORDER = {RECENT: 0, LOST: 1, GAINED: 1, CANDIDATE: 2, NEW: 3}
