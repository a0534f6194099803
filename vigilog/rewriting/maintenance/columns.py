"""Which relations a change concerns, column by column.

A rule reads of a relation only the columns that it compares, computes with or passes on. If as many rows come as go, and what they have in these columns is the same, then the rule finds before and after
what it found: each binding through a row that goes is one through a row that comes. An aggregate counts them alike, too, for it ranges over rows. So a customer who gets another name changes no sum of
what customers of a region have bought.

>>> from vigilog.language.check import check
>>> text = '''
... .decl customers(id: number, name: symbol, region: symbol)
... .decl orders(id: number, customer: number)
... .decl sold(region: symbol, n: number)
... sold(r, n) :- customers(_, _, r), n = count : { orders(_, c), customers(c, _, r) }.
... .decl buyer(name: symbol)
... buyer(x) :- customers(c, x, _), orders(_, c).
... .decl most(n: number)
... most(m) :- m = max n : { sold(_, n) }.
... '''
>>> read = Reading(check(text).program)
>>> sorted(read.concerned({"customers": Delta(plus=frozenset({(1, "Ann", "north")}), minus=frozenset({(1, "Anne", "north")}))}))
['buyer']
>>> sorted(read.concerned({"orders": Delta(plus=frozenset({(1, 1)}))}))
['buyer', 'most', 'sold']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter

from vigilog.core.delta import Delta
from vigilog.language.parts import atoms, variables
from vigilog.language.program import Program
from vigilog.language.syntax import Atom, Variable, Wildcard

Columns = tuple[int, ...]


class Reading:
    """What the rules of each derived relation of a plain program read of others: for each relation the columns that its atoms use."""

    def __init__(self, program: Program) -> None:
        self.derived = frozenset(rule.head.relation for rule in program.rules)
        self.readers: dict[str, set[str]] = {}  # of each relation
        self.uses: dict[str, dict[Columns, set[str]]] = {}  # of each base relation, and who uses it so
        for rule in program.rules:
            often = Counter(v.name for literal in (rule.head, *rule.body) for v in variables(literal, into_aggregates=True))
            for atom, _ in atoms(rule.body):
                self.readers.setdefault(atom.relation, set()).add(rule.head.relation)
                self.uses.setdefault(atom.relation, {}).setdefault(_used(atom, often), set()).add(rule.head.relation)
        self.narrow = frozenset(  # relations not all of whose columns are used by everybody
            name for name, uses in self.uses.items() if any(columns != tuple(range(len(columns))) for columns in uses)
        )

    def spares(self, changes: Mapping[str, Delta]) -> bool:
        """Whether some reader of what changes may not be concerned: otherwise there is nothing to look at."""
        return not self.narrow.isdisjoint(changes) and any(
            name in self.narrow and delta and len(delta.plus) == len(delta.minus) for name, delta in changes.items()
        )

    def concerned(self, changes: Mapping[str, Delta]) -> frozenset[str]:
        """The derived relations that changes of base relations may change."""
        open_: list[str] = []
        for name, delta in changes.items():
            for columns, readers in self.uses.get(name, {}).items():
                if delta and not _same(delta, columns):
                    open_ += readers
        relations: set[str] = set()
        while open_:
            name = open_.pop()
            if name not in relations:
                relations.add(name)
                open_ += self.readers.get(name, ())
        return frozenset(relations)

    def touched(self, relations: Iterable[str], concerned: frozenset[str]) -> frozenset[str]:
        """Those of some derived relations that are concerned, or of which the program does not say how they are derived."""
        return frozenset(name for name in relations if name in concerned or name not in self.derived)


def _used(atom: Atom, often: Mapping[str, int]) -> Columns:
    """The columns of an atom that say something: not `_`, nor variables that occur nowhere else."""
    return tuple(
        column
        for column, arg in enumerate(atom.args)
        if not isinstance(arg, Wildcard) and not (isinstance(arg, Variable) and often[arg.name] == 1)
    )


def _same(delta: Delta, columns: Columns) -> bool:
    """Whether what comes has in some columns what goes has there, as often."""
    if len(delta.plus) != len(delta.minus):
        return False
    if not columns or not delta:
        return True
    part = itemgetter(*columns)
    if part(next(iter(delta.plus))) not in map(part, delta.minus):
        return False
    return Counter(map(part, delta.plus)) == Counter(map(part, delta.minus))
