"""The maintenance plan: what is kept of a program, by which rules it changes, and in which order.

Relations that are stored come first, a component after those that it reads. What a component loses and gains is found in two phases:

(a) (D), to a fixpoint: what may be lost;
(b) (R) and (I), to a joint fixpoint: what of that has a proof all the same, and what is new.

What it reads from below is in both of its states, `r` and `r_new`, by what it lost and gained. When all stored components have changed, the rest is found on demand (`external.py`). What is printed of a plan is
what is run. On Spark, stored components change by rules on demand, too, so that all views share their rounds.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> from vigilog.rewriting.maintenance.strategies import MATERIALIZED
>>> text = ".decl e(x: number) .decl d(x: number) .decl p(x: number) p(x) :- e(x), !d(x)."
>>> for section in plan(check(text).program, ["p"], {"p": MATERIALIZED}).sections:
...     print(f"// {section.title}", *map(show_statement, section.program.rules), sep="\\n")
// p (materialized): what may be lost
p_del(x) :- e_del(x), !d(x).
p_del(x) :- e(x), d_ins(x).
// p (materialized): what has a proof all the same, and what is new
d_new(x) :- d(x), !d_del(x).
d_new(x) :- d_ins(x).
e_new(x) :- e(x), !e_del(x).
e_new(x) :- e_ins(x).
p_red(x) :- p_del(x), e_new(x), !d_new(x).
p_ins(x) :- e_ins(x), !d_new(x), !p(x).
p_ins(x) :- e_new(x), d_del(x), !p(x).
// p (materialized): net changes
p_plus(x) :- p_ins(x).
p_minus(x) :- p_del(x), !p_red(x).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.language.parts import atoms, is_fact, names
from vigilog.language.program import Program
from vigilog.language.strata import Component, components, improved
from vigilog.language.syntax import Atom, Declaration, Negation, Rule, Variable
from vigilog.rewriting.maintenance.counting import Counting, counting
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.maintenance.group import Group
from vigilog.rewriting.maintenance.groups import Grouping, grouping
from vigilog.rewriting.maintenance.rules import Variant, deletions, insertions, new_state, rederivation, row, seeking
from vigilog.rewriting.maintenance.states import States, in_new
from vigilog.rewriting.maintenance.strategies import COUNTED, MATERIALIZED, Strategy
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.program.normalize import flat
from vigilog.rewriting.program.relevant import relevant
from vigilog.rewriting.program.unfold import passing, unfold
from vigilog.rewriting.sections import Section, section


@dataclass(frozen=True)
class ComponentPlan:
    """How a stored component changes: what all relations it may read are called, and the rules (D), (R) and (I), each with what changed."""

    component: Component
    strategy: Strategy
    states: Mapping[str, States]
    red: Mapping[str, str]  # what its relations' rows with another proof are called
    deletions: tuple[Variant, ...]
    rederivations: tuple[Variant, ...]
    insertions: tuple[Variant, ...]
    beside: str = ""  # the relation of what is kept beside it

    @property
    def keeper(self) -> str:
        """Who keeps it."""
        return "improving" if self.component.best else self.strategy.keeper

    @property
    def reads(self) -> frozenset[str]:
        """What the component reads from below."""
        return frozenset(atom.relation for rule in self.component.rules for atom, _ in atoms(rule.body)) - set(self.component.relations)


@dataclass(frozen=True)
class GroupPlan:
    """How what is kept of groups changes: the rules of the bindings, and of what is not kept that they are derived from; `reads` are the tables these read."""

    group: Group
    program: Program
    reads: frozenset[str]

    @property
    def asks(self) -> frozenset[str]:
        """The tables that its rules read, in one of their states: none where the bindings are a table's rows, which are taken as they come and go."""
        return frozenset() if self.group.source is not None and self.group.source.relation in self.reads else self.reads


