"""The fewest indexes that serve all searches of a program.

An index over columns in some order serves a search by the first one of them, the first two, and so on. Searches that contain each other
can therefore share one. The fewest chains of containment that cover all searches are found by a maximum matching
(Dilworth; for Datalog: Subotić et al., Automatic Index Selection for Large-Scale Datalog Computation, 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Order = tuple[int, ...]


def needed_indexes(searches: Iterable[frozenset[int]], existing: Sequence[Order]) -> list[Order]:
    """Column orders for new indexes, so that with the existing ones every search is served.

    >>> needed_indexes([frozenset({0}), frozenset({1}), frozenset({1, 2})], [(0, 1, 2)])
    [(1, 2)]
    """
    open_ = sorted({search for search in searches if search and not any(serves(order, search) for order in existing)}, key=_size)
    follower = _matching(open_)
    starts = [index for index in range(len(open_)) if index not in follower.values()]
    return [_order(open_, start, follower) for start in starts]


def serves(order: Order, search: frozenset[int]) -> bool:
    return frozenset(order[: len(search)]) == search


def _size(search: frozenset[int]) -> tuple[int, list[int]]:
    return len(search), sorted(search)


def _order(searches: list[frozenset[int]], start: int, follower: dict[int, int]) -> Order:
    order: list[int] = []
    index: int | None = start
    while index is not None:
        order += sorted(searches[index] - set(order))
        index = follower.get(index)
    return tuple(order)


def _matching(searches: list[frozenset[int]]) -> dict[int, int]:
    """A largest set of pairs (smaller, larger) in which each search is smaller once and larger once at most."""
    larger = {i: [j for j, other in enumerate(searches) if search < other] for i, search in enumerate(searches)}
    taken_by: dict[int, int] = {}

    def augment(small: int, seen: set[int]) -> bool:
        for large in larger[small]:
            if large not in seen:
                seen.add(large)
                if large not in taken_by or augment(taken_by[large], seen):
                    taken_by[large] = small
                    return True
        return False

    for small in larger:
        augment(small, set())
    return {small: large for large, small in taken_by.items()}
