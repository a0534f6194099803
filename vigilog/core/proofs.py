"""Proofs: why a row is in a relation.

>>> leaf = Proof('edge("a", "b")')
>>> print(Proof('closure("a", "b")', "closure(x, y) :- edge(x, y).", "graph.dl:5:1", (leaf,)).text())
closure("a", "b")   by closure(x, y) :- edge(x, y).   (graph.dl:5:1)
└─ edge("a", "b")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

DEEP, LARGE = 60, 1000  # a proof that is deeper, or has more lines, is told in steps


@dataclass(frozen=True, eq=False)
class Proof:
    """A literal that holds: stated, computed or absent (no rule), or derived by a rule from other literals that hold.

    `relation` and `row` are those of an atom; `asked` is what is no atom and depends on relations all the same (negation, aggregates), as the language has it, so that
    it can be asked again; `broken` marks what does not hold any more. Proofs share their parts: as a tree, one can be exponentially larger than as steps.
    """

    literal: str
    rule: str = ""
    place: str = ""
    because: tuple[Proof, ...] = ()
    relation: str = ""
    row: tuple[Any, ...] | None = None
    asked: object = None
    broken: bool = False
    depth: int = field(init=False, default=1)  # how many literals stand one above the other
    size: int = field(init=False, default=1)  # how many literals it has as a tree, if they are not too many

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", 1 + max((part.depth for part in self.because), default=0))
        object.__setattr__(self, "size", min(1 + sum(part.size for part in self.because), LARGE + 1))

    @property
    def small(self) -> bool:
        return self.depth <= DEEP and self.size <= LARGE

    def text(self) -> str:
        """The proof as a tree, a line for each literal; a deep or large one as numbered steps, each from earlier ones."""
        if self.small:
            return "\n".join(self._lines("", ""))
        steps = self._flat()
        lines = [
            f"{n}. {step._line()}" + (f"   from {', '.join(map(str, reasons))}" if reasons else "")
            for n, (step, reasons) in enumerate(steps, 1)
        ]
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """The proof as nested objects; a deep or large one as a list of steps, each naming earlier ones by their numbers."""
        if self.small:
            return self._fields() | ({"because": [part.json() for part in self.because]} if self.rule else {})
        flat = [step._fields() | ({"because": reasons} if step.rule else {}) for step, reasons in self._flat()]
        return self._fields() | {"steps": flat}

    def steps(self) -> Iterator[Proof]:
        """This step and all below it, each once."""
        seen: set[int] = set()
        queue = [self]
        while queue:
            part = queue.pop()
            if id(part) not in seen:
                seen.add(id(part))
                yield part
                queue += reversed(part.because)

    def rebuilt(self, change: Callable[[Proof], Proof]) -> Proof:
        """The proof with each step changed, after those it follows from."""
        made: dict[int, Proof] = {}
        for step in sorted(self.steps(), key=lambda part: part.depth):
            made[id(step)] = change(replace(step, because=tuple(made[id(part)] for part in step.because)))
        return made[id(self)]

    def _flat(self) -> list[tuple[Proof, list[int]]]:
        """The steps, each with the numbers of those it follows from, which come before it."""
        ordered = sorted(self.steps(), key=lambda part: part.depth)
        numbers = {id(part): number for number, part in enumerate(ordered, start=1)}
        return [(part, [numbers[id(reason)] for reason in part.because]) for part in ordered]

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"literal": self.literal}
        if self.rule:
            fields |= {"rule": self.rule, "place": self.place}
        return fields | ({"broken": True} if self.broken else {})

    def _line(self) -> str:
        return self.literal + ("   (no longer)" if self.broken else "") + (f"   by {self.rule}   ({self.place})" if self.rule else "")

    def _lines(self, first: str, rest: str) -> Iterator[str]:
        yield first + self._line()
        for number, part in enumerate(self.because, start=1):
            last = number == len(self.because)
            yield from part._lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


def read_proof(message: Mapping[str, Any]) -> Proof:
    """The proof that `json` has told: it shows the same text, and tells the same again.

    >>> told = Proof('closure("a", "b")', "closure(x, y) :- edge(x, y).", "graph.dl:5:1", (Proof('edge("a", "b")'),)).json()
    >>> read_proof(told).json() == told
    True
    """
    if "steps" not in message:
        return _read(message, [read_proof(part) for part in message.get("because", ())])
    steps: list[Proof] = []
    for step in message["steps"]:
        steps.append(_read(step, [steps[number - 1] for number in step.get("because", ())]))
    return steps[-1]


def _read(step: Mapping[str, Any], because: list[Proof]) -> Proof:
    return Proof(step["literal"], step.get("rule", ""), step.get("place", ""), tuple(because), broken=step.get("broken", False))
