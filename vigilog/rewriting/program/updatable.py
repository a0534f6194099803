"""Updates of views whose rows are ground: for each row the latest update decides; where there is none, the rules do.

Beside an updatable relation p there are three relations that transactions change, and no rule: the list of its updates, each with its transaction, the rows that the latest put in (`p_in`), and those that the latest took out (`p_out`).

>>> from vigilog.language.parser import parse
>>> from vigilog.language.printer import show
>>> program, told = updatable(parse(".decl b(x: number) .decl p(x: number) updatable p(x) :- b(x)."))
>>> print(show(program))
.decl b(x: number)
.decl p(x: number) updatable
.decl p_updates(id: number, tx: number, insert: boolean, x: number)
.decl p_in(x: number)
.decl p_out(x: number)
p(x) :- b(x), !p_out(x).
p(x) :- p_in(x).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vigilog.core.values import BOOLEAN, NUMBER
from vigilog.language.parts import is_fact
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Attribute, Negation, Rule, Variable
from vigilog.rewriting.naming import Naming

UPDATE_COLUMNS = 3  # columns of a list of updates that come before what is told: id, transaction, insert


@dataclass(frozen=True)
class UpdateRelations:
    """The relations beside an updatable one."""

    updates: str
    inside: str
    outside: str


def updatable(program: Program) -> tuple[Program, dict[str, UpdateRelations]]:
    """The program whose updatable relations obey their updates; and for each the relations beside it. One that no rule derives is a base relation, and told as such."""
    derived = {head.relation for rule in program.rules if not is_fact(rule) for head in rule.heads}
    wanted = [name for name in program.relations if name in program.updatable and name in derived]
    if not wanted:
        return program, {}
    names = Naming(program.relations)
    told = {name: UpdateRelations(names(name, "updates"), names(name, "in"), names(name, "out")) for name in wanted}
    declarations = list(program.declarations)
    rules = [limited for rule in program.rules for limited in _limited(rule, told)]
    for name, beside in told.items():
        declaration = program.relations[name]
        listed = (
            Attribute(_free("id", declaration.columns), "number", NUMBER),
            Attribute(_free("tx", declaration.columns), "number", NUMBER),
            Attribute(_free("insert", declaration.columns), "boolean", BOOLEAN),
        )
        declarations.append(replace(declaration, relation=beside.updates, attributes=(*listed, *declaration.attributes), qualifiers=()))
        declarations += [replace(declaration, relation=one, qualifiers=()) for one in (beside.inside, beside.outside)]
        columns = tuple(Variable(attribute.name, attribute.type) for attribute in declaration.attributes)
        rules.append(Rule((Atom(name, columns),), (Atom(beside.inside, columns),), declaration.span))
    return replace(program, declarations=tuple(declarations), rules=tuple(rules)), told


def _limited(rule: Rule, told: dict[str, UpdateRelations]) -> list[Rule]:
    """The rule, for each updatable head by itself, deriving nothing that is out. A fact is one, too."""
    if not any(head.relation in told for head in rule.heads):
        return [rule]
    limited = []
    for head in rule.heads:
        out = (Negation(Atom(told[head.relation].outside, head.args)),) if head.relation in told else ()
        limited.append(rule.derive(head, body=(*rule.body, *out)))
    return limited


def _free(name: str, taken: tuple[str, ...]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)
