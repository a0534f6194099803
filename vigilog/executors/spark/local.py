"""Rules over rows that are in this process. Spark takes a tenth of a second for any query; a few rows are joined in less.

A rule is compiled once, into a chain of steps: from the rows of its first atom, each step extends the bindings so far or drops some. Rows are looked up in indexes, which are made for
the columns that are known when an atom is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, assert_never

from vigilog.core.values import Row
from vigilog.language import functors, solving, syntax
from vigilog.language.parts import aggregates, names
from vigilog.language.safety import awaits, decidable, needs

Binding = tuple[Any, ...]
Value = Callable[[Binding], Any]


class Rows:
    """A set of rows, in the order in which they came, with indexes."""

    def __init__(self) -> None:
        self.rows: dict[Row, None] = {}
        self.indexes: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def add(self, rows: Iterable[Row]) -> list[Row]:
        """Adds rows; gives those that are new."""
        old, new = self.rows, []
        for row in rows:
            if row not in old:
                old[row] = None
                new.append(row)
        for columns, index in self.indexes.items():
            _enter(index, columns, new)
        return new

    def matching(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows that have these values in these columns."""
        if not columns:
            return list(self.rows)
        if columns not in self.indexes:
            self.indexes[columns] = {}
            _enter(self.indexes[columns], columns, self.rows)
        return self.indexes[columns].get(key, ())

    def has(self, columns: tuple[int, ...], key: Row) -> bool:
        """Whether there is such a row."""
        return bool(self.matching(columns, key) if columns else self.rows)


def _enter(index: dict[Row, list[Row]], columns: tuple[int, ...], rows: Iterable[Row]) -> None:
    for row in rows:
        index.setdefault(tuple([row[column] for column in columns]), []).append(row)


class Matching(Protocol):
    """Rows that can be looked up."""

    def matching(self, columns: tuple[int, ...], key: Row) -> Sequence[Row]:
        """The rows that have these values in these columns."""

    def has(self, columns: tuple[int, ...], key: Row) -> bool:
        """Whether there is such a row."""


class Excess(Exception):
    """More follows than is to be followed here."""


Step = Callable[[Iterable[Binding], Mapping[str, Matching]], Iterator[Binding]]


