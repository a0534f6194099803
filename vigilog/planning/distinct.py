"""Which rules give each row once, so that nobody need look for the same row twice.

Each binding of a rule's variables gives a row. Two bindings give the same row only if the head does not tell them apart: by its own variables, and by what these say of the others, through keys, and
through rows all of whose cells are known.

>>> from vigilog.language.check import check
>>> text = '''
... .decl orders(id: number, customer: number)
... .decl customers(id: number, region: symbol)
... .decl a(id: number, region: symbol)
... a(o, r) :- orders(o, c), customers(c, r).
... .decl b(region: symbol, id: number)
... b(r, c) :- customers(c, r), !orders(_, c).
... '''
>>> one, other = check(text).program.rules
>>> gives_once(one, {}), gives_once(one, {"orders": (0,), "customers": (0,)}), gives_once(other, {})
(False, True, True)
"""

from __future__ import annotations

from collections.abc import Mapping

from vigilog.language.parts import names
from vigilog.language.syntax import Atom, Builtin, Constant, Negation, Rule, Variable, usage

Keys = Mapping[str, tuple[int, ...]]


def gives_once(rule: Rule, keys: Keys) -> bool:
    """Whether a plain rule gives no row twice, over relations with these keys, none of which has a row twice."""
    bound = {arg.name for arg in rule.head.args if isinstance(arg, Variable)}
    left = [literal for literal in rule.body if isinstance(literal, Atom)]
    if any(
        not isinstance(literal, Atom | Negation | Builtin) or (isinstance(literal, Builtin) and usage(literal)) for literal in rule.body
    ):
        return False
    while left:
        told = [atom for atom in left if _is_told(atom, bound, keys)]
        if not told:
            return False
        bound.update(*(names(arg) for atom in told for arg in atom.args if isinstance(arg, Variable)))
        left = [atom for atom in left if atom not in told]
    return True


def _is_told(atom: Atom, bound: set[str], keys: Keys) -> bool:
    """Whether at most one row of an atom fits what is known."""

    def is_told(columns: tuple[int, ...]) -> bool:
        return all(
            isinstance(atom.args[column], Constant) or (names(atom.args[column]) and names(atom.args[column]) <= bound)
            for column in columns
        )

    return is_told(tuple(range(len(atom.args)))) or (atom.relation in keys and is_told(keys[atom.relation]))
