"""Lineage: the rows of tables that a program on demand rests on.

For each table there is a relation beside it that holds the rows which rules have read: those that an instance of a rule joins, and those of what it negates or aggregates, for the bindings that come so far.
Over these rows alone the program derives exactly what it derives over whole tables; so they are all that it takes to prove an answer elsewhere.

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> from vigilog.rewriting.demand.magic import magic
>>> text = '''
... .decl order(n: number, item: symbol)
... .decl gone(item: symbol)
... .decl open(n: number)
... open(n) :- order(n, item), !gone(item).
... '''
>>> program, read = lineage(magic(check(text).program, [("open", "b")]).program, ["order", "gone"])
>>> print("\\n".join(show_statement(rule) for rule in program.rules))
open(n) :- m_open_b(n), order(n, item), !gone(item).
read_order(n, item) :- m_open_b(n), order(n, item), !gone(item).
read_gone(item) :- m_open_b(n), order(n, item), gone(item).
>>> read
{'order': 'read_order', 'gone': 'read_gone'}

What fails must fail without the rows that were not read, too. So no two parts of a rule wait for each other: what is negated is read whatever else is negated, and an aggregate whatever is negated or computed by
aggregates after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count

from vigilog.language import syntax
from vigilog.language.parts import names
from vigilog.language.program import Program
from vigilog.language.safety import grounded_by, names_in, needs
from vigilog.rewriting.demand.demand import names_of, needs_of
from vigilog.rewriting.maintenance.touched import ways
from vigilog.rewriting.naming import Naming

Body = tuple[syntax.Literal, ...]


def lineage(program: Program, tables: Collection[str]) -> tuple[Program, dict[str, str]]:
    """A plain program with rules for what it reads of tables; and for each of these the relation that holds it."""
    naming = Naming(program.relations)
    read = {name: naming("read", name) for name in tables if name in program.relations}
    declarations = tuple(replace(program.relations[name], relation=own) for name, own in read.items())
    rules: dict[syntax.Rule, None] = {}
    for rule in program.rules:
        for atom, body in _reads(rule.body, (), names(rule), read.keys()):
            rules.setdefault(_reading(rule, read[atom.relation], atom, body))
    return replace(program, declarations=(*program.declarations, *declarations), rules=(*program.rules, *rules)), read


def _reads(body: Body, around: Body, scope: set[str], tables: Collection[str]) -> Iterator[tuple[syntax.Atom, Body]]:
    """The atoms of tables in a conjunction, each with a body, which has this very atom, that gives the rows it reads."""
    if syntax.Truth(False) in body:
        return
    positive = tuple(literal for literal in body if not _is_negated(literal))
    for literal in body:
        match literal:
            case syntax.Atom() if literal.relation in tables:
                yield literal, (*around, *body)
            case syntax.Negation(literal=syntax.Atom() as atom) if atom.relation in tables:
                yield atom, (*around, *positive, atom)
    later = [literal for literal in body if _aggregate(literal) is not None]
    while later:
        defined = {name for literal in later for name in names(literal)}
        literal = next((each for each in later if not _inside(each, scope) & defined), later[0])
        aggregate = _aggregate(literal)
        assert aggregate is not None
        before = _before(literal, (*around, *positive), later, scope, tables)
        for way in ways(aggregate):
            yield from _reads(way, before, scope | names_in(aggregate), tables)
        later.remove(literal)


def _before(literal: syntax.Literal, literals: Body, later: list[syntax.Literal], scope: set[str], tables: Collection[str]) -> Body:
    """What is known without some aggregates, of which this is the next. A table that is joined by what they give is left out if it can be: it would be read as a whole."""
    given = {name for each in later for name in names(each)}
    earlier = tuple(other for other in literals if not any(other is each for each in later))
    apart = tuple(other for other in earlier if not (isinstance(other, syntax.Atom) and other.relation in tables and names(other) & given))
    return _decided(apart if _inside(literal, scope) <= grounded_by(apart, set(), scope) else earlier, scope)


def _inside(literal: syntax.Literal, scope: set[str]) -> set[str]:
    """The variables that an aggregate needs to have a value, be it the one that is wanted or not."""
    aggregate = _aggregate(literal)
    assert aggregate is not None, "it has one"
    return needs(aggregate, scope)


def _decided(literals: Body, scope: set[str]) -> Body:
    """Those of some literals that can be decided without others."""
    bound = grounded_by(literals, set(), scope)
    decided = tuple(literal for literal in literals if needs_of(literal, scope) <= bound)
    return decided if len(decided) == len(literals) else _decided(decided, scope)


def _aggregate(literal: syntax.Literal) -> syntax.Aggregate | None:
    match literal:
        case syntax.Builtin(args=(_, syntax.Aggregate() as aggregate)):
            return aggregate
        case _:
            return None


def _is_negated(literal: syntax.Literal) -> bool:
    return isinstance(literal, syntax.Negation) and isinstance(literal.literal, syntax.Atom)


def _reading(rule: syntax.Rule, relation: str, atom: syntax.Atom, body: Body) -> syntax.Rule:
    """The rule for the rows that an atom of a body reads, with variables for those columns that it computes or does not name."""
    taken = names(rule, into_aggregates=True) | names_of(body)
    fresh = (name for name in (f"r{number}" for number in count(1)) if name not in taken)
    args = tuple(arg if isinstance(arg, syntax.Variable | syntax.Constant) else syntax.Variable(next(fresh), arg.type) for arg in atom.args)
    computed = [syntax.Builtin("=", (new, old)) for new, old in zip(args, atom.args, strict=True) if isinstance(old, syntax.Functor)]
    named = (replace(atom, args=args) if literal is atom else literal for literal in body)
    return rule.derive(syntax.Atom(relation, args), body=(*named, *computed))
