"""The meaning of the language: the shortest evaluator we could write, for tests and for `verify`, never for speed.

A program's meaning is the least model, stratum by stratum: apply every rule to all that is known, until nothing is new. It reads programs as
users write them (several heads, disjunctions, nested aggregates), so it shares no rewriting with the executors, only the meaning of literals (`language/solving.py`).

>>> from vigilog.language.check import check
>>> text = '.decl e(x:number, y:number) .decl c(x:number, y:number) c(x,y) :- e(x,y). c(x,y) :- e(x,z), c(z,y).'
>>> sorted(evaluate(check(text).program, {"e": {(1, 2), (2, 3)}})["c"])
[(1, 2), (1, 3), (2, 3)]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vigilog.core.values import Row
from vigilog.language.solving import solve, value
from vigilog.language.strata import components, dependencies
from vigilog.language.syntax import Program, Rule, names

State = dict[str, set[Row]]


def evaluate(program: Program, facts: Mapping[str, Iterable[Row]]) -> State:
    """Every relation's rows. `program` is checked; `facts` are the rows of the input relations."""
    state: State = {name: set(map(tuple, facts.get(name, ()))) for name in program.relations}
    for component in components(program):
        limits = {name: most for name, most in program.limits.items() if name in component.relations}
        grow([rule for rule in component.rules if not {atom.relation for atom, _ in dependencies(rule)} & {*component.relations}], state)
        while component.recursive and all(len(state[name]) < most for name, most in limits.items()) and grow(component.rules, state):
            pass
    return state


def grow(rules: Iterable[Rule], state: State) -> bool:
    """Adds to a state all that rules derive from it; whether anything of that is new."""
    new = {(name, row) for rule in rules for name, row in derive(rule, state) if row not in state[name]}
    for name, row in new:
        state[name].add(row)
    return bool(new)


def derive(rule: Rule, state: State) -> Iterator[tuple[str, Row]]:
    """The rows a rule gives in a state, each with its relation."""
    scope = names(rule)
    for binding in solve(rule.body, {}, state, scope):
        for head in rule.heads:
            row = tuple(value(arg, binding, state, scope) for arg in head.args)
            if None not in row:
                yield head.relation, row  # type: ignore[misc]  # no None in it
