"""Each relation by the algorithm that fits it: Straight Delete where atoms have supports, extended DRed where a recursion is over facts that are not ground.

Relations of one algorithm that depend on each other without others between them are a *part*, and parts come in an order in which each needs only those before it. What a part concludes is stated for those after it, in pieces: what a
relation gains is a new piece, and what it loses is taken from the pieces that had it. So regions and differences are those of the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from vigilog.mediators.atoms import Atoms
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.regions import minus
from vigilog.mediators.sets import Sets
from vigilog.mediators.solver import Solver
from vigilog.mediators.straight import NotGround, Straight
from vigilog.mediators.view import Algorithm, Change, Difference, Fact, Program, Work


def fitting(program: Program, solver: Solver, start: Change, sets: Collection[str] = ()) -> Algorithm:
    """The view of a program, by what fits each of its relations; some are to be kept as sets in any case."""
    loose = {other for name in sets for other in component(program, name)}
    while True:
        try:
            return fitted(program, solver, start, loose)
        except NotGround as reason:
            if not reason.relation:  # there are too many supports
                return Sets(program, solver, start)
            loose |= component(program, reason.relation)


def fitted(program: Program, solver: Solver, start: Change, loose: Collection[str]) -> Algorithm:
    """The view of a program, of which some relations are kept as sets."""
    heads = {clause.head.relation for clause in program.clauses}
    if heads.isdisjoint(loose):
        return Straight(program, solver, start)
    return Sets(program, solver, start) if heads <= set(loose) else Parts(program, solver, start, loose)


def component(program: Program, relation: str) -> set[str]:
    """The relations that depend on one, and it on them."""
    needs: dict[str, set[str]] = {}
    for clause in program.clauses:
        needs.setdefault(clause.head.relation, set()).update(part.relation for part in clause.body)

    def below(name: str) -> set[str]:
        seen: set[str] = set()
        todo = [name]
        while todo:
            new = needs.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    return {relation, *(name for name in below(relation) if relation in below(name))}


@dataclass(frozen=True)
class Part:
    """Some relations, and those that their clauses read."""

    algorithm: Algorithm
    heads: frozenset[str]
    reads: frozenset[str]


class Parts:
    """A view whose relations are kept by two algorithms."""

    name = "straight, dred"

    def __init__(self, program: Program, solver: Solver, start: Change, loose: Collection[str]) -> None:
        self.solver, self.work = solver, Work()
        self.pieces = Atoms()
        self.numbers = 0
        self.parts: list[Part] = []
        self.owner: dict[str, Algorithm] = {}
        for heads in _order(program, [*start.out], loose):
            clauses = tuple(replace(clause, place=place) for place, clause in enumerate(program.of(heads)))
            reads = frozenset(pattern.relation for clause in clauses for pattern in clause.body) - heads
            below = {relation: self._stated(relation, self.region(relation)) for relation in reads & self.owner.keys()}
            kind = Sets if heads <= set(loose) else Straight
            algorithm: Algorithm = kind(Program(clauses), solver, self._own(start, heads, reads, below))
            self.parts.append(Part(algorithm, heads, reads))
            self.owner |= dict.fromkeys(heads, algorithm)
        self.pieces.keep()

    def _own(self, change: Change, heads: frozenset[str], reads: frozenset[str], below: dict[str, dict[Fact, list[Conjunction]]]) -> Change:
        """What a change is for a part: of its own relations, of rows that it reads, and of what the parts before it have concluded."""
        stated = {name: facts for name, facts in change.stated.items() if name in heads or (name in reads and name not in self.owner)}
        return Change(
            stated | {name: facts for name, facts in below.items() if name in reads},
            {name: out for name, out in change.out.items() if name in heads},
        )

    def _stated(self, relation: str, parts: Iterable[Conjunction]) -> dict[Fact, list[Conjunction]]:
        """New pieces of a relation."""
        facts: dict[Fact, list[Conjunction]] = {}
        for part in parts:
            self.numbers += 1
            key = ("piece", self.numbers)
            self.pieces.put(self.pieces.at(relation, key), [part])
            facts[key] = [part]
        return facts

    def _turned(self, relation: str, difference: Difference) -> dict[Fact, list[Conjunction]]:
        """The pieces that are different."""
        lost = list(difference.minus)
        near = {atom.number: atom for part in lost for atom in self.pieces.near(relation, part)}
        facts: dict[Fact, list[Conjunction]] = {}
        for atom in near.values():
            left = minus(atom.parts, lost, self.solver)
            if left != atom.parts:
                self.pieces.put(atom, left)
                facts[atom.key] = left
        return facts | self._stated(relation, difference.plus)

    def change(self, change: Change) -> dict[str, Difference]:
        self.work = Work()
        changes: dict[str, Difference] = {}
        below: dict[str, dict[Fact, list[Conjunction]]] = {}
        for place, part in enumerate(self.parts):
            own = self._own(change, part.heads, part.reads, below)
            if not own.stated and not own.out:
                continue
            differences = {name: difference for name, difference in part.algorithm.change(own).items() if name in part.heads}
            self.work += part.algorithm.work
            changes |= differences
            wanted = {name for later in self.parts[place + 1 :] for name in later.reads}
            below |= {name: self._turned(name, difference) for name, difference in differences.items() if name in wanted}
        return changes

    def region(self, relation: str) -> list[Conjunction]:
        return self.owner[relation].region(relation)

    def near(self, relation: str, part: Conjunction) -> Iterable[Conjunction]:
        return self.owner[relation].near(relation, part)

    def keep(self) -> None:
        self.pieces.keep()
        for part in self.parts:
            part.algorithm.keep()

    def undo(self) -> None:
        self.pieces.undo()
        for part in self.parts:
            part.algorithm.undo()


def _order(program: Program, told: Iterable[str], loose: Collection[str]) -> Iterator[frozenset[str]]:
    """The relations that clauses derive, or that may be told to, part by part."""
    heads = dict.fromkeys([*told, *(clause.head.relation for clause in program.clauses)])
    level = dict.fromkeys(heads, 0)
    moved = True
    while moved:
        moved = False
        for clause in program.clauses:
            name = clause.head.relation
            for pattern in clause.body:
                other = pattern.relation
                if other in level and level[name] < (least := level[other] + ((name in loose) != (other in loose))):
                    level[name], moved = least, True
    for number in range(max(level.values(), default=0) + 1):
        for kept_as_sets in (False, True):
            if some := frozenset(name for name in heads if level[name] == number and (name in loose) == kept_as_sets):
                yield some
