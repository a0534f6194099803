"""T_P as sets, and extended DRed (Algorithm 1): for recursion over atoms that are not ground, where supports have no end.

A relation is a region, told by disjoint conjunctions; what those there are imply is not added. A deletion takes out all that *may* depend on it (P_OUT, with every other position in the old view), and derives again, from what
is left, what is in P_OUT. The fixpoint starts at what is left and keeps it. Steps 3(a) to 3(c) of the paper only save work, and the last loses atoms; instead, what is derived again is limited to P_OUT.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from vigilog.mediators.atoms import Atom, Atoms
from vigilog.mediators.clauses import Clause
from vigilog.mediators.conjunction import Conjunction, meet
from vigilog.mediators.regions import common, joined, minus
from vigilog.mediators.solver import Solver
from vigilog.mediators.view import Change, Difference, Fact, Program, Work

Regions = dict[str, list[Conjunction]]


class Sets:
    """A view whose relations are regions. Stated facts are remembered beside it."""

    name = "dred"

    def __init__(self, program: Program, solver: Solver, start: Change) -> None:
        self.program, self.solver, self.work = program, solver, Work()
        self.uses = {part.relation: program.uses(part.relation) for clause in program.clauses for part in clause.body}
        self.out: Regions = {}
        self.stated: dict[str, dict[Fact, list[Conjunction]]] = {}
        self.atoms = Atoms()  # one for each conjunction
        self.given = Atoms()  # what is stated
        self._undo: tuple[Regions, list[tuple[str, Fact, list[Conjunction] | None]]] = ({}, [])
        self._add({clause.head.relation: [] for clause in program.clauses}, everything=True)
        self.change(start)
        self.keep()

    # -- the region of a relation

    def region(self, relation: str) -> list[Conjunction]:
        return self.atoms.region(relation)

    def near(self, relation: str, part: Conjunction) -> Iterator[Conjunction]:
        return (piece for atom in self.atoms.near(relation, part) for piece in atom.parts)

    def _extend(self, relation: str, parts: Iterable[Conjunction]) -> list[Conjunction]:
        """Adds what is new of some parts; gives that."""
        new: list[Conjunction] = []
        for part in parts:
            pieces = minus([part], self.near(relation, part), self.solver)
            for piece in pieces:
                self.atoms.put(self.atoms.at(relation, (relation, object())), [piece])
            new += pieces
        return new

    def _shrink(self, relation: str, parts: list[Conjunction]) -> list[Conjunction]:
        """Takes some parts out; gives what was there of them."""
        gone: list[Conjunction] = []
        near: dict[int, Atom] = {atom.number: atom for part in parts for atom in self.atoms.near(relation, part)}
        for atom in near.values():
            if taken := common(atom.parts, parts, self.solver):
                gone += taken
                self.atoms.put(atom, minus(atom.parts, parts, self.solver))
        return gone

    # -- a change

    def change(self, change: Change) -> dict[str, Difference]:
        self.work = Work()
        removed: Regions = {}
        added: Regions = {}
        reopened: Regions = {}
        for relation, facts in change.stated.items():
            for fact, parts in facts.items():
                old = self.stated.setdefault(relation, {}).get(fact, [])
                self._undo[1].append((relation, fact, old or None))
                self.stated[relation][fact] = parts
                self.given.put(self.given.at(relation, (relation, fact)), parts)
                if not parts:
                    del self.stated[relation][fact]
                removed.setdefault(relation, []).extend(minus(old, parts, self.solver))
                added.setdefault(relation, []).extend(minus(parts, old, self.solver))
        for relation, out in change.out.items():
            before = self.out.get(relation, [])
            self.out[relation] = out
            removed.setdefault(relation, []).extend(minus(out, before, self.solver))
            reopened[relation] = minus(before, out, self.solver)
        self._delete({relation: parts for relation, parts in removed.items() if parts})
        self._add(added)
        again = {relation: parts for relation, parts in reopened.items() if parts}
        if again:
            self._rederive(again)
        return self._differences()

    # -- extended DRed

    def _delete(self, start: Regions) -> None:
        out: Regions = {}
        todo = {
            relation: [piece for part in parts for piece in common([part], self.near(relation, part), self.solver)]
            for relation, parts in start.items()
        }
        while todo:
            relation, parts = todo.popitem()
            new = minus(parts, out.get(relation, []), self.solver)
            if not new:
                continue
            out.setdefault(relation, []).extend(new)
            for clause, position in self.uses.get(relation, ()):
                head = clause.head.relation
                if pieces := [
                    piece for part in self._through(clause, position, new) for piece in common([part], self.near(head, part), self.solver)
                ]:
                    todo.setdefault(head, []).extend(pieces)
        for relation, parts in out.items():
            out[relation] = joined(parts)
            self.work.touched += len(out[relation])
            self._shrink(relation, out[relation])
        if out:
            self._rederive(out)

    def _rederive(self, within: Mapping[str, list[Conjunction]]) -> None:
        """What holds of a region, by what is stated and what clauses derive from what is there; and all that follows."""
        new: Regions = {}
        for relation, parts in within.items():
            stated = [
                piece for part in parts for fact in self.given.near(relation, part) for piece in common(fact.parts, [part], self.solver)
            ]
            new[relation] = self._extend(relation, stated)
        for clause in self.program.of(within):
            head = clause.head.relation
            derived = [piece for part in within[head] for piece in common(self._applied(clause, part), [part], self.solver)]
            new.setdefault(head, []).extend(self._extend(head, derived))
        self.work.rederived += sum(map(len, new.values()))
        self._follow(new)

    def _applied(self, clause: Clause, wanted: Conjunction | None = None) -> list[Conjunction]:
        """All that a clause derives now, less what is out; at least what is `wanted` of it."""
        matched = None if wanted is None else clause.head.matched(wanted)
        start = clause.start if matched is None or clause.start is None else meet(clause.start, matched)
        if start is None or (wanted is not None and matched is None):
            return []
        return minus(list(self._ways(clause, start, 0, None)), self.out.get(clause.head.relation, []), self.solver)

    def _through(self, clause: Clause, position: int, parts: list[Conjunction]) -> Iterator[Conjunction]:
        """What a clause derives if some parts are at one position, and what is there at the others."""
        for part in parts:
            matched = clause.body[position].matched(part)
            start = None if matched is None or clause.start is None else meet(clause.start, matched)
            if start is not None:
                yield from self._ways(clause, start, 0, position)

    def _ways(self, clause: Clause, so_far: Conjunction, index: int, given: int | None) -> Iterator[Conjunction]:
        if index == given:
            index += 1
        if index >= len(clause.body):
            if self.solver.solvable(so_far):
                yield from clause.concluded(so_far, self.solver)
            return
        pattern = clause.body[index]
        for atom in list(self.atoms.near(pattern.relation, so_far, pattern.names)):
            for part in atom.parts:
                matched = pattern.matched(part)
                if matched is not None and (more := meet(so_far, matched)) is not None:
                    yield from self._ways(clause, more, index + 1, given)

    # -- insertion

    def _add(self, start: Regions, *, everything: bool = False) -> None:
        new = {relation: self._extend(relation, parts) for relation, parts in start.items()}
        for clause in self.program.clauses if everything else ():
            if not clause.body:
                new[clause.head.relation] += self._extend(clause.head.relation, self._applied(clause))
        self._follow(new)

    def _follow(self, new: Regions) -> None:
        """All that follows from what is new: semi-naive."""
        todo = {relation: parts for relation, parts in new.items() if parts}
        while todo:
            relation, parts = todo.popitem()
            for clause, position in self.uses.get(relation, ()):
                head = clause.head.relation
                derived = minus(list(self._through(clause, position, parts)), self.out.get(head, []), self.solver)
                if fresh := self._extend(head, joined(derived)):
                    todo.setdefault(head, []).extend(fresh)

    # -- what has changed

    def _differences(self) -> dict[str, Difference]:
        lost: Regions = {}
        came: Regions = {}
        for atom, old in self.atoms.journal.values():
            lost.setdefault(atom.relation, []).extend(minus(old, atom.parts, self.solver))
            came.setdefault(atom.relation, []).extend(minus(atom.parts, old, self.solver))
        differences = {}
        for relation in lost:
            less = [piece for part in lost[relation] for piece in minus([part], self.near(relation, part), self.solver)]
            more = minus(came[relation], lost[relation], self.solver)
            if less or more:
                differences[relation] = Difference(more, less)
        return differences

    def keep(self) -> None:
        self.atoms.keep()
        self.given.keep()
        self._undo = (dict(self.out), [])

    def undo(self) -> None:
        self.atoms.undo()
        self.given.undo()
        self.out, facts = self._undo
        for relation, fact, old in reversed(facts):
            if old is None:
                self.stated[relation].pop(fact, None)
            else:
                self.stated[relation][fact] = old
        self._undo = (dict(self.out), [])
