"""A plain rule as one SELECT.

Atoms become tables, joined in the order `order.py` chooses; shared variables become equalities; a variable that `=` binds becomes an
expression; a negated atom becomes NOT EXISTS; an aggregate becomes a subquery with a single value. A functor is NULL where it is undefined, and
every literal that could be is guarded, so that undefined means false, negated or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from sqlglot import exp

from vigilog.core.errors import Finding, ProgramError
from vigilog.core.values import BOOLEAN, Type
from vigilog.language import syntax
from vigilog.language.canonical import canonical
from vigilog.language.functors import AGGREGATES, TOTAL
from vigilog.language.parts import aggregates as aggregates_in
from vigilog.language.parts import atoms, names, rigid, subterms
from vigilog.language.safety import awaits, decidable, grounded_by, names_in, needs
from vigilog.planning.applied import Applied
from vigilog.planning.dialect import Dialect, Parameters, Sql, call, case, defined, integer, is_null
from vigilog.planning.layout import Layout
from vigilog.planning.order import Search, cheapest

MOST_NESTED = 60
_EXCEPTION = "exception"  # marks conditions that leave out rows of a table
LARGE_EXPRESSION = 30  # nodes; a larger one that a variable stands for is computed once, in a SELECT of its own


@dataclass(frozen=True)
class Choice:
    """How a rule is to be read: which atom comes first (the recent one), from which tables, how large each relation is, and how many distinct values its columns have.

    `prefix` keeps the parameters of several statements apart. `window` names a column of the first atom's table that numbers its rows: only those above `:since` and not above `:until` count.
    Relations in `large` are never sent around: what is known before one is joined goes to where its rows are, and aggregates of it are computed for known bindings only.
    """

    first: int | None = None
    table: Callable[[int, syntax.Atom], str] | None = None
    rows: Mapping[str, int] = field(default_factory=dict)
    distinct: Mapping[str, Sequence[float]] = field(default_factory=dict)
    prefix: str = ""
    window: str = ""
    large: Collection[str] = ()


@dataclass(frozen=True)
class Selection:
    """The statement, the parameters in it, the searches it makes, and statements that count where a functor is undefined."""

    sql: exp.Select
    parameters: Parameters
    searches: tuple[Search, ...]
    undefined: tuple[exp.Select, ...]
    dialect: Dialect
    whole: bool = False  # whether it reads a large relation as a whole

    @property
    def text(self) -> str:
        return self._text(self.sql)

    @property
    def excepted(self) -> bool:
        """Whether some tables are read without rows that are in others."""
        return any(_EXCEPTION in node.meta for node in self.sql.find_all(exp.Not))

    @property
    def whole_text(self) -> str:
        """The statement for when none of these other tables has rows. The statement itself is changed by this: ask for its text first."""
        for node in list(self.sql.find_all(exp.Not)):
            if _EXCEPTION in node.meta:
                node.replace(exp.EQ(this=integer(1), expression=integer(1)))
        return self.text

    @property
    def undefined_texts(self) -> list[str]:
        return [self._text(counting) for counting in self.undefined]

    def _text(self, sql: exp.Select) -> str:
        return sql.sql(self.dialect.name, normalize_functions=False, copy=False)  # nobody else needs it as it was


def select(rule: syntax.Rule, layout: Layout, dialect: Dialect, choice: Choice = Choice()) -> Selection:
    """The SELECT whose rows are what the rule derives, named by the head's columns; duplicates are not removed."""
    builder = _Builder(rule, layout, dialect, choice)
    query = _Query(builder, {}, names(rule), wanted=names(rule.head))
    query.solve(rule.body, choice.first)
    values = [query.guarded(arg) for arg in rule.head.args] or [dialect.constant(True, BOOLEAN)]
    columns = layout.columns[rule.head.relation]
    sql = query.finish([exp.alias_(value, column, quoted=True) for value, column in zip(values, columns, strict=True)])
    for alias, stage in builder.stages:
        sql = sql.with_(alias, as_=stage, copy=False)
    return Selection(sql, builder.parameters, tuple(dict.fromkeys(builder.searches)), tuple(builder.undefined), dialect, builder.whole)


