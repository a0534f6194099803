"""Literals that follow from others (homomorphisms between conjunctions: Chandra & Merlin 1977).

A conjunction holds wherever another does if its atoms become some of the other's by a choice of values for its own variables:

>>> from vigilog.language.parser import parse
>>> one, other = (parse(f"p(x) :- {body}.").rules[0].body for body in ("a(x, y), b(y, _)", "b(z, 1), a(x, z), c(z)"))
>>> maps(one, {"y"}, other), maps(other, {"z"}, one)
(True, False)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import assert_never

from vigilog.language.parts import names
from vigilog.language.syntax import Aggregate, Atom, Constant, Functor, Literal, Term, Variable, Wildcard


def maps(one: Sequence[Literal], own: Collection[str], other: Sequence[Literal]) -> bool:
    """Whether a conjunction of atoms, some of whose variables are its own, follows from another."""
    if not all(isinstance(literal, Atom) for literal in one):
        return False
    into = [literal for literal in other if isinstance(literal, Atom)]
    return _maps([literal for literal in one if isinstance(literal, Atom)], own, into, {})


def _maps(atoms: Sequence[Atom], own: Collection[str], into: Sequence[Atom], given: dict[str, object]) -> bool:
    if not atoms:
        return True
    first, *rest = atoms
    for candidate in into:
        if candidate.relation == first.relation:
            extended = _extended(first.args, own, candidate.args, given)
            if extended is not None and _maps(rest, own, into, extended):
                return True
    return False


def _extended(args: Iterable[Term], own: Collection[str], into: Iterable[Term], given: dict[str, object]) -> dict[str, object] | None:
    bindings = dict(given)
    for arg, term in zip(args, into, strict=True):
        value = _value(term)
        if isinstance(arg, Wildcard):
            continue
        if isinstance(arg, Variable) and arg.name in own:
            if bindings.setdefault(arg.name, value) != value:
                return None
        elif _value(arg) != value:
            return None
    return bindings


def _value(term: Term) -> object:
    """What tells a term from others: a variable its name, a `_` itself."""
    match term:
        case Variable():
            return ("variable", term.name)
        case Wildcard():
            return ("any", id(term))
        case Constant() | Functor() | Aggregate():
            return term
        case _:
            assert_never(term)


def joined(atoms: Sequence[Atom], own: Collection[str]) -> list[list[Atom]]:
    """Atoms in groups that share none of some variables with each other."""
    groups: list[tuple[set[str], list[Atom]]] = []
    for atom in atoms:
        mine = names(atom) & set(own)
        near = [part for part in groups if part[0] & mine]
        far = [part for part in groups if not part[0] & mine]
        groups = [*far, (mine.union(*(part[0] for part in near)), [other for part in near for other in part[1]] + [atom])]
    return [part for _, part in groups]
