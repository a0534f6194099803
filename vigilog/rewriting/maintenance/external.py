"""Exact changes of relations that are not stored, as rules.

The database is read in both of its states: `r` is the old one, `r_new` the new one, `r_del` and `r_ins` are the net change of a table. For a rule `p :- r_1, …, r_n`

* (D) `p_del` are rows of the old `p` that lost a proof: one literal is among what was lost, the others held before;
* (I) `p_ins` are rows of the new `p` with a new proof: one literal is among what was gained, the others hold now;
* (E) what lost a proof and is not in `p_new` is lost, `p_minus`; what has a new proof and was not in `p` is gained, `p_plus`.

`p` and `p_new` are derived on demand (`demand.py`). Only what is really lost or gained is followed further, in a recursion as well: a row that keeps another proof takes nothing with it.
That is where this differs from Staudt & Jarke's algorithm (`rederive.py`), which first deletes all that could be lost and then derives again what need not have been.

Where each row has a single proof, there is nothing to ask: what loses its proof is lost. Where a row at least says what all variables of its rule are, as a row of an aggregate does, every
binding that a change touches is derived in both states, and the two are compared.

A relation whose proofs are counted (`counting.py`) is a table, and so are its numbers. What its rules' bindings gain and lose is added up, row by row; with the number of before, that says
whether the row is lost or gained. The new state is the old one with that change, so its readers need not derive it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from vigilog.core.values import NUMBER
from vigilog.language import syntax
from vigilog.language.parts import aggregates, atoms, names, variables
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by
from vigilog.rewriting.demand.copies import without_copies
from vigilog.rewriting.demand.demand import Demand
from vigilog.rewriting.demand.magic import definitions_of, levels
from vigilog.rewriting.maintenance.counting import Counted, Tally
from vigilog.rewriting.maintenance.rules import deletions, insertions, new_state
from vigilog.rewriting.maintenance.states import States, in_new
from vigilog.rewriting.maintenance.touched import grouped, touched
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.sections import Section, by_rank

ROOM = 3  # ranks for a level where proofs are counted: the changes of bindings are complete, then added up; what they are added up for has a level of its own, and after that its new state


@dataclass(frozen=True)
class External:
    """The rules, what each relation of the program is called in them, and the order of what is on demand."""

    program: Program
    states: Mapping[str, States]
    levels: Mapping[str, int]
    tables: frozenset[str]  # relations that are stored, with their net changes at hand

    @cached_property
    def reads(self) -> frozenset[str]:
        """The tables that rules read, in one of their states or what they lost and gained."""
        read = {atom.relation for rule in self.program.rules for atom, _ in atoms(rule.body)}
        return frozenset(name for name in self.tables if not read.isdisjoint((name, *self.states[name].names)))

    @property
    def sections(self) -> list[Section]:
        """The rules to print, in an order in which they could be evaluated."""
        declarations = dict(self.program.relations)
        return by_rank("changes of what is not stored", self.program.rules, declarations, self.levels, Naming(declarations))


def external(program: Program, stored: Iterable[str] = (), counted: Mapping[str, Counted] | None = None) -> External:
    """The rules that find the changes of all derived relations that are not stored; those that are counted are stored, but what they gain and lose is not at hand."""
    naming, counted = Naming(program.relations), counted or {}
    old = definitions_of(program, stored)
    tables = frozenset(program.relations.keys() - old.keys())
    for name, parts in counted.items():
        for other in (name, parts.each, parts.numbers):
            del old[other]
    states = {
        name: States(
            naming(name, "new"), naming(name, "del" if name in tables else "minus"), naming(name, "ins" if name in tables else "plus")
        )
        for name in program.relations
    }
    new = {states[name].new: [in_new(rule, states) for rule in rules] for name, rules in old.items()}
    origin = {rule.head.relation: rule for rule in program.rules}
    new |= {states[name].new: list(new_state(origin[name], program, name, states)) for name in counted}
    demand = Demand({**old, **new}, naming)
    room = ROOM if counted else 1
    level = {name: room * place for name, place in levels(program).items()}
    derived = {rule.head.relation for rule in program.rules}
    keys = {name: key for name, key in program.keys.items() if name not in derived}  # only of base relations they are enforced
    order = {**{name: level[name] for name in old}, **{states[name].new: level[name] for name in old}}
    for name, rules in old.items():
        declaration, changed = program.relations[name], states[name]
        lost, gained = naming(name, "del"), naming(name, "ins")
        if _single_proof(name, rules):
            _follow(rules, states, changed.lost, changed.gained, demand)
        elif _single_binding(name, rules, keys):
            _compare(rules[0], states, lost, gained, demand)
            _keep_apart(declaration, rules[0], (lost, changed.lost, gained), demand)
            _keep_apart(declaration, rules[0], (gained, changed.gained, lost), demand)
            order |= {lost: level[name], gained: level[name]}
        else:
            _follow(rules, states, lost, gained, demand)
            _decide(declaration, rules[0], (lost, changed.lost, changed.new), demand)
            _decide(declaration, rules[0], (gained, changed.gained, name), demand)
    declarations = dict(program.relations)
    for name, parts in counted.items():
        tally = Tally(program.relations[name], naming(name, "turned"), naming(name, "turn"))
        declarations |= {declaration.relation: declaration for declaration in tally.declarations}
        _count(origin[name], tally, [program.relations[part] for part in parts.bindings], states, demand)
        _judge(origin[name], tally, states[name], parts.numbers, states[parts.numbers], demand)
        order |= {change: level[part] + 1 for part in parts.bindings for change in (states[part].lost, states[part].gained)}
        order |= {
            tally.each: max(level[part] for part in parts.bindings) + 2,
            states[name].lost: level[name],
            states[name].new: level[name] + 1,
        }
    demand.finish()
    for name, declaration in program.relations.items():
        made = {states[name].new, states[name].lost, states[name].gained}
        if name in old:
            made |= {naming(name, "del"), naming(name, "ins")}
        declarations |= {other: replace(declaration, relation=other) for other in sorted(made)}
    declarations |= demand.declarations
    told = {name for state in states.values() for name in (state.new, state.lost, state.gained)}
    kept = tuple(without_copies(demand.rules, keep=told | old.keys()))
    rewritten = replace(program, declarations=tuple(declarations.values()), directives=(), rules=kept)
    return External(rewritten, states, order, tables)


def _follow(rules: Iterable[syntax.Rule], states: Mapping[str, States], lost: str, gained: str, demand: Demand) -> None:
    """(D) and (I)."""
    for rule in rules:
        for head, variants in ((lost, deletions(rule, states)), (gained, insertions(rule, states))):
            for variant in variants:
                _chain(rule, variant.rule.body, variant.changed, head, demand)


def _compare(rule: syntax.Rule, states: Mapping[str, States], lost: str, gained: str, demand: Demand) -> None:
    """(D) and (I) where a change can leave a binding as it was: what it touches is derived in both states."""
    body = rule.body
    deleted, inserted = ([*variants] for variants in (deletions(rule, states), insertions(rule, states)))
    read = [atom for literal in body for atom in (literal, getattr(literal, "literal", None)) if isinstance(atom, syntax.Atom)]
    for number, atom in enumerate(read):
        if any(isinstance(arg, syntax.Wildcard) for arg in atom.args):
            for change in (states[atom.relation].lost, states[atom.relation].gained):
                _touch(rule, (replace(atom, relation=change),), states, lost, gained, demand)
        else:
            _chain(rule, deleted[number].rule.body, deleted[number].changed, lost, demand)
            _chain(rule, inserted[number].rule.body, inserted[number].changed, gained, demand)
    for group in _groups(rule, states, demand):
        _touch(rule, group, states, lost, gained, demand)


def _groups(rule: syntax.Rule, states: Mapping[str, States], demand: Demand) -> Iterator[tuple[syntax.Literal, ...]]:
    """The groups of aggregates that changes touch, as literals that bind them. Those that several changes can touch are a relation of their own, so that each is computed once, and all of them together."""
    scope, by_columns = names(rule), dict[tuple[syntax.Variable, ...], list[tuple[syntax.Literal, ...]]]()
    for prefix in touched(rule, states):
        own = set().union(*map(names, prefix))
        if not own <= set(grounded_by(prefix, set(), own)):
            yield prefix  # it waits for what the rule says beside it
            continue
        keys = {variable.name: variable for literal in prefix for variable in variables(literal) if variable.name in scope}
        by_columns.setdefault(tuple(keys[name] for name in sorted(keys)), []).append(prefix)
    for columns, prefixes in by_columns.items():
        if len(prefixes) == 1 or not columns:
            yield from prefixes
            continue
        group = syntax.Atom(demand.naming.fresh(f"{rule.head.relation}_touched"), columns)
        demand.declare(group.relation, columns)
        for first, *rest in prefixes:
            demand.chain(rule, group, [first], rest)
        yield (group,)


def _touch(
    rule: syntax.Rule, prefix: tuple[syntax.Literal, ...], states: Mapping[str, States], lost: str, gained: str, demand: Demand
) -> None:
    """What bindings that begin as a prefix says give in the old state and in the new one."""
    _chain(rule, (*prefix, *grouped(rule.body, prefix)), 0, lost, demand)
    _chain(rule, (*prefix, *grouped(in_new(rule, states).body, prefix)), 0, gained, demand)


def _chain(rule: syntax.Rule, body: tuple[syntax.Literal, ...], changed: int, head: str, demand: Demand) -> None:
    """A rule for what changed, which is read first."""
    rest = [literal for place, literal in enumerate(body) if place != changed]
    demand.chain(rule, replace(rule.head, relation=head), [body[changed]], rest)


def _keep_apart(declaration: syntax.Declaration, origin: syntax.Rule, parts: tuple[str, str, str], demand: Demand) -> None:
    """(E) where both states are at hand: what only one of them has is a change."""
    candidate, changed, other = parts
    columns = tuple(syntax.Variable(attribute.name, attribute.type) for attribute in declaration.attributes)
    demand.add(
        origin.derive(syntax.Atom(changed, columns), body=(syntax.Atom(candidate, columns), syntax.Negation(syntax.Atom(other, columns))))
    )


def _decide(declaration: syntax.Declaration, origin: syntax.Rule, parts: tuple[str, str, str], demand: Demand) -> None:
    """(E): candidates that the other state does not have are changes; so that state is asked for them."""
    candidate, changed, other = parts
    columns = tuple(syntax.Variable(attribute.name, attribute.type) for attribute in declaration.attributes)
    row = syntax.Atom(candidate, columns)
    pattern = demand.cheap_pattern(other)
    asked = demand.question(other, pattern, (column for column, mark in zip(columns, pattern, strict=True) if mark == "b"))
    demand.add(origin.derive(asked, body=(row,)))
    demand.add(origin.derive(syntax.Atom(changed, columns), body=(row, syntax.Negation(syntax.Atom(other, columns)))))


def _count(origin: syntax.Rule, tally: Tally, bindings: Sequence[syntax.Declaration], states: Mapping[str, States], demand: Demand) -> None:
    """By how much the numbers of proofs change."""
    for number, part in enumerate(bindings):
        for name, lost in ((states[part.relation].gained, False), (states[part.relation].lost, True)):
            demand.add(tally.part(origin, replace(part, relation=name), 2 * number + lost, lost=lost))
    demand.add(tally.total(origin, syntax.Builtin("!=", (tally.amount, syntax.Constant(0, NUMBER)))))


def _judge(origin: syntax.Rule, tally: Tally, changed: States, numbers: str, numbered: States, demand: Demand) -> None:
    """(E) where proofs are counted: what has none any more is lost, what had none is gained; and the numbers are others."""
    columns, turn, zero = tally.columns, tally.amount, syntax.Constant(0, NUMBER)
    before, now = syntax.Variable("before", NUMBER), syntax.Variable("now", NUMBER)
    turned, stored = syntax.Atom(tally.sum, (*columns, turn)), syntax.Atom(numbers, (*columns, before))
    sum_ = syntax.Builtin("=", (now, syntax.Functor("+", (before, turn), NUMBER)))
    new = syntax.Negation(syntax.Atom(numbers, (*columns, syntax.Wildcard(NUMBER))))
    for head, body in (
        (syntax.Atom(numbered.lost, (*columns, before)), (turned, stored)),
        (syntax.Atom(numbered.gained, (*columns, now)), (turned, stored, sum_, syntax.Builtin(">", (now, zero)))),
        (syntax.Atom(numbered.gained, (*columns, turn)), (turned, new)),
        (syntax.Atom(changed.lost, columns), (turned, stored, sum_, syntax.Builtin("=", (now, zero)))),
        (syntax.Atom(changed.gained, columns), (turned, new)),
    ):
        demand.add(origin.derive(head, body=body))


def _single_proof(name: str, rules: Sequence[syntax.Rule]) -> bool:
    """Whether no row can have two proofs: there is one rule, without `_` or aggregates, and a row says what all its variables are."""
    positive = [literal for literal in rules[0].body if isinstance(literal, syntax.Atom)]
    plain = not any(isinstance(arg, syntax.Wildcard) for atom in positive for arg in atom.args)
    return plain and not any(True for literal in rules[0].body for _ in aggregates(literal)) and _single_binding(name, rules)


def _single_binding(name: str, rules: Sequence[syntax.Rule], keys: Mapping[str, tuple[int, ...]] | None = None) -> bool:
    """Whether there is one rule, not recursive, and a row of the head says what all its variables are: directly, or by the keys of base relations.

    By a key they are the same within a state, but may be others in another one.
    """
    rule = rules[0]
    if len(rules) > 1 or any(atom.relation == name for atom, _ in atoms(rule.body)):
        return False
    bound = {arg.name for arg in rule.head.args if isinstance(arg, syntax.Variable)}
    equalities = tuple(literal for literal in rule.body if isinstance(literal, syntax.Builtin) and literal.op == "=")
    size = -1
    while len(bound) > size:
        size = len(bound)
        bound = set(grounded_by(equalities, bound, names(rule)))
        for atom in rule.body:
            if isinstance(atom, syntax.Atom) and atom.relation in (keys or {}) and _says(atom, (keys or {})[atom.relation], bound):
                bound |= {arg.name for arg in atom.args if isinstance(arg, syntax.Variable)}
    return names(rule) <= bound


def _says(atom: syntax.Atom, key: tuple[int, ...], bound: Collection[str]) -> bool:
    """Whether the key of an atom is known."""
    return all(
        isinstance(arg, syntax.Constant) or (isinstance(arg, syntax.Variable) and arg.name in bound)
        for arg in (atom.args[column] for column in key)
    )
