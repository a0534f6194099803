"""In which order the rows of a large relation are written, so that few of them are read where few are asked for.

They are sorted by the relation's key, by which changes find rows, or else by the column by which most rules ask. Parquet says of each of its parts what is the least and the greatest value in it; of the other columns by
which rules ask, it has a filter for each part.

>>> from vigilog.language.check import check
>>> text = '''
... .decl orders(id: number, customer: number, day: number)
... .key orders(id)
... .decl customers(id: number, region: symbol)
... .decl a(o: number, r: symbol)
... a(o, r) :- orders(o, c, _), customers(c, r).
... .decl b(r: symbol)
... b(r) :- customers(c, r), !orders(_, c, _).
... '''
>>> program = check(text).program
>>> order_of_rows(program, "orders", (0,))
RowOrder(columns=(0,), filtered=(1,))
>>> order_of_rows(program, "customers", ())
RowOrder(columns=(0,), filtered=())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from vigilog.core.values import Type
from vigilog.language.parts import atoms, names
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Constant, Rule, Variable
from vigilog.spark.snapshots import RowOrder

ORDERED = ("number", "symbol", "date")  # kinds whose order is the same in Parquet


def order_of_rows(program: Program, relation: str, key: Sequence[int]) -> RowOrder:
    """How the rows of a base relation with some key, or none, are written for the rules of a program."""
    types = program.relations[relation].types
    asked = Counter(column for rule in program.rules for column in _asked(rule, relation))
    often = [column for column, _ in sorted(asked.items(), key=lambda each: (-each[1], each[0])) if _is_ordered(types[column])]
    columns = tuple(key) if key and all(_is_ordered(types[column]) for column in key) else tuple(often[:1])
    return RowOrder(columns, tuple(column for column in often if column not in columns[:1]))


def _is_ordered(type_: Type) -> bool:
    return type_.kind in ORDERED


def _asked(rule: Rule, relation: str) -> list[int]:
    """The columns of a relation's atoms in a rule whose values other literals say, too."""
    body = [atom for atom, _ in atoms(rule.body)]
    often = Counter(name for atom in body for name in _names(atom))
    return [
        column
        for atom in body
        if atom.relation == relation
        for column, arg in enumerate(atom.args)
        if isinstance(arg, Constant) or (isinstance(arg, Variable) and often[arg.name] > 1)
    ]


def _names(atom: Atom) -> set[str]:
    return {name for arg in atom.args for name in names(arg)}
