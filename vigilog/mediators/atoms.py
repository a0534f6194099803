"""Constrained atoms and where they are found.

An atom is a region of its relation, with the support that gave it: a clause and the atoms of its body, or what stated it (a row, an update). One support gives one atom (Lemma 1), even if another implies it.
Atoms are found by number, by support, by what is built on them, and by the values of columns that have one: so a join starts at what is known, and a change looks at what it can concern.

A journal remembers what each atom was before a transaction, so that all of it can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vigilog.core.runs import Place
from vigilog.mediators.conjunction import Conjunction

Key = tuple[object, ...]  # what tells a support: a clause and the numbers of atoms, or what stated it


NOBODY: set[int] = set()  # nothing is ever added to it


@dataclass(eq=False, slots=True)
class Atom:
    """`parts` is its region; no parts, and it is not there. It `changed` at a time of the atoms' clock, and was `computed` from those of its body at another."""

    number: int
    relation: str
    key: Key
    body: tuple[int, ...] = ()
    clause: int = -1  # among those of the program, if it is derived
    depth: int = 0
    parts: list[Conjunction] = field(default_factory=list)
    above: set[int] = field(default_factory=lambda: NOBODY)  # the atoms in whose supports this one stands
    changed: int = 0
    computed: int = 0


class Atoms:
    """All atoms of a program."""

    def __init__(self) -> None:
        self.by_number: dict[int, Atom] = {}
        self.by_key: dict[Key, int] = {}
        self.of: dict[str, dict[int, None]] = {}
        self.journal: dict[int, tuple[Atom, list[Conjunction]]] = {}
        self._places: dict[tuple[str, str, Place], dict[int, None]] = {}
        self._loose: dict[tuple[str, str], dict[int, None]] = {}
        self._next = self.clock = 0

    def at(self, relation: str, key: Key, body: tuple[int, ...] = (), clause: int = -1) -> Atom:
        """The atom with a support, which is made if there is none."""
        if (number := self.by_key.get(key)) is not None:
            return self.by_number[number]
        self._next += 1
        depth = 1 + max((self.by_number[part].depth for part in body), default=0)
        atom = Atom(self._next, relation, key, body, clause, depth)
        self.by_number[atom.number], self.by_key[key] = atom, atom.number
        self.of.setdefault(relation, {})[atom.number] = None
        for part in body:
            below = self.by_number[part]
            below.above = set() if below.above is NOBODY else below.above
            below.above.add(atom.number)
        self.journal.setdefault(atom.number, (atom, []))
        return atom

    def put(self, atom: Atom, parts: list[Conjunction]) -> None:
        """Gives an atom its region."""
        self.journal.setdefault(atom.number, (atom, atom.parts))
        self._index(atom, add=False)
        atom.parts = parts
        self._index(atom, add=True)
        self.clock += 1
        atom.changed = self.clock

    def _index(self, atom: Atom, *, add: bool) -> None:
        for part in atom.parts:
            for column, runs in part.runs.items():
                place = runs.single
                numbers: dict[int, None] = (
                    self._loose.setdefault((atom.relation, column), {})
                    if place is None
                    else self._places.setdefault((atom.relation, column, place), {})
                )
                if add:
                    numbers[atom.number] = None
                else:
                    numbers.pop(atom.number, None)

    def near(self, relation: str, part: Conjunction, names: dict[str, str] | None = None) -> Iterator[Atom]:
        """The atoms of a relation that may have instances in common with a conjunction; `names` are those of columns in it, if they are others."""
        best: tuple[int, list[Iterable[int]]] | None = None
        for column in part.runs if names is None else names:
            runs = part.runs.get(column if names is None else names[column])
            if runs is not None and (place := runs.single) is not None:
                exact = self._places.get((relation, column, place), {})
                loose = self._loose.get((relation, column), {})
                size = len(exact) + len(loose)
                if best is None or size < best[0]:
                    best = size, [exact, loose]
        numbers = dict.fromkeys(number for some in best[1] for number in some) if best else self.of.get(relation, {})
        for number in list(numbers):
            if self.by_number[number].parts:
                yield self.by_number[number]

    def region(self, relation: str) -> list[Conjunction]:
        return [part for number in self.of.get(relation, ()) for part in self.by_number[number].parts]

    def before(self, atom: Atom) -> list[Conjunction]:
        """The region that an atom had before this transaction."""
        return self.journal[atom.number][1] if atom.number in self.journal else atom.parts

    # -- the life of a transaction

    def keep(self) -> None:
        """What changed stays; atoms that are empty, and those built on them, are forgotten."""
        for number, (atom, _) in list(self.journal.items()):
            if not atom.parts and number in self.by_number:
                self._forget(atom)
        self.journal.clear()

    def undo(self) -> None:
        """Everything is as before the transaction."""
        for atom, parts in list(self.journal.values()):
            self._index(atom, add=False)
            atom.parts = parts
            self._index(atom, add=True)
        self.keep()

    def _forget(self, atom: Atom) -> None:
        if atom.above and any(self.by_number[number].parts for number in atom.above if number in self.by_number):
            return
        for number in list(atom.above):
            if number in self.by_number:
                self._forget(self.by_number[number])
        del self.by_number[atom.number], self.by_key[atom.key], self.of[atom.relation][atom.number]
        for part in atom.body:
            if part in self.by_number:
                self.by_number[part].above.discard(atom.number)
