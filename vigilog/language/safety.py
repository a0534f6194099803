"""Groundedness: every variable gets its values from somewhere.

A variable is grounded by a place of its own in a positive atom, or by `=` from a term whose variables are grounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from vigilog.core.errors import Finding, Findings
from vigilog.language import syntax
from vigilog.language.parts import aggregates, collected, names, pattern, rigid, subterms, terms, variables
from vigilog.language.slips import NO_NULLS, NULLS

_RULE = "a variable must stand in a positive atom, or be given by = from variables that do"


def check_safety(rule: syntax.Rule, findings: Findings, constrained: Collection[str] = ()) -> None:
    """Reports the variables of a rule that get no values; an atom of a constrained relation gives none, and in a rule of one, only what is negated or aggregated needs some."""
    if constrained:
        rule = replace(rule, body=_without_values(rule.body, constrained))
        if all(head.relation in constrained for head in rule.heads):
            rule = replace(
                rule, heads=tuple(syntax.Atom(head.relation, ()) for head in rule.heads), body=_needing_values(rule.body, constrained)
            )
    scope = names(rule)
    grounded = grounded_by(rule.body, set(), scope)
    if ungrounded := _ungrounded(rule, grounded, scope):
        roots = scope - grounded - set(_following(rule.body, grounded, scope))
        followed = grounded_by(rule.body, grounded | roots, scope) - roots
        findings.items += _ungrounded(rule, followed, scope) or ungrounded


def _without_values(body: tuple[syntax.Literal, ...], constrained: Collection[str]) -> tuple[syntax.Literal, ...]:
    """The body in which an atom of a constrained relation only tests: as if negated, for this."""

    def changed(literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Atom() if literal.relation in constrained:
                return syntax.Negation(literal, literal.span)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(changed, branch)) for branch in literal.branches))
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.SetOf():
                return literal
            case _:
                assert_never(literal)

    return tuple(map(changed, body))


def _needing_values(body: tuple[syntax.Literal, ...], constrained: Collection[str]) -> tuple[syntax.Literal, ...]:
    """The body of a constrained relation's rule, less what needs no values there: its own kind of atoms, and comparisons of what has none."""
    scope = set[str]().union(*map(names, body))
    grounded = grounded_by(body, set(), scope)

    def needy(literal: syntax.Literal) -> syntax.Literal:
        match literal:
            case syntax.Negation(literal=syntax.Atom(relation=relation)) if relation in constrained:
                return syntax.Truth(True)
            case syntax.Builtin() if (
                literal.op not in ("match", "contains") and not any(aggregates(literal)) and not names(literal) <= grounded
            ):
                return syntax.Truth(True)
            case syntax.Disjunction():
                return replace(literal, branches=tuple(tuple(map(needy, branch)) for branch in literal.branches))
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth() | syntax.SetOf():
                return literal
            case _:
                assert_never(literal)

    return tuple(map(needy, body))


def _ungrounded(rule: syntax.Rule, grounded: set[str], scope: set[str]) -> list[Finding]:
    findings, reported = Findings(), set[str]()
    for head in rule.heads:
        for term in head.args:
            _check_term(term, grounded, scope, rule, reported, findings)
    _check_body(rule.body, grounded, scope, rule, reported, findings)
    return findings.items


def grounded_by(body: tuple[syntax.Literal, ...], given: set[str], scope: set[str]) -> set[str]:
    """The variables that a conjunction grounds, given those grounded already; `scope` are the names outside aggregates."""
    grounded = set(given)
    while True:
        before = len(grounded)
        for literal in body:
            match literal:
                case syntax.Atom():
                    grounded |= set().union(*map(pattern, literal.args))
                case syntax.SetOf():
                    grounded |= (grounded_by(literal.body, set(), names_of(literal)) & names(literal)) | pattern(literal.result)
                case syntax.Builtin() if (use := syntax.usage(literal)) is not None:
                    if set().union(*(needs(term, scope) for term in use.given)) <= grounded:
                        grounded |= set().union(*map(pattern, use.results))
                case syntax.Builtin(op="=", args=(left, right)):
                    for target, term in ((left, right), (right, left)):
                        if needs(term, scope) <= grounded:
                            grounded |= pattern(target)
                case syntax.Disjunction():
                    ways = [grounded_by(branch, grounded, scope) for branch in literal.branches]
                    grounded |= set.intersection(*ways)
                case syntax.Negation() | syntax.Builtin() | syntax.Truth():
                    pass
                case _:
                    assert_never(literal)
        if len(grounded) == before:
            return grounded


