"""Checks proofs by nothing but their JSON, the program and the reference: each step is one rule of the program, applied to the literals below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never

from vigilog import reference
from vigilog.core.errors import ProgramError
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.printer import show_statement
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Builtin, Constant, Disjunction, Literal, Negation, Rule, SetOf, Truth
from vigilog.rewriting.program.collecting import collect

Rows = Mapping[str, set[tuple[Any, ...]]]
Fact = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Node:
    """A literal of a proof; `because` are the numbers of the nodes it follows from."""

    literal: str
    rule: str
    place: str
    broken: bool
    because: tuple[int, ...]


def nodes(proof: Mapping[str, Any]) -> list[Node]:
    """The literals of a proof, nested or in steps; the first is what is proved."""
    if "steps" in proof:
        steps = proof["steps"]
        for number, step in enumerate(steps, start=1):
            assert all(0 < reason < number for reason in step.get("because", ())), "a step follows from earlier ones"
        assert {key: value for key, value in proof.items() if key != "steps"}.items() <= steps[-1].items(), (
            "the last step is what is proved"
        )
        size = len(steps)
        return [_node(step, [size - reason for reason in step.get("because", ())]) for step in reversed(steps)]
    found: list[tuple[Mapping[str, Any], list[int]]] = [(proof, [])]
    for part, because in found:  # grows while it is read
        for child in part.get("because", ()):
            because.append(len(found))
            found.append((child, []))
    return [_node(part, because) for part, because in found]


def _node(part: Mapping[str, Any], because: Iterable[int]) -> Node:
    assert part.keys() <= {"literal", "rule", "place", "because", "broken"}
    assert ("rule" in part) == ("place" in part) == ("because" in part)
    return Node(part["literal"], part.get("rule", ""), part.get("place", ""), part.get("broken", False), tuple(because))


class Judge:
    """A state of a program, in which literals can be looked up. `base` are the rows that are stated, `state` all."""

    def __init__(self, program: Program, base: Rows) -> None:
        collected = collect(program)
        helping = (rule.source for rule in collected.rules if rule.heads[0].relation not in program.relations)
        program = replace(program, declarations=collected.declarations, rules=(*program.rules, *helping))
        self.program, self.base = program, base
        self.state = reference.evaluate(program, base)
        self.rules = {(show_statement(rule), str(rule.span)): rule for rule in program.rules}
        stated = ((head.relation, _row(head)) for rule in program.rules if not rule.body for head in rule.heads if _ground(head))
        self.stated = {(name, row) for name, rows in base.items() for row in rows} | set(stated)

    def check(self, proof: Mapping[str, Any] | None) -> Fact:
        """Asserts that a proof is one in this state; gives what it proves."""
        assert proof is not None, "there is no proof"
        found = nodes(proof)
        facts = self.facts(found)
        for number, node in enumerate(found):
            if node.rule:
                self._check_step(node, facts[number], [facts[reason] for reason in node.because])
            elif facts[number] is not None:
                assert facts[number] in self.stated, f"{node.literal} is not stated"
            else:
                assert self.holds(node.literal), f"{node.literal} does not hold"
        assert facts[0] is not None
        return facts[0]

    def check_broken(self, proof: Mapping[str, Any] | None, before: Judge) -> Fact:
        """Asserts that a proof held in an earlier state, and that exactly those of its leaves are marked that do not hold in this one."""
        proved = before.check(proof)
        assert proof is not None
        found = nodes(proof)
        facts = self.facts(found)
        for node, fact in zip(found, facts, strict=True):
            gone = not node.rule and not (self.holds(node.literal) if fact is None else fact in self.stated)
            assert node.broken == gone, f"{node.literal} is {'' if node.broken else 'not '}marked as broken"
        assert any(node.broken for node in found), "nothing in the proof is broken"
        return proved

    def facts(self, found: list[Node]) -> list[Fact | None]:
        """The relation and row of each literal that is an atom, None for others."""
        parsed: list[Literal | None] = [parse(f"answer() :- {node.literal}.").rules[0].body[0] for node in found]
        parsed = [None if isinstance(literal, Atom) and literal.relation not in self.program.relations else literal for literal in parsed]
        atoms = [literal for literal in parsed if isinstance(literal, Atom)]
        typed = iter(check(self._with(tuple(Rule((atom,)) for atom in atoms))).program.rules)
        return [_fact(next(typed).heads[0]) if isinstance(literal, Atom) else None for literal in parsed]

    def holds(self, literal: str) -> bool:
        rule = parse(f"answer() :- {literal}.").rules[0]
        answer = parse(".decl answer()").declarations
        try:
            asked = check(replace(self._with((rule,)), declarations=(*self._with(()).declarations, *answer))).program
        except ProgramError as error:  # with values in the place of variables it may divide by zero, and then it has no value
            assert {finding.code for finding in error.findings} == {"division-by-zero"}
            return False
        return any(True for _ in reference.derive(asked.rules[0], self.state))

    def _check_step(self, node: Node, fact: Fact | None, because: list[Fact | None]) -> None:
        """The rule gives the row, when its positive atoms may only be rows below it."""
        assert (node.rule, node.place) in self.rules, f"{node.rule} at {node.place} is not a rule of the program"
        rule = self.rules[node.rule, node.place]
        narrowed = replace(rule, body=_narrowed(rule.body))
        state = dict(self.state)
        for name in self.program.relations:
            state[f"{name} below"] = {below[1] for below in because if below is not None and below[0] == name}
        assert fact is not None
        assert fact in set(reference.derive(narrowed, state)), f"{node.literal} does not follow by {node.rule} from {because}"

    def _with(self, rules: tuple[Rule, ...]) -> Program:
        plain = tuple(replace(d, attributes=tuple(replace(a, type=None) for a in d.attributes)) for d in self.program.declarations)
        return Program(self.program.types, plain, (), rules, {"proof": ""}, aggregates=self.program.aggregates)


def _narrowed(body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    found: list[Literal] = []
    for literal in body:
        match literal:
            case Atom():
                literal = replace(literal, relation=f"{literal.relation} below")
            case Disjunction():
                literal = replace(literal, branches=tuple(_narrowed(branch) for branch in literal.branches))
            case Negation() | Builtin() | Truth() | SetOf():
                pass
            case _:
                assert_never(literal)
        found.append(literal)
    return tuple(found)


def _ground(atom: Atom) -> bool:
    return all(isinstance(arg, Constant) for arg in atom.args)


def _row(atom: Atom) -> tuple[Any, ...]:
    return tuple(arg.value for arg in atom.args if isinstance(arg, Constant))


def _fact(atom: Atom) -> Fact:
    assert _ground(atom), f"{atom.relation} has variables"
    return atom.relation, _row(atom)
