"""What is left of tests where the values of variables are known, or bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from vigilog.core.runs import Place, Runs
from vigilog.language.parts import rename
from vigilog.language.syntax import Constant
from vigilog.mediators.forms import compared, folded
from vigilog.mediators.tests import Computed, Linear, Test, linear

MOST_TRIED = 1000  # values of a variable that are tried one by one


def reduced(test_: Test, runs: Mapping[str, Runs]) -> Test | bool | tuple[str, Runs]:
    """What is left of a test where some variables have one value: nothing, values of one variable, or a test over the others."""
    match test_:
        case Linear():
            return _reduced_linear(test_, runs)
        case Computed():
            return _reduced_computed(test_, runs)


def _reduced_computed(test_: Computed, runs: Mapping[str, Runs]) -> Test | bool | tuple[str, Runs]:
    places = {name: place for name in test_.names if (place := runs[name].single) is not None}
    if len(places) == len(test_.names):
        return test_.holds({name: runs[name].axis.value(place) for name, place in places.items()})
    fixed = {name: Constant(runs[name].axis.value(place), runs[name].axis.type) for name, place in places.items()}
    if fixed:
        test_ = replace(test_, left=folded(rename(test_.left, fixed)), right=folded(rename(test_.right, fixed)))
    left = test_.names
    if len(left) == 1 and runs[name := next(iter(left))].size(MOST_TRIED):
        line = runs[name].axis
        points = [line.at(place) for place in runs[name].places() if test_.holds({name: line.value(place)})]
        return name, _all_of(points, line.none)
    if fixed and len(plain := compared(test_.op, test_.left, test_.right)) == 1:
        match plain[0]:
            case (name, some):
                return name, some if test_.positive else ~some
            case Linear() as simple:
                return simple if test_.positive else simple.complement()
            case _:
                pass
    return test_


def _all_of(parts: list[Runs], none: Runs) -> Runs:
    """The union of runs that come in their order."""
    cuts: list[Place] = []
    for part in parts:
        if cuts and len(cuts) % 2 == 0 and cuts[-1] == part.cuts[0]:
            cuts.pop()
            cuts += part.cuts[1:]
        else:
            cuts += part.cuts
    return Runs(none.axis, tuple(cuts))


def _reduced_linear(test_: Linear, runs: Mapping[str, Runs]) -> Test | bool | tuple[str, Runs]:
    places: dict[str, Place] = {}
    for name, _ in test_.terms:
        if (place := runs[name].single) is not None:
            places[name] = place
    if not places and len(test_.terms) > 1:
        return test_
    if runs[test_.terms[0][0]].axis.most is None:
        return _reduced_order(test_, runs, places)
    terms = [(name, factor) for name, factor in test_.terms if name not in places]
    bound = test_.bound - sum(factor * places[name] for name, factor in test_.terms if name in places)
    if len(terms) != 1:
        return linear(dict(terms), test_.op, bound)
    name, factor = terms[0]
    line = runs[name].axis
    if test_.op == "<=":
        return name, line.until(bound // factor + 1) if factor > 0 else line.since(-(bound // -factor))
    place, rest = divmod(bound, factor)
    point = line.at(place) if not rest and line.least <= place <= line.most else line.none
    return name, point if test_.op == "=" else ~point


def _reduced_order(test_: Linear, runs: Mapping[str, Runs], places: Mapping[str, Place]) -> bool | tuple[str, Runs]:
    """Likewise of texts, which are only compared: `x - y op 0`, or `<= -1` for `x < y`."""
    (one, factor), (two, _) = test_.terms
    smaller, larger = (one, two) if factor > 0 else (two, one)
    line = runs[smaller].axis
    if test_.op != "<=":
        name, place = (larger, places[smaller]) if smaller in places else (smaller, places[larger])
        return name, line.at(place) if test_.op == "=" else ~line.at(place)
    if smaller in places:
        place = places[smaller]
        return larger, line.since(place if test_.bound == 0 else line.after(place))
    place = places[larger]
    return smaller, line.until(line.after(place) if test_.bound == 0 else place)


def tightened(test_: Linear, runs: Mapping[str, Runs]) -> bool | dict[str, Runs]:
    """What the bounds of variables say about a test over integers: that it holds, that it cannot, or which values of each can matter."""
    if runs[test_.terms[0][0]].axis.most is None:
        return {}
    least: list[int] = []
    most: list[int] = []
    for name, factor in test_.terms:
        ends = factor * runs[name].least, factor * (runs[name].most or 0)
        least.append(min(ends))
        most.append(max(ends))
    low, high = sum(least), sum(most)
    match test_.op:
        case "<=" if high <= test_.bound:
            return True
        case "<=" if low > test_.bound:
            return False
        case "=" | "!=" if low > test_.bound or high < test_.bound:
            return test_.op == "!="
        case "!=":
            return {}
        case _:
            pass
    bounds: dict[str, Runs] = {}
    for (name, factor), mine, mine_most in zip(test_.terms, least, most, strict=True):
        line, size = runs[name].axis, abs(factor)
        room = test_.bound - (low - mine)  # factor · x is at most this
        upper = line.until(room // size + 1) if factor > 0 else line.since(-(room // size))
        if test_.op == "=":
            room = test_.bound - (high - mine_most)  # and at least this
            upper &= line.since(-(-room // size)) if factor > 0 else line.until(-room // size + 1)
        if not runs[name] <= upper:
            bounds[name] = runs[name] & upper
    return bounds
