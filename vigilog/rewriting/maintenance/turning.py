"""What becomes of groups when bindings come and go: many groups at once, column by column, which takes a fraction of the time of group by group.

The columns of groups are the numbers of their bindings, and for each part the exact sums, as units (`accumulators.py`), or the extremes. An empty group has no bindings, sums of 0 and no extremes. Sums are
added and taken away, so the law is that of numbers: the order of changes cannot matter.

>>> from vigilog.core.values import NUMBER
>>> from vigilog.language.check import check
>>> from vigilog.rewriting.maintenance.groups import grouping
>>> text = ".decl e(x: symbol, y: number) .decl p(x: symbol, s: number, m: number) p(x, s, m) :- e(x, _), s = sum y : { e(x, y) }, m = max y : { e(x, y) }."
>>> (group,) = grouping(check(text).program, {"p": False}).groups
>>> came = gathered(group, [("a", 1), ("b", 2), ("a", 3)])
>>> came
{('a',): (2, 4, 3), ('b',): (1, 2, 2)}
>>> keys, before = [("a",), ("b",)], read(group, [(1, "5", 5), None])
>>> now = turned(group, keys, before, aligned(group, keys, {}), aligned(group, keys, came), lambda key, place: None)
>>> written(group, now), values(group, now)
([(3, '9', 5), (1, '2', 2)], [(9, 5), (2, 2)])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from vigilog.core.rows import transposed
from vigilog.core.values import Value
from vigilog.language import accumulators, functors
from vigilog.language.syntax import Builtin, Constant, Functor, Term, Variable
from vigilog.rewriting.maintenance.group import ADDED, EXTREMES, Cells, Group, GroupAggregate, StatePart

Columns = list[list[Any]]
Coders = Mapping[int, Callable[[Any], Any]]  # of cells, by the place of a part, or of what is shown
AS_THEY_ARE: Coders = {}


def gathered(group: Group, bindings: Sequence[Cells], decoders: Coders = AS_THEY_ARE) -> dict[Cells, Cells]:
    """The groups of some bindings; what is added up in some parts is decoded first."""
    keys = list(map(itemgetter(slice(group.keys)), bindings))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    group_places = list(map(places.__getitem__, keys))
    alone = len(places) == len(bindings)
    columns: Columns = [[1] * len(bindings) if alone else _added(group_places, len(places), repeat(1))]
    for place, part in enumerate(group.parts):
        cells = list(map(itemgetter(part.column), bindings))
        if place in decoders:
            cells = list(map(decoders[place], cells))
        if part.op in ADDED and part.type.kind != "number":
            cells = [accumulators.units(part.type, cell) for cell in cells]
        if part.op == "squares":
            cells = [cell * cell for cell in cells]
        if not alone:
            cells = _added(group_places, len(places), cells) if part.op in ADDED else _best(group_places, len(places), cells, part)
        columns.append(cells)
    return dict(zip(places, zip(*columns, strict=True), strict=True))


def aligned(group: Group, keys: Iterable[Cells], groups: Mapping[Cells, Cells]) -> Columns:
    """The columns of groups in the order of some keys, of which there is one at least."""
    nothing = (0, *(0 if part.op in ADDED else None for part in group.parts))
    return transposed(list(map(groups.get, keys, repeat(nothing))))


def read(group: Group, states: Sequence[Cells | None]) -> Columns:
    """What states say of groups; None is the state of an empty one."""
    nothing = (0, *("0" if part.op in ADDED else None for part in group.parts))
    columns = transposed([nothing if state is None else state for state in states])
    for place, reader in group.readers:
        columns[place] = list(map(reader, columns[place]))
    return columns


def written(group: Group, columns: Columns) -> list[Cells | None]:
    """The states of groups."""
    cells = [*columns]
    for place, writer in group.writers:
        cells[place] = list(map(writer, cells[place]))
    states = zip(*cells, strict=True)
    return list(states) if all(columns[0]) else [state if state[0] else None for state in states]


def states(group: Group, bindings: Iterable[Cells]) -> list[Cells]:
    """The rows of all groups' states, by all bindings."""
    groups = gathered(group, list(bindings))
    cells = written(group, transposed([*groups.values()])) if groups else []
    return [key + state for key, state in zip(groups, cells, strict=True) if state is not None]


