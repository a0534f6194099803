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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from vigilog.language.strata import Component, components
from vigilog.language.syntax import Declaration, Negation, Program, Rule, atoms, is_fact
from vigilog.rewriting.maintenance.counting import Counting, counting
from vigilog.rewriting.maintenance.external import External, external
from vigilog.rewriting.maintenance.rules import Variant, deletions, insertions, new_state, rederivation, row
from vigilog.rewriting.maintenance.states import States
from vigilog.rewriting.maintenance.strategies import COUNTED, Strategy
from vigilog.rewriting.naming import Naming
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
    def reads(self) -> frozenset[str]:
        """What the component reads from below."""
        return frozenset(atom.relation for rule in self.component.rules for atom, _ in atoms(rule.body)) - set(self.component.relations)


@dataclass(frozen=True)
class Plan:
    """`program` is plain; the changes of `told` are wanted; of these, and of what they are derived from, some are `kept`, each by a strategy."""

    program: Program
    told: tuple[str, ...]
    kept: Mapping[str, Strategy] = field(default_factory=dict)

    @cached_property
    def needed(self) -> Program:
        """The program without what neither those who are told nor base relations need, nor what only passes bindings on."""
        derived = {rule.head.relation for rule in self.program.rules}
        unfolded = unfold(self.program, passing(self.program, self.told))
        return relevant(unfolded, [*self.told, *(name for name in self.program.relations if name not in derived)])

    @cached_property
    def naming(self) -> Naming:
        return Naming(self.program.relations)

    @property
    def counted(self) -> frozenset[str]:
        return frozenset(name for name, strategy in self.kept.items() if strategy is COUNTED)

    @cached_property
    def counting(self) -> Counting:
        """The program with the numbers of proofs that are kept beside views."""
        return counting(self.needed, self.counted)

    @property
    def beside(self) -> dict[str, Declaration]:
        """The relations that are kept beside views."""
        numbers = [parts.numbers for parts in self.counting.counted.values()]
        return {name: self.counting.program.relations[name] for name in numbers}

    @cached_property
    def stored(self) -> Program:
        """The rules of what is kept."""
        return replace(self.needed, rules=tuple(rule for rule in self.needed.rules if rule.head.relation in self.kept))

    @cached_property
    def derived(self) -> Program:
        """The rules of what is not kept."""
        return replace(self.needed, rules=tuple(rule for rule in self.needed.rules if rule.head.relation not in self.kept))

    @cached_property
    def external(self) -> External | None:
        """The rules for changes of what is not kept; None if everything is."""
        return external(self.needed, self.kept) if self.derived.rules else None

    @cached_property
    def components(self) -> tuple[ComponentPlan, ...]:
        """What is kept, each component after what it reads."""
        own = {rule.head.relation for rule in self.stored.rules}
        found = []
        for component in components(self.stored):
            rules = tuple(rule for rule in component.rules if not is_fact(rule))
            if rules:
                net = own - set(component.relations)
                found.append(self._component(Component(component.relations, rules, component.recursive), net))
        return tuple(found)

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

    @property
    def sections(self) -> list[Section]:
        """The rules to print, in an order in which they could be evaluated."""
        declarations = dict(self.program.relations)
        found: list[Section] = []
        for part in self.components:
            if part.strategy is COUNTED:
                found += self._counted(part)
                continue
            for name, states in part.states.items():
                made = [
                    *states.names,
                    *([part.red[name], self.naming(name, "plus"), self.naming(name, "minus")] if name in part.red else []),
                ]
                declarations |= {other: replace(self.program.relations[name], relation=other) for other in made}
            title = f"{part.component} ({part.strategy.name})"
            lost = [*self._new_states(part, part.deletions), *(variant.rule for variant in part.deletions)]
            found.append(section(f"{title}: what may be lost", lost, declarations))
            found.append(section(f"{title}: what has a proof all the same, and what is new", self._derivations(part), declarations))
            found.append(section(f"{title}: net changes", self._net(part), declarations))
        return [*found, *(self.external.sections if self.external else ())]

    def _derivations(self, part: ComponentPlan) -> Iterator[Rule]:
        variants = (*part.rederivations, *part.insertions)
        yield from self._new_states(part, variants)
        yield from (variant.rule for variant in variants)

    def _new_states(self, part: ComponentPlan, variants: Sequence[Variant]) -> Iterator[Rule]:
        """The new states that rules read, as rules: where they are run, the tables have them."""
        read, origin = {atom.relation for variant in variants for atom, _ in atoms(variant.rule.body)}, part.component.rules[0]
        for name, states in part.states.items():
            if states.new in read:
                yield from new_state(origin, self.program, name, part.states)
                if name in part.red:
                    declaration = self.program.relations[name]
                    yield origin.derive(row(declaration, states.new), body=(row(declaration, part.red[name]),))

    def _net(self, part: ComponentPlan) -> Iterator[Rule]:
        for name, red in part.red.items():
            declaration, states, origin = self.program.relations[name], part.states[name], part.component.rules[0]
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
        return [replace(found, title=title) for found in external(alone, (), {name: parts}).sections]


def _unknown(variant: Variant, rule: Rule) -> Variant:
    """The variant for rows that the relation did not have: what it had and may have lost is rederived instead."""
    return replace(variant, rule=variant.rule.derive(variant.rule.head, body=(*variant.rule.body, Negation(rule.head))))


def plan(program: Program, told: Sequence[str], kept: Mapping[str, Strategy] | None = None) -> Plan:
    """The plan for some relations of a plain program; of what they need, some is `kept`."""
    needed = Plan(program, tuple(told)).needed.relations
    return Plan(program, tuple(told), {name: strategy for name, strategy in (kept or {}).items() if name in needed})
