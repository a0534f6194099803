"""Demand: derive only what is asked for (supplementary magic sets).

A relation that is derived on demand has, for each pattern of columns that are known when it is read, a *magic* relation that holds the questions: `m_p_bf(x)` asks for the
rows of `p` with that first column. Its rules are guarded by the questions, and a rule that reads it asks as soon as the bindings are known: what is known up to there is
a *supplementary* relation `sup_1`. All answers, whichever pattern asked, are rows of `p` itself.

A linear recursion that passes the unknown columns on unchanged, as `p(x, y) :- e(x, z), p(z, y)` does when `x` is known, is *factored*: instead of answering the question
`z` of its own and copying the answers, it goes on for the first question's sake, in `sup_p_bf(x, z)`. Without that, all pairs of what can be reached would be derived.
(Naughton, Ramakrishnan, Sagiv, Ullman 1989.)

Demand and negation: what is negated or aggregated must be complete for its bindings before it is read. Rules have a *rank* for that (`ranks`): a rule runs only when
all rules of lower rank have nothing left to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from typing import assert_never

from vigilog.language import syntax
from vigilog.language.parts import atoms, names, variables
from vigilog.language.safety import awaits, decidable, grounded_by, names_in, needs
from vigilog.rewriting.naming import Naming

MOST_COLUMNS = 5  # up to so many, all patterns are looked at


@dataclass(frozen=True)
class _Way:
    """How a rule passes on the columns that a question leaves open."""

    rule: syntax.Rule
    call: syntax.Atom | None  # the recursive atom of a rule whose open columns go through unchanged


class Demand:
    """Collects rules that derive relations on demand; `definitions` are the plain rules of each.

    `through` names relations that take rows over from one on demand, by rules that are not made here: who reads the one asks for the other.
    """

    def __init__(
        self,
        definitions: Mapping[str, Sequence[syntax.Rule]],
        naming: Naming,
        *,
        factoring: bool = True,
        through: Mapping[str, str] | None = None,
    ) -> None:
        self.definitions, self.naming, self.factoring = definitions, naming, factoring
        self.behind = {**{name: name for name in definitions}, **(through or {})}  # what is asked when a relation is read
        self.rules: list[syntax.Rule] = []
        self.added: set[syntax.Rule] = set()
        self.declarations: dict[str, syntax.Declaration] = {}
        self.asked: dict[tuple[str, str], str] = {}  # the magic relation of each relation and pattern asked for
        self.open: list[tuple[str, str]] = []

    # -- questions

    def question(self, relation: str, pattern: str, args: Iterable[syntax.Term]) -> syntax.Atom:
        """The question for the rows of a relation whose columns marked `b` have these values."""
        args = tuple(args)
        key = relation, pattern
        if key not in self.asked:
            self.asked[key] = self.naming("m", relation, pattern)
            self.open.append(key)
        self.declare(self.asked[key], args)
        return syntax.Atom(self.asked[key], args)

    def finish(self) -> dict[tuple[str, str], tuple[syntax.Rule, ...]]:
        """Adds the rules that answer every question asked so far, and those they ask; gives them by relation and pattern."""
        answers = {}
        while self.open:
            relation, pattern = self.open.pop(0)
            before = len(self.rules)
            self._answer(relation, pattern)
            answers[relation, pattern] = tuple(self.rules[before:])
        return answers

    def cheap_pattern(self, relation: str) -> str:
        """The pattern to test single rows with: all columns known, or those of a factored recursion, for it finds the rest in passing."""
        factored = [pattern for pattern in self.linear_patterns(relation) if self._factored(relation, pattern)]
        return factored[0] if factored else "b" * len(self.definitions[relation][0].head.args)

    def linear_patterns(self, relation: str) -> list[str]:
        """Patterns for which a recursion asks no more than it answers: it is factored, or goes on asking the same."""
        arity = len(self.definitions[relation][0].head.args)
        patterns = ["".join(marks) for marks in product("bf", repeat=arity)] if arity <= MOST_COLUMNS and self.factoring else []
        return [
            pattern
            for pattern in patterns
            if len(set(pattern)) == 2 and (self._factored(relation, pattern) or self._repeats(relation, pattern))
        ]

    def _repeats(self, relation: str, pattern: str) -> bool:
        """Whether every recursive rule asks for the very columns it was asked for."""
        found = False
        for rule in self.definitions[relation]:
            for atom, _ in atoms(rule.body):
                if self._reaches(atom.relation, relation):
                    pairs = [(arg, other) for arg, other, mark in zip(rule.head.args, atom.args, pattern, strict=False) if mark == "b"]
                    if atom.relation != relation or any(arg != other or not isinstance(arg, syntax.Variable) for arg, other in pairs):
                        return False
                    found = True
        return found

    # -- rules

    def chain(self, origin: syntax.Rule, head: syntax.Atom, seed: Sequence[syntax.Literal], rest: Sequence[syntax.Literal]) -> None:
        """Adds the rule `head :- seed, rest`, cut wherever something must be asked first."""
        whole = syntax.Rule((head,), (*seed, *rest))
        scope, done, pending = names(whole), list(seed), list(rest)
        while pending:
            bound = grounded_by(tuple(done), set(), scope)
            literal = pending.pop(self._next(pending, bound, scope))
            if self._on_demand(literal):
                wanted = set().union(*(needs_of(part, scope) for part in (head, literal, *pending)))
                done = [self._cut(origin, done, wanted)]
                self._ask(origin, done, literal, bound, scope)
            done.append(literal)
        self.add(origin.derive(head, body=tuple(done)))

    def add(self, rule: syntax.Rule) -> None:
        if rule.head not in rule.body and rule not in self.added:
            self.added.add(rule)
            self.rules.append(rule)

    def declare(self, relation: str, args: Sequence[syntax.Term]) -> None:
        if relation not in self.declarations:
            columns = []
            for number, arg in enumerate(args):
                assert arg.type is not None, "checked programs are typed"
                name = arg.name if isinstance(arg, syntax.Variable) and arg not in args[:number] else f"c{number}"
                columns.append(syntax.Attribute(name, str(arg.type), arg.type))
            if len({column.name for column in columns}) < len(columns):
                columns = [replace(column, name=f"c{number}") for number, column in enumerate(columns)]
            self.declarations[relation] = syntax.Declaration(relation, tuple(columns))

    def _cut(self, origin: syntax.Rule, done: list[syntax.Literal], wanted: set[str]) -> syntax.Atom:
        """What is known so far as one atom, with the variables that are still wanted."""
        if len(done) == 1 and isinstance(done[0], syntax.Atom):
            return done[0]
        by_name = {variable.name: variable for literal in done for variable in variables(literal)}
        args = tuple(variable for name, variable in by_name.items() if name in wanted)
        head = syntax.Atom(self.naming.fresh("sup"), args)
        self.declare(head.relation, args)
        self.add(origin.derive(head, body=tuple(done)))
        return head

    def _ask(self, origin: syntax.Rule, done: list[syntax.Literal], literal: syntax.Literal, bound: set[str], scope: set[str]) -> None:
        for atom, before in self._questions(literal, [], bound, scope):
            grounded = grounded_by((*done, *before), set(), scope | names_of(before))
            pattern = "".join("b" if _known(arg, grounded, scope) else "f" for arg in atom.args)
            args = [arg for arg, mark in zip(atom.args, pattern, strict=True) if mark == "b"]
            self.add(origin.derive(self.question(self.behind[atom.relation], pattern, args), body=(*done, *before)))

    def _questions(
        self, literal: syntax.Literal, before: list[syntax.Literal], bound: set[str], scope: set[str]
    ) -> Iterator[tuple[syntax.Atom, tuple[syntax.Literal, ...]]]:
        """The atoms on demand in a literal, each with what comes before it inside an aggregate."""
        match literal:
            case syntax.Atom() if literal.relation in self.behind:
                yield literal, tuple(before)
            case syntax.Negation(literal=syntax.Atom() as atom) if atom.relation in self.behind:
                yield atom, tuple(before)
            case syntax.Builtin(args=(_, syntax.Aggregate() as aggregate)):
                inside = scope | names_in(aggregate)
                for way in _ways(aggregate):
                    done, pending = list(before), list(way)
                    while pending:
                        grounded = bound | grounded_by(tuple(done), bound, inside)
                        part = pending.pop(self._next(pending, grounded, inside))
                        if self._on_demand(part):
                            yield from self._questions(part, done, grounded, inside)
                        if isinstance(part, syntax.Atom | syntax.Builtin) and not (
                            isinstance(part, syntax.Builtin) and isinstance(part.args[-1], syntax.Aggregate)
                        ):
                            done.append(part)
            case syntax.Atom() | syntax.Negation() | syntax.Builtin() | syntax.Truth():
                pass
            case syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("plain rules have no disjunctions outside aggregates, and no setof")
            case _:
                assert_never(literal)

    def _on_demand(self, literal: syntax.Literal) -> bool:
        return any(atom.relation in self.behind for atom, _ in atoms((literal,)))

    def _next(self, pending: Sequence[syntax.Literal], bound: set[str], scope: set[str]) -> int:
        """The literal to read next: what can be decided at once; then atoms with something known, tables before what must be asked for; negation and aggregates last."""

        equalities = [literal for literal in pending if isinstance(literal, syntax.Builtin)]

        def cost(index: int) -> tuple[float, float]:
            literal = pending[index]
            asked = self._on_demand(literal)
            match literal:
                case syntax.Atom():
                    marks = [_known(arg, bound, scope) for arg in literal.args]
                    some = any(marks) or not marks
                    waits = awaits(literal, equalities, bound, scope)
                    return (1 + asked if some else 3 + asked) + 10 * waits, -sum(marks) / max(len(marks), 1)
                case syntax.Builtin(args=(_, syntax.Aggregate() as aggregate)):
                    return (6 if needs(aggregate, scope) <= bound else 20), 0
                case syntax.Builtin():
                    return (0 if decidable(literal, lambda term: _known(term, bound, scope)) else 20), 0
                case syntax.Truth():
                    return 0, 0
                case syntax.Negation() | syntax.Disjunction() | syntax.SetOf():
                    return (5 * asked if needs_of(literal, scope) <= bound else 20), 0
                case _:
                    assert_never(literal)

        return min(range(len(pending)), key=lambda index: (cost(index), index))

    # -- answers

    def _answer(self, relation: str, pattern: str) -> None:
        """Adds the rules that answer the questions of one pattern."""
        ways = self._factored(relation, pattern) if self.factoring else None
        for rule in self.definitions[relation] if ways is None else ():
            seed, equal = self._seed(rule, pattern, self.asked[relation, pattern])
            self.chain(rule, rule.head, [seed], [*rule.body, *equal])
        if ways is not None:
            self._answer_factored(relation, pattern, ways)

    def _seed(self, rule: syntax.Rule, pattern: str, magic: str) -> tuple[syntax.Atom, list[syntax.Literal]]:
        """The question that a rule answers, with equalities for computed columns of its head."""
        fresh = (name for name in (f"b{number}" for number in count(1)) if name not in names(rule, into_aggregates=True))
        args: list[syntax.Term] = []
        equal: list[syntax.Literal] = []
        for arg, mark in zip(rule.head.args, pattern, strict=True):
            if mark == "b" and isinstance(arg, syntax.Variable | syntax.Constant):
                args.append(arg)
            elif mark == "b":
                args.append(syntax.Variable(next(fresh), arg.type))
                equal.append(syntax.Builtin("=", (args[-1], arg)))
        return syntax.Atom(magic, tuple(args)), equal

    def _answer_factored(self, relation: str, pattern: str, ways: Sequence[_Way]) -> None:
        """`sup_p_bf(s, x)`: what `p` has for `x` it has for the question `s`, too."""
        columns = [arg for arg, mark in zip(ways[0].rule.head.args, pattern, strict=True) if mark == "b"]
        goals = [syntax.Variable(f"s{number}", arg.type) for number, arg in enumerate(columns, start=1)]
        reached = self.naming("sup", relation, pattern)
        self.declare(reached, [*goals, *(syntax.Variable(f"x{number}", arg.type) for number, arg in enumerate(columns, start=1))])
        self.add(
            ways[0].rule.derive(syntax.Atom(reached, (*goals, *goals)), body=(syntax.Atom(self.asked[relation, pattern], tuple(goals)),))
        )
        for way in ways:
            rule = way.rule
            taken = names(rule, into_aggregates=True)
            own = tuple(replace(goal, name=_unused(goal.name, taken)) for goal in goals)
            inner, equal = self._seed(rule, pattern, reached)
            seed = syntax.Atom(reached, (*own, *inner.args))
            if way.call is None:
                given = iter(own)
                head = replace(
                    rule.head, args=tuple(next(given) if mark == "b" else arg for arg, mark in zip(rule.head.args, pattern, strict=True))
                )
                self.chain(rule, head, [seed], [*rule.body, *equal])
            else:
                called = [arg for arg, mark in zip(way.call.args, pattern, strict=True) if mark == "b"]
                rest = [literal for literal in rule.body if literal is not way.call]
                self.chain(rule, syntax.Atom(reached, (*own, *called)), [seed], [*rest, *equal])

    def _factored(self, relation: str, pattern: str) -> list[_Way] | None:
        """The ways of a relation's rules, if each recursive one passes the open columns on unchanged; None otherwise, or if none is recursive."""
        if "f" not in pattern or "b" not in pattern:
            return None
        ways = []
        for rule in self.definitions[relation]:
            if not any(self._reaches(atom.relation, relation) for atom, _ in atoms(rule.body)):
                ways.append(_Way(rule, None))
                continue
            calls = [literal for literal in rule.body if isinstance(literal, syntax.Atom) and literal.relation == relation]
            others = [atom for atom, _ in atoms(rule.body) if not any(atom is call for call in calls)]
            if len(calls) != 1 or any(self._reaches(atom.relation, relation) for atom in others) or not _passes(rule, calls[0], pattern):
                return None
            ways.append(_Way(rule, calls[0]))
        return ways if any(way.call is not None for way in ways) else None

    def _reaches(self, start: str, goal: str) -> bool:
        """Whether a relation depends on another."""
        seen, queue = {start}, [start]
        for name in queue:
            if name == goal:
                return True
            for rule in self.definitions.get(name, ()):
                new = {atom.relation for atom, _ in atoms(rule.body)} - seen
                seen |= new
                queue.extend(new)
        return False