def turned(
    group: Group, keys: Sequence[Cells], before: Columns, gone: Columns, came: Columns, look_up: Callable[[Cells, int], Any]
) -> Columns:
    """Groups after bindings have gone and come. `look_up` finds the extreme of a part in a group when the one before has left."""
    columns: Columns = [_turned(before[0], gone[0], came[0])]
    for place, part in enumerate(group.parts, start=1):
        if part.op in ADDED:
            columns.append(_turned(before[place], gone[place], came[place]))
            continue
        better, cells = EXTREMES[part.op], []
        for key, number, old, less, more in zip(keys, columns[0], before[place], gone[place], came[place], strict=True):
            if more is not None and (old is None or better(more, old)):
                cells.append(more)
            elif less is not None and less == old:
                cells.append(look_up(key, place - 1) if number else None)
            else:
                cells.append(old)
        columns.append(cells)
    return columns


def values(group: Group, columns: Columns, encoders: Coders = AS_THEY_ARE) -> list[Cells | None]:
    """The values of groups that rules read, some of what is shown encoded; None where a group is empty, where a value is undefined, and where a test is not passed."""
    wanted, shown = columns[0], [_shown(group, each, columns) for each in group.shown]
    for cells in shown:
        if None in cells:
            wanted = [number if cell is not None else 0 for number, cell in zip(wanted, cells, strict=True)]
    if group.tests:
        wanted = [number if number and all_pass(group, row) else 0 for number, row in zip(wanted, zip(*shown, strict=True), strict=True)]
    for place, encode in encoders.items():
        shown[place] = [cell if cell is None else encode(cell) for cell in shown[place]]
    rows: Iterable[Cells] = zip(*(shown[place] for place in group.read), strict=True) if group.read else repeat((), len(wanted))
    return list(rows) if all(wanted) else [row if number else None for number, row in zip(wanted, rows, strict=True)]


def _shown(group: Group, shown: GroupAggregate, columns: Columns) -> list[Any]:
    if shown.part is None:
        return columns[0]
    part, cells = group.parts[shown.part], columns[1 + shown.part]
    if part.op != "sum":
        return cells
    if shown.op == "sum":
        return accumulators.sums_of(shown.type, cells)
    if shown.op == "variance":
        triples = zip(cells, columns[1 + shown.squares], columns[0], strict=True)
        return [accumulators.variance_of(part.type, total, squares, number) if number else None for total, squares, number in triples]
    return [accumulators.mean_of(part.type, total, number) if number else None for total, number in zip(cells, columns[0], strict=True)]


def _turned(before: Sequence[int], gone: Sequence[int], came: Sequence[int]) -> list[int]:
    return [was - less + more for was, less, more in zip(before, gone, came, strict=True)]


def _added(places: Sequence[int], number: int, cells: Iterable[int]) -> list[int]:
    """The sums of the cells with the same place."""
    sums = [0] * number
    for place, cell in zip(places, cells, strict=False):
        sums[place] += cell
    return sums


def _best(places: Sequence[int], number: int, cells: Iterable[Any], part: StatePart) -> list[Any]:
    """The extremes of the cells with the same place."""
    extremes, better = [None] * number, EXTREMES[part.op]
    for place, cell in zip(places, cells, strict=True):
        best = extremes[place]
        if best is None or better(cell, best):
            extremes[place] = cell
    return extremes


def all_pass(group: Group, row: Sequence[Any]) -> bool:
    """Whether what is shown of a group passes all tests."""
    bound = {shown.variable.name: value for shown, value in zip(group.shown, row, strict=True)}
    return all(_passes(test, bound) for test in group.tests)


def _passes(test: Builtin, bound: Mapping[str, Value]) -> bool:
    args = [_term(arg, bound) for arg in test.args]
    return None not in args and bool(functors.test(test.op, args))


def _term(term: Term, bound: Mapping[str, Value]) -> Any:
    match term:
        case Variable():
            return bound[term.name]
        case Constant():
            return term.value
        case Functor():
            args = [_term(arg, bound) for arg in term.args]
            assert term.type is not None, "checked programs are typed"
            return None if None in args else functors.apply(term.name, term.type, [a.type for a in term.args if a.type], args)
        case _:
            raise AssertionError("a test of values has neither `_` nor aggregates")
