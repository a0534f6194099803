"""What becomes of a single group, as `turning.py` has it of many: a transaction of one row touches one, and waits for nothing else.

>>> from vigilog.core.values import NUMBER
>>> from vigilog.language.check import check
>>> from vigilog.rewriting.maintenance.groups import grouping
>>> text = ".decl e(x: symbol, y: number) .decl p(x: symbol, s: number, m: number) p(x, s, m) :- e(x, _), s = sum y : { e(x, y) }, m = max y : { e(x, y) }."
>>> (group,) = grouping(check(text).program, {"p": False}).groups
>>> before = read_alone(group, (2, "7", 5))
>>> now = turned_alone(group, ("a",), before, (1, 5, 5), None, lambda key, place: 2)
>>> written_alone(group, now), value_alone(group, before), value_alone(group, now)
((1, '2', 2), (7, 5), (2, 2))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vigilog.language import accumulators
from vigilog.rewriting.maintenance.group import ADDED, EXTREMES, Cells, Group
from vigilog.rewriting.maintenance.turning import AS_THEY_ARE, Coders, all_pass


def read_alone(group: Group, state: Cells | None) -> list[Any]:
    """What a state says of a group: the number of bindings, and its parts."""
    if state is None:
        return [0, *(0 if part.op in ADDED else None for part in group.parts)]
    numbers = [*state]
    for place, reader in group.readers:
        numbers[place] = reader(numbers[place])
    return numbers


def written_alone(group: Group, cells: Sequence[Any]) -> Cells | None:
    """The state of a group."""
    if not cells[0]:
        return None
    state = [*cells]
    for place, writer in group.writers:
        state[place] = writer(state[place])
    return tuple(state)


def turned_alone(
    group: Group, key: Cells, before: Sequence[Any], gone: Cells | None, came: Cells | None, look_up: Callable[[Cells, int], Any]
) -> list[Any]:
    """A group after bindings have gone and come."""
    after = [*before]
    after[0] += (came[0] if came else 0) - (gone[0] if gone else 0)
    for place, part in enumerate(group.parts, start=1):
        old = after[place]
        if part.op in ADDED:
            after[place] = old + (came[place] if came else 0) - (gone[place] if gone else 0)
        elif came and (old is None or EXTREMES[part.op](came[place], old)):
            after[place] = came[place]
        elif gone and gone[place] == old:
            after[place] = look_up(key, place - 1) if after[0] else None
    return after


def value_alone(group: Group, cells: Sequence[Any], encoders: Coders = AS_THEY_ARE) -> Cells | None:
    """The values of a group that rules read."""
    number = cells[0]
    if not number:
        return None
    values = []
    for shown in group.shown:
        held = number if shown.part is None else cells[1 + shown.part]
        if shown.op == "sum":
            held = accumulators.sum_of(shown.type, held)
        elif shown.op == "mean" and shown.part is not None:
            held = accumulators.mean_of(group.parts[shown.part].type, held, number)
        elif shown.op == "variance" and shown.part is not None:
            held = accumulators.variance_of(group.parts[shown.part].type, held, cells[1 + shown.squares], number)
        values.append(held)
    if None in values or (group.tests and not all_pass(group, values)):
        return None
    for place, encode in encoders.items():
        values[place] = encode(values[place])
    return tuple([values[place] for place in group.read])
