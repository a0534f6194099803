"""Facts as text: `{"args": ["x"], "where": "x >= 5, x != 6"}`, read and written.

The law of writing: conditions come in the order of the columns; of one column `=`, else `>=`, `<=`, then `!=` in ascending order, then what is left out in longer runs as `!( … )`; then what concerns several
columns; no condition is `true`. Integers have neither `<` nor `>`. Equal conjunctions have equal texts, and what is written is read again as the same set. `!( … )` is the complement.

>>> from vigilog.core.values import NUMBER
>>> fact = parsed_where("x >= 5, x != 6, !(x >= 8, x <= 9)", {"x": NUMBER})
>>> [where(part) for part in fact]
['x >= 5, x != 6, !(x >= 8, x <= 9)']
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from vigilog.core.errors import DataError, ProgramError, did_you_mean
from vigilog.core.runs import NEXT, Place, Runs, axis
from vigilog.core.values import Type
from vigilog.language import syntax
from vigilog.language.check import check
from vigilog.language.parser import parse
from vigilog.language.parts import names
from vigilog.language.printer import show_constant, show_term
from vigilog.language.program import Program
from vigilog.mediators.conditions import conjunction, said
from vigilog.mediators.conjunction import Conjunction
from vigilog.mediators.forms import MIRRORED, OPPOSITE, NotLinear, compared
from vigilog.mediators.reduction import reduced, tightened
from vigilog.mediators.regions import minus
from vigilog.mediators.solver import Solver, Unsolved
from vigilog.mediators.tests import Computed, Linear, Test


def where(part: Conjunction) -> str:
    """The text of a conjunction's conditions."""
    guards = {guard for test in part.tests for guard in _guards(test, part)}
    tests = [test for test in part.tests if test not in guards]
    runs = _stated(part.runs, tests, part.tests)
    texts = [text for name, some in runs.items() for text in _column(name, some)]
    texts += sorted(shown_test(test, part.runs, part.tests) for test in tests)
    return ", ".join(texts) if texts else "true"


def _stated(runs: Mapping[str, Runs], tests: list[Test], beside: Collection[Test]) -> dict[str, Runs]:
    """The values that are to be said of each column: an end is left out that a test implies, by what is said of the others."""
    said_ = dict(runs)
    for name, some in runs.items():
        for test in tests:
            if (
                name in test.names
                and isinstance(test, Linear)
                and some.axis.most is not None
                and not as_comparison(test, runs, beside).negated
            ):
                bounds = tightened(test, {**said_, name: some.axis.all})
                if isinstance(bounds, dict) and name in bounds and bounds[name]:
                    said_[name] = _open(said_[name], bounds[name])
    return said_


def _open(runs: Runs, implied: Runs) -> Runs:
    """The runs without the ends that are implied."""
    cuts = runs.cuts
    if len(implied.cuts) == 2 and len(cuts) % 2 == 0 and cuts[-1] == implied.cuts[1]:
        cuts = cuts[:-1]
    if cuts[0] == implied.cuts[0]:
        cuts = (runs.axis.least, *cuts[1:])
    return Runs(runs.axis, cuts)


def _column(name: str, runs: Runs) -> Iterator[str]:
    if (place := runs.single) is not None:
        yield f"{name} = {_constant(runs, place)}"
        return
    line = runs.axis
    if runs.cuts[0] != line.least:
        yield f"{name} {_lower(runs, runs.cuts[0])}"
    if len(runs.cuts) % 2 == 0:
        yield f"{name} {_upper(runs, runs.cuts[-1])}"
    holes = [Runs(line, (end, start)) for end, start in pairwise(runs.cuts[1:]) if runs.holds(start)]
    for hole in holes:
        if hole.single is not None:
            yield f"{name} != {_constant(runs, hole.single)}"
    for hole in holes:
        if hole.single is None:
            yield f"!({', '.join(_column(name, hole))})"


def _lower(runs: Runs, cut: Place) -> str:
    """`>=` or `>`: integers have the one, all else whichever is shorter."""
    match runs.axis.type.kind:
        case "symbol" if cut.endswith(NEXT):
            return f"> {_constant(runs, cut.removesuffix(NEXT))}"
        case "float" if len(repr(runs.axis.value(cut - 1))) < len(repr(runs.axis.value(cut))):
            return f"> {_constant(runs, cut - 1)}"
    return f">= {_constant(runs, cut)}"


def _upper(runs: Runs, cut: Place) -> str:
    match runs.axis.type.kind:
        case "symbol":
            return f"<= {_constant(runs, cut.removesuffix(NEXT))}" if cut.endswith(NEXT) else f"< {_constant(runs, cut)}"
        case "float" if len(repr(runs.axis.value(cut))) < len(repr(runs.axis.value(cut - 1))):
            return f"< {_constant(runs, cut)}"
    return f"<= {_constant(runs, cut - 1)}"


