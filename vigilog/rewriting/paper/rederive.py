"""Rederivation on demand: maintenance rules that work without the old state of any view.

(Staudt & Jarke 1996, algorithm 2, RoD.) The maintenance rules of `maintain.py` read views in their old state, or in the new one, which is the old one but for some rows. Here they first
ask for what they read: each is cut before such a literal, what is known up to there is a supplementary relation, and a magic rule makes a question of it, which query rules answer
from the old state of the tables (`demand.py`). The changed literal comes first, because it is small.

All that cannot be one program, nor can it run as the paper's algorithm 3 has it: `p_new` would be read while `p_del` still grows. For each stratum it takes three phases:

(a) the rules D with their questions, and the query rules;
(b) now that `p_del` is complete: N, R and I with their questions, the question for what was inserted (M_E1), and the query rules;
(c) E1 and E2.

A negated or aggregated literal is read when its questions are answered. Where that is not clear from the strata of a phase, its sections have ranks (`sections.py`).

>>> from vigilog.language.check import check
>>> text = ".decl e(x: number) .decl q(x: number) .decl p(x: number) q(x) :- e(x). p(x) :- q(x), e(x)."
>>> print("\\n".join(section.heading for section in rederive(check(text).program)[3:]))
stratum 2: p, phase a (what may be lost)
stratum 2: p, phase b (what is rederived or inserted)
stratum 2: p, phase c (net changes)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vigilog.language.parts import atoms
from vigilog.language.program import Program
from vigilog.language.strata import without_improved
from vigilog.language.syntax import Atom, Negation, Rule
from vigilog.rewriting.demand.demand import Demand
from vigilog.rewriting.demand.magic import definitions_of, levels
from vigilog.rewriting.demand.queries import Answers, asked_by
from vigilog.rewriting.maintenance.rules import Variant, new_state
from vigilog.rewriting.naming import Naming
from vigilog.rewriting.paper.maintain import Stratum, declarations_of, strata
from vigilog.rewriting.sections import Section, by_rank, section

PHASES = {"a": "what may be lost", "b": "what is rederived or inserted", "c": "net changes"}


class _Asking(Demand):
    """Demand that says every rule as often as it is made: each phase is to have all its rules."""

    def add(self, rule: Rule) -> None:
        if rule.head not in rule.body:
            self.rules.append(rule)


@dataclass
class _Phases:
    """The rules of a stratum by phase, without query rules."""

    losing: list[Rule] = field(default_factory=list)
    gaining: list[Rule] = field(default_factory=list)
    net: list[Rule] = field(default_factory=list)


def rederive(program: Program) -> tuple[Section, ...]:
    """A plain program's maintenance rules on demand, three phases for each stratum: from the old states and net changes of tables they find the net changes of views."""
    program = without_improved(program)
    naming = Naming(program.relations)
    definitions = definitions_of(program, ())
    demand = _Asking(definitions, naming, factoring=False, through={naming(name, "new"): name for name in definitions})
    parts = [(stratum, _phases(program, stratum, demand)) for stratum in strata(program, naming)]
    answers = demand.finish()
    declarations = {**declarations_of(program, naming), **demand.declarations}
    level = {name: number for relation, number in levels(program).items() for name in (relation, naming(relation, "new"))}
    sections: list[Section] = []
    for stratum, phases in parts:
        a, b, c = (f"{stratum}, phase {letter} ({about})" for letter, about in PHASES.items())
        for title, rules in ((a, phases.losing), (b, phases.gaining)):
            if rules:
                sections += by_rank(title, [*rules, *_query_rules(rules, demand, answers)], declarations, level, naming)
        sections.append(section(c, phases.net, declarations))
    return tuple(sections)


def _phases(program: Program, stratum: Stratum, demand: Demand) -> _Phases:
    phases = _Phases()
    for part in stratum.maintenance:
        for variant in part.deletions:
            phases.losing += _chained(variant, demand)
    phases.losing += _new_states(phases.losing, stratum, program)
    for part in stratum.maintenance:
        phases.gaining += [*part.remaining, *_chained(part.rederivation, demand), *part.rederived]
        for variant in part.insertions:
            phases.gaining += _chained(variant, demand)
        phases.gaining += part.inserted
        phases.gaining += [_idle_check(rule, demand) for rule in part.net[:1]]
        phases.net += part.net
    return phases


def _chained(variant: Variant, demand: Demand) -> list[Rule]:
    """The rule, cut where it must ask, and then what it asks. A rule that is not cut keeps the order of its literals."""
    rule = variant.rule
    rest = [literal for place, literal in enumerate(rule.body) if place != variant.changed]
    before = len(demand.rules)
    demand.chain(rule, rule.head, [rule.body[variant.changed]], rest)
    made = demand.rules[before:]
    own = [rule if set(last.body) == set(rule.body) else last for last in made if last.head == rule.head]
    return own + [other for other in made if other.head != rule.head]


def _new_states(rules: Iterable[Rule], stratum: Stratum, program: Program) -> Iterator[Rule]:
    """N′ and N″ for what rules of the first phase read in its new state already: what an aggregate's changes are joined with."""
    names = {states.new: name for name, states in stratum.states.items()}
    read = dict.fromkeys(names[atom.relation] for rule in rules for atom, _ in atoms(rule.body) if atom.relation in names)
    return (rule for name in read for rule in new_state(stratum.component.rules[0], program, name, stratum.states))


def _idle_check(plus: Rule, demand: Demand) -> Rule:
    """(M_E1): asks whether what was inserted was there before."""
    match plus.body:
        case (inserted, Negation(literal=Atom() as was)):
            return plus.derive(demand.question(was.relation, "b" * len(was.args), was.args), body=(inserted,))
        case _:
            raise AssertionError("E1 is `p_plus :- p_ins, !p`")


def _query_rules(rules: Iterable[Rule], demand: Demand, answers: Answers) -> Iterator[Rule]:
    """(Q): the rules that answer what rules ask, by relation, then by the rule that they come from, then by pattern."""
    asked = set(asked_by(rules, demand, answers))
    keys = [key for key in demand.asked if key in asked]
    for relation in dict.fromkeys(relation for relation, _ in keys):
        for definition in demand.definitions[relation]:
            for key in (key for key in keys if key[0] == relation):
                made = [rule for rule in answers[key] if rule.origin is definition]
                yield from made[-1:] + made[:-1]
