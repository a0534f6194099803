"""Groundedness: every variable gets its values from somewhere.

A variable is grounded by a place of its own in a positive atom, or by `=` from a term whose variables are grounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from vigilog.core.errors import Finding, Findings
from vigilog.language.slips import NO_NULLS
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constraint,
    Disjunction,
    Functor,
    Literal,
    Negation,
    Rule,
    Term,
    Truth,
    Variable,
    Wildcard,
    aggregates,
    names,
    subterms,
    terms,
    variables,
)

_RULE = "a variable must stand in a positive atom, or be given by = from variables that do"


def check_safety(rule: Rule, findings: Findings) -> None:
    scope = names(rule)
    grounded = grounded_by(rule.body, set(), scope)
    if found := _ungrounded(rule, grounded, scope):
        roots = scope - grounded - set(_following(rule.body, grounded, scope))
        followed = grounded_by(rule.body, grounded | roots, scope) - roots
        findings.items += _ungrounded(rule, followed, scope) or found


def _ungrounded(rule: Rule, grounded: set[str], scope: set[str]) -> list[Finding]:
    findings, reported = Findings(), set[str]()
    for head in rule.heads:
        for term in head.args:
            _check_term(term, grounded, scope, rule, reported, findings)
    _check_body(rule.body, grounded, scope, rule, reported, findings)
    return findings.items


def grounded_by(body: tuple[Literal, ...], given: set[str], scope: set[str]) -> set[str]:
    """The variables that a conjunction grounds, given those grounded already; `scope` are the names outside aggregates."""
    grounded = set(given)
    while True:
        before = len(grounded)
        for literal in body:
            match literal:
                case Atom():
                    grounded |= {arg.name for arg in literal.args if isinstance(arg, Variable)}
                case Constraint(op="=", args=(left, right)):
                    for variable, term in ((left, right), (right, left)):
                        if isinstance(variable, Variable) and needs(term, scope) <= grounded:
                            grounded.add(variable.name)
                case Disjunction():
                    ways = [grounded_by(branch, grounded, scope) for branch in literal.branches]
                    grounded |= set.intersection(*ways)
                case Negation() | Constraint() | Truth():
                    pass
                case _:
                    assert_never(literal)
        if len(grounded) == before:
            return grounded


def _following(body: tuple[Literal, ...], grounded: set[str], scope: set[str]) -> Iterator[str]:
    """Variables that would be grounded by `=` if others were: an error about them would only repeat the one about those."""
    for literal in body:
        if isinstance(literal, Disjunction):
            for branch in literal.branches:
                yield from _following(branch, grounded, scope)
        elif isinstance(literal, Constraint) and literal.op == "=":
            left, right = literal.args
            for variable, term in ((left, right), (right, left)):
                if isinstance(variable, Variable) and not isinstance(term, Variable) and variable.name not in needs(term, scope):
                    yield variable.name


def needs(term: Term, scope: set[str]) -> set[str]:
    """The variables of `scope` that a term needs to have a value: an aggregate needs those it shares with the scope."""
    return names(term) | (names(term, into_aggregates=True) & scope)


def awaits(atom: Atom, others: Iterable[Constraint], known: Collection[str], scope: set[str]) -> bool:
    """Whether one of the other literals will compute an argument of an atom when more is known, so that reading the atom had better wait.

    >>> from vigilog.language.parser import parse
    >>> t, u, equality = parse("p(x, y) :- t(n, y), u(x), n = x - 1.").rules[0].body
    >>> awaits(t, [equality], {"y"}, {"n", "x", "y"}), awaits(t, [equality], {"x"}, {"n", "x", "y"}), awaits(u, [equality], (), {"n", "x", "y"})
    (True, False, False)
    """
    own = names(atom)
    for literal in others:
        match literal:
            case Constraint(op="=", args=(Variable(name=name), Functor() as term) | (Functor() as term, Variable(name=name))):
                if name in own and name not in known and not needs(term, scope) <= own.union(known):
                    return True
            case Constraint():
                pass
    return False


def _check_body(body: tuple[Literal, ...], grounded: set[str], scope: set[str], rule: Rule, reported: set[str], findings: Findings) -> None:
    for literal in body:
        if isinstance(literal, Disjunction):
            for branch in literal.branches:
                _check_body(branch, grounded_by(branch, grounded, scope), scope, rule, reported, findings)
        else:
            for term in terms(literal):
                _check_term(term, grounded, scope, rule, reported, findings)


def _check_term(term: Term, grounded: set[str], scope: set[str], rule: Rule, reported: set[str], findings: Findings) -> None:
    for variable in variables(term):
        if variable.name not in grounded and variable.name not in reported:
            reported.add(variable.name)
            findings.error(
                "ungrounded", f"{variable.name} has no values to take", variable.span, rule=_RULE, hint=_hint(variable.name, rule)
            )
    for inner in subterms(term):
        if isinstance(inner, Aggregate):
            _check_aggregate(inner, grounded, scope, rule, reported, findings)


def _check_aggregate(aggregate: Aggregate, grounded: set[str], scope: set[str], rule: Rule, reported: set[str], findings: Findings) -> None:
    own = names_in(aggregate)
    inner_scope = scope | own
    given = {name for name in grounded if name in scope}
    inside = grounded_by(aggregate.body, given, inner_scope)
    for name in sorted((own & scope) - grounded - reported):
        reported.add(name)
        place = next(v for v in variables(aggregate, into_aggregates=True) if v.name == name)
        findings.error(
            "ungrounded",
            f"{name} is used outside this aggregate, but only the aggregate binds it",
            place.span,
            rule="what an aggregate binds stays inside it; a variable it shares with the rule must be grounded there",
            hint=f"bind {name} outside too, or rename it inside",
        )
    _check_body(aggregate.body, inside | reported, inner_scope, rule, reported, findings)
    if aggregate.target is not None:
        _check_term(aggregate.target, inside | reported, inner_scope, rule, reported, findings)
    _check_ways(aggregate, scope, findings)


def _check_ways(aggregate: Aggregate, scope: set[str], findings: Findings) -> None:
    """The ways of a disjunction in an aggregate count bindings of the same variables."""
    rule = "in an aggregate a binding that holds several ways counts once, so all ways bind the same variables"
    hint = "define the disjunction as a relation of its own"
    own = scope | names_in(aggregate)
    for literal in aggregate.body:
        if not isinstance(literal, Disjunction):
            continue
        if any(isinstance(term, Wildcard) for atom in _parts(literal) if isinstance(atom, Atom) for term in atom.args):
            findings.error("wildcard", "_ cannot stand in a disjunction inside an aggregate", literal.span, rule=rule, hint=hint)
        elif any(not _is_named(part, inner) for part in _parts(literal) for inner in aggregates(part)):
            findings.error("unsupported", "an aggregate cannot stand in a disjunction inside an aggregate", literal.span, hint=hint)
        elif not _agree(literal, _grounded_beside(literal, aggregate.body, scope, own), own):
            findings.error("ungrounded", "the ways of this disjunction bind different variables", literal.span, rule=rule, hint=hint)


def _agree(disjunction: Disjunction, given: set[str], scope: set[str]) -> bool:
    """Whether all ways of a disjunction that can hold bind the same variables, but for those that `=` gives from these."""
    ways = list(filter(_can_hold, disjunction.branches))
    shared = set.intersection(*(grounded_by(way, given, scope) for way in ways)) if ways else given

    def determined(way: tuple[Literal, ...]) -> set[str]:
        return grounded_by(tuple(part for part in way if isinstance(part, Constraint)), shared, scope)

    within = ((way, literal) for way in ways for literal in way if isinstance(literal, Disjunction))
    return all(grounded_by(way, given, scope) <= determined(way) for way in ways) and all(
        _agree(literal, _grounded_beside(literal, way, given, scope), scope) for way, literal in within
    )


def _grounded_beside(literal: Literal, body: tuple[Literal, ...], given: set[str], scope: set[str]) -> set[str]:
    return grounded_by(tuple(other for other in body if other is not literal), given, scope)


def _can_hold(branch: tuple[Literal, ...]) -> bool:
    return Truth(False) not in branch and all(any(map(_can_hold, part.branches)) for part in branch if isinstance(part, Disjunction))


def _parts(literal: Literal) -> Iterator[Literal]:
    """The literals in a disjunction, whatever its depth."""
    if isinstance(literal, Disjunction):
        for branch in literal.branches:
            for part in branch:
                yield from _parts(part)
    else:
        yield literal


def _is_named(literal: Literal, aggregate: Aggregate) -> bool:
    return isinstance(literal, Constraint) and literal.op == "=" and aggregate is literal.args[1] and isinstance(literal.args[0], Variable)


def names_in(aggregate: Aggregate) -> set[str]:
    found = set() if aggregate.target is None else names(aggregate.target)
    return found.union(*(names(literal) for literal in aggregate.body))


def _hint(name: str, rule: Rule) -> str:
    if name.lower() in ("null", "none"):
        return NO_NULLS
    negated = [literal for literal in rule.body if isinstance(literal, Negation) and name in names(literal)]
    if negated:
        return f"a negated atom gives no values: bind {name} by a positive atom first, or write _ if any value will do"
    if any(name in names(aggregate, into_aggregates=True) for aggregate in aggregates(rule)):
        return f"what an aggregate binds stays inside it; bind {name} outside"
    return f"bind {name} in the body" if rule.body else f'a fact has constants only; a text is written "{name}"'