def _passes(rule: syntax.Rule, call: syntax.Atom, pattern: str) -> bool:
    """Whether the columns marked `f` are variables that only the head and the recursive atom have, in the same columns, and the others of the atom are known without it."""
    columns = list(zip(rule.head.args, call.args, pattern, strict=True))
    occurring = [variable.name for literal in (rule.head, *rule.body) for variable in variables(literal, into_aggregates=True)]
    if not all(
        isinstance(arg, syntax.Variable) and arg == other and occurring.count(arg.name) == 2 for arg, other, mark in columns if mark == "f"
    ):
        return False
    scope = names(rule)
    given = {arg.name for arg, _, mark in columns if mark == "b" and isinstance(arg, syntax.Variable)}
    grounded = grounded_by(tuple(literal for literal in rule.body if literal is not call), given, scope)
    return all(_known(arg, grounded, scope) for _, arg, mark in columns if mark == "b")


def ranks(rules: Iterable[syntax.Rule], levels: Mapping[str, int]) -> list[int]:
    """For each rule when it may run: after everything that what it negates or aggregates depends on."""
    numbers = []
    for rule in rules:
        negative = [levels[atom.relation] + 1 for atom, positive in atoms(rule.body) if not positive and atom.relation in levels]
        numbers.append(max(negative, default=0))
    return numbers


def needs_of(literal: syntax.Literal, scope: set[str]) -> set[str]:
    """The variables of a scope that a literal mentions, those inside its aggregates included."""
    return names(literal) | (names(literal, into_aggregates=True) & scope)


def names_of(literals: Iterable[syntax.Literal]) -> set[str]:
    return set().union(*(names(literal) for literal in literals))


def _known(term: syntax.Term, bound: set[str], scope: set[str]) -> bool:
    return not isinstance(term, syntax.Wildcard) and needs(term, scope) <= bound


def _ways(aggregate: syntax.Aggregate) -> tuple[tuple[syntax.Literal, ...], ...]:
    match aggregate.body:
        case (syntax.Disjunction(branches=branches),):
            return branches
        case body:
            return (body,)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
