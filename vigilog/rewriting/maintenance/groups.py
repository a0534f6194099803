"""Aggregates over groups whose state is kept, as rules (CReaM: Mohapatra & Genesereth; docs/decisions/004-state-of-groups.md).

A rule that aggregates is rewritten over the values of its groups, which are a relation of their own. What is aggregated is another one, in which a row is one binding. Over nothing, some aggregates have a value:

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = ".decl d(x: symbol) .decl e(y: number, x: symbol) .decl p(x: symbol, s: number) p(x, s) :- d(x), s = sum y : { e(y, x) }."
>>> made = grouping(check(text).program, {"p": False})
>>> print("\\n".join(show_statement(rule) for rule in (*made.program.rules, *made.definitions)))
p(x, s) :- d(x), p_aux(x, s).
p(x, s) :- d(x), s = 0, !p_state(x, _, _).
p_rows(x, y0) :- e(y0, x).
p_aux(x, s) :- p_rows(x, _), s = sum y0 : { p_rows(x, y0) }.

A test of the values alone is made where they are kept, so that a rule hears only of those that pass it. Literals that say no more than that a group is not empty are left out:

>>> text = ".decl e(y: number, x: symbol) .decl p(x: symbol) p(x) :- e(_, x), s = sum y : { e(y, x) }, s > 10."
>>> made = grouping(check(text).program, {"p": False})
>>> print("\\n".join(show_statement(rule) for rule in (*made.program.rules, *made.definitions)))
p(x) :- p_aux(x).
p_rows(x, y0) :- e(y0, x).
p_aux(x) :- p_rows(x, _), s = sum y0 : { p_rows(x, y0) }, s > 10.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import count, product

from vigilog.core.values import NUMBER, SYMBOL, Type, Value, set_type, tuple_type
from vigilog.language import syntax
from vigilog.language.canonical import canonical
from vigilog.language.functors import AGGREGATES
from vigilog.language.parts import aggregates, atoms, names, rename_literal, variables
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by, names_in, needs
from vigilog.language.strata import components
from vigilog.rewriting.maintenance.group import EXTREMES, Group, GroupAggregate, StatePart
from vigilog.rewriting.maintenance.implied import joined, maps
from vigilog.rewriting.naming import Naming

KEPT = frozenset({"count", "sum", "mean", "min", "max"})  # the aggregates whose state can be kept
OF_SETS = frozenset({"variance"})  # and those over sets
MOST_WAYS = 8  # a rule becomes at most so many: each of its groups is empty or not


@dataclass(frozen=True)
class Grouping:
    """A program whose rules read what is kept of groups, and these groups. Of what is kept it has no rules."""

    program: Program
    groups: tuple[Group, ...] = ()

    @property
    def definitions(self) -> tuple[syntax.Rule, ...]:
        """The rules that say what the values of groups are."""
        return tuple(group.definition for group in self.groups)

    @property
    def order(self) -> Program:
        """A program whose relations depend on each other as those that are kept do."""
        states = (group.definition.derive(_row(group.state), body=(_row(group.rows),)) for group in self.groups)
        return replace(self.program, rules=(*self.program.rules, *self.definitions, *states))


def aggregating(program: Program) -> set[str]:
    """The relations of a plain program in whose rules there are aggregates over groups that can be kept."""
    home = {name: component.relations for component in components(program) for name in component.relations}
    return {rule.head.relation for rule in program.rules if any(True for _ in _sites(rule, home[rule.head.relation]))}


def grouping(program: Program, relations: Mapping[str, bool]) -> Grouping:
    """The plain program with what is kept of the groups in the rules of some relations, each with whether its rows are to be kept in any case."""
    if not relations:
        return Grouping(program)
    made, rules = _Groups(program), list[syntax.Rule]()
    queue = [(rule, relations.get(rule.head.relation)) for rule in program.rules]
    for rule, own in queue:
        if own is None:
            rules.append(rule)
        else:
            rules += made.rewritten(rule, own)
            queue += [(bindings, own) for bindings in made.take_bindings()]
    declarations = (declaration for group in made.groups for declaration in (group.rows, group.aux, group.state))
    return Grouping(replace(program, declarations=(*program.declarations, *declarations), rules=tuple(rules)), tuple(made.groups))


@dataclass
class _Site:
    """Aggregates of one rule over the same body, by their places in the rule; in other `places` are the sets that nothing else is asked of."""

    keys: tuple[syntax.Variable, ...]
    body: tuple[syntax.Literal, ...]
    asked: dict[int, tuple[syntax.Variable, syntax.Aggregate]] = field(default_factory=dict)
    tests: tuple[syntax.Builtin, ...] = ()
    sets: set[int] = field(default_factory=set)

    @property
    def places(self) -> set[int]:
        return self.sets | self.asked.keys()

    @property
    def ways(self) -> tuple[tuple[syntax.Literal, ...], ...]:
        match self.body:
            case (syntax.Disjunction(branches=branches),):
                return branches
            case body:
                return (body,)

    @property
    def nothing(self) -> bool:
        """Whether all have a value over nothing."""
        return all(aggregate.op in KEPT and AGGREGATES[aggregate.op].nothing for _, aggregate in self.asked.values())

    @property
    def given(self) -> set[str]:
        """The variables that get a value here."""
        return {variable.name for variable, _ in self.asked.values()}


def _sites(rule: syntax.Rule, own: Collection[str]) -> Iterator[_Site]:
    """The aggregates of a rule over groups that can be kept: what they range over says which groups there are, and does not depend on the rule's own relation."""
    scope, sites, ways = names(rule), list[_Site](), 1
    for place, literal in enumerate(rule.body):
        match literal:
            case syntax.Builtin(op="=", args=(syntax.Variable() as variable, syntax.Aggregate() as aggregate)) if aggregate.op in KEPT:
                alike = _plain_target(canonical(aggregate, scope), scope)
                asked = {place: (variable, alike)}
            case syntax.Builtin(op="=", args=(syntax.Variable() as variable, syntax.Aggregate(op="setof") as aggregate)):
                alike = canonical(aggregate, scope)
                asked = _asked_of(rule, place, variable, alike)
            case _:
                continue
        keys = needs(aggregate, scope)
        wanted = keys | (names(alike.target) if alike.target is not None else set())
        bound = grounded_by(alike.body, set(), scope | names_in(alike))
        given = {value.name for value, _ in asked.values()}
        if not asked or not wanted <= bound or not given.isdisjoint(keys) or any(atom.relation in own for atom, _ in atoms(alike.body)):
            continue
        columns = tuple({v.name: v for part in (rule.head, *rule.body) for v in variables(part) if v.name in keys}.values())
        site = next((s for s in sites if s.body == alike.body and s.keys == columns and given.isdisjoint(s.given)), None)
        if site is None:
            site = _Site(columns, alike.body)
            sites.append(site)
        site.asked |= asked
        site.sets |= {place} - asked.keys()
    for site in sites:
        if ways * (1 + site.nothing) <= MOST_WAYS:
            ways *= 1 + site.nothing
            yield site


