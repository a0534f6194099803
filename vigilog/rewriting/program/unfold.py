"""Puts the bodies of relations in the place of the atoms that read them.

Relations that are not recursive are unfolded where they are asked to be, by the qualifier `inline`. They keep their rules: whoever asks for them, or reads them under a negation or in an aggregate, finds them as before.

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show_statement
>>> text = ".decl q(x: number, y: number) inline q(x, x + y) :- a(x, y), !b(y). p(y, z) :- q(y, z), q(z, 1)."
>>> print(show_statement(unfold(parse(text)).rules[-1]))
p(y, z) :- a(y, y2), !b(y2), z = y + y2, a(z, y3), !b(y3), 1 = z + y3.

For maintenance (`maintenance/plan.py`) relations are unfolded without being asked where that only saves steps (`passing`): they are read once, and each of their rows is one binding of one rule. A one-row change of a join of
three tables through such a relation takes two thirds of the time then. Where rows stand for several bindings they are not: they may be many fewer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, product

from vigilog.language.parts import atoms, is_fact, names, rename, rename_literal, variables
from vigilog.language.program import Program
from vigilog.language.strata import components
from vigilog.language.syntax import Atom, Builtin, Literal, Rule, Term, Variable, Wildcard

MOST_WAYS = 100  # a rule that would become more rules than that is left as it is


def unfold(program: Program, relations: Collection[str] | None = None) -> Program:
    """The plain program with some relations unfolded; by default those that are declared `inline`."""
    asked = relations if relations is not None else [d.relation for d in program.declarations if "inline" in d.qualifiers]
    if not asked:
        return program
    definitions = {
        component.relations[0]: [*component.rules]
        for component in components(program)
        if not component.recursive and component.relations[0] in asked and not any(map(is_fact, component.rules))
    }
    for name, rules in definitions.items():  # in the order of dependencies: what they read of each other is unfolded first
        definitions[name] = [way for rule in rules for way in _unfolded(rule, definitions)]
    return program.with_rules(
        tuple(way for rule in program.rules for way in (_unfolded(rule, definitions) if rule.head.relation not in definitions else [rule]))
    )


def passing(program: Program, wanted: Collection[str]) -> list[str]:
    """The relations of a plain program, none of them wanted for itself, that only pass on bindings: one rule, whose head says what all its variables are, read by one atom."""
    rules: dict[str, list[Rule]] = {}
    for rule in program.rules:
        rules.setdefault(rule.head.relation, []).append(rule)
    read = Counter(atom.relation for rule in program.rules for atom, _ in atoms(rule.body))
    plainly = Counter(literal.relation for rule in program.rules for literal in rule.body if isinstance(literal, Atom))
    return [
        name
        for name, own in rules.items()
        if name not in wanted and len(own) == 1 and read[name] == plainly[name] == 1 and _says_all(own[0]) and not is_fact(own[0])
    ]


def _says_all(rule: Rule) -> bool:
    """Whether each row of the head is one binding of the body."""
    open_ = any(isinstance(arg, Wildcard) for literal in rule.body if isinstance(literal, Atom) for arg in literal.args)
    return not open_ and names(rule) == {arg.name for arg in rule.head.args if isinstance(arg, Variable)}


def _unfolded(rule: Rule, definitions: Mapping[str, Sequence[Rule]]) -> list[Rule]:
    """The rules that a rule becomes: one for each choice of definitions for its atoms."""
    choices = [definitions.get(literal.relation, ()) if isinstance(literal, Atom) else () for literal in rule.body]
    ways = 1
    for choice in choices:
        ways *= max(len(choice), 1)
    if ways > MOST_WAYS or not any(choices):
        return [rule]
    unfolded = []
    for chosen in product(*(choice or (None,) for choice in choices)):
        taken = names(rule, into_aggregates=True)
        body: list[Literal] = []
        for literal, definition in zip(rule.body, chosen, strict=True):
            if definition is None:
                body.append(literal)
            else:
                assert isinstance(literal, Atom), "only atoms are defined"
                body += _instance(literal, definition, taken)
        unfolded.append(rule.derive(rule.head, body=tuple(body)))
    return unfolded


def _instance(atom: Atom, definition: Rule, taken: set[str]) -> Iterator[Literal]:
    """The body of a definition for the arguments of an atom; its own variables get names that are not taken."""
    own = {
        variable.name: variable for literal in (definition.head, *definition.body) for variable in variables(literal, into_aggregates=True)
    }
    apart: dict[str, Term] = {}
    for name, variable in own.items():
        fresh = next(new for new in chain([name], (f"{name}{number}" for number in count(2))) if new not in taken)
        taken.add(fresh)
        apart[name] = replace(variable, name=fresh)
    given: dict[str, Term] = {}
    equal: list[Literal] = []
    for arg, mine in zip(atom.args, (rename(term, apart) for term in definition.head.args), strict=True):
        if isinstance(mine, Variable) and mine.name not in given and not isinstance(arg, Wildcard):
            given[mine.name] = arg
        elif isinstance(arg, Wildcard) and not isinstance(mine, Variable):
            value = Variable(next(name for name in (f"w{number}" for number in count(1)) if name not in taken), mine.type)
            taken.add(value.name)
            equal.append(Builtin("=", (value, mine)))
        elif not isinstance(arg, Wildcard):
            equal.append(Builtin("=", (arg, mine)))
    for literal in definition.body:
        yield rename_literal(rename_literal(literal, apart), given)
    for literal in equal:
        yield rename_literal(literal, given)