class _Builder:
    """What all parts of one statement share: fresh aliases, parameters, the searches made."""

    def __init__(self, rule: syntax.Rule, layout: Layout, dialect: Dialect, choice: Choice) -> None:
        self.rule, self.layout, self.dialect, self.choice = rule, layout, dialect, choice
        self.parameters: dict[str, str | float] = {}
        self.searches: list[Search] = []
        self.undefined: list[exp.Select] = []
        self.stages: list[tuple[str, exp.Select]] = []
        self.aliases = 0
        self.whole = False  # whether a large relation is read as a whole

    def alias(self) -> str:
        self.aliases += 1
        while f"t{self.aliases}" in self.layout.taken:
            self.aliases += 1
        return f"t{self.aliases}"

    def too_deep(self) -> ProgramError:
        message = f"the rule computes values from each other in more than {MOST_NESTED} steps; name a part of it as a relation of its own"
        return ProgramError([Finding("limit", message, self.rule.source.span)], self.layout.program.texts)

    def table(self, atom: syntax.Atom, position: int | None) -> str:
        if position is not None and self.choice.table is not None:
            return self.choice.table(position, atom)
        return self.layout.tables[atom.relation]

    def constant(self, constant: syntax.Constant) -> Sql:
        assert constant.type is not None, "checked programs are typed"
        value = constant.value
        if not isinstance(value, str | float):  # SQLite does not always read a float's text as that float
            return self.dialect.constant(value, constant.type)
        placeholders = {text: name for name, text in self.parameters.items()}
        name = placeholders.get(value, f"{self.choice.prefix}c{len(self.parameters)}")
        self.parameters[name] = value
        return exp.Placeholder(this=name)


