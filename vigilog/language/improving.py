"""Recursion through `min` and `max`: a relation that keeps the best row for each binding of its other columns.

`d = min e : { dist(x, c), edge(x, y, w), e = c + w }` may read the relation that it defines, if a better value there can only make a better value here, and none that is better than itself. Then the rule says
the same as its *candidates*, `dist(y, e) :- edge(_, y, _), dist(x, c), edge(x, y, w), e = c + w`, of which the best for each binding of the other columns is kept: the least fixpoint in the order of the values. (Ross and
Sagiv 1992; Mumick, Pirahesh and Ramakrishnan 1990 call such programs monotonic.)

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show_statement
>>> rule = parse("d(y, m) :- e(_, y, _), m = min n : { d(x, c), e(x, y, w), n = c + w }.").rules[0]
>>> best_of([rule], ["d"])
{'d': Best(op='min', column=1)}
>>> [show_statement(candidate) for candidate in candidates([rule], ["d"])]
['d(y, m) :- e(_, y, _), d(x, c), e(x, y, w), n = c + w, m = n.']
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from vigilog.language.parts import aggregates, atoms
from vigilog.language.syntax import Aggregate, Builtin, Disjunction, Literal, Rule, Variable


@dataclass(frozen=True)
class Best:
    """Of the rows that are alike in their other columns, a relation keeps the one with the least or the greatest value in this one."""

    op: str
    column: int

    def keys(self, arity: int) -> tuple[int, ...]:
        """The other columns."""
        return tuple(place for place in range(arity) if place != self.column)


def best_of(rules: Iterable[Rule], relations: Collection[str]) -> dict[str, Best]:
    """What the relations of a recursive component keep the best of, by their rules: those whose value is a `min` or `max` over the component."""
    best: dict[str, Best] = {}
    for rule in rules:
        given = {name: aggregate.op for name, aggregate in _values(rule.body, relations)}
        for head in rule.heads:
            for column, arg in enumerate(head.args):
                if isinstance(arg, Variable) and arg.name in given:
                    best.setdefault(head.relation, Best(given[arg.name], column))
                elif isinstance(arg, Aggregate) and through(arg, relations):
                    best.setdefault(head.relation, Best(arg.op, column))
    return best


def candidates(rules: Iterable[Rule], relations: Collection[str]) -> Iterator[Rule]:
    """The rules with what their `min` and `max` over some relations range over, in the place of these."""
    for rule in rules:
        ways: list[tuple[Literal, ...]] = [()]
        for literal in rule.body:
            ranged = over(literal, relations)
            if ranged is None:
                ways = [(*way, literal) for way in ways]
                continue
            variable, aggregate = ranged
            assert aggregate.target is not None, "min and max have a target"
            value = Builtin("=", (variable, aggregate.target), literal.span)
            ways = [(*way, *branch, value) for way in ways for branch in branches(aggregate)]
        yield from (rule,) if ways == [rule.body] else (rule.derive(*rule.heads, body=way) for way in ways)


def over(literal: Literal, relations: Collection[str]) -> tuple[Variable, Aggregate] | None:
    """The variable and the aggregate of a literal that gives a variable the `min` or `max` over some relations."""
    match literal:
        case Builtin(op="=", args=(Variable() as variable, Aggregate() as aggregate)) if through(aggregate, relations):
            return variable, aggregate
        case Builtin(op="=", args=(Aggregate() as aggregate, Variable() as variable)) if through(aggregate, relations):
            return variable, aggregate
        case _:
            return None


def through(aggregate: Aggregate, relations: Collection[str]) -> bool:
    """Whether a `min` or `max` ranges over some relations, and no aggregate within it does."""
    inner = any(reads(part, relations) for literal in flat(aggregate.body) for part in aggregates(literal))
    return aggregate.op in ("min", "max") and not inner and reads(aggregate, relations)


def reads(aggregate: Aggregate, relations: Collection[str]) -> bool:
    return any(atom.relation in relations for atom, _ in atoms(aggregate.body))


def flat(body: Iterable[Literal]) -> Iterator[Literal]:
    """The literals of a body, those of its disjunctions one by one."""
    for literal in body:
        if isinstance(literal, Disjunction):
            for branch in literal.branches:
                yield from flat(branch)
        else:
            yield literal


def branches(aggregate: Aggregate) -> tuple[tuple[Literal, ...], ...]:
    match aggregate.body:
        case (Disjunction(branches=ways),):
            return ways
        case body:
            return (body,)


def _values(body: Iterable[Literal], relations: Collection[str]) -> Iterator[tuple[str, Aggregate]]:
    """The variables of a body that are the `min` or `max` over some relations."""
    for literal in flat(body):
        if (pair := over(literal, relations)) is not None:
            yield pair[0].name, pair[1]