def _constant(runs: Runs, place: Place) -> str:
    value = runs.axis.value(place)
    return f'"{runs.axis.type.text(value)}"' if runs.axis.type.kind in ("date", "timestamp") else show_constant(value)


def shown_test(test: Test, runs: Mapping[str, Runs], beside: Collection[Test] = ()) -> str:
    """A test as a comparison."""
    match test:
        case Computed():
            text = f"{show_term(test.left)} {test.op} {show_term(test.right)}"
            return text if test.positive else f"!({text})"
        case Linear():
            comparison = as_comparison(test, runs, beside)
            text = f"{show_term(comparison.left)} {comparison.op} {show_term(comparison.right)}"
            return f"!({text})" if comparison.negated else text


class Comparison(NamedTuple):
    op: str
    left: syntax.Term
    right: syntax.Term
    negated: bool = False  # its complement is meant


def as_comparison(test: Linear, runs: Mapping[str, Runs], beside: Collection[Test] = ()) -> Comparison:
    """A linear test as terms of 64 bits, which have values wherever the test may hold, as the values of columns and the tests beside it say; if none of the usual ways to write it has, its complement's complement."""
    plain = _plain(test, runs)
    if plain.negated or test.op == "=" or _has_values(plain, runs, beside):
        return plain
    if test.op == "!=":
        equal = _plain(replace(test, op="="), runs)
        return Comparison("=", equal.left, equal.right, negated=True)
    for name, factor in test.terms:
        rest = [(other, times) for other, times in test.terms if other != name]
        if abs(factor) == 1 and len(rest) == 1 and rest[0][1] == factor and test.bound == 0:
            one, other = (syntax.Variable(each, runs[each].axis.type) for each in (name, rest[0][0]))
            negative = syntax.Functor("-", (syntax.Constant(0, one.type), one), one.type)
            moved = Comparison("<=", negative, other) if factor < 0 else Comparison("<=", other, negative)
            if _has_values(moved, runs, beside):
                return moved
    opposite = _plain(replace(test, terms=tuple((name, -factor) for name, factor in test.terms), bound=-test.bound - 1), runs)
    return Comparison(opposite.op, opposite.left, opposite.right, negated=True) if not opposite.negated else plain


def _has_values(comparison: Comparison, runs: Mapping[str, Runs], beside: Collection[Test]) -> bool:
    """Whether the terms of a comparison have values in 64 bits wherever something else does not exclude it."""

    def implied(guard: object) -> bool:
        match guard:
            case Linear():
                left = reduced(guard, runs)
                return any(_implies(test, guard) for test in beside) or (not isinstance(left, Linear) and implied(left))
            case (str() as name, Runs() as some):
                return runs[name] <= some
            case _:
                return guard is True

    return all(map(implied, compared(comparison.op, comparison.left, comparison.right)[1:]))


def _implies(test: Test, guard: Linear) -> bool:
    """Whether a test has the same terms, and a bound that is no wider."""
    return (
        isinstance(test, Linear) and test.terms == guard.terms and guard.op == "<=" and test.op in ("=", "<=") and test.bound <= guard.bound
    )


def _plain(test: Linear, runs: Mapping[str, Runs]) -> Comparison:
    """A linear test with what has a positive factor on the left, and the rest on the right, or everything on the left."""
    types = {name: runs[name].axis.type for name, _ in test.terms}
    type_ = next(iter(types.values()))
    above = [(syntax.Variable(name, types[name]), factor) for name, factor in test.terms if factor > 0]
    below = [(syntax.Variable(name, types[name]), -factor) for name, factor in test.terms if factor < 0]
    if type_.kind not in ("number", "unsigned"):  # only compared: x - y <= -1 is x < y
        return Comparison("<" if test.op == "<=" and test.bound == -1 else test.op, above[0][0], below[0][0])
    least, most = axis(type_).least, axis(type_).most
    assert most is not None, "integers end"
    if not below or not above:
        op, bound = (test.op, test.bound) if not below else (MIRRORED[test.op], -test.bound)
        if least <= bound <= most:
            return Comparison(op, _sum(above or below, 0, type_), syntax.Constant(bound, type_))
        op, bound = OPPOSITE[op], bound + (1 if op == "<=" else -1)  # what overflows: it is not so that the sum has a value there
        op = {"<": "<=", ">": ">="}.get(op, op)
        if not least <= bound <= most:
            raise Unsolved("a condition has values beyond 64 bits, which cannot be written")
        return Comparison(op, _sum(above or below, 0, type_), syntax.Constant(bound, type_), negated=True)
    if test.op == "<=" and test.bound > most:
        return Comparison("<=", _sum(below, test.bound + 1, type_), _sum(above, 0, type_), negated=True)
    return Comparison(test.op, _sum(above, max(-test.bound, 0), type_), _sum(below, max(test.bound, 0), type_))