class _Query:
    """One SELECT while it is built: tables, conditions, and for each variable the expression that holds its value.

    `wanted` says how many literals that are still to come ask for a variable; who reads the result asks for some, too.
    """

    def __init__(
        self, builder: _Builder, outer: dict[str, Sql], scope: set[str], around: _Query | None = None, wanted: Iterable[str] = ()
    ) -> None:
        self.builder, self.scope, self.around = builder, scope, around
        self.env = outer
        self.wanted = Counter(wanted)
        self.tables: list[tuple[str | Sql, str]] = []
        self.optional: dict[str, Sql] = {}  # tables joined from the left, by alias, with their condition
        self.sent: list[str] = []  # aliases of tables to be sent whole to the rows of others
        self.where: list[Sql] = []
        self.counting = False  # whether this is an aggregate's body
        self.nested = 0  # how many SELECTs there are in one another

    def solve(self, body: tuple[syntax.Literal, ...], first: int | None = None) -> None:
        """Takes literal after literal: what can be decided at once, then the cheapest atom, then aggregates; last are atoms that wait for each other."""
        pending = list(enumerate(body))
        for literal in body:
            self.wanted.update(_asked(literal))
        if first is not None:
            pending = self.take(first, pending)
        while pending := self.decide(pending):
            equalities, bound = [part for _, part in pending if isinstance(part, syntax.Builtin)], self.env.keys()
            atoms = [(index, part) for index, part in pending if isinstance(part, syntax.Atom)]
            told = [(index, atom) for index, atom in atoms if not awaits(atom, equalities, bound, self.scope)]
            ready = [] if told else [index for index, part in pending if self.is_ready(part)]
            if ready:
                self.compute_aggregates([part for index, part in pending if index in ready])
                pending = [(index, part) for index, part in pending if index not in ready]
            else:
                assert atoms, "a safe rule always has a literal that can be decided next"
                index, _ = cheapest(told or atoms, bound, self.builder.choice.rows, self.builder.choice.distinct)
                pending = self.take(index, pending)

    def take(self, index: int, pending: list[tuple[int, syntax.Literal]]) -> list[tuple[int, syntax.Literal]]:
        """Joins one of the atoms; gives what is pending then."""
        atom = dict(pending)[index]
        assert isinstance(atom, syntax.Atom), "only an atom is joined"
        self.join(index, atom)
        self.wanted.subtract(_asked(atom))
        return [(i, literal) for i, literal in pending if i != index]

    def decide(self, pending: list[tuple[int, syntax.Literal]]) -> list[tuple[int, syntax.Literal]]:
        """Adds every literal that needs no further table, as often as that makes others decidable."""
        while True:
            left = []
            for index, literal in pending:
                if self.decided(literal) or self.looked_up(index, literal):
                    self.wanted.subtract(_asked(literal))
                else:
                    left.append((index, literal))
            if len(left) == len(pending):
                return left
            pending = left

    def looked_up(self, index: int, literal: syntax.Literal) -> bool:
        """Adds an atom that binds nothing as a condition: whether there is such a row counts, not how many. In an aggregate it may count."""
        if (
            not isinstance(literal, syntax.Atom)
            or self.counting
            or not self.tables
            or not self.builder.dialect.correlates
            or not self.known_literal(literal)
        ):
            return False
        condition = self.exists(literal, self.builder.table(literal, index))
        place = len(self.where)
        while place and _EXCEPTION in self.where[place - 1].meta:  # hardly a row is left out, so that is asked last
            place -= 1
        self.where.insert(place, condition)
        return True

    def decided(self, literal: syntax.Literal) -> bool:
        match literal:
            case syntax.Truth():
                if not literal.value:
                    self.where.append(exp.EQ(this=integer(1), expression=integer(0)))
                return True
            case syntax.Builtin(op="=", args=(syntax.Variable(), syntax.Aggregate())):
                return False
            case syntax.Builtin() if (use := syntax.usage(literal)) is not None:
                return self.used(literal, use)
            case syntax.Builtin(op="=", args=(left, right)):
                for variable, term in ((left, right), (right, left)):
                    if isinstance(variable, syntax.Variable) and variable.name not in self.env and self.known(term):
                        self.env[variable.name] = self.guarded(term)
                        if sum(1 for _ in self.env[variable.name].walk()) > LARGE_EXPRESSION:
                            self.stage([])
                        return True
                    if (
                        isinstance(variable, syntax.Functor)
                        and not self.known(variable)
                        and self.known(term)
                        and all(map(self.known, rigid(variable)))
                    ):
                        self.bind(variable, self.guarded(term))
                        return True
            case syntax.Negation() | syntax.Builtin():
                pass
            case syntax.Atom():
                return False
            case syntax.Disjunction() | syntax.SetOf():
                raise AssertionError("normalization leaves a disjunction only as the whole body of an aggregate, and no setof")
            case _:
                assert_never(literal)
        if not self.known_literal(literal):
            return False
        if isinstance(literal, syntax.Negation) and isinstance(literal.literal, syntax.Atom):
            condition = self.absent(literal.literal)  # which may begin a new SELECT, with conditions of its own
            self.where.append(condition)
        else:
            builtin = literal.literal if isinstance(literal, syntax.Negation) else literal
            assert isinstance(builtin, syntax.Builtin)
            if (use := syntax.usage(builtin)) is not None and builtin.op != "member":
                self.where.append(exp.Not(this=self.result_is(Applied(builtin, use))))
                return True
            args = builtin.args
            condition = self.builder.dialect.test(builtin.op, [self.guarded(arg) for arg in args], [_type(arg) for arg in args])
            if builtin.op == "match" and not isinstance(builtin.args[0], syntax.Constant):
                self.require(condition)
            self.where.append(exp.Not(this=exp.Paren(this=condition)) if isinstance(literal, syntax.Negation) else condition)
        return True

    # -- sets and tuples

    def used(self, literal: syntax.Builtin, use: syntax.Usage) -> bool:
        """Adds `member`, or an aggregate over a set, if what it is computed from is known."""
        if not decidable(literal, self.known):
            return False
        dialect = self.builder.dialect
        if literal.op == "member" and self.known(use.results[0]):
            args = literal.args
            self.where.append(dialect.test("member", [self.guarded(arg) for arg in args], [_type(arg) for arg in args]))
        elif literal.op == "member" and literal.definition is None:
            self.bind(use.results[0], self.each(self.guarded(use.given[0]), _type(use.given[0]).parts[0]))
        else:
            applied = Applied(literal, use)
            value = dialect.applied(applied, [self.guarded(arg) for arg in use.given])
            if not applied.single:
                whole = use.results[0] if len(use.results) == 1 else syntax.Functor("()", use.results, applied.element)
                self.bind(whole, self.each(value, applied.element))
                return True
            alias = self.stage([exp.alias_(value, "result", quoted=True)])  # so that it is computed once
            result = exp.column("result", alias, quoted=True)
            if literal.op == "sum" and literal.definition is None:
                self.require(result)
            else:
                self.where.append(defined(result))
            self.bind(use.results[0], result)
        return True

    def result_is(self, applied: Applied) -> Sql:
        """The condition that an aggregate over a set gives a result; where it gives none at all, NULL."""
        dialect, use = self.builder.dialect, applied.use
        value = dialect.applied(applied, [self.guarded(arg) for arg in use.given])
        wanted = use.results[0] if len(use.results) == 1 else syntax.Functor("()", use.results, applied.element)
        if applied.single:
            return exp.Paren(this=exp.EQ(this=value, expression=self.guarded(wanted)))
        return exp.Paren(this=dialect.test("member", [self.guarded(wanted), value], [applied.element, applied.type]))

    def each(self, collected: Sql, element: Type) -> Sql:
        """An element of a set: a row for each."""
        dialect = self.builder.dialect
        if dialect.correlates:
            alias = self.builder.alias()
            self.tables.append((dialect.members(collected, element), alias))
            return dialect.member(exp.column("value", alias, quoted=True), element)
        alias = self.stage([exp.alias_(dialect.members(collected, element), "value", quoted=True)])
        return dialect.member(exp.column("value", alias, quoted=True), element)

    def bind(self, term: syntax.Term, value: Sql) -> None:
        """Equates a term with a value: what is free in it takes its value from there."""
        if isinstance(term, syntax.Variable) and term.name not in self.env:
            self.env[term.name] = value
        elif isinstance(term, syntax.Functor) and term.name == "()" and not self.known(term):
            for place, arg in enumerate(term.args):
                self.bind(arg, self.builder.dialect.component(value.copy(), _type(term), place))
        else:
            self.where.append(exp.EQ(this=value, expression=self.guarded(term)))

    # -- what is known

    def known(self, term: syntax.Term) -> bool:
        return needs(term, self.scope) <= self.env.keys()

    def known_literal(self, literal: syntax.Atom | syntax.Negation | syntax.Builtin) -> bool:
        args = literal.literal.args if isinstance(literal, syntax.Negation) else literal.args
        return all(isinstance(arg, syntax.Wildcard) or self.known(arg) for arg in args)

    # -- tables

    def join(self, index: int, atom: syntax.Atom) -> None:
        if atom.relation in self.builder.choice.large and self.tables:
            self.sent = [self.stage([]) if len(self.tables) > 1 else self.tables[0][1]]
        alias = self.builder.alias()
        self.tables.append((self.builder.table(atom, index), alias))
        self.match(atom, alias, searched=index != self.builder.choice.first)
        self.except_rows(atom.relation, alias)
        if self.builder.choice.window and index == self.builder.choice.first:
            number = exp.column(self.builder.choice.window, alias)
            self.where.append(exp.GT(this=number, expression=exp.Placeholder(this="since")))
            self.where.append(exp.LTE(this=number.copy(), expression=exp.Placeholder(this="until")))

    def match(self, atom: syntax.Atom, alias: str, *, searched: bool, guarded: bool = True) -> None:
        """Equates an atom's arguments with a table's columns; variables seen first take the column for their value."""
        given = set(self.env)
        cells = [exp.column(column, alias, quoted=True) for column in self.builder.layout.columns[atom.relation]]
        repeated: list[tuple[int, syntax.Term]] = []
        for position, arg in enumerate(atom.args):
            if isinstance(arg, syntax.Variable) and arg.name not in self.env:
                self.env[arg.name] = cells[position]
            elif not isinstance(arg, syntax.Wildcard):
                repeated.append((position, arg))
        bound = [position for position, arg in repeated if needs(arg, self.scope) <= given]
        sought: list[tuple[Sql, Sql, Type]] = []
        for position, arg in repeated:
            value = self.guarded(arg) if guarded else self.term(arg)
            if atom.relation in self.builder.choice.large and position in bound and needs(arg, self.scope):
                sought.append((cells[position], value, _type(arg)))
            else:
                self.where.append(exp.EQ(this=cells[position], expression=value))
        if sought:
            self.where += self.builder.dialect.sought(sought)
        if bound and searched:
            self.builder.searches.append(Search(atom.relation, frozenset(bound)))

    def except_rows(self, relation: str, alias: str) -> None:
        """Leaves out the rows of a table that do not count."""
        table, layout = self.builder.layout.excepted.get(relation), self.builder.layout
        if table is None:
            return
        own = self.builder.alias()
        same = [
            exp.EQ(this=exp.column(column, own, quoted=True), expression=exp.column(column, alias, quoted=True))
            for column in layout.columns[relation]
        ]
        inner = exp.Select(expressions=[integer(1)]).from_(_table(table, own), copy=False).where(*same, copy=False)
        condition = exp.Not(this=exp.Exists(this=inner))
        condition.meta[_EXCEPTION] = True
        self.where.append(condition)

    def absent(self, atom: syntax.Atom) -> Sql:
        return exp.Not(this=self.exists(atom, self.builder.table(atom, None)))

    def exists(self, atom: syntax.Atom, table: str) -> Sql:
        """The condition that a table has a row as the atom says, all of whose variables are known."""
        for arg in atom.args:
            if not isinstance(arg, syntax.Wildcard) and _partial(arg):
                self.guard(arg)
        atom = self.plain(atom)
        inner = _Query(self.builder, self.env, self.scope, self)
        alias = self.builder.alias()
        inner.tables.append((table, alias))
        inner.match(atom, alias, searched=True, guarded=False)
        inner.except_rows(atom.relation, alias)
        return exp.Exists(this=inner.finish([integer(1)]))

    def plain(self, atom: syntax.Atom) -> syntax.Atom:
        """The atom with computed arguments that must not stand in a subquery computed before it."""
        args: list[syntax.Term] = []
        for arg in atom.args:
            if isinstance(arg, syntax.Wildcard) or not self.builder.dialect.opaque(self.term(arg)):
                args.append(arg)
                continue
            variable = syntax.Variable(f"{self.builder.alias()} computed", arg.type)
            self.env[variable.name] = self.term(arg)
            args.append(variable)
        if tuple(args) != atom.args:
            self.stage([], {arg.name for arg in args if isinstance(arg, syntax.Variable)})
        return replace(atom, args=tuple(args))

    # -- terms

    def term(self, term: syntax.Term) -> Sql:
        dialect = self.builder.dialect
        match term:
            case syntax.Variable():
                return self.env[term.name].copy()
            case syntax.Constant():
                return self.builder.constant(term)
            case syntax.Functor():
                assert term.type is not None, "checked programs are typed"
                return dialect.functor(term.name, term.type, [_type(arg) for arg in term.args], [self.term(arg) for arg in term.args])
            case syntax.Wildcard() | syntax.Aggregate():
                raise AssertionError("aggregates are lifted out of terms by normalization")
            case _:
                assert_never(term)

    def guarded(self, term: syntax.Term) -> Sql:
        """The term's value, with a condition that it has one if it may be undefined."""
        if _partial(term):
            self.guard(term)
        return self.term(term)

    def guard(self, term: syntax.Term) -> None:
        self.require(self.term(term))

    def require(self, value: Sql) -> None:
        """The condition that a value is defined, and a statement that counts the bindings so far for which it is not."""
        if self.builder.dialect.counts_itself:
            self.where.append(self.builder.dialect.counted(defined(value)))
            return
        tables, where = list(self.tables), [is_null(value.copy()), *self.where]
        around = self.around
        while around is not None:
            tables, where, around = around.tables + tables, where + around.where, around.around
        counting = _Query(self.builder, {}, set())
        counting.tables, counting.where = tables, [condition.copy() for condition in where]
        self.builder.undefined.append(counting.finish([exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True)]))
        self.where.append(self.builder.dialect.counted(defined(value)))

    # -- aggregates

    def is_ready(self, literal: syntax.Literal) -> bool:
        """Whether a literal says what an aggregate is, all of whose outer variables are known."""
        match literal:
            case syntax.Builtin(args=(syntax.Variable(), syntax.Aggregate() as aggregate)):
                return self.known(aggregate)
            case _:
                return False

    def compute_aggregates(self, ready: list[syntax.Literal]) -> None:
        """Computes aggregates in a SELECT around what there is so far."""
        dialect = self.builder.dialect
        aggregates = [
            literal.args[1] for literal in ready if isinstance(literal, syntax.Builtin) and isinstance(literal.args[1], syntax.Aggregate)
        ]
        results = self.correlated(aggregates) if dialect.correlates else self.grouped(aggregates)
        for literal, result in zip(ready, results, strict=True):
            self.wanted.subtract(_asked(literal))
            assert isinstance(literal, syntax.Builtin)
            variable, aggregate = literal.args
            assert isinstance(variable, syntax.Variable) and isinstance(aggregate, syntax.Aggregate)
            value = result if self.is_listed(aggregate) else self.finished(aggregate, result)
            if not AGGREGATES[aggregate.op].nothing:
                self.where.append(defined(value.copy()))
            elif not AGGREGATES[aggregate.op].total:
                self.require(value)
            if variable.name in self.env:
                self.where.append(exp.EQ(this=self.env[variable.name].copy(), expression=value.copy()))
            else:
                self.env[variable.name] = value

    def stage(self, columns: list[Sql], also: Collection[str] = (), *, distinct: bool = False) -> str:
        """Makes what there is so far a table of its own, with the given columns and one for each variable that is wanted still; its alias."""
        alias = self.builder.alias()
        kept = {name: f"v{number}" for number, name in enumerate(self.env) if self.wanted[name] > 0 or name in also}
        columns = [*columns, *(exp.alias_(self.env[name].copy(), column, quoted=True) for name, column in kept.items())]
        inner = self.builder.dialect.staged(self.finish(columns or [exp.alias_(integer(1), "one", quoted=True)]))
        inner = inner.distinct() if distinct else inner
        if self.builder.dialect.correlates and not self.nested and _independent(inner):
            self.builder.stages.append((alias, inner))  # side by side before the statement, which nests less deep
            self.tables, self.where = [(alias, alias)], []
        else:
            self.nested += 1
            if self.nested > MOST_NESTED:
                raise self.builder.too_deep()
            self.tables, self.where = [(inner, alias)], []
        self.sent = []
        self.env = {name: exp.column(column, alias, quoted=True) for name, column in kept.items()}
        return alias

    def correlated(self, aggregates: list[syntax.Aggregate]) -> list[Sql]:
        """Each aggregate as a subquery that is asked anew for each binding: work follows the bindings, along indexes."""
        if self.tables and not self.counting and self.around is None:
            self.stage([], distinct=True)  # so that each is asked once for each binding that differs in what is wanted
        groups: dict[object, list[syntax.Aggregate]] = {}
        places: list[tuple[object, int]] = []
        for number, aggregate in enumerate(aggregates):
            alike = canonical(aggregate, self.scope)
            key = alike.body if _packable(alike, self.scope) else number
            places.append((key, len(groups.setdefault(key, []))))
            groups[key].append(alike if key is alike.body else aggregate)
        columns = [exp.alias_(self.subquery(group), f"a{number}", quoted=True) for number, group in enumerate(groups.values())]
        alias, names_ = self.stage(columns), {key: f"a{number}" for number, key in enumerate(groups)}
        return [
            exp.column(names_[key], alias, quoted=True)
            if len(groups[key]) == 1
            else call("json_extract", exp.column(names_[key], alias, quoted=True), exp.Literal.string(f"$[{place}]"))
            for key, place in places
        ]

    def subquery(self, aggregates: list[syntax.Aggregate]) -> Sql:
        """Aggregates over the same body as one value: a list, if there are several."""
        inner = _Query(
            self.builder, dict(self.env), self.scope.union(*map(names_in, aggregates)), self, set().union(*map(_target, aggregates))
        )
        values = [inner.aggregated(aggregates[0]), *(inner.aggregate_of(aggregate) for aggregate in aggregates[1:])]
        value = values[0] if len(values) == 1 else call("json_array", *values)
        return exp.Subquery(this=inner.finish([exp.alias_(value, "a", quoted=True)]))

    def grouped(self, aggregates: list[syntax.Aggregate]) -> list[Sql]:
        """Each aggregate as a table of its values for all groups at once, joined from the left: no subquery sees another's rows.

        Where the aggregate's body does not bind the outer variables by itself, the bindings so far are joined into it first. Where it does, but by several of its atoms, its atoms are joined with
        each other first: what single atoms have for the bindings are far more rows, in all combinations, than the join has.
        """
        alias = self.stage([])
        around, _ = self.tables[0]
        assert isinstance(around, exp.Expr), "a stage is a SELECT"
        results: list[Sql] = []
        for aggregate in aggregates:
            keys = sorted(needs(aggregate, self.scope))
            inner = _Query(self.builder, {}, self.scope | names_in(aggregate), wanted={*keys, *_target(aggregate)})
            large = bool(keys) and any(atom.relation in self.builder.choice.large for atom, _ in atoms(aggregate.body))
            bindings = {key: self.env[key].name for key in keys}
            binds = set(keys) <= grounded_by(aggregate.body, set(), inner.scope)
            apart = (
                binds and large and not any(set(keys) <= names(literal) for literal in aggregate.body if isinstance(literal, syntax.Atom))
            )
            if (large and not apart) or not binds:
                inner.take_bindings(around, bindings)
            value = inner.aggregated(aggregate, whole=apart)
            if apart:
                inner.keep_bindings(around, bindings)
            columns = [exp.alias_(value, "a", quoted=True)]
            columns += [exp.alias_(inner.env[key].copy(), f"k{number}", quoted=True) for number, key in enumerate(keys)]
            sql = inner.finish(columns)
            if keys:
                sql = sql.group_by(*(inner.env[key].copy() for key in keys))
            own = self.builder.alias()
            result: Sql = exp.column("a", own, quoted=True)
            if self.is_listed(aggregate):
                sql = self.unlisted(aggregate, sql, len(keys))
                if AGGREGATES[aggregate.op].nothing:
                    result = case(is_null(exp.column("there", own, quoted=True)), self.finished(aggregate, exp.null()), result)
            self.tables.append((sql, own))
            equal = [exp.EQ(this=self.env[key].copy(), expression=exp.column(f"k{i}", own, quoted=True)) for i, key in enumerate(keys)]
            self.optional[own] = exp.and_(*equal) if equal else exp.true()
            results.append(result)
        assert alias, "a stage has an alias"
        return results

    def is_listed(self, aggregate: syntax.Aggregate) -> bool:
        return self.builder.dialect.listed(aggregate.op, None if aggregate.target is None else _type(aggregate.target))

    def finished(self, aggregate: syntax.Aggregate, result: Sql) -> Sql:
        assert aggregate.type is not None, "checked programs are typed"
        target_type = None if aggregate.target is None else _type(aggregate.target)
        return self.builder.dialect.finish(aggregate.op, aggregate.type, target_type, result)

    def unlisted(self, aggregate: syntax.Aggregate, groups: exp.Select, keys: int) -> exp.Select:
        """Groups whose lists are values. That a group is `there` tells one that has no value from one that nothing is in."""
        alias = self.builder.alias()
        columns = [exp.alias_(self.finished(aggregate, exp.column("a", alias, quoted=True)), "a", quoted=True)]
        columns += [exp.alias_(exp.true(), "there", quoted=True)]
        columns += [exp.column(f"k{number}", alias, quoted=True) for number in range(keys)]
        return exp.Select(expressions=columns).from_(_table(groups, alias))

    def take_bindings(self, around: exp.Expr, columns: Mapping[str, str]) -> None:
        """Starts from the distinct bindings of a SELECT's columns."""
        inside, alias = self.builder.alias(), self.builder.alias()
        distinct_ = exp.Select(expressions=[exp.column(column, inside, quoted=True) for column in columns.values()]).distinct()
        table = exp.Subquery(this=around.copy(), alias=exp.TableAlias(this=exp.to_identifier(inside)))
        self.tables.append((distinct_.from_(table), alias))
        self.env = {name: exp.column(column, alias, quoted=True) for name, column in columns.items()}

    def keep_bindings(self, around: exp.Expr, columns: Mapping[str, str]) -> None:
        """Keeps what agrees with the bindings of a SELECT's columns."""
        env = dict(self.env)
        self.take_bindings(around, columns)
        self.where += [exp.EQ(this=env[name].copy(), expression=self.env[name].copy()) for name in columns]
        self.env = env

    def aggregated(self, aggregate: syntax.Aggregate, *, whole: bool = False) -> Sql:
        """Solves an aggregate's body; gives the aggregate over its bindings. With `whole` even large relations are read as a whole."""
        match aggregate.body:
            case (syntax.Disjunction(branches=ways, apart=apart),):
                self.either(ways, apart=apart)
            case body:
                self.solve_inside(body, whole=whole)
        return self.aggregate_of(aggregate)

    def aggregate_of(self, aggregate: syntax.Aggregate) -> Sql:
        """The aggregate over the bindings there are."""
        target = None if aggregate.target is None else self.guarded(aggregate.target)
        assert aggregate.type is not None, "checked programs are typed"
        target_type = None if aggregate.target is None else _type(aggregate.target)
        if target is not None and self.around is not None and not self.owns(target):
            # To SQL, an aggregate of the rows around a subquery alone would belong to the query around it.
            alias = self.stage([exp.alias_(target, "target", quoted=True)])
            target = exp.column("target", alias, quoted=True)
        return self.builder.dialect.aggregate(aggregate.op, aggregate.type, target_type, target)

    def owns(self, sql: Sql) -> bool:
        """Whether an expression reads a table of this very SELECT."""
        own = {alias for _, alias in self.tables}
        return any(column.table in own for column in sql.find_all(exp.Column))

    def either(self, ways: tuple[tuple[syntax.Literal, ...], ...], *, apart: bool) -> None:
        """Solves a disjunction: the union of what each way binds is a table."""
        bound = set.intersection(*({name for part in way for name in names(part)} for way in ways))
        columns = sorted(bound | (self.env.keys() if not self.builder.dialect.correlates else set()))
        selects = []
        for way in ways:
            query = _Query(self.builder, dict(self.env), self.scope, self.around, columns)
            query.tables, query.where = list(self.tables), list(self.where)
            query.solve_inside(way)
            given = [exp.alias_(query.env[name].copy(), f"v{i}", quoted=True) for i, name in enumerate(columns)]
            selects.append(query.finish(given or [exp.alias_(integer(1), "one", quoted=True)]))
        alias = self.builder.alias()
        self.tables, self.where = [(exp.union(*selects, distinct=not apart), alias)], []
        self.env |= {name: exp.column(f"v{i}", alias, quoted=True) for i, name in enumerate(columns)}

    def solve_inside(self, body: tuple[syntax.Literal, ...], *, whole: bool = False) -> None:
        """Solves an aggregate's body; its atoms read whole relations, and never the recent rows of a rule's own atoms."""
        choice = self.builder.choice
        self.counting = True
        self.builder.whole |= whole
        large = () if whole else choice.large
        self.builder.choice = Choice(rows=choice.rows, distinct=choice.distinct, prefix=choice.prefix, large=large)
        self.solve(body)
        self.builder.choice = choice

    def finish(self, columns: list[Sql]) -> exp.Select:
        sql = exp.Select(expressions=columns)
        if self.sent:
            hint = exp.JoinHint(this="BROADCAST", expressions=[exp.to_table(alias) for alias in self.sent])
            sql.set("hint", exp.Hint(expressions=[hint]))
        for number, (source, alias) in enumerate(self.tables):
            table = _table(source, alias)
            if alias in self.optional:
                sql.append("joins", exp.Join(this=table, side="LEFT", on=self.optional[alias].copy()))
            elif number == 0:
                sql.from_(table, copy=False)
            else:
                sql.append("joins", exp.Join(this=table, kind="CROSS"))
        return sql.where(*_grouped([condition.copy() for condition in self.where]), copy=False) if self.where else sql


