"""Why a row is not in a relation: for each rule that could give it, how far it comes.

>>> missing = WhyNot('edge("c", "a")', "is not there", ('edge("c", "g")',))
>>> rule = Attempt("closure(x, y) :- edge(x, y).", "graph.dl:5:1", (FailedInstance((), missing),))
>>> further = FailedInstance(('edge("c", "g")',), WhyNot('closure("g", "a")', "does not hold"))
>>> other = Attempt("closure(x, y) :- edge(x, z), closure(z, y).", "graph.dl:6:1", (further,), 4)
>>> print(WhyNot('closure("c", "a")', "does not hold", rules=(rule, other)).text())
closure("c", "a") does not hold
├─ closure(x, y) :- edge(x, y).   (graph.dl:5:1)
│  └─ edge("c", "a") is not there; near: edge("c", "g")
└─ closure(x, y) :- edge(x, z), closure(z, y).   (graph.dl:6:1)
   ├─ edge("c", "g"), but closure("g", "a") does not hold
   └─ … and 4 more ways
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vigilog.core.errors import counted


@dataclass(frozen=True)
class WhyNot:
    """A literal that does not hold, and in what way it does not (`note`). `near` are rows of its relation that agree with it in most columns, `rules` those that could give it, as far as they were looked at."""

    literal: str
    note: str
    near: tuple[str, ...] = ()
    rules: tuple[Attempt, ...] = ()

    def text(self) -> str:
        """A tree: below a literal that does not hold the rules, below a rule what of it holds, and what does not."""
        return "\n".join(self._lines("", "", ()))

    def json(self) -> dict[str, Any]:
        """The same as nested objects."""
        rules = [rule.json() for rule in self.rules]
        return {"literal": self.literal, "holds": False, "note": self.note, "near": list(self.near), "rules": rules}

    def _lines(self, first: str, rest: str, holds: tuple[str, ...]) -> Iterator[str]:
        near = f"; near: {', '.join(self.near)}" if self.near else ""
        yield first + (f"{', '.join(holds)}, but " if holds else "") + f"{self.literal} {self.note}{near}"
        for number, rule in enumerate(self.rules, start=1):
            last = number == len(self.rules)
            yield from rule.lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))


@dataclass(frozen=True)
class FailedInstance:
    """An instance of a rule up to the literal that fails: those that hold before it, and why that one does not."""

    holds: tuple[str, ...]
    fails: WhyNot


@dataclass(frozen=True)
class Attempt:
    """A rule that does not give a row: a few ways in which it fails, and how many more there are; or a `note` why that was not looked at."""

    rule: str
    place: str
    ways: tuple[FailedInstance, ...] = ()
    more: int = 0
    note: str = ""

    def json(self) -> dict[str, Any]:
        ways = [{"holds": list(way.holds), "fails": way.fails.json()} for way in self.ways]
        fields: dict[str, Any] = {"rule": self.rule, "place": self.place, "ways": ways, "more": self.more}
        return fields | ({"note": self.note} if self.note else {})

    def lines(self, first: str, rest: str) -> Iterator[str]:
        yield f"{first}{self.rule}   ({self.place})" + (f": {self.note}" if self.note else "")
        for number, way in enumerate(self.ways, start=1):
            last = number == len(self.ways) and not self.more
            yield from way.fails._lines(rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), way.holds)
        if self.more:
            yield f"{rest}└─ … and {counted(self.more, 'more way')}"


def read_why_not(message: Mapping[str, Any]) -> WhyNot:
    """What `json` has told.

    >>> told = WhyNot("p(1)", "does not hold", ("p(2)",), (Attempt("p(x) :- q(x).", "a.dl:1:1", (FailedInstance((), WhyNot("q(1)", "is not there")),)),)).json()
    >>> read_why_not(told).json() == told
    True
    """
    rules = tuple(
        Attempt(
            rule["rule"],
            rule["place"],
            tuple(FailedInstance(tuple(way["holds"]), read_why_not(way["fails"])) for way in rule["ways"]),
            rule["more"],
            rule.get("note", ""),
        )
        for rule in message["rules"]
    )
    return WhyNot(message["literal"], message["note"], tuple(message["near"]), rules)
