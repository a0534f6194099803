"""A plain rule as one SELECT.

Atoms become tables, joined in the order `order.py` chooses; shared variables become equalities; a variable that `=` binds becomes an
expression; a negated atom becomes NOT EXISTS; an aggregate becomes a subquery with a single value. A functor is NULL where it is undefined, and
every literal that could be is guarded, so that undefined means false, negated or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from vigilog.core.values import Type
from vigilog.language.functors import TOTAL
from vigilog.language.safety import needs
from vigilog.language.syntax import (
    Aggregate,
    Atom,
    Constant,
    Constraint,
    Functor,
    Literal,
    Negation,
    Rule,
    Term,
    Truth,
    Variable,
    Wildcard,
    names,
    subterms,
)
from vigilog.planning.dialect import Dialect, Sql, defined, integer
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search, cheapest

LARGE_EXPRESSION = 30  # nodes; a larger one that a variable stands for is computed once, in a SELECT of its own


@dataclass(frozen=True)
class Choice:
    """How a rule is to be read: which atom comes first (the recent one), from which tables, how large each relation is."""

    first: int | None = None
    table: Callable[[int, Atom], str] | None = None
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """The statement, the parameters in it, the searches it makes, and whether a functor in it may be undefined."""

    sql: exp.Select
    parameters: Mapping[str, str]
    searches: tuple[Search, ...]
    partial: bool


def select(rule: Rule, layout: Layout, dialect: Dialect, choice: Choice = Choice()) -> Selection:
    """The SELECT whose rows are what the rule derives, named by the head's columns; duplicates are not removed."""
    builder = _Builder(layout, dialect, choice)
    query = _Query(builder, dict(), names(rule))
    query.solve(rule.body, choice.first)
    values = [query.guarded(arg) for arg in rule.head.args] or [integer(1)]
    columns = layout.columns[rule.head.relation]
    sql = query.finish([exp.alias_(value, column, quoted=True) for value, column in zip(values, columns, strict=True)])
    return Selection(sql, builder.parameters, tuple(dict.fromkeys(builder.searches)), builder.partial)


class _Builder:
    """What all parts of one statement share: fresh aliases, parameters, the searches made."""

    def __init__(self, layout: Layout, dialect: Dialect, choice: Choice) -> None:
        self.layout, self.dialect, self.choice = layout, dialect, choice
        self.parameters: dict[str, str] = {}
        self.searches: list[Search] = []
        self.partial = False
        self.aliases = 0

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def table(self, atom: Atom, position: int | None) -> str:
        if position is not None and self.choice.table is not None:
            return self.choice.table(position, atom)
        return self.layout.tables[atom.relation]

    def constant(self, constant: Constant) -> Sql:
        assert constant.type is not None, "checked programs are typed"
        if constant.type.kind != "symbol":
            return self.dialect.constant(constant.value, constant.type)
        value = str(constant.value)
        known = {text: name for name, text in self.parameters.items()}
        name = known.get(value, f"c{len(self.parameters)}")
        self.parameters[name] = value
        return exp.Placeholder(this=name)