@dataclass(frozen=True)
class Plan:
    """`program` is plain; the changes of `told` are wanted; of these, and of what they are derived from, some are `kept`, each by a strategy.

    The state of groups is kept in the rules of the relations `grouped`, each with whether the rows of its groups are kept in any case.
    """

    program: Program
    told: tuple[str, ...]
    kept: Mapping[str, Strategy] = field(default_factory=dict)
    grouped: Mapping[str, bool] = field(default_factory=dict)

    @cached_property
    def plain(self) -> Program:
        """The program without what neither those who are told nor base relations need, nor what only passes bindings on."""
        derived = {rule.head.relation for rule in self.program.rules}
        unfolded = unfold(self.program, passing(self.program, self.told))
        return relevant(unfolded, [*self.told, *(name for name in self.program.relations if name not in derived)])

    @cached_property
    def grouping(self) -> Grouping:
        """The program over what is kept of groups."""
        return grouping(self.plain, self.grouped)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self.grouping.groups

    @property
    def needed(self) -> Program:
        """The rules by which changes are found: what is kept of groups has none."""
        return self.grouping.program

    @cached_property
    def tables(self) -> frozenset[str]:
        """The derived relations that are read as they are stored: what is kept, and what is kept of groups."""
        return frozenset(self.kept).union(*((group.aux.relation, group.state.relation) for group in self.groups))

    @cached_property
    def asked(self) -> Program:
        """The program by which goals are answered: what is kept of groups is read where it can be."""
        if not self.groups:
            return self.program
        kept = {declaration.relation: declaration for group in self.groups for declaration in (group.aux, group.state)}
        rules = [rule for rule in self.program.rules if rule.head.relation not in self.grouped]
        rules += [rule for rule in self.needed.rules if rule.head.relation in self.grouped]
        return replace(self.program, declarations=(*self.program.declarations, *kept.values()), rules=tuple(rules))

    @cached_property
    def naming(self) -> Naming:
        return Naming(self.needed.relations)

    @cached_property
    def improved(self) -> frozenset[str]:
        """The relations that are recursive through `min` or `max`."""
        return improved(self.plain)

    @property
    def counted(self) -> frozenset[str]:
        return frozenset(name for name, strategy in self.kept.items() if strategy is COUNTED)

    @cached_property
    def counting(self) -> Counting:
        """The program with the numbers of proofs that are kept beside views."""
        return counting(self.needed, self.counted)

    @cached_property
    def whole(self) -> Program:
        """The program that says what everything is that is kept: views, numbers of proofs, the values of groups; and their rows."""
        made = counting(self.plain, self.counted).program
        own = {group.rows.relation: group for group in self.groups}
        rows = tuple(rule for rule in self.needed.rules if rule.head.relation in own)
        declarations = (d for group in self.groups for d in (group.rows, group.aux, group.state))
        return replace(made, declarations=(*made.declarations, *declarations), rules=(*made.rules, *rows, *self.grouping.definitions))

    @property
    def beside(self) -> dict[str, Declaration]:
        """The relations that are kept beside views."""
        numbers = [parts.numbers for parts in self.counting.counted.values()]
        declarations = {name: self.counting.program.relations[name] for name in numbers}
        return declarations | {declaration.relation: declaration for group in self.groups for declaration in group.kept}

    @property
    def functional(self) -> dict[str, int]:
        """Of relations that are kept beside views, how many of the last columns follow from the others."""
        following = {parts.numbers: 1 for parts in self.counting.counted.values()}
        return following | {group.state.relation: 1 + len(group.parts) for group in self.groups if group.keys}

    @property
    def copies(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Relations all of whose columns are in rows that are kept of groups: these rows, and the places of the columns in them."""
        copies = {}
        for group in self.groups:
            if group.own and group.source is not None and group.source.args and all(isinstance(arg, Variable) for arg in group.source.args):
                columns = [arg.name for arg in group.source.args if isinstance(arg, Variable)]
                copies[group.source.relation] = group.rows.relation, tuple(map(group.bound.index, columns))
        return copies

    @cached_property
    def stored(self) -> Program:
        """The rules of what is kept, by which it is computed at first."""
        return replace(self.needed, rules=tuple(rule for rule in self.plain.rules if rule.head.relation in self.kept))

    @cached_property
    def derived(self) -> Program:
        """The rules of what is not kept, and wanted above what is kept of groups."""
        rules = tuple(rule for rule in self.needed.rules if rule.head.relation not in self.kept)
        if not self.groups:
            return replace(self.needed, rules=rules)
        wanted = relevant(replace(self.needed, rules=rules), self.told).rules
        return replace(self.needed, rules=wanted)

    @cached_property
    def external(self) -> External | None:
        """The rules for changes of what is not kept; None if everything is."""
        return external(self.derived if self.groups else self.needed, self.kept) if self.derived.rules else None

    @cached_property
    def passed(self) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        """Told views whose rows are those of a table, or of a relation that is kept: that relation, and the places of the columns in it. Their changes need no rules."""
        derived, own = {rule.head.relation for rule in self.needed.rules}, self.tables
        rules = Counter(rule.head.relation for rule in self.needed.rules)
        passed = {}
        for rule in self.derived.rules:
            match rule.body:
                case (Atom() as atom,) if rule.head.relation in self.told and rules[rule.head.relation] == 1:
                    places = _passed_on(rule.head, atom)
                    if places and (atom.relation in own or atom.relation not in derived):
                        passed[rule.head.relation] = atom.relation, places
        return passed

    @cached_property
    def followed(self) -> External | None:
        """The rules for changes of what is not kept, and not passed on either; None if there is nothing of that kind."""
        if not self.passed:
            return self.external
        rules = relevant(self.derived, [name for name in self.told if name not in self.passed]).rules
        return external(replace(self.derived, rules=rules), self.kept) if rules else None

    def unread(self, queries: Iterable[str] = ()) -> frozenset[str]:
        """The relations with changes at hand of which no rule reads an old state, nor a new one, nor what they lost and gained, for the views or for some queries."""
        asked = (self.only(name).external for name in queries)
        read = set[str]().union(*(maintenance.reads for maintenance in (self.followed, *asked) if maintenance is not None))
        for part in self.components:
            read |= part.asks if isinstance(part, GroupPlan) else part.reads.union(part.component.relations)
        derived = {rule.head.relation for rule in self.needed.rules}
        return (frozenset(self.needed.relations) - derived - read) | {group.aux.relation for group in self.groups} - read

    def only(self, view: str) -> Plan:
        """The plan for one relation of the program, told or not, over what this one keeps."""
        made = plan(self.program, [view], self.kept, self.grouped)
        return made if {*made.groups} <= {*self.groups} else plan(self.program, [view], self.kept)

    @cached_property
    def components(self) -> tuple[ComponentPlan | GroupPlan, ...]:
        """What is kept, each component after what it reads."""
        own = {rule.head.relation for rule in self.stored.rules} | self.tables
        groups = {group.aux.relation: group for group in self.groups}
        parts: list[ComponentPlan | GroupPlan] = []
        for component in components(self.grouping.order):
            rules = tuple(rule for rule in component.rules if not is_fact(rule))
            if component.relations[0] in groups:
                parts.append(self._group(groups[component.relations[0]]))
            elif rules and component.relations[0] in self.kept:
                net = own - set(component.relations)
                parts.append(self._component(replace(component, rules=rules).candidates, net))
        return tuple(parts)

    def _group(self, group: Group) -> GroupPlan:
        """The rows of a group, and what is not kept that they are derived from."""
        rules = replace(self.needed, rules=tuple(rule for rule in self.needed.rules if rule.head.relation not in self.tables))
        below = relevant(rules, [group.rows.relation])
        derived = {rule.head.relation for rule in below.rules}
        return GroupPlan(group, below, frozenset(below.relations.keys() - derived))

    def _component(self, component: Component, net: set[str]) -> ComponentPlan:
        naming = self.naming
        read = {atom.relation for rule in component.rules for atom, _ in atoms(rule.body)} | set(component.relations)
        states = {
            name: States(
                naming(name, "new"), naming(name, "minus" if name in net else "del"), naming(name, "plus" if name in net else "ins")
            )
            for name in sorted(read)
        }
        red = {name: naming(name, "red") for name in component.relations}
        if component.best:
            return self._improving(component, states, red)
        return ComponentPlan(
            component,
            self.kept[component.relations[0]],
            states,
            red,
            tuple(variant for rule in component.rules for variant in deletions(rule, states, stored=True)),
            tuple(rederivation(rule, states, red[rule.head.relation]) for rule in component.rules),
            tuple(_unknown(variant, rule) for rule in component.rules for variant in insertions(rule, states)),
            self.counting.counted[component.relations[0]].numbers if self.kept[component.relations[0]] is COUNTED else "",
        )

    def _improving(self, component: Component, states: Mapping[str, States], red: Mapping[str, str]) -> ComponentPlan:
        """(D) of rows that are the best, and candidates: for the keys of those that may be lost, and from what is new."""
        return ComponentPlan(
            component,
            self.kept[component.relations[0]],
            states,
            red,
            tuple(_known(variant, rule) for rule in component.rules for variant in deletions(rule, states, stored=True)),
            tuple(seeking(rule, states, component.best.get(rule.head.relation)) for rule in component.rules),
            tuple(variant for rule in component.rules for variant in insertions(rule, states)),
        )

    @property
    def sections(self) -> list[Section]:
        """The rules to print, in an order in which they could be evaluated."""
        declarations = dict(self.needed.relations)
        sections: list[Section] = []
        for part in self.components:
            if isinstance(part, GroupPlan):
                sections += self._grouped(part)
                continue
            if part.strategy is COUNTED:
                sections += self._counted(part)
                continue
            for name, states in part.states.items():
                made = [
                    *states.names,
                    *([part.red[name], self.naming(name, "plus"), self.naming(name, "minus")] if name in part.red else []),
                ]
                declarations |= {other: replace(self.needed.relations[name], relation=other) for other in made}
            title = f"{part.component} ({part.strategy.name})"
            if part.component.best:
                sections += self._improved(part, title, declarations)
                continue
            lost = [*self._new_states(part, part.deletions), *(variant.rule for variant in part.deletions)]
            sections.append(section(f"{title}: what may be lost", lost, declarations))
            sections.append(section(f"{title}: what has a proof all the same, and what is new", self._derivations(part), declarations))
            sections.append(section(f"{title}: net changes", self._net(part), declarations))
        return [*sections, *(self.external.sections if self.external else ())]

    def _improved(self, part: ComponentPlan, title: str, declarations: dict[str, Declaration]) -> Iterator[Section]:
        """What may be lost; and what is the best, beginning with what is left."""
        lost = [*self._new_states(part, part.deletions), *(variant.rule for variant in part.deletions)]
        yield section(f"{title}: what may be lost", lost, declarations)
        new, net = list[Rule](), list[Rule]()
        for name in part.component.relations:
            states, declaration = part.states[name], self.needed.relations[name]
            written = [rule for rule in self.stored.rules if rule.head.relation == name and not is_fact(rule)]
            old, now, gone = (row(declaration, other) for other in (name, states.new, states.lost))
            new.append(written[0].derive(now, body=(old, Negation(gone))))
            new += (in_new(rule, part.states) for rule in written)
            net.append(written[0].derive(row(declaration, self.naming(name, "plus")), body=(now, Negation(old))))
            net.append(written[0].derive(row(declaration, self.naming(name, "minus")), body=(old, Negation(now))))
        read = {atom.relation for rule in new for atom, _ in atoms(rule.body)}
        below = [name for name, states in part.states.items() if states.new in read and name not in part.red]
        states_of = (rule for name in below for rule in new_state(part.component.rules[0], self.needed, name, part.states))
        yield section(f"{title}: the best, beginning with what is left", [*states_of, *new], declarations)
        yield section(f"{title}: net changes", net, declarations)

    def _derivations(self, part: ComponentPlan) -> Iterator[Rule]:
        variants = (*part.rederivations, *part.insertions)
        yield from self._new_states(part, variants)
        yield from (variant.rule for variant in variants)

    def _new_states(self, part: ComponentPlan, variants: Sequence[Variant]) -> Iterator[Rule]:
        """The new states that rules read, as rules: where they are run, the tables have them."""
        read, origin = {atom.relation for variant in variants for atom, _ in atoms(variant.rule.body)}, part.component.rules[0]
        for name, states in part.states.items():
            if states.new in read:
                yield from new_state(origin, self.needed, name, part.states)
                if name in part.red:
                    declaration = self.needed.relations[name]
                    yield origin.derive(row(declaration, states.new), body=(row(declaration, part.red[name]),))

    def _net(self, part: ComponentPlan) -> Iterator[Rule]:
        for name, red in part.red.items():
            declaration, states, origin = self.needed.relations[name], part.states[name], part.component.rules[0]
            plus, minus, lost, gained, back = (
                row(declaration, other)
                for other in (self.naming(name, "plus"), self.naming(name, "minus"), states.lost, states.gained, red)
            )
            yield origin.derive(plus, body=(gained,))
            yield origin.derive(minus, body=(lost, Negation(back)))

    def _counted(self, part: ComponentPlan) -> list[Section]:
        """The changes of bindings, added up."""
        (name,) = part.component.relations
        parts = self.counting.counted[name]
        own = {name, *parts.bindings, parts.each, parts.numbers}
        alone = replace(self.counting.program, rules=tuple(rule for rule in self.counting.program.rules if rule.head.relation in own))
        title = f"{name} (counted): changes of its proofs, added up"
        return [replace(each, title=title) for each in external(alone, (), {name: parts}).sections]

    def _grouped(self, part: GroupPlan) -> list[Section]:
        """The changes of bindings, and what they do to the values of groups."""
        group = part.group
        title = f"{group.aux.relation} (auxiliary): bindings that come and go, and the groups they touch"
        alone = replace(part.program, declarations=(*part.program.declarations, group.aux), rules=(*part.program.rules, group.definition))
        return [replace(each, title=title) for each in external(alone).sections]


def _known(variant: Variant, rule: Rule) -> Variant:
    """The variant for rows that the relation has: what a rule gives may not be the best."""
    own, equalities = flat(rule.head, names(variant.rule, into_aggregates=True))
    return replace(variant, rule=variant.rule.derive(variant.rule.head, body=(*variant.rule.body, *equalities, own)))


def _passed_on(head: Atom, atom: Atom) -> tuple[int, ...]:
    """The places in an atom of the columns of a head that has the atom's variables, all of them; none if it is anything else."""
    columns = [arg.name if isinstance(arg, Variable) else None for arg in atom.args]
    wanted = [arg.name if isinstance(arg, Variable) else None for arg in head.args]
    if None in columns or len({*columns}) < len(columns) or {*wanted} != {*columns}:
        return ()
    return tuple(map(columns.index, wanted))


def _unknown(variant: Variant, rule: Rule) -> Variant:
    """The variant for rows that the relation did not have: what it had and may have lost is rederived instead."""
    return replace(variant, rule=variant.rule.derive(variant.rule.head, body=(*variant.rule.body, Negation(rule.head))))


def plan(
    program: Program, told: Sequence[str], kept: Mapping[str, Strategy] | None = None, grouped: Mapping[str, bool] | None = None
) -> Plan:
    """The plan for some relations of a plain program; of what they need, some is `kept`, and of some the state of groups is.

    What is recursive through `min` or `max` is kept in any case, with what it is derived from: which row is the best is known when all are.
    """
    needed = Plan(program, tuple(told)).plain
    through = improved(needed)
    below = {rule.head.relation for rule in relevant(needed, through).rules} if through else set()
    return Plan(
        program,
        tuple(told),
        dict.fromkeys(sorted(below), MATERIALIZED)
        | {name: strategy for name, strategy in (kept or {}).items() if name in needed.relations},
        {name: own for name, own in (grouped or {}).items() if name in needed.relations},
    )
