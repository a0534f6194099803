"""Plain rules: one head, a conjunction for a body, aggregates only as `variable = aggregate`, and nothing computed in an atom of the body.

So an atom can be read whatever is known, and what it computed is an equality: the value is looked up where it can be computed first, and compared where it cannot.

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show
>>> print(show(normalize(parse("a(x), b(x) :- c(x), (d(x) ; e(x, 1 + count : { f(_) })), true."))))
a(x) :- c(x), d(x).
a(x) :- c(x), e(x, n2), n = count : { f(_) }, n2 = 1 + n.
b(x) :- c(x), d(x).
b(x) :- c(x), e(x, n2), n = count : { f(_) }, n2 = 1 + n.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count, product
from typing import assert_never

from vigilog.core.errors import Finding, ProgramError
from vigilog.language import syntax
from vigilog.language.parts import map_terms, names, rename, variables
from vigilog.language.program import Program

MAX_ALTERNATIVES = 1000
MAX_TERM_DEPTH = 8


def normalize(program: Program) -> Program:
    """The program with plain rules. An aggregate's body is a conjunction, too, or a single disjunction of such."""
    normalizer = _Normalizer(program)
    return program.with_rules(tuple(plain for rule in program.rules for plain in normalizer.plain_rules(rule)))


def ways(program: Program, rule: syntax.Rule) -> Iterator[syntax.Rule]:
    """The rules with one head, and a conjunction for a body, that a rule stands for. They name the variables that the rule names, and no others.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_statement
    >>> program = parse("p(x + 1) :- q(x, _), (r(x) ; 2 < count : { s(x, y) }).")
    >>> [show_statement(way) for way in ways(program, program.rules[0])]
    ['p(x + 1) :- q(x, _), r(x).', 'p(x + 1) :- q(x, _), 2 < count : { s(x, y) }.']
    """
    renamed = _rename_locals(rule)
    alternatives = _Normalizer(program).alternatives(renamed, renamed.body)
    yield from (rule.derive(head, body=body) for head in renamed.heads for body in alternatives)


