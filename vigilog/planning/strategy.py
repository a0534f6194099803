"""How each view is kept: not at all (`external`), stored (`materialized`), or stored with counts (`counted`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vigilog.core.errors import UsageError
from vigilog.language.strata import components
from vigilog.language.syntax import Program, atoms

EXTERNAL, MATERIALIZED, COUNTED = "external", "materialized", "counted"
WISHES = ("auto", EXTERNAL, MATERIALIZED, COUNTED)


@dataclass(frozen=True)
class Strategy:
    """A view's strategy and the reason for it."""

    name: str
    reason: str


def choose_strategies(program: Program, views: Iterable[str], wanted: str) -> dict[str, Strategy]:
    """The strategy of each view of a plain program; `auto` stores only what recursion makes expensive to derive again."""
    if wanted not in WISHES:
        raise UsageError(f"there is no strategy {wanted}; there are {', '.join(WISHES)}")
    recursive = recursive_relations(program)
    found = {}
    for view in views:
        needed = depends_on(program, view) & recursive
        if wanted == COUNTED and view in recursive:
            found[view] = Strategy(MATERIALIZED, "stored as asked for; it is recursive, so its proofs cannot be counted")
        elif wanted != "auto":
            found[view] = Strategy(wanted, "as asked for")
        elif needed:
            found[view] = Strategy(
                MATERIALIZED, f"{_listed(sorted(needed))} recursive: a stored row is found at once, a derived one takes a search"
            )
        else:
            found[view] = Strategy(EXTERNAL, "not recursive: its changes follow from the tables along indexes, so nothing need be kept")
    return found


def kept_by_none(program: Program, strategies: Mapping[str, Strategy], large: Iterable[str], reason: str) -> dict[str, Strategy]:
    """The views that cannot be stored, because they rest on relations that are too large for that: their strategy instead."""
    stored = [view for view, strategy in strategies.items() if strategy.name != EXTERNAL]
    return {view: Strategy(EXTERNAL, reason) for view in stored if not depends_on(program, view).isdisjoint(large)}


def stored_relations(program: Program, strategies: Mapping[str, Strategy]) -> set[str]:
    """The derived relations to store: views that are to be, and what they are derived from."""
    derived = {rule.head.relation for rule in program.rules}
    stored = {view for view, strategy in strategies.items() if strategy.name != EXTERNAL}
    return {name for view in stored for name in depends_on(program, view)} & derived


def counted_relations(program: Program, strategies: Mapping[str, Strategy]) -> set[str]:
    """The stored relations whose proofs are counted: views that are to be, and what they alone are derived from, where it is not recursive."""
    counted = {name for view, strategy in strategies.items() if strategy.name == COUNTED for name in depends_on(program, view)}
    return counted - recursive_relations(program)


def recursive_relations(program: Program) -> set[str]:
    return {name for component in components(program) if component.recursive for name in component.relations}


def depends_on(program: Program, relation: str) -> set[str]:
    """A relation and all it is derived from."""
    reads: dict[str, set[str]] = {}
    for rule in program.rules:
        reads.setdefault(rule.head.relation, set()).update(atom.relation for atom, _ in atoms(rule.body))
    seen, queue = {relation}, [relation]
    for name in queue:
        new = reads.get(name, set()) - seen
        seen |= new
        queue.extend(sorted(new))
    return seen


def _listed(names: list[str]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