def _following(body: tuple[syntax.Literal, ...], grounded: set[str], scope: set[str]) -> Iterator[str]:
    """Variables that would be grounded by `=` if others were: an error about them would only repeat the one about those."""
    for literal in body:
        if isinstance(literal, syntax.Disjunction):
            for branch in literal.branches:
                yield from _following(branch, grounded, scope)
        elif isinstance(literal, syntax.Builtin) and literal.op == "=":
            left, right = literal.args
            for given, term in ((left, right), (right, left)):
                if not isinstance(term, syntax.Variable):
                    yield from pattern(given) - needs(term, scope)
        elif (use := syntax.usage(literal)) is not None:
            needed = set().union(*(needs(term, scope) for term in use.given))
            yield from set().union(*map(pattern, use.results)) - needed


def needs(term: syntax.Term, scope: set[str]) -> set[str]:
    """The variables of `scope` that a term needs to have a value: an aggregate needs those it shares with the scope."""
    return names(term) | (names(term, into_aggregates=True) & scope)


def decidable(constraint: syntax.Builtin, known: Callable[[syntax.Term], bool]) -> bool:
    """Whether a comparison, test or aggregate over a set can be decided with what is known, or gives the variables that are not."""
    use = syntax.usage(constraint)
    if use is not None:
        return all(map(known, use.given)) and all(known(part) for result in use.results for part in rigid(result))
    if constraint.op != "=":
        return all(map(known, constraint.args))
    left, right = constraint.args
    return any(known(one) and all(map(known, rigid(other))) for one, other in ((left, right), (right, left)))


def awaits(atom: syntax.Atom, others: Iterable[syntax.Builtin], bound: Collection[str], scope: set[str]) -> bool:
    """Whether one of the other literals will compute an argument of an atom when more is known, so that reading the atom had better wait.

    >>> from vigilog.language.parser import parse
    >>> t, u, equality = parse("p(x, y) :- t(n, y), u(x), n = x - 1.").rules[0].body
    >>> awaits(t, [equality], {"y"}, {"n", "x", "y"}), awaits(t, [equality], {"x"}, {"n", "x", "y"}), awaits(u, [equality], (), {"n", "x", "y"})
    (True, False, False)
    """
    own = names(atom)
    for literal in others:
        match literal:
            case syntax.Builtin(
                op="=", args=(syntax.Variable(), syntax.Functor(name="()")) | (syntax.Functor(name="()"), syntax.Variable())
            ):
                pass  # which takes a tuple apart, or makes one of what is known then
            case syntax.Builtin(
                op="=", args=(syntax.Variable(name=name), syntax.Functor() as term) | (syntax.Functor() as term, syntax.Variable(name=name))
            ):
                if name in own and name not in bound and not needs(term, scope) <= own.union(bound):
                    return True
            case syntax.Builtin():
                pass
    return False


def check_terms(rule: syntax.Rule, given: set[str], grounded: set[str], findings: Findings) -> None:
    """Notes what has no values in a rule of an aggregate, whose set gives some."""
    reported: set[str] = set()
    for term in rule.head.args[1:]:
        _check_term(term, grounded, names(rule), rule, reported, findings)
    _check_body(rule.body, grounded | given, names(rule), rule, reported, findings)


def _check_body(
    body: tuple[syntax.Literal, ...], grounded: set[str], scope: set[str], rule: syntax.Rule, reported: set[str], findings: Findings
) -> None:
    for literal in body:
        if isinstance(literal, syntax.Disjunction):
            for branch in literal.branches:
                _check_body(branch, grounded_by(branch, grounded, scope), scope, rule, reported, findings)
        elif isinstance(literal, syntax.SetOf):
            _check_setof(literal, rule, reported, findings)
            _check_term(literal.result, grounded, scope, rule, reported, findings)
        else:
            for term in terms(literal):
                _check_term(term, grounded, scope, rule, reported, findings)


def _check_term(term: syntax.Term, grounded: set[str], scope: set[str], rule: syntax.Rule, reported: set[str], findings: Findings) -> None:
    for variable in variables(term):
        if variable.name not in grounded and variable.name not in reported:
            reported.add(variable.name)
            findings.error(
                "ungrounded", f"{variable.name} has no values to take", variable.span, rule=_RULE, hint=_hint(variable.name, rule)
            )
    for inner in subterms(term):
        if isinstance(inner, syntax.Aggregate):
            _check_aggregate(inner, grounded, scope, rule, reported, findings)


def _check_setof(literal: syntax.SetOf, rule: syntax.Rule, reported: set[str], findings: Findings) -> None:
    """What a setof ranges over grounds all of its variables by itself."""
    scope = names_of(literal)
    inside = grounded_by(literal.body, set(), scope)
    _check_body(literal.body, inside, scope, rule, reported, findings)
    _check_term(literal.target, inside, scope, rule, reported, findings)
    within = {name for part in literal.body if isinstance(part, syntax.Disjunction) for name in names(part)} - inside
    elsewhere = Counter(variable.name for variable in variables(rule))
    for name in sorted(within - reported):
        if elsewhere[name] > sum(variable.name == name for variable in variables(literal)):
            reported.add(name)
            place = next(variable for variable in variables(literal) if variable.name == name)
            rule_ = "a setof binds those of its variables that every way of a disjunction in it binds"
            findings.error("ungrounded", f"{name} has no values to take in some ways of this setof", place.span, rule=rule_)