class _Normalizer:
    def __init__(self, program: Program) -> None:
        self.program = program

    def plain_rules(self, rule: syntax.Rule) -> Iterator[syntax.Rule]:
        if (
            not rule.body
            and len(rule.heads) == 1
            and not any(isinstance(arg, syntax.Functor | syntax.Aggregate) for arg in rule.heads[0].args)
        ):
            yield rule
            return
        renamed = _rename_locals(rule)
        alternatives = self.alternatives(renamed, renamed.body)
        for head in renamed.heads:
            for body in alternatives:
                fresh = _fresh(names(renamed, into_aggregates=True))
                lifted: list[syntax.Literal] = []
                head_atom = self.lift_atom(head, lifted, fresh)
                literals = [part for literal in body for part in self.lift(literal, fresh)]
                yield rule.derive(head_atom, body=(*literals, *lifted))

    def alternatives(self, rule: syntax.Rule, body: tuple[syntax.Literal, ...]) -> list[tuple[syntax.Literal, ...]]:
        """The disjunctive normal form; what can never hold is left out."""
        choices: list[list[tuple[syntax.Literal, ...]]] = []
        size = 1
        for literal in body:
            match literal:
                case syntax.Truth():
                    choices.append([()] if literal.value else [])
                case syntax.Disjunction():
                    choices.append([way for branch in literal.branches for way in self.alternatives(rule, branch)])
                case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.SetOf():
                    choices.append([(literal,)])
                case _:
                    assert_never(literal)
            size *= len(choices[-1])
            if size * max(len(rule.heads), 1) > MAX_ALTERNATIVES:
                hint = "name a part of it as a relation of its own"
                message = f"this rule has more than {MAX_ALTERNATIVES} alternatives"
                raise ProgramError([Finding("expansion", message, rule.span, hint=hint)], self.program.texts)
        return [tuple(part for parts in choice for part in parts) for choice in product(*choices)]

    # -- aggregates

    def lift(self, literal: syntax.Literal, fresh: Iterator[str]) -> Iterator[syntax.Literal]:
        """The literal with variables for its aggregates and for what an atom computes, then what these variables equal."""
        lifted: list[syntax.Literal] = []
        match literal:
            case syntax.Builtin(op="=", args=(syntax.Variable(), syntax.Aggregate() as aggregate)):
                yield replace(literal, args=(literal.args[0], self.aggregate(aggregate, fresh)))
                return
            case syntax.Builtin(op="=", args=(syntax.Aggregate() as aggregate, syntax.Variable())):
                yield replace(literal, args=(literal.args[1], self.aggregate(aggregate, fresh)))
                return
            case syntax.Atom():
                yield _flat(self.lift_atom(literal, lifted, fresh), lifted, fresh)
            case syntax.Negation(literal=syntax.Atom() as atom):
                yield replace(literal, literal=_flat(self.lift_atom(atom, lifted, fresh), lifted, fresh))
            case syntax.Negation():
                inner = replace(literal.literal, args=tuple(self.lift_term(arg, lifted, fresh) for arg in literal.literal.args))
                yield replace(literal, literal=inner)
            case syntax.Builtin():
                yield replace(literal, args=tuple(self.lift_term(arg, lifted, fresh) for arg in literal.args))
            case syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("disjunctions, truths and setofs are gone before aggregates are lifted")
            case _:
                assert_never(literal)
        yield from lifted

    def lift_atom(self, atom: syntax.Atom, lifted: list[syntax.Literal], fresh: Iterator[str]) -> syntax.Atom:
        return replace(atom, args=tuple(self.lift_term(arg, lifted, fresh) for arg in atom.args))

    def lift_term(self, term: syntax.Term, lifted: list[syntax.Literal], fresh: Iterator[str]) -> syntax.Term:
        """The term with aggregates, and parts that nest too deep for SQL, replaced by variables."""
        match term:
            case syntax.Functor():
                args = [self.lift_term(arg, lifted, fresh) for arg in term.args]
                args = [_named(arg, arg, lifted, fresh) if _depth(arg) >= MAX_TERM_DEPTH else arg for arg in args]
                return replace(term, args=tuple(args))
            case syntax.Aggregate():
                return _named(term, self.aggregate(term, fresh), lifted, fresh)
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return term
            case _:
                assert_never(term)

    def aggregate(self, aggregate: syntax.Aggregate, fresh: Iterator[str]) -> syntax.Aggregate:
        """The aggregate with a conjunction of plain literals for a body, or a disjunction of such. What is lifted outside of a disjunction is the same in all its ways."""
        lifted: list[syntax.Literal] = []
        target = None if aggregate.target is None else self.lift_term(aggregate.target, lifted, fresh)
        body = [plain for part in (*aggregate.body, *lifted) for plain in self.lift_inside(part, fresh)]
        if any(isinstance(part, syntax.Disjunction) for part in body):
            named = tuple(_named_wildcards(part, fresh) for part in body)
            rule = syntax.Rule((), span=aggregate.span)
            ways = self.alternatives(rule, named)
            if not ways:  # it is over nothing, but its target must have a meaning
                wanted = set() if target is None else names(target)
                some = self.alternatives(rule, tuple(_without_truths(part) for part in named))
                ways = [(syntax.Truth(False), *max(some, key=lambda way: len(wanted & set().union(*map(names, way)))))]
            body = list(ways[0]) if len(ways) == 1 else [syntax.Disjunction(tuple(ways), aggregate.span)]
        return replace(aggregate, target=target, body=tuple(part for part in body if part != syntax.Truth(True)))

    def lift_inside(self, literal: syntax.Literal, fresh: Iterator[str]) -> Iterator[syntax.Literal]:
        """The same for a literal in an aggregate's body, which may be a disjunction."""
        match literal:
            case syntax.Truth():
                yield literal
            case syntax.Disjunction():
                branches = (tuple(plain for part in branch for plain in self.lift_inside(part, fresh)) for branch in literal.branches)
                yield replace(literal, branches=tuple(branches))
            case syntax.Atom() | syntax.Negation() | syntax.Builtin():
                yield from self.lift(literal, fresh)
            case syntax.SetOf():
                raise AssertionError("setofs are collected before")
            case _:
                assert_never(literal)


