"""Maintenance rules: exact changes of views whose old state is known, as ordinary rules.

(Staudt & Jarke 1996, algorithm 1; negation as in section 4.2.) For a rule `p :- r_1, …, r_n`, with `r` for the old state and `r_new` for the new one,

* (D) `p_del` are rows that lost a proof: one literal is among what was lost, the others held before;
* (R) `p_red` are those of them that have a proof in the new state;
* (I) `p_ins` are rows with a new proof: one literal is among what was gained, the others hold now;
* (N) `p_new` is what was not deleted, what was rederived and what was inserted;
* (E) `p_plus` is what was inserted and was not there, `p_minus` what was deleted and did not come back.

Relations that depend on each other are one stratum and one section. What it reads from below, tables and views alike, is in its new state by the rules N′ and N″, and changed by its
net change: `r_del` and `r_ins` of a table, which are given, `r_minus` and `r_plus` of a view, which the section of its stratum found.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = ".decl e(x: number) .decl d(x: number) .decl p(x: number) p(x) :- e(x), !d(x)."
>>> [stratum] = maintain(check(text).program)
>>> print("\\n".join(show_statement(rule) for rule in stratum.program.rules if rule.head.relation in ("p_del", "p_red", "p_ins")))
p_del(x) :- e_del(x), !d(x).
p_del(x) :- e(x), d_ins(x).
p_red(x) :- p_del(x), e_new(x), !d_new(x).
p_ins(x) :- e_ins(x), !d_new(x).
p_ins(x) :- e_new(x), d_del(x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.strata import Component, components, without_improved
from vigilog.language.syntax import Atom, Declaration, Negation, Rule
from vigilog.rewriting.maintenance.rules import Variant, deletions, insertions, new_state, rederivation, row
from vigilog.rewriting.maintenance.states import States
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.sections import Section, section


@dataclass(frozen=True)
class RuleMaintenance:
    """What algorithm 1 makes of one rule. What is the same for several rules of a stratum stands with the first of them."""

    deletions: tuple[Variant, ...]  # D
    remaining: tuple[Rule, ...]  # N1, N′
    rederivation: Variant  # R
    rederived: tuple[Rule, ...]  # N2
    insertions: tuple[Variant, ...]  # I
    inserted: tuple[Rule, ...]  # N3, N″
    net: tuple[Rule, ...]  # E1, E2

    @property
    def rules(self) -> Iterator[Rule]:
        """All of them, in the order of the paper's example 1."""
        yield from (variant.rule for variant in self.deletions)
        yield from (*self.remaining, self.rederivation.rule, *self.rederived)
        yield from (variant.rule for variant in self.insertions)
        yield from (*self.inserted, *self.net)


@dataclass(frozen=True)
class Stratum:
    """Relations that depend on each other, what all relations are called that they may read, and the maintenance of each of their rules."""

    number: int
    component: Component
    states: Mapping[str, States]
    maintenance: tuple[RuleMaintenance, ...]

    def __str__(self) -> str:
        return f"stratum {self.number}: {self.component}"


def maintain(program: Program) -> tuple[Section, ...]:
    """A plain program's maintenance rules, a section for each stratum: from the old states and the net changes of tables they find the net changes of views."""
    program = without_improved(program)
    naming = Naming(program.relations)
    declarations = declarations_of(program, naming)
    return tuple(
        section(str(stratum), (rule for part in stratum.maintenance for rule in part.rules), declarations)
        for stratum in strata(program, naming)
    )


def strata(program: Program, naming: Naming) -> tuple[Stratum, ...]:
    """Algorithm 1 for each stratum, from what is below to what is above."""
    derived = {rule.head.relation for rule in program.rules}
    ordered = []
    for number, component in enumerate(components(program), start=1):
        net = derived - set(component.relations)
        states = {
            name: States(
                naming(name, "new"), naming(name, "minus" if name in net else "del"), naming(name, "plus" if name in net else "ins")
            )
            for name in program.relations
        }
        first: set[str] = set()
        parts = tuple(_maintenance(rule, program, component, states, naming, first) for rule in component.rules)
        ordered.append(Stratum(number, component, states, parts))
    return tuple(ordered)


def declarations_of(program: Program, naming: Naming) -> dict[str, Declaration]:
    """The program's declarations, and those of its relations' states and changes."""
    derived = {rule.head.relation for rule in program.rules}
    declarations: dict[str, Declaration] = {}
    for name, declaration in program.relations.items():
        kinds = ("del", "new", "red", "ins", "plus", "minus") if name in derived else ("del", "ins", "new")
        declarations[name] = declaration
        declarations |= {naming(name, kind): replace(declaration, relation=naming(name, kind)) for kind in kinds}
    return declarations


def _maintenance(
    rule: Rule, program: Program, component: Component, states: Mapping[str, States], naming: Naming, done: set[str]
) -> RuleMaintenance:
    """Algorithm 1 for a rule; `done` are the relations for which an earlier rule of the stratum has what is the same for this one."""
    name = rule.head.relation
    own = name not in done
    below = [other for other in dict.fromkeys(atom.relation for atom, _ in atoms(rule.body)) if other not in {*done, *component.relations}]
    done |= {name, *below}

    old, new, lost, gained = _rows(program, name, name, states[name].new, states[name].lost, states[name].gained)
    back, plus, minus = _rows(program, name, *(naming(name, kind) for kind in ("red", "plus", "minus")))
    remaining = [rule.derive(new, body=(old, Negation(lost)))] if own else []
    inserted = [rule.derive(new, body=(gained,))] if own else []
    for other in below:
        first, second = new_state(rule, program, other, states)
        remaining.append(first)
        inserted.append(second)
    net = (rule.derive(plus, body=(gained, Negation(old))), rule.derive(minus, body=(lost, Negation(gained), Negation(back))))
    return RuleMaintenance(
        tuple(deletions(rule, states)),
        tuple(remaining),
        rederivation(rule, states, naming(name, "red")),
        (rule.derive(new, body=(back,)),) if own else (),
        tuple(insertions(rule, states)),
        tuple(inserted),
        net if own else (),
    )


def _rows(program: Program, name: str, *relations: str) -> Iterator[Atom]:
    return (row(program.relations[name], relation) for relation in relations)