def names_of(literal: syntax.SetOf) -> set[str]:
    """The names in the scope of what a setof ranges over."""
    return collected(literal).union(*map(names, literal.body))


def _check_aggregate(
    aggregate: syntax.Aggregate, grounded: set[str], scope: set[str], rule: syntax.Rule, reported: set[str], findings: Findings
) -> None:
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


def _check_ways(aggregate: syntax.Aggregate, scope: set[str], findings: Findings) -> None:
    """The ways of a disjunction in an aggregate count bindings of the same variables."""
    rule = "in an aggregate a binding that holds several ways counts once, so all ways bind the same variables"
    hint = "define the disjunction as a relation of its own"
    own = scope | names_in(aggregate)
    for literal in aggregate.body:
        if not isinstance(literal, syntax.Disjunction):
            continue
        if any(isinstance(term, syntax.Wildcard) for atom in _parts(literal) if isinstance(atom, syntax.Atom) for term in atom.args):
            findings.error("wildcard", "_ cannot stand in a disjunction inside an aggregate", literal.span, rule=rule, hint=hint)
        elif any(not _is_named(part, inner) for part in _parts(literal) for inner in aggregates(part)):
            findings.error("unsupported", "an aggregate cannot stand in a disjunction inside an aggregate", literal.span, hint=hint)
        elif not _agree(literal, _grounded_beside(literal, aggregate.body, scope, own), own):
            findings.error("ungrounded", "the ways of this disjunction bind different variables", literal.span, rule=rule, hint=hint)


def _agree(disjunction: syntax.Disjunction, given: set[str], scope: set[str]) -> bool:
    """Whether all ways of a disjunction that can hold bind the same variables, but for those that `=` gives from these."""
    ways = list(filter(_can_hold, disjunction.branches))
    shared = set.intersection(*(grounded_by(way, given, scope) for way in ways)) if ways else given

    def determined(way: tuple[syntax.Literal, ...]) -> set[str]:
        return grounded_by(tuple(part for part in way if isinstance(part, syntax.Builtin)), shared, scope)

    within = ((way, literal) for way in ways for literal in way if isinstance(literal, syntax.Disjunction))
    return all(grounded_by(way, given, scope) <= determined(way) for way in ways) and all(
        _agree(literal, _grounded_beside(literal, way, given, scope), scope) for way, literal in within
    )


def _grounded_beside(literal: syntax.Literal, body: tuple[syntax.Literal, ...], given: set[str], scope: set[str]) -> set[str]:
    return grounded_by(tuple(other for other in body if other is not literal), given, scope)


def _can_hold(branch: tuple[syntax.Literal, ...]) -> bool:
    return syntax.Truth(False) not in branch and all(
        any(map(_can_hold, part.branches)) for part in branch if isinstance(part, syntax.Disjunction)
    )


def _parts(literal: syntax.Literal) -> Iterator[syntax.Literal]:
    """The literals in a disjunction, whatever its depth."""
    if isinstance(literal, syntax.Disjunction):
        for branch in literal.branches:
            for part in branch:
                yield from _parts(part)
    else:
        yield literal


def _is_named(literal: syntax.Literal, aggregate: syntax.Aggregate) -> bool:
    return (
        isinstance(literal, syntax.Builtin)
        and literal.op == "="
        and aggregate is literal.args[1]
        and isinstance(literal.args[0], syntax.Variable)
    )


def names_in(aggregate: syntax.Aggregate) -> set[str]:
    inside = set() if aggregate.target is None else names(aggregate.target)
    return inside.union(*(names(literal) for literal in aggregate.body))


def _hint(name: str, rule: syntax.Rule) -> str:
    if name.lower() in NULLS:
        return NO_NULLS
    negated = [literal for literal in rule.body if isinstance(literal, syntax.Negation) and name in names(literal)]
    if any(literal.span == literal.literal.span for literal in negated):  # an atom that was taken for a negated one
        return f"a constrained relation has conditions and no values: bind {name} by an atom of another relation"
    if negated:
        return f"a negated atom gives no values: bind {name} by a positive atom first, or write _ if any value will do"
    if any(name in names(aggregate, into_aggregates=True) for aggregate in aggregates(rule)):
        return f"what an aggregate binds stays inside it; bind {name} outside"
    return f"bind {name} in the body" if rule.body else f'a fact has constants only; a text is written "{name}"'