def flat(atom: syntax.Atom, taken: Collection[str]) -> tuple[syntax.Atom, tuple[syntax.Literal, ...]]:
    """The atom with variables for what it computes, which are not called as in `taken`, and what these variables equal.

    >>> from vigilog.language.parser import parse
    >>> from vigilog.language.printer import show_literal
    >>> atom, equalities = flat(parse("p(x + 1, 0) :- q(x).").rules[0].head, {"x"})
    >>> show_literal(atom), [show_literal(literal) for literal in equalities]
    ('p(n, 0)', ['n = x + 1'])
    """
    equalities: list[syntax.Literal] = []
    atom = _flat(atom, equalities, _fresh(taken))
    return atom, tuple(equalities)


def _flat(atom: syntax.Atom, lifted: list[syntax.Literal], fresh: Iterator[str]) -> syntax.Atom:
    return replace(atom, args=tuple(_named(arg, arg, lifted, fresh) if isinstance(arg, syntax.Functor) else arg for arg in atom.args))


def _named(term: syntax.Term, value: syntax.Term, lifted: list[syntax.Literal], fresh: Iterator[str]) -> syntax.Variable:
    """A new variable for a term, and the literal that gives it its value."""
    variable = syntax.Variable(next(fresh), term.type, term.span)
    lifted.append(syntax.Builtin("=", (variable, value), term.span))
    return variable


def _named_wildcards(literal: syntax.Literal, fresh: Iterator[str]) -> syntax.Literal:
    """The literal with variables for `_`, so that all ways of a disjunction have the same columns."""
    if not isinstance(literal, syntax.Atom):
        return literal
    args = (syntax.Variable(next(fresh), arg.type, arg.span) if isinstance(arg, syntax.Wildcard) else arg for arg in literal.args)
    return replace(literal, args=tuple(args))


def _without_truths(literal: syntax.Literal) -> syntax.Literal:
    """The literal as if nothing in it were just false."""
    if isinstance(literal, syntax.Disjunction):
        return replace(literal, branches=tuple(tuple(map(_without_truths, branch)) for branch in literal.branches))
    return syntax.Truth(True) if isinstance(literal, syntax.Truth) else literal


def _depth(term: syntax.Term) -> int:
    return 1 + max(map(_depth, term.args), default=0) if isinstance(term, syntax.Functor) else 0


def _rename_locals(rule: syntax.Rule) -> syntax.Rule:
    """Gives the local variables of each aggregate names that occur nowhere else in the rule."""
    outer = names(rule)
    taken = set(outer)

    def term(part: syntax.Term, visible: set[str]) -> syntax.Term:
        match part:
            case syntax.Functor():
                return replace(part, args=tuple(term(arg, visible) for arg in part.args))
            case syntax.Variable() | syntax.Wildcard() | syntax.Constant():
                return part
            case syntax.Aggregate():
                pass
            case _:
                assert_never(part)
        own = set() if part.target is None else names(part.target)
        own = own.union(*(names(piece) for piece in part.body)) - visible
        fresh = _fresh(taken | names(rule, into_aggregates=True))
        bindings: dict[str, syntax.Term] = {name: syntax.Variable(next(fresh)) for name in sorted(own & taken)}
        taken.update(own, (variable.name for variable in bindings.values() if isinstance(variable, syntax.Variable)))
        bindings = {name: _typed_like(variable, part, name) for name, variable in bindings.items()}
        renamed = rename(part, bindings)
        assert isinstance(renamed, syntax.Aggregate)
        inner = visible | (own - bindings.keys()) | {b.name for b in bindings.values() if isinstance(b, syntax.Variable)}
        target = None if renamed.target is None else term(renamed.target, inner)
        return replace(renamed, target=target, body=tuple(map_terms(piece, lambda inside: term(inside, inner)) for piece in renamed.body))

    heads = tuple(replace(head, args=tuple(term(arg, outer) for arg in head.args)) for head in rule.heads)
    return replace(rule, heads=heads, body=tuple(map_terms(part, lambda inside: term(inside, outer)) for part in rule.body))


def _typed_like(variable: syntax.Term, aggregate: syntax.Aggregate, name: str) -> syntax.Term:
    original = next(old for old in variables(aggregate, into_aggregates=True) if old.name == name)
    assert isinstance(variable, syntax.Variable)
    return replace(variable, type=original.type, span=original.span)


def _fresh(taken: Collection[str]) -> Iterator[str]:
    return (name for name in _numbered("n") if name not in taken)


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}{number}" for number in count(2))
