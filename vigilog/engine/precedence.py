"""Which calls are answered before another is asked: those on whose answers it depends whether that one is asked at all.

The law: where the demand of a call reads the answers of others through negation or an aggregate, it is complete only when these are. A call that was made too early might be one that no rule asks for.

>>> from vigilog.language.parser import parse
>>> precedence(parse("m_f(x) :- n(x). m_g(x) :- n(x), !f(x, _). m_h(x) :- g(x, _)."), {"f": "m_f", "g": "m_g", "h": "m_h"})
{'f': frozenset(), 'g': frozenset({'f'}), 'h': frozenset()}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vigilog.language.program import Program
from vigilog.language.strata import dependencies


def precedence(program: Program, demands: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For each call, by the relation of its answers, those that go before it; `demands` are the relations of what is asked for."""
    reads: dict[str, dict[str, bool]] = {}
    for rule in program.rules:
        for head in rule.heads:
            for atom, positive in dependencies(rule):
                read = reads.setdefault(head.relation, {})
                read[atom.relation] = read.get(atom.relation, False) or not positive
    below = {relation: _below(demand, reads, through=False) & demands.keys() for relation, demand in demands.items()}
    before = {}
    for relation, demand in demands.items():
        first = _below(demand, reads, through=True) & demands.keys()
        while more := {other for one in first for other in below[one]} - first:
            first |= more
        before[relation] = frozenset(first - {relation})
    return before


def ready(waiting: Collection[str], before: Mapping[str, frozenset[str]]) -> list[str]:
    """Those of the calls that wait which may be made now; the first of them, if each waits for another."""
    return [one for one in waiting if before[one].isdisjoint(waiting)] or list(waiting)[:1]


def _below(relation: str, reads: Mapping[str, Mapping[str, bool]], *, through: bool) -> set[str]:
    """The relations that one is derived from; only those that it reads `through` a negation or an aggregate, if that is asked."""
    seen: set[tuple[str, bool]] = set()
    todo = [(relation, not through)]
    while todo:
        name, negated = todo.pop()
        for other, also in reads.get(name, {}).items():
            if (step := (other, negated or also)) not in seen:
                seen.add(step)
                todo.append(step)
    return {name for name, negated in seen if negated}