def _asked_of(
    rule: syntax.Rule, place: int, variable: syntax.Variable, collected: syntax.Aggregate
) -> dict[int, tuple[syntax.Variable, syntax.Aggregate]]:
    """What is asked of a set, by the places in the rule, as aggregates over the bindings, of which each is one element; nothing if they are not that, or if anything else is asked."""
    target = collected.target
    parts = target.args if isinstance(target, syntax.Functor) and target.name == "()" else (target,)
    own = {arg.name for literal in collected.body for arg in variables(literal)} - names(rule)
    listed = [part.name for part in parts if isinstance(part, syntax.Variable)]
    if len(listed) < len(parts) or len({*listed}) < len(listed) or {*listed} != own or not isinstance(collected.body[0], syntax.Atom):
        return {}
    if len(collected.body) > 1 or variable.name in names(rule.head):
        return {}
    asked: dict[int, tuple[syntax.Variable, syntax.Aggregate]] = {}
    for other, literal in enumerate(rule.body):
        match literal:
            case _ if other == place or variable.name not in names(literal, into_aggregates=True):
                continue
            case syntax.Builtin(op=op, args=(syntax.Variable(name=name), syntax.Variable() as value, *which), definition=None) if (
                op in OF_SETS and name == variable.name and value.name not in {name, *(earlier.name for earlier, _ in asked.values())}
            ):
                match which:
                    case [syntax.Constant(value=int() as component)]:
                        column = component - 1
                    case []:
                        column = 0
                    case _:
                        return {}
                asked[other] = value, replace(collected, op=op, target=parts[column], type=value.type)
            case _:
                return {}
    return asked


