"""How ordinary rules read a constrained relation: as a relation of boxes.

`c(x)` becomes `c_box(x_least, x_most), x >= x_least, x <= x_most`: all values of a type that is not text are discrete, so both ends are values. A text has an end that is not in the run, or none: `(x < x_end ; x_open = true)`. The boxes of
a relation are disjoint, so an instance is in one. `!c(x)` reads the boxes of what is outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vigilog.core.errors import DataError
from vigilog.core.runs import Runs
from vigilog.core.spans import Span
from vigilog.core.values import BOOLEAN, Row, Value
from vigilog.language.syntax import Atom, Attribute, Builtin, Constant, Declaration, Disjunction, Literal, Term, Variable
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.eliminate import MOST_CASES


def declared(declaration: Declaration, name: str) -> Declaration:
    """The relation of a constrained relation's boxes."""
    attributes: list[Attribute] = []
    for attribute in declaration.attributes:
        assert attribute.type is not None, "checked programs are typed"
        ends = ("least", "end") if attribute.type.kind == "symbol" else ("least", "most")
        attributes += [Attribute(f"{attribute.name}_{end}", str(attribute.type), attribute.type) for end in ends]
        attributes += [Attribute(f"{attribute.name}_open", "boolean", BOOLEAN)] if attribute.type.kind == "symbol" else []
    return Declaration(name, tuple(attributes), (), declaration.span)


def reading(name: str, declaration: Declaration, args: Sequence[Term], number: int, span: Span) -> Iterator[Literal]:
    """The literals that say that values are in a box; `number` tells its variables from others."""
    box: list[Term] = []
    tests: list[Literal] = []
    for attribute, arg in zip(declaration.attributes, args, strict=True):
        type_ = attribute.type
        least, end, free = (Variable(f"{attribute.name}_{part}_{number}", type_) for part in ("least", "end", "open"))
        box += [least, end]
        bounded = isinstance(arg, Variable | Constant)
        if bounded:
            tests.append(Builtin(">=", (arg, least), span))
        if type_ is not None and type_.kind == "symbol":
            free = Variable(free.name, BOOLEAN)
            box.append(free)
            ends = Builtin("<", (arg, end), span), Builtin("=", (free, Constant(True, BOOLEAN)), span)
            tests += [Disjunction(tuple((one,) for one in ends), span)] if bounded else []
        elif bounded:
            tests.append(Builtin("<=", (arg, end), span))
    yield Atom(name, tuple(box), span)
    yield from tests


def rows(region: Sequence[Conjunction]) -> set[Row]:
    """The boxes of a region as rows. Raises DataError where a test is left that is no union of few boxes."""
    boxes: set[Row] = set()
    for part in region:
        for box in _plain(part):
            boxes |= set(_rows(list(box.runs.values()), ()))
    return boxes


def _plain(part: Conjunction) -> Iterator[Conjunction]:
    """The conjunction in boxes: the variable of a test that has fewest values, one by one."""
    if not part.tests:
        yield part
        return
    sizes: Mapping[str, int | None] = {name: part.runs[name].size(MOST_CASES) for test in part.tests for name in test.names}
    few = {name: size for name, size in sizes.items() if size is not None}
    if not few:
        raise DataError(f"a fact relates {', '.join(sorted(sizes))} without bounds, which an ordinary rule cannot read", "unsolved")
    name = min(few, key=lambda one: few[one])
    for place in part.runs[name].places():
        one = part.limited(name, part.runs[name].axis.at(place))
        if one is not None:
            yield from _plain(one)


def _rows(columns: list[Runs], before: tuple[Value, ...]) -> Iterator[Row]:
    if not columns:
        yield before
        return
    runs, *rest = columns
    for run in runs.intervals():
        line = run.axis
        if line.most is None:
            ends: tuple[Value, ...] = (run.cuts[0], run.cuts[1], False) if len(run.cuts) > 1 else (run.cuts[0], "", True)
        else:
            ends = line.value(run.least), line.value(run.most)
        yield from _rows(rest, (*before, *ends))