def _table(source: str | Sql, alias: str) -> exp.Expr:
    named = exp.TableAlias(this=exp.to_identifier(alias))
    if isinstance(source, str):
        return exp.Table(this=exp.to_identifier(source, quoted=True), alias=named)
    if isinstance(source, exp.Anonymous):  # a function that gives rows
        return exp.Table(this=source.copy(), alias=named)
    return exp.Subquery(this=source.copy(), alias=named)


def _grouped(conditions: list[Sql]) -> list[Sql]:
    """Very many conditions in groups, because SQLite reads `a AND b AND …` as a tree as deep as it is long."""
    if len(conditions) <= 300:
        return conditions
    return _grouped([exp.Paren(this=exp.and_(*conditions[start : start + 100])) for start in range(0, len(conditions), 100)])


def _type(term: syntax.Term) -> Type:
    assert term.type is not None, "checked programs are typed"
    return term.type


def _independent(sql: exp.Select) -> bool:
    """Whether a SELECT reads no column of one around it."""
    own = {table.alias for table in sql.find_all(exp.Table, exp.Subquery)}
    return all(column.table in own for column in sql.find_all(exp.Column))


def _asked(literal: syntax.Literal) -> set[str]:
    """The variables a literal asks for, those inside its aggregates included."""
    return names(literal, into_aggregates=True)


def _packable(aggregate: syntax.Aggregate, scope: set[str]) -> bool:
    """Whether an aggregate can go into a list with others: JSON keeps its value, and it leaves out no binding."""
    plain = aggregate.target is None or (isinstance(aggregate.target, syntax.Variable) and aggregate.target.name not in scope)
    target = None if aggregate.target is None else aggregate.target.type
    kinds = {type_.kind for type_ in (aggregate.type, target) if type_ is not None}
    return plain and not kinds & {"float", "set", "tuple"} and not any(True for literal in aggregate.body for _ in aggregates_in(literal))


def _target(aggregate: syntax.Aggregate) -> set[str]:
    return set() if aggregate.target is None else names(aggregate.target)


def _partial(term: syntax.Term) -> bool:
    return any(isinstance(inner, syntax.Functor) and inner.name not in TOTAL for inner in subterms(term))