def _plain_target(aggregate: syntax.Aggregate, scope: set[str]) -> syntax.Aggregate:
    """The aggregate with a variable of its own for a target, which an equality gives; where that is undefined, there is no binding."""
    if aggregate.target is None or (isinstance(aggregate.target, syntax.Variable) and aggregate.target.name not in scope):
        return aggregate
    target = syntax.Variable("own target", aggregate.target.type)
    equal = syntax.Builtin("=", (target, aggregate.target))
    match aggregate.body:
        case (syntax.Disjunction() as either,):
            body: tuple[syntax.Literal, ...] = (replace(either, branches=tuple((*branch, equal) for branch in either.branches)),)
        case body:
            body = (*body, equal)
    return replace(aggregate, target=target, body=body)


class _Groups:
    """The groups of a program while they are found."""

    def __init__(self, program: Program) -> None:
        self.naming = Naming(program.relations)
        self.home = {name: component.relations for component in components(program) for name in component.relations}
        self.groups: list[Group] = []
        self.bindings: list[syntax.Rule] = []
        self.named: set[str] = set()

    def take_bindings(self) -> list[syntax.Rule]:
        """The rules of bindings that were found since."""
        rules, self.bindings = self.bindings, []
        return rules

    def rewritten(self, rule: syntax.Rule, own: bool) -> list[syntax.Rule]:
        """The rules that read what is kept instead of a rule."""
        sites = list(_sites(rule, self.home.get(rule.head.relation, ())))
        if not sites:
            return [rule]
        places = {place for site in sites for place in site.places}
        rest = [literal for place, literal in enumerate(rule.body) if place not in places]
        for site in sites:
            site.tests = tuple(literal for literal in rest if isinstance(literal, syntax.Builtin) and _tests(literal, site.given))
        groups = [self._group(rule, site, rest, own) for site in sites]
        rules = []
        for full in product(*((True, False) if site.nothing else (True,) for site in sites)):
            empty = [site for site, there in zip(sites, full, strict=True) if not there]
            if any(maps(site.body, _own(site), rest) for site in empty):
                continue  # where the rest holds, it is not empty
            body = _body(rule, rest, sites, groups, full)
            rules.append(rule.derive(rule.head, body=body))
            groups = [replace(group, asked=group.asked or not there) for group, there in zip(groups, full, strict=True)]
        self.groups += groups
        return rules

    def _group(self, rule: syntax.Rule, site: _Site, rest: Sequence[syntax.Literal], own: bool) -> Group:
        columns, rules = self._rows(rule, site)
        parts, shown = dict[StatePart, int](), list[GroupAggregate]()
        place_of = {variable.name: place for place, variable in enumerate(columns.values())}
        for variable, aggregate in site.asked.values():
            assert aggregate.type is not None, "checked programs are typed"
            part, squares = None, -1
            if aggregate.op != "count":
                assert isinstance(aggregate.target, syntax.Variable) and aggregate.target.type is not None, "an equality computes it"
                op = aggregate.op if aggregate.op in EXTREMES else "sum"
                column = place_of[columns[aggregate.target.name].name]
                part = parts.setdefault(StatePart(op, column, aggregate.target.type), len(parts))
                if aggregate.op == "variance":
                    squares = parts.setdefault(StatePart("squares", column, aggregate.target.type), len(parts))
            shown.append(GroupAggregate(variable, aggregate.op, aggregate.type, part, squares))
        read = self._read(rule, site, rest, shown)
        rows, kept = syntax.Atom(rules[0].head.relation, tuple(columns.values())), [*parts]
        some = replace(rows, args=(*site.keys, *(syntax.Wildcard(arg.type) for arg in rows.args[len(site.keys) :])))
        over = [literal for s in shown for literal in _defining(s, rows, site.keys, None if s.part is None else kept[s.part].column)]
        aux = syntax.Atom(self._name(rule, "aux"), (*site.keys, *(shown[place].variable for place in read)))
        held = [NUMBER, *(part.type if part.op in EXTREMES else SYMBOL for part in kept)]
        state = syntax.Atom(
            self._name(rule, "state"), (*site.keys, *(syntax.Variable(f"s{place}", type_) for place, type_ in enumerate(held)))
        )
        source = _source(rules, self.home)
        return Group(
            _declared(rows),
            _declared(aux),
            _declared(state),
            rule.derive(aux, body=(some, *over, *site.tests)),
            len(site.keys),
            tuple(kept),
            tuple(shown),
            tuple(read),
            site.tests,
            tuple(variable.name for variable in columns.values()),
            source,
            own=own or (source is None and any(part.op in EXTREMES for part in kept)),
            asked=False,
        )

    def _rows(self, rule: syntax.Rule, site: _Site) -> tuple[dict[str, syntax.Variable], list[syntax.Rule]]:
        """The columns of the bindings, by the names that a site has for them, and the rules that give them."""
        ways = site.ways
        taken = {name for way in ways for part in way for name in names(part, into_aggregates=True)} | names(rule)
        fresh = (name for name in (f"y{number}" for number in count()) if name not in taken)
        columns = {key.name: key for key in site.keys}
        for variable in (v for part in ways[0] for v in variables(part)):
            if variable.name not in columns and all(any(variable.name in names(part) for part in way) for way in ways):
                columns[variable.name] = replace(variable, name=next(fresh))
        renamed: dict[str, syntax.Term] = dict(columns)
        for name in sorted(name for name in taken if " " in name and name not in columns):  # only one way has it
            renamed[name] = syntax.Variable(next(fresh), next(v.type for w in ways for p in w for v in variables(p) if v.name == name))
        head = syntax.Atom(self._name(rule, "rows"), tuple(columns.values()))
        rules = [rule.derive(head, body=tuple(rename_literal(part, renamed) for part in way)) for way in ways]
        self.bindings += rules
        return columns, rules

    def _read(self, rule: syntax.Rule, site: _Site, rest: Sequence[syntax.Literal], shown: Sequence[GroupAggregate]) -> list[int]:
        """Which values the rule reads elsewhere; one at least, where a group has no other columns."""
        others = (literal for literal in rest if literal not in site.tests)
        over = (aggregate for place, literal in enumerate(rule.body) if place not in site.places for aggregate in aggregates(literal))
        used = names(rule.head).union(*map(names, others), *(names(part, into_aggregates=True) for part in over))
        used |= {
            literal.args[0].name
            for place, literal in enumerate(rule.body)
            if place not in site.places
            and isinstance(literal, syntax.Builtin)
            and isinstance(literal.args[0], syntax.Variable)
            and literal not in rest
        }
        places = [place for place, each in enumerate(shown) if each.variable.name in used]
        return places or ([] if site.keys else [0])

    def _name(self, rule: syntax.Rule, kind: str) -> str:
        name = self.naming(rule.head.relation, kind)
        if name in self.named:
            name = self.naming.fresh(name)
        self.named.add(name)
        return name


