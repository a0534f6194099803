"""Checks recursion through `min` and `max`: a better value must make better values, and none that is better than itself.

The variables that stand where a relation keeps its best are *values*, and what is computed from them is, too. A value may be computed with, compared with a bound and become a head's value, in ways that keep the order:

| for `min` | for `max` | |
|---|---|---|
| `c` | `c` | a variable as it is |
| `c + w` | `c - w` | `w` is `unsigned`, or a constant that is not negative |
| `max(c, w)` | `min(c, w)` | |
| `c < w`, `c <= w` | `c > w`, `c >= w` | `w` is no value |

Everything else could hold for a worse value and not for a better one: a join, a negation, a key, another aggregate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import assert_never

from vigilog.core.errors import Findings
from vigilog.core.spans import Span
from vigilog.language import syntax
from vigilog.language.improving import Best, over
from vigilog.language.parts import names
from vigilog.language.printer import show_literal, show_term
from vigilog.language.program import Program
from vigilog.language.strata import Component, components

MOST_WAYS = 1000  # no rule is taken that stands for more
_KEEPS = {"min": ("<", "<="), "max": (">", ">=")}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_RULE = (
    "a relation may depend on itself through min only if what min ranges over grows no smaller along the recursion: "
    "a sum with unsigned, or a variable as it is; through max, no larger"
)


class _Doubt(Exception):
    """A step that is not monotone."""

    def __init__(self, message: str, span: Span, hint: str) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


def check_monotone(program: Program, findings: Findings) -> None:
    """Notes the first step of each rule that is not monotone, in components that are recursive through `min` or `max`. The program is typed."""
    for component in components(program):
        for rule in component.rules if component.best else ():
            try:
                _Rule(rule, component).check()
            except _Doubt as doubt:
                through = f"{', '.join(component.best)} {'depends' if len(component.best) == 1 else 'depend'} on itself through "
                ops = " and ".join(dict.fromkeys(best.op for best in component.best.values()))
                findings.error("stratification", f"{through}{ops}, and {doubt.message}", doubt.span, rule=_RULE, hint=doubt.hint)


class _Rule:
    """The values in one rule, each with the aggregate that it is the best by."""

    def __init__(self, rule: syntax.Rule, component: Component) -> None:
        self.best = component.best
        own = [head for head in rule.heads if head.relation in component.relations]
        lifted = {id(arg): syntax.Variable(f"= {number}") for number, arg in enumerate(arg for head in own for arg in head.args)}
        ranged = [arg for head in own for arg in head.args if isinstance(arg, syntax.Aggregate)]
        self.heads = [replace(h, args=tuple(lifted[id(arg)] if isinstance(arg, syntax.Aggregate) else arg for arg in h.args)) for h in own]
        self.body = (*rule.body, *(syntax.Builtin("=", (lifted[id(arg)], arg), arg.span) for arg in ranged))
        self.component = component

    def check(self) -> None:
        for way in _ways(self.body, self.component):
            self.literals, self.ops = way, dict[str, str]()
            self.conjunction()

    def conjunction(self) -> None:
        """Finds the values, and looks at everything that they are in."""
        for literal in self.literals:
            if isinstance(literal, syntax.Atom) and literal.relation in self.best:
                self.taken(literal, self.best[literal.relation])
        equalities = self.defined([part for part in self.literals if isinstance(part, syntax.Builtin) and part.op == "="])
        for literal in self.literals:
            match literal:
                case syntax.Atom():
                    own = self.best.get(literal.relation)
                    for place, arg in enumerate(literal.args):
                        if own is None or place != own.column:
                            self.free(arg, literal, literal.span)
                case syntax.Builtin(op=op, args=(left, right)) if op in _TURNED:
                    self.bounded(literal, op, left, right)
                case syntax.Builtin(op="="):
                    if any(literal is left for left in equalities):
                        self.free(literal, literal, literal.span)
                case syntax.Builtin() | syntax.Negation() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                    self.free(literal, literal, literal.span)
                case _:
                    assert_never(literal)
        for head in self.heads:
            self.headed(head)

    def taken(self, atom: syntax.Atom, best: Best) -> None:
        """The value that an atom reads."""
        match atom.args[best.column]:
            case syntax.Variable(name=name):
                if name in self.ops or sum(arg == atom.args[best.column] for arg in atom.args) > 1:
                    raise self.joined(name, atom)
                self.ops[name] = best.op
            case syntax.Wildcard():
                pass
            case term:
                raise self.joined(show_term(term), atom)

    def defined(self, equalities: list[syntax.Builtin]) -> list[syntax.Builtin]:
        """Finds the values that equalities compute from others; gives the equalities that do not."""
        while True:
            for literal in equalities:
                left, right = literal.args
                for variable, term in ((left, right), (right, left)):
                    if isinstance(variable, syntax.Variable) and variable.name not in self.ops and self.values(term):
                        self.ops[variable.name] = self.kept(term)
                        equalities = [other for other in equalities if other is not literal]
                        break
                else:
                    continue
                break
            else:
                return equalities

    def values(self, part: syntax.Term | syntax.Literal) -> set[str]:
        return names(part, into_aggregates=True) & self.ops.keys()

    def kept(self, term: syntax.Term) -> str:
        """The aggregate that a term computed from values is the best by; raises _Doubt if a better value could make it worse, or better than that value."""
        ops = {self.ops[name] for name in self.values(term)}
        if len(ops) > 1:
            raise _Doubt(f"{show_term(term)} mixes a least and a greatest value", term.span, "compute them in two relations")
        (op,) = ops
        match term:
            case syntax.Variable():
                return op
            case syntax.Functor(name="+" | "-" as sign, args=(left, right)) if op == ("min" if sign == "+" else "max"):
                parts = [part for part in (left, right) if self.values(part)]
                steps = [part for part in (left, right) if not self.values(part)]
                unsigned = term.type is not None and term.type.kind == "unsigned"
                if (sign == "+" or parts == [left]) and (unsigned or len(steps) == 1) and all(map(_not_negative, steps)):
                    for part in parts:
                        self.kept(part)
                    return op
            case syntax.Functor(name="min" | "max" as other, args=args) if other != op:
                for part in args:
                    if self.values(part):
                        self.kept(part)
                return op
            case syntax.Functor() | syntax.Wildcard() | syntax.Constant() | syntax.Aggregate():
                pass
            case _:
                assert_never(term)
        worse = "smaller" if op == "min" else "larger"
        hint = "add what is unsigned, or at least 0" if op == "min" else "subtract what is unsigned, or at least 0"
        raise _Doubt(f"{show_term(term)} may grow {worse} along the recursion", term.span, hint)

    def bounded(self, literal: syntax.Builtin, op: str, left: syntax.Term, right: syntax.Term) -> None:
        """A comparison, which may only bound what is worse."""
        if self.values(right):
            left, right, op = right, left, _TURNED[op]
        if not self.values(left):
            return
        if self.values(right):
            raise self.joined(" and ".join(sorted(self.values(literal))), literal)
        kept = self.kept(left)
        if op not in _KEEPS[kept]:
            better = "smaller" if kept == "min" else "larger"
            raise _Doubt(
                f"{show_literal(literal)} may hold for a value and not for a {better} one",
                literal.span,
                "test it where the relation is read",
            )

    def free(self, part: syntax.Term | syntax.Literal, literal: syntax.Literal, span: Span) -> None:
        """Something that no value may be in."""
        if self.values(part):
            raise self.joined(" and ".join(sorted(self.values(part))), literal, span)

    def joined(self, value: str, literal: syntax.Literal, span: Span | None = None) -> _Doubt:
        hint = "let a value only be added to, bounded, or passed on; ask more of it where the relation is read"
        return _Doubt(f"{show_literal(literal)} may hold for one value of {value} and not for a better one", span or literal.span, hint)

    def headed(self, head: syntax.Atom) -> None:
        """A head: a value may only be where the best is kept, by the same aggregate."""
        own = self.best.get(head.relation)
        for place, arg in enumerate(head.args):
            if not self.values(arg):
                continue
            if own is None or place != own.column:
                which = f"column {place + 1} of {head.relation}" if own else head.relation
                hint = f"let {head.relation} have the min or max itself, or compute it where the relation is read"
                raise _Doubt(f"{which} takes a value of which not the best is kept", head.span, hint)
            if (op := self.kept(arg)) != own.op:
                raise _Doubt(f"{head.relation} keeps a {own.op} of what is a {op}", head.span, "compute them in two relations")


def _not_negative(term: syntax.Term) -> bool:
    match term:
        case syntax.Constant(value=bool() | str()):
            return False
        case syntax.Constant(value=value):
            return value >= 0  # type: ignore[operator]  # what is added is a number
        case _:
            return term.type is not None and term.type.kind == "unsigned"


def _ways(body: Iterable[syntax.Literal], component: Component) -> Iterator[tuple[syntax.Literal, ...]]:
    """The conjunctions that a body stands for, with what a `min` or `max` over the component ranges over in its place."""
    ways = [_parts(literal, component) for literal in body]
    yield from (tuple(part for parts in way for part in parts) for way in islice(product(*ways), MOST_WAYS))


def _parts(literal: syntax.Literal, component: Component) -> list[tuple[syntax.Literal, ...]]:
    """The conjunctions that a literal stands for."""
    ranged = over(literal, component.relations)
    if ranged is not None:
        variable, aggregate = ranged
        assert aggregate.target is not None, "min and max have a target"
        value = syntax.Builtin("=", (variable, aggregate.target), literal.span)
        return [(*way, value) for way in _ways(aggregate.body, component)]
    if isinstance(literal, syntax.Disjunction):
        return [way for branch in literal.branches for way in _ways(branch, component)]
    return [(literal,)]
