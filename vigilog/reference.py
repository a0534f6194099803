"""The meaning of the language: the shortest evaluator we could write, for tests and for `verify`, never for speed.

A program's meaning is the least model, stratum by stratum: apply every rule to all that is known, until nothing is new. Of a relation that is recursive through `min` or `max`, only the best rows are known
(`language/improving.py`). It reads programs as
users write them (several heads, disjunctions, nested aggregates), so it shares no rewriting with the executors, only the meaning of literals (`language/solving.py`).

>>> from vigilog.language.check import check
>>> text = '.decl e(x:number, y:number) .decl c(x:number, y:number) c(x,y) :- e(x,y). c(x,y) :- e(x,z), c(z,y).'
>>> sorted(evaluate(check(text).program, {"e": {(1, 2), (2, 3)}})["c"])
[(1, 2), (1, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from vigilog.core.values import Row
from vigilog.language.improving import Best
from vigilog.language.parts import names
from vigilog.language.program import Program
from vigilog.language.solving import solve, value
from vigilog.language.strata import components, dependencies
from vigilog.language.syntax import Rule

State = dict[str, set[Row]]


def evaluate(program: Program, facts: Mapping[str, Iterable[Row]]) -> State:
    """Every relation's rows. `program` is checked; `facts` are the rows of the input relations."""
    state: State = {name: set(map(tuple, facts.get(name, ()))) for name in program.relations}
    for component in components(program):
        limits = {name: most for name, most in program.limits.items() if name in component.relations}
        first = [rule for rule in component.rules if not {atom.relation for atom, _ in dependencies(rule)} & {*component.relations}]
        grow(first, state, component.best)
        while component.recursive and all(len(state[name]) < most for name, most in limits.items()):
            if not grow(component.rules, state, component.best):
                break
    return state


def grow(rules: Iterable[Rule], state: State, best: Mapping[str, Best] = MappingProxyType({})) -> bool:
    """Adds to a state all that rules derive from it, and keeps the best of relations that do; whether anything is new."""
    new = {(name, row) for rule in rules for name, row in derive(rule, state) if row not in state[name]}
    before = {name: state[name] for name in best}
    for name, row in new:
        if name not in best:
            state[name].add(row)
    for name, own in best.items():
        state[name] = kept(state[name] | {row for of, row in new if of == name}, own)
    return any(name not in best for name, _ in new) or any(state[name] != rows for name, rows in before.items())


def kept(rows: Iterable[Row], best: Best) -> set[Row]:
    """Of rows that are alike in their other columns, the best."""
    found: dict[Row, Row] = {}
    for row in rows:
        key, value = (*row[: best.column], *row[best.column + 1 :]), row[best.column]
        known = found.setdefault(key, row)
        if value < known[best.column] if best.op == "min" else value > known[best.column]:  # type: ignore[operator]  # of one type
            found[key] = row
    return set(found.values())


def derive(rule: Rule, state: State) -> Iterator[tuple[str, Row]]:
    """The rows a rule gives in a state, each with its relation."""
    scope = names(rule)
    for binding in solve(rule.body, {}, state, scope):
        for head in rule.heads:
            row = tuple(value(arg, binding, state, scope) for arg in head.args)
            if None not in row:
                yield head.relation, row  # type: ignore[misc]  # no None in it
