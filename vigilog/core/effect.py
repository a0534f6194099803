"""What a change does: to base relations, and to relations derived from them.

A part of an effect is a delta, or, where its rows are too many for this process, something that knows where they are. The effects of two changes, one after the other, are one by `then`:

>>> from vigilog.core.delta import Delta
>>> one, other = Delta(plus=frozenset({(1,)})), Delta(plus=frozenset({(2,)}), minus=frozenset({(1,)}))
>>> Effect({"p": one}).then(Effect({"p": other}, {"q": one})).changes
{'p': Delta(plus=frozenset({(2,)}), minus=frozenset())}
>>> Effect({"p": one}).then(Effect({"p": one.inverse()})).changes
{}
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vigilog.core.delta import Delta
from vigilog.core.reports import Report


class Elsewhere(Protocol):
    """A change of a relation whose rows are not in this process."""

    rows: int  # how many there are

    def here(self) -> Delta:
        """Its rows, brought here. Raises DataError if they are too many for that."""

    def then(self, later: Delta) -> Elsewhere:
        """This change and a later one as one."""

    def written(self) -> Mapping[str, Any]:
        """Where its rows are, as an entry of the log names them."""


Part = Delta | Elsewhere


class _Nothing(dict[Any, Any]):
    """An empty mapping that many share, and nobody changes."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # so that it can be a default


NOTHING = _Nothing()


@dataclass(slots=True)
class Effect:
    """What changed in base relations, and in derived ones. What did not change does not occur. It is made for every transaction, and never changed."""

    changes: Mapping[str, Part] = NOTHING
    views: Mapping[str, Part] = NOTHING
    redeclared: Collection[
        str
    ] = ()  # views that have other columns than before: what they lost and what they gained are rows of different types
    alerts: Sequence[Report] = ()  # what is reported of it
    waiting: Mapping[Any, Any] = NOTHING  # what is to be reported later, or not any more (`conditions/timing.py`)

    def then(self, later: Effect) -> Effect:
        return together((self, later)) if self.changes or self.views else later

    def delta(self, relation: str) -> Delta:
        """The rows that a derived relation, or a base relation that is told, has gained and lost."""
        part = self.views.get(relation, Delta())
        return part if isinstance(part, Delta) else part.here()

    def told(self, relations: Collection[str]) -> dict[str, Part]:
        """The changes of some derived relations, in their order."""
        return {name: self.views[name] for name in relations if name in self.views}


def deltas(parts: Mapping[str, Part]) -> dict[str, Delta]:
    """The parts whose rows are here."""
    return {name: part for name, part in parts.items() if isinstance(part, Delta)}


def together(effects: Sequence[Effect]) -> Effect:
    """The effects of changes that came one after the other, as one."""
    if len(effects) == 1:
        return effects[0]
    changes: dict[str, Part] = {}
    views: dict[str, Part] = {}
    redeclared: list[str] = []
    for effect in effects:
        _add(changes, effect.changes)
        _add(views, effect.views)
        redeclared += effect.redeclared
    return Effect(changes, views, redeclared)


def _add(earlier: dict[str, Part], later: Mapping[str, Part]) -> None:
    for name, part in later.items():
        before = earlier.get(name)
        if before is None:
            earlier[name] = part
        else:
            assert isinstance(part, Delta), "only the first change of a transaction may be elsewhere"
            earlier[name] = both = before.then(part)
            if isinstance(both, Delta) and not both:
                del earlier[name]