def _defining(shown: GroupAggregate, rows: syntax.Atom, keys: Sequence[syntax.Variable], column: int | None) -> Iterator[syntax.Builtin]:
    """What an aggregate is, by all bindings of its group."""
    if shown.op not in OF_SETS:
        yield syntax.Builtin(
            "=", (shown.variable, syntax.Aggregate(shown.op, None if column is None else rows.args[column], (rows,), shown.type))
        )
        return
    assert column is not None, "it is an aggregate of values"
    own = rows.args[len(keys) :]
    types = [arg.type for arg in own if arg.type is not None]
    target = own[0] if len(own) == 1 else syntax.Functor("()", own, tuple_type(*types))
    taken = names(rows) | {key.name for key in keys} | {shown.variable.name}
    name = next(name for number in count() if (name := f"w{number}") not in taken)
    collected = syntax.Variable(name, set_type(types[0] if len(own) == 1 else tuple_type(*types)))
    yield syntax.Builtin("=", (collected, syntax.Aggregate("setof", target, (rows,), collected.type)))
    place = () if len(own) == 1 else (syntax.Constant(column - len(keys) + 1, NUMBER),)
    yield syntax.Builtin(shown.op, (collected, shown.variable, *place))


def _body(
    rule: syntax.Rule, rest: Sequence[syntax.Literal], sites: Sequence[_Site], groups: Sequence[Group], full: Sequence[bool]
) -> tuple[syntax.Literal, ...]:
    """The body of a rule over groups that are not empty, or are."""
    there = [site for site, is_full in zip(sites, full, strict=True) if is_full]
    tests = [test for site in there for test in site.tests]
    body = [literal for literal in rest if literal not in tests]
    for part in _local_parts(rule, rest):
        if any(len(site.ways) == 1 and maps(part, _locals(rule, rest), site.body) for site in there):
            body = [literal for literal in body if not any(literal is atom for atom in part)]
    for site, group, is_full in zip(sites, groups, full, strict=True):
        if is_full:
            body.append(syntax.Atom(group.aux.relation, (*site.keys, *(group.shown[place].variable for place in group.read))))
        else:
            body += [syntax.Builtin("=", (each.variable, syntax.Constant(_zero(each.type), each.type))) for each in group.shown]
            rest_of = (syntax.Wildcard(attribute.type) for attribute in group.state.attributes[group.keys :])
            body.append(syntax.Negation(syntax.Atom(group.state.relation, (*site.keys, *rest_of))))
    return tuple(body)


