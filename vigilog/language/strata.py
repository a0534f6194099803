"""Which relation depends on which, and in which order they can be computed.

A component is a set of relations that depend on each other (or one that does not depend on itself). Components come in an order in which
each needs only those before it. A program is stratified if no component needs itself through negation or an aggregate, but for a `min` or `max` that is the value of what it defines
(`improving.py`, `monotone.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from vigilog.core.errors import Findings
from vigilog.language.improving import Best, best_of, candidates, through
from vigilog.language.parts import aggregates, atoms
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Rule


@dataclass(frozen=True)
class Component:
    """Relations that are computed together, and the rules that do it."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool
    best: Mapping[str, Best] = field(default_factory=dict)  # the relations that keep the best row for each binding of their other columns

    @property
    def candidates(self) -> Component:
        """The same component with plain rules that do not aggregate over it: of what they give, the best is kept."""
        return replace(self, rules=tuple(candidates(self.rules, self.relations))) if self.best else self

    def __str__(self) -> str:
        return ", ".join(self.relations)


def dependencies(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """The atoms a rule reads, each with True if it reads them positively."""
    yield from atoms(rule.body)
    for head in rule.heads:
        for aggregate in aggregates(head):
            for atom, _ in atoms(aggregate.body):
                yield atom, False


def components(program: Program) -> tuple[Component, ...]:
    """The program's derived relations, grouped and ordered.

    >>> from vigilog.language.parser import parse
    >>> [str(c) for c in components(parse("q(x) :- p(x), !s(x). p(x) :- e(x, y), p(y). p(x) :- b(x). s(x) :- b(x)."))]
    ['p', 's', 'q']
    """
    reads = _reads(program)
    rules: dict[str, list[Rule]] = {}
    for rule in program.rules:
        for head in rule.heads:
            rules.setdefault(head.relation, []).append(rule)
    ordered, place = [], {name: number for number, name in enumerate(reads)}
    for group in _strongly_connected(reads):
        members = tuple(sorted(group, key=place.__getitem__))
        own = dict.fromkeys(id(rule) for name in members for rule in rules[name])
        by_id = {id(rule): rule for name in members for rule in rules[name]}
        recursive = len(members) > 1 or members[0] in reads[members[0]]
        through_itself = tuple(by_id[key] for key in own)
        ordered.append(Component(members, through_itself, recursive, best_of(through_itself, members) if recursive else {}))
    return tuple(ordered)


def improved(program: Program) -> frozenset[str]:
    """The relations of components that are recursive through `min` or `max`."""
    return frozenset(name for component in components(program) if component.best for name in component.relations)


def without_improved(program: Program) -> Program:
    """The program that reads what is recursive through `min` or `max` as base relations."""
    best = improved(program)
    return program.with_rules(tuple(rule for rule in program.rules if rule.head.relation not in best)) if best else program


def layers(program: Program) -> tuple[tuple[Component, ...], ...]:
    """The same components by layers: those of one need only what is in the layers before it.

    >>> from vigilog.language.parser import parse
    >>> [[str(c) for c in layer] for layer in layers(parse("q(x) :- p(x), !s(x). p(x) :- e(x, y), p(y). p(x) :- b(x). s(x) :- b(x)."))]
    [['p', 's'], ['q']]
    """
    reads, depth = _reads(program), dict[str, int]()
    by_level: list[list[Component]] = []
    for component in components(program):
        needed = {other for name in component.relations for other in reads[name]} - set(component.relations)
        level = max((depth[name] + 1 for name in needed if name in depth), default=0)
        depth |= dict.fromkeys(component.relations, level)
        by_level += [[]] * (level == len(by_level))
        by_level[level] = [*by_level[level], component]
    return tuple(map(tuple, by_level))


def _reads(program: Program) -> dict[str, set[str]]:
    """For each derived relation those that its rules read."""
    reads: dict[str, set[str]] = {}
    for rule in program.rules:
        needed = {atom.relation for atom, _ in dependencies(rule)}
        for head in rule.heads:
            reads.setdefault(head.relation, set()).update(needed)
    return reads


def check_stratified(program: Program, findings: Findings) -> None:
    """Notes each rule that makes a relation depend on itself through negation or an aggregate, with the cycle."""
    home = {name: component for component in components(program) for name in component.relations}
    reads = _reads(program)
    for rule in program.rules:
        for head in rule.heads:
            for atom, positive in dependencies(rule):
                component = home.get(atom.relation)
                if positive or component is None or head.relation not in component.relations or _improves(rule, head, atom, component):
                    continue
                operator = _aggregated_by(rule, atom)
                way = _path(reads, atom.relation, head.relation, set(component.relations))
                named = [name for name in way if not program.relations[name].helper]  # nobody has named what formulas need beside
                cycle = [named[-1], f"{operator}({named[0]})" if operator else f"!{named[0]}", *named[1:]]
                through = f"the aggregate {operator}" if operator else "negation"
                findings.error(
                    "stratification",
                    f"{cycle[0]} depends on itself through {through}: {' ← '.join(cycle)}",
                    atom.span,
                    rule="a relation may not depend on itself through negation or an aggregate, because then it has no single meaning",
                    hint=f"let {head.relation} have the {operator} itself as its value, in one of its columns"
                    if operator in ("min", "max")
                    else "compute what is negated or aggregated in a relation that does not need this one",
                )


def _improves(rule: Rule, head: Atom, atom: Atom, component: Component) -> bool:
    """Whether an atom is read through a `min` or `max` by a relation that keeps the best; whether it may be is another question (`monotone.py`)."""
    inside = (aggregate for aggregate in aggregates(rule) if any(inner is atom for inner, _ in atoms(aggregate.body)))
    return head.relation in component.best and any(through(aggregate, component.relations) for aggregate in inside)


def _aggregated_by(rule: Rule, atom: Atom) -> str:
    inside = [aggregate.op for aggregate in aggregates(rule) if any(inner is atom for inner, _ in atoms(aggregate.body))]
    return inside[0] if inside else ""


def _path(reads: dict[str, set[str]], start: str, goal: str, within: set[str]) -> list[str]:
    """A shortest way of dependencies from `start` to `goal`, both named."""
    before: dict[str, str] = {start: ""}
    queue = deque([start])
    while goal not in before:
        name = queue.popleft()
        for other in sorted(reads[name] & within):
            if other not in before:
                before[other] = name
                queue.append(other)
    way = [goal]
    while way[-1] != start:
        way.append(before[way[-1]])
    return way[::-1]


def _strongly_connected(reads: dict[str, set[str]]) -> Iterable[set[str]]:
    """Tarjan's algorithm, without recursion; what is read comes before what reads it."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for root in reads:
        if root in index:
            continue
        work = [(root, iter(sorted(reads[root] & reads.keys())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(reads[other] & reads.keys()))))
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = set()
                    while name not in group:
                        member = stack.pop()
                        on_stack.discard(member)
                        group.add(member)
                    yield group