def _sum(terms: list[tuple[syntax.Variable, int]], constant: int, type_: Type) -> syntax.Term:
    most = axis(type_).most
    assert most is not None, "integers end"
    parts: list[syntax.Term] = [
        name if factor == 1 else syntax.Functor("*", (syntax.Constant(factor, type_), name), type_) for name, factor in terms
    ]
    while constant:
        parts.append(syntax.Constant(min(constant, most), type_))
        constant -= min(constant, most)
    total = parts[0]
    for part in parts[1:]:
        total = syntax.Functor("+", (total, part), type_)
    return total


def _guards(test: Test, part: Conjunction) -> Iterator[Test]:
    """The tests that come back by themselves when a test is read again."""
    if isinstance(test, Linear):
        comparison = as_comparison(test, part.runs, part.tests)
        guards = [] if comparison.negated else compared(comparison.op, comparison.left, comparison.right)[1:]
        yield from (guard for guard in guards if isinstance(guard, Linear) and guard != test)


def parsed_where(text: str, columns: Mapping[str, Type]) -> list[Conjunction]:
    """The region that a `where` says. Raises DataError if it says none."""
    solver = Solver()
    plain, excluded = _split(text)
    whole: list[Conjunction] = [Conjunction({name: axis(type_).all for name, type_ in columns.items()})]
    if plain:
        whole = _read(plain, columns)
    whole = [part for part in whole if solver.solvable(part)]
    for inner in excluded:
        whole = minus(whole, parsed_where(inner, columns), solver)
    return whole


def _read(text: str, columns: Mapping[str, Type]) -> list[Conjunction]:
    """A conjunction of comparisons, checked by the language's own rules."""
    try:
        body = parse(f"p() :-\n{text}\n.", "where").rules
        unknown = sorted({name for rule in body for name in names(rule)} - columns.keys())
        if len(body) != 1 or unknown:
            hint = did_you_mean(unknown[0], columns) if unknown else ""
            shown = f"where has {unknown[0]}, and args are {', '.join(columns)}" if unknown else "where is a conjunction of conditions"
            raise DataError(f"{shown}{f' ({hint})' if hint else ''}", "where")
        attributes = tuple(syntax.Attribute(name, str(type_)) for name, type_ in columns.items())
        anchor = syntax.Atom("columns", tuple(syntax.Variable(name) for name in columns))
        declared = (syntax.Declaration("columns", attributes), syntax.Declaration("p", ()))
        checked = check(
            Program((), declared, (), (syntax.Rule((syntax.Atom("p", ()),), (anchor, *body[0].body)),), {"where": text})
        ).program
        parts = [Conjunction({name: axis(type_).all for name, type_ in columns.items()})]
        for literal in checked.rules[0].body[1:]:
            parts = [more for part in parts for more in _said(literal, part)]
        return parts
    except ProgramError as error:
        raise DataError(f"where {text!r} is no condition: {error.findings[0].message}", "where") from None
    except NotLinear as reason:
        raise DataError(f"where {text!r} {reason}", "where") from None


def _said(literal: syntax.Literal, part: Conjunction) -> list[Conjunction]:
    if isinstance(literal, syntax.Disjunction):
        parts = []
        for branch in literal.branches:
            ways = [part]
            for inner in branch:
                ways = [more for way in ways for more in _said(inner, way)]
            parts += ways
        return parts
    one = conjunction([*said(literal), *part.tests], part.runs)
    return [] if one is None else [one]


def _split(text: str) -> tuple[str, list[str]]:
    """The conditions outside of `!( … )`, and what stands in each of these."""
    plain: list[str] = []
    excluded: list[str] = []
    for part in _parts(text):
        bare = part.strip()
        inner = bare.removeprefix("!").lstrip() if bare.startswith("!") and not bare.startswith("!=") else ""
        if inner.startswith("(") and _closing(inner) == len(inner) - 1:
            excluded.append(inner[1:-1])
        else:
            plain.append(part)
    joined = ", ".join(plain)
    return ("" if joined.strip() == "true" else joined), excluded


def _parts(text: str) -> Iterator[str]:
    """What stands between commas, outside of parentheses and of texts."""
    start = depth = 0
    for index, character in _outside(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _closing(text: str) -> int:
    """Where the first parenthesis is closed."""
    depth = 0
    for index, character in _outside(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return index
    return -1


def _outside(text: str) -> Iterator[tuple[int, str]]:
    """The characters that are not within a text in quotes."""
    quoted = skipped = False
    for index, character in enumerate(text):
        if skipped:
            skipped = False
        elif quoted and character == "\\":
            skipped = True
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            yield index, character
