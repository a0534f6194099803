"""T_P with supports, Straight Delete (Algorithm 2), and insertion (Algorithm 3).

Each way in which clauses and atoms give an atom is an atom of its own. A deletion therefore never looks for another proof: an atom's region is its clause applied to the atoms of its support, less what is out. When these
shrink, it is computed anew, after all positions of its body, and what is passed on is old minus new. Supports are finite and no atom is deeper than what is built on it, so atoms are taken by their depth, each once.

In a recursion a ground atom that stands in its own support proves nothing that it had not without it, so such supports are left out, and the rest are finitely many. For atoms that are not ground that is not so, and
`NotGround` says it: then the view is kept as sets (`sets.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from vigilog.mediators.atoms import Atom, Atoms
from vigilog.mediators.clauses import Clause
from vigilog.mediators.conjunction import Conjunction, meet
from vigilog.mediators.regions import joined, minus, within
from vigilog.mediators.solver import Solver
from vigilog.mediators.view import Change, Difference, Program, Work, recursive

MOST_SUPPORTS = 2_000_000


class NotGround(Exception):
    """A recursion is over atoms that are not ground: of that relation; or there are too many supports."""

    def __init__(self, relation: str = "") -> None:
        super().__init__(relation)
        self.relation = relation


class Straight:
    """A view whose atoms have supports."""

    name = "straight"

    def __init__(self, program: Program, solver: Solver, start: Change) -> None:
        self.program, self.solver = program, solver
        self.atoms, self.work = Atoms(), Work()
        self.out: dict[str, list[Conjunction]] = {}
        self.opened: dict[str, int] = {}  # when what is out changed
        self.recursive = recursive(program)
        self.uses = {clause_part.relation: program.uses(clause_part.relation) for clause in program.clauses for clause_part in clause.body}
        self._out_before: dict[str, list[Conjunction]] = {}
        for clause in program.clauses:
            if not clause.body:
                start.out.setdefault(clause.head.relation, [])
        self._take(start)
        self.keep()

    def change(self, change: Change) -> dict[str, Difference]:
        self._take(change)
        return self._differences()

    def _take(self, change: Change) -> None:
        self.work = Work()
        shrunk: list[int] = []
        grown: list[int] = []
        for relation, stated in change.stated.items():
            for fact, parts in stated.items():
                atom = self.atoms.at(relation, ("stated", relation, fact))
                old = atom.parts
                self._put(atom, parts)
                if not within(old, parts, self.solver):
                    shrunk.append(atom.number)
                if not within(parts, old, self.solver):
                    grown.append(atom.number)
        reopened: list[str] = []
        begun: list[str] = []
        for relation, out in change.out.items():
            more, less = minus(out, self.out.get(relation, []), self.solver), minus(self.out.get(relation, []), out, self.solver)
            reopened += [relation] if less else []
            begun += [relation] if relation not in self.out else []
            self.out[relation] = out
            self.opened[relation] = self.atoms.clock + 1
            shrunk += self._limited(relation, more) if more else ()
        self._delete(shrunk)
        again = [*self.program.of(reopened), *(clause for clause in self.program.of(begun) if not clause.body)]
        self._insert([*grown, *(number for clause in again for number in self._all(clause))])

    # -- Straight Delete

    def _limited(self, relation: str, more: list[Conjunction]) -> Iterator[int]:
        """Derived atoms that lose what is newly out."""
        near = {atom.number: atom for part in more for atom in self.atoms.near(relation, part)}
        for atom in near.values():
            if atom.key[0] == "stated":
                continue
            left = minus(atom.parts, more, self.solver)
            if left != atom.parts:
                self._put(atom, left)
                yield atom.number

    def _delete(self, shrunk: Iterable[int]) -> None:
        heap = [(self.atoms.by_number[above].depth, above) for number in shrunk for above in self.atoms.by_number[number].above]
        heapify(heap)
        done: set[int] = set()
        while heap:
            _, number = heappop(heap)
            atom = self.atoms.by_number[number]
            if number in done or not atom.parts:
                continue
            done.add(number)
            self.work.touched += 1
            new = self._computed(atom)
            if not within(atom.parts, new, self.solver):
                self._put(atom, new)
                for above in atom.above:
                    heappush(heap, (self.atoms.by_number[above].depth, above))

    def _computed(self, atom: Atom) -> list[Conjunction]:
        """The region of an atom: its clause over the atoms of its support."""
        clause, atom.computed = self.program.clauses[atom.clause], self.atoms.clock
        parts = clause.applied([self.atoms.by_number[part].parts for part in atom.body], self.solver)
        return joined(minus(parts, self.out.get(atom.relation, []), self.solver))

    # -- insertion

    def _insert(self, grown: list[int]) -> None:
        todo, waiting = deque(dict.fromkeys(grown)), set(grown)
        while todo:
            number = todo.popleft()
            waiting.discard(number)
            atom = self.atoms.by_number[number]
            for clause, position in self.uses.get(atom.relation, ()):
                for head in self._built(clause, position, atom):
                    if head not in waiting:
                        waiting.add(head)
                        todo.append(head)

    def _all(self, clause: Clause) -> Iterator[int]:
        """All atoms of a clause that are new, or have grown."""
        if clause.start is not None:
            for body in self._bodies(clause, clause.start, 0, (), None):
                yield from self._derived(clause, body)

    def _built(self, clause: Clause, position: int, atom: Atom) -> Iterator[int]:
        if clause.start is None:
            return
        for part in atom.parts:
            matched = clause.body[position].matched(part)
            if matched is not None and (start := meet(clause.start, matched)) is not None:
                for body in list(self._bodies(clause, start, 0, (), (position, atom.number))):
                    yield from self._derived(clause, body)

    def _bodies(
        self, clause: Clause, so_far: Conjunction, index: int, chosen: tuple[int, ...], given: tuple[int, int] | None
    ) -> Iterator[tuple[int, ...]]:
        """The ways to choose an atom for each position that do not contradict each other."""
        if index == len(clause.body):
            yield chosen
            return
        if given is not None and given[0] == index:
            yield from self._bodies(clause, so_far, index + 1, (*chosen, given[1]), given)
            return
        pattern = clause.body[index]
        for atom in self.atoms.near(pattern.relation, so_far, pattern.names):
            for part in atom.parts:
                matched = pattern.matched(part)
                if matched is not None and (more := meet(so_far, matched)) is not None:
                    yield from self._bodies(clause, more, index + 1, (*chosen, atom.number), given)

    def _derived(self, clause: Clause, body: tuple[int, ...]) -> Iterator[int]:
        key = ("clause", clause.place, body)
        if key not in self.atoms.by_key:
            regions = [self.atoms.by_number[part].parts for part in body]
            new = joined(minus(clause.applied(regions, self.solver), self.out.get(clause.head.relation, []), self.solver))
            if not new or (clause.head.relation in self.recursive and self._circular(clause.head.relation, new, body)):
                return
            if len(self.atoms.by_number) >= MOST_SUPPORTS:
                raise NotGround
            atom = self.atoms.at(clause.head.relation, key, body, clause.place)
            self._put(atom, new)
            atom.computed = self.atoms.clock
            yield atom.number
            return
        atom = self.atoms.by_number[self.atoms.by_key[key]]
        if atom.computed >= max([self.opened.get(atom.relation, 0), *(self.atoms.by_number[part].changed for part in body)]):
            return  # it was found from another of its body's atoms just now
        new = self._computed(atom)
        if not within(new, atom.parts, self.solver):
            if clause.head.relation in self.recursive and self._circular(clause.head.relation, new, body):
                return
            self._put(atom, new)
            yield atom.number

    def _circular(self, relation: str, parts: list[Conjunction], body: tuple[int, ...]) -> bool:
        """Whether a ground atom stands in its own support."""
        if len(parts) != 1 or (row := parts[0].row) is None:
            raise NotGround(relation)
        todo, seen = list(body), set[int]()
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            atom = self.atoms.by_number[number]
            if atom.relation == relation and any(part.row == row for part in atom.parts):
                return True
            todo += atom.body if atom.relation in self.recursive else ()
        return False

    def _put(self, atom: Atom, parts: list[Conjunction]) -> None:
        if atom.relation in self.recursive and any(part.row is None for part in parts):
            raise NotGround(atom.relation)
        self.atoms.put(atom, parts)

    # -- what has changed

    def _differences(self) -> dict[str, Difference]:
        lost: dict[str, list[Conjunction]] = {}
        came: dict[str, list[Conjunction]] = {}
        past: dict[str, Atoms] = {}  # what was there of atoms that have changed
        for atom, old in self.atoms.journal.values():
            lost.setdefault(atom.relation, []).extend(minus(old, atom.parts, self.solver))
            came.setdefault(atom.relation, []).extend(minus(atom.parts, old, self.solver))
            if old:
                before = past.setdefault(atom.relation, Atoms())
                before.put(before.at(atom.relation, (atom.number,)), old)
        differences = {}
        for relation in lost:
            less = [piece for part in lost[relation] for piece in minus([part], self.near(relation, part), self.solver)]
            more = [piece for part in came[relation] for piece in minus([part], self._before(relation, part, past), self.solver)]
            if less or more:
                differences[relation] = Difference(more, less)
        return differences

    def _before(self, relation: str, part: Conjunction, past: dict[str, Atoms]) -> Iterator[Conjunction]:
        """What may have covered a conjunction before."""
        for atom in self.atoms.near(relation, part):
            if atom.number not in self.atoms.journal:
                yield from atom.parts
        for atom in past[relation].near(relation, part) if relation in past else ():
            yield from atom.parts

    def near(self, relation: str, part: Conjunction) -> Iterator[Conjunction]:
        return (piece for atom in self.atoms.near(relation, part) for piece in atom.parts)

    def region(self, relation: str) -> list[Conjunction]:
        return self.atoms.region(relation)

    def keep(self) -> None:
        self.atoms.keep()
        self._out_before = dict(self.out)

    def undo(self) -> None:
        self.atoms.undo()
        self.out = dict(self._out_before)

    def supports(self) -> Iterator[tuple[Atom, str]]:
        """The atoms, in the order in which they were derived, each with its support."""
        for atom in sorted(self.atoms.by_number.values(), key=lambda one: one.number):
            if atom.parts and atom.key[0] == "clause":
                yield atom, self._support(atom)

    def _support(self, atom: Atom) -> str:
        if atom.key[0] == "stated":
            return f"<{atom.key[2][-1]}>" if isinstance(atom.key[2], tuple) else f"<{atom.key[2]}>"
        clause = self.program.clauses[atom.clause]
        return f"<{', '.join([str(clause.number), *(self._support(self.atoms.by_number[part]) for part in atom.body)])}>"