def _locals(rule: syntax.Rule, rest: Sequence[syntax.Literal]) -> set[str]:
    """The variables of positive atoms that nothing else in a rule has."""
    elsewhere = names(rule.head).union(*(names(part, into_aggregates=True) for part in rule.body if not isinstance(part, syntax.Atom)))
    return set[str]().union(*(names(part) for part in rest if isinstance(part, syntax.Atom))) - elsewhere


def _local_parts(rule: syntax.Rule, rest: Sequence[syntax.Literal]) -> list[list[syntax.Atom]]:
    """The positive atoms of a rule, those that share local variables together."""
    return joined([literal for literal in rest if isinstance(literal, syntax.Atom)], _locals(rule, rest))


def _own(site: _Site) -> set[str]:
    return {name for part in site.body for name in names(part)} - {key.name for key in site.keys}


def _tests(literal: syntax.Builtin, given: set[str]) -> bool:
    """Whether a literal asks something of given values alone."""
    return not any(True for _ in aggregates(literal)) and bool(names(literal)) and names(literal) <= given


def _source(rules: Sequence[syntax.Rule], derived: Collection[str]) -> syntax.Atom | None:
    """The atom of a relation that is not derived, whose rows are the bindings, one by one."""
    match rules:
        case [syntax.Rule(body=(syntax.Atom() as atom,))] if atom.relation not in derived:
            return atom if len(names(atom)) == sum(isinstance(arg, syntax.Variable) for arg in atom.args) else None
        case _:
            return None


def _zero(type_: Type) -> Value:
    return 0.0 if type_.kind == "float" else Decimal(0) if type_.kind == "decimal" else 0


def _declared(atom: syntax.Atom) -> syntax.Declaration:
    """The declaration of a relation whose columns are called as the variables of an atom."""
    called = [arg.name if isinstance(arg, syntax.Variable) else "" for arg in atom.args]
    called = called if len({name.lower() for name in called}) == len(called) else [f"c{place}" for place in range(len(called))]
    return syntax.Declaration(
        atom.relation, tuple(syntax.Attribute(name, str(arg.type), arg.type) for name, arg in zip(called, atom.args, strict=True))
    )


def _row(declaration: syntax.Declaration) -> syntax.Atom:
    return syntax.Atom(declaration.relation, tuple(syntax.Variable(attribute.name, attribute.type) for attribute in declaration.attributes))
