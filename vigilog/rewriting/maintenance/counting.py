"""Proofs that are counted, as rules.

The bindings of a rule's variables are a relation of their own, in which a row *is* a proof. It begins with the columns of the rule's head, so that the proofs of a row are found by it:

>>> from vigilog.language.check import check
>>> from vigilog.language.printer import show_statement
>>> text = ".decl e(x: number, y: number) .decl p(x: number) p(x) :- e(x, y)."
>>> print("\\n".join(show_statement(rule) for rule in counting(check(text).program, ["p"]).program.rules))
p_1(x, y) :- e(x, y).
p(x) :- p_1(x, y).
p_each(c0, 0, n) :- p_1(c0, _), n = count : { p_1(c0, v0) }.
p_proofs(c0, n) :- p_each(c0, _, _), n = sum m : { p_each(c0, i, m) }.

The changes of bindings are found without asking for other proofs (`external.py`). A row is there as long as it has one. (Gupta, Mumick, Subrahmanian 1993. Recursive relations cannot be counted: a row
could support itself.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from vigilog.core.values import NUMBER
from vigilog.language import syntax
from vigilog.language.parts import names, variables
from vigilog.language.program import Program
from vigilog.rewriting.naming import Naming


@dataclass(frozen=True)
class Bindings:
    """The relation of a rule's bindings, the rule that gives them, and the rule from them to the rows they prove."""

    declaration: syntax.Declaration
    rule: syntax.Rule
    head: syntax.Rule


@dataclass(frozen=True)
class Counted:
    """What belongs to a relation whose proofs are counted: the relations of its rules' bindings, and its rows with the number of proofs by each rule and by all."""

    bindings: tuple[str, ...]
    each: str
    numbers: str


@dataclass(frozen=True)
class Counting:
    """A program in which the proofs of some relations are counted."""

    program: Program
    counted: Mapping[str, Counted]


def counting(program: Program, relations: Collection[str]) -> Counting:
    """The plain program with the numbers of proofs of some relations that are not recursive."""
    naming = Naming(program.relations)
    counted: dict[str, Counted] = {}
    declarations: list[syntax.Declaration] = []
    rules = [rule for rule in program.rules if rule.head.relation not in relations]
    for name in sorted(relations):
        parts = list(bindings((rule for rule in program.rules if rule.head.relation == name), naming))
        counted[name] = own = Counted(tuple(part.declaration.relation for part in parts), naming(name, "each"), naming(name, "proofs"))
        tally = Tally(program.relations[name], own.each, own.numbers)
        declarations += [*(part.declaration for part in parts), *tally.declarations]
        rules += [rule for part in parts for rule in (part.rule, part.head)]
        rules += [tally.part(part.rule, part.declaration, number) for number, part in enumerate(parts)]
        rules.append(tally.total(parts[0].rule))
    return Counting(replace(program, declarations=(*program.declarations, *declarations), rules=tuple(rules)), counted)


def bindings(rules: Iterable[syntax.Rule], naming: Naming) -> Iterator[Bindings]:
    """The bindings of each of some rules, as relations with new names."""
    for rule in rules:
        fresh = (name for name in (f"h{number}" for number in count()) if name not in names(rule, into_aggregates=True))
        args = tuple(arg if isinstance(arg, syntax.Variable) else syntax.Variable(next(fresh), arg.type) for arg in rule.head.args)
        equal = tuple(syntax.Builtin("=", (own, arg)) for own, arg in zip(args, rule.head.args, strict=True) if own != arg)
        others = {variable: None for literal in rule.body for variable in variables(literal) if variable not in args}
        shown = syntax.Atom(naming.fresh(rule.head.relation), (*args, *others))
        columns = tuple(syntax.Attribute(f"c{place}", str(arg.type), arg.type) for place, arg in enumerate(shown.args))
        row = replace(rule.head, args=args)
        yield Bindings(
            syntax.Declaration(shown.relation, columns),
            rule.derive(shown, body=(*rule.body, *equal)),
            rule.derive(row, body=(shown,)),
        )


class Tally:
    """Adds up, for each row of a relation, how many rows of others begin with it: `each` has the number for each of these, `total` the sum."""

    def __init__(self, declaration: syntax.Declaration, each: str, total: str) -> None:
        numbers = [syntax.Attribute(f"n{place}", str(NUMBER), NUMBER) for place in range(2)]
        attributes = tuple(replace(attribute, name=f"c{place}") for place, attribute in enumerate(declaration.attributes))
        self.declarations = syntax.Declaration(each, (*attributes, *numbers)), syntax.Declaration(total, (*attributes, numbers[0]))
        self.columns = tuple(syntax.Variable(attribute.name, attribute.type) for attribute in attributes)
        self.each, self.sum, self.amount = each, total, syntax.Variable("n", NUMBER)

    def part(self, origin: syntax.Rule, counted: syntax.Declaration, number: int, *, lost: bool = False) -> syntax.Rule:
        """The rule that counts the rows of one relation; what is lost counts negative."""
        rest = counted.attributes[len(self.columns) :]
        some = syntax.Atom(counted.relation, (*self.columns, *(syntax.Wildcard(attribute.type) for attribute in rest)))
        every = syntax.Atom(
            counted.relation, (*self.columns, *(syntax.Variable(f"v{place}", attribute.type) for place, attribute in enumerate(rest)))
        )
        value: syntax.Term = syntax.Functor("neg", (self.amount,), NUMBER) if lost else self.amount
        head = syntax.Atom(self.each, (*self.columns, syntax.Constant(number, NUMBER), value))
        return origin.derive(head, body=(some, syntax.Builtin("=", (self.amount, syntax.Aggregate("count", None, (every,), NUMBER)))))

    def total(self, origin: syntax.Rule, *conditions: syntax.Literal) -> syntax.Rule:
        """The rule that adds them up."""
        which, number = (syntax.Variable(name, NUMBER) for name in ("i", "m"))
        some = syntax.Atom(self.each, (*self.columns, syntax.Wildcard(NUMBER), syntax.Wildcard(NUMBER)))
        total = syntax.Aggregate("sum", number, (syntax.Atom(self.each, (*self.columns, which, number)),), NUMBER)
        return origin.derive(
            syntax.Atom(self.sum, (*self.columns, self.amount)), body=(some, syntax.Builtin("=", (self.amount, total)), *conditions)
        )