class LocalRule:
    """A plain rule, from its first atom; of aggregates it may have simple ones (`is_local`).

    >>> from vigilog.language.check import check
    >>> text = ".decl d(x: number) .decl e(x: number, y: number) .decl p(x: number, y: number) p(x, y + 1) :- d(x), e(x, y), !e(y, x)."
    >>> edges = Rows()
    >>> edges.add([(1, 2), (1, 3), (3, 1), (4, 5)])
    [(1, 2), (1, 3), (3, 1), (4, 5)]
    >>> list(LocalRule(check(text).program.rules[0]).derive([(1,)], {"e": edges}))
    [(1, 3)]
    """

    def __init__(self, rule: syntax.Rule, late: Collection[str] = ()) -> None:
        """Relations that are `late` are looked up as late as possible."""
        self.scope, self.slots, self.late = names(rule), dict[str, int](), late
        self.undefined = 0
        self.left: int | None = None  # how many more rows may be met
        first, *pending = rule.body
        assert isinstance(first, syntax.Atom), "a rule is read from an atom"
        self.first, self.steps = self._match(first), list[Step]()
        while pending:
            literal = pending.pop(self._next(pending))
            self.steps.append(self._step(literal))
        self.head = [self._value(arg) for arg in rule.head.args]

    def derive(self, recent: Iterable[Row], relations: Mapping[str, Matching], most: int | None = None) -> Iterator[Row]:
        """What follows from recent rows of the first atom. Raises Excess if that, or what is met on the way, are more than `most` rows."""
        self.left = most
        bindings: Iterable[Binding] = (extended for row in recent for extended in self.first((), row))
        for step in self.steps:
            bindings = step(bindings, relations)
        for binding in bindings:
            row = tuple([value(binding) for value in self.head])
            if None not in row:
                yield row

    # -- the chain

    def _next(self, pending: Sequence[syntax.Literal]) -> int:
        """The literal to take next: what can be decided, else the atom of which most columns are known, and that need not wait."""

        equalities = [literal for literal in pending if isinstance(literal, syntax.Builtin)]

        def cost(index: int) -> tuple[int, bool, bool, int]:
            literal = pending[index]
            if isinstance(literal, syntax.Atom):
                bound = sum(not isinstance(arg, syntax.Wildcard) and self._known(arg) for arg in literal.args)
                return 1 + awaits(literal, equalities, self.slots, self.scope), not bound, literal.relation in self.late, -bound
            late = (
                isinstance(literal, syntax.Negation) and isinstance(literal.literal, syntax.Atom) and literal.literal.relation in self.late
            )
            return int(late) if self._decidable(literal) else 3, False, late, 0

        return min(range(len(pending)), key=lambda index: (cost(index), index))

    def _decidable(self, literal: syntax.Literal) -> bool:
        match literal:
            case syntax.Builtin(args=(syntax.Variable(), syntax.Aggregate() as aggregate)):
                return needs(aggregate, self.scope) <= self.slots.keys()
            case syntax.Builtin():
                return decidable(literal, self._known)
            case syntax.Negation(literal=inner):
                return all(isinstance(arg, syntax.Wildcard) or self._known(arg) for arg in inner.args)
            case syntax.Atom() | syntax.Truth() | syntax.Disjunction() | syntax.SetOf():
                return True
            case _:
                assert_never(literal)

    def _step(self, literal: syntax.Literal) -> Step:
        match literal:
            case syntax.Atom():
                return self._join(literal)
            case syntax.Negation(literal=inner):
                return self._absent(inner) if isinstance(inner, syntax.Atom) else self._test(inner, False)
            case syntax.Builtin(args=(syntax.Variable(name=name), syntax.Aggregate() as aggregate)):
                return self._aggregate(name, aggregate)
            case syntax.Builtin() if (use := syntax.usage(literal)) is not None:
                return self._used(literal, use)
            case syntax.Builtin(op="=", args=(left, right)):
                for target, term in ((left, right), (right, left)):
                    if isinstance(target, syntax.Variable) and target.name not in self.slots:
                        return self._bind(target.name, term)
                    if isinstance(target, syntax.Functor) and target.name == "()" and not self._known(target) and self._known(term):
                        return self._taken_apart(target, term)
                return self._test(literal, True)
            case syntax.Builtin():
                return self._test(literal, True)
            case syntax.Truth(value=value):
                return lambda bindings, _: (binding for binding in bindings if value)
            case syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("plain rules have no disjunctions outside aggregates, and no setof")
            case _:
                assert_never(literal)

    def _join(self, atom: syntax.Atom) -> Step:
        bound = [
            (column, self._value(arg)) for column, arg in enumerate(atom.args) if not isinstance(arg, syntax.Wildcard) and self._known(arg)
        ]
        columns, keys = tuple(column for column, _ in bound), [value for _, value in bound]
        if all(column in columns or isinstance(arg, syntax.Wildcard) for column, arg in enumerate(atom.args)):
            return self._present(atom.relation, columns, keys)
        match = self._match(atom, columns)

        def step(bindings: Iterable[Binding], relations: Mapping[str, Matching]) -> Iterator[Binding]:
            rows = relations[atom.relation]
            for binding in bindings:
                matches = rows.matching(columns, tuple([key(binding) for key in keys]))
                if self.left is not None:
                    self.left -= len(matches)
                    if self.left < 0:
                        raise Excess
                for row in matches:
                    yield from match(binding, row)

        return step

    def _match(self, atom: syntax.Atom, bound: Collection[int] = ()) -> Callable[[Binding, Row], Iterable[Binding]]:
        """How a row extends a binding: by the variables that are new with it, or not at all. Columns that are `bound` are right already."""
        new: list[int] = []
        rest: list[tuple[int, syntax.Term]] = []
        for column, arg in enumerate(atom.args):
            if isinstance(arg, syntax.Variable) and arg.name not in self.slots:
                self.slots[arg.name] = len(self.slots)
                new.append(column)
            elif column not in bound and not isinstance(arg, syntax.Wildcard):
                rest.append((column, arg))
        checks = [(column, self._value(arg)) for column, arg in rest]

        def match(binding: Binding, row: Row) -> Iterable[Binding]:
            extended = binding + tuple([row[column] for column in new])
            return (extended,) if all(check(extended) == row[column] for column, check in checks) else ()

        return match

    def _present(self, relation: str, columns: tuple[int, ...], keys: Sequence[Value], wanted: bool = True) -> Step:
        """An atom that only says that there is a row, or that there is none."""

        def step(bindings: Iterable[Binding], relations: Mapping[str, Matching]) -> Iterator[Binding]:
            rows = relations[relation]
            for binding in bindings:
                key = tuple([value(binding) for value in keys])
                if None not in key and rows.has(columns, key) is wanted:
                    yield binding

        return step

    def _absent(self, atom: syntax.Atom) -> Step:
        bound = [(column, self._value(arg)) for column, arg in enumerate(atom.args) if not isinstance(arg, syntax.Wildcard)]
        return self._present(atom.relation, tuple(column for column, _ in bound), [value for _, value in bound], wanted=False)

    def _aggregate(self, name: str, aggregate: syntax.Aggregate) -> Step:
        """A variable is a count, or a sum, over the rows of one relation that have what is known."""
        (atom,), type_ = aggregate.body, aggregate.type
        assert isinstance(atom, syntax.Atom) and type_ is not None, "an aggregate for this process"
        bound = [(column, self._value(arg)) for column, arg in enumerate(atom.args) if names(arg) <= self.scope]
        columns, keys = tuple(column for column, _ in bound), [value for _, value in bound]
        target = None if aggregate.target is None else atom.args.index(aggregate.target)
        own = self.slots.get(name)
        self.slots.setdefault(name, len(self.slots))

        def step(bindings: Iterable[Binding], relations: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                rows = relations[atom.relation].matching(columns, tuple([key(binding) for key in keys]))
                total = functors.aggregate(aggregate.op, type_, rows if target is None else [row[target] for row in rows])
                self.undefined += total is None
                if own is None and total is not None:
                    yield (*binding, total)
                elif own is not None and total == binding[own]:
                    yield binding

        return step

    def _bind(self, name: str, term: syntax.Term) -> Step:
        value = self._value(term)
        self.slots[name] = len(self.slots)

        def step(bindings: Iterable[Binding], _: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                cell = value(binding)
                if cell is not None:
                    yield (*binding, cell)

        return step

    def _taken_apart(self, target: syntax.Term, term: syntax.Term) -> Step:
        """What is known of a tuple gives the variables in it."""
        value, match = self._value(term), self._matching(target)

        def step(bindings: Iterable[Binding], _: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                cell = value(binding)
                if cell is not None:
                    yield from match(binding, cell)

        return step

    def _used(self, literal: syntax.Builtin, use: syntax.Usage) -> Step:
        """`member`, or an aggregate over a set: each of its results."""
        given, match = [self._value(term) for term in use.given], self._matching(syntax.Functor("()", use.results))

        def step(bindings: Iterable[Binding], _: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                args = [value(binding) for value in given]
                for row in () if None in args else solving.outcomes(literal, use, args):
                    yield from match(binding, row)

        return step

    def _matching(self, target: syntax.Term) -> Callable[[Binding, Any], Iterable[Binding]]:
        """How a value extends a binding in which a term is to equal it."""
        paths: list[tuple[int, ...]] = []
        checks: list[tuple[tuple[int, ...], Value]] = []

        def look(term: syntax.Term, path: tuple[int, ...]) -> None:
            if isinstance(term, syntax.Variable) and term.name not in self.slots:
                self.slots[term.name] = len(self.slots)
                paths.append(path)
            elif isinstance(term, syntax.Functor) and term.name == "()":
                for place, arg in enumerate(term.args):
                    look(arg, (*path, place))
            else:
                checks.append((path, self._value(term)))

        def part(value: Any, path: tuple[int, ...]) -> Any:
            for place in path:
                value = value[place]
            return value

        def match(binding: Binding, value: Any) -> Iterable[Binding]:
            extended = binding + tuple([part(value, path) for path in paths])
            return (extended,) if all(check(extended) == part(value, path) for path, check in checks) else ()

        look(target, ())
        return match

    def _test(self, builtin: syntax.Builtin, wanted: bool) -> Step:
        if (use := syntax.usage(builtin)) is not None and builtin.op != "member":
            return self._negated(builtin, use)
        values = [self._value(arg) for arg in builtin.args]

        def step(bindings: Iterable[Binding], _: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                args = [value(binding) for value in values]
                if None not in args and functors.test(builtin.op, args) is wanted:
                    yield binding

        return step

    def _negated(self, builtin: syntax.Builtin, use: syntax.Usage) -> Step:
        """An aggregate over a set that has results, and not these."""
        given, wanted = ([self._value(term) for term in part] for part in (use.given, use.results))

        def step(bindings: Iterable[Binding], _: Mapping[str, Matching]) -> Iterator[Binding]:
            for binding in bindings:
                args = [value(binding) for value in given]
                rows = [] if None in args else list(solving.outcomes(builtin, use, args))
                if rows and tuple(value(binding) for value in wanted) not in rows:
                    yield binding

        return step

    # -- terms

    def _known(self, term: syntax.Term) -> bool:
        return needs(term, self.scope) <= self.slots.keys()

    def _value(self, term: syntax.Term) -> Value:
        match term:
            case syntax.Variable():
                slot = self.slots[term.name]
                return lambda binding: binding[slot]
            case syntax.Constant():
                constant = term.value
                return lambda _: constant
            case syntax.Functor():
                return self._functor(term)
            case syntax.Wildcard() | syntax.Aggregate():
                raise AssertionError("a rule with aggregates is none for this process")
            case _:
                assert_never(term)

    def _functor(self, term: syntax.Functor) -> Value:
        assert term.type is not None, "checked programs are typed"
        type_, types, values = term.type, [arg.type for arg in term.args], [self._value(arg) for arg in term.args]

        def value(binding: Binding) -> Any:
            args = [part(binding) for part in values]
            if None in args:
                return None
            result = functors.apply(term.name, type_, types, args)  # type: ignore[arg-type]  # checked programs are typed
            self.undefined += result is None
            return result

        return value


def is_local(rule: syntax.Rule, tables: Collection[str] = ()) -> bool:
    """Whether a rule can be run here, from its first atom, if all it reads is here. An aggregate over tables is none for this process: what it ranges over may be many rows.

    >>> from vigilog.language.check import check
    >>> text = ".decl e(x: number, y: number) .decl p(x: number) p(x) :- e(x, x). p(n) :- e(x, _), n = max y : { e(x, y) }."
    >>> [is_local(rule) for rule in check(text).program.rules]
    [True, False]
    """
    scope = names(rule)
    return all(_is_simple(aggregate, scope, tables) for literal in rule.body for aggregate in aggregates(literal))


def _is_simple(aggregate: syntax.Aggregate, scope: Collection[str], tables: Collection[str]) -> bool:
    """Whether an aggregate is a count, or a sum of a column, over the rows of one relation that have what is known in some columns."""
    match aggregate:
        case syntax.Aggregate(op="count" | "sum", target=None | syntax.Variable(), body=(syntax.Atom(relation=relation, args=args),)):
            own = [arg.name for arg in args if isinstance(arg, syntax.Variable)]
            distinct = len(own) == len(args) == len(set(own))
            summed = aggregate.target is None or (aggregate.target in args and not names(aggregate.target) <= set(scope))
            return distinct and summed and relation not in tables
        case _:
            return False