class _Query:
    """One SELECT while it is built: tables, conditions, and for each variable the expression that holds its value."""

    def __init__(self, builder: _Builder, outer: dict[str, Sql], scope: set[str]) -> None:
        self.builder, self.scope = builder, scope
        self.env = outer
        self.tables: list[tuple[str | Sql, str]] = []
        self.where: list[Sql] = []

    def solve(self, body: tuple[Literal, ...], first: int | None = None) -> None:
        """Takes literal after literal: what can be decided at once, then the cheapest atom, aggregates last."""
        pending = list(enumerate(body))
        if first is not None:
            pending = self.postponed(first, pending)
        while pending:
            pending = self.decide(pending)
            if not pending:
                return
            atoms = [(i, part) for i, part in pending if isinstance(part, Atom) and self.computable(part)]
            if atoms:
                index, atom = cheapest(atoms, self.env.keys(), self.builder.choice.rows)
                self.join(index, atom)
                pending = [(i, part) for i, part in pending if i != index]
            else:
                pending = self.compute_aggregates(pending)

    def postponed(self, first: int, pending: list[tuple[int, Literal]]) -> list[tuple[int, Literal]]:
        """Joins the atom that must come first; what its computed arguments equal is decided once they are known."""
        atom = pending[first][1]
        assert isinstance(atom, Atom), "only an atom can come first"
        later: list[tuple[int, Literal]] = []
        args: list[Term] = []
        own = {arg.name for arg in atom.args if isinstance(arg, Variable)}
        for arg in atom.args:
            if isinstance(arg, Wildcard) or needs(arg, self.scope) <= self.env.keys() | own:
                args.append(arg)
            else:
                args.append(Variable(f"{len(args)} of {first}", arg.type))
                later.append((len(pending) + len(later), Constraint("=", (args[-1], arg))))
        self.join(first, Atom(atom.relation, tuple(args), atom.span))
        return [(index, literal) for index, literal in pending if index != first] + later

    def decide(self, pending: list[tuple[int, Literal]]) -> list[tuple[int, Literal]]:
        """Adds every literal that needs no further table, as often as that makes others decidable."""
        while True:
            left = [(index, literal) for index, literal in pending if not self.decided(literal)]
            if len(left) == len(pending):
                return left
            pending = left

    def decided(self, literal: Literal) -> bool:
        match literal:
            case Truth():
                if not literal.value:
                    self.where.append(exp.EQ(this=integer(1), expression=integer(0)))
                return True
            case Constraint(args=(_, Aggregate())):
                return False
            case Constraint(op="=", args=(left, right)):
                for variable, term in ((left, right), (right, left)):
                    if isinstance(variable, Variable) and variable.name not in self.env and self.known(term):
                        self.env[variable.name] = self.guarded(term)
                        if sum(1 for _ in self.env[variable.name].walk()) > LARGE_EXPRESSION:
                            self.stage([])
                        return True
        if isinstance(literal, Atom) or not self.known_literal(literal):
            return False
        if isinstance(literal, Negation) and isinstance(literal.literal, Atom):
            self.where.append(self.absent(literal.literal))
        else:
            constraint = literal.literal if isinstance(literal, Negation) else literal
            assert isinstance(constraint, Constraint)
            condition = self.builder.dialect.test(constraint.op, [self.guarded(arg) for arg in constraint.args])
            if constraint.op == "match" and not isinstance(constraint.args[0], Constant):
                self.builder.partial = True
                self.where.append(self.builder.dialect.counted(defined(condition.copy())))
            self.where.append(exp.Not(this=exp.Paren(this=condition)) if isinstance(literal, Negation) else condition)
        return True

    # -- what is known

    def known(self, term: Term) -> bool:
        return needs(term, self.scope) <= self.env.keys()

    def known_literal(self, literal: Literal) -> bool:
        args = literal.literal.args if isinstance(literal, Negation) else literal.args  # type: ignore[union-attr]  # atoms and constraints
        return all(isinstance(arg, Wildcard) or self.known(arg) for arg in args)

    def computable(self, atom: Atom) -> bool:
        own = {arg.name for arg in atom.args if isinstance(arg, Variable)}
        return all(isinstance(arg, Wildcard) or needs(arg, self.scope) <= self.env.keys() | own for arg in atom.args)

    # -- tables

    def join(self, index: int, literal: Literal) -> None:
        assert isinstance(literal, Atom), "only an atom can come first"
        alias = self.builder.alias()
        self.tables.append((self.builder.table(literal, index), alias))
        self.match(literal, alias, searched=index != self.builder.choice.first)

    def match(self, atom: Atom, alias: str, *, searched: bool, guarded: bool = True) -> None:
        """Equates an atom's arguments with a table's columns; variables seen first take the column for their value."""
        given = set(self.env)
        cells = [exp.column(column, alias, quoted=True) for column in self.builder.layout.columns[atom.relation]]
        repeated: list[tuple[int, Term]] = []
        for position, arg in enumerate(atom.args):
            if isinstance(arg, Variable) and arg.name not in self.env:
                self.env[arg.name] = cells[position]
            elif not isinstance(arg, Wildcard):
                repeated.append((position, arg))
        for position, arg in repeated:
            self.where.append(exp.EQ(this=cells[position], expression=self.guarded(arg) if guarded else self.term(arg)))
        bound = [position for position, arg in repeated if needs(arg, self.scope) <= given]
        if bound and searched:
            self.builder.searches.append(Search(atom.relation, frozenset(bound)))

    def absent(self, atom: Atom) -> Sql:
        for arg in atom.args:
            if not isinstance(arg, Wildcard) and _partial(arg):
                self.guard(arg)
        inner = _Query(self.builder, self.env, self.scope)
        alias = self.builder.alias()
        inner.tables.append((self.builder.table(atom, None), alias))
        inner.match(atom, alias, searched=True, guarded=False)
        return exp.Not(this=exp.Exists(this=inner.finish([integer(1)])))

    # -- terms

    def term(self, term: Term) -> Sql:
        dialect = self.builder.dialect
        match term:
            case Variable():
                return self.env[term.name].copy()
            case Constant():
                return self.builder.constant(term)
            case Functor():
                assert term.type is not None, "checked programs are typed"
                return dialect.functor(term.name, term.type, [_type(arg) for arg in term.args], [self.term(arg) for arg in term.args])
        raise AssertionError("aggregates are lifted out of terms by normalization")

    def guarded(self, term: Term) -> Sql:
        """The term's value, with a condition that it has one if it may be undefined."""
        if _partial(term):
            self.guard(term)
        return self.term(term)

    def guard(self, term: Term) -> None:
        self.builder.partial = True
        self.where.append(self.builder.dialect.counted(defined(self.term(term))))

    # -- aggregates

    def compute_aggregates(self, pending: list[tuple[int, Literal]]) -> list[tuple[int, Literal]]:
        """Computes every aggregate whose outer variables are known, in a SELECT around what there is so far."""
        ready = [
            (index, literal)
            for index, literal in pending
            if isinstance(literal, Constraint) and isinstance(literal.args[1], Aggregate) and self.known(literal.args[1])
        ]
        assert ready, "a safe rule always has a literal that can be decided next"
        dialect = self.builder.dialect
        results: list[tuple[Constraint, str]] = []
        columns = []
        for number, (_, literal) in enumerate(ready):
            assert isinstance(literal, Constraint) and isinstance(literal.args[1], Aggregate)
            columns.append(exp.alias_(self.subquery(literal.args[1]), f"a{number}", quoted=True))
            results.append((literal, f"a{number}"))
        alias = self.stage(columns)
        for literal, column in results:
            variable, aggregate = literal.args
            assert isinstance(variable, Variable) and isinstance(aggregate, Aggregate) and aggregate.type is not None
            target_type = None if aggregate.target is None else _type(aggregate.target)
            value = dialect.finish(aggregate.op, aggregate.type, target_type, exp.column(column, alias, quoted=True))
            if aggregate.op != "count":
                self.builder.partial = self.builder.partial or aggregate.op == "sum"
                guard = defined(value)
                self.where.append(dialect.counted(guard) if aggregate.op == "sum" else guard)
            if variable.name in self.env:
                self.where.append(exp.EQ(this=self.env[variable.name].copy(), expression=value))
            else:
                self.env[variable.name] = value
        return [(index, literal) for index, literal in pending if all(index != done for done, _ in ready)]

    def stage(self, columns: list[Sql]) -> str:
        """Makes what there is so far a table of its own, with a column for each variable and the given ones; its alias."""
        alias = self.builder.alias()
        kept = {name: f"v{number}" for number, name in enumerate(self.env)}
        columns = [*columns, *(exp.alias_(self.env[name].copy(), column, quoted=True) for name, column in kept.items())]
        inner = self.finish(columns)
        self.tables, self.where = [(self.builder.dialect.staged(inner), alias)], []
        self.env = {name: exp.column(column, alias, quoted=True) for name, column in kept.items()}
        return alias

    def subquery(self, aggregate: Aggregate) -> Sql:
        own = set() if aggregate.target is None else names(aggregate.target)
        scope = self.scope.union(own, *(names(literal) for literal in aggregate.body))
        inner = _Query(self.builder, {name: sql for name, sql in self.env.items()}, scope)
        inner.solve_inside(aggregate.body)
        target = None if aggregate.target is None else inner.guarded(aggregate.target)
        assert aggregate.type is not None, "checked programs are typed"
        target_type = None if aggregate.target is None else _type(aggregate.target)
        value = self.builder.dialect.aggregate(aggregate.op, aggregate.type, target_type, target, [])
        return exp.Subquery(this=inner.finish([exp.alias_(value, "a", quoted=True)]))

    def solve_inside(self, body: tuple[Literal, ...]) -> None:
        """Solves an aggregate's body; its atoms read whole relations, and never the recent rows of a rule's own atoms."""
        choice = self.builder.choice
        self.builder.choice = Choice(rows=choice.rows)
        self.solve(body)
        self.builder.choice = choice

    def finish(self, columns: list[Sql]) -> exp.Select:
        sql = exp.Select(expressions=columns)
        for number, (source, alias) in enumerate(self.tables):
            kind, inner = (exp.Table, exp.to_identifier(source, quoted=True)) if isinstance(source, str) else (exp.Subquery, source)
            table = kind(this=inner, alias=exp.TableAlias(this=exp.to_identifier(alias)))
            sql = sql.from_(table) if number == 0 else sql.join(table, join_type="cross")
        return sql.where(*self.where) if self.where else sql


def _type(term: Term) -> Type:
    assert term.type is not None, "checked programs are typed"
    return term.type


def _partial(term: Term) -> bool:
    return any(isinstance(inner, Functor) and not (inner.name in TOTAL) for inner in subterms(term))
